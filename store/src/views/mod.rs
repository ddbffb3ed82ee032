//! The questions that pages ask. Each file answers one page, each function one question, always by an index and never by
//! counting what grows: totals come from the rollups and from the columns kept on `target` and `surface`.
//!
//! Rows are plain data that serialise as they are, because the JSON of a page is made of them.

mod crawls;
mod documents;
mod export;
mod feed;
mod fixed;
mod groups;
mod history;
mod incidents;
mod overview;
mod prevalence;
mod releases;
mod rules;
mod target;
mod targets;

pub use crate::walk_findings::WalkFindingRow;
pub use crawls::{CrawlRow, FaultRow, SourceRow, WalkRow};
pub use documents::{DocumentRow, Judgement, ServedBy};
pub use export::{EntryFilter, ServerEntry};
pub use feed::{FeedRow, RegressedDay};
pub use fixed::FixedShare;
pub(crate) use fixed::Kept as FixedKept;
pub use groups::GroupRow;
pub use history::{DocumentSpan, FindingDetail, FindingSpan, ProbeDay, ReachSpan};
pub use incidents::{IncidentRow, MemberRow};
pub use overview::{CohortDay, KindDay, OpenedRow};
pub use prevalence::{CohortRow, MustDay, Prevalence};
pub use releases::{AnnotationRow, HeadlineMove, ReleaseRow, ReleasedRule, RuleMove};
pub use rules::{FailingRow, RuleDay, RuleRecord, RuleTally};
pub use target::{EventRow, FactRow, FindingRow, JudgedRules, ListingRow, SurfaceRow, TargetDetail, UnevaluatedRules};
pub(crate) use targets::Crowds;
pub use targets::{Excluded, PAGE as TARGET_PAGE, Position, TargetCount, TargetFilter, TargetOrder, TargetRow};

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use plumbline_rules::canonical::hex;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::error::{Error, Result};
use crate::judged::Occurrence;
use crate::probes::{self, Day};
use crate::rows::{self, unpack};
use crate::words::Headline;

/// A column that holds one word of a closed list.
fn word<T: FromStr<Err = String>>(row: &AnyRow, column: &'static str) -> Result<T> {
    rows::word(column, row.try_get(column)?)
}

/// The same, where the column may be empty.
fn maybe_word<T: FromStr<Err = String>>(row: &AnyRow, column: &'static str) -> Result<Option<T>> {
    rows::word_or_none(column, row.try_get(column)?)
}

/// Ninety days of one surface, the last of them `today`, out of the packed months that hold them; `None` where nothing was
/// probed.
fn ninety_days(months: &[Month], today: i64) -> Vec<Option<Day>> {
    let unpacked: HashMap<i64, Vec<Option<Day>>> =
        months.iter().map(|(month, packed)| (*month, probes::days(packed).collect())).collect();
    (today - 89..=today)
        .map(|day| {
            let (month, day_of_month) = probes::month_of(day);
            unpacked.get(&month)?.get(day_of_month).copied().flatten()
        })
        .collect()
}

/// The month (months since January 1970) in which ninety days up to `today` begin.
fn first_month(today: i64) -> i64 {
    probes::month_of(today - 89).0
}

/// Ninety days of something, the last of them today; `None` where nothing was probed.
pub type Strip = (i64, Vec<Option<Day>>);

/// A month (months since January 1970) and its packed days.
type Month = (i64, Vec<u8>);

/// A word, and the day (since January 1970) on which it came to hold.
type Holding = (Headline, i64);

/// Ninety days up to `today` for each id that `owner` names in rows of packed months of surfaces, beside what holds of an entry
/// of a list. Of several surfaces the worst word of each day counts, as it does for the target.
fn strips(rows: &[AnyRow], owner: &'static str, today: i64) -> Result<Vec<Strip>> {
    let mut all: BTreeMap<(i64, i64), (Vec<Month>, Option<Holding>)> = BTreeMap::new();
    for row in rows {
        let (months, holding) = all.entry((row.try_get(owner)?, row.try_get("surface_id")?)).or_default();
        if let Some(month) = row.try_get("month")? {
            months.push((month, row.try_get("days")?));
        }
        if row.try_get::<i32, _>("is_listed")? == 1
            && let Some(since_s) = row.try_get::<Option<i64>, _>("headline_since_s")?
        {
            *holding = Some((word(row, "headline")?, since_s.div_euclid(86_400)));
        }
    }
    let mut strips: BTreeMap<i64, Vec<Option<Day>>> = BTreeMap::new();
    for ((id, _), (months, holding)) in all {
        let mut days = ninety_days(&months, today);
        if let Some(holding) = holding {
            hold(&mut days, holding, today);
        }
        match strips.entry(id) {
            Entry::Vacant(place) => drop(place.insert(days)),
            Entry::Occupied(mut so_far) => {
                so_far.get_mut().iter_mut().zip(days).for_each(|(worst, day)| *worst = graver(*worst, day));
            }
        }
    }
    Ok(strips.into_iter().filter(|(_, days)| days.iter().any(Option::is_some)).collect())
}

