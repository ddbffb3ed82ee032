//! Is a silence theirs or ours? Before a target is blamed for not answering, somebody else must have answered.
//!
//! A good witness is another host that answered this very moment, else one of the canaries, asked now. Where none answers, the failure is recorded as our own fault and moves nothing. The same where far more fails than usual: then it is
//! our network, whatever single hosts still answer.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumbline_rules::reach::{Outcome, Unreachable};
use plumbline_rules::session::Step;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::net::{Ask, BodyKind, Client, Way};

/// How long after an answer its host is a good witness. Silence is noticed only after a wait longer than this, so an answer
/// from before the network went away vouches for nobody.
const FRESH: Duration = Duration::from_secs(1);

/// How long the answer of the canaries is believed.
const ASKED: Duration = Duration::from_secs(10);

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
    /// Hosts that answered, each once, the newest last: when, and an address there.
    answered: VecDeque<(String, Instant, String)>,
    /// When the canaries were asked, and whether one answered.
    asked: Option<(Instant, bool)>,
    /// Looks by minute: when it began, answered, failed.
    minutes: VecDeque<(i64, u32, u32)>,
    /// The median share of failures of the last days; `None`: there were none.
    usual: Option<f64>,
}

/// What a look came to, as far as a witness is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// What was asked.
    pub url: &'a str,
    /// What came of it.
    pub outcome: Outcome,
    /// An HTTP answer came from there, whatever it said.
    pub has_answer: bool,
}

impl Witness {
    /// Tells what share of looks failed on other days, `None` where there were no other days.
    pub fn expect(&self, usual: Option<f64>) {
        self.seen().usual = usual;
    }

    /// Notes what a look brought.
    pub fn note(&self, look: Look<'_>, now_s: i64) {
        let mut seen = self.seen();
        seen.count(now_s, look.has_answer, !look.has_answer && look.is_attempt());
        if look.has_answer
            && let Some(host) = host_of(look.url)
        {
            seen.answered.retain(|(known, _, _)| *known != host);
            seen.answered.push_back((host, Instant::now(), look.url.to_owned()));
            if seen.answered.len() > REMEMBERED {
                seen.answered.pop_front();
            }
        }
    }

    /// The outcome as it may be recorded: a silence that nobody bears witness to is our own fault.
    pub async fn weigh(&self, client: &Client, canaries: &[String], look: Look<'_>, now_s: i64) -> Outcome {
        if !look.is_doubtful() || (self.somebody_answers(client, canaries, look.url).await && !self.too_much(now_s)) {
            return look.outcome;
        }
        Outcome::CrawlerFault
    }

    async fn somebody_answers(&self, client: &Client, canaries: &[String], url: &str) -> bool {
        let own = host_of(url).unwrap_or_default();
        if self.seen().has_fresh_answer(&own, Instant::now()) {
            return true;
        }
        let _one = self.asking.lock().await;
        if let Some((at, answer)) = self.seen().asked
            && at.elapsed() < ASKED
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
    fn has_fresh_answer(&self, own: &str, now: Instant) -> bool {
        self.answered.iter().any(|(host, at, _)| host != own && now.saturating_duration_since(*at) <= FRESH)
    }

    /// A place on each remembered host where it costs little to ask.
    fn others(&self, own: &str) -> Vec<String> {
        let places = self.answered.iter().rev().filter(|(host, _, _)| host != own);
        places.filter_map(|(_, _, url)| Some(url::Url::parse(url).ok()?.join("/robots.txt").ok()?.into())).collect()
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

    /// Whether it may as well be our own network: nothing came back from the other end. A connection that was refused, or a
    /// certificate that was shown, did come back.
    fn is_doubtful(&self) -> bool {
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
        is_silence && !self.has_answer
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

    const ANSWER: Look<'_> = Look { url: "https://a.dev/card", outcome: Outcome::Ok, has_answer: true };
    const SILENCE: Look<'_> = Look {
        url: "https://a.dev/card",
        outcome: Outcome::Unreachable(Unreachable::ConnectTimeout),
        has_answer: false,
    };

    #[test]
    fn another_host_that_answered_just_now_is_a_witness_and_the_silent_one_is_not() {
        let witness = Witness::default();
        witness.note(ANSWER, 1000);
        let now = Instant::now();
        assert!(witness.seen().has_fresh_answer("b.dev", now));
        assert!(!witness.seen().has_fresh_answer("b.dev", now + FRESH * 2), "it answered too long ago");
        assert!(!witness.seen().has_fresh_answer("a.dev", now), "it cannot witness for itself");
    }

    #[test]
    fn no_such_name_is_doubtful_and_not_found_is_not() {
        let look = Look { outcome: Outcome::Absent(None), ..SILENCE };
        assert!(look.is_doubtful() && SILENCE.is_doubtful());
        assert!(!Look { has_answer: true, ..look }.is_doubtful());
        assert!(!Look { outcome: Outcome::Unreachable(Unreachable::Refused), ..SILENCE }.is_doubtful());
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
