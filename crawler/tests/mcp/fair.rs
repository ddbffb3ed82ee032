//! Servers that do what is easily taken for a fault: they ask for a key in words, lead on, fail for a moment, stand behind a
//! wall. None is accused of an error, and who gets in is said rightly.

use std::sync::atomic::{AtomicUsize, Ordering};

use plumbline_rules::standing::{Access, Standing};
use serde_json::json;

use super::server::{self, Answer, Asked, Era, page, refused, result, serving, stream};
use super::{each, probed, said};

/// What a server does otherwise than a good one.
type Otherwise = Box<dyn Fn(&Asked) -> Option<Answer> + Send + Sync>;

/// Name, era, who gets in, what is to be said of it beside facts and hints, and what it does otherwise.
type Fair = (&'static str, Era, Access, &'static [&'static str], Otherwise);

fn row(
    name: &'static str,
    era: Era,
    access: Access,
    says: &'static [&'static str],
    otherwise: impl Fn(&Asked) -> Option<Answer> + Send + Sync + 'static,
) -> Fair {
    (name, era, access, says, Box::new(otherwise))
}

/// An ordinary message posted to the endpoint.
fn is_posted(a: &Asked) -> bool {
    a.verb == "POST" && a.json.is_object()
}

fn wanting_keys() -> Vec<Fair> {
    let to_all = |status: u16, words: &'static str| move |a: &Asked| is_posted(a).then(|| refused(a, status, words));
    let to_lists = |status: u16, words: &'static str| {
        move |a: &Asked| (a.is("tools/list") && a.is_ordinary()).then(|| refused(a, status, words))
    };
    let plainly = |status: u16, body: serde_json::Value| {
        move |a: &Asked| is_posted(a).then(|| Answer::json(status, body.clone()))
    };
    const IN_200: &[&str] = &["oauth/auth-error-in-200"];
    vec![
        row("wants-a-header", Era::Legacy, Access::AuthRequired, IN_200, to_all(200, "Missing X-API-Key header")),
        row("wants-a-login", Era::Legacy, Access::AuthRequired, IN_200, to_all(200, "Please sign in")),
        row("wants-a-key-with-400", Era::Legacy, Access::AuthRequired, &[], to_all(400, "API key is required")),
        row("wants-a-key-with-500", Era::Legacy, Access::AuthRequired, &[], to_all(500, "Unauthorized")),
        row("wants-a-key-with-403", Era::Legacy, Access::AuthRequired, &[], to_all(403, "Forbidden: API key required")),
        row(
            "wants-a-key-for-tools",
            Era::Legacy,
            Access::AuthPartial,
            IN_200,
            to_lists(200, "Missing Authorization header"),
        ),
        row(
            "wants-a-key-for-tools-with-400",
            Era::Legacy,
            Access::AuthPartial,
            &[],
            to_lists(400, "API key is required"),
        ),
        row(
            "wants-a-key-in-plain-json",
            Era::Legacy,
            Access::AuthRequired,
            &[],
            plainly(200, json!({"error": "unauthorized", "message": "API key required"})),
        ),
        row(
            "wants-a-key-in-plain-json-with-400",
            Era::Legacy,
            Access::AuthRequired,
            &[],
            plainly(400, json!({"error": "Missing API key"})),
        ),
        row("forbids-robots", Era::Legacy, Access::AuthRequired, &[], |_| Some(page(403))),
    ]
}

/// Leads the endpoint on to the same with a slash, where `at` decides.
fn leading(status: u16, at: impl Fn(&Asked) -> Option<Answer> + Send + Sync) -> impl Fn(&Asked) -> Option<Answer> {
    move |a| match a.path.as_str() {
        "/mcp" => Some(Answer::bare(status).with("location", "/mcp/")),
        _ => at(a),
    }
}

/// At the address with a slash, a token is wanted and nothing said of where to get one.
fn guarded_at_the_slash(a: &Asked, named: &'static str) -> Option<Answer> {
    match a.path.as_str() {
        "/mcp/" => Some(Answer::bare(401).with("www-authenticate", "Bearer realm=\"tides\"")),
        path if path == format!("/.well-known/oauth-protected-resource{named}") => {
            Some(Answer::json(200, server::with(server::resource(a), "resource", a.here(named))))
        }
        "/.well-known/oauth-protected-resource/mcp" => Some(Answer::bare(404)),
        _ => None,
    }
}

