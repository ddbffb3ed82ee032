//! Waivers, brought to findings: of every open finding it is known whether somebody has accepted it, and counts say so apart.

use std::collections::BTreeMap;

use plumbline_store::{Error, Store};

use crate::matcher::Matcher;

/// Findings read at a time.
const BATCH: i64 = 1_000;

/// Brings findings to the waivers that are in force now. Gives how many findings changed.
///
/// # Errors
/// When the database fails.
pub async fn apply(store: &Store, now_s: i64) -> Result<usize, Error> {
    let waivers = store.waivers(now_s).await?;
    let before = store.waived_findings().await?;
    if waivers.is_empty() && before.is_empty() {
        return Ok(0);
    }
    let mut now: BTreeMap<i64, i64> = BTreeMap::new();
    // Of several that cover a finding the one that lasts longest is named.
    for waiver in waivers.iter().rev() {
        let matcher = Matcher::parse(&waiver.matcher).unwrap_or_default();
        // A waiver that cannot be read any more must not accept everything.
        if matcher.is_empty() {
            continue;
        }
        let mut after = 0;
        loop {
            let findings = store.waivable(&waiver.rule, after, BATCH).await?;
            let Some(last) = findings.last() else { break };
            after = last.id;
            for finding in &findings {
                if matcher.matches(&finding.facts) {
                    now.entry(finding.id).or_insert(waiver.id);
                }
            }
        }
    }
    let changes = changes(&before, &now);
    store.set_waivers(&changes).await?;
    Ok(changes.len())
}

/// What has to be written: findings that are covered by another waiver than before, or by none any more.
fn changes(before: &BTreeMap<i64, i64>, now: &BTreeMap<i64, i64>) -> BTreeMap<i64, Option<i64>> {
    let gone = before.keys().filter(|id| !now.contains_key(id)).map(|id| (*id, None));
    let new = now.iter().filter(|(id, waiver)| before.get(id) != Some(waiver)).map(|(id, waiver)| (*id, Some(*waiver)));
    gone.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let before = BTreeMap::from([(1, 7), (2, 7), (3, 8)]);
        let now = BTreeMap::from([(1, 7), (3, 9), (4, 9)]);
        assert_eq!(changes(&before, &now), BTreeMap::from([(2, None), (3, Some(9)), (4, Some(9))]));
    }
}
