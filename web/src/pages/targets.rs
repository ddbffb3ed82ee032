//! `/targets`: which targets match, and how they stand. One query in the language of lists says which; the fields of the form
//! write the same query. The form is a GET, so every view is a link.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use plumbline_rules::catalogue;
use plumbline_rules::rule::Rule;
use plumbline_store::query::{self, Field};
use plumbline_store::views::{Position, TARGET_PAGE, TargetCount, TargetOrder, TargetRow};
use plumbline_store::words::{Headline, ReachState, TargetKind};
use serde::{Deserialize, Serialize};

use super::filled;
use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Strip};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::pages::target::day_of;
use crate::text;
use crate::words::{self, Given};

/// The fields of the form.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    kind: Option<String>,
    headline: Option<String>,
    reach: Option<String>,
    profile: Option<String>,
    rule: Option<String>,
    /// The query as it was when the form was written: a field that differs from it was changed by hand.
    was: Option<String>,
    sort: Option<String>,
    after: Option<String>,
}

/// What is asked for, read.
#[derive(Debug, Clone, Default)]
struct Wish {
    query: query::Query,
    order: TargetOrder,
}

/// The targets that match.
#[derive(Template, Serialize)]
#[template(path = "targets.html")]
struct Targets {
    #[serde(skip)]
    frame: Frame,
    /// The moment the numbers hold for, in Unix seconds.
    as_of_s: i64,
    /// The answer in one sentence.
    answer: String,
    /// The query in its own language.
    query: String,
    /// How many match.
    matching: i64,
    /// How many match, by verdict and reach.
    counts: Vec<TargetCount>,
    /// The targets of this page.
    targets: Vec<TargetRow>,
    /// Address of the next page; `None`: this is the last.
    next: Option<String>,
    #[serde(skip)]
    wish: Wish,
    #[serde(skip)]
    first_place: i64,
    #[serde(skip)]
    grid: Grid,
    #[serde(skip)]
    strips: HashMap<i64, Strip>,
    #[serde(skip)]
    in_force: Vec<InForce>,
}

/// The verdict and reach of all that match, as rows and columns.
struct Grid {
    columns: Vec<&'static str>,
    rows: Vec<GridRow>,
    caption: String,
}

struct GridRow {
    headline: Headline,
    cells: Vec<GridCell>,
    all: i64,
}

struct GridCell {
    count: i64,
    heat: &'static str,
    url: String,
}

/// A filter that is set, and what would be without it.
struct InForce {
    said: String,
    url: String,
    /// Matches without it; only counted where nothing matches.
    would_match: Option<i64>,
}

/// `GET /targets`
pub async fn show(visit: Visit, State(state): State<WebState>, Query(asked): Query<Asked>) -> Result<Response, Error> {
    let wish = Wish { query: asked.query()?, order: asked.order()? };
    if asked.was.is_some() {
        return Ok(Redirect::to(&wish.url(&wish.query, wish.order)).into_response());
    }
    let filter = wish.query.filter(visit.now)?;
    let (after, first_place) = asked.position(wish.order)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching: i64 = counts.iter().map(|count| count.targets).sum();
    let limit = TARGET_PAGE as i64;
    let mut targets = state.store.targets_page(&filter, wish.order, &after, matching, limit + 1).await?;
    let has_more = targets.len() > TARGET_PAGE;
    targets.truncate(TARGET_PAGE);
    let next = targets.last().filter(|_| has_more).map(|last| wish.url_after(&last.position(), first_place + limit));
    let strips = strips(&state, &targets, visit.now / 86_400).await?;
    let in_force = wish.in_force(&state, matching, visit.now).await?;
    let mut frame = visit.framed(Place::Targets);
    frame.search = wish.query.words.join(" ");
    let page = Targets {
        frame,
        as_of_s: visit.now,
        answer: answer(wish.query.is_empty(), matching, &counts),
        query: wish.query.to_string(),
        matching,
        grid: grid(&wish, &counts),
        counts,
        targets,
        next,
        first_place,
        strips,
        in_force,
        wish,
    };
    visit.answer(&page, Cache::Fresh)
}

pub(super) async fn strips(state: &WebState, targets: &[TargetRow], today: i64) -> Result<HashMap<i64, Strip>, Error> {
    let ids: Vec<i64> = targets.iter().map(|target| target.id).collect();
    let days = state.store.target_strips(&ids, today).await?;
    Ok(days
        .into_iter()
        .map(|(id, days)| (id, chart::strip(&days.iter().map(day_of).collect::<Vec<_>>(), today - 89, true)))
        .collect())
}

