//! MCP servers on loopback, probed as a crawl probes them.
//!
//! - [`server`]: one of each era that does nothing wrong, and a way to make it do one thing otherwise;
//! - [`bad`]: servers that break one rule each;
//! - [`fair`]: servers that do something that is easily taken for a fault and is none, or not the one it looks like;
//! - [`own`]: what only the operator's own servers are asked, and nobody else;
//! - [`past`]: servers that are others at the second look;
//! - [`hostile`]: servers that are out to cost time, memory or a false word.

mod bad;
mod fair;
mod hostile;
mod own;
mod past;
mod server;

use futures_util::{StreamExt, stream};
use plumbline_crawler::net::{Client, Manners, NetSettings};
use plumbline_crawler::probe::mcp::{EndpointAsk, ProbeSettings, observe};
use plumbline_rules::judge::{Given, Settings};
use plumbline_rules::rule::{Axis, Severity};
use plumbline_rules::session::{Session, Surface};
use plumbline_rules::session_judge::judge_session;
use plumbline_rules::standing::{Access, Standing};
use serde_json::json;
use server::{Era, Server, serving};

/// Nobody is waited for between two requests.
fn manners() -> Manners {
    Manners { pace_ms: 0, ..Manners::default() }
}

fn client() -> Client {
    let allow_networks = serde_json::from_value(json!(["127.0.0.0/8"])).expect("it is a network");
    Client::new(NetSettings { manners: manners(), allow_networks, ..NetSettings::default() }).expect("a client")
}

/// Nothing is waited for longer than a test should take.
fn quick() -> ProbeSettings {
    ProbeSettings {
        head_ms: 400,
        step_ms: 600,
        stream_close_ms: 50,
        stream_get_ms: 50,
        listen_ms: 100,
        endpoint_event_ms: 300,
        third_list_ms: 0,
        again_ms: 0,
        run_ms: 5_000,
        ..ProbeSettings::default()
    }
}

/// For servers that answer: however busy the machine is, nothing of them is given up.
fn patient() -> ProbeSettings {
    let long_ms = 60_000;
    ProbeSettings { head_ms: long_ms, step_ms: long_ms, endpoint_event_ms: long_ms, run_ms: 10 * long_ms, ..quick() }
}

async fn probed(server: &Server) -> Session {
    probed_with(server, &patient()).await
}

async fn probed_with(server: &Server, settings: &ProbeSettings) -> Session {
    let ask = EndpointAsk { url: server.url("/mcp"), headers: Vec::new(), odd: true, active: None };
    observe(&client(), &ask, settings).await.expect("we did not fail").session
}

/// Does a thing with each, some at a time.
async fn each<T, F: Future>(all: impl IntoIterator<Item = T>, does: impl FnMut(T) -> F) -> Vec<F::Output> {
    stream::iter(all).map(does).buffered(8).collect().await
}

/// What is said of a session with severity error, and which rules speak at all.
fn said(session: &Session) -> (Vec<&'static str>, Vec<&'static str>) {
    let report = judge_session(session, Surface::Mcp, None, &Given::default(), &Settings::default());
    let loud = |rule: &plumbline_rules::rule::Rule, found: &[plumbline_rules::report::Occurrence]| {
        rule.axis == Axis::Conformity && found.iter().any(|o| o.severity == Severity::Error)
    };
    let errors = report.fired().filter(|(rule, found)| loud(rule, found)).map(|(rule, _)| rule.id).collect();
    (errors, report.fired().map(|(rule, _)| rule.id).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_nothing_wrong_are_not_accused() {
    for era in [Era::Legacy, Era::Modern, Era::Older, Era::Guarded] {
        let server = serving(era, |_| None).await;
        let session = probed(&server).await;
        let report = judge_session(&session, Surface::Mcp, None, &Given::default(), &Settings::default());
        let loud: Vec<_> = report
            .findings()
            .filter(|(_, found)| found.iter().any(|o| o.severity > Severity::Info))
            .map(|(rule, found)| (rule.id, found[0].pointer.clone(), found[0].message.clone()))
            .collect();
        assert!(loud.is_empty(), "{era:?}: {loud:?}");
        let access = if era == Era::Guarded { Access::AuthRequired } else { Access::Open };
        assert_eq!(Standing::of(&session).access, access, "{era:?}");
    }
}
