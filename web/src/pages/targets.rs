//! `/targets`: which targets match, and how they stand. The form is a GET, so every view is a link.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use plumbline_rules::catalogue;
use plumbline_rules::rule::Rule;
use plumbline_store::views::{Position, TARGET_PAGE, TargetCount, TargetFilter, TargetOrder, TargetRow};
use plumbline_store::words::{Headline, ReachState, TargetKind};
use serde::{Deserialize, Serialize};

use super::{filled, word};
use crate::WebState;
use crate::cache::Cache;
use crate::chart::{self, Strip};
use crate::error::Error;
use crate::filters;
use crate::page::{Frame, Place, Visit};
use crate::pages::target::day_of;
use crate::text;
use crate::words;

/// The fields of the form.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Asked {
    q: Option<String>,
    kind: Option<String>,
    headline: Option<String>,
    reach: Option<String>,
    profile: Option<String>,
    rule: Option<String>,
    sort: Option<String>,
    after: Option<String>,
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
    /// How many match.
    matching: i64,
    /// How many match, by verdict and reach.
    counts: Vec<TargetCount>,
    /// The targets of this page.
    targets: Vec<TargetRow>,
    /// Address of the next page; `None`: this is the last.
    next: Option<String>,
    #[serde(skip)]
    asked: Asked,
    #[serde(skip)]
    order: TargetOrder,
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
    let filter = asked.filter()?;
    let order = asked.order()?;
    let (after, first_place) = asked.position(order)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching: i64 = counts.iter().map(|count| count.targets).sum();
    let limit = TARGET_PAGE as i64;
    let mut targets = state.store.targets_page(&filter, order, &after, matching, limit + 1).await?;
    let has_more = targets.len() > TARGET_PAGE;
    targets.truncate(TARGET_PAGE);
    let next =
        targets.last().filter(|_| has_more).map(|last| asked.url_after(order, &last.position(), first_place + limit));
    let strips = strips(&state, &targets, visit.now / 86_400).await?;
    let in_force = asked.in_force(&state, matching).await?;
    let mut frame = visit.framed(Place::Targets);
    frame.search = filled(asked.q.as_deref()).unwrap_or_default().to_owned();
    let page = Targets {
        frame,
        as_of_s: visit.now,
        answer: answer(&asked, matching, &counts),
        matching,
        grid: grid(&asked, &counts),
        counts,
        targets,
        next,
        order,
        first_place,
        strips,
        in_force,
        asked,
    };
    visit.answer(&page, Cache::Fresh)
}

async fn strips(state: &WebState, targets: &[TargetRow], today: i64) -> Result<HashMap<i64, Strip>, Error> {
    let ids: Vec<i64> = targets.iter().map(|target| target.id).collect();
    let days = state.store.target_strips(&ids, today).await?;
    Ok(days
        .into_iter()
        .map(|(id, days)| (id, chart::strip(&days.iter().map(day_of).collect::<Vec<_>>(), today - 89, true)))
        .collect())
}

/// The parts of a search that are words: letters and digits, in lower case, the first three.
fn search_words(search: &str) -> Vec<String> {
    search
        .to_lowercase()
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(3)
        .map(|word| word.chars().take(60).collect())
        .collect()
}

impl Asked {
    fn filter(&self) -> Result<TargetFilter, Error> {
        Ok(TargetFilter {
            words: search_words(self.q.as_deref().unwrap_or_default()),
            kind: word("kind", self.kind.as_deref())?,
            headline: word("headline", self.headline.as_deref())?,
            reach: word("reach", self.reach.as_deref())?,
            profile: filled(self.profile.as_deref()).map(str::to_owned),
            rule: filled(self.rule.as_deref()).map(str::to_owned),
        })
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

    fn url_after(&self, order: TargetOrder, last: &Position, place: i64) -> String {
        let key = match order {
            TargetOrder::Headline => format!("{}~{}", last.rank, last.changed_s),
            TargetOrder::Changed => last.changed_s.to_string(),
            TargetOrder::Name => last.name.clone(),
        };
        self.url(&[("after", Some(&format!("{place}~{}~{key}", last.id)))])
    }

    /// This view with some fields changed; the page begins anew unless `after` is among them.
    fn url(&self, changes: &[(&str, Option<&str>)]) -> String {
        let fields = [
            ("q", &self.q),
            ("kind", &self.kind),
            ("headline", &self.headline),
            ("reach", &self.reach),
            ("profile", &self.profile),
            ("rule", &self.rule),
            ("sort", &self.sort),
            ("after", &None),
        ];
        let pairs: Vec<String> = fields
            .into_iter()
            .filter_map(|(name, value)| {
                let changed = changes.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
                let value = filled(changed.unwrap_or(value.as_deref()))?;
                Some(format!("{name}={}", text::query_escaped(value)))
            })
            .collect();
        if pairs.is_empty() { "/targets".to_owned() } else { format!("/targets?{}", pairs.join("&")) }
    }

    /// The filters that are set, in words.
    async fn in_force(&self, state: &WebState, matching: i64) -> Result<Vec<InForce>, Error> {
        let kind = filled(self.kind.as_deref()).and_then(|kind| kind.parse::<TargetKind>().ok());
        let headline = filled(self.headline.as_deref()).and_then(|word| word.parse::<Headline>().ok());
        let reach = filled(self.reach.as_deref()).and_then(|state| state.parse::<ReachState>().ok());
        let said = [
            ("q", filled(self.q.as_deref()).map(|q| format!("words that begin with “{}”", text::visible(q, 60)))),
            ("kind", kind.map(|kind| format!("kind {}", words::target_kind(kind)))),
            ("headline", headline.map(|word| format!("verdict {}", words::headline(word)))),
            ("reach", reach.map(|state| format!("reach {}", words::reach(state)))),
            (
                "profile",
                filled(self.profile.as_deref()).map(|profile| format!("judged as {}", words::profile(profile))),
            ),
            ("rule", filled(self.rule.as_deref()).map(|rule| format!("fails {}", text::visible(rule, 80)))),
        ];
        let mut in_force = Vec::new();
        for (field, said) in said {
            let Some(said) = said else { continue };
            let would_match = if matching == 0 { Some(self.count_without(state, field).await?) } else { None };
            in_force.push(InForce { said, url: self.url(&[(field, None)]), would_match });
        }
        Ok(in_force)
    }

    async fn count_without(&self, state: &WebState, field: &str) -> Result<i64, Error> {
        let mut filter = self.filter()?;
        match field {
            "q" => filter.words.clear(),
            "kind" => filter.kind = None,
            "headline" => filter.headline = None,
            "reach" => filter.reach = None,
            "profile" => filter.profile = None,
            _ => filter.rule = None,
        }
        Ok(state.store.target_counts(&filter).await?.iter().map(|count| count.targets).sum())
    }

    fn is_filtered(&self) -> bool {
        [&self.q, &self.kind, &self.headline, &self.reach, &self.profile, &self.rule]
            .into_iter()
            .any(|field| filled(field.as_deref()).is_some())
    }
}

impl Targets {
    /// A choice of the form: its value, its words, whether it is the chosen one.
    fn kinds(&self) -> Vec<(&'static str, &'static str, bool)> {
        TargetKind::ALL
            .iter()
            .map(|kind| choice(kind.as_str(), words::target_kind(*kind), self.asked.kind.as_deref()))
            .collect()
    }

