//! From the endpoint to its metadata and from there to each authorization server: what was found where, and whether two
//! places say the same.

use super::protected::fault_of_issuer;
use super::{SINCE_2025_03, SINCE_2025_06, SINCE_2025_11};
use crate::authorization::{AsPlace, Chain, PrmPlace, Server, json_of, member};
use crate::conversation::{Conversation, Turn};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::report::NotEvaluated;
use crate::rule::{Axis, Basis, Check, Class, Evidence, Impact, Rule, Severity, fires, silent};
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[
    &PRM_NOT_FOUND,
    &PRM_URL_DEAD,
    &PRM_ROOT_ONLY,
    &PRM_PATH_APPENDED,
    &PRM_LOCATIONS_DIFFER,
    &AS_METADATA_NOT_FOUND,
    &AS_UNREACHABLE,
    &AS_RFC8414_MISSING,
    &AS_ONE_DISCOVERY,
    &AS_DOCUMENTS_DIFFER,
    &AS_WRONG_LOCATION,
];

const ON: &[Kind] = &[Kind::McpEndpoint];

/// Where the metadata of a resource or server is not to be found, for this visit or for good.
fn is_missing(turn: &Turn<'_>) -> bool {
    let is_page = turn
        .response()
        .and_then(super::super::session::Response::media_type)
        .is_some_and(|media_type| media_type.is_html());
    if turn.response().is_some_and(super::super::session::Response::is_bot_wall) {
        return false;
    }
    match turn.status() {
        Some(200..=299) => is_page || json_of(turn).is_none(),
        Some(300..=399) => true,
        Some(401 | 402 | 403 | 407 | 429) | None => false,
        Some(status) => status < 500,
    }
}

/// Whether the running rule is of the revision that the chain is judged by; otherwise it does not apply.
fn applies(chain: &Chain<'_>, out: &mut Occurrences) -> bool {
    let applies = out.rule().versions.contains(&chain.revision());
    if !applies {
        out.not_applicable();
    }
    applies
}

/// The requests for the resource's metadata, when the server wants authorization and they were made.
fn prm_of<'c>(chain: &Chain<'c>, out: &mut Occurrences) -> Option<Vec<(PrmPlace, &'c Turn<'c>)>> {
    if !applies(chain, out) {
        return None;
    }
    if chain.prm.is_empty() || chain.refusal.is_none() {
        out.not_evaluated(NotEvaluated::NotAsked);
        return None;
    }
    Some(chain.prm.clone())
}

fn at(prm: &[(PrmPlace, &'_ Turn<'_>)], place: PrmPlace) -> Option<usize> {
    prm.iter().position(|(known, _)| *known == place)
}

crate::rule! {
    /// A server that wants tokens publishes its metadata.
    ///
    /// It lies neither where the challenge says nor at a well-known place, so that no client finds out whom to ask.
    static PRM_NOT_FOUND = {
        id: "oauth/prm-not-found",
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        rank: 33,
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prm",
        fix: "Serve protected-resource metadata.",
        spec: "2026-07-28 authorization discovery; RFC 9728 §3",
        seeds: &["validator:1.4.2.1", "validator:1.4.1.1", "inspector:rfc9728"],
        examples: &[
                fires(
                    &["/exchanges/0/response"],
                    r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp", "body": null}, "response": {"status": 404, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource", "body": null}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2025-11-25"),
                silent(
                    r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer"}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp", "body": null}, "response": {"status": 429, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource", "body": null}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(prm_not_found),
    }
}

fn prm_not_found(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some(prm) = prm_of(&chain, out) else { return };
    let mut at_clients_places = prm.iter().filter(|(place, _)| *place != PrmPlace::Appended);
    if let Some(refusal) = chain.refusal.filter(|_| is_nowhere(&chain, &prm)) {
        out.add_in(chain.revision(), refusal.place(), "wants a token, and its metadata is nowhere to be found");
    } else if at_clients_places.any(|(_, turn)| turn.response().is_none() || turn.gate().is_some())
        && chain.document().is_none()
    {
        out.not_evaluated(NotEvaluated::NoDocument);
    }
}

/// Whether the metadata of a resource that wants tokens is at none of its places.
fn is_nowhere(chain: &Chain<'_>, prm: &[(PrmPlace, &Turn<'_>)]) -> bool {
    let mut at_clients_places = prm.iter().filter(|(place, _)| *place != PrmPlace::Appended);
    chain.refusal.is_some()
        && at(prm, PrmPlace::Root).is_some()
        && at_clients_places.all(|(_, turn)| is_missing(turn))
        && chain.document().is_none()
        && !prm.iter().any(|(place, turn)| *place == PrmPlace::Appended && chain.is_prm(*place, turn))
}

