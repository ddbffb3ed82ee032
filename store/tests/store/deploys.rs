//! Deploys: what makes one, what comes of it, and which finding came with which.

use plumbline_store::deploys::{Confidence, FailOn, Marker, Outcome, SignalKind, Whose, judged as called};
use plumbline_store::record::{Observation, Place};
use plumbline_store::targets::{HostName, Link, NewTarget};
use plumbline_store::tokens::{NewToken, Scope, text_of};
use plumbline_store::words::{Role, SurfaceKind, TargetKind};
use plumbline_store::{DeployId, Store, SurfaceId, TargetId};

use crate::support::{
    DAY, HOUR, NOON, card, domains, events, for_each_database, judged, number, one_card, record_confirmed, ruleset,
    seen, unseen,
};

const TARGET: TargetId = TargetId(1);

fn marker(at_s: i64, key: &str) -> Marker {
    Marker { version: Some("2.0".into()), at_s, dedupe_key: Some(key.into()), ..Marker::default() }
}

/// A look at a card that says which version it is, and what `a2a/e` and `a2a/w` say of it.
async fn look(store: &Store, surface: SurfaceId, at: i64, version: &str, text: &str, letters: &str) -> Observation {
    let rules = ruleset(store).await;
    let letters: Vec<char> = letters.chars().collect();
    let said = judged(rules, &[("a2a/e", letters[0]), ("a2a/w", letters[1])]);
    Observation { declared_version: Some(version.into()), ..seen(surface, at, text, said) }
}

/// A card that was there for a day, and passed one rule and failed the other.
async fn settled_card(store: &Store) -> SurfaceId {
    let surface = one_card(store).await;
    for at in [NOON, NOON + DAY] {
        let seen = look(store, surface, at, "1.0", "{\"v\":1}", "PF").await;
        store.record(&[seen]).await.unwrap();
    }
    surface
}

/// The two ends of the newest spans: deploy and confidence of beginning and end.
async fn ends(store: &Store, rule: &str) -> (Option<i64>, Option<String>, Option<i64>, Option<String>) {
    sqlx::query_as(
        "SELECT finding_span.open_deploy, finding_span.confidence, finding_span.close_deploy,
                finding_span.close_confidence
         FROM finding_span
         JOIN finding ON finding.id = finding_span.finding_id
         JOIN rule ON rule.id = finding.rule_id
         WHERE rule.slug = $1
         ORDER BY finding_span.from_s DESC
         LIMIT 1",
    )
    .bind(rule)
    .fetch_one(store.reader())
    .await
    .unwrap()
}

#[tokio::test]
async fn a_new_version_is_a_deploy_and_stands_at_both_ends_of_what_it_did() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        assert!(store.deploys(None, None, 9).await.unwrap().is_empty(), "a first look is none");
        let at = NOON + DAY + HOUR;
        record_confirmed(&store, look(&store, surface, at, "1.1", "{\"v\":2}", "FP").await).await;
        let deploys = store.deploys(Some(TARGET), None, 9).await.unwrap();
        assert_eq!(deploys.len(), 1);
        let deploy = &deploys[0];
        assert_eq!((deploy.at_s, deploy.version.as_deref(), deploy.is_told), (at, Some("1.1"), false));
        let signal = &deploy.signals[0];
        assert_eq!(signal.kind, SignalKind::CardVersion);
        assert_eq!((signal.from.as_deref(), signal.to.as_deref()), (Some("1.0"), Some("1.1")));
        let id = Some(deploy.id);
        let likely = || Some("likely".to_owned());
        assert_eq!(ends(&store, "a2a/e").await, (id, likely(), None, None));
        assert_eq!(ends(&store, "a2a/w").await, (None, Some("none".into()), id, likely()));

        assert_eq!(deploy.outcome, None);
        assert_eq!(store.settle_deploys(at + 60).await.unwrap(), 1);
        assert_eq!(store.settle_deploys(at + 61).await.unwrap(), 0, "once");
        let (deploy, findings) = store.deploy(DeployId(deploy.id)).await.unwrap().unwrap();
        assert_eq!((deploy.outcome, deploy.opened, deploy.resolved), (Some(Outcome::Mixed), 1, 1));
        assert_eq!(findings[0].confidence, Confidence::Likely);
        assert_eq!(called(&findings, FailOn::Blocked), Outcome::Mixed);
        let told = events(&store).await;
        let about: Vec<_> = told.iter().filter(|word| word.starts_with("deploy")).collect();
        assert_eq!(about, ["deploy.recorded", "deploy.evaluated"]);
        assert!(store.deploy(DeployId(99)).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn what_we_are_told_of_is_certain_and_told_twice_is_told_once() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let at = NOON + DAY + HOUR;
        // Somebody happened to look in the very second of the deploy, before it.
        store.record(&[look(&store, surface, at - 60, "1.0", "{\"v\":1}", "PF").await]).await.unwrap();
        let id = store.mark_deploy(TARGET, &marker(at - 60, "run 7")).await.unwrap();
        store.recheck(TARGET, at - 60).await.unwrap();
        assert_eq!(store.mark_deploy(TARGET, &marker(at + 600, "run 7")).await.unwrap(), id);
        assert_eq!(store.settle_deploys(at).await.unwrap(), 0, "nobody looked yet");
        // The same version under another document: the signal belongs to the deploy we know.
        let first = look(&store, surface, at, "1.0", "{\"v\":2}", "FF").await;
        store.record(std::slice::from_ref(&first)).await.unwrap();
        assert_eq!(store.settle_deploys(at + 10).await.unwrap(), 0, "something waits to be confirmed");
        let again = Observation { at_s: at + 60, is_verification: true, ..first };
        store.record(&[again]).await.unwrap();
        assert_eq!(ends(&store, "a2a/e").await.1.as_deref(), Some("certain"));
        let kinds: Vec<_> = store.deploys(None, None, 9).await.unwrap()[0].signals.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [SignalKind::Marker, SignalKind::SilentChange]);
        assert_eq!(store.settle_deploys(at + 70).await.unwrap(), 1);
        let (deploy, _) = store.deploy(id).await.unwrap().unwrap();
        assert_eq!((deploy.outcome, deploy.is_told), (Some(Outcome::Regressed), true));
    })
    .await;
}

