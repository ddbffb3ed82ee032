//! From settings to targets: what each named agent, address and file is called and where it is looked at.

use std::collections::HashMap;
use std::path::PathBuf;

use http::header::{self, HeaderName, HeaderValue};
use plumbline_rules::kind::Kind;
use plumbline_rules::text::registrable_domain;
use plumbline_store::steering::OptOuts;
use plumbline_store::targets::{HostName, NewTarget, OwnerName};
use plumbline_store::words::{Role, SourceKind, SurfaceKind, TargetKind};
use url::Url;

use crate::net::Header;
use crate::opt_out;
use crate::probe::mcp::active::Active;
use crate::probe::stdio::CommandAsk;
use crate::settings::{CommandTarget, Domains, FileTarget, SingleUrl, Targets};
use crate::sources::domains::{self, Card};

/// What the settings name, ready for the store and the probes.
#[derive(Debug, Default)]
pub struct Named {
    /// One source for every kind of list, with its targets.
    pub sources: Vec<(SourceKind, &'static str, Vec<NewTarget>)>,
    /// The operator's headers by the address they go to.
    pub headers: HashMap<String, Vec<Header>>,
    /// What may be done to the operator's own servers, by their addresses.
    pub active: HashMap<String, Active>,
    /// The operator's commands by the address they are kept under.
    pub commands: HashMap<String, CommandAsk>,
    /// Lines that were left out, a sentence each.
    pub problems: Vec<String>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NamingError {
    /// A list of domains cannot be read.
    #[error("domains.file: {0}")]
    Unreadable(#[from] std::io::Error),
    /// A header's value is not to be had.
    #[error("headers_env: {header} is to hold the variable {variable}, which {why}")]
    Header {
        /// The header.
        header: String,
        /// The variable.
        variable: String,
        /// What is the matter with it.
        why: &'static str,
    },
    /// Something is to be done to a server that is not marked as the operator's own.
    #[error("urls: {0}: `active` is only for kind = \"mcp-endpoint\" with own = true")]
    NotOwn(String),
    /// What is to be called to make a change is no address.
    #[error("urls.active.change_hook: `{0}` is no address")]
    Hook(String),
}

/// Names every agent, address and file of the settings. `variable` looks up the environment.
///
/// # Errors
/// When a file cannot be read or a header's variable is not set.
pub fn named(targets: &Targets, variable: &impl Fn(&str) -> Option<String>) -> Result<Named, NamingError> {
    let mut named = Named::default();
    let reading = domains::read_all(&targets.domains)?;
    named.problems = reading.problems;
    let mut cards = Vec::with_capacity(reading.cards.len());
    for card in &reading.cards {
        let group = &targets.domains[card.group];
        named.keep_headers(&card.address.url, &group.headers_env, variable)?;
        cards.push(card_target(card, group));
    }
    let mut urls = Vec::with_capacity(targets.urls.len());
    for single in &targets.urls {
        named.keep_headers(&single.url, &single.headers_env, variable)?;
        named.keep_active(single, variable)?;
        urls.push(url_target(single));
    }
    let files = targets.files.iter().map(file_target).collect();
    let commands = targets.commands.iter().map(command_target).collect();
    named.commands = targets.commands.iter().map(|one| (command_url(&one.name), command_ask(one, variable))).collect();
    named.sources = vec![
        (SourceKind::Domains, "domains", cards),
        (SourceKind::Settings, "urls", urls),
        (SourceKind::Settings, "files", files),
        (SourceKind::Settings, "commands", commands),
    ];
    Ok(named)
}

impl Named {
    /// Drops whoever asked to be left alone.
    pub fn leave_alone(&mut self, opt_outs: &OptOuts) {
        for (_, _, targets) in &mut self.sources {
            targets.retain(|target| {
                let host = target.host.as_ref().map(|host| host.name.as_str());
                !opt_out::covers(opt_outs, &target.key, host)
            });
        }
    }

    fn keep_active(
        &mut self,
        single: &SingleUrl,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), NamingError> {
        let Some(allowed) = &single.active else { return Ok(()) };
        if !single.own || single.kind != Kind::McpEndpoint {
            return Err(NamingError::NotOwn(single.url.clone()));
        }
        let token = |env: &Option<String>| {
            env.as_ref().map(|env| header_from(header::AUTHORIZATION.as_str(), env, variable)).transpose()
        };
        let hook =
            allowed.change_hook.as_deref().map(|hook| Url::parse(hook).map_err(|_| NamingError::Hook(hook.to_owned())));
        let active = Active {
            tools: allowed.tools.clone(),
            slow_tool: allowed.slow_tool.clone(),
            change_hook: hook.transpose()?,
            low_scope: token(&allowed.low_scope_env)?,
            other_audience: token(&allowed.other_audience_env)?,
            other_user: token(&allowed.other_user_env)?,
        };
        self.active.insert(single.url.clone(), active);
        Ok(())
    }

    fn keep_headers(
        &mut self,
        url: &str,
        names: &std::collections::BTreeMap<String, String>,
        variable: &impl Fn(&str) -> Option<String>,
    ) -> Result<(), NamingError> {
        let mut headers = Vec::with_capacity(names.len());
        for (name, env) in names {
            headers.push(header_from(name, env, variable)?);
        }
        if !headers.is_empty() {
            self.headers.insert(url.to_owned(), headers);
        }
        Ok(())
    }
}

/// A header whose value is in the environment.
fn header_from(name: &str, env: &str, variable: &impl Fn(&str) -> Option<String>) -> Result<Header, NamingError> {
    let wrong = |why| NamingError::Header { header: name.to_owned(), variable: env.to_owned(), why };
    let value = variable(env).ok_or_else(|| wrong("is not set"))?;
    let name = HeaderName::try_from(name).map_err(|_| wrong("goes to a header whose name is none"))?;
    let value = HeaderValue::try_from(value).map_err(|_| wrong("holds what no header can carry"))?;
    Ok(Header::secret(name, value))
}

fn card_target(card: &Card, group: &Domains) -> NewTarget {
    NewTarget {
        kind: TargetKind::A2aAgent,
        key: card.address.key.clone(),
        name: None,
        url: card.address.url.clone(),
        surface: SurfaceKind::AgentCard,
        role: Role::Main,
        host: host_of(&card.address.url),
        owner: owner(group.owner.as_deref(), &card.address.url),
        tags: tags(&group.tags),
        is_own: group.own,
        interval_s: seconds(group.interval_s),
    }
}

fn url_target(single: &SingleUrl) -> NewTarget {
    NewTarget {
        kind: target_kind(single.kind),
        key: single.url.clone(),
        name: None,
        url: single.url.clone(),
        surface: surface_kind(single.kind),
        role: Role::Main,
        host: host_of(&single.url),
        owner: owner(single.owner.as_deref(), &single.url),
        tags: tags(&single.tags),
        is_own: single.own,
        interval_s: seconds(single.interval_s),
    }
}

fn file_target(file: &FileTarget) -> NewTarget {
    NewTarget {
        kind: target_kind(file.kind),
        key: file.path.clone(),
        name: None,
        url: file_url(&file.path),
        surface: surface_kind(file.kind),
        role: Role::Main,
        host: None,
        owner: owner(file.owner.as_deref(), ""),
        tags: tags(&file.tags),
        is_own: file.own,
        interval_s: seconds(file.interval_s),
    }
}

fn command_target(command: &CommandTarget) -> NewTarget {
    NewTarget {
        kind: TargetKind::McpServer,
        key: command_url(&command.name),
        name: Some(command.name.clone()),
        url: command_url(&command.name),
        surface: SurfaceKind::McpEndpoint,
        role: Role::Main,
        host: None,
        owner: owner(command.owner.as_deref(), ""),
        tags: tags(&command.tags),
        is_own: true,
        interval_s: seconds(command.interval_s),
    }
}

/// How a command is started. A variable that is not set here is not set there.
fn command_ask(command: &CommandTarget, variable: &impl Fn(&str) -> Option<String>) -> CommandAsk {
    let env = command.env.iter().filter_map(|name| Some((name.clone(), variable(name)?)));
    CommandAsk {
        url: command_url(&command.name),
        command: command.command.clone(),
        env: env.collect(),
        folder: command.folder.as_ref().map(PathBuf::from),
        odd: true,
        tools: command.tools.clone(),
    }
}

/// The address under which a command is kept.
pub fn command_url(name: &str) -> String {
    format!("{COMMAND_SCHEME}{name}")
}

const COMMAND_SCHEME: &str = "stdio:";

/// The address under which a file's surface is kept.
pub fn file_url(path: &str) -> String {
    format!("{FILE_SCHEME}{path}")
}

/// The path behind such an address.
pub fn file_path(url: &str) -> Option<&str> {
    url.strip_prefix(FILE_SCHEME)
}

const FILE_SCHEME: &str = "file:";

/// The host of an address, as politeness and lists see it.
pub fn host_of(url: &str) -> Option<HostName> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let name = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Some(HostName { name, domain: registrable_domain(host).unwrap_or_else(|| host.to_owned()) })
}

/// The bare host name of an address; `None` where it has none.
pub fn host_name(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

/// The owner that the settings name, else the registrable domain of the address.
fn owner(named: Option<&str>, url: &str) -> Option<OwnerName> {
    let name = named.map(str::to_owned).or_else(|| host_of(url).map(|host| host.domain))?;
    Some(OwnerName { slug: slug(&name), name })
}

/// An interval as the store takes it.
fn seconds(interval_s: Option<u64>) -> Option<i64> {
    interval_s.map(|s| i64::try_from(s).unwrap_or(i64::MAX / 2).max(1))
}

fn slug(name: &str) -> String {
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

fn tags(tags: &[String]) -> Vec<(String, String)> {
    let pair = |tag: &String| match tag.split_once('=') {
        Some((key, value)) => (key.to_owned(), value.to_owned()),
        None => (tag.clone(), String::new()),
    };
    tags.iter().map(pair).collect()
}

fn target_kind(kind: Kind) -> TargetKind {
    match surface_kind(kind) {
        SurfaceKind::AgentCard => TargetKind::A2aAgent,
        SurfaceKind::ServerJson | SurfaceKind::McpServerCard | SurfaceKind::McpEndpoint => TargetKind::McpServer,
        SurfaceKind::Openapi => TargetKind::OpenapiService,
        SurfaceKind::OauthProtectedResource
        | SurfaceKind::OauthAuthorizationServer
        | SurfaceKind::OauthOpenidConfiguration => TargetKind::OauthService,
        _ => TargetKind::Other,
    }
}

/// The surface of a document kind: the two are spelled alike.
pub fn surface_kind(kind: Kind) -> SurfaceKind {
    kind.as_str().parse().unwrap_or(SurfaceKind::Unknown)
}

/// The document kind of a surface; `None` for what is no document of a stated kind.
pub fn document_kind(kind: SurfaceKind) -> Option<Kind> {
    kind.as_str().parse().ok().filter(|kind| !matches!(kind, Kind::Unknown | Kind::McpEndpoint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn targets(toml_like: Domains) -> Targets {
        Targets { domains: vec![toml_like], ..Targets::default() }
    }

    #[test]
    fn a_group_gives_its_cards_owner_tags_and_headers() {
        let group = Domains {
            list: vec!["agent.example.com".to_owned()],
            tags: vec!["tier=1".to_owned(), "edge".to_owned()],
            owner: Some("Harbour Office".to_owned()),
            own: true,
            headers_env: [("authorization".to_owned(), "TOKEN".to_owned())].into(),
            ..Domains::default()
        };
        let named =
            named(&targets(group), &|name| (name == "TOKEN").then(|| "Bearer x".to_owned())).expect("it is named");
        let card = &named.sources[0].2[0];
        assert_eq!(card.key, "agent.example.com");
        assert_eq!(card.owner.as_ref().map(|o| o.slug.as_str()), Some("harbour-office"));
        assert_eq!(card.tags, [("tier".to_owned(), "1".to_owned()), ("edge".to_owned(), String::new())]);
        assert_eq!(card.host.as_ref().map(|h| h.domain.as_str()), Some("example.com"));
        assert!(card.is_own && named.headers[&card.url][0].is_secret);
    }

    fn server(own: bool) -> Result<Named, NamingError> {
        let text = json!({
            "url": "https://tides.example/mcp", "kind": "mcp-endpoint", "own": own,
            "active": { "tools": [{ "name": "tide_table" }], "other_user_env": "OTHER" }
        });
        let urls = vec![serde_json::from_value(text).expect("it is an address")];
        named(&Targets { urls, ..Targets::default() }, &|name| (name == "OTHER").then(|| "Bearer x".to_owned()))
    }

    #[test]
    fn something_is_done_only_to_a_server_that_is_marked_as_own() {
        let named = server(true).expect("it is own");
        let active = &named.active["https://tides.example/mcp"];
        assert_eq!(active.tools[0].name, "tide_table");
        assert!(active.other_user.as_ref().is_some_and(|token| token.is_secret) && active.low_scope.is_none());
        assert!(matches!(server(false), Err(NamingError::NotOwn(url)) if url == "https://tides.example/mcp"));
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let group = Domains {
            list: vec!["a.example".to_owned()],
            headers_env: [("x-key".to_owned(), "NOPE".to_owned())].into(),
            ..Domains::default()
        };
        let error = named(&targets(group), &|_| None).unwrap_err().to_string();
        assert!(error.contains("NOPE") && error.contains("x-key") && error.contains("not set"), "{error}");
    }

    #[test]
    fn kinds_of_documents_and_surfaces_are_spelled_alike() {
        for kind in [Kind::AgentCard, Kind::ServerJson, Kind::Openapi, Kind::OauthProtectedResource] {
            assert_eq!(document_kind(surface_kind(kind)), Some(kind));
        }
        assert_eq!(document_kind(SurfaceKind::McpEndpoint), None);
    }
}