crate::rule! {
    /// The metadata that a challenge names is there.
    ///
    /// Clients ask at that address first, and some nowhere else.
    static PRM_URL_DEAD = {
        id: "oauth/prm-url-dead",
        severity: Severity::Error,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prm",
        fix: "Serve the document at the challenged URL.",
        spec: "RFC 9728 §3.2",
        seeds: &["inspector:rfc9728"],
        examples: &[
                fires(
                    &["/exchanges/1/response/status"],
                    r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/meta.json\""}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/meta.json", "body": null}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2025-11-25"),
                silent(
                    r#"{"exchanges": [{"step": "initialize", "response": {"status": 401, "headers": {"mcp-session-id": null, "www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/meta.json\""}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/meta.json", "body": null}, "response": {"status": 503, "body": null}}]}"#,
                )
                .over("conversation-2025-11-25"),
        ],
        check: Check::Conversation(prm_url_dead),
    }
}

fn prm_url_dead(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some(prm) = prm_of(&chain, out) else { return };
    let Some(challenged) = at(&prm, PrmPlace::Challenge) else { return out.not_evaluated(NotEvaluated::NotAsked) };
    let turn = prm[challenged].1;
    if is_nowhere(&chain, &prm) {
        return out.not_evaluated(NotEvaluated::Parent);
    }
    match turn.status() {
        Some(200) => {}
        Some(401 | 402 | 403 | 407 | 429) | None => out.not_evaluated(NotEvaluated::NoDocument),
        Some(500..) => out.not_evaluated(NotEvaluated::NoDocument),
        Some(status) => drop(out.add_in(
            chain.revision(),
            format!("{}/status", turn.place()),
            format!("the challenged address answers {status}"),
        )),
    }
}