impl Asked {
    /// The query with what the fields of the form make of it.
    fn query(&self) -> Result<query::Query, Error> {
        let mut query = query::parse(self.q.as_deref().unwrap_or_default())?;
        let was = self.was.as_deref().map(query::parse).transpose()?;
        for (field, value) in [
            (Field::Kind, &self.kind),
            (Field::Headline, &self.headline),
            (Field::Reach, &self.reach),
            (Field::Profile, &self.profile),
            (Field::Rule, &self.rule),
        ] {
            let Some(value) = value else { continue };
            let value = filled(Some(value));
            let is_changed = was.as_ref().map_or(value.is_some(), |was| was.value(field) != value);
            if is_changed {
                query = query.with(field, value);
            }
        }
        Ok(query)
    }

    fn order(&self) -> Result<TargetOrder, Error> {
        match filled(self.sort.as_deref()) {
            None | Some("headline") => Ok(TargetOrder::Headline),
            Some("changed") => Ok(TargetOrder::Changed),
            Some("name") => Ok(TargetOrder::Name),
            Some(other) => Err(Error::BadQuery {
                field: "sort",
                reason: format!("is none of headline, changed, name: “{other}”"),
            }),
        }
    }

    /// The position that `after` holds, `place~…`, and the place of the first target of the page, from 1.
    fn position(&self, order: TargetOrder) -> Result<(Position, i64), Error> {
        let Some(after) = filled(self.after.as_deref()) else { return Ok((Position::start(), 1)) };
        let unreadable = || Error::BadQuery {
            field: "after",
            reason: "is no place in this list; begin at its first page".to_owned(),
        };
        let parts: Vec<&str> = after.splitn(4, '~').collect();
        let number = |n: usize| parts.get(n).and_then(|part| part.parse::<i64>().ok()).ok_or_else(unreadable);
        let (place, id) = (number(0)?, number(1)?);
        let start = Position { id, ..Position::start() };
        let position = match order {
            TargetOrder::Headline => Position { rank: number(2)?, changed_s: number(3)?, ..start },
            TargetOrder::Changed => Position { changed_s: number(2)?, ..start },
            TargetOrder::Name => Position { name: parts[2..].join("~"), ..start },
        };
        Ok((position, place))
    }
}

/// A word that orders the list; the usual order needs none.
fn sort_word(order: TargetOrder) -> Option<&'static str> {
    match order {
        TargetOrder::Headline => None,
        TargetOrder::Changed => Some("changed"),
        TargetOrder::Name => Some("name"),
    }
}

impl Wish {
    fn url(&self, query: &query::Query, order: TargetOrder) -> String {
        let q = (!query.is_empty()).then(|| format!("q={}", text::query_escaped(&query.to_string())));
        let sort = sort_word(order).map(|word| format!("sort={word}"));
        let pairs: Vec<String> = q.into_iter().chain(sort).collect();
        if pairs.is_empty() { "/targets".to_owned() } else { format!("/targets?{}", pairs.join("&")) }
    }

    fn url_after(&self, last: &Position, place: i64) -> String {
        let key = match self.order {
            TargetOrder::Headline => format!("{}~{}", last.rank, last.changed_s),
            TargetOrder::Changed => last.changed_s.to_string(),
            TargetOrder::Name => last.name.clone(),
        };
        let url = self.url(&self.query, self.order);
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}after={}", text::query_escaped(&format!("{place}~{}~{key}", last.id)))
    }

    /// What is asked for, term by term, with the way to drop each.
    async fn in_force(&self, state: &WebState, matching: i64, now: i64) -> Result<Vec<InForce>, Error> {
        let mut without: Vec<(String, query::Query)> = (0..self.query.terms.len())
            .map(|n| {
                let mut query = self.query.clone();
                (words::term(&query.terms.remove(n)), query)
            })
            .collect();
        if !self.query.words.is_empty() {
            let said = format!("words that begin with “{}”", text::visible(&self.query.words.join(" "), 60));
            without.push((said, query::Query { words: Vec::new(), ..self.query.clone() }));
        }
        let mut in_force = Vec::new();
        for (said, query) in without {
            let would_match = if matching == 0 {
                let counts = state.store.target_counts(&query.filter(now)?).await?;
                Some(counts.iter().map(|count| count.targets).sum())
            } else {
                None
            };
            in_force.push(InForce { said, url: self.url(&query, self.order), would_match });
        }
        Ok(in_force)
    }
}

impl Targets {
    /// A choice of the form: its value, its words, whether it is the chosen one.
    fn kinds(&self) -> Vec<(&'static str, &'static str, bool)> {
        TargetKind::ALL
            .iter()
            .map(|kind| choice(kind.as_str(), words::target_kind(*kind), self.wish.query.value(Field::Kind)))
            .collect()
    }

    fn headlines(&self) -> Vec<(&'static str, &'static str, bool)> {
        words::HEADLINES
            .iter()
            .map(|word| choice(word.as_str(), words::headline(*word), self.wish.query.value(Field::Headline)))
            .collect()
    }

