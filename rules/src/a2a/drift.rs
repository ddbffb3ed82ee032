//! What changed between the last two accepted cards of one place.
//!
//! Where another party answers, `common/identity-drift` says so, and what differs because of that is not listed again.

use super::interfaces::{Endpoint, comparable, endpoints, host_of};
use super::required::skills;
use super::schemes::oauth_urls;
use super::table::SINCE_0_3;
use super::verify::{Keys, Signatures};
use crate::common::drift::{crawls, is_another_party};
use crate::document::{Node, Type};
use crate::judge::{Context, Occurrences};
use crate::kind::{Kind, Profile};
use crate::report::{NotEvaluated, SignatureResult};
use crate::rule::{Basis, Check, Evidence, Impact, Mode, Rule, Severity, fires, silent};
use crate::text::{quote, same_site};

pub(super) const RULES: &[&Rule] = &[
    &INTERFACE_ORDER_CHANGED,
    &SECURITY_WEAKENED,
    &FOREIGN_HOST_NEW,
    &SIGNATURE_LOST,
    &SIGNING_KEY_CHANGED,
    &SKILL_REMOVED,
    &CAPABILITY_WITHDRAWN,
    &INTERFACE_REMOVED,
];

const EVERY: &[&str] = &["0.1", "0.2", "0.3", "1.0"];

/// A card at one crawl, read by its own release.
#[derive(Clone, Copy)]
struct Look<'d> {
    card: Node<'d>,
    profile: Profile,
}

impl<'d> Look<'d> {
    fn at(card: Node<'d>) -> Look<'d> {
        Look { card, profile: super::profile(card, None).0 }
    }

    fn endpoints(&self, context: &Context<'_>) -> Vec<Endpoint<'d>> {
        endpoints(self.card, &Context { profile: self.profile, ..context.clone() }).collect()
    }

    /// The interface that clients take first: the first new one, else the one at the top.
    fn preferred(&self, context: &Context<'_>) -> Option<Endpoint<'d>> {
        let mut all = self.endpoints(context);
        let at = all.iter().position(|endpoint| endpoint.is_new).or_else(|| all.len().checked_sub(1))?;
        Some(all.swap_remove(at))
    }

    /// Every address that the card sends somebody to.
    fn addresses(&self, context: &Context<'_>) -> Vec<Node<'d>> {
        let mut addresses: Vec<_> = self.endpoints(context).iter().map(|endpoint| endpoint.url).collect();
        addresses.extend(oauth_urls(self.card));
        addresses
    }

    /// The requirements, of which one has to be met.
    fn requirements(&self) -> Vec<Node<'d>> {
        requirements(self.card, self.profile)
    }
}

/// The requirements of a card, of which one has to be met.
pub(super) fn requirements<'d>(card: Node<'d>, profile: Profile) -> Vec<Node<'d>> {
    let (first, second) =
        if profile.has("1.0") { ("securityRequirements", "security") } else { ("security", "securityRequirements") };
    let list = card.given(first).or_else(|| card.given(second));
    list.into_iter().flat_map(Node::items).collect()
}

/// Whether a requirement asks for nothing.
pub(super) fn is_empty_requirement(requirement: &Node<'_>) -> bool {
    requirement.is_empty() || requirement.given("schemes").is_some_and(Node::is_empty)
}

/// How requirements became less.
enum Loosened<'d> {
    AllGone,
    EmptyAdded(Node<'d>),
}

/// The last two cards.
struct Change<'d, 'c> {
    before: Look<'d>,
    after: Look<'d>,
    context: &'c Context<'c>,
}

impl<'d, 'c> Change<'d, 'c> {
    /// `None` where there is nothing to compare, or another party answers.
    fn of(history: Node<'d>, context: &'c Context<'c>, out: &mut Occurrences) -> Option<Change<'d, 'c>> {
        let looks = crawls(history);
        let [.., before, after] = looks.as_slice() else {
            out.not_applicable();
            return None;
        };
        if is_another_party(history, &looks) {
            out.not_evaluated(NotEvaluated::Parent);
            return None;
        }
        Some(Change { before: Look::at(*before), after: Look::at(*after), context })
    }

