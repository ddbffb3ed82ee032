//! What becomes of a message and its receiver after a try. Pure: the clock and chance come in as numbers.

use chrono::DateTime;
use plumbline_store::hooks::{DeliveryState, Due, EndpointState, Standing};

use crate::wire::Answer;

/// Seconds after the attempt before, one for each attempt: about 75.6 hours in all.
pub const SCHEDULE_S: [i64; 10] = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// How long a message is tried at most, in seconds.
const WHOLE_S: i64 = 272_105;

/// Longest wait that a receiver may ask for, in seconds.
const MOST_RETRY_AFTER_S: i64 = 86_400;

/// Least wait after a sign of overload, in seconds.
const OVERLOAD_S: i64 = 60;

/// First and longest wait after a fault of ours, in seconds; between them as long as the message is old.
const OURS_S: (i64, i64) = (60, 3_600);

/// Failures in a row after which a receiver counts as failing.
const FAILING: i64 = 10;

/// First and longest wait between two tries of a failing receiver, in seconds.
const PROBE_S: (i64, i64) = (300, 3_600);

/// How long a receiver may fail before it is switched off, in seconds.
const DISABLE_S: i64 = 5 * 86_400;

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How far the message came.
    pub state: DeliveryState,
    /// Attempts that count so far.
    pub attempts: i64,
    /// When it is tried next, in Unix seconds.
    pub next_s: Option<i64>,
    /// A word to the reader of the log.
    pub note: Option<String>,
    /// How the receiver does now.
    pub standing: Standing,
}

/// What a try was about.
#[derive(Debug, Clone, Copy)]
pub struct Try<'t> {
    /// The message.
    pub due: &'t Due,
    /// When the message was first tried, in Unix seconds; `None`: this was the first time.
    pub first_try_s: Option<i64>,
    /// When the answer came, in Unix seconds.
    pub now_s: i64,
    /// 0.8 to 1.2.
    pub jitter: f64,
}

impl Try<'_> {
    /// Since the first try, in seconds.
    fn age_s(&self) -> i64 {
        self.now_s - self.first_try_s.unwrap_or(self.now_s)
    }
}

/// When a failing receiver is tried again, in Unix seconds, whatever its messages wait for.
#[must_use]
pub fn probe_due_s(standing: &Standing) -> i64 {
    standing.last_failure_s.map_or(0, |last_s| last_s + probe_delay(standing.failures))
}

/// Decides after an answer.
#[must_use]
pub fn decide(tried: Try<'_>, answer: &Answer, before: &Standing) -> Verdict {
    match answer {
        Answer::Heard { status: 200..=299, .. } => delivered(tried, before),
        Answer::Ours(why) => ours(tried, why, before),
        Answer::Heard { .. } | Answer::Silent { .. } => failed(tried, answer, before),
    }
}

/// What we could not even send uses no attempts up and says nothing of the receiver; but it is no secret, and not for ever.
fn ours(tried: Try<'_>, why: &str, before: &Standing) -> Verdict {
    let age_s = tried.age_s();
    let is_out = age_s >= WHOLE_S;
    Verdict {
        state: if is_out { DeliveryState::Dead } else { DeliveryState::Pending },
        attempts: tried.due.attempts,
        next_s: (!is_out).then_some(tried.now_s + age_s.clamp(OURS_S.0, OURS_S.1)),
        note: Some("not sent, by a fault of ours".to_owned()),
        standing: Standing { note: Some(format!("not sent, by a fault of ours: {why}")), ..before.clone() },
    }
}

fn delivered(tried: Try<'_>, before: &Standing) -> Verdict {
    Verdict {
        state: DeliveryState::Delivered,
        attempts: tried.due.attempts + 1,
        next_s: None,
        note: None,
        standing: Standing {
            state: if before.state == EndpointState::Disabled { before.state } else { EndpointState::Active },
            note: None,
            failures: 0,
            first_failure_s: None,
            last_failure_s: before.last_failure_s,
            last_success_s: Some(tried.now_s),
            slowed: false,
        },
    }
}

