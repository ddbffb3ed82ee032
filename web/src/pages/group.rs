//! `/owners/{o}`, `/hosts/{h}`, `/tags/{k=v}`: my things on one page.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_store::query::{Field, Query};
use plumbline_store::views::{Position, TARGET_PAGE, TargetCount, TargetOrder, TargetRow};
use plumbline_store::words::Headline;
use serde::Serialize;

use super::targets::{is_silent, strips};
use crate::WebState;
use crate::cache::Cache;
use crate::chart::Strip;
use crate::error::Error;
use crate::filters;
use crate::lanes::{Bar, Lane};
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::words;

/// A group of targets.
#[derive(Template, Serialize)]
#[template(path = "group.html")]
struct Group {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// `owner`, `host` or `tag`.
    by: &'static str,
    /// As addresses name it.
    slug: String,
    /// As people name it.
    name: String,
    /// How many targets, by verdict and reach.
    counts: Vec<TargetCount>,
    /// Its targets, blocked first, at most fifty.
    targets: Vec<TargetRow>,
    #[serde(skip)]
    matching: i64,
    #[serde(skip)]
    query: String,
    #[serde(skip)]
    strips: HashMap<i64, Strip>,
    #[serde(skip)]
    bar: Lane,
    #[serde(skip)]
    badge: String,
}

/// `GET /owners/{o}`
pub async fn owner(visit: Visit, State(state): State<WebState>, Path(slug): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "owner", asked: slug.clone() };
    let found = state.store.owner_named(&slug).await?.ok_or_else(unknown)?;
    show(visit, state, Field::Owner, found.slug, found.name).await
}

/// `GET /hosts/{h}`
pub async fn host(visit: Visit, State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    let unknown = || Error::NotFound { what: "host", asked: name.clone() };
    let found = state.store.host_named(&name.to_lowercase()).await?.ok_or_else(unknown)?;
    show(visit, state, Field::Host, found.slug.clone(), found.slug).await
}

/// `GET /tags/{k=v}`
pub async fn tag(visit: Visit, State(state): State<WebState>, Path(tag): Path<String>) -> Result<Response, Error> {
    let (key, value) = tag.split_once('=').map_or((tag.as_str(), None), |(key, value)| (key, Some(value)));
    if !state.store.has_tag(key, value).await? {
        return Err(Error::NotFound { what: "tag", asked: tag });
    }
    show(visit, state, Field::Tag, tag.clone(), tag).await
}

async fn show(visit: Visit, state: WebState, field: Field, slug: String, name: String) -> Result<Response, Error> {
    let query = Query::default().with(field, Some(&slug));
    let filter = query.filter(visit.now)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching = counts.iter().map(|count| count.targets).sum();
    let limit = TARGET_PAGE as i64;
    let order = TargetOrder::Headline;
    let targets = state.store.targets_page(&filter, order, &Position::start(), matching, limit).await?;
    let strips = strips(&state, &targets, visit.now / 86_400).await?;
    let page = Group {
        frame: visit.framed(Place::Targets),
        as_of_s: visit.now,
        answer: answer(&name, matching, &counts),
        by: field.name(),
        bar: bar(&counts, matching),
        query: query.to_string(),
        badge: format!("/badges/{}/{}.svg", field.name(), text::query_escaped(&slug)),
        slug,
        name,
        counts,
        targets,
        matching,
        strips,
    };
    visit.answer_rows(&page, &page.targets, Cache::Fresh)
}

fn of(counts: &[TargetCount], headline: Headline) -> i64 {
    counts.iter().filter(|count| count.headline == headline).map(|count| count.targets).sum()
}

fn answer(name: &str, matching: i64, counts: &[TargetCount]) -> String {
    let name = text::visible(name, 80);
    if matching == 0 {
        return format!("{name} has no target that is watched now.");
    }
    let claims: Vec<String> = words::HEADLINES
        .into_iter()
        .map(|headline| (headline, of(counts, headline)))
        .filter(|(_, count)| *count > 0)
        .map(|(headline, count)| words::headline_claim(headline, count))
        .collect();
    let down: i64 = counts.iter().filter(|count| is_silent(count.reach)).map(|count| count.targets).sum();
    let silent = match down {
        0 => String::new(),
        n => format!(" {} not answer.", if n == 1 { "1 does".to_owned() } else { format!("{} do", text::number(n)) }),
    };
    format!("{name}: of {}, {}.{silent}", text::counted(matching, "target", "targets"), text::listed(&claims))
}

/// The verdicts as one bar.
fn bar(counts: &[TargetCount], matching: i64) -> Lane {
    let mut x = 0.0;
    let mut bars = Vec::new();
    for headline in words::HEADLINES {
        let width = of(counts, headline) as f64 * 100.0 / matching.max(1) as f64;
        if width > 0.0 {
            let says = format!("{} {}", text::number(of(counts, headline)), words::headline(headline));
            bars.push(Bar { class: fill(headline), x, width, says });
        }
        x += width;
    }
    let words: Vec<String> = words::HEADLINES
        .into_iter()
        .map(|headline| format!("{} {}", of(counts, headline), words::headline(headline)))
        .collect();
    Lane { bars, words: words.join(", ") }
}

fn fill(headline: Headline) -> &'static str {
    match headline {
        Headline::Blocked => "d-blocked",
        Headline::Deviates => "d-deviates",
        Headline::Sound => "d-sound",
        Headline::NotDetected => "l-none",
        Headline::NotEvaluated => "l-up",
    }
}

impl Group {
    fn here(&self) -> String {
        format!("/{}s/{}", self.by, text::query_escaped(&self.slug))
    }
}
