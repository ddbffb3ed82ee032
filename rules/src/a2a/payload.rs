//! What a card's signature is over: the payload forms that signers use, each made from the card as served.
//!
//! Only form `spec` is the one of A2A 1.0 §8.4.1. The others are what released software signs instead; trying them tells a
//! card that was changed from one that was signed over another form.

use crate::canonical;
use crate::document::{Document, Node, Type};
use crate::report::PayloadForm;

/// A form of the payload, ready to be verified.
pub(super) struct Payload<'d> {
    pub(super) text: String,
    /// What the card has and this form leaves out, defaults apart.
    pub(super) left_out: Vec<Node<'d>>,
}

/// Which forms a card of these versions can be signed over, in the order in which they are tried.
pub(super) fn forms(versions: &[&str]) -> Vec<PayloadForm> {
    let mut forms = Vec::new();
    if versions.contains(&"1.0") {
        forms.extend([PayloadForm::Spec, PayloadForm::Sdk]);
    }
    forms.push(PayloadForm::Raw);
    if versions.contains(&"1.0") {
        forms.push(PayloadForm::PyEscaped);
    }
    if versions.iter().any(|version| *version != "1.0") {
        forms.push(PayloadForm::Sdk03);
    }
    forms
}

/// Whether a card has a canonical form at all: no name stands twice in an object, and whole numbers in `params` are
/// exact as doubles.
pub(super) fn has_canonical_form(document: &Document) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let Some(root) = document.root() else { return false };
    let is_exact = |node: Node<'_>| match node.number() {
        Some(number) => number.is_finite() && (number.abs() <= LARGEST || !is_whole(node.raw())),
        None => true,
    };
    document.duplicate_members().next().is_none()
        && root.select("capabilities/extensions/*/params/**").into_iter().all(is_exact)
}

fn is_whole(raw: &str) -> bool {
    !raw.contains(['.', 'e', 'E'])
}

/// The card in one form.
pub(super) fn payload(card: Node<'_>, form: PayloadForm) -> Payload<'_> {
    let mut left_out = Vec::new();
    let text = match form {
        PayloadForm::Spec => {
            let value = project(card, CARD_1_0, Required::Kept, &mut left_out);
            written(&value, Style::Canonical)
        }
        PayloadForm::Raw => {
            let mut value = Value::of(card);
            if let Shape::Map(members) = &mut value.shape {
                members.retain(|(name, _)| *name != "signatures");
            }
            written(&value, Style::Canonical)
        }
        PayloadForm::Sdk => written(&of_sdk(card, CARD_1_0, &mut left_out), Style::Canonical),
        PayloadForm::PyEscaped => written(&of_sdk(card, CARD_1_0, &mut left_out), Style::Python { floats: true }),
        PayloadForm::Sdk03 => written(&of_sdk(card, CARD_0_3, &mut left_out), Style::Python { floats: false }),
    };
    Payload { text, left_out }
}

/// The projection of the SDKs: defaults dropped, then everything empty, from the bottom up.
fn of_sdk<'d>(card: Node<'d>, message: Message, left_out: &mut Vec<Node<'d>>) -> Value<'d> {
    let value = project(card, message, Required::LikeOthers, left_out);
    cleaned(value, left_out).unwrap_or(Value { from: card, shape: Shape::Map(Vec::new()) })
}

/// A value of a payload and the place in the card that it comes from.
struct Value<'d> {
    from: Node<'d>,
    shape: Shape<'d>,
}

enum Shape<'d> {
    /// Null, a boolean, a number or a string, as the card has it.
    Plain,
    List(Vec<Value<'d>>),
    Map(Vec<(&'d str, Value<'d>)>),
}

