//! `/regressions/{yyyy}-w{ww}`: the week on one page, to be pasted elsewhere; `.md` gives it as Markdown.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_store::views::FeedRow;
use plumbline_store::words::EventKind;
use serde::Serialize;

use crate::WebState;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;
use crate::week::Week;
use crate::words;

/// Findings of each list; a week with more says so.
const MOST: i64 = 500;

/// One week.
#[derive(Template, Serialize)]
#[template(path = "week.html")]
struct WeekPage {
    #[serde(skip)]
    frame: Frame,
    /// The moment the page holds for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// `2026-w48`
    week: String,
    /// What regressed, newest first, at most five hundred.
    regressed: Vec<FeedRow>,
    /// What was mended, newest first, at most five hundred.
    mended: Vec<FeedRow>,
    /// What opened and is no regression.
    opened: Vec<FeedRow>,
    #[serde(skip)]
    when: Week,
    #[serde(skip)]
    still_open: Vec<FeedRow>,
    #[serde(skip)]
    mixed: Vec<(i64, String)>,
}

/// `GET /regressions/{week}`
pub async fn show(visit: Visit, State(state): State<WebState>, Path(asked): Path<String>) -> Result<Response, Error> {
    let (name, is_markdown) = asked.strip_suffix(".md").map_or((asked.as_str(), false), |name| (name, true));
    let when = Week::named(name).ok_or_else(|| Error::NotFound { what: "week", asked: asked.clone() })?;
    let store = &state.store;
    let from = store.first_event_at(when.first_day * 86_400).await?;
    let to = store.first_event_at((when.first_day + 7) * 86_400).await?;
    let regressed = store.finding_feed(EventKind::FindingRegressed, from, to, MOST).await?;
    let mended = store.finding_feed(EventKind::FindingResolved, from, to, MOST).await?;
    let opened = store.finding_feed(EventKind::FindingOpened, from, to, MOST).await?;
    let page = WeekPage {
        frame: visit.framed(Place::Regressions),
        as_of_s: visit.now,
        answer: answer(&when, &regressed, &mended, &opened),
        week: when.slug(),
        still_open: regressed.iter().filter(|row| row.state.is_open()).cloned().collect(),
        mixed: mixed(&regressed, &mended),
        regressed,
        mended,
        opened,
        when,
    };
    if is_markdown {
        let kind = [(header::CONTENT_TYPE, "text/markdown; charset=utf-8")];
        return Ok(visit.with_headers(StatusCode::OK, (kind, page.markdown()).into_response(), Cache::Fresh));
    }
    visit.answer_rows(&page, &page.regressed, Cache::Fresh)
}

fn counted(rows: &[FeedRow]) -> String {
    let most = if rows.len() as i64 == MOST { "at least " } else { "" };
    format!("{most}{}", text::number(rows.len() as i64))
}

fn answer(when: &Week, regressed: &[FeedRow], mended: &[FeedRow], opened: &[FeedRow]) -> String {
    if regressed.is_empty() && mended.is_empty() && opened.is_empty() {
        return format!("{}: nothing opened and nothing was mended.", when.name());
    }
    let net = mended.len() as i64 - regressed.len() as i64 - opened.len() as i64;
    let balance = match net {
        0 => "as many as were mended".to_owned(),
        n if n > 0 => format!("{} more were mended than opened", text::number(n)),
        n => format!("{} more opened than were mended", text::number(-n)),
    };
    format!(
        "{}: {} regressed, {} opened without a past, {} were mended; {balance}.",
        when.name(),
        counted(regressed),
        counted(opened),
        counted(mended)
    )
}

/// Targets at which something broke and something was mended.
fn mixed(regressed: &[FeedRow], mended: &[FeedRow]) -> Vec<(i64, String)> {
    let mut both: Vec<(i64, String)> = regressed
        .iter()
        .filter(|row| mended.iter().any(|other| other.target_id == row.target_id && other.finding != row.finding))
        .map(|row| (row.target_id, row.name.clone()))
        .collect();
    both.sort();
    both.dedup();
    both
}

impl WeekPage {
    /// The page as Markdown; strangers' words are made harmless by taking its marks out.
    fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n{}\n\n{}\n", self.when.name(), self.when.span(), self.answer);
        for (title, rows) in
            [("Regressed", &self.regressed), ("Mended", &self.mended), ("Opened without a past", &self.opened)]
        {
            if rows.is_empty() {
                continue;
            }
            out.push_str(&format!(
                "\n## {title}\n\n| Target | Rule | Severity | State | Since |\n| --- | --- | --- | --- | --- |\n"
            ));
            for row in rows {
                out.push_str(&format!(
                    "| {} | `{}` | {} | {} | {} |\n",
                    plain(&row.name),
                    row.rule,
                    words::severity(row.severity),
                    words::finding_state(row.state),
                    text::moment(row.from_s.unwrap_or(row.at_s))
                ));
            }
        }
        out
    }

    fn newer(&self) -> Option<Week> {
        let next = self.when.later(1);
        (next.first_day * 86_400 <= self.as_of_s).then_some(next)
    }

    fn older(&self) -> Week {
        self.when.later(-1)
    }
}

/// A name in which nothing is a mark of Markdown or HTML.
fn plain(name: &str) -> String {
    let shown = text::visible(name, 80);
    shown.chars().map(|c| if "|`*_[]<>#\\!".contains(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_can_write_markdown() {
        assert_eq!(plain("a|b `x` [l](u) <img> \u{202e}"), "a b  x   l (u)  img  ⟨U+202E⟩");
    }
}