fn leading_on() -> Vec<Fair> {
    const CHANGES: &[&str] = &["mcp/redirect-method-change"];
    let at_get =
        |answer: fn(&Asked) -> Answer| leading(301, move |a| (a.verb == "GET" && a.is_at("/mcp/")).then(|| answer(a)));
    vec![
        row("keeps-the-post", Era::Legacy, Access::Open, &[], leading(307, |_| None)),
        row(
            "guards-both-by-the-one",
            Era::Guarded,
            Access::AuthRequired,
            &[],
            leading(307, |a| guarded_at_the_slash(a, "/mcp")),
        ),
        row(
            "guards-both-by-the-other",
            Era::Guarded,
            Access::AuthRequired,
            &[],
            leading(307, |a| guarded_at_the_slash(a, "/mcp/")),
        ),
        row(
            "makes-a-get-and-wants-a-session",
            Era::Legacy,
            Access::Open,
            CHANGES,
            at_get(|a| refused(a, 400, "Bad Request: Mcp-Session-Id header is required")),
        ),
        row("makes-a-get-and-shows-a-page", Era::Legacy, Access::NotMcp, CHANGES, at_get(|_| page(200))),
        row("makes-a-get-and-knows-none", Era::Legacy, Access::NotMcp, CHANGES, at_get(|_| Answer::bare(405))),
        row("leads-to-a-login", Era::Legacy, Access::AuthRequired, &["oauth/auth-redirect"], |a| {
            match a.path.as_str() {
                "/mcp" if a.verb == "POST" => Some(Answer::bare(302).with("location", "/login")),
                "/login" => Some(Answer { label: "text/html", ..Answer::text(200, "<title>Log in</title>") }),
                _ => None,
            }
        }),
    ]
}

/// The second of the requests that `is_meant`.
fn second(
    is_meant: impl Fn(&Asked) -> bool + Send + Sync,
    answer: impl Fn(&Asked) -> Answer + Send + Sync,
) -> impl Fn(&Asked) -> Option<Answer> {
    let asked = AtomicUsize::new(0);
    move |a| (is_meant(a) && asked.fetch_add(1, Ordering::SeqCst) == 1).then(|| answer(a))
}

fn failing() -> Vec<Fair> {
    let listing = |a: &Asked| a.is("tools/list") && a.is_ordinary();
    vec![
        row("is-still-asleep", Era::Modern, Access::Open, &[], |a| {
            if a.is("server/discover") {
                return Some(page(502));
            }
            a.is_initialize().then(|| server::error(a, 404, -32601))
        }),
        row("fails-at-everything-in-words", Era::Legacy, Access::Unreachable, &[], |a| {
            is_posted(a).then(|| refused(a, 500, "Internal error"))
        }),
        row("fails-at-a-ping", Era::Legacy, Access::Open, &[], |a| {
            (a.is("ping") && a.is_ordinary()).then(|| refused(a, 500, "Internal error"))
        }),
        row("fails-at-a-ping-after-the-end", Era::Legacy, Access::Open, &[], |a| {
            (a.is("ping") && a.is_ended).then(|| refused(a, 500, "Internal error"))
        }),
        row("fails-bare-after-the-end", Era::Legacy, Access::Open, &[], |a| {
            (a.is("ping") && a.is_ended).then(|| Answer::bare(500))
        }),
        row("fails-at-a-list", Era::Legacy, Access::Open, &[], move |a| {
            listing(a).then(|| refused(a, 503, "Service unavailable"))
        }),
        row("fails-at-a-second-page", Era::Legacy, Access::Open, &[], move |a| {
            listing(a).then(|| match a.json["params"]["cursor"].is_string() {
                true => refused(a, 503, "Service unavailable"),
                false => result(a, json!({"tools": server::tools(), "nextCursor": "2"})),
            })
        }),
        row(
            "fails-at-a-second-list",
            Era::Modern,
            Access::Open,
            &[],
            second(listing, |a| refused(a, 500, "Internal error")),
        ),
        row("has-too-many-sessions", Era::Legacy, Access::Open, &[], |a| {
            (a.is_initialize() && a.json["id"] == "init-2").then(|| refused(a, 503, "Too many sessions"))
        }),
        row("fails-at-a-notification", Era::Legacy, Access::Open, &[], |a| {
            a.is("notifications/initialized").then(|| page(502))
        }),
        row("fails-at-get", Era::Legacy, Access::Open, &[], |a| {
            (a.verb == "GET" && a.path == "/mcp").then(|| page(501))
        }),
        row("forgets-its-session", Era::Legacy, Access::Open, &[], |a| {
            ((a.is("ping") || a.is("tools/list")) && a.is_ordinary()).then(|| refused(a, 404, "Session not found"))
        }),
    ]
}

