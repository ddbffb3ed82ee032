//! Stretches without change: looks at one surface that all came out alike, written at once instead of one by one.
//!
//! What [`crate::record`] would have made of them is exactly what is written: the same counters on the surface, the same
//! packed probes for the days that keep every single one, the same days in their months. Nothing moves in a stretch, so
//! nothing is judged, told or counted. Synthetic histories are made of these, with recorded observations in between.

use std::collections::{BTreeSet, HashMap};

use plumbline_rules::reach::Outcome;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Store;
use crate::ahead::Packed;
use crate::dialect::Writing;
use crate::error::{Error, Result};
use crate::ids::SurfaceId;
use crate::probes::{self, Day, Probe};
use crate::reach::{self, OutcomeClass, Reach};
use crate::record::{self, Observation, Recorded};
use crate::rows::{DAY_S, in_statements, places, word, word_or_none};
use crate::words::Headline;

/// Looks that came out alike, at even distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// What was looked at.
    pub surface: SurfaceId,
    /// When the first look was, in Unix seconds: not before the last one that is recorded.
    pub first_s: i64,
    /// Seconds from one look to the next.
    pub every_s: i64,
    /// How many looks; none is none.
    pub looks: i64,
    /// What came of each: what the surface's state already says, or a failure of our own.
    pub outcome: Outcome,
    /// The HTTP status of each answer.
    pub status: Option<u16>,
    /// How long an answer usually took, in milliseconds; single ones scatter around it.
    pub took_ms: u16,
    /// Each gave the document again that it gave before, so that it was judged as before.
    pub judged: bool,
    /// When the surface is due after the last look; `None`: not scheduled.
    pub next_due_s: Option<i64>,
}

impl Stretch {
    fn at(&self, n: i64) -> i64 {
        self.first_s + n * self.every_s
    }

    fn last_s(&self) -> i64 {
        self.at(self.looks - 1)
    }

    /// Looks that say something of the surface: our own failures do not.
    fn counted(&self) -> i64 {
        if matches!(self.outcome, Outcome::CrawlerFault | Outcome::Skipped(_)) { 0 } else { self.looks }
    }

    fn probe(&self, at_s: i64) -> Probe {
        let is_answer = matches!(OutcomeClass::from(self.outcome), OutcomeClass::Ok | OutcomeClass::Gated);
        Probe {
            minute: u16::try_from(at_s.rem_euclid(DAY_S) / 60).unwrap_or(0),
            outcome: self.outcome.into(),
            status: self.status.unwrap_or(0),
            took_ms: if is_answer { scattered(self.took_ms, self.surface.0, at_s) } else { self.took_ms },
            verification: false,
            document_changed: false,
            in_maintenance: false,
            judged: self.judged,
        }
    }

    /// The looks of each day, by day and their numbers.
    fn days(&self) -> impl Iterator<Item = (i64, std::ops::Range<i64>)> + '_ {
        let mut next = 0;
        std::iter::from_fn(move || {
            if next >= self.looks {
                return None;
            }
            let (from, day) = (next, self.at(next) / DAY_S);
            let till_midnight = (day + 1) * DAY_S - self.at(next);
            let many = (till_midnight + self.every_s - 1) / self.every_s;
            next = (next + many.max(1)).min(self.looks);
            Some((day, from..next))
        })
    }
}

