//! What the interfaces of a card are asked, decided from the card alone: nothing here sends or waits.
//!
//! Each HTTP interface is asked once for a task that no server has; the first of 1.0 once more in a version that never was,
//! and the first of all for the extended card. gRPC is not asked.

use plumbline_rules::document::{Node, Type};
use plumbline_rules::session::Step;
use serde_json::{Value, json};
use url::Url;

/// Interfaces of one card that are asked.
const MOST_INTERFACES: usize = 5;
/// A task that no server has.
const NO_TASK: &str = "plumbline-7f3a2b6c8d90";
/// A version of A2A that never was.
const NO_VERSION: &str = "99.0";

/// One request to an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Why.
    pub step: Step,
    /// Where.
    pub url: String,
    /// `A2A-Version`.
    pub version: String,
    /// What is posted; `None` for a GET.
    pub body: Option<String>,
    /// The interface's base address, to be asked as well when its task path is not there; for HTTP+JSON only.
    pub base: Option<String>,
}

impl Question {
    /// The interface's base address in the same version, where it is worth a question of its own.
    pub(super) fn at_base(&self) -> Option<Question> {
        let url = self.base.clone()?;
        Some(Question { step: Step::InterfaceBase, url, version: self.version.clone(), body: None, base: None })
    }
}

/// A declared interface that can be asked over HTTP.
#[derive(Debug, Clone, PartialEq)]
struct Interface {
    url: Url,
    binding: Binding,
    /// As the header has it: major and minor.
    version: String,
    tenant: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    JsonRpc,
    HttpJson,
}

/// Everything that the interfaces of a card are asked, in order.
#[must_use]
pub fn questions(card: Node<'_>) -> Vec<Question> {
    let interfaces = interfaces(card);
    let mut questions: Vec<Question> = interfaces.iter().map(Interface::task).collect();
    if let Some(interface) = interfaces.iter().find(|interface| interface.is_new()) {
        let odd = Interface { version: NO_VERSION.to_owned(), ..interface.clone() };
        questions.push(Question { base: None, ..odd.task() });
    }
    questions.extend(interfaces.first().map(Interface::extended_card));
    questions
}

fn interfaces(card: Node<'_>) -> Vec<Interface> {
    let list = |name: &str| card.get(name).filter(|list| list.kind() == Type::Array).into_iter().flat_map(Node::items);
    let text = |node: Node<'_>, name: &str| node.get(name).and_then(Node::text).map(str::to_owned);
    let old_version = text(card, "protocolVersion").unwrap_or_else(|| "0.3".to_owned());
    let new = list("supportedInterfaces").filter_map(|interface| {
        let version = text(interface, "protocolVersion").unwrap_or_else(|| "1.0".to_owned());
        interface_of(
            &text(interface, "url")?,
            &text(interface, "protocolBinding")?,
            &version,
            text(interface, "tenant"),
        )
    });
    let main = text(card, "url").and_then(|url| {
        let transport = text(card, "preferredTransport").unwrap_or_else(|| "JSONRPC".to_owned());
        interface_of(&url, &transport, &old_version, None)
    });
    let others = list("additionalInterfaces").filter_map(|interface| {
        interface_of(&text(interface, "url")?, &text(interface, "transport")?, &old_version, None)
    });
    let mut kept: Vec<Interface> = Vec::new();
    for interface in new.chain(main).chain(others) {
        if kept.len() < MOST_INTERFACES && !kept.contains(&interface) {
            kept.push(interface);
        }
    }
    kept
}

fn interface_of(url: &str, binding: &str, version: &str, tenant: Option<String>) -> Option<Interface> {
    let binding = match binding {
        "JSONRPC" => Binding::JsonRpc,
        "HTTP+JSON" => Binding::HttpJson,
        _ => return None,
    };
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let version = major_and_minor(version)?;
    Some(Interface { url, binding, version, tenant: tenant.filter(|tenant| !tenant.is_empty()) })
}

/// `0.3` of `0.3.0`; `None` for what is no version.
fn major_and_minor(version: &str) -> Option<String> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let is_number = |text: &str| !text.is_empty() && text.len() < 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor)).then(|| format!("{major}.{minor}"))
}

impl Interface {
    fn is_new(&self) -> bool {
        !self.version.starts_with("0.")
    }

    /// Asks for a task that does not exist.
    fn task(&self) -> Question {
        match self.binding {
            Binding::JsonRpc => {
                let method = if self.is_new() { "GetTask" } else { "tasks/get" };
                self.call(Step::GetTask, method, json!({ "id": NO_TASK }))
            }
            Binding::HttpJson => Question {
                base: Some(self.url.to_string()),
                ..self.get(Step::GetTask, if self.is_new() { "tasks" } else { "v1/tasks" }, Some(NO_TASK))
            },
        }
    }

