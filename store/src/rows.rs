//! Between rows and values: words, hashes, compressed bytes. Written once.

use std::cell::RefCell;
use std::str::FromStr;

use plumbline_rules::canonical::{Hash, content_hash, hex};

use crate::error::{Error, Result};

/// A day in seconds.
pub(crate) const DAY_S: i64 = 86_400;

/// Level of compression: bodies are small, and higher levels gain little on them.
const ZSTD_LEVEL: i32 = 3;

/// The largest body anybody stored; a claim of more in a compressed frame is a broken row.
const MAX_UNPACKED: usize = 64 << 20;

thread_local! {
    /// Making a compressor costs more than compressing a small body with it.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// Compressed bytes.
pub(crate) fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        let made = match kept.take() {
            Some(compressor) => Ok(compressor),
            None => zstd::bulk::Compressor::new(ZSTD_LEVEL),
        };
        let mut compressor = made.map_err(|error| Error::corrupt("body", error))?;
        let packed = compressor.compress(bytes).map_err(|error| Error::corrupt("body", error));
        *kept = Some(compressor);
        packed
    })
}

/// The bytes that were compressed.
pub(crate) fn unpack(what: &'static str, packed: &[u8]) -> Result<Vec<u8>> {
    let length = zstd::zstd_safe::get_frame_content_size(packed)
        .ok()
        .flatten()
        .and_then(|length| usize::try_from(length).ok())
        .filter(|length| *length <= MAX_UNPACKED)
        .ok_or_else(|| Error::corrupt(what, "its length is not told"))?;
    zstd::bulk::decompress(packed, length).map_err(|error| Error::corrupt(what, error))
}

/// The key of shared small bodies: the first 16 bytes of their SHA-256.
pub(crate) fn short_hash(bytes: &[u8]) -> [u8; 16] {
    let mut short = [0; 16];
    short.copy_from_slice(&content_hash(bytes)[..16]);
    short
}

/// What is kept of a context hash.
pub(crate) fn context_key(hash: &Hash) -> Vec<u8> {
    hash[..8].to_vec()
}

/// A word of a closed list.
pub(crate) fn word<T: FromStr<Err = String>>(what: &'static str, text: &str) -> Result<T> {
    text.parse().map_err(|detail: String| Error::corrupt(what, detail))
}

/// A word of a closed list, or none.
pub(crate) fn word_or_none<T: FromStr<Err = String>>(what: &'static str, text: Option<&str>) -> Result<Option<T>> {
    text.map(|text| word(what, text)).transpose()
}

/// A hash of 32 bytes.
pub(crate) fn hash(what: &'static str, bytes: &[u8]) -> Result<Hash> {
    bytes.try_into().map_err(|_| Error::corrupt(what, format!("a hash of {} bytes", bytes.len())))
}

/// A count as a column takes it.
pub(crate) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Text from outside as a column takes it: PostgreSQL has no way to keep the character U+0000.
pub(crate) fn clean(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// The same for text that may not be there.
pub(crate) fn clean_or_none(text: Option<&str>) -> Option<String> {
    text.map(clean)
}

/// Clean text cut to so many characters, with an ellipsis in place of what was cut.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => {
            let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
            short.push('…');
            short
        }
    }
}

/// Bytes of a text that may stand in an index; PostgreSQL takes some 2,700 in a row of one.
const LONGEST_KEY: usize = 500;

/// Clean text that names something, so it must stay one of a kind: what is too long to be in an index ends in its hash.
pub(crate) fn key(text: &str) -> String {
    let text = clean(text);
    if text.len() <= LONGEST_KEY {
        return text;
    }
    let mut cut = LONGEST_KEY - 40;
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    format!("{}…{}", &text[..cut], hex(&short_hash(text.as_bytes())))
}

/// Rows that one statement reads or writes: so few lengths that each stays prepared.
const ROWS: [usize; 2] = [24, 6];

/// Rows in portions for one statement each.
pub(crate) fn in_statements<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let [many, some] = ROWS;
    let whole = rows.chunks_exact(many);
    let rest = whole.remainder().chunks_exact(some);
    let last = rest.remainder();
    whole.chain(rest).chain(last.chunks(1))
}

/// The placeholders of so many rows of so many columns: `($1, $2), ($3, $4)`.
pub(crate) fn places(rows: usize, columns: usize) -> String {
    let row = |n: usize| {
        let places: Vec<String> = (1..=columns).map(|column| format!("${}", n * columns + column)).collect();
        format!("({})", places.join(", "))
    };
    (0..rows).map(row).collect::<Vec<_>>().join(", ")
}

/// A set of small numbers as bits, for columns such as `surface.judged`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits(Vec<u8>);

impl Bits {
    /// From its bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Bits {
        Bits(bytes.to_vec())
    }

    /// Its bytes, as short as they can be.
    #[must_use]
    pub fn into_bytes(mut self) -> Vec<u8> {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self.0
    }

    /// Whether this number is in it.
    #[must_use]
    pub fn has(&self, n: i64) -> bool {
        let Ok(n) = usize::try_from(n) else { return false };
        self.0.get(n / 8).is_some_and(|byte| byte & (1 << (n % 8)) != 0)
    }

    /// Puts this number in or takes it out.
    pub fn set(&mut self, n: i64, is_in: bool) {
        let Ok(n) = usize::try_from(n) else { return };
        if n / 8 >= self.0.len() {
            if !is_in {
                return;
            }
            self.0.resize(n / 8 + 1, 0);
        }
        let mask = 1 << (n % 8);
        if is_in {
            self.0[n / 8] |= mask;
        } else {
            self.0[n / 8] &= !mask;
        }
    }

    /// The numbers in it, smallest first.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..count(self.0.len() * 8)).filter(|n| self.has(*n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back() {
        for bytes in [&b""[..], b"a", &[7; 100_000]] {
            assert_eq!(unpack("body", &pack(bytes).unwrap()).unwrap(), bytes);
        }
        assert!(unpack("body", b"no zstd").is_err());
    }

    #[test]
    fn rows_come_in_portions_with_their_places() {
        let rows: Vec<u8> = (0..24 + 6 + 2).collect();
        let portions: Vec<usize> = in_statements(&rows).map(<[u8]>::len).collect();
        assert_eq!(portions, [24, 6, 1, 1]);
        assert_eq!(in_statements(&rows).flatten().copied().collect::<Vec<_>>(), rows);
        assert_eq!(places(2, 3), "($1, $2, $3), ($4, $5, $6)");
    }

    #[test]
    fn bits_are_a_set() {
        let mut bits = Bits::default();
        for n in [0, 9, 788] {
            bits.set(n, true);
        }
        bits.set(9, false);
        bits.set(10_000, false);
        bits.set(-1, true);
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 788]);
        bits.set(788, false);
        assert_eq!(bits.into_bytes(), [1]);
    }

    #[test]
    fn keys_stay_one_of_a_kind() {
        let (a, b) = ("ü".repeat(5000) + "a", "ü".repeat(5000) + "b");
        assert!(key(&a).len() <= LONGEST_KEY);
        assert_ne!(key(&a), key(&b));
        assert_eq!(key("io.github.a/b"), "io.github.a/b");
        assert_eq!(key("a\0b"), "a\u{fffd}b");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(shortened("grüße", 5), "grüße");
        assert_eq!(shortened("grüße!", 5), "grüß…");
    }
}
