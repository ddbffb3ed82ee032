//! `/rules/coverage`: what became of every rule of four published catalogues.

use askama::Template;
use axum::extract::Query;
use axum::response::Response;
use plumbline_rules::coverage::{self, How, Row, Source, Standing};
use serde::{Deserialize, Serialize};

use super::word;
use crate::cache::Cache;
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::text;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
pub struct Asked {
    source: Option<String>,
    standing: Option<String>,
}

/// The table.
#[derive(Template, Serialize)]
#[template(path = "coverage.html")]
struct CoveragePage {
    #[serde(skip)]
    frame: Frame,
    /// The answer in one sentence.
    answer: String,
    /// Rows in all, before any filter.
    all: usize,
    /// The rows that match, by catalogue.
    catalogues: Vec<CatalogueRows>,
    #[serde(skip)]
    source: Option<Source>,
    #[serde(skip)]
    standing: Option<Standing>,
}

/// One published catalogue.
#[derive(Serialize)]
struct CatalogueRows {
    /// As rules name it in their seeds.
    source: Source,
    /// How many of its rows come to what, in words.
    counts: String,
    /// Its rows that match.
    rows: Vec<CoverageRow>,
}

/// One rule of a published catalogue.
#[derive(Serialize)]
struct CoverageRow {
    /// Its name there.
    name: &'static str,
    /// What it comes to.
    standing: Standing,
    /// How it is looked at.
    how: How,
    /// Rules here that look for it.
    rules: &'static [&'static str],
    /// Why no rule fires on every target; empty where one does.
    why: &'static str,
}

/// `GET /rules/coverage`
pub async fn show(visit: Visit, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let source = word::<Source>("source", asked.source.as_deref())?;
    let standing = word::<Standing>("standing", asked.standing.as_deref())?;
    let catalogues = Source::ALL
        .iter()
        .filter(|one| source.is_none_or(|source| source == **one))
        .map(|one| CatalogueRows {
            source: *one,
            counts: counts(&|row| row.source == *one),
            rows: rows(*one, standing),
        })
        .filter(|catalogue| !catalogue.rows.is_empty())
        .collect();
    let page = CoveragePage {
        frame: visit.framed(Place::Rules),
        answer: answer(),
        all: coverage::rows().len(),
        catalogues,
        source,
        standing,
    };
    visit.answer(&page, Cache::Fresh)
}

fn rows(source: Source, standing: Option<Standing>) -> Vec<CoverageRow> {
    let matches = |row: &&Row| row.source == source && standing.is_none_or(|standing| row.standing() == standing);
    let shown = |row: &'static Row| CoverageRow {
        name: row.name,
        standing: row.standing(),
        how: row.how,
        rules: &row.rules,
        why: row.why(),
    };
    coverage::rows().iter().filter(matches).map(shown).collect()
}

fn number(standing: Standing, of: &dyn Fn(&Row) -> bool) -> usize {
    coverage::rows().iter().filter(|row| of(row) && row.standing() == standing).count()
}

fn counts(of: &dyn Fn(&Row) -> bool) -> String {
    let parts: Vec<String> = Standing::ALL
        .iter()
        .map(|standing| (number(*standing, of), said(*standing)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, (one, many))| text::counted(n as i64, one, many))
        .collect();
    text::listed(&parts)
}

fn answer() -> String {
    let all = coverage::rows().len();
    format!("Of {} rules in four published catalogues {}.", text::number(all as i64), counts(&|_| true))
}

/// The predicate of one row, and of several.
fn said(standing: Standing) -> (&'static str, &'static str) {
    match standing {
        Standing::Covered => ("is looked for here", "are looked for here"),
        Standing::Elsewhere => ("is shown in another way", "are shown in another way"),
        Standing::NotObservable => {
            ("is about clients and cannot be seen from a server", "are about clients and cannot be seen from a server")
        }
        Standing::NotYet => ("is not looked for yet", "are not looked for yet"),
    }
}

impl CoveragePage {
    fn sources(&self) -> Vec<(&'static str, &'static str, bool)> {
        Source::ALL.iter().map(|one| (one.as_str(), one.named(), self.source == Some(*one))).collect()
    }

    fn standings(&self) -> Vec<(&'static str, &'static str, bool)> {
        Standing::ALL.iter().map(|one| (one.as_str(), standing_words(*one), self.standing == Some(*one))).collect()
    }
}

fn standing_words(standing: Standing) -> &'static str {
    match standing {
        Standing::Covered => "looked for",
        Standing::Elsewhere => "in another way",
        Standing::NotObservable => "cannot be seen",
        Standing::NotYet => "not yet",
    }
}

impl CatalogueRows {
    fn name(&self) -> String {
        let named = self.source.named();
        let mut letters = named.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
    }
}

impl CoverageRow {
    fn standing_words(&self) -> &'static str {
        standing_words(self.standing)
    }
}
