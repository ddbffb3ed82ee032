//! What is said to an MCP endpoint: one request of each kind, and the odd ones, each a copy of an ordinary one with one
//! change.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{HeaderName, HeaderValue};
use plumbline_rules::conversation::{META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, NEWEST_LEGACY};
use plumbline_rules::session::Step;
use serde_json::{Value, json};

use crate::net::{Until, Wire};

/// The origin of a page that no browser ever showed.
pub const FOREIGN_ORIGIN: &str = "https://plumbline-origin-check.invalid";
/// The host of that page.
const FOREIGN_HOST: &str = "plumbline-origin-check.invalid";
/// A session that no server opened.
const MADE_UP_SESSION: &str = "plumbline-made-up-session-7f3a2b6c8d90";
/// A cursor that no server gave.
const MADE_UP_CURSOR: &str = "plumbline-invalid-cursor";
/// A method that no server knows.
const MADE_UP_METHOD: &str = "plumbline/does-not-exist";
/// Half a message.
const HALF_A_MESSAGE: &str = r#"{"jsonrpc":"2.0","id":91,"method":"#;

/// The lists by the capability that declares them.
pub const LISTS: [(&str, &str); 4] = [
    ("tools", "tools/list"),
    ("resources", "resources/list"),
    ("resources", "resources/templates/list"),
    ("prompts", "prompts/list"),
];

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// What it is for.
    pub step: Step,
    /// `POST`, `GET` or `DELETE`.
    pub verb: Verb,
    /// Headers by name in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: Option<String>,
    /// What is waited for on an event stream in answer.
    pub until: Until,
    /// Over which connection.
    pub wire: Wire,
    /// How long before it is sent.
    pub pause: Duration,
    /// With whose credentials.
    pub credentials: Credentials,
}

/// With whose credentials something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// Those that the operator gave for this server, if any.
    Operators,
    /// None.
    Nobodys,
    /// The operator's, in the address and nowhere else.
    InQuery,
    /// Some that nobody gave out.
    MadeUp,
    /// Some that lack a scope.
    LowScope,
    /// Some for another resource.
    OtherAudience,
    /// Those of another user.
    OtherUser,
}

/// The HTTP method of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A message.
    Post,
    /// A stream.
    Get,
    /// The end of a session.
    Delete,
}

impl Message {
    fn post(step: Step, body: &Value) -> Message {
        let id = body.get("id").cloned();
        Message {
            step,
            verb: Verb::Post,
            headers: vec![
                ("content-type", "application/json".to_owned()),
                ("accept", "application/json, text/event-stream".to_owned()),
            ],
            body: Some(body.to_string()),
            until: id.map_or(Until::Never, Until::Answer),
            wire: Wire::Titled,
            pause: Duration::ZERO,
            credentials: Credentials::Operators,
        }
    }

    /// The same with other credentials.
    pub fn by(self, credentials: Credentials) -> Message {
        Message { credentials, ..self }
    }

