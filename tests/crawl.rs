//! One crawl, from sources to the summary, against servers that behave and servers that do not.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use support::{crawl, entry, eventually, json_answer, ok_answer, plumbline, registry, server, settings, status_answer};

/// An agent card without fault, on a host that is no placeholder.
fn card() -> String {
    include_str!("../rules/examples/a2a-1.0.json").replace("example.com", "tides.dev")
}

#[test]
fn the_sample_is_crawled_whole_without_a_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let (summary, output) = crawl(folder.path(), &["--sample"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let registry = &summary["registries"][0];
    assert_eq!((&registry["entries"], &registry["complete"]), (&12.into(), &true.into()), "{summary}");
    // Eleven names and six agents; two agents give no card.
    assert_eq!(summary["headlines"]["targets"], 17, "{summary}");
    assert!(
        summary["headlines"]["sound"].as_i64() > Some(3) && summary["headlines"]["blocked"].as_i64() > Some(0),
        "{summary}"
    );
    assert!(folder.path().join("plumbline-sample.db").is_file(), "the sample has a database of its own");
}

#[test]
fn every_page_of_a_registry_is_read_and_a_second_crawl_doubles_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(250, |_, _| None);
    settings(folder.path(), Some(&registry.base), &[]);
    for round in 0..2 {
        let (summary, _) = crawl(folder.path(), &["--full"]);
        assert_eq!(summary["registries"][0]["entries"], 250, "round {round}: {summary}");
        assert_eq!(summary["headlines"]["targets"], 250, "round {round}: {summary}");
        assert_eq!(summary["headlines"]["sound"], 250, "round {round}: {summary}");
    }
}

#[test]
fn a_registry_that_fails_for_a_while_is_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(150, |n, _| (n == 1).then(|| status_answer(503)));
    settings(folder.path(), Some(&registry.base), &[]);
    let (summary, output) = crawl(folder.path(), &[]);
    assert_eq!(summary["registries"][0]["complete"], true, "{summary}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(registry.pages_served.load(Ordering::SeqCst), 3);
}

#[test]
fn a_cut_walk_is_incomplete_and_takes_nothing_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = registry(300, |n, _| {
        (n == 4).then(|| json_answer(&serde_json::json!({"servers": "soon"}))).or((n > 4).then(|| status_answer(401)))
    });
    settings(folder.path(), Some(&registry.base), &[]);
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!(summary["registries"][0]["complete"], true, "{summary}");
    let (summary, output) = crawl(folder.path(), &["--full"]);
    assert_eq!(summary["registries"][0]["complete"], false, "{summary}");
    assert!(summary["registries"][0]["problem"].as_str().is_some_and(|p| p.contains("key")), "{summary}");
    assert_eq!(summary["headlines"]["targets"], 300, "{summary}");
    assert_eq!(output.status.code(), Some(1), "a source that was not read to its end shows in the exit status");
}

#[test]
fn a_cursor_that_comes_back_ends_the_walk() {
    let folder = tempfile::tempdir().expect("a folder");
    let looping = |_: usize, _: &support::Asked| {
        Some(json_answer(&serde_json::json!({"servers": [entry(1)], "metadata": {"nextCursor": "again"}})))
    };
    let registry = registry(0, looping);
    settings(folder.path(), Some(&registry.base), &[]);
    let (summary, _) = crawl(folder.path(), &["--full"]);
    assert_eq!(summary["registries"][0]["complete"], false, "{summary}");
    assert!(registry.pages_served.load(Ordering::SeqCst) <= 3);
}

#[test]
fn cards_are_found_at_both_paths_and_faults_are_outcomes() {
    let current = server(|asked| match asked.path.as_str() {
        "/.well-known/agent-card.json" => ok_answer("application/json", &card()),
        _ => status_answer(404),
    });
    let legacy = server(|asked| match asked.path.as_str() {
        "/.well-known/agent.json" => ok_answer("application/json", &card()),
        _ => status_answer(404),
    });
    let page = server(|_| ok_answer("text/html", "<!doctype html><title>Hello</title>"));
    let cut = server(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"name\"".to_vec());
    let garbage = server(|_| b"\x00\x01\x02nonsense".to_vec());
    let gone = "127.0.0.1:1".to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let mut cards: Vec<String> =
        [current, legacy, page, cut, garbage].iter().map(|address| format!("http://{address}/")).collect();
    cards.push(format!("http://{gone}/"));
    settings(folder.path(), None, &cards);
    let (summary, output) = crawl(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "what targets do is no failure of ours");
    let headlines = &summary["headlines"];
    assert_eq!(headlines["targets"], 6, "{summary}");
    assert_eq!(headlines["not_evaluated"], 3, "cut, garbage and gone: {summary}");
    assert_eq!(headlines["blocked"], 1, "the page: {summary}");
    assert_eq!(headlines["sound"], 2, "both cards: {summary}");
}