    fn reaches(&self) -> Vec<(&'static str, &'static str, bool)> {
        ReachState::ALL
            .iter()
            .map(|state| choice(state.as_str(), words::reach(*state), self.wish.query.value(Field::Reach)))
            .collect()
    }

    fn profile(&self) -> &str {
        self.wish.query.value(Field::Profile).unwrap_or_default()
    }

    fn rule(&self) -> &str {
        self.wish.query.value(Field::Rule).unwrap_or_default()
    }

    /// The whole query with one more term each: what the search field offers.
    fn offers(&self) -> Vec<(String, &'static str)> {
        let before = if self.query.is_empty() { String::new() } else { format!("{} ", self.query) };
        let free = Field::ALL.into_iter().filter(|field| self.wish.query.value(*field).is_none());
        free.flat_map(|field| {
            let values = field.values();
            let values = if values.is_empty() { vec![""] } else { values };
            values
                .into_iter()
                .map(|value| (format!("{before}{}:{value}", field.name()), field.says()))
                .collect::<Vec<_>>()
        })
        .collect()
    }

    /// Column heads that order the list: address, word, whether the list is in this order.
    fn sorted_by(&self, sort: &str) -> (String, bool) {
        let order = match sort {
            "changed" => TargetOrder::Changed,
            "name" => TargetOrder::Name,
            _ => TargetOrder::Headline,
        };
        (self.wish.url(&self.wish.query, order), self.wish.order == order)
    }

    fn order_words(&self) -> &'static str {
        match self.wish.order {
            TargetOrder::Headline => "blocked first, then newest change",
            TargetOrder::Changed => "newest change first",
            TargetOrder::Name => "by name",
        }
    }

    fn last_place(&self) -> i64 {
        self.first_place + self.targets.len() as i64 - 1
    }

    fn first_url(&self) -> String {
        self.wish.url(&self.wish.query, self.wish.order)
    }

    /// The title of the rule asked for, where the catalogue has it.
    fn rule_title(&self) -> Option<String> {
        self.wish.query.value(Field::Rule).and_then(catalogue::find).map(Rule::title)
    }
}

fn choice(value: &'static str, said: &'static str, asked: Option<&str>) -> (&'static str, &'static str, bool) {
    (value, said, asked.map(str::trim) == Some(value))
}

fn answer(is_all: bool, matching: i64, counts: &[TargetCount]) -> String {
    if matching == 0 && is_all {
        return "There are no targets yet.".to_owned();
    }
    if matching == 0 {
        return "Nothing matches.".to_owned();
    }
    let of =
        |headline| counts.iter().filter(|count| count.headline == headline).map(|count| count.targets).sum::<i64>();
    let claims: Vec<String> = words::HEADLINES
        .into_iter()
        .map(|headline| (headline, of(headline)))
        .filter(|(_, count)| *count > 0)
        .map(|(headline, count)| words::headline_claim(headline, count))
        .collect();
    let up: i64 =
        counts.iter().filter(|c| matches!(c.reach, ReachState::Up | ReachState::Gated)).map(|c| c.targets).sum();
    let subject = match (!is_all, matching) {
        (true, 1) => "1 target matches".to_owned(),
        (true, n) => format!("{} targets match", text::number(n)),
        (false, n) => format!("{} watched", text::counted(n, "target is", "targets are")),
    };
    let answering = match up {
        0 => String::new(),
        up if up == matching => {
            if matching == 1 {
                " It answers.".to_owned()
            } else {
                " All of them answer.".to_owned()
            }
        }
        1 => " 1 of them answers.".to_owned(),
        up => format!(" {} of them answer.", text::number(up)),
    };
    format!("{subject}: {}.{answering}", text::listed(&claims))
}

/// The two questions side by side; rows and columns without any target are left out.
fn grid(wish: &Wish, counts: &[TargetCount]) -> Grid {
    let count_of = |headline, reach| {
        counts.iter().filter(|c| c.headline == headline && c.reach == reach).map(|c| c.targets).sum::<i64>()
    };
    let reaches: Vec<ReachState> =
        ReachState::ALL.iter().copied().filter(|reach| counts.iter().any(|count| count.reach == *reach)).collect();
    let most = counts.iter().map(|count| count.targets).max().unwrap_or(0);
    let rows: Vec<GridRow> = words::HEADLINES
        .into_iter()
        .filter(|headline| counts.iter().any(|count| count.headline == *headline))
        .map(|headline| GridRow {
            headline,
            cells: reaches
                .iter()
                .map(|reach| GridCell {
                    count: count_of(headline, *reach),
                    heat: heat(count_of(headline, *reach), most),
                    url: wish.url(
                        &wish
                            .query
                            .with(Field::Headline, Some(headline.as_str()))
                            .with(Field::Reach, Some(reach.as_str())),
                        wish.order,
                    ),
                })
                .collect(),
            all: reaches.iter().map(|reach| count_of(headline, *reach)).sum(),
        })
        .collect();
    Grid { columns: reaches.iter().map(|reach| words::reach(*reach)).collect(), rows, caption: grid_caption(counts) }
}

