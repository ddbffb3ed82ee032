//! Long random stories: the two databases tell them alike, a clock that goes back tells nothing twice, and a process that
//! is killed loses nothing that was told.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use plumbline_store::deploys::Marker;
use plumbline_store::doctor::Hand;
use plumbline_store::record::{Observation, Place};
use plumbline_store::words::Evidence;
use plumbline_store::{RulesetId, Store, SurfaceId, TargetId};
use sqlx::Row;

use crate::support::{
    HOUR, NOON, card, domains, events, for_each_database, judged, number, rules, seen, surface_of, unseen,
};

/// A small generator of numbers, the same everywhere (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.roll(n) == 0
    }
}

/// Rules of three kinds of evidence.
async fn ruleset(store: &Store, version: u32) -> RulesetId {
    let mut all = rules();
    all[0].version = version;
    all[1].evidence = Evidence::Live;
    all[3].evidence = Evidence::Time;
    store.ensure_ruleset("1", &all, NOON - 100 * HOUR).await.unwrap()
}

/// What one surface is like at present.
#[derive(Clone, Copy)]
struct Face {
    document: u64,
    letters: [bool; 3],
    is_silent: bool,
}

/// Two hundred looks at eight surfaces: documents, verdicts and silence come and go, rules change, markers are told.
/// `clock` gives the moment that a look claims for itself.
async fn play(store: &Store, seed: u64, clock: impl Fn(usize, i64) -> i64) {
    let mut dice = Dice(seed);
    let source = domains(store).await;
    let cards: Vec<_> = (0..8).map(|n| card(&format!("h{n}.example"))).collect();
    store.add_targets(source, &cards, NOON).await.unwrap();
    let mut surfaces = Vec::new();
    for n in 0..8 {
        surfaces.push(surface_of(store, &format!("h{n}.example")).await);
    }
    let mut faces = [Face { document: 0, letters: [false; 3], is_silent: false }; 8];
    let mut version = 1;
    let mut at = NOON;
    for n in 0..200 {
        let is_verification = dice.one_in(3);
        at += if is_verification { 60 } else { HOUR };
        if dice.one_in(60) {
            version += 1;
        }
        let rules = ruleset(store, version).await;
        let place = Place { address: Some(format!("203.0.113.{}", dice.roll(3))), ..Place::default() };
        let mut batch = Vec::new();
        for (face, surface) in faces.iter_mut().zip(&surfaces) {
            change(&mut dice, face);
            batch.push(look(*surface, rules, clock(n, at), is_verification, face, &place, dice.one_in(12)));
        }
        store.record(&batch).await.unwrap();
        if dice.one_in(20) {
            let key = Some(format!("run {n}"));
            let marker = Marker { at_s: clock(n, at), dedupe_key: key, ..Marker::default() };
            store.mark_deploy(TargetId(1 + dice.roll(8) as i64), &marker).await.unwrap();
        }
        store.settle_deploys(clock(n, at)).await.unwrap();
    }
}

fn change(dice: &mut Dice, face: &mut Face) {
    if dice.one_in(9) {
        face.document = dice.roll(4);
    }
    for letter in &mut face.letters {
        *letter ^= dice.one_in(8);
    }
    if dice.one_in(10) {
        face.is_silent = !face.is_silent;
    }
}

fn look(
    surface: SurfaceId,
    rules: RulesetId,
    at: i64,
    is_verification: bool,
    face: &Face,
    place: &Place,
    is_broken: bool,
) -> Observation {
    if face.is_silent {
        return Observation { is_verification, ..unseen(surface, at, "unreachable:connect_timeout") };
    }
    let letter = |n: usize| {
        if is_broken {
            'U'
        } else if face.letters[n] {
            'F'
        } else {
            'P'
        }
    };
    let said = judged(rules, &[("a2a/e", letter(0)), ("a2a/w", letter(1)), ("common/json", letter(2))]);
    let text = format!("{{\"document\":{}}}", face.document);
    let version = Some(format!("1.{}", face.document / 2));
    Observation {
        is_verification,
        declared_version: version,
        place: Some(place.clone()),
        ..seen(surface, at, &text, said)
    }
}

/// Everything that was told and kept, as text.
async fn all_of(store: &Store) -> String {
    let mut text = String::new();
    for statement in [
        "SELECT CAST(id AS BIGINT), at_s, CAST(kind AS BIGINT), target_id, surface_id, rule_id, subject_id, a, b, note FROM event ORDER BY id",
        "SELECT id, surface_id, rule_id, opens, confirmations, flips, refuted, observed, flips_at, state FROM finding ORDER BY id",
        "SELECT finding_id, from_s, to_s, open_doc, close_doc, open_deploy, close_deploy, occ_set_id, 0,
                opened_as || ' ' || cause || ' ' || COALESCE(resolution, '-') || ' ' || COALESCE(confidence, '-') || ' ' || COALESCE(close_confidence, '-')
         FROM finding_span ORDER BY finding_id, from_s",
        "SELECT surface_id, from_s, to_s, probes, 0, 0, 0, 0, 0, state FROM reach_span ORDER BY surface_id, from_s",
        "SELECT id, target_id, at_s, told, weight, crawl_id, settled_s, 0, 0, signals || COALESCE(outcome, '-') FROM deploy ORDER BY id",
        "SELECT incident_id, surface_id, joined_s, left_s, 0, 0, 0, 0, 0, '' FROM incident_member ORDER BY incident_id, surface_id",
        "SELECT cohort_id, day, targets, sound, deviates, blocked, up, down, opened, '' FROM cohort_day ORDER BY cohort_id, day",
    ] {
        for row in sqlx::query(statement).fetch_all(store.reader()).await.unwrap() {
            let numbers: Vec<Option<i64>> = (0..9).map(|n| row.get(n)).collect();
            let words: Option<String> = row.get(9);
            text.push_str(&format!("{numbers:?} {words:?}\n"));
        }
    }
    text
}