/// A time that scatters around the usual one, the same for the same surface and moment: mostly close to it, now and then
/// twice as long.
fn scattered(usual: u16, surface: i64, at_s: i64) -> u16 {
    let mut x =
        (surface as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at_s as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 31;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 29;
    let usual = u64::from(usual);
    let around = usual * (75 + x % 50) / 100;
    let slow = if x >> 32 & 31 == 0 { usual } else { 0 };
    u16::try_from(around + slow).unwrap_or(u16::MAX)
}

/// A surface before a stretch, as far as one touches it.
struct Before {
    reach: Reach,
    headline: Headline,
    has_word: bool,
    last_attempt_s: Option<i64>,
    retired: bool,
}

impl Store {
    /// Writes stretches in one transaction: all or none. Days before `single_days_from` (days since 1970) keep only what
    /// they came to, except the last day of a stretch, on which more may follow.
    ///
    /// # Errors
    /// When a surface is unknown, when a stretch would move its state (then it is none), or the database fails.
    pub async fn keep_stretches(&self, stretches: &[Stretch], single_days_from: i64) -> Result<()> {
        self.keep_and_record(stretches, single_days_from, &[]).await?;
        Ok(())
    }

    /// The same, and after them records observations as [`Store::record`] does, in one transaction.
    ///
    /// # Errors
    /// As [`Store::keep_stretches`] and [`Store::record`].
    pub async fn keep_and_record(
        &self,
        stretches: &[Stretch],
        single_days_from: i64,
        observations: &[Observation],
    ) -> Result<Recorded> {
        let catalogue = self.present_catalogue().await?;
        let mut w = self.pools.write().await?;
        keep(&mut w, stretches, single_days_from).await?;
        let recorded = record::all(&mut w, &catalogue, observations, 0).await?;
        w.commit().await?;
        Ok(recorded)
    }
}

async fn keep(w: &mut Writing, stretches: &[Stretch], single_days_from: i64) -> Result<()> {
    let (mut known, mut packed) = read_ahead(w, stretches).await?;
    for stretch in stretches.iter().filter(|stretch| stretch.looks > 0) {
        let before = known
            .get_mut(&stretch.surface.0)
            .ok_or_else(|| Error::Missing { what: "surface", id: stretch.surface.to_string() })?;
        if before.retired {
            continue;
        }
        must_be_quiet(before, stretch)?;
        keep_days(w, &mut packed, stretch, before, single_days_from).await?;
        write(w, stretch).await?;
        before.go_on(stretch);
    }
    packed.write(w).await
}

/// Surfaces before stretches, and the packed days and months of their last looks, where stretches go on.
async fn read_ahead(w: &mut Writing, stretches: &[Stretch]) -> Result<(HashMap<i64, Before>, Packed)> {
    let surfaces: BTreeSet<i64> = stretches.iter().map(|stretch| stretch.surface.0).collect();
    let surfaces: Vec<i64> = surfaces.into_iter().collect();
    let mut packed = Packed::default();
    packed.read_last(w, &surfaces).await?;
    Ok((load(w, &surfaces).await?, packed))
}

async fn load(w: &mut Writing, surfaces: &[i64]) -> Result<HashMap<i64, Before>> {
    let mut found = HashMap::with_capacity(surfaces.len());
    for some in in_statements(surfaces) {
        let statement = format!(
            "SELECT reach, reach_reason, reach_since_s, streak, streak_outcome, streak_since_s, headline,
                    first_evaluated_s, last_evaluated_s, last_attempt_s, retired_s, id
             FROM surface
             WHERE id IN {}",
            places(1, some.len())
        );
        for row in w.rows_of(statement, some).await? {
            found.insert(row.try_get(11)?, before(&row)?);
        }
    }
    Ok(found)
}

fn before(row: &AnyRow) -> Result<Before> {
    let (first, last): (Option<i64>, Option<i64>) = (row.try_get(7)?, row.try_get(8)?);
    Ok(Before {
        reach: Reach {
            state: word("surface", row.try_get(0)?)?,
            reason: row.try_get(1)?,
            since_s: row.try_get(2)?,
            streak: row.try_get(3)?,
            streak_of: word_or_none("surface", row.try_get(4)?)?,
            streak_since_s: row.try_get(5)?,
        },
        headline: word("surface", row.try_get(6)?)?,
        has_word: first.is_some() || last.is_some(),
        last_attempt_s: row.try_get(9)?,
        retired: row.try_get::<Option<i64>, _>(10)?.is_some(),
    })
}

impl Before {
    /// What a stretch leaves for the next one.
    fn go_on(&mut self, stretch: &Stretch) {
        self.reach.streak += stretch.counted();
        self.has_word |= stretch.judged;
        self.last_attempt_s = Some(stretch.last_s());
    }
}

/// Nothing may move: neither the state, nor the third day or the month of what is absent may pass.
fn must_be_quiet(before: &Before, stretch: &Stretch) -> Result<()> {
    let refused = |why: &str| {
        let (surface, at_s) = (stretch.surface, stretch.first_s);
        Err(Error::NoStretch { surface: surface.0, at_s, why: why.to_owned() })
    };
    if before.last_attempt_s.is_some_and(|last| last > stretch.first_s) {
        return refused("it begins before the last look");
    }
    for at_s in [stretch.first_s, stretch.last_s()] {
        let (after, news) = reach::step(&before.reach, stretch.outcome, at_s, true);
        if news.is_some() || after.state != before.reach.state {
            return refused(&format!(
                "{} moves the state from {} to {}",
                stretch.outcome, before.reach.state, after.state
            ));
        }
    }
    if reach::just_gone(&before.reach, before.last_attempt_s, stretch.last_s()) {
        return refused("the third day without a document passes in it");
    }
    if reach::is_forsaken(&before.reach, stretch.last_s()) {
        return refused("the month without a document passes in it");
    }
    Ok(())
}

/// The probes of the days that keep them, and every day in its month.
async fn keep_days(
    w: &mut Writing,
    packed: &mut Packed,
    stretch: &Stretch,
    before: &Before,
    single_days_from: i64,
) -> Result<()> {
    let last_day = before.last_attempt_s.map(|at_s| at_s / DAY_S);
    let end_day = stretch.last_s() / DAY_S;
    let headline = before.has_word.then_some(before.headline);
    let mut month: Option<(i64, Vec<u8>)> = None;
    for (day, looks) in stretch.days() {
        let mut probes = match last_day {
            Some(last) if last == day => packed.day(w, stretch.surface, day).await?,
            _ => Vec::new(),
        };
        looks.for_each(|n| probes.extend(stretch.probe(stretch.at(n)).pack()));
        let (number, day_of_month) = probes::month_of(day);
        if month.as_ref().is_none_or(|(known, _)| *known != number) {
            if let Some((done, days)) = month.take() {
                packed.put_month(stretch.surface, done, days);
            }
            let days = match last_day.map(probes::month_of) {
                Some((last, _)) if last == number => packed.month(w, stretch.surface, number).await?,
                _ => Vec::new(),
            };
            month = Some((number, days));
        }
        if let Some((_, days)) = &mut month {
            let earlier = probes::days(days).nth(day_of_month).flatten().and_then(|day| day.headline);
            if let Some(summed) = Day::of(probes::probes(&probes), earlier.max(headline)) {
                probes::put_day(days, day_of_month, &summed);
            }
        }
        if day >= single_days_from || day == end_day {
            packed.put_day(stretch.surface, day, probes);
        }
    }
    if let Some((done, days)) = month {
        packed.put_month(stretch.surface, done, days);
    }
    Ok(())
}

/// The counters of the surface, and when its targets were last looked at.
async fn write(w: &mut Writing, stretch: &Stretch) -> Result<()> {
    let is_up = stretch.outcome.is_up();
    let at_s = stretch.last_s();
    sqlx::query(
        "UPDATE surface
         SET reach_probes = reach_probes + $2, streak = streak + $3, evaluations = evaluations + $4,
             last_evaluated_s = CASE WHEN $4 > 0 THEN $5 ELSE last_evaluated_s END,
             last_ok_s = CASE WHEN $6 = 1 THEN $5 ELSE last_ok_s END,
             last_attempt_s = $5, last_status = $7, last_took_ms = $8,
             next_due_s = CASE WHEN paused = 1 THEN NULL ELSE $9 END
         WHERE id = $1",
    )
    .bind(stretch.surface.0)
    .bind(stretch.looks)
    .bind(stretch.counted())
    .bind(if stretch.judged { stretch.looks } else { 0 })
    .bind(at_s)
    .bind(i64::from(is_up))
    .bind(stretch.status.map(i64::from))
    .bind(i64::from(stretch.took_ms))
    .bind(stretch.next_due_s)
    .execute(w.on())
    .await?;
    sqlx::query(
        "UPDATE target
         SET last_attempt_s = CASE WHEN COALESCE(last_attempt_s, 0) < $2 THEN $2 ELSE last_attempt_s END,
             last_ok_s = CASE WHEN $3 = 1 AND COALESCE(last_ok_s, 0) < $2 THEN $2 ELSE last_ok_s END,
             next_due_s = CASE WHEN n_surfaces = 1 OR next_due_s IS NULL OR next_due_s > $4 THEN $4 ELSE next_due_s END
         WHERE retired_s IS NULL
           AND id IN (SELECT target_id FROM target_surface WHERE surface_id = $1 AND removed_s IS NULL)",
    )
    .bind(stretch.surface.0)
    .bind(at_s)
    .bind(i64::from(is_up))
    .bind(stretch.next_due_s)
    .execute(w.on())
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(first_s: i64, every_s: i64, looks: i64) -> Stretch {
        Stretch {
            surface: SurfaceId(7),
            first_s,
            every_s,
            looks,
            outcome: Outcome::Ok,
            status: Some(200),
            took_ms: 100,
            judged: true,
            next_due_s: None,
        }
    }

    #[test]
    fn every_look_falls_on_its_day() {
        let days: Vec<_> = stretch(DAY_S - 7200, 3600, 27).days().collect();
        assert_eq!(days, [(0, 0..2), (1, 2..26), (2, 26..27)]);
        assert_eq!(stretch(0, 2 * DAY_S, 2).days().collect::<Vec<_>>(), [(0, 0..1), (2, 1..2)]);
        assert_eq!(stretch(0, 3600, 0).days().count(), 0);
    }

    #[test]
    fn times_scatter_and_come_back_the_same() {
        let times: Vec<u16> = (0..200).map(|n| scattered(100, 7, n * 3600)).collect();
        assert_eq!(times, (0..200).map(|n| scattered(100, 7, n * 3600)).collect::<Vec<_>>());
        assert!(times.iter().all(|ms| (75..=225).contains(ms)));
        assert!(times.iter().collect::<std::collections::HashSet<_>>().len() > 20);
    }
}
