//! How far an observation came: one of a handful of outcomes, apart from everything the rules say.
//!
//! Reach answers "did we get at it", never "is it right". Each outcome has one text form, used by the database, JSON,
//! addresses and style sheets alike: `ok`, `gated:auth`, `absent`, `absent:405`, `unreachable:dns_timeout`,
//! `throttled`, `skipped:robots`, `crawler_fault`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What came of one observation of one surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// An answer that the kind of surface accepts arrived whole, or stopped for a reason that is itself a finding (too
    /// large, too many redirects).
    Ok,
    /// Somebody is there and wants something first.
    Gated(Gate),
    /// There is nothing at this address. `None`: 404, 410 or a name that does not exist; otherwise the other status
    /// that said so.
    Absent(Option<u16>),
    /// We tried and got no usable answer; counts as down.
    Unreachable(Unreachable),
    /// We were asked to come back later.
    Throttled,
    /// We did not try, or stopped on purpose.
    Skipped(Skip),
    /// The fault is ours; says nothing about the target.
    CrawlerFault,
}

/// What a gate asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Credentials.
    Auth,
    /// Payment.
    Payment,
}

/// Why a target could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// The name servers of the name failed.
    DnsServfail,
    /// The name servers of the name did not answer in time.
    DnsTimeout,
    /// Nobody listens.
    Refused,
    /// No connection in time.
    ConnectTimeout,
    /// TLS could not be agreed.
    TlsHandshake,
    /// The certificate has ended, or has not begun.
    TlsExpired,
    /// The certificate is for another name.
    TlsName,
    /// The certificate leads to no known root.
    TlsIssuer,
    /// The connection broke before an answer.
    Reset,
    /// Connected, but the answer did not come, or did not end, in time.
    ReadTimeout,
    /// The server says that it failed.
    Http5xx,
    /// The body ended before its end.
    Truncated,
    /// The content coding could not be undone.
    BadEncoding,
    /// What answered does not speak HTTP.
    NotHttp,
}

/// Why a target was not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skip {
    /// Its operator or ours paused it.
    Paused,
    /// A maintenance window that asks us to stay away.
    Maintenance,
    /// The budget of this pass was used up.
    Budget,
    /// Its host failed too often just now, or asked for a rest.
    CircuitOpen,
    /// It lives at an address that we must not call.
    AddressGuard,
    /// Its robots.txt asks us not to.
    Robots,
    /// Whoever stands behind it asked to be left alone.
    OptOut,
    /// What is given as its address cannot be called at all.
    BadUrl,
}

impl Outcome {
    /// The target answered: counts as up.
    #[must_use]
    pub fn is_up(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Gated(_))
    }

    /// The target failed to answer: counts as down. Neither up nor down is a gap in its uptime.
    #[must_use]
    pub fn is_down(self) -> bool {
        matches!(self, Outcome::Unreachable(_))
    }
}

/// A text that names no outcome, or no reason of that outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownOutcome(pub String);

impl fmt::Display for UnknownOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no reach outcome", self.0)
    }
}

impl std::error::Error for UnknownOutcome {}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok => f.write_str("ok"),
            Outcome::Gated(gate) => write!(f, "gated:{gate}"),
            Outcome::Absent(None) => f.write_str("absent"),
            Outcome::Absent(Some(status)) => write!(f, "absent:{status}"),
            Outcome::Unreachable(reason) => write!(f, "unreachable:{reason}"),
            Outcome::Throttled => f.write_str("throttled"),
            Outcome::Skipped(reason) => write!(f, "skipped:{reason}"),
            Outcome::CrawlerFault => f.write_str("crawler_fault"),
        }
    }
}

