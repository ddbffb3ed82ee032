//! Killed at any moment, Plumbline goes on where it stood: nothing is lost, nothing doubled.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use support::{Running, crawl, eventually, plumbline, registry, settings};

/// Kills a crawl once the registry has served this many pages.
fn kill_after(folder: &std::path::Path, served: &Arc<AtomicUsize>, pages: usize) {
    let until = served.load(Ordering::SeqCst) + pages;
    let crawl = Running(plumbline(folder).args(["crawl", "--full"]).spawn().expect("it starts"));
    eventually("pages are read", Duration::from_secs(60), || (served.load(Ordering::SeqCst) >= until).then_some(()));
    drop(crawl);
}

#[test]
fn two_kills_in_a_walk_and_the_third_run_ends_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    // A little slow, so that the kills fall into the walk.
    let registry = registry(3000, |_, _| {
        std::thread::park_timeout(Duration::from_millis(30));
        None
    });
    settings(folder.path(), Some(&registry.base), &[]);
    kill_after(folder.path(), &registry.pages_served, 8);
    kill_after(folder.path(), &registry.pages_served, 8);
    let before = registry.pages_served.load(Ordering::SeqCst);
    let (summary, output) = crawl(folder.path(), &["--full"]);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert_eq!(summary["registries"][0]["complete"], true, "{summary}");
    assert_eq!(summary["headlines"]["targets"], 3000, "{summary}");
    assert_eq!(summary["headlines"]["sound"], 3000, "{summary}");
    let asked = registry.pages_served.load(Ordering::SeqCst) - before;
    assert!(asked < 30, "the walk went on from its cursor: {asked} pages");
    let (again, _) = crawl(folder.path(), &["--full"]);
    assert_eq!((&again["headlines"], &again["opened"]), (&summary["headlines"], &0.into()), "nothing doubled");
}

#[test]
fn a_signal_stops_a_crawl_in_time_and_the_next_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(2000, |_, _| {
        std::thread::park_timeout(Duration::from_millis(30));
        None
    });
    settings(folder.path(), Some(&registry.base), &[]);
    let mut running = Running(plumbline(folder.path()).args(["crawl", "--full"]).spawn().expect("it starts"));
    eventually("pages are read", Duration::from_secs(60), || {
        (registry.pages_served.load(Ordering::SeqCst) >= 5).then_some(())
    });
    let pid = running.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let status = eventually("it stops", Duration::from_secs(15), || running.0.try_wait().expect("it can be asked"));
    assert_eq!(status.code(), Some(1), "an interrupted walk is not complete");
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!(summary["headlines"]["sound"], 2000, "{summary}");
}
