//! Every fault that a crawl left alone has to survive, in short; `tests/faults.py` makes the same runs long.

mod support;

use std::process::Command;

use support::shared;

#[test]
fn faults_of_network_clock_disk_and_processes_lose_and_double_nothing() {
    let Some(registry) = shared("fleet/fake_registry.py") else { return };
    let shared = registry.ancestors().nth(2).expect("two folders up");
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults.py"))
        .arg(env!("CARGO_BIN_EXE_plumbline"))
        .arg(shared)
        .args(["--kills", "12", "--cut", "12", "--beside", "3"])
        .current_dir(folder.path())
        .output()
        .expect("python3 is there");
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
}