fn grid_caption(counts: &[TargetCount]) -> String {
    let kept: i64 = counts
        .iter()
        .filter(|count| is_silent(count.reach))
        .filter(|count| matches!(count.headline, Headline::Blocked | Headline::Deviates | Headline::Sound))
        .map(|count| count.targets)
        .sum();
    match kept {
        0 => "No verdict here is older than its target's last answer.".to_owned(),
        1 => "One of them does not answer now; its verdict is the last we could prove.".to_owned(),
        n => format!(
            "{} of them do not answer now; their verdicts are the last we could prove.",
            text::opened(&text::number(n))
        ),
    }
}

/// Whether a target of this reach counts as not answering: nobody is there, or nothing is.
pub(super) fn is_silent(reach: ReachState) -> bool {
    matches!(reach, ReachState::Down | ReachState::Absent)
}

/// A number of findings; a dash where nothing was judged, so that none is not read as nothing found.
pub fn told(findings: impl Given<i64>, headline: impl Given<Headline>) -> String {
    match (findings.given(), headline.given()) {
        (0, Headline::NotEvaluated | Headline::NotDetected) => "–".to_owned(),
        (n, _) => text::number(n),
    }
}

/// Six steps of one colour; the number stands in the cell, so the colour may be ignored.
fn heat(count: i64, most: i64) -> &'static str {
    if count == 0 || most == 0 {
        return "h0";
    }
    match count * 100 / most {
        0..=5 => "h1",
        6..=20 => "h2",
        21..=60 => "h3",
        _ => "h4",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(sort: &str, after: &str) -> Asked {
        Asked { sort: Some(sort.to_owned()), after: Some(after.to_owned()), ..Asked::default() }
    }

    #[test]
    fn a_position_comes_back_as_it_was_written() {
        let last = Position { rank: 1, changed_s: 1_796_000_000, name: "a~b & <c>".to_owned(), id: 7 };
        for order in [TargetOrder::Headline, TargetOrder::Changed, TargetOrder::Name] {
            let url = Wish { order, query: query::parse("kind:other x").unwrap() }.url_after(&last, 51);
            let uri: axum::http::Uri = url.parse().unwrap();
            let Query(read) = Query::<Asked>::try_from_uri(&uri).unwrap();
            assert_eq!(read.query().unwrap().to_string(), "kind:other x");
            assert_eq!(read.order().unwrap(), order);
            let (position, place) = read.position(order).unwrap();
            assert_eq!((position.id, place), (7, 51), "{order:?}");
            match order {
                TargetOrder::Headline => assert_eq!((position.rank, position.changed_s), (1, 1_796_000_000)),
                TargetOrder::Changed => assert_eq!(position.changed_s, 1_796_000_000),
                TargetOrder::Name => assert_eq!(position.name, "a~b & <c>"),
            }
        }
    }

    #[test]
    fn a_place_that_is_none_is_refused_and_not_guessed() {
        assert!(asked("headline", "51~x").position(TargetOrder::Headline).is_err());
        assert!(asked("upwards", "").order().is_err());
    }

    #[test]
    fn a_field_of_the_form_decides_only_where_it_was_changed() {
        let form = |q: &str, was: Option<&str>, headline: &str| {
            let asked = Asked {
                q: Some(q.to_owned()),
                was: was.map(str::to_owned),
                headline: Some(headline.to_owned()),
                ..Asked::default()
            };
            asked.query().unwrap().to_string()
        };
        assert_eq!(form("tide", None, "sound"), "headline:sound tide", "a link may use the fields");
        assert_eq!(form("headline:blocked x", Some("headline:blocked"), "blocked"), "headline:blocked x");
        assert_eq!(form("headline:blocked x", Some("headline:blocked"), "sound"), "headline:sound x");
        assert_eq!(form("headline:blocked x", Some("headline:blocked"), ""), "x", "any was chosen");
        assert_eq!(form("headline:sound", Some(""), ""), "headline:sound", "typed by hand, the field untouched");
    }

    #[test]
    fn the_answer_counts_what_matches() {
        let count = |headline, reach, targets| TargetCount { headline, reach, targets };
        let counts = [count(Headline::Blocked, ReachState::Up, 2), count(Headline::Deviates, ReachState::Down, 1)];
        assert_eq!(answer(false, 3, &counts), "3 targets match: 2 are blocked and 1 deviates. 2 of them answer.");
        assert_eq!(answer(true, 0, &[]), "There are no targets yet.");
    }
}