fn speaking_freely() -> Vec<Fair> {
    const BODY: &[&str] = &["mcp/notification-body"];
    let thanking = |body: &'static str| {
        move |a: &Asked| {
            a.is("notifications/initialized").then(|| Answer { label: "application/json", ..Answer::text(202, body) })
        }
    };
    vec![
        row("thanks-in-json", Era::Legacy, Access::Open, BODY, thanking("{\"ok\":true}")),
        row("thanks-in-json-that-is-none", Era::Legacy, Access::Open, BODY, thanking("Accepted")),
        row("keeps-its-stream-open", Era::Legacy, Access::Open, &[], |a| {
            (a.is("tools/list") && a.is_ordinary()).then(|| {
                let answer = stream(a, json!({"tools": server::tools()}));
                Answer { body: format!("event: ping\ndata: keep alive\n\n{}", answer.body), ..answer }
            })
        }),
        row("has-a-heartbeat", Era::Legacy, Access::Open, &[], |a| {
            (a.verb == "GET" && a.path == "/mcp").then(|| Answer::events("event: heartbeat\ndata: 10:00\n\n"))
        }),
    ]
}

/// A page that delivery networks put before machines.
fn wall(status: u16) -> Answer {
    page(status).with("cf-mitigated", "challenge")
}

fn walled() -> Vec<Fair> {
    vec![
        row("stands-behind-a-wall", Era::Legacy, Access::RateLimited, &[], |_| Some(wall(403))),
        row("hides-its-metadata-behind-a-wall", Era::Guarded, Access::AuthRequired, &[], |a| {
            a.path.starts_with("/.well-known/").then(|| wall(200))
        }),
        row("stands-behind-a-wall-with-200", Era::Legacy, Access::RateLimited, &[], |_| Some(wall(200))),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_easily_taken_for_a_fault_is_none() {
    let all: Vec<Fair> =
        [wanting_keys(), leading_on(), failing(), speaking_freely(), walled()].into_iter().flatten().collect();
    let heard = each(all, |(name, era, access, says, otherwise)| async move {
        let server = serving(era, otherwise).await;
        let session = probed(&server).await;
        let (errors, spoke) = said(&session);
        let is_right = errors.is_empty() && says.iter().all(|id| spoke.contains(id));
        let seen = Standing::of(&session).access;
        (!is_right || seen != access).then(|| format!("{name}: {seen}, expected {access}; {errors:?}; {spoke:?}"))
    });
    let wrong: Vec<String> = heard.await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What comes before a wall is known, what comes behind it is not, and nothing of the run is compared with another.
#[tokio::test(flavor = "multi_thread")]
async fn a_wall_in_mid_run_ends_the_run() {
    let server = serving(Era::Legacy, |a| (a.number > 8).then(|| wall(403))).await;
    let session = probed(&server).await;
    let standing = Standing::of(&session);
    assert_eq!((standing.access, standing.is_incomplete), (Access::Open, true));
    let walled = session.exchanges.iter().filter_map(|exchange| exchange.response.as_ref()).filter(|r| r.is_bot_wall());
    assert_eq!(walled.count(), 1, "nothing more is asked");
    assert_eq!(said(&session).0, Vec::<&str>::new());
}

/// Offline the same is said of session ids as live, of which the record keeps what they are made of.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_session_ids_is_said_of_the_record_too() {
    let issuing = |id: fn(&Asked) -> String| {
        move |a: &Asked| {
            (a.is_initialize() && a.is_ordinary())
                .then(|| server::initialized(a, "2025-11-25").with("mcp-session-id", &id(a)))
        }
    };
    let counting = serving(Era::Legacy, issuing(|a| format!("17329000000000{:05}", a.number))).await;
    let spaced = serving(Era::Legacy, issuing(|a| format!("session number {} of many", a.number))).await;
    for (server, rule) in [(counting, "mcp/session-id-weak"), (spaced, "mcp/session-id-charset")] {
        let session = probed(&server).await;
        let record = session.clone().masked();
        assert!(said(&session).1.contains(&rule), "{rule} live");
        assert!(said(&record).1.contains(&rule), "{rule} in the record: {:?}", said(&record).1);
        assert_eq!(record.clone().masked(), record);
    }
}
