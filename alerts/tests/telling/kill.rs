//! The process is killed at any moment, again and again: nothing is lost, and nothing has a second id.
//!
//! The process is this test binary, run again with only [`the_process_that_is_killed`]. PLUMBLINE_KILLS says how often; 6
//! without it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plumbline_alerts::courier::system_clock;
use plumbline_crawler::net::NetSettings;
use plumbline_store::hooks::Mode;
use plumbline_store::words::EventKind;
use tokio_util::sync::CancellationToken;

use crate::support::{Receiver, World, append, parts, says};

const CHILD: &str = "PLUMBLINE_TELLS";

/// Tells and delivers until it is killed; without the variable there is nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_is_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let folder = Path::new(&path).parent().unwrap().to_owned();
    let (_store, teller, courier) = parts(&path, &folder, NetSettings::default(), system_clock()).await;
    let stop = CancellationToken::new();
    tokio::join!(teller.run(stop.clone()), courier.run(stop));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_at_any_moment_loses_no_message_and_gives_none_a_second_id() {
    let kills: u64 = std::env::var("PLUMBLINE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(6);
    let world = World::new().await;
    let receiver = Receiver::new(vec![says("204 No Content"), says("500 Oh"), says("204 No Content")]).await;
    let programs = world.endpoint("programs", &receiver.url(), Mode::Events).await;
    let people = Receiver::new(vec![says("204 No Content")]).await;
    let id = world.endpoint("people", &people.url(), Mode::Groups).await;
    let route = world.route("all", &[id]).await;
    sqlx::query("UPDATE route SET wait_s = 0").execute(world.store.writer()).await.unwrap();
    let _ = route;
    // A row of reactions that fail now and then.
    *receiver.behaviours.lock().unwrap() =
        (0..100_000).map(|n| if n % 7 == 3 { says("500 Oh") } else { says("204 No Content") }).collect();

    let mut subject = 0;
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::the_process_that_is_killed", "--nocapture"])
            .env(CHILD, &world.path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Its start takes a while; the kill lands anywhere between the reading of an event and the keeping of an answer.
        for piece in 0..6_u64 {
            tokio::time::sleep(Duration::from_millis(40 + (kill * 37 + piece * 13) % 60)).await;
            subject += 1;
            append(&world.store, EventKind::TargetDown, None, subject, None, chrono::Utc::now().timestamp()).await;
            if subject % 3 == 0 {
                append(
                    &world.store,
                    EventKind::TargetRecovered,
                    None,
                    subject - 1,
                    None,
                    chrono::Utc::now().timestamp(),
                )
                .await;
            }
        }
        tokio::time::sleep(Duration::from_millis((kill * 53) % 90)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    *receiver.behaviours.lock().unwrap() = [says("204 No Content")].into();
    let (_store, mut teller, mut courier) =
        parts(&world.path, Path::new(&world.path).parent().unwrap(), NetSettings::default(), system_clock()).await;
    let ahead = || -> plumbline_alerts::courier::Clock {
        std::sync::Arc::new(|| chrono::Utc::now().timestamp_millis() + 7_200_000)
    };
    (teller.clock, courier.clock) = (ahead(), ahead());
    for _ in 0..20 {
        teller.events().await.unwrap();
        teller.groups().await.unwrap();
        courier.once().await.unwrap();
        if world.store.backlog(None).await.unwrap().pending == 0 {
            break;
        }
    }
    assert_eq!(world.store.backlog(None).await.unwrap().pending, 0);

    let rows: Vec<(i64, String)> = sqlx::query_as("SELECT event_id, id FROM wh_message WHERE event_id IS NOT NULL")
        .fetch_all(world.store.reader())
        .await
        .unwrap();
    let mut ids: HashMap<i64, HashSet<String>> = HashMap::new();
    rows.into_iter().for_each(|(event, id)| {
        ids.entry(event).or_default().insert(id);
    });
    assert!(ids.values().all(|ids| ids.len() == 1), "an event has one message");
    let events: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM event WHERE kind IN (11, 12)")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    let told = ids.keys().len() as i64;
    let own: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM wh_message WHERE type LIKE 'webhook.%'")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!(told - own, events, "every event has its message");
    let arrived: HashSet<String> = receiver.ids().into_iter().collect();
    let sent = world.store.deliveries(Some(programs), None, None, 100_000).await.unwrap();
    for row in &sent {
        assert!(arrived.contains(&row.message), "{} never arrived", row.message);
    }
    let (openings, distinct): (i64, i64) = sqlx::query_as("SELECT COUNT(*), COUNT(DISTINCT alert_id) FROM alert_told")
        .fetch_one(world.store.reader())
        .await
        .unwrap();
    assert_eq!(openings, distinct, "no opening is told twice to one receiver");
    let silent: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM alert WHERE notified_s IS NOT NULL AND ended_s IS NOT NULL AND end_told_s IS NULL",
    )
    .fetch_one(world.store.reader())
    .await
    .unwrap();
    assert_eq!(silent, 0, "every end of what was told is told");
    println!("{kills} kills, {events} events, {} requests", receiver.ids().len());
}
