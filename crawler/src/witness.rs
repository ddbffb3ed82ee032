//! Is a silence theirs or ours? Before a target is blamed for not answering, somebody else must have answered.
//!
//! A good witness is another host that answered this very moment, else one of the canaries, asked now. Where none answers, the failure is recorded as our own fault and moves nothing. The same where far more fails than usual: then it is
//! our network, whatever single hosts still answer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_rules::reach::{Outcome, Unreachable};
use plumbline_rules::session::{Exchange, Step};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::net::{Ask, BodyKind, Client, Way};

/// How long before a silence was given up an answer may have come to vouch for the way there, in milliseconds. After a short
/// wait it is less, see [`Silence::vouched_from_ms`].
const FRESH_MS: i64 = 1_000;

/// The canaries are asked at most this often.
const ASKED_AT_MOST: Duration = Duration::from_secs(1);

/// How long it is believed that no canary answers.
const ALL_SILENT: Duration = Duration::from_secs(10);

/// How long the canaries may take.
const PATIENCE: Duration = Duration::from_secs(8);

/// Hosts remembered that answered, as canaries where none of the settings answers.
const REMEMBERED: usize = 8;

/// Over how long failures are counted, in seconds.
const WINDOW_S: i64 = 300;

/// So few looks in the window tell nothing about the share of failures.
const ENOUGH: u32 = 20;

/// Up to this share of failures nothing is unusual.
const USUAL_SHARE: f64 = 0.25;

/// What is unusual beyond that: this many times the share of other days.
const UNUSUAL: f64 = 5.0;

/// Who answered lately, and how much failed.
#[derive(Debug, Default)]
pub struct Witness {
    seen: Mutex<Seen>,
    /// One look at the canaries at a time.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Hosts that answered, each once, the last that was noted last.
    answered: VecDeque<Answered>,
    /// When the canaries were asked, and whether one answered.
    asked: Option<(Instant, bool)>,
    /// Looks by minute: when it began, answered, failed.
    minutes: VecDeque<(i64, u32, u32)>,
    /// The median share of failures of the last days; `None`: there were none.
    usual: Option<f64>,
}

/// A host that answered.
#[derive(Debug)]
struct Answered {
    host: String,
    /// An address there.
    url: String,
    /// When its answer came, in milliseconds since 1970 UTC: long before it was noted, where much was read and judged since.
    at_ms: i64,
}

/// What a look came to, as far as a witness is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// What was asked.
    pub url: &'a str,
    /// What came of it.
    pub outcome: Outcome,
    /// When the newest HTTP answer came from there, whatever it said, in milliseconds since 1970 UTC; `None`: none came.
    pub answered_ms: Option<i64>,
    /// How the conversation ended in silence; `None` where the last request was answered.
    pub silence: Option<Silence>,
}

/// A request that nothing came back for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When it left, in milliseconds since 1970 UTC.
    pub from_ms: i64,
    /// When it was given up.
    pub to_ms: i64,
}

impl Silence {
    /// Since when somebody else must have answered. An answer from before the network went away vouches for nobody: it has to be
    /// one of the second half of the wait, when the silent one should have answered too, and one of its last second.
    const fn vouched_from_ms(self) -> i64 {
        let half = (self.to_ms - self.from_ms) / 2;
        self.to_ms - if half < FRESH_MS { half } else { FRESH_MS }
    }
}

impl<'a> Look<'a> {
    /// What the exchanges of a look tell a witness. Where nothing was sent at all the silence is that of `now_ms`.
    #[must_use]
    pub fn of(url: &'a str, outcome: Outcome, exchanges: &[Exchange], now_ms: i64) -> Self {
        let after = |exchange: &Exchange, ms: u64| exchange.at_ms.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        let answer = exchanges.iter().rev().find(|exchange| exchange.response.is_some());
        // A conversation takes a while: that its beginning was answered says nothing about the way there at its end.
        let silence = match exchanges.last() {
            Some(last) if last.response.is_some() => None,
            Some(last) => Some(Silence { from_ms: last.at_ms, to_ms: after(last, last.took_ms) }),
            None => Some(Silence { from_ms: now_ms, to_ms: now_ms }),
        };
        let answered_ms = answer.map(|exchange| after(exchange, exchange.head_ms.unwrap_or(exchange.took_ms)));
        Self { url, outcome, answered_ms, silence }
    }
}

impl Witness {
    /// Tells what share of looks failed on other days, `None` where there were no other days.
    pub fn expect(&self, usual: Option<f64>) {
        self.seen().usual = usual;
    }

    /// Notes what a look brought.
    pub fn note(&self, look: Look<'_>, now_s: i64) {
        let mut seen = self.seen();
        seen.count(now_s, look.answered_ms.is_some(), look.answered_ms.is_none() && look.is_attempt());
        if let Some(at_ms) = look.answered_ms
            && let Some(host) = host_of(look.url)
        {
            seen.answered.retain(|known| known.host != host);
            seen.answered.push_back(Answered { host, url: look.url.to_owned(), at_ms });
            if seen.answered.len() > REMEMBERED {
                seen.answered.pop_front();
            }
        }
    }

