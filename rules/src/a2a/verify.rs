//! Checks the signatures of a card with the keys that were handed in or recorded: the operator's own first, then the key
//! set that the signature names. What comes of it is facts; the rules of `keys` speak about them.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use super::payload::{Payload, forms, has_canonical_form, payload};
use super::signatures::{algorithm, has_odd_header, is_none};
use crate::canonical::Hash;
use crate::document::{Document, Node, Type};
use crate::jose::{Algorithm, Key, base64url, key_set, protected_header, signing_input};
use crate::judge::Context;
use crate::report::{CheckedSignature, PayloadForm, SignatureResult};
use crate::session::{Exchange, Session, Step};
use crate::text::{AbsoluteUrl, host_is_loopback};

/// Verifications done for one card: a stranger writes the signatures, and may write the keys too.
const MOST_ATTEMPTS: usize = 256;

/// What checking the signatures of a card gave.
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    /// One for each entry of `signatures`.
    pub(super) entries: Vec<Entry>,
    /// The key sets that were looked into.
    pub(super) sets: Vec<KeySet>,
}

/// One signature.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) pointer: String,
    pub(super) result: SignatureResult,
    /// The form it is valid over.
    pub(super) form: Option<PayloadForm>,
    /// Pointers of what that form leaves out.
    pub(super) left_out: Vec<String>,
    pub(super) alg: Option<String>,
    pub(super) kid: Option<String>,
    /// The thumbprint of the key that verified it.
    pub(super) thumbprint: Option<Hash>,
    /// Its key was found and fits, so that it was held against the card.
    pub(super) was_held_against_key: bool,
    /// The length of the RSA key that is too short.
    pub(super) weak_bits: Option<usize>,
    key_from: Option<String>,
}

/// A key set, and what can be said about it without the card.
#[derive(Debug)]
pub(super) struct KeySet {
    /// Where it stands: in the conversation, or among what was handed in.
    pub(super) place: String,
    pub(super) state: SetState,
    /// Pointers of keys that share `kid` and `kty` with one before.
    pub(super) duplicates: Vec<String>,
    /// Pointers of keys with members that must not be published, and those members.
    pub(super) private: Vec<(String, Vec<&'static str>)>,
}

/// What came of asking for a key set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetState {
    /// It is one.
    WellFormed,
    /// What came is no key set.
    Malformed,
    /// No answer, or one that says it is not there; the status if there was one.
    Unreachable(Option<u16>),
    /// Credentials, payment or patience are asked for: nothing is judged.
    Refused,
}

/// Where keys come from.
pub(crate) struct Keys<'k> {
    pinned: Option<Document>,
    session: Option<&'k Session>,
}

impl<'k> Keys<'k> {
    /// The operator's own key set, and a conversation in which key sets were asked for.
    pub(crate) fn new(pinned: Option<&serde_json::Value>, session: Option<&'k Session>) -> Keys<'k> {
        Keys { pinned: pinned.map(|set| Document::from_text(&set.to_string())), session }
    }
}

impl Signatures {
    /// Checks the signatures of the document in a context.
    pub(crate) fn check(context: &Context<'_>) -> Signatures {
        let keys = Keys::new(context.given.jwks.as_ref(), context.session);
        let text = context.document.map(Document::text).unwrap_or_default();
        Signatures::of_card(text, context.profile.versions, &keys)
    }

    /// Checks the signatures of a card, which is read anew: what rules hide is signed as well.
    pub(crate) fn of_card(card: &str, versions: &[&str], keys: &Keys<'_>) -> Signatures {
        if !card.contains("\"signatures\"") {
            return Signatures::default();
        }
        let card = Document::from_text(card);
        let Some(root) = card.root() else { return Signatures::default() };
        let entries: Vec<_> = root.get("signatures").into_iter().flat_map(Node::items).collect();
        let sets = Sets::of(&entries, keys);
        let forms: Vec<_> = forms(versions).into_iter().map(|form| (form, OnceCell::new())).collect();
        let checker = Checker {
            card: root,
            forms: if has_canonical_form(&card) { forms } else { Vec::new() },
            sets: &sets,
            attempts: Cell::new(0),
        };
        let entries = entries.into_iter().map(|entry| checker.entry(entry)).collect();
        Signatures { entries, sets: sets.described() }
    }

