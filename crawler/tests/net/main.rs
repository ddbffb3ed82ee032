//! The client against servers that misbehave on purpose: whatever they do is recorded, bounded and never our error.

mod bad;
mod bodies;
mod failures;
mod guarded;
mod manners;
mod redirects;
mod requests;
mod secured;

use std::net::SocketAddr;

use plumbline_crawler::net::{Ask, BodyKind, Client, Fetched, Manners, NetSettings, Networks};
use plumbline_rules::session::{Cut, Response, WireError};

/// Settings that admit the servers of a test and do not wait for manners.
fn settings() -> NetSettings {
    NetSettings {
        allow_networks: Networks(vec!["127.0.0.1/32".parse().unwrap()]),
        robots: false,
        manners: Manners { pace_ms: 0, ..Manners::default() },
        ..NetSettings::default()
    }
}

fn asking(name_server: SocketAddr) -> NetSettings {
    NetSettings { name_servers: vec![name_server], ..settings() }
}

fn client() -> Client {
    Client::new(settings()).unwrap()
}

async fn fetch(url: &str) -> Fetched {
    fetch_with(settings(), url).await
}

async fn fetch_with(settings: NetSettings, url: &str) -> Fetched {
    Client::new(settings).unwrap().fetch(Ask::get(url, BodyKind::AgentCard)).await.unwrap()
}

/// The last exchange in one word or two: a status with a cut, or an error.
#[derive(Debug, PartialEq)]
enum End {
    Answer(u16, Option<Cut>),
    Error(WireError),
}

fn end(fetched: &Fetched) -> End {
    let last = fetched.last();
    match (&last.response, last.error) {
        (Some(Response { status, cut, .. }), None) => End::Answer(*status, *cut),
        (None, Some(error)) => End::Error(error),
        both => panic!("an exchange has an answer or an error, not {both:?}"),
    }
}