fn failed(tried: Try<'_>, answer: &Answer, before: &Standing) -> Verdict {
    let standing = after_failure(tried.now_s, answer, before);
    let was_failing = before.state == EndpointState::Failing;
    let attempts =
        if was_failing { attempts_by_age(tried.age_s()).max(tried.due.attempts) } else { tried.due.attempts + 1 };
    let is_out = if was_failing { tried.age_s() >= WHOLE_S } else { attempts >= SCHEDULE_S.len() as i64 };
    let delay = if standing.state == EndpointState::Failing {
        probe_delay(standing.failures)
    } else {
        usize::try_from(attempts).ok().and_then(|n| SCHEDULE_S.get(n)).copied().unwrap_or(WHOLE_S)
    };
    let least = if is_overload(answer) { OVERLOAD_S } else { 0 };
    let asked = retry_after(answer, tried.now_s).unwrap_or(0).min(MOST_RETRY_AFTER_S);
    let wait = ((delay as f64 * tried.jitter).round() as i64).max(least).max(asked);
    Verdict {
        state: if is_out { DeliveryState::Dead } else { DeliveryState::Pending },
        attempts,
        next_s: (!is_out).then_some(tried.now_s + wait),
        note: note(answer, attempts),
        standing,
    }
}

/// Attempts that the schedule would have made in that time.
fn attempts_by_age(age_s: i64) -> i64 {
    let mut sum = 0;
    SCHEDULE_S
        .iter()
        .take_while(|step| {
            sum += **step;
            sum <= age_s
        })
        .count() as i64
}

/// Wait before a failing receiver is tried again: doubled with every failure.
fn probe_delay(failures: i64) -> i64 {
    let doubled = u32::try_from(failures - FAILING).unwrap_or(0).min(10);
    (PROBE_S.0 << doubled).min(PROBE_S.1)
}

fn after_failure(now_s: i64, answer: &Answer, before: &Standing) -> Standing {
    let failures = before.failures + 1;
    let first_failure_s = before.first_failure_s.unwrap_or(now_s);
    let is_gone = matches!(answer, Answer::Heard { status: 410, .. });
    let (state, note) = if before.state == EndpointState::Disabled {
        (EndpointState::Disabled, before.note.clone())
    } else if is_gone {
        (EndpointState::Disabled, Some("it answered 410 Gone".to_owned()))
    } else if now_s - first_failure_s >= DISABLE_S {
        (EndpointState::Disabled, Some("it has accepted nothing for five days".to_owned()))
    } else if failures >= FAILING {
        (EndpointState::Failing, Some(format!("{failures} failures in a row; the last: {}", said(answer))))
    } else {
        (before.state, None)
    };
    Standing {
        state,
        note,
        failures,
        first_failure_s: Some(first_failure_s),
        last_failure_s: Some(now_s),
        last_success_s: before.last_success_s,
        slowed: before.slowed || is_overload(answer),
    }
}

/// An answer in a few words.
#[must_use]
pub fn said(answer: &Answer) -> String {
    match answer {
        Answer::Heard { status, .. } => format!("status {status}"),
        Answer::Silent { error, .. } | Answer::Ours(error) => error.clone(),
    }
}

fn is_overload(answer: &Answer) -> bool {
    matches!(answer, Answer::Heard { status: 429 | 502 | 504, .. } | Answer::Silent { is_timeout: true, .. })
}

/// What a person should know.
fn note(answer: &Answer, attempts: i64) -> Option<String> {
    match answer {
        Answer::Heard { status: 300..=399, .. } => Some(match answer.header("location") {
            Some(place) => {
                format!("redirects are not followed; it points to {}", place.chars().take(200).collect::<String>())
            }
            None => "redirects are not followed".to_owned(),
        }),
        Answer::Heard { status: 401 | 403 | 404, .. } if attempts >= 3 => {
            Some("will probably not heal by itself".to_owned())
        }
        _ => None,
    }
}