/// Of two surfaces on one day the one with the graver word; with the same word the one that was asked.
fn graver(one: Option<Day>, other: Option<Day>) -> Option<Day> {
    let weight = |day: &Day| {
        let word = match day.headline {
            Some(Headline::Blocked) => 4,
            Some(Headline::Deviates) => 3,
            Some(Headline::Sound) => 2,
            Some(Headline::NotDetected | Headline::NotEvaluated) => 1,
            None => 0,
        };
        (word, day.unreachable, day.answered)
    };
    one.into_iter().chain(other).max_by_key(weight)
}

/// An entry of a list is judged when its listing changes, and is as it was until then: no look of its own says so on other
/// days, the walks over the list do. What holds now has held since it came. Before that a day is followed by its own word where
/// that is the word it ended with: it was looked at once, or sound all day.
fn hold(days: &mut [Option<Day>], (headline, since): Holding, today: i64) {
    let first = today + 1 - days.len() as i64;
    let mut before = None;
    for (day, date) in days.iter_mut().zip(first..) {
        if let Some(day) = day {
            let is_one = u32::from(day.answered) + u32::from(day.unreachable) + u32::from(day.neither) <= 1;
            before = day.headline.filter(|headline| is_one || *headline == Headline::Sound);
        } else {
            *day = (if date > since { Some(headline) } else { before }).map(Day::held);
        }
    }
}

/// The places in a compressed set of them; none without one.
fn places(packed: Option<&[u8]>) -> Result<Vec<Occurrence>> {
    let Some(packed) = packed else { return Ok(Vec::new()) };
    serde_json::from_slice(&unpack("set of places", packed)?).map_err(|error| Error::corrupt("set of places", error))
}