crate::rule! {
    /// The metadata of an endpoint with a path lies only at the root.
    ///
    /// Clients look before the path first; it costs them a request that fails.
    static PRM_ROOT_ONLY = {
        id: "oauth/prm-root-only",
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prm",
        fix: "Serve /.well-known/oauth-protected-resource<path> too.",
        spec: "RFC 9728 §3.1; SEP-985",
        seeds: &["inspector:rfc9728"],
        examples: &[
                fires(
                    &["/exchanges/2/request/url"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}, {"step": "prm", "response": {"status": 404, "body": null}}, {"step": "prm", "request": {"url": "https://tides.example.com/.well-known/oauth-protected-resource"}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}, {"step": "prm"}, {"step": "prm", "request": {"url": "https://tides.example.com/.well-known/oauth-protected-resource"}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(prm_root_only),
    }
}

fn prm_root_only(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some(prm) = prm_of(&chain, out) else { return };
    let (Some(_), Some(root)) = (at(&prm, PrmPlace::PathInserted), at(&prm, PrmPlace::Root)) else { return };
    let turn = prm[root].1;
    let mut inserted = prm.iter().filter(|(place, _)| *place == PrmPlace::PathInserted);
    if inserted.all(|(_, turn)| turn.status() == Some(404)) && chain.is_prm(PrmPlace::Root, turn) {
        out.add_at(format!("/exchanges/{}/request/url", turn.number), "the metadata is found only at the root");
    }
}

crate::rule! {
    /// The well-known part stands before the path.
    ///
    /// Behind it no client looks.
    static PRM_PATH_APPENDED = {
        id: "oauth/prm-path-appended",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prm",
        fix: "Insert the well-known part before the path.",
        spec: "RFC 9728 §3.1",
        examples: &[
                fires(
                    &["/exchanges/3/request/url"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}, {"step": "prm", "response": {"status": 404, "body": null}}, {"step": "prm", "request": {"url": "https://tides.example.com/.well-known/oauth-protected-resource"}, "response": {"status": 404, "body": null}}, {"step": "prm", "request": {"url": "https://tides.example.com/mcp/.well-known/oauth-protected-resource"}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}, "body": null}}, {"step": "prm"}, {"step": "prm", "request": {"url": "https://tides.example.com/mcp/.well-known/oauth-protected-resource"}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(prm_path_appended),
    }
}

fn prm_path_appended(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some(prm) = prm_of(&chain, out) else { return };
    let Some(appended) = at(&prm, PrmPlace::Appended) else { return };
    let turn = prm[appended].1;
    let elsewhere = prm.iter().filter(|(place, _)| *place != PrmPlace::Appended);
    if chain.is_prm(PrmPlace::Appended, turn)
        && elsewhere.clone().count() > 0
        && elsewhere.clone().all(|(_, turn)| is_missing(turn))
    {
        let place = format!("/exchanges/{}/request/url", turn.number);
        out.add_in(
            chain.revision(),
            place,
            format!("the metadata is found only at {}", quote(&turn.exchange.request.url)),
        );
    }
}

crate::rule! {
    /// Metadata says the same wherever it lies.
    ///
    /// Which place a client asks decides otherwise where it takes its user.
    static PRM_LOCATIONS_DIFFER = {
        id: "oauth/prm-locations-differ",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:prm",
        fix: "Serve one document.",
        spec: "RFC 9728 §3.3",
        examples: &[
                fires(
                    &["/exchanges/2/response/body/authorization_servers"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/meta.json\""}, "body": null}}, {"step": "prm", "request": {"url": "https://tides.example.com/meta.json"}}, {"step": "prm", "response": {"body": {"authorization_servers": null, "authorization_servers": ["https://other.example.org"]}}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/meta.json\""}, "body": null}}, {"step": "prm", "request": {"url": "https://tides.example.com/meta.json"}}, {"step": "prm"}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(prm_locations_differ),
    }
}

fn prm_locations_differ(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let Some(prm) = prm_of(&chain, out) else { return };
    let found = |wanted| prm.iter().find(|(place, turn)| *place == wanted && chain.is_prm(wanted, turn));
    let (Some((_, one)), Some((_, other))) = (found(PrmPlace::Challenge), found(PrmPlace::PathInserted)) else {
        return;
    };
    for name in ["resource", "authorization_servers"] {
        if member(one, name) != member(other, name) {
            let place = format!("/exchanges/{}/response/body/{name}", other.number);
            out.add_in(chain.revision(), place, format!("`{name}` is another at the challenged address"));
        }
    }
}

/// The authorization servers that were asked about, when the rule applies.
fn servers<'a, 'c>(chain: &'a Chain<'c>, out: &mut Occurrences) -> &'a [Server<'c>] {
    if !applies(chain, out) {
        return &[];
    }
    if chain.servers.is_empty() {
        out.not_evaluated(NotEvaluated::NotAsked);
    }
    &chain.servers
}

/// The requests that clients make too.
fn by_clients<'a, 'c>(server: &'a Server<'c>) -> impl Iterator<Item = &'c Turn<'c>> + 'a {
    server.asked.iter().filter(|(place, _)| *place != AsPlace::Rfc8414Appended).map(|(_, turn)| *turn)
}

