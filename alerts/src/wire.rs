//! The way out, as a value: the binary builds it from the guarded client, tests from whatever they like.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// Headers by name, in the order they were set.
    pub headers: Vec<(String, String)>,
    /// The exact bytes.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An answer.
    Heard {
        /// HTTP status.
        status: u16,
        /// Headers by name, in lower case.
        headers: Vec<(String, String)>,
        /// The start of the body, 8 KiB at most.
        body: String,
    },
    /// None, and why in words.
    Silent {
        /// They took too long.
        is_timeout: bool,
        /// Why.
        error: String,
    },
    /// Nothing was sent, and that is our fault: it is no failure of theirs.
    Ours(String),
}

impl Answer {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let Answer::Heard { headers, .. } = self else { return None };
        headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

type Sending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Sends requests.
#[derive(Clone)]
pub struct Wire(Arc<dyn Fn(Post) -> Sending + Send + Sync>);

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

impl Wire {
    /// A wire that sends by this function.
    pub fn new<F, S>(send: F) -> Wire
    where
        F: Fn(Post) -> S + Send + Sync + 'static,
        S: Future<Output = Answer> + Send + 'static,
    {
        Wire(Arc::new(move |post| Box::pin(send(post))))
    }

    /// Sends one request.
    pub async fn send(&self, post: Post) -> Answer {
        (self.0)(post).await
    }
}