impl<'d> Value<'d> {
    /// Recursion is bounded: what has a tree nests at most [`crate::document::MAX_READ_DEPTH`] levels.
    fn of(node: Node<'d>) -> Value<'d> {
        let shape = match node.kind() {
            Type::Array => Shape::List(node.items().map(Value::of).collect()),
            Type::Object => Shape::Map(node.members().map(|(name, member)| (name, Value::of(member))).collect()),
            Type::Null | Type::Bool | Type::Number | Type::String => Shape::Plain,
        };
        Value { from: node, shape }
    }

    /// Whether it is the default of its type: empty, false or zero.
    fn is_default(&self) -> bool {
        match &self.shape {
            Shape::List(items) => items.is_empty(),
            Shape::Map(members) => members.is_empty(),
            Shape::Plain => match self.from.kind() {
                Type::Bool => self.from.flag() == Some(false),
                Type::String => self.from.text() == Some(""),
                Type::Number => self.from.number() == Some(0.0),
                _ => true,
            },
        }
    }
}

/// What the software that signs does with members that hold their default.
#[derive(Clone, Copy)]
enum Keep {
    /// Required: the specification keeps them, the SDKs treat them as the next.
    Required,
    /// Kept whenever the card has them.
    Given,
    /// Dropped when they hold their default.
    Filled,
    /// Dropped when they hold this value, which is the model's default.
    Unless(&'static str),
    /// Always dropped, since the model sets it by itself.
    Never,
}

#[derive(Clone, Copy, PartialEq)]
enum Required {
    Kept,
    LikeOthers,
}

/// What a member holds.
#[derive(Clone, Copy)]
enum Holds {
    /// Text, a flag, a list or map of texts, or something free: taken as it is.
    Plain,
    Message(Message),
    List(Message),
    Map(Message),
    /// A map of lists of security schemes' names or of schemes, whose message depends on `type`.
    Schemes,
}

struct Member {
    name: &'static str,
    keep: Keep,
    holds: Holds,
}

type Message = &'static [Member];

const fn required(name: &'static str) -> Member {
    Member { name, keep: Keep::Required, holds: Holds::Plain }
}

const fn given(name: &'static str) -> Member {
    Member { name, keep: Keep::Given, holds: Holds::Plain }
}

const fn filled(name: &'static str) -> Member {
    Member { name, keep: Keep::Filled, holds: Holds::Plain }
}

impl Member {
    const fn message(mut self, message: Message) -> Member {
        self.holds = Holds::Message(message);
        self
    }

    const fn list(mut self, message: Message) -> Member {
        self.holds = Holds::List(message);
        self
    }