    /// The outcome as it may be recorded: a silence that nobody bears witness to is our own fault.
    pub async fn weigh(&self, client: &Client, canaries: &[String], look: Look<'_>, now_s: i64) -> Outcome {
        let Some(silence) = look.doubtful() else { return look.outcome };
        if self.somebody_answers(client, canaries, look.url, silence).await && !self.too_much(now_s) {
            return look.outcome;
        }
        Outcome::CrawlerFault
    }

    async fn somebody_answers(&self, client: &Client, canaries: &[String], url: &str, silence: Silence) -> bool {
        let own = host_of(url).unwrap_or_default();
        if self.seen().has_vouched(&own, silence) {
            return true;
        }
        let _one = self.asking.lock().await;
        if let Some((at, answer)) = self.seen().asked
            && at.elapsed() < if answer { ASKED_AT_MOST } else { ALL_SILENT }
        {
            return answer;
        }
        let remembered = self.seen().others(&own);
        let answer = any_answers(client, canaries).await || any_answers(client, &remembered).await;
        self.seen().asked = Some((Instant::now(), answer));
        answer
    }

    /// Whether far more fails than on other days.
    fn too_much(&self, now_s: i64) -> bool {
        let mut seen = self.seen();
        let (answered, failed) = seen.counted(now_s);
        is_too_much(answered, failed, seen.usual)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Whether another host answered at the end of this silence, or since. What lies in a future that a wrong clock made up does
    /// not count.
    fn has_vouched(&self, own: &str, silence: Silence) -> bool {
        let vouched = silence.vouched_from_ms()..=silence.to_ms.saturating_add(WINDOW_S * 1_000);
        self.answered.iter().any(|one| one.host != own && vouched.contains(&one.at_ms))
    }

    /// A place on each remembered host where it costs little to ask.
    fn others(&self, own: &str) -> Vec<String> {
        let places = self.answered.iter().rev().filter(|one| one.host != own);
        places.filter_map(|one| Some(url::Url::parse(&one.url).ok()?.join("/robots.txt").ok()?.into())).collect()
    }

    fn count(&mut self, now_s: i64, answered: bool, failed: bool) {
        let minute = now_s - now_s.rem_euclid(60);
        if self.minutes.back().is_none_or(|(last, _, _)| *last != minute) {
            self.minutes.push_back((minute, 0, 0));
        }
        if let Some((_, up, down)) = self.minutes.back_mut() {
            *up += u32::from(answered);
            *down += u32::from(failed);
        }
        self.counted(now_s);
    }

    /// Answered and failed within the window; what lies before it, or in a future that a wrong clock made up, is dropped.
    fn counted(&mut self, now_s: i64) -> (u32, u32) {
        self.minutes.retain(|(minute, _, _)| (-60..WINDOW_S).contains(&(now_s - minute)));
        self.minutes.iter().fold((0, 0), |sum, (_, up, down)| (sum.0 + up, sum.1 + down))
    }
}

impl Look<'_> {
    /// Something was asked of somebody.
    fn is_attempt(&self) -> bool {
        !matches!(self.outcome, Outcome::Skipped(_) | Outcome::CrawlerFault)
    }

    /// The silence that may as well be that of our own network: nothing came back from the other end. A connection that was
    /// refused, or a certificate that was shown, did come back.
    fn doubtful(&self) -> Option<Silence> {
        let is_silence = match self.outcome {
            Outcome::Unreachable(why) => match why {
                Unreachable::DnsServfail
                | Unreachable::DnsTimeout
                | Unreachable::ConnectTimeout
                | Unreachable::ReadTimeout
                | Unreachable::Reset
                | Unreachable::TlsHandshake => true,
                Unreachable::Refused
                | Unreachable::TlsExpired
                | Unreachable::TlsName
                | Unreachable::TlsIssuer
                | Unreachable::Http5xx
                | Unreachable::Truncated
                | Unreachable::BadEncoding
                | Unreachable::NotHttp => false,
            },
            // No such name: a closed network says so of every name.
            Outcome::Absent(None) => true,
            Outcome::Ok
            | Outcome::Gated(_)
            | Outcome::Absent(Some(_))
            | Outcome::Throttled
            | Outcome::Skipped(_)
            | Outcome::CrawlerFault => false,
        };
        self.silence.filter(|_| is_silence)
    }
}

fn is_too_much(answered: u32, failed: u32, usual: Option<f64>) -> bool {
    let looks = answered + failed;
    let Some(usual) = usual.filter(|_| looks >= ENOUGH) else { return false };
    f64::from(failed) / f64::from(looks) > USUAL_SHARE.max(UNUSUAL * usual)
}

