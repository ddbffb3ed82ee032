//! Maintenance windows, brought to surfaces: of each it is known when work is planned on it, so that what is seen meanwhile counts
//! neither as up nor as down.
//!
//! A window that asks for something a surface does not have, such as a rule, covers alerts and no surface.

use std::collections::BTreeSet;

use plumbline_store::alerting::Maintenance;
use plumbline_store::planned::Work;
use plumbline_store::{Error, Store};

use crate::matcher::Matcher;
use crate::zones;

/// Windows that begin within so many seconds are kept already: looks may be recorded between two rounds of this.
const AHEAD_S: i64 = 300;

/// Windows that ended so many seconds ago are kept still: a look may be recorded late.
const LATE_S: i64 = 900;

/// Brings surfaces to the windows of now. Gives on how many work is planned.
///
/// # Errors
/// When the database fails.
pub async fn apply(store: &Store, now_s: i64) -> Result<usize, Error> {
    let kept = store.planned_work().await?;
    let mut windows = Vec::new();
    for window in store.maintenances(now_s).await? {
        let matcher = Matcher::parse(&window.matcher).unwrap_or_default();
        // A window that cannot be read any more must not cover everything.
        if !matcher.is_empty() {
            windows.extend(
                near(&window, now_s).into_iter().map(|(from_s, to_s)| (window.id, matcher.clone(), from_s, to_s)),
            );
        }
    }
    let mut planned = BTreeSet::new();
    let mut after = 0;
    while !windows.is_empty()
        && let Some((surfaces, last)) = store.surface_facts(after).await?
    {
        after = last;
        for (surface, facts) in &surfaces {
            let covering = windows.iter().filter(|(_, matcher, ..)| matcher.matches(facts));
            planned.extend(covering.map(|(maintenance, _, from_s, to_s)| Work {
                surface: *surface,
                maintenance: *maintenance,
                from_s: *from_s,
                to_s: *to_s,
            }));
        }
    }
    store.plan_work(&kept, &planned).await?;
    Ok(planned.len())
}

/// The times of a window that matter now: the one that holds or was over a moment ago, and the one that begins next.
fn near(window: &Maintenance, now_s: i64) -> Vec<(i64, i64)> {
    let last = zones::last_window(window, now_s).filter(|(_, end)| now_s < end + LATE_S);
    let next = zones::next_windows(window, now_s, 1).into_iter().filter(|(began, _)| *began <= now_s + AHEAD_S);
    // What was planned when it had begun does not reach back.
    last.into_iter().chain(next).map(|(from_s, to_s)| (from_s.max(window.created_s), to_s)).collect()
}

#[cfg(test)]
mod tests {
    use plumbline_store::hooks::Origin;

    use super::*;

    #[test]
    fn a_window_is_kept_shortly_before_and_shortly_after_its_time() {
        let window = Maintenance {
            id: 1,
            title: "Backups".to_owned(),
            matcher: "owner:harbour".to_owned(),
            author: "Ada".to_owned(),
            origin: Origin::Ui,
            zone: "UTC".to_owned(),
            starts_s: Some(10_000),
            cron: None,
            duration_s: 600,
            created_s: 0,
            ended_s: None,
        };
        for (now_s, wanted) in [
            (9_600, vec![]),
            (9_700, vec![(10_000, 10_600)]),
            (10_300, vec![(10_000, 10_600)]),
            (11_499, vec![(10_000, 10_600)]),
            (11_500, vec![]),
        ] {
            assert_eq!(near(&window, now_s), wanted, "{now_s}");
        }
        let late = Maintenance { created_s: 10_100, ..window };
        assert_eq!(near(&late, 10_300), [(10_100, 10_600)], "it does not reach back");
    }
}