impl Store {
    /// Asks the database for nothing, to see that it answers.
    ///
    /// # Errors
    /// When it does not.
    pub async fn answers(&self) -> Result<()> {
        sqlx::query("SELECT 1").fetch_one(&self.pools.reader).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::AssertSqlSafe;

    use super::*;
    use crate::reach::OutcomeClass;

    #[test]
    fn ninety_days_reach_across_months_and_end_today() {
        let today = 20_787; // 30 November 2026
        let blocked = Day {
            answered: 24,
            unreachable: 0,
            neither: 0,
            median_ms: 84,
            p95_ms: 90,
            headline: Some(Headline::Blocked),
            worst: OutcomeClass::Ok,
            crawler_fault: false,
            document_changed: false,
            in_maintenance: false,
        };
        let mut november = Vec::new();
        probes::put_day(&mut november, 29, &blocked);
        let days = ninety_days(&[(probes::month_of(today).0, november)], today);
        assert_eq!(days.len(), 90);
        assert_eq!(days[89], Some(blocked));
        assert_eq!(days.iter().flatten().count(), 1);
    }

    #[test]
    fn an_entry_of_a_list_holds_its_word_until_it_changes() {
        let letter = |day: &Option<Day>| match day.and_then(|day| day.headline) {
            None => '.',
            Some(Headline::Sound) => 's',
            Some(Headline::Blocked) => 'b',
            Some(_) => '?',
        };
        let held = |days: &str, now: Headline, since: i64| -> String {
            let word = |letter: char| match letter {
                's' => Some(Headline::Sound),
                'b' => Some(Headline::Blocked),
                _ => None,
            };
            let looked_at = |letter: char| {
                let answered = if letter.is_uppercase() { 2 } else { 1 };
                word(letter.to_ascii_lowercase()).map(|word| Day { answered, ..Day::held(word) })
            };
            let mut days: Vec<Option<Day>> = days.chars().map(looked_at).collect();
            let today = days.len() as i64 - 1;
            hold(&mut days, (now, since), today);
            days.iter().map(letter).collect()
        };
        assert_eq!(held("..s..b..", Headline::Blocked, 5), "..sssbbb", "blank before it came, held since");
        assert_eq!(held("........", Headline::Sound, -200), "ssssssss", "it came long before");
        assert_eq!(held("b...s...", Headline::Sound, 4), "bbbbssss");
        assert_eq!(held("B...s...", Headline::Sound, 4), "b...ssss", "the worst of a day need not be its end");
    }

    #[test]
    fn a_day_of_a_target_is_the_worst_of_its_surfaces() {
        let [sound, blocked] = [Headline::Sound, Headline::Blocked].map(|word| Some(Day::held(word)));
        assert_eq!([graver(sound, blocked), graver(blocked, sound)], [blocked, blocked]);
        assert_eq!([graver(blocked, None), graver(None, None)], [blocked, None]);
        let asked = sound.map(|day| Day { answered: 3, ..day });
        assert_eq!(graver(sound, asked), asked);
    }

    /// Every statement that a page runs.
    fn statements() -> Vec<&'static str> {
        use targets::{TargetOrder, Way};
        let mut all = vec![
            crate::events::EVENTS,
            crate::events::EVENTS_OF_KIND,
            crate::events::EVENTS_OF_TARGET,
            crawls::CRAWLS_BEFORE,
            crawls::CRAWL,
            crawls::FAULTS,
            crate::volatile::PLACES_OF_TARGET,
            crawls::WALK,
            documents::DOCUMENT,
            documents::BODY,
            documents::JUDGEMENT,
            documents::SERVED_BY,
            export::ENTRIES,
            export::ENTRIES_SINCE,
            export::VERSIONS,
            export::FINDINGS_FROM,
            feed::FEED,
            feed::REGRESSED_DAYS,
            feed::AT_OR_AFTER,
            prevalence::COHORTS,
            prevalence::COHORT_NOW,
            prevalence::COHORT_SINCE,
            prevalence::PREVALENCE,
            prevalence::DAY_AT_OR_BEFORE,
            prevalence::RULE_IN_COHORT,
            prevalence::MUST_SINCE,
            groups::OWNER,
            groups::HOST,
            groups::TAG,
            groups::OWNERS_LIKE,
            groups::OWNERS_OF,
            groups::HOSTS_OF,
            groups::HOSTS_LIKE,
            groups::TAGS_LIKE,
            releases::RELEASES,
            releases::RELEASED_RULES,
            releases::ANNOTATIONS,
            releases::HEADLINE_MOVES,
            releases::EVENT_ENDS,
            releases::RULE_MOVES,
            history::DOCUMENT_SPANS,
            history::REACH_SPANS,
            history::TARGET_FINDING_SPANS,
            history::FINDING_SPANS,
            history::ALL_FINDINGS,
            history::FINDING,
            history::SHOWN_BY,
            history::PROBE_DAYS,
            incidents::INCIDENTS,
            incidents::INCIDENT,
            incidents::MEMBERS,
            crate::deploys::DEPLOYS,
            crate::deploys::DEPLOYS_OF_TARGET,
            crate::deploys::DEPLOY,
            crate::deploys::FINDINGS_OF,
            overview::COHORT_DAYS,
            overview::KIND_DAYS,
            overview::LAST_OPENED,
            rules::RULE,
            rules::NEWEST_DAY,
            rules::TALLIES,
            rules::RULE_DAYS,
            rules::FAILING,
            target::TARGET,
            target::SURFACES,
            target::OPEN_FINDINGS,
            target::PAST_FINDINGS,
            target::FACTS,
            target::LISTINGS,
            target::LISTING_COUNT,
            target::EVENTS,
            target::MONTHS,
            targets::KIND_COUNTS,
            targets::STRIPS,
            targets::OWNER_ID,
            targets::SOURCE_ID,
            targets::COHORT_ID,
        ];
        for way in Way::ALL.iter().copied() {
            all.push(targets::counts_statement(way));
            all.push(targets::some_statement(way));
            for order in [TargetOrder::Headline, TargetOrder::Changed, TargetOrder::Name] {
                all.push(targets::page_statement(way, order));
            }
        }
        all
    }

    /// How SQLite would run a statement, one step a line.
    async fn plan(store: &Store, statement: &str) -> Vec<String> {
        let mut query = sqlx::query(AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}")));
        let parameters = (1..=99).take_while(|n| statement.contains(&format!("${n}"))).count();
        for _ in 0..parameters {
            query = query.bind(1_i64);
        }
        let rows = query.fetch_all(&store.pools.reader).await.unwrap();
        rows.iter().map(|row| row.try_get::<String, _>("detail").unwrap()).collect()
    }

    #[tokio::test]
    async fn no_page_reads_a_whole_table_that_grows() {
        /// Tables of a few rows, and what a subselect of bounded size is called.
        const SMALL: [&str; 5] = ["c", "source", "k", "e", "ruleset"];
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("plans.db").to_str().unwrap()).await.unwrap();
        for statement in statements() {
            for step in plan(&store, statement).await {
                let scanned = step.strip_prefix("SCAN ").map(|rest| rest.split(' ').next().unwrap_or_default());
                let is_bounded = scanned.is_none_or(|table| SMALL.contains(&table));
                assert!(is_bounded, "{step}\nin{statement}");
            }
        }
    }

    #[tokio::test]
    async fn a_page_in_the_order_of_its_index_is_not_sorted() {
        use targets::{TargetOrder, Way, page_statement};
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("plans.db").to_str().unwrap()).await.unwrap();
        let ordered =
            [TargetOrder::Headline, TargetOrder::Changed, TargetOrder::Name].map(|o| page_statement(Way::Walk, o));
        for statement in ordered.into_iter().chain([rules::RULE_DAYS, target::EVENTS, crawls::CRAWLS_BEFORE]) {
            let steps = plan(&store, statement).await;
            assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{steps:#?}\nin{statement}");
        }
    }
}