/// Asks all of them at once; the first answer, whatever it is, decides.
async fn any_answers(client: &Client, urls: &[String]) -> bool {
    let mut asked = JoinSet::new();
    for url in urls {
        let (client, url) = (client.clone(), url.clone());
        asked.spawn(async move {
            let ask = Ask { step: Some(Step::Robots), way: Way::Robots, ..Ask::get(url, BodyKind::Robots) };
            client.fetch(ask).await.is_ok_and(|fetched| fetched.exchanges.iter().any(|one| one.response.is_some()))
        });
    }
    let first = async {
        while let Some(answered) = asked.join_next().await {
            if answered.unwrap_or(false) {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(PATIENCE, first).await.unwrap_or(false)
}

fn host_of(url: &str) -> Option<String> {
    crate::targets::host_of(url).map(|host| host.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Look<'_> =
        Look { url: "https://a.dev/card", outcome: Outcome::Ok, answered_ms: Some(1_000_000), silence: None };
    const WAITED: Silence = Silence { from_ms: 1_000_500, to_ms: 1_010_500 };
    const SILENCE: Look<'_> = Look {
        url: "https://a.dev/card",
        outcome: Outcome::Unreachable(Unreachable::ConnectTimeout),
        answered_ms: None,
        silence: Some(WAITED),
    };

    fn answered_at(at_ms: i64) -> Witness {
        let witness = Witness::default();
        witness.note(Look { answered_ms: Some(at_ms), ..ANSWER }, at_ms / 1_000);
        witness
    }

    #[test]
    fn another_host_that_answered_at_the_end_of_the_silence_is_a_witness_and_the_silent_one_is_not() {
        let vouches = |at_ms, own| answered_at(at_ms).seen().has_vouched(own, WAITED);
        assert!(vouches(1_010_000, "b.dev") && vouches(1_011_000, "b.dev"));
        assert!(!vouches(1_009_000, "b.dev"), "it answered too long ago");
        assert!(!vouches(1_010_000, "a.dev"), "it cannot witness for itself");
        assert!(!vouches(9_000_000, "b.dev"), "a wrong clock made it up");
    }

    #[test]
    fn after_a_short_wait_an_answer_from_before_it_vouches_for_nobody() {
        let vouches = |at_ms, wait_ms: i64| {
            let silence = Silence { from_ms: 1_000_000, to_ms: 1_000_000 + wait_ms };
            answered_at(at_ms).seen().has_vouched("b.dev", silence)
        };
        // The network went away at 1,000,000: a name server is waited for no longer than a second, a reset comes at once.
        assert!(!vouches(1_000_000, 1_000) && !vouches(999_990, 0));
        assert!(vouches(1_000_500, 1_000) && vouches(1_000_000, 0));
    }

    #[test]
    fn an_answer_is_as_old_as_it_is_however_late_it_is_noted() {
        let answered = Exchange { at_ms: 1_000, took_ms: 900, head_ms: Some(40), ..exchange(true) };
        let silent = Exchange { at_ms: 2_000, took_ms: 8_000, ..exchange(false) };
        let look = Look::of(SILENCE.url, SILENCE.outcome, &[answered, silent], 99_000);
        assert_eq!(look.answered_ms, Some(1_040), "the robots file came, the card did not");
        assert_eq!(look.doubtful(), Some(Silence { from_ms: 2_000, to_ms: 10_000 }));
        let nothing = Look::of(SILENCE.url, SILENCE.outcome, &[], 99_000);
        assert_eq!((nothing.answered_ms, nothing.doubtful()), (None, Some(Silence { from_ms: 99_000, to_ms: 99_000 })));
    }

    fn exchange(is_answered: bool) -> Exchange {
        Exchange { response: is_answered.then(Default::default), ..Exchange::default() }
    }

    #[test]
    fn no_such_name_is_doubtful_and_not_found_is_not() {
        let look = Look { outcome: Outcome::Absent(None), ..SILENCE };
        assert!(look.doubtful().is_some() && SILENCE.doubtful().is_some());
        assert!(Look { silence: None, ..look }.doubtful().is_none());
        assert!(Look { outcome: Outcome::Unreachable(Unreachable::Refused), ..SILENCE }.doubtful().is_none());
    }

    #[test]
    fn far_more_failures_than_usual_are_ours() {
        assert!(!is_too_much(1, 19, None), "without other days nothing is unusual");
        assert!(is_too_much(14, 6, Some(0.02)));
        assert!(!is_too_much(16, 4, Some(0.02)), "a fifth is not");
        assert!(!is_too_much(8, 12, Some(0.5)), "where half is always dead, sixty per cent is usual");
        assert!(!is_too_much(0, 19, Some(0.0)), "too few to tell");
    }

    #[test]
    fn the_window_forgets_and_stays_small() {
        let witness = Witness::default();
        for second in 0..4000 {
            witness.note(if second % 2 == 0 { ANSWER } else { SILENCE }, second);
        }
        let (answered, failed) = witness.seen().counted(4000);
        assert!(answered + failed <= 360 && answered.abs_diff(failed) <= 1, "{answered} {failed}");
        assert!(witness.seen().minutes.len() <= 7);
        // The clock is set back a day: what was counted lies in the future and is dropped.
        assert_eq!(witness.seen().counted(4000 - 86_400), (0, 0));
    }
}
