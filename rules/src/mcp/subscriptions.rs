//! `subscriptions/listen`: the stream on which a server of the revision without sessions says what changed.

use super::MODERN;
use super::heard::{ON, heard};
use crate::conversation::{Conversation, Message, Turn};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::rule::{Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::session::Step;
use crate::text::quote;

pub(super) const RULES: &[&Rule] = &[&SUBSCRIPTIONS_ACK_MISSING, &SUBSCRIPTIONS_UNREQUESTED];

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

crate::rule! {
    /// A subscription is acknowledged first.
    ///
    /// The acknowledgement says what the client will be told of; until it comes the client cannot rely on anything.
    static SUBSCRIPTIONS_ACK_MISSING = {
        id: "mcp/subscriptions-ack-missing",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:subscriptions/listen",
        fix: "Acknowledge first.",
        spec: "2026-07-28 patterns/subscriptions",
        examples: &[
                fires(&["/exchanges/0/response"], r#"{"exchanges": [{"step": "subscriptions/listen", "response": {"raw": ": hi\n\n"}}]}"#),
                silent(r#"{"exchanges": [{"step": "subscriptions/listen"}]}"#),
        ],
        check: Check::Conversation(subscriptions_ack_missing),
    }
}

fn subscriptions_ack_missing(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::SubscriptionsListen], out) {
        if turn.answer.stream.is_none() || turn.exchange.success().is_none() {
            continue;
        }
        let first = turn.answer.messages.first();
        if first.and_then(Message::method) != Some(ACKNOWLEDGED) {
            let what = first.and_then(Message::method).map_or_else(|| "nothing".to_owned(), quote);
            out.add_in(turn.revision, turn.place(), format!("the stream begins with {what}"));
        }
    }
}

crate::rule! {
    /// A subscriber is told only of what it asked for.
    ///
    /// It filters to be spared the rest.
    static SUBSCRIPTIONS_UNREQUESTED = {
        id: "mcp/subscriptions-unrequested",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        versions: MODERN,
        mode: Mode::Probe,
        evidence: Evidence::Live,
        on: ON,
        place: "step:subscriptions/listen",
        fix: "Send only requested types.",
        spec: "2026-07-28 patterns/subscriptions",
        examples: &[
                fires(
                    &["/exchanges/0/response/events/0/data"],
                    r#"{"exchanges": [{"step": "subscriptions/listen", "response": {"raw": "data: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/subscriptions/acknowledged\", \"params\": {\"_meta\": {\"io.modelcontextprotocol/subscriptionId\": 31}, \"notifications\": {\"toolsListChanged\": true, \"promptsListChanged\": true}}}\n\n"}}]}"#,
                ),
                silent(r#"{"exchanges": [{"step": "subscriptions/listen"}]}"#),
        ],
        check: Check::Conversation(subscriptions_unrequested),
    }
}

fn subscriptions_unrequested(conversation: &Conversation<'_>, _: &Context<'_>, out: &mut Occurrences) {
    for turn in heard(conversation, &[Step::SubscriptionsListen], out) {
        for message in turn.answer.messages.iter().filter(|message| message.event.is_some()) {
            if let Some(odd) = unrequested(turn, message) {
                out.add_in(turn.revision, message.place(), format!("names {}, which was not asked for", quote(&odd)));
            }
        }
    }
}

/// The type of notification that a message names and the filter does not.
fn unrequested(turn: &Turn<'_>, message: &Message) -> Option<String> {
    let asked = turn.asked.as_ref()?.pointer("/params/notifications")?;
    let is_asked = |name: &str| asked.get(name).is_some_and(|value| value.as_bool() != Some(false));
    let kind = match message.method()? {
        ACKNOWLEDGED => {
            let params = message.object()?.get("params")?;
            let named = params.get("notifications").filter(|node| node.kind() == Type::Object)?;
            let odd = named.members().find(|(name, value)| value.flag() != Some(false) && !is_asked(name));
            return odd.map(|(name, _): (&str, Node<'_>)| name.to_owned());
        }
        "notifications/tools/list_changed" => "toolsListChanged",
        "notifications/prompts/list_changed" => "promptsListChanged",
        "notifications/resources/list_changed" => "resourcesListChanged",
        "notifications/resources/updated" => "resourceSubscriptions",
        _ => return None,
    };
    (!is_asked(kind)).then(|| kind.to_owned())
}