#[tokio::test]
async fn a_marker_that_comes_after_the_fact_is_the_deploy_that_was_inferred() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let at = NOON + DAY + HOUR;
        store.record(&[look(&store, surface, at, "1.1", "{\"v\":2}", "PF").await]).await.unwrap();
        let id = store.mark_deploy(TARGET, &marker(at - 200, "run 8")).await.unwrap();
        assert_eq!(number(&store, "SELECT COUNT(*) FROM deploy").await, 1);
        store.settle_deploys(at + 10).await.unwrap();
        let (deploy, _) = store.deploy(id).await.unwrap().unwrap();
        assert_eq!((deploy.outcome, deploy.version.as_deref()), (Some(Outcome::Clean), Some("2.0")));
    })
    .await;
}

#[tokio::test]
async fn without_a_deploy_none_is_blamed_and_with_several_none_for_sure() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let at = NOON + DAY + HOUR;
        // Only the rule's verdict moves, on the same document.
        record_confirmed(&store, look(&store, surface, at, "1.0", "{\"v\":1}", "FF").await).await;
        assert_eq!(ends(&store, "a2a/e").await, (None, Some("none".into()), None, None));
        // Two deploys between two looks.
        store.mark_deploy(TARGET, &marker(at + HOUR, "a")).await.unwrap();
        let later = store.mark_deploy(TARGET, &marker(at + 2 * HOUR, "b")).await.unwrap();
        store.record(&[look(&store, surface, at + 3 * HOUR, "1.0", "{\"v\":1}", "PF").await]).await.unwrap();
        let (_, _, deploy, confidence) = ends(&store, "a2a/e").await;
        assert_eq!((deploy, confidence.as_deref()), (Some(later.0), Some("possible")), "the later of equals");
    })
    .await;
}

#[tokio::test]
async fn the_weather_of_the_network_is_no_deploy() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let at_address = |address: &str| Some(Place { address: Some(address.into()), ..Place::default() });
        for (n, address) in [(2, "192.0.2.1"), (3, "192.0.2.2"), (4, "192.0.2.1")] {
            let seen = look(&store, surface, NOON + DAY + n * HOUR, "1.0", "{\"v\":1}", "PF").await;
            store.record(&[Observation { place: at_address(address), ..seen }]).await.unwrap();
        }
        assert!(store.deploys(None, None, 9).await.unwrap().is_empty());
        // With a new version it is part of its deploy.
        let seen = look(&store, surface, NOON + DAY + 5 * HOUR, "1.1", "{\"v\":2}", "PF").await;
        store.record(&[Observation { place: at_address("192.0.2.9"), ..seen }]).await.unwrap();
        let kinds: Vec<_> = store.deploys(None, None, 9).await.unwrap()[0].signals.iter().map(|s| s.kind).collect();
        assert_eq!(kinds, [SignalKind::CardVersion, SignalKind::Infra]);
    })
    .await;
}