    /// Asks for the extended card without credentials.
    fn extended_card(&self) -> Question {
        match (self.binding, self.is_new()) {
            (Binding::JsonRpc, true) => self.call(Step::GetExtendedAgentCard, "GetExtendedAgentCard", json!({})),
            (Binding::JsonRpc, false) => {
                self.call(Step::GetExtendedAgentCard, "agent/getAuthenticatedExtendedCard", json!({}))
            }
            (Binding::HttpJson, true) => self.get(Step::GetExtendedAgentCard, "extendedAgentCard", None),
            (Binding::HttpJson, false) => self.get(Step::GetExtendedAgentCard, "v1/card", None),
        }
    }

    fn call(&self, step: Step, method: &str, mut params: Value) -> Question {
        if let Some(tenant) = &self.tenant {
            params["tenant"] = tenant.as_str().into();
        }
        let body = json!({ "jsonrpc": "2.0", "id": "plumbline-1", "method": method, "params": params });
        Question {
            step,
            url: self.url.to_string(),
            version: self.version.clone(),
            body: Some(body.to_string()),
            base: None,
        }
    }

    fn get(&self, step: Step, path: &str, last: Option<&str>) -> Question {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(self.tenant.as_deref()).extend(path.split('/')).extend(last);
        }
        Question { step, url: url.into(), version: self.version.clone(), body: None, base: None }
    }
}

#[cfg(test)]
mod tests {
    use plumbline_rules::document::Document;

    use super::*;

    fn asked(card: &str) -> Vec<String> {
        let document = Document::from_text(card);
        let said = |question: Question| {
            let body: Option<Value> = question.body.as_deref().and_then(|body| serde_json::from_str(body).ok());
            let method = body.map_or_else(|| "GET".to_owned(), |body| body["method"].to_string().replace('"', ""));
            format!("{} {} {} {method}", question.step, question.version, question.url)
        };
        questions(document.root().expect("JSON")).into_iter().map(said).collect()
    }

    #[test]
    fn every_interface_is_asked_for_a_task_and_the_first_for_more() {
        let card = r#"{"supportedInterfaces": [
            {"url": "https://t.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "https://t.example/rest/", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "blue"},
            {"url": "https://t.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}"#;
        assert_eq!(
            asked(card),
            [
                "GetTask 1.0 https://t.example/rpc GetTask",
                "GetTask 1.0 https://t.example/rest/blue/tasks/plumbline-7f3a2b6c8d90 GET",
                "GetTask 99.0 https://t.example/rpc GetTask",
                "GetExtendedAgentCard 1.0 https://t.example/rpc GetExtendedAgentCard",
            ]
        );
    }

    #[test]
    fn an_agent_of_0_3_is_asked_as_its_release_has_it() {
        let card = r#"{"protocolVersion": "0.3.0", "url": "https://t.example/", "additionalInterfaces": [
            {"url": "https://t.example/", "transport": "JSONRPC"}, {"url": "https://t.example/rest", "transport": "HTTP+JSON"}]}"#;
        assert_eq!(
            asked(card),
            [
                "GetTask 0.3 https://t.example/ tasks/get",
                "GetTask 0.3 https://t.example/rest/v1/tasks/plumbline-7f3a2b6c8d90 GET",
                "GetExtendedAgentCard 0.3 https://t.example/ agent/getAuthenticatedExtendedCard",
            ]
        );
    }

    #[test]
    fn no_question_starts_work() {
        let card = r#"{"url": "https://t.example/", "supportedInterfaces": [{"url": "https://t.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}"#;
        let document = Document::from_text(card);
        for question in questions(document.root().expect("JSON")) {
            let body: Value = serde_json::from_str(&question.body.expect("a call")).expect("JSON");
            let method = body["method"].as_str().expect("a method");
            let asks_only = ["GetTask", "tasks/get", "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"];
            assert!(asks_only.contains(&method), "{method}");
        }
    }

    #[test]
    fn what_names_no_address_or_version_is_not_asked() {
        for card in [
            r#"{"supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}"#,
            r#"{"supportedInterfaces": [{"url": "https://t.example", "protocolBinding": "JSONRPC", "protocolVersion": "one"}]}"#,
            r#"{"supportedInterfaces": {}, "url": 7}"#,
        ] {
            assert!(asked(card).is_empty(), "{card}");
        }
    }
}