crate::rule! {
    /// An authorization server publishes its metadata.
    ///
    /// Neither RFC 8414 metadata nor an OpenID configuration is at its places: a client does not learn where to send its user.
    static AS_METADATA_NOT_FOUND = {
        id: "oauth/as-metadata-not-found",
        severity: Severity::Error,
        severity_overrides: &[("2025-03-26", Severity::Info)],
        impact: Some(Impact::BreaksClients),
        impact_evidence: "the authorization chain ends here; not run per SDK",
        rank: 35,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "Publish RFC 8414 or OpenID metadata.",
        spec: "2026-07-28 authorization discovery",
        seeds: &["validator:1.4.1.3", "inspector:oidc-and-rfc8414", "inspector:oidc-url-resolution"],
        examples: &[
                fires(
                    &["/exchanges/1/response/body/authorization_servers"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as", "response": {"status": 404, "body": null}}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_metadata_not_found),
    }
}

fn as_metadata_not_found(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    let needs_one = chain.refusal.is_some();
    for server in servers(&chain, out).iter().filter(|_| needs_one) {
        let found = [AsPlace::Rfc8414, AsPlace::OpenidInserted, AsPlace::OpenidAppended, AsPlace::Rfc8414Appended];
        if found.iter().any(|place| server.found(*place).is_some()) {
            continue;
        }
        if server.is_assumed && chain.revision() != "2025-03-26" {
            continue;
        }
        // What is no issuer has no place where its metadata could be.
        if fault_of_issuer(&server.issuer).is_some() {
            out.not_evaluated(NotEvaluated::Parent);
            continue;
        }
        if by_clients(server).all(is_missing) {
            let listed = chain.document().filter(|_| !server.is_assumed);
            let place =
                listed.map(|(_, turn)| format!("/exchanges/{}/response/body/authorization_servers", turn.number));
            let place = place.unwrap_or_else(|| chain.refusal.map(Turn::place).unwrap_or_default());
            let added = out.add_in(chain.revision(), place, format!("{} publishes no metadata", quote(&server.issuer)));
            if server.is_assumed {
                added.severity(Severity::Info);
            }
        } else {
            out.not_evaluated(NotEvaluated::NoDocument);
        }
    }
}

crate::rule! {
    /// The authorization server can be reached.
    ///
    /// Nobody gets a token while it is away.
    static AS_UNREACHABLE = {
        id: "oauth/as-unreachable",
        axis: Axis::Reach,
        severity: Severity::Error,
        impact: Some(Impact::BreaksClients),
        basis: Basis::Policy,
        versions: SINCE_2025_03,
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "Bring it back.",
        spec: "policy: reachability",
        examples: &[
                fires(
                    &["/exchanges/1/response/body/authorization_servers"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as", "response": null, "error": "refused"}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": null, "error": "timeout"}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as", "response": null, "error": "opt-out"}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_unreachable),
    }
}

fn as_unreachable(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    for server in servers(&chain, out).iter().filter(|server| !server.is_assumed) {
        let fails = |turn: &Turn<'_>| match turn.exchange.error {
            Some(error) => !error.is_ours(),
            None => turn.status().is_some_and(|status| status >= 500),
        };
        if by_clients(server).all(fails)
            && let Some((_, turn)) = chain.document()
        {
            let place = format!("/exchanges/{}/response/body/authorization_servers", turn.number);
            out.add_in(chain.revision(), place, format!("{} cannot be reached", quote(&server.issuer)));
        }
    }
}

crate::rule! {
    /// An authorization server publishes RFC 8414 metadata.
    ///
    /// In 2025-06-18 clients look for nothing else.
    static AS_RFC8414_MISSING = {
        id: "oauth/as-rfc8414-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: &["2025-06-18"],
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "Publish RFC 8414 metadata.",
        spec: "2025-06-18 authorization, Overview",
        seeds: &["inspector:oidc-and-rfc8414"],
        examples: &[
                fires(
                    &["/exchanges/4/request/url"],
                    r#"{"exchanges": [{"step": "initialize", "request": {"body": {"params": {"protocolVersion": "2025-06-18"}}}, "response": {"body": {"result": {"protocolVersion": "2025-06-18"}}}}, {"step": "tools/list", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm", "request": {"method": "GET", "url": "https://tides.example.com/.well-known/oauth-protected-resource/mcp", "body": null}, "response": {"headers": {"access-control-allow-origin": "*"}, "body": {"jsonrpc": null, "id": null, "result": null, "resource": "https://tides.example.com/mcp", "authorization_servers": ["https://login.example.org/tenant"], "scopes_supported": ["tides:read"]}}}, {"step": "as", "request": {"method": "GET", "url": "https://login.example.org/.well-known/oauth-authorization-server/tenant", "body": null}, "response": {"status": 404, "body": null}}, {"step": "as", "request": {"method": "GET", "url": "https://login.example.org/.well-known/openid-configuration/tenant", "body": null}, "response": {"headers": {"access-control-allow-origin": "*"}, "body": {"jsonrpc": null, "id": null, "result": null, "issuer": "https://login.example.org/tenant", "authorization_endpoint": "https://login.example.org/tenant/authorize", "token_endpoint": "https://login.example.org/tenant/token", "jwks_uri": "https://login.example.org/tenant/jwks", "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"], "client_id_metadata_document_supported": true}}}]}"#,
                )
                .over("conversation-2025-11-25").given(r#"{"surface": "mcp", "requested_version": "2025-06-18"}"#),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as", "response": {"status": 404, "body": null}}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_rfc8414_missing),
    }
}

fn as_rfc8414_missing(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    for server in servers(&chain, out) {
        let asked = server.asked.iter().any(|(place, turn)| *place == AsPlace::Rfc8414 && is_missing(turn));
        if let Some(turn) = server.openid().filter(|_| asked && server.found(AsPlace::Rfc8414).is_none()) {
            let place = format!("/exchanges/{}/request/url", turn.number);
            out.add_in(chain.revision(), place, format!("{} has only an OpenID configuration", quote(&server.issuer)));
        }
    }
}

crate::rule! {
    /// An authorization server has one of two documents.
    ///
    /// Clients look for both, one after the other.
    static AS_ONE_DISCOVERY = {
        id: "oauth/as-one-discovery",
        class: Class::Fact,
        basis: Basis::Hint,
        versions: SINCE_2025_11,
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "None needed.",
        spec: "2026-07-28 authorization discovery",
        seeds: &["inspector:oidc-and-rfc8414"],
        examples: &[
                fires(
                    &["/exchanges/2/request/url"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": {"status": 404, "body": null}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_one_discovery),
    }
}

fn as_one_discovery(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    for server in servers(&chain, out) {
        let asked = |kind: Kind| {
            server.asked.iter().filter(|(place, _)| place.kind() == kind).all(|(_, turn)| is_missing(turn))
        };
        let (turn, which) = match (server.found(AsPlace::Rfc8414), server.openid()) {
            (Some(turn), None) if asked(Kind::OauthOpenidConfiguration) => (turn, "RFC 8414 metadata"),
            (None, Some(turn)) => (turn, "an OpenID configuration"),
            _ => continue,
        };
        out.add_at(
            format!("/exchanges/{}/request/url", turn.number),
            format!("{} has only {which}", quote(&server.issuer)),
        );
    }
}

crate::rule! {
    /// Both documents of an authorization server say the same.
    ///
    /// Which of them a client reads decides otherwise where it takes its user.
    static AS_DOCUMENTS_DIFFER = {
        id: "oauth/as-documents-differ",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "Serve consistent metadata.",
        spec: "RFC 8414 §5",
        seeds: &["inspector:oidc-and-rfc8414"],
        examples: &[
                fires(
                    &["/exchanges/3/response/body/token_endpoint"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": {"body": {"token_endpoint": "https://login.example.org/tenant/v2/token"}}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/.well-known/openid-configuration/tenant"}, "response": {"body": {"userinfo_endpoint": "https://login.example.org/tenant/me"}}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_documents_differ),
    }
}

fn as_documents_differ(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    const COMPARED: [&str; 6] = [
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "client_id_metadata_document_supported",
        "code_challenge_methods_supported",
    ];
    let chain = Chain::of(conversation);
    for server in servers(&chain, out) {
        let (Some(one), Some(other)) = (server.found(AsPlace::Rfc8414), server.openid()) else { continue };
        for name in COMPARED.iter().filter(|name| member(one, name) != member(other, name)) {
            let place = format!("/exchanges/{}/response/body/{name}", other.number);
            out.add_in(chain.revision(), place, format!("`{name}` is another in the RFC 8414 metadata"));
        }
    }
}

crate::rule! {
    /// The well-known part of RFC 8414 stands before the issuer's path.
    ///
    /// Behind it no client looks for it.
    static AS_WRONG_LOCATION = {
        id: "oauth/as-wrong-location",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Hint,
        versions: SINCE_2025_06,
        evidence: Evidence::Live,
        on: ON,
        place: "step:as",
        fix: "Insert the well-known part before the path.",
        spec: "RFC 8414 §3.1",
        examples: &[
                fires(
                    &["/exchanges/3/request/url"],
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as", "response": {"status": 404, "body": null}}, {"step": "as", "request": {"url": "https://login.example.org/tenant/.well-known/oauth-authorization-server"}}]}"#,
                )
                .over("conversation-2026-07-28"),
                silent(
                    r#"{"exchanges": [{"step": "discover", "response": {"status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"https://tides.example.com/.well-known/oauth-protected-resource/mcp\""}, "body": null}}, {"step": "prm"}, {"step": "as"}, {"step": "as", "request": {"url": "https://login.example.org/tenant/.well-known/oauth-authorization-server"}}]}"#,
                )
                .over("conversation-2026-07-28"),
        ],
        check: Check::Conversation(as_wrong_location),
    }
}

fn as_wrong_location(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let chain = Chain::of(conversation);
    for server in servers(&chain, out) {
        let asked = server.asked.iter().any(|(place, turn)| *place == AsPlace::Rfc8414 && is_missing(turn));
        if let Some(turn) = server.found(AsPlace::Rfc8414Appended).filter(|_| asked) {
            let place = format!("/exchanges/{}/request/url", turn.number);
            out.add_in(
                chain.revision(),
                place,
                format!("RFC 8414 metadata is found only at {}", quote(&turn.exchange.request.url)),
            );
        }
    }
}