    fn headlines(&self) -> Vec<(&'static str, &'static str, bool)> {
        words::HEADLINES
            .iter()
            .map(|word| choice(word.as_str(), words::headline(*word), self.asked.headline.as_deref()))
            .collect()
    }

    fn reaches(&self) -> Vec<(&'static str, &'static str, bool)> {
        ReachState::ALL
            .iter()
            .map(|state| choice(state.as_str(), words::reach(*state), self.asked.reach.as_deref()))
            .collect()
    }

    fn value<'a>(&'a self, field: &'a Option<String>) -> &'a str {
        filled(field.as_deref()).unwrap_or_default()
    }

    /// Column heads that order the list: address, word, whether the list is in this order.
    fn sorted_by(&self, sort: &str) -> (String, bool) {
        let is_current = match self.order {
            TargetOrder::Headline => sort == "headline",
            TargetOrder::Changed => sort == "changed",
            TargetOrder::Name => sort == "name",
        };
        (self.asked.url(&[("sort", Some(sort).filter(|sort| *sort != "headline"))]), is_current)
    }

    fn order_words(&self) -> &'static str {
        match self.order {
            TargetOrder::Headline => "blocked first, then newest change",
            TargetOrder::Changed => "newest change first",
            TargetOrder::Name => "by name",
        }
    }

    fn last_place(&self) -> i64 {
        self.first_place + self.targets.len() as i64 - 1
    }

    fn first_url(&self) -> String {
        self.asked.url(&[])
    }

    /// The title of the rule asked for, where the catalogue has it.
    fn rule_title(&self) -> Option<String> {
        filled(self.asked.rule.as_deref()).and_then(catalogue::find).map(Rule::title)
    }
}

fn choice(value: &'static str, said: &'static str, asked: Option<&str>) -> (&'static str, &'static str, bool) {
    (value, said, asked.map(str::trim) == Some(value))
}

fn answer(asked: &Asked, matching: i64, counts: &[TargetCount]) -> String {
    if matching == 0 && !asked.is_filtered() {
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
    let subject = match (asked.is_filtered(), matching) {
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
fn grid(asked: &Asked, counts: &[TargetCount]) -> Grid {
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
                    url: asked.url(&[("headline", Some(headline.as_str())), ("reach", Some(reach.as_str()))]),
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
        .filter(|count| matches!(count.reach, ReachState::Down | ReachState::Absent))
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
        for (sort, order) in
            [("headline", TargetOrder::Headline), ("changed", TargetOrder::Changed), ("name", TargetOrder::Name)]
        {
            let url = asked(sort, "").url_after(order, &last, 51);
            let query = url.split_once('?').unwrap().1;
            let uri: axum::http::Uri = format!("/targets?{query}").parse().unwrap();
            let Query(read) = Query::<Asked>::try_from_uri(&uri).unwrap();
            let (position, place) = read.position(order).unwrap();
            assert_eq!((position.id, place), (7, 51), "{sort}");
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
    fn a_search_is_its_first_three_words() {
        assert_eq!(search_words("io.github/Acme weather-tiles"), ["io", "github", "acme"]);
        assert!(search_words(" ./- ").is_empty());
    }

    #[test]
    fn the_answer_counts_what_matches() {
        let count = |headline, reach, targets| TargetCount { headline, reach, targets };
        let counts = [count(Headline::Blocked, ReachState::Up, 2), count(Headline::Deviates, ReachState::Down, 1)];
        assert_eq!(
            answer(&Asked { q: Some("a".to_owned()), ..Asked::default() }, 3, &counts),
            "3 targets match: 2 are blocked and 1 deviates. 2 of them answer."
        );
        assert_eq!(answer(&Asked::default(), 0, &[]), "There are no targets yet.");
    }
}
