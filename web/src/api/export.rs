//! Whole lists as downloads. Rows are read a page at a time and sent as they come, so a download needs no room; only a Parquet
//! file is put together before it leaves, because its index stands at its end.

use std::future::Future;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use plumbline_store::query;
use plumbline_store::views::{CohortDay, FindingRow, Position, TargetOrder, TargetRow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::read::{self, RuleFacts};
use crate::WebState;
use crate::error::Error;
use crate::export::{self, Column};
use crate::pages::almanac;

/// Rows read at once.
const BATCH: i64 = 500;

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    rule: Option<String>,
    cohort: Option<String>,
    month: Option<String>,
}

/// A table that leaves whole.
#[derive(Debug, Clone)]
pub struct ExportTable {
    /// Its name, as it stands in addresses and file names.
    pub name: &'static str,
    /// What a row is.
    pub says: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Whether it holds the days of one month; the others are as they stand now.
    pub is_of_month: bool,
}

impl ExportTable {
    /// Where it is had, in one form.
    #[must_use]
    pub fn path(&self, form: &str, month: &str) -> String {
        let query = if self.is_of_month { format!("?month={month}") } else { String::new() };
        format!("/api/v1/exports/{}/{form}{query}", self.name)
    }
}

/// The tables of a snapshot.
#[must_use]
pub fn tables() -> Vec<ExportTable> {
    let table = |name, says, columns, is_of_month| ExportTable { name, says, columns, is_of_month };
    vec![
        table("targets", "A target as it stands.", export::columns::<TargetRow>(), false),
        table("findings", "A finding that is open.", export::columns::<FindingRow>(), false),
        table("rules", "A rule with its present share over all targets.", export::columns::<RuleFacts>(), false),
        table("prevalence", "A rule on a day, over all targets.", export::columns::<DayRow>(), true),
        table("days", "All targets on a day.", export::columns::<CohortDay>(), true),
    ]
}

/// The forms that this build can write.
#[must_use]
pub fn forms() -> &'static [&'static str] {
    if cfg!(feature = "parquet") { &["csv", "jsonl", "parquet"] } else { &["csv", "jsonl"] }
}

/// In which form rows leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    JsonLines,
    Parquet,
}

fn form(name: &str) -> Result<Form, Error> {
    match name {
        "csv" => Ok(Form::Csv),
        "jsonl" => Ok(Form::JsonLines),
        "parquet" if cfg!(feature = "parquet") => Ok(Form::Parquet),
        other => Err(Error::NotFound { what: "form of export", asked: other.to_owned() }),
    }
}

/// Sends what `batch` gives, from a place to the next one, until it gives nothing.
async fn sent<P, T, F, Fut>(form: Form, name: &str, start: P, batch: F) -> Result<Response, Error>
where
    P: Send + 'static,
    T: Serialize + JsonSchema + Send + 'static,
    F: Fn(P) -> Fut + Send + 'static,
    Fut: Future<Output = Result<Option<(Vec<T>, P)>, Error>> + Send + 'static,
{
    match form {
        Form::Csv => Ok(streamed(form, name, start, batch)),
        Form::JsonLines => Ok(streamed(form, name, start, batch)),
        Form::Parquet => packed(name, start, batch).await,
    }
}

#[cfg(feature = "parquet")]
async fn packed<P, T, F, Fut>(name: &str, start: P, batch: F) -> Result<Response, Error>
where
    T: Serialize + JsonSchema,
    F: Fn(P) -> Fut,
    Fut: Future<Output = Result<Option<(Vec<T>, P)>, Error>>,
{
    /// Rows of one group of a file.
    const GROUP: usize = 10_000;
    let mut file = crate::parquet::Table::begin(export::columns::<T>())?;
    let (mut place, mut group) = (start, Vec::new());
    while let Some((rows, next)) = batch(place).await? {
        for row in &rows {
            group.push(serde_json::to_value(row)?);
        }
        if group.len() >= GROUP {
            file.write(&group)?;
            group.clear();
        }
        place = next;
    }
    file.write(&group)?;
    let mut response = Body::from(file.end()?).into_response();
    head(&mut response, name, "application/vnd.apache.parquet", "parquet");
    Ok(response)
}

#[cfg(not(feature = "parquet"))]
async fn packed<P, T, F, Fut>(_: &str, _: P, _: F) -> Result<Response, Error>
where
    F: Fn(P) -> Fut,
    Fut: Future<Output = Result<Option<(Vec<T>, P)>, Error>>,
{
    Err(Error::NotFound { what: "form of export", asked: "parquet".to_owned() })
}

