//! Addresses that must not be called, however one is led to them.

use std::net::IpAddr;

use plumbline_crawler::net::{Ask, BodyKind, Client, NetSettings, Networks, TimeLimits};
use plumbline_rules::session::WireError;

use super::bad::dns::{Say, name_server};
use super::bad::{answer, redirecting, saying};
use super::{End, asking, end, fetch, fetch_with, settings};

const REFUSED: End = End::Error(WireError::AddressGuard);

fn at(addresses: &[&str]) -> Say {
    Say::Addresses(addresses.iter().map(|text| text.parse::<IpAddr>().unwrap()).collect())
}

#[tokio::test]
async fn a_literal_private_address_is_not_called() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let port = server.address.port();
    let closed = NetSettings { allow_networks: Networks::default(), ..settings() };
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0"] {
        let fetched = fetch_with(closed.clone(), &format!("http://{host}:{port}/")).await;
        assert_eq!(end(&fetched), REFUSED, "{host}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn opening_one_address_opens_no_other() {
    for url in ["http://127.0.0.2/", "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]/"] {
        assert_eq!(end(&fetch(url).await), REFUSED, "{url}");
    }
}

#[tokio::test]
async fn localhost_is_this_machine_where_it_is_opened() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    for name in ["localhost", "agent.localhost"] {
        assert_eq!(end(&fetch(&server.url_at(name, "/")).await), End::Answer(200, None), "{name}");
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_not_followed() {
    for place in ["http://10.0.0.1/", "http://[fd00::1]/card", "http://localhost.:1/", "//169.254.169.254/"] {
        let closed_part = NetSettings { allow_networks: Networks(vec!["127.0.0.1/32".parse().unwrap()]), ..settings() };
        let server = redirecting(move |_| place.to_owned()).await;
        let fetched = fetch_with(closed_part, &server.url("/")).await;
        let expected = if place.contains("localhost") { End::Error(WireError::Refused) } else { REFUSED };
        assert_eq!(end(&fetched), expected, "{place}");
        assert_eq!(fetched.exchanges.len(), 2, "{place}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_scheme_is_not_followed() {
    let server = redirecting(|_| "file:///etc/passwd".to_owned()).await;
    assert_eq!(end(&fetch(&server.url("/")).await), End::Error(WireError::BadUrl));
}

#[tokio::test]
async fn a_name_that_resolves_to_an_opened_address_is_called() {
    let names = name_server(|_, _| at(&["127.0.0.1"])).await;
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let fetched = fetch_with(asking(names.address), &server.url_at("agent.example.com", "/")).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
    assert_eq!(names.questions(), 1);
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_not_called() {
    for address in ["10.0.0.1", "169.254.169.254", "127.0.0.2", "::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"] {
        let names = name_server(move |_, _| at(&[address])).await;
        let fetched = fetch_with(asking(names.address), "http://agent.example.com/").await;
        assert_eq!(end(&fetched), REFUSED, "{address}");
    }
}

#[tokio::test]
async fn one_private_address_among_good_ones_refuses_the_name() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    for answers in [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "fd00::1"]] {
        let names = name_server(move |_, _| at(&answers)).await;
        let fetched = fetch_with(asking(names.address), &server.url_at("agent.example.com", "/")).await;
        assert_eq!(end(&fetched), REFUSED, "{answers:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_connected_to_where_it_was_checked_or_not_at_all() {
    // Good when first asked, the machine's metadata service ever after.
    let names = name_server(|_, nth| if nth == 0 { at(&["127.0.0.1"]) } else { at(&["169.254.169.254"]) }).await;
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let client = Client::new(asking(names.address)).unwrap();
    let ask = || Ask::get(server.url_at("rebind.example.com", "/"), BodyKind::AgentCard);

    let first = client.fetch(ask()).await.unwrap();
    assert_eq!(end(&first), End::Answer(200, None));
    assert_eq!(names.questions(), 1, "one look-up serves check and connection");

    let second = client.fetch(ask()).await.unwrap();
    assert_eq!(end(&second), REFUSED);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_a_name_with_a_private_address_is_not_followed() {
    let names =
        name_server(|name, _| if name == "inside.example.com" { at(&["10.0.0.1"]) } else { at(&["127.0.0.1"]) }).await;
    let server = redirecting(|_| "http://inside.example.com/".to_owned()).await;
    let fetched = fetch_with(asking(names.address), &server.url_at("agent.example.com", "/")).await;
    assert_eq!(end(&fetched), REFUSED);
    assert_eq!(fetched.exchanges.len(), 2);
}

#[tokio::test]
async fn failures_of_name_servers_are_told_apart() {
    let hurried =
        |address| NetSettings { time: TimeLimits { dns_ms: 400, ..TimeLimits::default() }, ..asking(address) };
    let rows: [(fn() -> Say, WireError); 4] = [
        (|| Say::NoSuchName, WireError::DnsNxdomain),
        (|| Say::Failed, WireError::Dns),
        (|| Say::Addresses(Vec::new()), WireError::Dns),
        (|| Say::Nothing, WireError::DnsTimeout),
    ];
    for (say, expected) in rows {
        let names = name_server(move |name, _| if name.is_empty() { Say::Addresses(Vec::new()) } else { say() }).await;
        let fetched = fetch_with(hurried(names.address), "http://agent.example.com/").await;
        assert_eq!(end(&fetched), End::Error(expected));
    }
}

#[tokio::test]
async fn a_name_server_that_is_silent_about_ipv6_still_gives_the_name_away() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let names = name_server(|_, _| Say::OnlyIpv4("127.0.0.1".parse().unwrap())).await;
    let hurried = NetSettings { time: TimeLimits { dns_ms: 500, ..TimeLimits::default() }, ..asking(names.address) };
    let fetched = fetch_with(hurried, &server.url_at("agent.example.com", "/")).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
}

#[tokio::test]
async fn a_name_server_of_ours_that_is_down_is_our_fault() {
    let names = name_server(|_, _| Say::Nothing).await;
    let hurried = NetSettings { time: TimeLimits { dns_ms: 200, ..TimeLimits::default() }, ..asking(names.address) };
    let fetched = fetch_with(hurried, "http://agent.example.com/").await;
    assert_eq!(end(&fetched), End::Error(WireError::DnsUnavailable));
}

#[tokio::test]
async fn a_name_exists_until_every_name_server_denies_it() {
    let server = saying(answer("200 OK", &[], b"{}")).await;
    let denying = name_server(|_, _| Say::NoSuchName).await;
    let knowing = name_server(|_, _| at(&["127.0.0.1"])).await;
    let both = NetSettings { name_servers: vec![denying.address, knowing.address], ..settings() };
    let fetched = fetch_with(both, &server.url_at("agent.example.com", "/")).await;
    assert_eq!(end(&fetched), End::Answer(200, None));
}

#[tokio::test]
async fn an_internal_name_is_not_even_looked_up_while_nothing_is_open() {
    let names = name_server(|_, _| at(&["8.8.8.8"])).await;
    let closed = NetSettings { allow_networks: Networks::default(), ..asking(names.address) };
    for name in ["agent", "agent.internal", "printer.local"] {
        assert_eq!(end(&fetch_with(closed.clone(), &format!("http://{name}/")).await), REFUSED, "{name}");
    }
    assert_eq!(names.questions(), 0);
}

#[tokio::test]
async fn a_name_that_cannot_be_one_is_no_address() {
    let names = name_server(|_, _| at(&["127.0.0.1"])).await;
    let url = format!("http://{}.example.com/", "a".repeat(64));
    assert_eq!(end(&fetch_with(asking(names.address), &url).await), End::Error(WireError::BadUrl));
}
