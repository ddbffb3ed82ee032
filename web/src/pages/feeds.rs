//! `/feeds/…`: what happened, as Atom: regressions, incidents, releases of the rules, and one target, owner, host, tag or cohort.

use axum::extract::{Path, State};
use axum::response::Response;
use plumbline_store::query::{self, Field, Query};
use plumbline_store::views::{FeedRow, Position, TargetOrder, TargetRow};
use plumbline_store::words::{EventKind, ReachState};

use crate::WebState;
use crate::atom::{Entry, Feed};
use crate::error::Error;
use crate::page::Visit;
use crate::text;
use crate::words;

/// Entries of a feed.
const ENTRIES: i64 = 50;

fn feed(visit: &Visit, title: String, path: String, page: String, entries: Vec<Entry>) -> Result<Response, Error> {
    Feed { instance: visit.frame.instance.clone(), title, path, page, entries, updated_s: visit.now }.answer(visit)
}

/// `GET /feeds/regressions.atom`
pub async fn regressions(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let rows = state.store.finding_feed(EventKind::FindingRegressed, 0, i64::MAX, ENTRIES).await?;
    let entries = rows.iter().map(regression).collect();
    feed(&visit, "Regressions".into(), "/feeds/regressions.atom".into(), "/regressions".into(), entries)
}

fn regression(row: &FeedRow) -> Entry {
    let deploy = row.deploy.map_or_else(String::new, |_| " A deploy was seen at that time.".to_owned());
    let cause = row.cause.map_or("", words::cause_clause);
    Entry {
        id: format!("event:{}", row.event),
        title: format!("{} regressed at {}", row.rule, row.name),
        path: format!("/findings/{}", row.finding),
        at_s: row.at_s,
        summary: format!(
            "{}, since {}{cause}.{deploy}",
            words::severity(row.severity),
            text::moment(row.from_s.unwrap_or(row.at_s))
        ),
    }
}

/// `GET /feeds/incidents.atom`
pub async fn incidents(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let rows = state.store.incidents(None, ENTRIES).await?;
    let entries = rows.iter().map(|row| Entry {
        id: format!("incident:{}", row.id),
        title: format!("{} failed together", text::counted(row.members, "surface", "surfaces")),
        path: format!("/incidents/{}", row.id),
        at_s: row.closed_s.unwrap_or(row.opened_s),
        summary: format!(
            "They share {}. {}",
            row.shared,
            row.closed_s.map_or_else(
                || "It goes on.".to_owned(),
                |end| format!("It lasted {}.", text::span(end - row.opened_s))
            )
        ),
    });
    let entries = entries.collect();
    feed(&visit, "Shared outages".into(), "/feeds/incidents.atom".into(), "/incidents".into(), entries)
}

/// `GET /feeds/releases.atom`
pub async fn releases(visit: Visit, State(state): State<WebState>) -> Result<Response, Error> {
    let rows = state.store.releases(ENTRIES).await?;
    let entries = rows.iter().map(|row| Entry {
        id: format!("ruleset:{}", row.hash),
        title: format!("Ruleset {}", row.version),
        path: "/changes".to_owned(),
        at_s: row.released_s,
        summary: format!("{}.", text::counted(row.rules, "rule", "rules")),
    });
    let entries = entries.collect();
    feed(&visit, "Rulesets".into(), "/feeds/releases.atom".into(), "/changes".into(), entries)
}

/// `GET /feeds/targets/{id}.atom`
pub async fn target(visit: Visit, State(state): State<WebState>, Path(file): Path<String>) -> Result<Response, Error> {
    let name = feed_name("target", &file)?;
    let unknown = || Error::NotFound { what: "target", asked: name.to_owned() };
    let id: i64 = name.parse().map_err(|_| unknown())?;
    let target = state.store.target(id).await?.ok_or_else(unknown)?;
    let events = state.store.target_events(id, ENTRIES).await?;
    let entries = events.iter().map(|event| Entry {
        id: format!("event:{}", event.id),
        title: words::event(event).replace('`', ""),
        path: format!("/targets/{id}/timeline"),
        at_s: event.at_s,
        summary: format!("{} at {}.", words::event(event).replace('`', ""), target.name),
    });
    let entries = entries.collect();
    feed(&visit, target.name.clone(), format!("/feeds/targets/{id}.atom"), format!("/targets/{id}"), entries)
}