    const fn map(mut self, message: Message) -> Member {
        self.holds = Holds::Map(message);
        self
    }
}

/// The messages of A2A 1.0 (a2a.proto).
const CARD_1_0: Message = &[
    required("name"),
    required("description"),
    required("supportedInterfaces").list(&[
        required("url"),
        required("protocolBinding"),
        filled("tenant"),
        required("protocolVersion"),
    ]),
    given("provider").message(&[required("url"), required("organization")]),
    required("version"),
    given("documentationUrl"),
    Member { name: "capabilities", keep: Keep::Given, holds: Holds::Message(CAPABILITIES_1_0) },
    filled("securitySchemes").map(SCHEME_1_0),
    filled("securityRequirements").list(REQUIREMENT_1_0),
    required("defaultInputModes"),
    required("defaultOutputModes"),
    required("skills").list(&[
        required("id"),
        required("name"),
        required("description"),
        required("tags"),
        filled("examples"),
        filled("inputModes"),
        filled("outputModes"),
        filled("securityRequirements").list(REQUIREMENT_1_0),
    ]),
    given("iconUrl"),
];

const CAPABILITIES_1_0: Message = &[
    given("streaming"),
    given("pushNotifications"),
    filled("extensions").list(&[filled("uri"), filled("description"), filled("required"), given("params")]),
    given("extendedAgentCard"),
];

const REQUIREMENT_1_0: Message = &[filled("schemes").map(&[filled("list")])];

const SCHEME_1_0: Message = &[
    given("apiKeySecurityScheme").message(&[filled("description"), required("location"), required("name")]),
    given("httpAuthSecurityScheme").message(&[filled("description"), required("scheme"), filled("bearerFormat")]),
    given("oauth2SecurityScheme").message(&[
        filled("description"),
        given("flows").message(FLOWS_1_0),
        filled("oauth2MetadataUrl"),
    ]),
    given("openIdConnectSecurityScheme").message(&[filled("description"), required("openIdConnectUrl")]),
    given("mtlsSecurityScheme").message(&[filled("description")]),
];

const FLOWS_1_0: Message = &[
    given("authorizationCode").message(&[
        required("authorizationUrl"),
        required("tokenUrl"),
        filled("refreshUrl"),
        required("scopes"),
        filled("pkceRequired"),
    ]),
    given("clientCredentials").message(&[required("tokenUrl"), filled("refreshUrl"), required("scopes")]),
    given("implicit").message(&[filled("authorizationUrl"), filled("refreshUrl"), filled("scopes")]),
    given("password").message(&[filled("tokenUrl"), filled("refreshUrl"), filled("scopes")]),
    given("deviceCode").message(&[
        required("deviceAuthorizationUrl"),
        required("tokenUrl"),
        filled("refreshUrl"),
        required("scopes"),
    ]),
];

/// The model of the Python SDK for A2A 0.3.
const CARD_0_3: Message = &[
    given("additionalInterfaces").list(&[given("transport"), given("url")]),
    given("capabilities").message(&[
        given("extensions").list(&[given("description"), given("params"), given("required"), given("uri")]),
        given("pushNotifications"),
        given("stateTransitionHistory"),
        given("streaming"),
    ]),
    given("defaultInputModes"),
    given("defaultOutputModes"),
    given("description"),
    given("documentationUrl"),
    given("iconUrl"),
    given("name"),
    Member { name: "preferredTransport", keep: Keep::Unless("JSONRPC"), holds: Holds::Plain },
    Member { name: "protocolVersion", keep: Keep::Unless("0.3.0"), holds: Holds::Plain },
    given("provider").message(&[given("organization"), given("url")]),
    given("security"),
    Member { name: "securitySchemes", keep: Keep::Given, holds: Holds::Schemes },
    given("skills").list(&[
        given("description"),
        given("examples"),
        given("id"),
        given("inputModes"),
        given("name"),
        given("outputModes"),
        given("security"),
        given("tags"),
    ]),
    given("supportsAuthenticatedExtendedCard"),
    given("url"),
    given("version"),
];

const TYPE: Member = Member { name: "type", keep: Keep::Never, holds: Holds::Plain };

/// The message of a security scheme of A2A 0.3, by its `type`.
fn scheme_0_3(scheme: Node<'_>) -> Message {
    const API_KEY: Message = &[TYPE, given("description"), given("in"), given("name")];
    const HTTP: Message = &[TYPE, given("bearerFormat"), given("description"), given("scheme")];
    const OTHER: Message = &[TYPE, given("description")];
    const OIDC: Message = &[TYPE, given("description"), given("openIdConnectUrl")];
    const OAUTH2: Message = &[
        TYPE,
        given("description"),
        given("flows").message(&[
            given("authorizationCode").message(FLOW_0_3),
            given("clientCredentials").message(FLOW_0_3),
            given("implicit").message(FLOW_0_3),
            given("password").message(FLOW_0_3),
        ]),
        given("oauth2MetadataUrl"),
    ];
    const FLOW_0_3: Message = &[given("authorizationUrl"), given("refreshUrl"), given("scopes"), given("tokenUrl")];
    match scheme.get("type").and_then(Node::text) {
        Some("apiKey") => API_KEY,
        Some("http") => HTTP,
        Some("oauth2") => OAUTH2,
        Some("openIdConnect") => OIDC,
        _ => OTHER,
    }
}

/// The value as the message has it: unknown members dropped, null as if it were not there.
fn project<'d>(node: Node<'d>, message: Message, required: Required, left_out: &mut Vec<Node<'d>>) -> Value<'d> {
    if node.kind() != Type::Object {
        return Value::of(node);
    }
    let mut members = Vec::new();
    for member in message {
        let Some((name, held)) = member_of(node, member.name) else { continue };
        let value = project_member(held, member, required, left_out);
        if is_kept(member, &value, required) {
            members.push((name, value));
        }
    }
    let known = |name: &str| message.iter().any(|member| member.name == name || is_snake_of(name, member.name));
    let is_own = |name: &str| name == "signatures" && node.parent().is_none();
    let unknown = node.members().filter(|(name, member)| !known(name) && !is_own(name) && !member.is_null());
    left_out.extend(unknown.map(|(_, member)| member));
    Value { from: node, shape: Shape::Map(members) }
}

fn project_member<'d>(held: Node<'d>, member: &Member, required: Required, left_out: &mut Vec<Node<'d>>) -> Value<'d> {
    let shape = match (member.holds, held.kind()) {
        (Holds::Message(message), _) => return project(held, message, required, left_out),
        (Holds::List(message), Type::Array) => {
            Shape::List(held.items().map(|item| project(item, message, required, left_out)).collect())
        }
        (Holds::Map(message), Type::Object) => Shape::Map(
            held.members().map(|(name, value)| (name, project(value, message, required, left_out))).collect(),
        ),
        (Holds::Schemes, Type::Object) => Shape::Map(
            held.members()
                .map(|(name, scheme)| (name, project(scheme, scheme_0_3(scheme), required, left_out)))
                .collect(),
        ),
        _ => return Value::of(held),
    };
    Value { from: held, shape }
}

fn is_kept(member: &Member, value: &Value<'_>, required: Required) -> bool {
    match member.keep {
        Keep::Required => required == Required::Kept || !value.is_default(),
        Keep::Given => true,
        Keep::Filled => !value.is_default(),
        Keep::Unless(default) => value.from.text() != Some(default),
        Keep::Never => false,
    }
}

/// The member of that name unless it is null. Readers of both models take the snake_case form too, and write the other.
fn member_of<'d>(node: Node<'d>, name: &'static str) -> Option<(&'d str, Node<'d>)> {
    let plain = node.given(name).map(|member| (name, member));
    plain.or_else(|| {
        let mut members = node.members().filter(|(key, member)| is_snake_of(key, name) && !member.is_null());
        members.next().map(|(_, member)| (name, member))
    })
}

fn is_snake_of(snake: &str, camel: &str) -> bool {
    let mut letters = camel.chars().flat_map(|c| {
        let underscore = c.is_ascii_uppercase().then_some('_');
        underscore.into_iter().chain(std::iter::once(c.to_ascii_lowercase()))
    });
    snake.contains('_') && snake.chars().all(|c| letters.next() == Some(c)) && letters.next().is_none()
}

/// The value without anything empty in it, from the bottom up; `None` when nothing is left. Lists and objects that vanish
/// although they are no plain default are noted.
fn cleaned<'d>(value: Value<'d>, left_out: &mut Vec<Node<'d>>) -> Option<Value<'d>> {
    let Value { from, shape } = value;
    let noted = left_out.len();
    let was_empty_list = matches!(&shape, Shape::List(items) if items.is_empty());
    let shape = match shape {
        Shape::Plain if from.is_null() || from.text() == Some("") => return None,
        Shape::Plain => Shape::Plain,
        Shape::List(items) => Shape::List(items.into_iter().filter_map(|item| cleaned(item, left_out)).collect()),
        Shape::Map(members) => Shape::Map(
            members.into_iter().filter_map(|(name, member)| Some((name, cleaned(member, left_out)?))).collect(),
        ),
    };
    let is_empty = match &shape {
        Shape::Plain => false,
        Shape::List(items) => items.is_empty(),
        Shape::Map(members) => members.is_empty(),
    };
    if !is_empty {
        return Some(Value { from, shape });
    }
    left_out.truncate(noted);
    if !was_empty_list {
        left_out.push(from);
    }
    None
}

/// How a payload is written.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// RFC 8785.
    Canonical,
    /// As Python's `json.dumps` writes it: everything but ASCII escaped, names sorted by code point. With `floats` every
    /// number went through a double first.
    Python { floats: bool },
}