    /// The interface that is preferred now, and the former one that is still declared.
    fn order(&self) -> Option<(Node<'d>, Node<'d>)> {
        let (before, after) = (self.before.preferred(self.context)?, self.after.preferred(self.context)?);
        let same = |one: &Endpoint<'_>, other: &Endpoint<'_>| is_same(one, other);
        if same(&before, &after) {
            return None;
        }
        let declared = self.after.endpoints(self.context);
        let former = declared.iter().find(|endpoint| same(endpoint, &before))?;
        Some((after.url.parent()?, former.url))
    }

    fn loosened(&self) -> Option<Loosened<'d>> {
        let (before, after) = (self.before.requirements(), self.after.requirements());
        if before.is_empty() || before.iter().any(is_empty_requirement) {
            return None;
        }
        if after.is_empty() {
            return Some(Loosened::AllGone);
        }
        after.into_iter().find(is_empty_requirement).map(Loosened::EmptyAdded)
    }

    /// Interfaces that are called over http and were called over https before.
    fn downgraded(&self) -> Vec<Node<'d>> {
        let texts = |look: &Look<'_>| -> Vec<String> {
            look.endpoints(self.context).iter().map(|endpoint| comparable(endpoint.text)).collect()
        };
        let (before, after) = (texts(&self.before), texts(&self.after));
        let was_safe = |endpoint: &Endpoint<'_>| {
            let text = comparable(endpoint.text);
            text.strip_prefix("http://").is_some_and(|rest| {
                let safe = format!("https://{rest}");
                before.contains(&safe) && !before.contains(&text) && !after.contains(&safe)
            })
        };
        self.after.endpoints(self.context).iter().filter(|endpoint| was_safe(endpoint)).map(|e| e.url).collect()
    }

    fn skills_gone(&self) -> Vec<&'d str> {
        let ids = |look: &Look<'d>| -> Vec<&'d str> {
            skills(look.card).filter_map(|skill| skill.get("id")?.text()).collect()
        };
        let after: std::collections::HashSet<_> = ids(&self.after).into_iter().collect();
        let mut gone = ids(&self.before);
        gone.retain(|id| !after.contains(id));
        gone
    }

    fn has_new_skill(&self) -> bool {
        let ids = |look: &Look<'d>| -> std::collections::HashSet<&'d str> {
            skills(look.card).filter_map(|skill| skill.get("id")?.text()).collect()
        };
        ids(&self.after).difference(&ids(&self.before)).next().is_some()
    }

    /// Flags that were true and are not, with the object that should have them.
    fn withdrawn(&self) -> Vec<(Node<'d>, &'static str)> {
        let is_on = |look: &Look<'d>, member: &str| {
            look.card.get("capabilities").and_then(|held| held.get(member)?.flag()) == Some(true)
        };
        let holder = self.after.card.get("capabilities").filter(|held| held.kind() == Type::Object);
        let flags = ["streaming", "pushNotifications"].into_iter();
        let mut withdrawn: Vec<_> = flags
            .filter(|member| is_on(&self.before, member) && !is_on(&self.after, member))
            .map(|member| (holder.unwrap_or(self.after.card), member))
            .collect();
        let extended = |look: &Look<'d>| {
            is_on(look, "extendedAgentCard")
                || look.card.get("supportsAuthenticatedExtendedCard").and_then(Node::flag) == Some(true)
        };
        if extended(&self.before) && !extended(&self.after) {
            withdrawn.push(match holder.filter(|_| self.after.profile.has("1.0")) {
                Some(holder) => (holder, "extendedAgentCard"),
                None => (self.after.card, "supportsAuthenticatedExtendedCard"),
            });
        }
        withdrawn
    }

    /// Interfaces other than the preferred one that are not declared any more.
    fn interfaces_gone(&self) -> Vec<Endpoint<'d>> {
        let after = self.after.endpoints(self.context);
        let primary = self.before.preferred(self.context);
        let mut gone = self.before.endpoints(self.context);
        gone.retain(|endpoint| {
            let is_primary = primary.as_ref().is_some_and(|primary| is_same(primary, endpoint));
            !is_primary && !after.iter().any(|declared| is_same(declared, endpoint))
        });
        gone
    }

    /// The signatures of both cards, checked with the same keys; `None` where there are none to check with.
    fn signatures(
        &self,
        history: Node<'_>,
        context: &Context<'_>,
        out: &mut Occurrences,
    ) -> Option<(Signatures, Signatures)> {
        let handed_in = history.given("jwks").map(Node::to_value).or_else(|| context.given.jwks.clone());
        let keys = Keys::new(handed_in.as_ref(), context.session);
        let check = |look: &Look<'_>| Signatures::of_card(look.card.raw(), look.profile.versions, &keys);
        let (before, after) = (check(&self.before), check(&self.after));
        let is_unknown = |entry: &super::verify::Entry| entry.result == SignatureResult::NoKeySet;
        if handed_in.is_none() || after.entries.iter().any(is_unknown) {
            out.not_evaluated(NotEvaluated::NoKeys);
            return None;
        }
        Some((before, after))
    }
}