    /// The same with a header that says what the body is about (2026-07-28): as it stands where a header can carry it, else
    /// in base64.
    pub fn naming(self, name: &str) -> Message {
        let is_plain = |text: &str| {
            text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
                && text.trim() == text
                && !text.starts_with("=?base64?")
        };
        match is_plain(name) {
            true => self.with("mcp-name", name),
            false => self.with("mcp-name", &format!("=?base64?{}?=", BASE64.encode(name))),
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Message {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    fn without(mut self, name: &str) -> Message {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    fn raw(mut self, body: &str) -> Message {
        self.body = Some(body.to_owned());
        self
    }

    /// A body that breaks off in place of its own.
    pub fn broken_off(self) -> Message {
        self.raw(HALF_A_MESSAGE)
    }

    /// The same, after a while.
    pub fn after(mut self, pause: Duration) -> Message {
        self.pause = pause;
        self
    }

    /// The same, on a connection of its own.
    pub fn alone(mut self) -> Message {
        self.wire = Wire::Fresh;
        self
    }

    /// Its headers as they are sent. What cannot stand in a header is left out: a server may give a session any id.
    pub fn sent_headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        let sent = |(name, value): &(&'static str, String)| {
            Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
        };
        self.headers.iter().filter_map(sent).collect()
    }
}

fn client() -> Value {
    json!({ "name": "plumbline", "version": env!("CARGO_PKG_VERSION") })
}

/// Requests of the revision without sessions.
pub mod modern {
    use super::*;

    fn meta(version: &str) -> Value {
        json!({ META_VERSION: version, META_CLIENT: client(), META_CAPABILITIES: {} })
    }

    /// Any request; what `params` holds of `_meta` stands beside what the revision asks for.
    pub fn request(step: Step, id: i64, method: &str, mut params: Value) -> Message {
        let mut whole = meta(MODERN);
        if let (Some(whole), Some(own)) = (whole.as_object_mut(), params["_meta"].as_object()) {
            whole.extend(own.clone());
        }
        params["_meta"] = whole;
        Message::post(step, &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .with("mcp-protocol-version", MODERN)
            .with("mcp-method", method)
    }

    /// `server/discover`.
    pub fn discover(id: i64) -> Message {
        request(Step::Discover, id, "server/discover", json!({}))
    }

    /// `server/discover` in another revision than the one we prefer.
    pub fn discover_in(id: i64, version: &str) -> Message {
        let params = json!({ "_meta": meta(version) });
        Message::post(
            Step::Discover,
            &json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params }),
        )
        .with("mcp-protocol-version", version)
        .with("mcp-method", "server/discover")
    }

    /// One page of a list.
    pub fn list(step: Step, id: i64, method: &str, cursor: Option<&str>) -> Message {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        request(step, id, method, params)
    }

    /// GET for a stream, which there is none of.
    pub fn get() -> Message {
        Message {
            step: Step::Get,
            verb: Verb::Get,
            headers: vec![("accept", "text/event-stream".to_owned()), ("mcp-protocol-version", MODERN.to_owned())],
            body: None,
            until: Until::Never,
            wire: Wire::Titled,
            pause: Duration::ZERO,
            credentials: Credentials::Operators,
        }
    }

    /// DELETE of a session, which there is none of.
    pub fn delete() -> Message {
        Message { step: Step::Delete, verb: Verb::Delete, ..get() }.without("accept")
    }

    /// A subscription to what was declared; `watched` are the resources whose changes are to be told, where that is
    /// declared.
    pub fn listen(id: i64, wanted: &[&str], watched: Option<&[String]>) -> Message {
        let mut wanted: serde_json::Map<String, Value> =
            wanted.iter().map(|name| ((*name).to_owned(), true.into())).collect();
        wanted.extend(watched.map(|watched| ("resourceSubscriptions".to_owned(), watched.into())));
        Message {
            until: Until::Never,
            ..request(Step::SubscriptionsListen, id, "subscriptions/listen", json!({ "notifications": wanted }))
        }
    }

    /// The odd requests: `server/discover` with one change each. `undeclared` are the list methods that were not declared,
    /// `listed` says whether tools were.
    pub fn odd(undeclared: &[&str], listed: bool) -> Vec<Message> {
        let discover = |step: Step, id: i64| Message { step, ..discover(id) };
        let body = |id: Value, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params });
        let changed = |step: Step, id: i64, meta: Value| {
            discover(step, id).raw(&body(id.into(), json!({ "_meta": meta })).to_string())
        };
        let mut extra = meta(MODERN);
        extra["dev.plumbline/probe"] = "1".into();
        let null_id = body(Value::Null, json!({ "_meta": meta(MODERN) })).to_string();
        let batch = Value::from(vec![body(54.into(), json!({ "_meta": meta(MODERN) }))]).to_string();
        let mut odd = vec![
            changed(Step::BadVersion, 40, meta("1900-01-01")).with("mcp-protocol-version", "1900-01-01"),
            discover(Step::HeaderVersionMismatch, 41).with("mcp-protocol-version", NEWEST_LEGACY),
            discover(Step::HeaderVersionMissing, 42).without("mcp-protocol-version"),
            discover(Step::HeaderMethodMissing, 43).without("mcp-method"),
            discover(Step::HeaderMethodMismatch, 44).with("mcp-method", "tools/list"),
            Message { wire: Wire::Usual, ..discover(Step::HeaderCase, 45) },
            discover(Step::NoMeta, 46).raw(&body(46.into(), json!({})).to_string()),
            changed(Step::NoClientCapabilities, 47, json!({ META_VERSION: MODERN, META_CLIENT: client() })),
            changed(Step::NoClientInfo, 48, json!({ META_VERSION: MODERN, META_CAPABILITIES: {} })),
            changed(Step::ExtraMeta, 49, extra),
            discover(Step::StraySessionId, 50).with("mcp-session-id", MADE_UP_SESSION),
            discover(Step::NullId, 51).raw(&null_id),
            request(Step::UnknownMethod, 52, MADE_UP_METHOD, json!({})),
            request(Step::RemovedMethod, 53, "ping", json!({})),
            discover(Step::MalformedJson, 91).raw(HALF_A_MESSAGE),
            discover(Step::InvalidRequest, 92).raw(r#"{"jsonrpc":"2.0","id":92}"#),
            discover(Step::Batch, 54).raw(&batch),
            discover(Step::TextPlain, 55).with("content-type", "text/plain"),
            discover(Step::AcceptAny, 56).with("accept", "*/*"),
            discover(Step::Origin, 57).with("origin", FOREIGN_ORIGIN),
        ];
        if listed {
            odd.push(list(Step::BadCursor, 58, "tools/list", Some(MADE_UP_CURSOR)));
        }
        odd.extend(undeclared.iter().zip(59..).map(|(method, id)| list(Step::Undeclared, id, method, None)));
        odd.push(delete());
        odd
    }
}

/// Requests of the revisions with a handshake.
pub mod legacy {
    use super::*;