fn written(value: &Value<'_>, style: Style) -> String {
    let mut out = String::with_capacity(value.from.raw().len());
    write(value, style, &mut out);
    out
}

fn write(value: &Value<'_>, style: Style, out: &mut String) {
    match &value.shape {
        Shape::Plain => write_plain(value.from, style, out),
        Shape::List(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, style, out);
            }
            out.push(']');
        }
        Shape::Map(members) => {
            let mut members: Vec<_> = members.iter().collect();
            match style {
                Style::Canonical => members.sort_by(|(a, _), (b, _)| canonical::order(a, b)),
                Style::Python { .. } => members.sort_by_key(|(name, _)| *name),
            }
            out.push('{');
            for (n, (name, member)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write_text(name, style, out);
                out.push(':');
                write(member, style, out);
            }
            out.push('}');
        }
    }
}

fn write_plain(node: Node<'_>, style: Style, out: &mut String) {
    match node.kind() {
        Type::String => write_text(node.text().unwrap_or_default(), style, out),
        Type::Number => match style {
            Style::Canonical => out.push_str(&canonical::number(node.raw())),
            Style::Python { floats } => out.push_str(&python_number(node.raw(), floats)),
        },
        _ => out.push_str(node.raw()),
    }
}

fn write_text(text: &str, style: Style, out: &mut String) {
    if style == Style::Canonical {
        return canonical::string(text, out);
    }
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            ' '..='~' => out.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// A number as Python prints it: a whole one as it is written, unless it went through a double.
fn python_number(raw: &str, floats: bool) -> String {
    if is_whole(raw) && !floats {
        return if raw == "-0" { "0".to_owned() } else { raw.to_owned() };
    }
    let Some(value) = raw.parse::<f64>().ok().filter(|value| value.is_finite()) else { return raw.to_owned() };
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0".to_owned() } else { "0.0".to_owned() };
    }
    let shortest = format!("{value:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        format!("{value:?}")
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_form(card: &str, form: PayloadForm) -> (String, Vec<String>) {
        let document = Document::from_text(card);
        let payload = payload(document.root().expect("it parses"), form);
        (payload.text, payload.left_out.iter().map(|node| node.pointer()).collect())
    }

    #[test]
    fn the_example_of_the_specification_comes_out_as_printed() {
        let card = r#"{"name":"Example Agent","description":"","capabilities":{"streaming":false,"pushNotifications":false,"extensions":[]},"skills":[]}"#;
        let printed = r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#;
        assert_eq!(in_form(card, PayloadForm::Spec), (printed.to_owned(), vec![]));
        let (sdk, left_out) = in_form(card, PayloadForm::Sdk);
        assert_eq!(sdk, r#"{"capabilities":{"pushNotifications":false,"streaming":false},"name":"Example Agent"}"#);
        assert!(left_out.is_empty());
    }

    #[test]
    fn unknown_members_are_outside_and_null_is_not_there() {
        let card =
            r#"{"name":"A","url":"https://a.example","x":null,"provider":{"url":"u","since":2},"signatures":[]}"#;
        let (spec, left_out) = in_form(card, PayloadForm::Spec);
        assert_eq!(spec, r#"{"name":"A","provider":{"url":"u"}}"#);
        assert_eq!(left_out, ["/provider/since", "/url"]);
        assert_eq!(
            in_form(card, PayloadForm::Raw).0,
            r#"{"name":"A","provider":{"since":2,"url":"u"},"url":"https://a.example","x":null}"#
        );
    }

    #[test]
    fn the_sdks_lose_a_requirement_without_scopes() {
        let card = r#"{"name":"A","securityRequirements":[{"schemes":{"key":{}}}],"securitySchemes":{"m":{"mtlsSecurityScheme":{}}}}"#;
        assert_eq!(
            in_form(card, PayloadForm::Spec).0,
            r#"{"name":"A","securityRequirements":[{"schemes":{"key":{}}}],"securitySchemes":{"m":{"mtlsSecurityScheme":{}}}}"#
        );
        let (sdk, left_out) = in_form(card, PayloadForm::Sdk);
        assert_eq!(sdk, r#"{"name":"A"}"#);
        assert_eq!(left_out, ["/securitySchemes", "/securityRequirements"]);
    }

    #[test]
    fn snake_case_is_read_and_written_as_the_other() {
        let card = r#"{"default_input_modes":["text/plain"],"icon_url":"","iconurl":"x"}"#;
        let (spec, left_out) = in_form(card, PayloadForm::Spec);
        assert_eq!(spec, r#"{"defaultInputModes":["text/plain"],"iconUrl":""}"#);
        assert_eq!(left_out, ["/iconurl"]);
        assert!(is_snake_of("oauth2_metadata_url", "oauth2MetadataUrl") && !is_snake_of("name", "name"));
    }

    #[test]
    fn the_model_of_0_3_drops_what_it_sets_itself() {
        let card = r#"{"protocolVersion":"0.3.0","preferredTransport":"GRPC","name":"Ä","security":[{"k":[]}],"securitySchemes":{"k":{"type":"http","scheme":"bearer"}},"skills":[{"id":"s","x":1}]}"#;
        let (text, left_out) = in_form(card, PayloadForm::Sdk03);
        assert_eq!(
            text,
            r#"{"name":"\u00c4","preferredTransport":"GRPC","securitySchemes":{"k":{"scheme":"bearer"}},"skills":[{"id":"s"}]}"#
        );
        assert_eq!(left_out, ["/skills/0/x", "/security"]);
    }

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        let rows = [
            ("1", "1.0", "1"),
            ("1.50", "1.5", "1.5"),
            ("-0", "-0.0", "0"),
            ("1e30", "1e+30", "1e+30"),
            ("0.000001", "1e-06", "1e-06"),
            ("123456789012345678", "1.2345678901234568e+17", "123456789012345678"),
            ("0.0001", "0.0001", "0.0001"),
            ("1e15", "1000000000000000.0", "1000000000000000.0"),
        ];
        for (raw, as_double, as_given) in rows {
            assert_eq!((python_number(raw, true).as_str(), python_number(raw, false).as_str()), (as_double, as_given));
        }
    }

    #[test]
    fn some_cards_have_no_canonical_form() {
        let has = |text: &str| has_canonical_form(&Document::from_text(text));
        assert!(has(r#"{"capabilities":{"extensions":[{"params":{"n":9007199254740991}}]},"x":9007199254740993}"#));
        assert!(!has(r#"{"capabilities":{"extensions":[{"params":{"n":[9007199254740993]}}]}}"#));
        assert!(!has(r#"{"name":"a","name":"a"}"#));
        assert!(!has(r#"{"name":"\ud800"}"#));
    }
}