/// Whether two are one interface: same address and binding, whatever its version. An entry of 1.0 that fails to name its
/// binding may be any at its address: a binding left out, or added later, is no interface that went.
fn is_same(one: &Endpoint<'_>, other: &Endpoint<'_>) -> bool {
    let said = |endpoint: &Endpoint<'_>| endpoint.binding.and_then(Node::text).map(str::to_ascii_uppercase);
    let binding = |endpoint: &Endpoint<'_>| match said(endpoint) {
        None if endpoint.is_new => None,
        said => Some(said.unwrap_or_else(|| "JSONRPC".to_owned())),
    };
    let (here, there) = (binding(one), binding(other));
    comparable(one.text) == comparable(other.text) && (here.is_none() || there.is_none() || here == there)
}

/// Whether a rule of this family names what changed between two cards, so that the change need not be noted as such.
pub(crate) fn change_is_named(before: Node<'_>, after: Node<'_>, context: &Context<'_>) -> bool {
    let change = Change { before: Look::at(before), after: Look::at(after), context };
    change.order().is_some()
        || change.loosened().is_some()
        || !change.downgraded().is_empty()
        || !change.skills_gone().is_empty()
        || !change.withdrawn().is_empty()
        || !change.interfaces_gone().is_empty()
}

/// Whether requirements became less, and whether a skill was added.
pub(crate) fn loosened_and_added(before: Node<'_>, after: Node<'_>, context: &Context<'_>) -> (bool, bool) {
    let change = Change { before: Look::at(before), after: Look::at(after), context };
    (change.loosened().is_some(), change.has_new_skill())
}

crate::rule! {
    /// The preferred interface stays the same.
    ///
    /// Clients that take the first one they can speak now use another, which is still declared.
    static INTERFACE_ORDER_CHANGED = {
        id: "a2a/interface-order-changed",
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "None needed if intended.",
        spec: "A2A 1.0 §8.3.1",
        examples: &[
            fires(&["/crawls/1/supportedInterfaces/0"], r#"{"crawls": [{"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}, {"supportedInterfaces": [{"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}]}"#),
            silent(r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}]}"#),
        ],
        check: Check::Document(interface_order_changed),
    }
}

fn interface_order_changed(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    if let Some((preferred, _)) = change.order() {
        out.add(preferred, "another interface is preferred now, while the former one is still declared");
    }
}

