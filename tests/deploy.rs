//! `plumbline deploy` and `plumbline token` against a serving Plumbline, as a pipeline uses them.

mod support;

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use support::{eventually, get, plumbline, serve, settings};

const SOUND: &str = include_str!("../rules/examples/a2a-1.0.json");

fn deploy(folder: &Path, server: &str, more: &[&str]) -> Output {
    let server = format!("http://{server}");
    plumbline(folder).args(["deploy", "--server", &server]).args(more).output().expect("it runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_pipeline_is_told_what_came_of_its_deploy() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("card.json");
    std::fs::write(&card, SOUND).expect("written");
    let path = settings(folder.path(), None, &[]);
    let more = format!("[[files]]\npath = {:?}\nkind = \"a2a-card\"\n", card.display().to_string());
    let text = std::fs::read_to_string(&path).expect("settings") + &more;
    std::fs::write(&path, text).expect("written");
    let serving = serve(folder.path(), &[]);
    eventually("the card is judged", Duration::from_secs(60), || {
        get(&serving.address, "/targets/1", "application/json").body.contains("a2a-1.0").then_some(())
    });

    let clean = deploy(folder.path(), &serving.address, &["--target", "1", "--version", "1.1", "--wait", "60"]);
    assert_eq!(clean.status.code(), Some(0), "{}", said(&clean));
    assert!(said(&clean).contains("clean"), "{}", said(&clean));

    // The next version lost its skills' ids: seen at once, believed a minute later.
    std::fs::write(&card, SOUND.replace("\"id\":", "\"idd\":")).expect("written");
    let broken = deploy(folder.path(), &serving.address, &["--target", "1", "--version", "1.2", "--wait", "100"]);
    assert_eq!(broken.status.code(), Some(1), "{}", said(&broken));
    assert!(said(&broken).contains("regressed") && said(&broken).contains("+ error"), "{}", said(&broken));

    let late = deploy(folder.path(), &serving.address, &["--target", "1", "--at", "2020-01-01T00:00:00Z"]);
    assert_eq!(late.status.code(), Some(2), "{}", said(&late));
    let nobody = deploy(folder.path(), "127.0.0.1:1", &["--target", "1"]);
    assert_eq!(nobody.status.code(), Some(2), "{}", said(&nobody));
}

#[test]
fn a_token_is_shown_once_and_ends_when_it_is_revoked() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| plumbline(folder.path()).arg("token").args(arguments).output().expect("it runs");
    let made = run(&["create", "--scope", "deploys:write", "--owner", "harbour", "--title", "pipeline"]);
    let text = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(made.status.success() && text.starts_with("plb_") && text.len() == 68, "{}", said(&made));
    let listed = said(&run(&["list"]));
    assert!(listed.contains(&text[..10]) && listed.contains("only harbour") && !listed.contains(&text), "{listed}");
    assert!(run(&["revoke", "1"]).status.success());
    assert_eq!(run(&["revoke", "1"]).status.code(), Some(2));
    assert!(said(&run(&["list"])).contains("revoked"));
    assert_eq!(run(&["create", "--scope", "everything"]).status.code(), Some(2));
}
