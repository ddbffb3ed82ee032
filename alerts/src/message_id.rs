//! Ids of messages: `msg_` and a ULID. Later ids are greater, so that messages leave in the order of their events.

use std::sync::{Mutex, PoisonError};

use rand::Rng as _;

/// The letters of ULIDs: no I, L, O, U.
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Gives out ids that only grow, also within a millisecond and when the clock is set back.
#[derive(Debug, Default)]
pub struct Ids(Mutex<u128>);

impl Ids {
    /// Ids greater than one that was given out before.
    #[must_use]
    pub fn after(last: Option<&str>) -> Ids {
        Ids(Mutex::new(last.and_then(number).unwrap_or(0)))
    }

    /// The next id.
    pub fn next(&self, now_ms: i64) -> String {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let time = u128::try_from(now_ms).unwrap_or(0) & ((1 << 48) - 1);
        // The lower half of the random part only, so that counting on from it cannot overflow into the time.
        let fresh = (time << 80) | u128::from(rand::rng().random::<u64>() >> 1);
        *last = if fresh > *last { fresh } else { *last + 1 };
        text(*last)
    }
}

fn text(number: u128) -> String {
    let letter = |n: u32| char::from(LETTERS[((number >> (5 * n)) & 31) as usize]);
    let ulid: String = (0..26).rev().map(letter).collect();
    format!("msg_{ulid}")
}

fn number(id: &str) -> Option<u128> {
    let ulid = id.strip_prefix("msg_").filter(|ulid| ulid.len() == 26)?;
    ulid.bytes().try_fold(0u128, |number, letter| {
        let digit = LETTERS.iter().position(|known| *known == letter)?;
        Some((number << 5) | digit as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_whatever_the_clock_does() {
        let ids = Ids::default();
        let mut last = ids.next(1_796_083_200_000);
        assert!(last.len() == 30 && last.starts_with("msg_01"), "{last}");
        for now_ms in [1_796_083_200_000, 1_796_083_200_000, 1_796_083_100_000, 1_796_083_300_000] {
            let next = ids.next(now_ms);
            assert!(next > last, "{next} after {last}");
            last = next;
        }
        let after = Ids::after(Some(&last)).next(5);
        assert!(after > last, "{after} after {last}, by another process");
    }
}