#[tokio::test]
async fn a_finding_may_come_with_a_deploy_of_the_authorization_server_its_target_names() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let metadata = "https://id.example/.well-known/oauth-authorization-server";
        let host = Some(HostName { name: "id.example".into(), domain: "id.example".into() });
        let service = |key: &str, url: &str, on: &str| NewTarget {
            kind: TargetKind::OauthService,
            key: key.into(),
            url: url.into(),
            surface: SurfaceKind::OauthAuthorizationServer,
            host: Some(HostName { name: on.into(), domain: on.into() }),
            ..card("id.example")
        };
        let services = [
            service("id.example", metadata, "id.example"),
            service("other.example", "https://other.example/.well-known/oauth-authorization-server", "other.example"),
        ];
        store.add_targets(domains(&store).await, &services, NOON).await.unwrap();
        let issuer = store.target_named(TargetKind::OauthService, "id.example").await.unwrap().unwrap();
        let stranger = store.target_named(TargetKind::OauthService, "other.example").await.unwrap().unwrap();
        let at = NOON + DAY + HOUR;
        store.mark_deploy(stranger, &marker(at - 600, "run 1")).await.unwrap();
        let theirs = store.mark_deploy(issuer, &marker(at - 600, "run 2")).await.unwrap();
        record_confirmed(&store, look(&store, surface, at, "1.0", "{\"v\":1}", "FF").await).await;
        assert_eq!(ends(&store, "a2a/e").await.0, None, "nothing ties them yet");
        let link =
            Link { kind: SurfaceKind::OauthAuthorizationServer, url: metadata.into(), role: Role::Metadata, host };
        store.set_links(TARGET, &[link], at + 60).await.unwrap();
        store.mark_deploy(issuer, &marker(at + 600, "run 3")).await.unwrap();
        let third = store.mark_deploy(issuer, &marker(at + 900, "run 4")).await.unwrap();
        assert!(third.0 > theirs.0);
        // What mended it came with the later of the two.
        record_confirmed(&store, look(&store, surface, at + HOUR, "1.0", "{\"v\":1}", "PF").await).await;
        let (opened, _, closed, sure) = ends(&store, "a2a/e").await;
        assert_eq!((opened, closed, sure.as_deref()), (None, Some(third.0), Some("possible")));
    })
    .await;
}

#[tokio::test]
async fn a_deploy_after_which_nobody_answers_is_unreachable() {
    for_each_database(async |store| {
        let surface = settled_card(&store).await;
        let at = NOON + DAY + HOUR;
        let id = store.mark_deploy(TARGET, &marker(at, "run 9")).await.unwrap();
        for later in [30, 90, 330] {
            store.record(&[unseen(surface, at + later, "unreachable:refused")]).await.unwrap();
            assert_eq!(store.settle_deploys(at + later).await.unwrap(), 0, "it is only suspected");
        }
        store.record(&[unseen(surface, at + 930, "unreachable:refused")]).await.unwrap();
        assert_eq!(store.settle_deploys(at + 930).await.unwrap(), 1);
        assert_eq!(store.deploy(id).await.unwrap().unwrap().0.outcome, Some(Outcome::Unreachable));
    })
    .await;
}

#[tokio::test]
async fn targets_are_meant_by_key_address_owner_or_host_and_a_token_stays_with_its_owner() {
    for_each_database(async |store| {
        one_card(&store).await;
        let url = crate::support::card("a.example").url;
        for whose in [
            Whose::Targets(vec!["a.example".into(), "1".into()]),
            Whose::Targets(vec![url]),
            Whose::Owner("them".into()),
            Whose::Host("a.example".into()),
        ] {
            assert_eq!(store.targets_of(&whose, None).await.unwrap(), [TARGET], "{whose:?}");
            assert_eq!(store.targets_of(&whose, Some("them")).await.unwrap(), [TARGET], "{whose:?}");
            assert!(store.targets_of(&whose, Some("others")).await.unwrap().is_empty(), "{whose:?}");
        }
        assert!(store.targets_of(&Whose::Host("b.example".into()), None).await.unwrap().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_token_holds_until_it_ends_and_only_its_hash_is_kept() {
    for_each_database(async |store| {
        let text = text_of([7; 32]);
        assert!(text.starts_with("plb_") && text.len() == 68);
        let new = NewToken {
            title: "pipeline".into(),
            scopes: vec![Scope::DeploysWrite],
            owner: Some("them".into()),
            created_by: "me".into(),
            expires_s: Some(NOON + DAY),
        };
        let made = store.create_token(&text, &new, NOON).await.unwrap();
        let found = store.token(&text, NOON + HOUR).await.unwrap().unwrap();
        assert_eq!((found.id, found.owner.as_deref()), (made.id, Some("them")));
        assert!(found.allows(Scope::DeploysWrite) && !found.allows(Scope::Admin));
        assert_eq!(store.tokens().await.unwrap()[0].last_used_s, Some(NOON + HOUR));
        assert_eq!(store.token("plb_other", NOON).await.unwrap(), None);
        assert_eq!(store.token(&text, NOON + 2 * DAY).await.unwrap(), None, "it has ended");
        assert!(store.revoke_token(made.id, NOON + HOUR).await.unwrap());
        assert!(!store.revoke_token(made.id, NOON + HOUR).await.unwrap());
        assert_eq!(store.token(&text, NOON + HOUR).await.unwrap(), None);
        let shown = serde_json::to_string(&store.tokens().await.unwrap()).unwrap();
        assert!(shown.contains("plb_070707") && !shown.contains(&text));
    })
    .await;
}