async fn is_true_to_itself(store: &Store) {
    let found = store.examine(Hand::Look, NOON, |_| true).await.unwrap();
    assert_eq!(found.left(), 0, "{found:#?}");
    let days = store.recount_days(Hand::Look, NOON, |_, _| {}).await.unwrap();
    assert_eq!(days.wrong, 0, "{days:#?}");
}

/// Each span began with one event and each end with another, and no number of an event is missing.
async fn nothing_is_lost(store: &Store) {
    for (what, is, should) in [
        ("events", "SELECT COUNT(*) FROM event", "SELECT COALESCE(MAX(id), 0) FROM event"),
        ("beginnings", "SELECT COUNT(*) FROM finding_span", "SELECT COUNT(*) FROM event WHERE kind IN (1, 2)"),
        (
            "ends",
            "SELECT COUNT(*) FROM finding_span WHERE to_s IS NOT NULL",
            "SELECT COUNT(*) FROM event WHERE kind = 3",
        ),
    ] {
        assert_eq!(number(store, is).await, number(store, should).await, "{what}");
    }
}

#[tokio::test]
async fn both_databases_tell_the_same_stories() {
    for seed in [1, 2] {
        let told = Mutex::new(Vec::new());
        for_each_database(async |store| {
            play(&store, seed, |_, at| at).await;
            is_true_to_itself(&store).await;
            assert!(store.recountable_days().await.unwrap().len() > 3, "days are counted again");
            let all = all_of(&store).await;
            told.lock().unwrap().push(all);
        })
        .await;
        let told = told.into_inner().unwrap();
        for other in &told[1..] {
            for (n, (one, other)) in told[0].lines().zip(other.lines()).enumerate() {
                assert_eq!(one, other, "seed {seed}, line {n}");
            }
            assert_eq!(told[0].len(), other.len());
        }
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_an_hour_tells_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    // The clock is right; it is set back for good; it is behind for a while.
    let clocks: [fn(usize, i64) -> i64; 3] = [
        |_, at| at,
        |n, at| if n < 100 { at } else { at - HOUR },
        |n, at| if (100..110).contains(&n) { at - HOUR } else { at },
    ];
    for (n, clock) in clocks.into_iter().enumerate() {
        let path = folder.path().join(format!("{n}.db"));
        let store = Store::open(path.to_str().unwrap()).await.unwrap();
        play(&store, 3, clock).await;
        is_true_to_itself(&store).await;
        let mut counts = BTreeMap::new();
        for word in events(&store).await.into_iter().filter(|word| word.starts_with("finding.")) {
            *counts.entry(word).or_insert(0) += 1;
        }
        told.push(counts);
        store.close().await;
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
}

/// Runs in a process of its own until it is killed: looks at four surfaces for ever, going on where the last one stopped.
#[tokio::test]
#[ignore = "it is what is killed in the test below"]
async fn looks_until_it_is_killed() {
    let Ok(path) = std::env::var("PLUMBLINE_CRASH_DATABASE") else { return };
    let store = Store::open(&path).await.unwrap();
    let rules = ruleset(&store, 1).await;
    let source = domains(&store).await;
    let cards: Vec<_> = (0..4).map(|n| card(&format!("h{n}.example"))).collect();
    store.add_targets(source, &cards, NOON).await.unwrap();
    let last: Option<i64> =
        sqlx::query_scalar("SELECT MAX(last_attempt_s) FROM surface").fetch_one(store.reader()).await.unwrap();
    let mut at = last.unwrap_or(NOON);
    loop {
        // A finding begins or ends every five days at each surface, which is too seldom to flap.
        at += 6 * HOUR;
        let mut batch = Vec::new();
        for n in 0..4 {
            let surface = surface_of(&store, &format!("h{n}.example")).await;
            let phase = (at / (6 * HOUR) + n * 7) / 20;
            let letter = if phase % 2 == 0 { 'F' } else { 'P' };
            batch.push(seen(surface, at, &format!("{{\"phase\":{phase}}}"), judged(rules, &[("a2a/e", letter)])));
        }
        store.record(&batch).await.unwrap();
    }
}

/// Kills the process above at random moments; `PLUMBLINE_CRASHES` sets how often (200 for the full run).
#[tokio::test]
async fn a_process_that_is_killed_loses_nothing_that_was_told() {
    let crashes = std::env::var("PLUMBLINE_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("crash.db").to_str().unwrap().to_owned();
    let mut dice = Dice(4);
    for _ in 0..crashes {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "stories::looks_until_it_is_killed", "--ignored", "--quiet"])
            .env("PLUMBLINE_CRASH_DATABASE", &path)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // When exactly it dies is of no matter to what is asserted.
        tokio::time::sleep(Duration::from_millis(400 + dice.roll(900))).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let store = Store::open(&path).await.unwrap();
        is_true_to_itself(&store).await;
        nothing_is_lost(&store).await;
        store.close().await;
    }
    let store = Store::open(&path).await.unwrap();
    assert!(store.newest_event().await.unwrap().0 > 0, "something was told at all");
    store.close().await;
}
