//! Whole lists as downloads. Rows are read a page at a time and sent as they come, so a download needs no room.

use std::future::Future;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use plumbline_store::query;
use plumbline_store::views::{Position, TargetOrder};
use serde::{Deserialize, Serialize};

use crate::WebState;
use crate::error::Error;
use crate::export;

/// Rows read at once.
const BATCH: i64 = 500;

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    rule: Option<String>,
    cohort: Option<String>,
}

/// In which form rows leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    JsonLines,
}

fn form(name: &str) -> Result<Form, Error> {
    match name {
        "csv" => Ok(Form::Csv),
        "jsonl" => Ok(Form::JsonLines),
        other => Err(Error::NotFound { what: "form of export", asked: other.to_owned() }),
    }
}

/// Sends what `batch` gives, from a place to the next one, until it gives nothing.
fn sent<P, T, F, Fut>(form: Form, name: &str, start: P, batch: F) -> Response
where
    P: Send + 'static,
    T: Serialize + Send + 'static,
    F: Fn(P) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Option<(Vec<T>, P)>, Error>> + Send + 'static,
{
    let rows = stream::unfold((Some(start), true), move |(place, is_first)| {
        let next = place.map(&batch);
        async move {
            let (rows, place) = match next?.await {
                Ok(None) => return None,
                Ok(Some(batch)) => batch,
                Err(error) => return Some((Err(error), (None, false))),
            };
            let text = written(form, is_first && !rows.is_empty(), &rows).map(Bytes::from);
            let is_first = is_first && rows.is_empty();
            Some((text, (Some(place), is_first)))
        }
    });
    let (kind, ending) = match form {
        Form::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        Form::JsonLines => ("application/jsonl", "jsonl"),
    };
    let mut response = Body::from_stream(rows).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let named = format!("attachment; filename=\"plumbline-{name}.{ending}\"");
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&named).expect("a literal name"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn written<T: Serialize>(form: Form, is_first: bool, rows: &[T]) -> Result<String, Error> {
    if form == Form::JsonLines {
        return Ok(export::json_lines(rows)?);
    }
    let whole = export::csv(rows)?;
    Ok(if is_first { whole } else { whole.split_once("\r\n").map(|(_, rest)| rest.to_owned()).unwrap_or_default() })
}

pub async fn targets(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let filter = query::parse(asked.q.as_deref().unwrap_or_default())?.filter((state.now)())?;
    let counts = state.store.target_counts(&filter).await?;
    let matching: i64 = counts.iter().map(|count| count.targets).sum();
    Ok(sent(form(&name)?, "targets", Position::start(), move |after| {
        let (store, filter) = (state.store.clone(), filter.clone());
        async move {
            let rows = store.targets_page(&filter, TargetOrder::Name, &after, matching, BATCH).await?;
            Ok(rows.last().map(plumbline_store::views::TargetRow::position).map(|last| (rows, last)))
        }
    }))
}

pub async fn findings(State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    Ok(sent(form(&name)?, "findings", 0_i64, move |after| {
        let store = state.store.clone();
        async move {
            let rows = store.findings_from(after, BATCH).await?;
            Ok(rows.last().map(|row| row.id).map(|last| (rows, last)))
        }
    }))
}

pub async fn failing(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let rule = asked.rule.unwrap_or_default();
    let unknown = || Error::BadQuery { field: "rule", reason: "names no rule that was ever judged here".to_owned() };
    let record = state.store.rule_record(&rule).await?.ok_or_else(unknown)?;
    Ok(sent(form(&name)?, "failing", (i64::MAX, 0_i64), move |after| {
        let store = state.store.clone();
        async move {
            let rows = store.failing(record.id, after, BATCH).await?;
            Ok(rows.last().map(|row| (row.surface_id, row.target_id)).map(|last| (rows, last)))
        }
    }))
}

/// One rule on one day, as a row.
#[derive(Serialize)]
struct DayRow {
    day: i64,
    rule: String,
    evaluated: i64,
    failing: i64,
    waived: i64,
}

pub async fn prevalence(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let slug = asked.cohort.unwrap_or_else(|| "all".to_owned());
    let cohorts = state.store.cohorts().await?;
    let unknown = || Error::BadQuery { field: "cohort", reason: "names no cohort".to_owned() };
    let cohort = cohorts.iter().find(|one| one.slug == slug).map(|one| one.id).ok_or_else(unknown)?;
    let today = (state.now)() / 86_400;
    Ok(sent(form(&name)?, "prevalence", today - 364, move |day| {
        let store = state.store.clone();
        async move {
            if day > today {
                return Ok(None);
            }
            let counted = store.prevalence(cohort, day).await?.filter(|(counted, _)| *counted == day);
            let rules = counted.map(|(_, rules)| rules).unwrap_or_default();
            let rows = rules.into_iter().map(|rule| DayRow {
                day,
                rule: rule.rule,
                evaluated: rule.evaluated,
                failing: rule.failing,
                waived: rule.waived,
            });
            Ok(Some((rows.collect(), day + 1)))
        }
    }))
}
