//! Points in time as RFC 3339 writes them.

/// A point in time, to the nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant {
    /// Since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Of the second that has begun.
    pub nanoseconds: u32,
}

impl Instant {
    /// Reads a date-time with an offset, and fractions of one to nine digits; `t` and `z` may be small.
    pub fn parse(text: &str) -> Option<Instant> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| digits(bytes.get(from..to)?);
        let mark = |at: usize, mark: u8| bytes.get(at).is_some_and(|b| b.eq_ignore_ascii_case(&mark));
        if ![(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')].iter().all(|(at, wanted)| mark(*at, *wanted)) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
            return None;
        }
        // RFC 3339 allows leap seconds; they count as the second after.
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (nanoseconds, rest) = fraction(bytes.get(19..)?)?;
        let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
        Some(Instant { seconds, nanoseconds })
    }

    /// Reads a date as HTTP headers have it: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7, the form to be written).
    pub fn parse_http(text: &str) -> Option<Instant> {
        const MONTHS: &[&str] = &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let (_, date) = text.split_once(", ")?;
        let mut parts = date.split(' ');
        let (day, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let month = MONTHS.iter().position(|name| *name == month)? + 1;
        let is_utc = parts.next() == Some("GMT") && parts.next().is_none();
        is_utc.then(|| Instant::parse(&format!("{year}-{month:02}-{day}T{time}Z")))?
    }
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
}

/// Fractions of a second, and what stands behind them.
fn fraction(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let Some(rest) = bytes.strip_prefix(b".") else { return Some((0, bytes)) };
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let value = digits(&rest[..count])? as u32;
    Some((value * 10_u32.pow(9 - count as u32), &rest[count..]))
}

/// The seconds that local time is ahead of UTC.
fn offset(bytes: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match bytes {
        [b'Z' | b'z'] => return Some(0),
        [sign, a, b, b':', c, d] => (sign, digits(&[*a, *b])?, digits(&[*c, *d])?),
        _ => return None,
    };
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        _ if hours > 23 || minutes > 59 => None,
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, counted in years that begin in March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_compared_across_offsets() {
        let seconds = |text| Instant::parse(text).map(|instant| instant.seconds);
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2000-02-29T12:00:00+00:00"), Some(951_825_600));
        assert_eq!(seconds("2026-05-02T12:00:00+02:00"), seconds("2026-05-02t10:00:00z"));
        assert_eq!(seconds("1969-12-31T23:59:59Z"), Some(-1));
        assert!(Instant::parse("2026-05-02T10:00:00.5Z") > Instant::parse("2026-05-02T10:00:00.123456789Z"));
        assert_eq!(Instant::parse("2026-05-02T10:00:00.5Z"), Instant::parse("2026-05-02T10:00:00.500Z"));
    }

    #[test]
    fn what_names_no_instant_is_none() {
        let texts = [
            "",
            "2026-05-02",
            "2026-05-02T10:00:00",
            "2026-05-02 10:00:00Z",
            "2026-05-02T10:00:00.Z",
            "2026-05-02T10:00:00.1234567890Z",
            "2026-02-29T10:00:00Z",
            "2026-13-01T10:00:00Z",
            "2026-05-02T24:00:00Z",
            "2026-05-02T10:00:00+0200",
            "2026-05-02T10:00:00Z ",
            "2026-05-0xT10:00:00Z",
            "äöü6-05-02T10:00:00Z",
        ];
        for text in texts {
            assert_eq!(Instant::parse(text), None, "{text}");
        }
    }

    #[test]
    fn dates_of_headers_are_read_in_the_form_to_be_written() {
        let date = Instant::parse_http("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date, Instant::parse("1994-11-06T08:49:37Z"));
        assert!(date.is_some());
        for other in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Nov 1994", "", ", "] {
            assert_eq!(Instant::parse_http(other), None, "{other}");
        }
    }
}