/// `GET /feeds/owners/{o}.atom`
pub async fn owner(visit: Visit, State(state): State<WebState>, Path(file): Path<String>) -> Result<Response, Error> {
    let name = feed_name("owner", &file)?;
    let unknown = || Error::NotFound { what: "owner", asked: name.to_owned() };
    let owner = state.store.owner_named(name).await?.ok_or_else(unknown)?;
    group(visit, state, Field::Owner, &owner.slug, &owner.name).await
}

/// `GET /feeds/hosts/{h}.atom`
pub async fn host(visit: Visit, State(state): State<WebState>, Path(file): Path<String>) -> Result<Response, Error> {
    let name = feed_name("host", &file)?;
    let unknown = || Error::NotFound { what: "host", asked: name.to_owned() };
    let host = state.store.host_named(name).await?.ok_or_else(unknown)?;
    group(visit, state, Field::Host, &host.slug, &host.slug).await
}

/// `GET /feeds/tags/{k=v}.atom`
pub async fn tag(visit: Visit, State(state): State<WebState>, Path(file): Path<String>) -> Result<Response, Error> {
    let name = feed_name("tag", &file)?;
    group(visit, state, Field::Tag, name, name).await
}

/// `GET /feeds/cohorts/{slug}.atom`
pub async fn cohort(visit: Visit, State(state): State<WebState>, Path(file): Path<String>) -> Result<Response, Error> {
    let name = feed_name("cohort", &file)?;
    let cohorts = state.store.cohorts().await?;
    let unknown = || Error::NotFound { what: "cohort", asked: name.to_owned() };
    let cohort = cohorts.iter().find(|one| one.slug == name).ok_or_else(unknown)?;
    group(visit, state, Field::Cohort, &cohort.slug, &cohort.title).await
}

fn feed_name<'f>(what: &'static str, file: &'f str) -> Result<&'f str, Error> {
    file.strip_suffix(".atom").ok_or_else(|| Error::NotFound { what, asked: file.to_owned() })
}

/// The targets of a group that changed last, each as it stands now.
async fn group(visit: Visit, state: WebState, field: Field, slug: &str, name: &str) -> Result<Response, Error> {
    let query = Query::default().with(field, Some(slug));
    let filter = query.filter(visit.now)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching = counts.iter().map(|count| count.targets).sum();
    let order = TargetOrder::Changed;
    let targets = state.store.targets_page(&filter, order, &Position::start(), matching, ENTRIES).await?;
    let entries = targets.iter().map(standing).collect();
    let path = format!("/feeds/{}s/{}.atom", field.name(), text::query_escaped(slug));
    let page = format!("/targets?q={}", text::query_escaped(&query.to_string()));
    feed(&visit, format!("Changes at {name}"), path, page, entries)
}

fn standing(target: &TargetRow) -> Entry {
    let reach = match target.reach {
        ReachState::Up => String::new(),
        state => format!(", {}", words::reach(state)),
    };
    Entry {
        id: format!("target:{}:{}", target.id, target.changed_s),
        title: format!("{}: {}{reach}", target.name, words::headline(target.headline).to_lowercase()),
        path: format!("/targets/{}", target.id),
        at_s: target.changed_s,
        summary: format!(
            "{} and {}.",
            text::counted(target.n_error, "error", "errors"),
            text::counted(target.n_warn, "warning", "warnings")
        ),
    }
}

/// `GET /feeds/views.atom?q=…`: any view of the list of targets.
pub async fn view(
    visit: Visit,
    State(state): State<WebState>,
    axum::extract::Query(asked): axum::extract::Query<super::search::Asked>,
) -> Result<Response, Error> {
    let text = asked.text();
    let query = query::parse(text)?;
    let filter = query.filter(visit.now)?;
    let counts = state.store.target_counts(&filter).await?;
    let matching = counts.iter().map(|count| count.targets).sum();
    let order = TargetOrder::Changed;
    let targets = state.store.targets_page(&filter, order, &Position::start(), matching, ENTRIES).await?;
    let entries = targets.iter().map(standing).collect();
    let q = text::query_escaped(&query.to_string());
    feed(
        &visit,
        format!("Targets that match {query}"),
        format!("/feeds/views.atom?q={q}"),
        format!("/targets?q={q}"),
        entries,
    )
}
