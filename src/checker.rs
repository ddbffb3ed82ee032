//! What the dashboard's page `/check` asks with: the crawler's own client and guard, under the settings that are in force.

use std::sync::Arc;

use plumbline_web::{CheckedUrl, Checker};

use crate::check::live;
use crate::reload::Present;

/// A checker over what the service works with now.
pub fn checker(present: Present) -> Checker {
    let settings = present.clone();
    Checker {
        judging: Arc::new(move || settings.borrow().settings.judging()),
        ask: Some(Arc::new(move |url| {
            let now = present.borrow().clone();
            Box::pin(async move {
                let looked = live::look(&url, &now.crawler.client, &now.settings).await;
                let (document, report) = looked.map_err(|error| format!("{error:#}"))?;
                Ok(CheckedUrl { text: document.text().to_owned(), report })
            })
        })),
    }
}
