//! How fast, measured and not asserted: `cargo test -p plumbline-alerts --test telling -- --ignored --nocapture throughput`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_alerts::courier::system_clock;
use plumbline_crawler::net::NetSettings;
use plumbline_store::hooks::Mode;
use plumbline_store::words::EventKind;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::support::{Behaviour, Receiver, World, append, parts, says};

/// Resident memory of this process, in megabytes.
fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes and asserts nothing about time"]
async fn throughput_of_ten_thousand_messages_to_fifty_receivers_of_which_ten_are_dead() {
    let world = World::new().await;
    let mut healthy = Vec::new();
    for n in 0..50 {
        let behaviour = match n {
            0..=4 => Behaviour::Hangs(Arc::new(Notify::new())),
            5..=9 => Behaviour::Resets,
            _ => says("204 No Content"),
        };
        let receiver = Receiver::new(vec![behaviour]).await;
        let id = world.endpoint(&format!("r{n}"), &receiver.url(), Mode::Events).await;
        if n >= 10 {
            healthy.push((id, receiver));
        }
    }
    sqlx::query("UPDATE wh_endpoint SET per_minute = 300").execute(world.store.writer()).await.unwrap();
    let folder = std::path::Path::new(&world.path).parent().unwrap().to_owned();
    let (store, teller, courier) = parts(&world.path, &folder, NetSettings::default(), system_clock()).await;
    for subject in 0..200 {
        append(&store, EventKind::TargetDown, None, subject, None, chrono::Utc::now().timestamp()).await;
    }
    let (stop, began, memory) = (CancellationToken::new(), Instant::now(), resident_mb());
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { tokio::join!(teller.run(stop.clone()), courier.run(stop)) }
    });
    let mut most = memory;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        most = most.max(resident_mb());
        if healthy.iter().all(|(_, receiver)| receiver.requests.lock().unwrap().len() >= 200) {
            break;
        }
        if began.elapsed() > Duration::from_secs(300) {
            break;
        }
    }
    let took = began.elapsed().as_secs_f64();
    let least = healthy.iter().map(|(_, receiver)| receiver.requests.lock().unwrap().len()).min().unwrap_or(0);
    let in_order = healthy.iter().filter(|(_, receiver)| receiver.ids().is_sorted()).count();
    println!(
        "200 events to 50 receivers (10 dead): every healthy one had {least} after {took:.1} s, {:.0} a minute; \
         {in_order} of 40 wholly in order; memory {memory} to {most} MB",
        least as f64 / took * 60.0
    );
    stop.cancel();
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute and asserts nothing about time"]
async fn throughput_from_an_event_to_its_first_byte() {
    let world = World::new().await;
    let receiver = Receiver::new(vec![says("204 No Content")]).await;
    world.endpoint("r", &receiver.url(), Mode::Events).await;
    let folder = std::path::Path::new(&world.path).parent().unwrap().to_owned();
    let (store, teller, courier) = parts(&world.path, &folder, NetSettings::default(), system_clock()).await;
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let stop = stop.clone();
        async move { tokio::join!(teller.run(stop.clone()), courier.run(stop)) }
    });
    let mut took = Vec::new();
    for subject in 0..100_usize {
        let began = Instant::now();
        append(&store, EventKind::FindingRegressed, None, subject as i64, None, chrono::Utc::now().timestamp()).await;
        while receiver.requests.lock().unwrap().len() <= subject {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis((subject as u64 * 37) % 300)).await;
    }
    took.sort();
    println!("from an event to its first byte: median {:?}, p99 {:?}, longest {:?}", took[50], took[98], took[99]);
    stop.cancel();
    running.abort();
}