impl FromStr for Outcome {
    type Err = UnknownOutcome;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = match text.split_once(':') {
            None => match text {
                "ok" => Some(Outcome::Ok),
                "absent" => Some(Outcome::Absent(None)),
                "throttled" => Some(Outcome::Throttled),
                "crawler_fault" => Some(Outcome::CrawlerFault),
                _ => None,
            },
            Some(("gated", gate)) => Gate::named(gate).map(Outcome::Gated),
            Some(("absent", status)) => http_status(status).map(|status| Outcome::Absent(Some(status))),
            Some(("unreachable", reason)) => Unreachable::named(reason).map(Outcome::Unreachable),
            Some(("skipped", reason)) => Skip::named(reason).map(Outcome::Skipped),
            Some(_) => None,
        };
        known.ok_or_else(|| UnknownOutcome(text.to_owned()))
    }
}

/// A status of three digits, spelled as HTTP spells it.
fn http_status(text: &str) -> Option<u16> {
    let three_digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|status| three_digits && *status >= 100)
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Writes the text of each reason once and makes both directions of it.
macro_rules! reasons {
    ($kind:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $kind {
            /// Every reason, in the order of the documentation.
            pub const ALL: &'static [$kind] = &[$($kind::$variant),+];

            /// The word for it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $($kind::$variant => $text),+
                }
            }

            /// The reason with this word.
            #[must_use]
            pub fn named(text: &str) -> Option<Self> {
                match text {
                    $($text => Some($kind::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons!(Gate { Auth = "auth", Payment = "payment" });

reasons!(Unreachable {
    DnsServfail = "dns_servfail",
    DnsTimeout = "dns_timeout",
    Refused = "refused",
    ConnectTimeout = "connect_timeout",
    TlsHandshake = "tls_handshake",
    TlsExpired = "tls_expired",
    TlsName = "tls_name",
    TlsIssuer = "tls_issuer",
    Reset = "reset",
    ReadTimeout = "read_timeout",
    Http5xx = "http_5xx",
    Truncated = "truncated",
    BadEncoding = "bad_encoding",
    NotHttp = "not_http",
});

reasons!(Skip {
    Paused = "paused",
    Maintenance = "maintenance",
    Budget = "budget",
    CircuitOpen = "circuit_open",
    AddressGuard = "address_guard",
    Robots = "robots",
    OptOut = "opt_out",
    BadUrl = "bad_url",
});

#[cfg(test)]
mod tests {
    use super::*;

    fn every_outcome() -> Vec<Outcome> {
        let mut all = vec![
            Outcome::Ok,
            Outcome::Absent(None),
            Outcome::Absent(Some(405)),
            Outcome::Throttled,
            Outcome::CrawlerFault,
        ];
        all.extend(Gate::ALL.iter().copied().map(Outcome::Gated));
        all.extend(Unreachable::ALL.iter().copied().map(Outcome::Unreachable));
        all.extend(Skip::ALL.iter().copied().map(Outcome::Skipped));
        all
    }

    #[test]
    fn every_outcome_reads_back_from_its_text() {
        for outcome in every_outcome() {
            assert_eq!(outcome.to_string().parse(), Ok(outcome));
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{outcome}\""));
            assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
        }
    }

    #[test]
    fn texts_of_outcomes_differ() {
        let texts: std::collections::BTreeSet<String> = every_outcome().iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), every_outcome().len());
    }

    #[test]
    fn other_texts_name_no_outcome() {
        let others = [
            "",
            "Ok",
            "ok:",
            "ok:x",
            "gated",
            "gated:",
            "gated:money",
            "absent:",
            "absent:40",
            "absent:+40",
            "absent:4040",
            "absent:099",
            "unreachable",
            "unreachable:auth",
            "skipped:refused",
            "throttled:x",
            "crawler_fault:",
        ];
        for text in others {
            assert_eq!(text.parse::<Outcome>(), Err(UnknownOutcome(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn only_unreachable_counts_as_down_and_a_gate_as_up() {
        let up = every_outcome().into_iter().filter(|o| o.is_up()).count();
        let down = every_outcome().into_iter().filter(|o| o.is_down()).count();
        assert_eq!(up, 1 + Gate::ALL.len());
        assert_eq!(down, Unreachable::ALL.len());
    }
}