/// Seconds that a receiver asks us to wait: `Retry-After` as seconds or a date, or `retry_after` in a JSON body.
fn retry_after(answer: &Answer, now_s: i64) -> Option<i64> {
    let Answer::Heard { status: 429 | 503, body, .. } = answer else { return None };
    let by_header = answer.header("retry-after").and_then(|value| {
        let value = value.trim();
        let date = || DateTime::parse_from_rfc2822(value).ok().map(|at| at.timestamp() - now_s);
        value.parse::<i64>().ok().or_else(date)
    });
    let by_body = || {
        let json: serde_json::Value = serde_json::from_str(body).ok()?;
        json.get("retry_after")?.as_f64().map(|seconds| seconds.ceil() as i64)
    };
    by_header.or_else(by_body).map(|seconds| seconds.max(0))
}

#[cfg(test)]
mod tests {
    use plumbline_store::EndpointId;

    use super::*;

    const NOW: i64 = 1_796_083_200;

    fn due(attempts: i64) -> Due {
        Due {
            endpoint: EndpointId(1),
            message: "msg_1".to_owned(),
            kind: "ping".to_owned(),
            body: Vec::new(),
            attempts,
            tries: attempts,
            first_try_ms: None,
            is_replay: false,
        }
    }

    fn fine() -> Standing {
        Standing {
            state: EndpointState::Active,
            note: None,
            failures: 0,
            first_failure_s: None,
            last_failure_s: None,
            last_success_s: None,
            slowed: false,
        }
    }

    fn heard(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Answer::Heard { status, headers, body: body.to_owned() }
    }

    fn after(attempts: i64, answer: &Answer, before: &Standing) -> Verdict {
        let due = due(attempts);
        decide(Try { due: &due, first_try_s: None, now_s: NOW, jitter: 1.0 }, answer, before)
    }

    #[test]
    fn ten_attempts_are_spread_over_three_days_and_then_it_is_dead() {
        assert_eq!(SCHEDULE_S.iter().sum::<i64>(), WHOLE_S);
        for (attempts, wait) in SCHEDULE_S.iter().enumerate().skip(1) {
            let verdict = after(attempts as i64 - 1, &heard(500, &[], ""), &fine());
            assert_eq!(verdict.next_s, Some(NOW + wait), "after {attempts}");
            assert_eq!(verdict.state, DeliveryState::Pending);
        }
        let last = after(9, &heard(500, &[], ""), &fine());
        assert_eq!((last.state, last.next_s, last.attempts), (DeliveryState::Dead, None, 10));
    }

    #[test]
    fn an_accepted_message_forgives_everything() {
        let before = Standing { failures: 7, first_failure_s: Some(1), slowed: true, ..fine() };
        let verdict = after(3, &heard(204, &[], ""), &before);
        assert_eq!(verdict.state, DeliveryState::Delivered);
        assert_eq!((verdict.standing.failures, verdict.standing.slowed), (0, false));
        assert_eq!(verdict.standing.last_success_s, Some(NOW));
    }