    /// The thumbprints of the keys whose signatures are valid.
    pub(super) fn signers(&self) -> Vec<Hash> {
        self.entries.iter().filter_map(|entry| entry.thumbprint).collect()
    }

    /// As the report has them.
    pub(crate) fn reported(&self) -> Vec<CheckedSignature> {
        let reported = |entry: &Entry| CheckedSignature {
            pointer: entry.pointer.clone(),
            result: entry.result,
            canonical_form: entry.form,
            alg: entry.alg.clone(),
            kid: entry.kid.clone(),
            key_from: entry.key_from.clone(),
        };
        self.entries.iter().map(reported).collect()
    }
}

/// The key sets at hand: those handed in and those in the conversation, each read once.
struct Sets<'k> {
    pinned: Option<&'k Document>,
    /// By the address that a signature names; under the empty one a set that was asked for although none names it.
    fetched: HashMap<String, Fetched>,
}

struct Fetched {
    number: usize,
    state: SetState,
    document: Option<Document>,
    host: String,
}

impl<'k> Sets<'k> {
    fn of(entries: &[Node<'_>], keys: &'k Keys<'_>) -> Sets<'k> {
        let mut fetched = HashMap::new();
        let asked = |session: &&Session| session.exchanges.iter().any(|exchange| exchange.step == Some(Step::Jku));
        let Some(session) = keys.session.filter(asked) else { return Sets { pinned: keys.pinned.as_ref(), fetched } };
        let named: Vec<String> = entries.iter().filter_map(|entry| key_address(*entry)).collect();
        let nobody_says = named.is_empty();
        let asked = || session.exchanges.iter().filter(|exchange| exchange.step == Some(Step::Jku));
        let first_asked = || asked().next().map(|exchange| exchange.request.url.clone());
        for address in named.into_iter().chain(nobody_says.then(first_asked).flatten()) {
            let host = AbsoluteUrl::http(&address).map(|url| url.host.to_ascii_lowercase()).unwrap_or_default();
            if let Some((number, exchange)) = answer_to(session, &address) {
                let address = if nobody_says { String::new() } else { address };
                fetched.entry(address).or_insert_with(|| Fetched::read(number, exchange, host));
            }
        }
        Sets { pinned: keys.pinned.as_ref(), fetched }
    }

    /// The sets to look for a key in, in order, with the host each came from.
    fn for_address(&self, address: Option<&str>) -> impl Iterator<Item = (&Document, Option<&str>)> {
        let fetched = self.fetched.get(address.unwrap_or_default());
        let fetched = fetched.filter(|fetched| fetched.state == SetState::WellFormed);
        let pinned = self.pinned.map(|document| (document, None));
        pinned.into_iter().chain(fetched.and_then(|f| Some((f.document.as_ref()?, Some(f.host.as_str())))))
    }

    fn described(&self) -> Vec<KeySet> {
        let pinned = self.pinned.map(|document| {
            let state = if set_of(document).is_some() { SetState::WellFormed } else { SetState::Malformed };
            KeySet::describe("/jwks".to_owned(), state, Some(document))
        });
        let mut fetched: Vec<_> = self.fetched.values().collect();
        fetched.sort_by_key(|fetched| fetched.number);
        let fetched = fetched.into_iter().map(|fetched| {
            let place = match fetched.state {
                SetState::WellFormed | SetState::Malformed => format!("/exchanges/{}/response/body", fetched.number),
                SetState::Unreachable(_) | SetState::Refused => format!("/exchanges/{}", fetched.number),
            };
            KeySet::describe(place, fetched.state, fetched.document.as_ref())
        });
        pinned.into_iter().chain(fetched).collect()
    }
}

/// Key sets asked for because of one card: who signs it is one party, or two while a key is changed.
const MOST_KEY_SETS: usize = 3;

/// Where the key sets of a card's signatures are, as far as they may be fetched; each once.
pub(crate) fn key_addresses(card: &Document) -> Vec<String> {
    let entries = card.root().and_then(|root| root.get("signatures")).into_iter().flat_map(Node::items);
    let mut addresses: Vec<String> = Vec::new();
    for address in entries.take(MOST_ATTEMPTS).filter_map(key_address) {
        if addresses.len() < MOST_KEY_SETS && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Where the key set of a signature is, when it may be fetched from there.
fn key_address(entry: Node<'_>) -> Option<String> {
    let header = entry.get("protected").and_then(Node::text).and_then(protected_header)?;
    let address = header.root()?.get("jku")?.text()?;
    let url = AbsoluteUrl::http(address)?;
    (url.is("https") || host_is_loopback(url.host)).then(|| address.to_owned())
}

fn set_of(document: &Document) -> Option<Vec<Key<'_>>> {
    document.root().and_then(key_set)
}

impl Fetched {
    fn read(number: usize, exchange: &Exchange, host: String) -> Fetched {
        let status = exchange.response.as_ref().map(|response| response.status);
        let document = match (&exchange.response, status) {
            (Some(response), Some(200)) => Some(crate::session_judge::document_of(response)),
            _ => None,
        };
        let state = match (status, &document) {
            (_, Some(document)) if set_of(document).is_some() => SetState::WellFormed,
            (_, Some(_)) => SetState::Malformed,
            (Some(401 | 402 | 403 | 407 | 429), None) => SetState::Refused,
            (status, None) => SetState::Unreachable(status),
        };
        Fetched { number, state, document, host }
    }
}

impl KeySet {
    fn describe(place: String, state: SetState, document: Option<&Document>) -> KeySet {
        let keys = document.and_then(set_of).unwrap_or_default();
        let at = |key: &Key<'_>| format!("{place}{}", key.node().pointer());
        let mut seen = std::collections::HashSet::new();
        let named = keys.iter().filter_map(|key| Some((key, (key.kid()?, key.kty()))));
        let duplicates = named.filter(|(_, name)| !seen.insert(*name)).map(|(key, _)| at(key)).collect();
        let private = keys
            .iter()
            .map(|key| (at(key), key.private_members().collect::<Vec<_>>()))
            .filter(|(_, members)| !members.is_empty())
            .collect();
        KeySet { place, state, duplicates, private }
    }
}

/// The last answer to a request for a key set, after redirects.
fn answer_to<'s>(session: &'s Session, address: &str) -> Option<(usize, &'s Exchange)> {
    let same = |url: &str| url == address || url::Url::parse(url).ok() == url::Url::parse(address).ok();
    let asked = session.exchanges.iter().enumerate();
    let mut number = asked
        .filter(|(_, e)| e.step == Some(Step::Jku) && same(&e.request.url))
        .map(|(number, _)| number)
        .next_back()?;
    while let (Some(leads), Some(next)) =
        (session.exchanges[number].redirect(), session.exchanges.get(number + 1).map(|next| &next.request.url))
        && url::Url::parse(next).is_ok_and(|next| next == leads)
    {
        number += 1;
    }
    Some((number, &session.exchanges[number]))
}

struct Checker<'c> {
    card: Node<'c>,
    /// Each made when a signature is first held against it; none for a card without a canonical form.
    forms: Vec<(PayloadForm, OnceCell<Payload<'c>>)>,
    sets: &'c Sets<'c>,
    attempts: Cell<usize>,
}

/// What a protected header says that matters for checking.
struct Header {
    text: String,
    algorithm: Algorithm,
    kid: Option<String>,
    jku: Option<String>,
}

impl Checker<'_> {
    fn entry(&self, entry: Node<'_>) -> Entry {
        let mut checked = Entry {
            pointer: entry.pointer(),
            result: SignatureResult::Malformed,
            form: None,
            left_out: Vec::new(),
            alg: None,
            kid: None,
            thumbprint: None,
            was_held_against_key: false,
            weak_bits: None,
            key_from: None,
        };
        let signature = entry.get("signature").and_then(Node::text).filter(|_| !has_odd_header(entry));
        let protected = entry.get("protected").and_then(Node::text);
        if let (Some(protected), Some(signature)) = (protected, signature)
            && let Some(document) = protected_header(protected)
            && let Some(root) = document.root()
        {
            checked.alg = algorithm(root).map(str::to_owned);
            checked.kid = root.get("kid").and_then(Node::text).filter(|kid| !kid.is_empty()).map(str::to_owned);
            match read_header(protected, root, checked.kid.clone()) {
                Ok(header) => self.verify(&header, signature, &mut checked),
                Err(result) => checked.result = result,
            }
        }
        checked
    }

    /// Looks for the key, then holds the signature against each form.
    fn verify(&self, header: &Header, signature: &str, checked: &mut Entry) {
        let mut looked = false;
        let mut named = false;
        for (document, host) in self.sets.for_address(header.jku.as_deref()) {
            let Some(keys) = set_of(document) else { continue };
            looked = true;
            let is_named = |key: &&Key<'_>| header.kid.is_none() || key.kid() == header.kid.as_deref();
            let candidates: Vec<_> = keys.iter().filter(is_named).collect();
            named |= !candidates.is_empty();
            let fitting: Vec<_> = candidates.into_iter().filter(|key| key.fits(header.algorithm)).collect();
            if !fitting.is_empty() {
                checked.key_from = host.map(str::to_owned);
                return self.verify_with(&fitting, header, signature, checked);
            }
        }
        checked.result = match (looked, named && header.kid.is_some()) {
            (false, _) => SignatureResult::NoKeySet,
            (true, false) => SignatureResult::KeyNotFound,
            (true, true) => SignatureResult::KeyMismatch,
        };
    }

    fn verify_with(&self, keys: &[&Key<'_>], header: &Header, signature: &str, checked: &mut Entry) {
        let (weak, strong): (Vec<&Key<'_>>, Vec<_>) = keys.iter().copied().partition(|key| key.weak_bits().is_some());
        if strong.is_empty() {
            checked.weak_bits = weak.first().and_then(|key| key.weak_bits());
            checked.result = SignatureResult::WeakKey;
            return;
        }
        checked.was_held_against_key = true;
        let Some(signature) = base64url(signature) else {
            checked.result = SignatureResult::Invalid;
            return;
        };
        if self.forms.is_empty() {
            checked.result = SignatureResult::NoCanonicalForm;
            return;
        }
        for (form, made) in &self.forms {
            let payload = made.get_or_init(|| payload(self.card, *form));
            let input = signing_input(&header.text, &payload.text);
            for key in &strong {
                if self.attempts.replace(self.attempts.get() + 1) >= MOST_ATTEMPTS {
                    checked.result = SignatureResult::NotChecked;
                    return;
                }
                if key.verifies(header.algorithm, &input, &signature) {
                    checked.result = SignatureResult::Valid;
                    checked.form = Some(*form);
                    checked.left_out = payload.left_out.iter().map(|node| node.pointer()).collect();
                    checked.thumbprint = key.thumbprint();
                    return;
                }
            }
        }
        checked.result = SignatureResult::Invalid;
    }
}

/// The checks on a protected header, in the order of RFC 7515 and RFC 8725; `Err` where they forbid to go on.
fn read_header(text: &str, root: Node<'_>, kid: Option<String>) -> Result<Header, SignatureResult> {
    let name = algorithm(root).ok_or(SignatureResult::Malformed)?;
    if is_none(name) {
        return Err(SignatureResult::AlgNone);
    }
    if name.starts_with("HS") {
        return Err(SignatureResult::AlgNotAllowed);
    }
    if root.get("crit").is_some() {
        return Err(SignatureResult::Invalid);
    }
    let algorithm = name.parse().map_err(|_| SignatureResult::AlgUnsupported)?;
    let jku = root.get("jku").filter(|jku| jku.kind() == Type::String).and_then(Node::text).map(str::to_owned);
    Ok(Header { text: text.to_owned(), algorithm, kid, jku })
}