fn streamed<P, T, F, Fut>(form: Form, name: &str, start: P, batch: F) -> Response
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
        Form::JsonLines | Form::Parquet => ("application/jsonl", "jsonl"),
    };
    // Whoever packs the answer asks once more after its end.
    let mut response = Body::from_stream(rows.fuse()).into_response();
    head(&mut response, name, kind, ending);
    response
}

/// What a download says of itself.
fn head(response: &mut Response, name: &str, kind: &'static str, ending: &str) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let named = format!("attachment; filename=\"plumbline-{name}.{ending}\"");
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_str(&named).expect("a literal name"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
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
    sent(form(&name)?, "targets", Position::start(), move |after| {
        let (store, filter) = (state.store.clone(), filter.clone());
        async move {
            let rows = store.targets_page(&filter, TargetOrder::Name, &after, matching, BATCH).await?;
            Ok(rows.last().map(plumbline_store::views::TargetRow::position).map(|last| (rows, last)))
        }
    })
    .await
}

pub async fn findings(State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    sent(form(&name)?, "findings", 0_i64, move |after| {
        let store = state.store.clone();
        async move {
            let rows = store.findings_from(after, BATCH).await?;
            Ok(rows.last().map(|row| row.id).map(|last| (rows, last)))
        }
    })
    .await
}

pub async fn failing(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let rule = asked.rule.unwrap_or_default();
    let unknown = || Error::BadQuery { field: "rule", reason: "names no rule that was ever judged here".to_owned() };
    let record = state.store.rule_record(&rule).await?.ok_or_else(unknown)?;
    sent(form(&name)?, "failing", (i64::MAX, 0_i64), move |after| {
        let store = state.store.clone();
        async move {
            let rows = store.failing(record.id, after, BATCH).await?;
            Ok(rows.last().map(|row| (row.surface_id, row.target_id)).map(|last| (rows, last)))
        }
    })
    .await
}

/// One rule on one day, as a row.
#[derive(Serialize, JsonSchema)]
struct DayRow {
    /// Days since 1970-01-01 UTC.
    day: i64,
    /// `family/kebab-name`.
    rule: String,
    /// Surfaces where it passed or fired.
    evaluated: i64,
    /// Of these, with an open finding; for a fact, where it is set.
    failing: i64,
    /// Of these, with an accepted deviation.
    waived: i64,
}

impl Asked {
    /// The first and the last day that are meant: those of a month, or of a year up to now.
    fn days(&self, now_s: i64) -> Result<(i64, i64), Error> {
        let today = now_s / 86_400;
        let Some(name) = self.month.as_deref().filter(|name| !name.is_empty()) else { return Ok((today - 364, today)) };
        let unknown = || Error::BadQuery { field: "month", reason: "is no month such as 2026-11".to_owned() };
        let (first, next) = almanac::days_of(name).ok_or_else(unknown)?;
        Ok((first, (next - 1).min(today)))
    }
}

async fn cohort(state: &WebState, slug: Option<&str>) -> Result<i64, Error> {
    let slug = slug.unwrap_or("all");
    let unknown = || Error::BadQuery { field: "cohort", reason: "names no cohort".to_owned() };
    state.store.cohorts().await?.iter().find(|one| one.slug == slug).map(|one| one.id).ok_or_else(unknown)
}

pub async fn days(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let cohort = cohort(&state, asked.cohort.as_deref()).await?;
    let (first, last) = asked.days((state.now)())?;
    sent(form(&name)?, "days", Some(first), move |first| {
        let store = state.store.clone();
        async move {
            let Some(first) = first else { return Ok(None) };
            let mut days = store.days_of_cohort(cohort, first).await?;
            days.retain(|day| day.day <= last);
            Ok(Some((days, None)))
        }
    })
    .await
}

pub async fn rules(State(state): State<WebState>, Path(name): Path<String>) -> Result<Response, Error> {
    sent(form(&name)?, "rules", Some(()), move |once| {
        let state = state.clone();
        async move {
            let Some(()) = once else { return Ok(None) };
            Ok(Some((read::all_rules(&state).await?, None)))
        }
    })
    .await
}

pub async fn prevalence(
    State(state): State<WebState>,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Error> {
    let cohort = cohort(&state, asked.cohort.as_deref()).await?;
    let (first, last) = asked.days((state.now)())?;
    sent(form(&name)?, "prevalence", first, move |day| {
        let store = state.store.clone();
        async move {
            if day > last {
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
    })
    .await
}