#[test]
fn a_card_under_a_path_is_judged_although_robots_txt_was_asked_first() {
    let agent = server(|asked| match asked.path.as_str() {
        "/robots.txt" => ok_answer("text/plain", "User-agent: *\nDisallow: /private\n"),
        "/agents/tides.json" => ok_answer("application/json", &card()),
        _ => status_answer(404),
    });
    let folder = tempfile::tempdir().expect("a folder");
    settings(
        folder.path(),
        None,
        &[format!("http://{agent}/agents/tides.json"), format!("http://{agent}/private/card.json")],
    );
    let (summary, _) = crawl(folder.path(), &[]);
    let headlines = &summary["headlines"];
    assert_eq!((&headlines["sound"], &headlines["not_evaluated"]), (&1.into(), &1.into()), "{summary}");
}

#[test]
fn an_agent_that_asks_for_credentials_is_neither_sound_nor_accused() {
    let gated = server(|_| {
        b"HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
    });
    let empty = server(|_| status_answer(404));
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), None, &[format!("http://{gated}/"), format!("http://{empty}/")]);
    let (summary, _) = crawl(folder.path(), &[]);
    assert_eq!(summary["headlines"]["not_evaluated"], 2, "{summary}");
    assert_eq!(summary["opened"], 0, "{summary}");
}

#[test]
fn one_address_is_asked_and_judged_as_the_crawler_would() {
    let agent = server(|asked| match asked.path.as_str() {
        "/.well-known/agent-card.json" => ok_answer("application/json", &card()),
        _ => status_answer(404),
    });
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), None, &[format!("http://{agent}/")]);
    let check = |url: String| plumbline(folder.path()).args(["check", &url]).output().expect("it runs");
    let output = check(format!("http://{agent}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("judged as a2a-1.0") && said.contains("Sound"), "{said}");
    let output = check("http://127.0.0.1:1/".to_owned());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody listens"));
}

#[test]
fn a_private_address_is_not_called_unless_allowed() {
    let agent = server(|_| ok_answer("application/json", &card()));
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), None, &[format!("http://{agent}/")]);
    let (summary, _) = crawl(folder.path(), &["--set", "net.allow_networks=[]"]);
    assert_eq!(summary["headlines"]["not_evaluated"], 1, "{summary}");
}

#[test]
fn a_database_that_cannot_be_used_is_named_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    settings(folder.path(), None, &["agent.example".to_owned()]);
    std::fs::write(folder.path().join("text.db"), "this is no database, however long it goes on about it\n".repeat(50))
        .expect("it is written");
    let rows = [("text.db", "not a database"), ("no/such/folder/x.db", "no/such/folder")];
    for (database, words) in rows {
        let output = plumbline(folder.path()).args(["crawl", "--database", database]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{database}: {said}");
    }
}

/// Writes settings that watch one card of one's own, with what is settled about rules.
fn own_card(folder: &std::path::Path, rules: &str) {
    let card = include_str!("../rules/examples/a2a-1.0.json").replace("example.com", "tides.dev");
    std::fs::write(folder.join("card.json"), card.replacen("\"Tide Tables\"", "\"\"", 1)).expect("it is written");
    let watched = "[[files]]\npath = \"card.json\"\nkind = \"a2a-card\"\nown = true\ntags = [\"tier=2\"]\n";
    std::fs::write(folder.join("plumbline.toml"), format!("{watched}{rules}")).expect("it is written");
}