    /// What was agreed on.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct Agreed {
        /// The revision.
        pub version: String,
        /// The session's id, when the server keeps sessions.
        pub session: Option<String>,
    }

    /// The handshake, without a session.
    pub fn initialize(step: Step, id: &str, version: &str) -> Message {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client() });
        Message::post(step, &json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params }))
    }

    impl Agreed {
        /// Whether requests name the revision in a header.
        fn has_version_header(&self) -> bool {
            self.version.as_str() >= "2025-06-18"
        }

        fn headed(&self, message: Message) -> Message {
            let message = match self.has_version_header() {
                true => message.with("mcp-protocol-version", &self.version),
                false => message,
            };
            match &self.session {
                Some(session) => message.with("mcp-session-id", session),
                None => message,
            }
        }

        /// Any request.
        pub fn request(&self, step: Step, id: &Value, method: &str, params: Option<Value>) -> Message {
            let mut body = json!({ "jsonrpc": "2.0", "id": id, "method": method });
            if let Some(params) = params {
                body["params"] = params;
            }
            self.headed(Message::post(step, &body))
        }

        /// `notifications/initialized`.
        pub fn initialized(&self) -> Message {
            self.headed(Message::post(
                Step::Initialized,
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            ))
        }

        /// A notice.
        pub fn notice(&self, step: Step, method: &str, params: &Value) -> Message {
            self.headed(Message::post(step, &json!({ "jsonrpc": "2.0", "method": method, "params": params })))
        }

        /// `ping`.
        pub fn ping(&self, step: Step, id: i64) -> Message {
            self.request(step, &id.into(), "ping", None)
        }

        /// One page of a list.
        pub fn list(&self, step: Step, id: &str, method: &str, cursor: Option<&str>) -> Message {
            let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            self.request(step, &id.into(), method, Some(params))
        }

        /// GET for the session's stream.
        pub fn get(&self) -> Message {
            let get = Message { verb: Verb::Get, body: None, until: Until::Never, ..self.ping(Step::Get, 0) };
            get.without("content-type").with("accept", "text/event-stream")
        }

        /// The end of a session.
        pub fn delete(&self, session: &str) -> Message {
            let delete =
                Message { verb: Verb::Delete, body: None, until: Until::Never, ..self.ping(Step::SessionDelete, 0) };
            delete.without("content-type").without("accept").with("mcp-session-id", session)
        }

        /// The odd requests. `is_local` says that the endpoint is on this machine or network.
        pub fn odd(&self, undeclared: &[&str], listed: bool, is_local: bool) -> Vec<Message> {
            let ping = |step: Step, id: i64| self.ping(step, id);
            let one = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            let batch = if self.version == "2025-03-26" { vec![one(74), one(75)] } else { vec![one(74)] };
            let mut odd = vec![
                initialize(Step::NegotiateSame, "init-2", &self.version),
                initialize(Step::NegotiateUnknown, "init-3", "1999-01-01"),
                initialize(Step::SessionSample, "init-4", &self.version),
                initialize(Step::SessionSample, "init-5", &self.version),
            ];
            if self.session.is_some() {
                odd.push(ping(Step::SessionMissing, 70).without("mcp-session-id"));
                odd.push(ping(Step::SessionUnknown, 71).with("mcp-session-id", MADE_UP_SESSION));
            }
            if self.has_version_header() {
                odd.push(ping(Step::LegacyBadVersionHeader, 72).with("mcp-protocol-version", "1999-01-01"));
                odd.push(ping(Step::LegacyNoVersionHeader, 73).without("mcp-protocol-version"));
            }
            odd.extend([
                self.request(Step::UnknownMethod, &76.into(), MADE_UP_METHOD, Some(json!({}))),
                ping(Step::MalformedJson, 91).raw(HALF_A_MESSAGE),
                ping(Step::InvalidRequest, 92).raw(r#"{"jsonrpc":"2.0","id":92}"#),
                ping(Step::NullId, 77).raw(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
                ping(Step::Batch, 74).raw(&Value::from(batch).to_string()),
                initialize(Step::TextPlain, "init-6", &self.version).with("content-type", "text/plain"),
                ping(Step::AcceptAny, 78).with("accept", "*/*"),
                initialize(Step::Origin, "init-7", &self.version).with("origin", FOREIGN_ORIGIN),
            ]);
            if is_local {
                let rebound = initialize(Step::Origin, "init-8", &self.version).with("origin", FOREIGN_ORIGIN);
                odd.push(rebound.with("host", FOREIGN_HOST));
            }
            if listed {
                odd.push(self.list(Step::BadCursor, "list-90", "tools/list", Some(MADE_UP_CURSOR)));
                odd.push(self.list(Step::NoHandshake, "list-91", "tools/list", None).without("mcp-session-id"));
            }
            odd.extend(
                undeclared
                    .iter()
                    .zip(92..)
                    .map(|(method, n)| self.list(Step::Undeclared, &format!("list-{n}"), method, None)),
            );
            odd
        }
    }
}

#[cfg(test)]
mod tests {
    use super::legacy::Agreed;
    use super::*;

    fn header<'m>(message: &'m Message, name: &str) -> Option<&'m str> {
        message.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_modern_request_names_revision_and_method_twice() {
        let message = modern::discover(1);
        let body: Value = serde_json::from_str(message.body.as_deref().unwrap()).unwrap();
        assert_eq!(header(&message, "mcp-protocol-version"), Some(MODERN));
        assert_eq!(header(&message, "mcp-method"), Some("server/discover"));
        assert_eq!(body["params"]["_meta"][META_VERSION], MODERN);
        assert_eq!(message.until, Until::Answer(1.into()));
    }

    #[test]
    fn no_odd_request_calls_a_tool() {
        let agreed = Agreed { version: "2025-11-25".to_owned(), session: Some("s".to_owned()) };
        let mut all = modern::odd(&["prompts/list"], true);
        all.extend(agreed.odd(&["prompts/list"], true, true));
        let allowed = ["server/discover", "initialize", "ping", "tools/list", "prompts/list", MADE_UP_METHOD];
        for body in all.iter().filter_map(|message| message.body.as_deref()) {
            let Ok(body) = serde_json::from_str::<Value>(body) else { continue };
            let messages = body.as_array().cloned().unwrap_or_else(|| vec![body]);
            for method in messages.iter().filter_map(|message| message.get("method")?.as_str()) {
                assert!(allowed.contains(&method), "{method}");
            }
        }
    }

    #[test]
    fn the_header_of_the_revision_is_sent_since_it_exists() {
        for (version, sent) in [("2025-03-26", None), ("2025-06-18", Some("2025-06-18"))] {
            let agreed = Agreed { version: version.to_owned(), session: None };
            assert_eq!(header(&agreed.ping(Step::Ping, 1), "mcp-protocol-version"), sent);
        }
    }

    #[test]
    fn every_odd_request_has_a_step_and_an_id_of_its_own() {
        let agreed = Agreed { version: "2025-11-25".to_owned(), session: Some("s".to_owned()) };
        for odd in [modern::odd(&["prompts/list"], true), agreed.odd(&["prompts/list"], true, false)] {
            let ids: Vec<_> = odd
                .iter()
                .filter_map(|message| match &message.until {
                    Until::Answer(id) => Some(id.to_string()),
                    _ => None,
                })
                .collect();
            let mut once = ids.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), ids.len(), "{ids:?}");
        }
    }
}