    #[test]
    fn a_receiver_that_asks_for_time_gets_it_up_to_a_day() {
        for (headers, body, wait) in [
            (&[("retry-after", "120")][..], "", 120),
            (&[("Retry-After", "Tue, 01 Dec 2026 00:10:00 GMT")], "", 600),
            (&[], r#"{"retry_after": 64.57}"#, 65),
            (&[("retry-after", "999999")], "", 86_400),
            (&[("retry-after", "soon")], "", 60),
            (&[], "", 60),
        ] {
            let verdict = after(0, &heard(429, headers, body), &fine());
            assert_eq!(verdict.next_s, Some(NOW + wait), "{headers:?} {body}");
            assert!(verdict.standing.slowed);
        }
        assert_eq!(after(0, &heard(503, &[("retry-after", "90")], ""), &fine()).next_s, Some(NOW + 90));
        assert_eq!(after(0, &heard(500, &[("retry-after", "90")], ""), &fine()).next_s, Some(NOW + 5));
    }

    #[test]
    fn gone_switches_it_off_at_once() {
        let verdict = after(0, &heard(410, &[], ""), &fine());
        assert_eq!(verdict.standing.state, EndpointState::Disabled);
        assert_eq!(verdict.state, DeliveryState::Pending, "the message waits for whoever switches it on again");
    }

    #[test]
    fn ten_failures_in_a_row_make_it_failing_and_five_days_switch_it_off() {
        let nine = Standing { failures: 9, first_failure_s: Some(NOW - 60), ..fine() };
        let tenth = after(6, &heard(500, &[], ""), &nine);
        assert_eq!(tenth.next_s, Some(NOW + 300), "it is a probe from now on, not the eighth attempt");
        let failing = tenth.standing;
        assert_eq!((failing.state, probe_due_s(&failing)), (EndpointState::Failing, NOW + 300));
        let long = Standing { first_failure_s: Some(NOW - 5 * 86_400), ..failing };
        assert_eq!(after(0, &heard(500, &[], ""), &long).standing.state, EndpointState::Disabled);
    }

    #[test]
    fn a_failing_receiver_is_probed_without_using_attempts_up_faster_than_the_schedule() {
        let before =
            Standing { state: EndpointState::Failing, failures: 12, first_failure_s: Some(NOW - 900), ..fine() };
        let due = due(2);
        let probe = |age_s: i64| {
            let tried = Try { due: &due, first_try_s: Some(NOW - age_s), now_s: NOW, jitter: 1.0 };
            decide(tried, &heard(500, &[], ""), &before)
        };
        let early = probe(900);
        assert_eq!((early.state, early.attempts), (DeliveryState::Pending, 3));
        assert_eq!(early.next_s, Some(NOW + 2_400), "the fourth probe is 300 s doubled three times");
        assert_eq!(probe(WHOLE_S).state, DeliveryState::Dead);
    }

    #[test]
    fn what_will_not_heal_is_said_and_a_fault_of_ours_counts_for_nothing() {
        assert_eq!(after(1, &heard(401, &[], ""), &fine()).note, None);
        assert!(after(2, &heard(401, &[], ""), &fine()).note.unwrap().contains("not heal"));
        let moved = after(0, &heard(301, &[("location", "https://new.example/")], ""), &fine());
        assert!(moved.note.unwrap().contains("https://new.example/"));
    }

    #[test]
    fn a_fault_of_ours_counts_for_nothing_and_is_said_tried_ever_less_often_and_given_up_in_the_end() {
        let due = due(4);
        let ours = |age_s: i64| {
            let tried = Try { due: &due, first_try_s: Some(NOW - age_s), now_s: NOW, jitter: 1.0 };
            decide(tried, &Answer::Ours("no token".to_owned()), &fine())
        };
        let first = ours(0);
        assert_eq!((first.attempts, first.standing.failures, first.standing.state), (4, 0, EndpointState::Active));
        assert_eq!(first.standing.note.as_deref(), Some("not sent, by a fault of ours: no token"));
        let waits = [0, 60, 120, 7_200].map(|age_s| ours(age_s).next_s.unwrap() - NOW);
        assert_eq!(waits, [60, 60, 120, 3_600]);
        assert_eq!((ours(WHOLE_S).state, ours(WHOLE_S).next_s), (DeliveryState::Dead, None));
        let noted = Standing { note: first.standing.note, ..fine() };
        assert_eq!(after(0, &heard(500, &[], ""), &noted).standing.note, None, "now it is theirs");
    }
}