#[test]
fn what_is_settled_about_a_rule_counts_at_once_and_is_nobodys_fix_or_regression() {
    let folder = tempfile::tempdir().expect("a folder");
    let about = |more: &str| format!("[[rules]]\nrule = \"a2a/empty-required-string\"\n{more}\n");
    let rows = [
        ("", "deviates"),
        (&about("say = \"off\"\nown = true"), "sound"),
        ("", "deviates"),
        (&about("say = \"warning\"\ntag = \"tier=2\""), "sound"),
        (&about("say = \"off\"\ntag = \"tier=1\""), "deviates"),
        (&about("say = \"off\""), "sound"),
    ];
    for (number, (rules, word)) in rows.into_iter().enumerate() {
        own_card(folder.path(), rules);
        let (summary, _) = crawl(folder.path(), &[]);
        assert_eq!(summary["headlines"][word], 1, "row {number}: {summary}");
        assert_eq!(summary["regressed"], 0, "row {number}: {summary}");
        let (summary, _) = crawl(folder.path(), &[]);
        assert_eq!(summary["looked_at"], 0, "row {number}: nothing is left to be judged again: {summary}");
    }
}

#[test]
fn what_has_changed_in_a_card_is_told_and_stays_told_while_nothing_else_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = include_str!("../rules/examples/a2a-1.0.json").replace("example.com", "tides.dev");
    let at_once = "[crawl]\ncard_interval_s = 0\n";
    own_card(folder.path(), at_once);
    let served = |text: &str| std::fs::write(folder.path().join("card.json"), text).expect("it is written");
    let elsewhere = card.replace("https://tides.tides.dev/a2a", "https://tides.coins.dev/a2a");
    assert_ne!(card, elsewhere);
    // A change is told when it was seen twice, as everything is.
    let rows = [
        (card.as_str(), "sound"),
        (&card, "sound"),
        (&elsewhere, "sound"),
        (&elsewhere, "deviates"),
        (&elsewhere, "deviates"),
    ];
    for (number, (text, word)) in rows.into_iter().enumerate() {
        served(text);
        let summary = eventually("the card is looked at", Duration::from_secs(20), || {
            Some(crawl(folder.path(), &[]).0).filter(|summary| summary["looked_at"] == 1)
        });
        assert_eq!(summary["headlines"][word], 1, "row {number}: {summary}");
    }
}

#[test]
fn the_keys_that_a_card_names_are_asked_for_and_its_signature_is_held_against_them() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let signed = |address: &std::net::SocketAddr| {
        let header = format!(r#"{{"alg":"EdDSA","typ":"JOSE","kid":"k1","jku":"http://{address}/jwks.json"}}"#);
        let signature = format!(
            r#"{{ "signatures": [{{ "protected": "{}", "signature": "{}" }}],"#,
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode([7; 64])
        );
        card().replacen('{', &signature, 1)
    };
    let keys = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    for (has_keys, word) in [(true, "deviates"), (false, "sound")] {
        let asked = Arc::new(AtomicUsize::new(0));
        let place = Arc::new(OnceLock::new());
        let (counted, own) = (asked.clone(), place.clone());
        let address = server(move |request| match request.path.as_str() {
            "/.well-known/agent-card.json" => {
                ok_answer("application/json", &signed(own.get().expect("it was asked after it was told")))
            }
            "/jwks.json" => {
                counted.fetch_add(1, Ordering::SeqCst);
                if has_keys { ok_answer("application/json", keys) } else { status_answer(404) }
            }
            _ => status_answer(404),
        });
        place.set(address).expect("it is told once");
        let folder = tempfile::tempdir().expect("a folder");
        settings(folder.path(), None, &[format!("http://{address}/")]);
        let (summary, _) = crawl(folder.path(), &[]);
        assert_eq!(summary["headlines"][word], 1, "{summary}");
        assert_eq!(asked.load(Ordering::SeqCst), 1, "the key set is asked for once");
    }
}

#[test]
fn a_budget_is_spent_to_its_last_look_and_then_the_rest_waits() {
    let agents = server(|asked| match asked.path.as_str() {
        path if path.ends_with("/card.json") => ok_answer("application/json", &card()),
        _ => status_answer(404),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let cards: Vec<String> = (0..30).map(|n| format!("http://{agents}/{n}/card.json")).collect();
    settings(folder.path(), None, &cards);
    let (summary, output) = crawl(folder.path(), &["--set", "crawl.looks_per_hour=10"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&summary["looked_at"], &summary["headlines"]["not_evaluated"]), (&10.into(), &20.into()), "{summary}");
    let (rest, _) = crawl(folder.path(), &[]);
    assert_eq!(rest["looked_at"], 20, "without a budget the rest is looked at: {rest}");
}