crate::rule! {
    /// What a card asks for before it answers does not become less.
    ///
    /// All requirements went away, an empty one was added, or an interface went from https to http. Whoever took over the
    /// card may want calls without credentials, or on a line that can be read.
    static SECURITY_WEAKENED = {
        id: "a2a/security-weakened",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 19,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Restore the requirement or confirm the change.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1/securityRequirements"], r#"{"crawls": [{}, {"securityRequirements": null}]}"#),
            fires(&["/crawls/1/securityRequirements/1"], r#"{"crawls": [{}, {"securityRequirements": [{"schemes": {"key": {"list": []}}}, {"schemes": {"key": null}}]}]}"#),
            fires(&["/crawls/1/supportedInterfaces/0/url"], r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "http://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}]}"#).beside(&["common/endpoint-drift"]),
            silent(r#"{"crawls": [{}, {"securityRequirements": [{"schemes": {"key": {"list": []}}}, {"schemes": {"key": {"list": ["read"]}}}]}]}"#),
        ],
        check: Check::Document(security_weakened),
    }
}

fn security_weakened(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    match change.loosened() {
        Some(Loosened::AllGone) => {
            let member = if change.after.profile.has("1.0") { "securityRequirements" } else { "security" };
            out.add_missing(change.after.card, member, "no requirement is left");
        }
        Some(Loosened::EmptyAdded(node)) => drop(out.add(node, "an empty requirement was added: nothing is asked for")),
        None => {}
    }
    for url in change.downgraded() {
        out.add(url, "this interface went from https to http");
    }
}

crate::rule! {
    /// The addresses of a card stay with the domains it had.
    ///
    /// Tokens or calls would go to a party that the card did not name before.
    static FOREIGN_HOST_NEW = {
        id: "a2a/foreign-host-new",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Confirm the new host with the operator.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1/supportedInterfaces/1/url"], r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.net/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}]}"#),
            silent(r#"{"crawls": [{}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://rest.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}]}"#),
        ],
        check: Check::Document(foreign_host_new),
    }
}

fn foreign_host_new(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    let own = context.address().into_iter().map(host_of);
    let known: Vec<&str> =
        change.before.addresses(context).iter().filter_map(|url| url.text()).map(host_of).chain(own).collect();
    let primary = change.after.preferred(context).map(|endpoint| endpoint.url);
    for url in change.after.addresses(context) {
        let host = url.text().map(host_of).unwrap_or_default();
        if Some(url) != primary && !host.is_empty() && !known.iter().any(|known| same_site(known, host)) {
            out.add(url, format!("{} belongs to no domain that the card named before", quote(host)));
        }
    }
}

crate::rule! {
    /// A card that was signed stays signed.
    ///
    /// Somebody who has not got the key serves the card now, or signing was forgotten. Clients that check refuse it.
    static SIGNATURE_LOST = {
        id: "a2a/signature-lost",
        severity: Severity::Error,
        impact: Some(Impact::Cosmetic),
        security: true,
        rank: 19,
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Sign the card again.",
        spec: "A2A 1.0 §8.4.3",
        examples: &[
            fires(&["/crawls/1/signatures"], r#"{"crawls": [{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}, {}], "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"crawls": [{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}, {"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}], "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
            silent(r#"{"crawls": [{}, {}], "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(signature_lost),
    }
}

fn signature_lost(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    let Some((before, after)) = change.signatures(history, context, out) else { return };
    if before.signers().is_empty() || !after.signers().is_empty() {
        return;
    }
    let says =
        if after.entries.is_empty() { "the card is not signed any more" } else { "no signature is valid any more" };
    out.add_missing(change.after.card, "signatures", says);
}

crate::rule! {
    /// A card is signed with a key that was seen before.
    ///
    /// Keys are changed now and then; a new one alone, without any of the old, is also what a takeover looks like.
    static SIGNING_KEY_CHANGED = {
        id: "a2a/signing-key-changed",
        severity: Severity::Warning,
        impact: Some(Impact::Cosmetic),
        security: true,
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Confirm the new key with the operator.",
        spec: "A2A 1.0 §8.4.3",
        examples: &[
            fires(&["/crawls/1/signatures"], r#"{"crawls": [{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}, {"signatures": [{"signature": "36dbFiWItuyH1CBs2CioAiC0LVoDNdX9bkXv8AGENWf4r1Tz59xshTi9D59DWt9KG79BO8am7sIKbdReijCACw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMiIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}], "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}, {"kty": "OKP", "crv": "Ed25519", "x": "E5j2LG0aRXxRumpLXz29L2n8qTIWIY3ImX5Ba9F9k8o", "kid": "k2"}]}}"#),
            silent(r#"{"crawls": [{"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}, {"signatures": [{"signature": "3hAa9t4ibGR3V-U6ff3n6Sptj0YdZjUo4F2QkvPs1kIWaVbap3VuKtX9ri4X_OTqLgJK01rfohmf8QIlRuTQDw", "protected": "eyJhbGciOiJFZERTQSIsInR5cCI6IkpPU0UiLCJraWQiOiJrMSIsImprdSI6Imh0dHBzOi8vdGlkZXMuZXhhbXBsZS5jb20vandrcy5qc29uIn0"}]}], "jwks": {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw", "kid": "k1"}]}}"#),
        ],
        check: Check::Document(signing_key_changed),
    }
}

fn signing_key_changed(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    let Some((before, after)) = change.signatures(history, context, out) else { return };
    let known = before.signers();
    let signers = after.signers();
    if !known.is_empty() && !signers.is_empty() && !signers.iter().any(|signer| known.contains(signer)) {
        out.add_missing(change.after.card, "signatures", "none of the keys that sign it did so before");
    }
}

crate::rule! {
    /// A skill stays.
    ///
    /// Callers that ask for it by its id get an error.
    static SKILL_REMOVED = {
        id: "a2a/skill-removed",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Tell clients before removing a skill.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1/skills"], r#"{"crawls": [{"skills": [{}, {"id": "winds"}]}, {}]}"#),
            silent(r#"{"crawls": [{}, {"skills": [{"name": "Find tides"}]}]}"#),
        ],
        check: Check::Document(skill_removed),
    }
}

fn skill_removed(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    for id in change.skills_gone() {
        out.add_missing(change.after.card, "skills", format!("the skill {} is gone", quote(id)));
    }
}

crate::rule! {
    /// A capability stays.
    ///
    /// Clients that stream, wait for notifications or ask for the extended card are refused.
    static CAPABILITY_WITHDRAWN = {
        id: "a2a/capability-withdrawn",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: SINCE_0_3,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Tell clients before withdrawing a capability.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1/capabilities/streaming"], r#"{"crawls": [{"capabilities": {"streaming": true}}, {}]}"#),
            silent(r#"{"crawls": [{}, {"capabilities": {"streaming": null}}]}"#),
        ],
        check: Check::Document(capability_withdrawn),
    }
}

fn capability_withdrawn(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    for (holder, member) in change.withdrawn() {
        out.add_missing(holder, member, format!("`{member}` was true"));
    }
}

crate::rule! {
    /// A further interface stays.
    ///
    /// Clients that use it cannot reach the agent any more.
    static INTERFACE_REMOVED = {
        id: "a2a/interface-removed",
        severity: Severity::Warning,
        impact: Some(Impact::Degrades),
        basis: Basis::Policy,
        versions: EVERY,
        on: &[Kind::History],
        mode: Mode::History,
        evidence: Evidence::History,
        place: "drift",
        fix: "Keep old endpoints for a time.",
        spec: "Plumbline policy",
        examples: &[
            fires(&["/crawls/1/supportedInterfaces"], r#"{"crawls": [{"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}, {}]}"#),
            silent(r#"{"crawls": [{"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.1"}]}]}"#),
            silent(r#"{"crawls": [{"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": null, "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": null, "protocolVersion": "1.0"}]}]}"#),
            silent(r#"{"crawls": [{"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": null, "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": null, "protocolVersion": "1.0"}]}, {"supportedInterfaces": [{"url": "https://tides.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}, {"url": "https://tides.example.com/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]}]}"#),
        ],
        check: Check::Document(interface_removed),
    }
}

fn interface_removed(history: Node<'_>, context: &Context<'_>, out: &mut Occurrences) {
    let Some(change) = Change::of(history, context, out) else { return };
    for endpoint in change.interfaces_gone() {
        let member = if change.after.profile.has("1.0") { "supportedInterfaces" } else { "additionalInterfaces" };
        out.add_missing(change.after.card, member, format!("{} is gone", quote(endpoint.text)));
    }
}
