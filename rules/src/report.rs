//! What judging gives: an outcome for every rule that applies, and the words above them.

use serde::Serialize;

use crate::kind::{Kind, Known};
use crate::rule::{Axis, Class, Impact, Rule, Severity};

crate::words! {
    /// Why a rule that applies was not judged.
    pub enum NotEvaluated {
        /// A rule before it ended the work on the document or on the values it looks at.
        Parent = "parent",
        /// The document has no origin: it was pasted, or read from a file.
        NoOrigin = "no-origin",
        /// No document came that could be judged.
        NoDocument = "no-document",
        /// Needs the conversation in which the document was obtained.
        NoSession = "no-session",
        /// Nobody handed in the public keys.
        NoKeys = "no-keys",
        /// The stored body was cut.
        Cut = "cut",
        /// The step was refused for want of credentials.
        Auth = "auth",
        /// The step was refused for want of payment.
        Payment = "payment",
        /// The server asked to come back later.
        RateLimited = "rate-limited",
        /// The step was not taken: there was no occasion, or it is switched off.
        NotAsked = "not-asked",
        /// Switched off by the operator.
        Off = "off",
    }
}

crate::words! {
    /// The one word for a surface (decisions 2). Later is worse, so the worst of several is the greatest.
    pub enum Headline {
        /// Nobody could look.
        NotEvaluated = "not_evaluated",
        /// It is not what was looked for.
        NotDetected = "not_detected",
        /// No error.
        Sound = "sound",
        /// An error, but none that breaks clients.
        Deviates = "deviates",
        /// A tested client refuses it.
        Blocked = "blocked",
    }
}

crate::words! {
    /// The answer to "does it conform?" (decisions 2).
    pub enum SpecificationState {
        /// Nobody could look.
        NotEvaluated = "not_evaluated",
        /// Neither error nor warning.
        Conformant = "conformant",
        /// Warnings, no error.
        Warnings = "warnings",
        /// At least one error.
        Deviates = "deviates",
    }
}

crate::words! {
    /// What of a card a signature is over. A2A 1.0 §8.4.1 knows only the first.
    pub enum PayloadForm {
        /// The canonical form of A2A 1.0 §8.4.1.
        Spec = "spec",
        /// As the SDKs have it: everything empty dropped, required or not.
        Sdk = "sdk",
        /// The JSON as served, in canonical form, only without the signatures.
        Raw = "raw",
        /// As `sdk`, but with escapes for everything beyond ASCII.
        PyEscaped = "py-escaped",
        /// As the Python SDK has it for cards of A2A 0.3, which has no canonical form.
        Sdk03 = "0.3-sdk",
    }
}

crate::words! {
    /// What came of checking one signature.
    pub enum SignatureResult {
        /// It is over the card, in the form named beside.
        Valid = "valid",
        /// The key is the right one, and the signature is not over this card; or its header forbids to accept it.
        Invalid = "invalid",
        /// It cannot be read.
        Malformed = "malformed",
        /// Nothing was signed.
        AlgNone = "alg-none",
        /// Its algorithm needs a shared secret.
        AlgNotAllowed = "alg-not-allowed",
        /// Its algorithm is none that is checked here.
        AlgUnsupported = "alg-unsupported",
        /// There was no key set to look into.
        NoKeySet = "no-key-set",
        /// No key set has the key.
        KeyNotFound = "key-not-found",
        /// The key of that name is for something else.
        KeyMismatch = "key-mismatch",
        /// The key is too short to prove anything.
        WeakKey = "weak-key",
        /// The card has no canonical form.
        NoCanonicalForm = "no-canonical-form",
        /// The card has more signatures and keys than are tried.
        NotChecked = "not-checked",
    }
}

crate::words! {
    /// What the signatures of a card are worth together: one good one is enough.
    pub enum SignatureVerdict {
        /// One is valid over the form that the specification prints.
        Valid = "valid",
        /// One is valid, though over another form.
        ValidNoncanonical = "valid-noncanonical",
        /// None is valid, and at least one is wrong.
        Invalid = "invalid",
        /// None could be checked.
        Unverifiable = "unverifiable",
    }
}

/// One signature of a card, and what came of checking it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckedSignature {
    /// Where it stands.
    pub pointer: String,
    /// What came of it.
    pub result: SignatureResult,
    /// The form it is valid over.
    pub canonical_form: Option<PayloadForm>,
    /// The algorithm its protected header names.
    pub alg: Option<String>,
    /// The key its protected header names.
    pub kid: Option<String>,
    /// The host that the key came from; `None` for keys that somebody handed in.
    pub key_from: Option<String>,
}

/// What the signatures of a card are worth together; `None` for a card without any.
pub fn signature_verdict(checked: &[CheckedSignature]) -> Option<SignatureVerdict> {
    let is_valid = |form: fn(PayloadForm) -> bool| checked.iter().any(|one| one.canonical_form.is_some_and(form));
    let is_wrong = |one: &CheckedSignature| {
        use SignatureResult::{AlgNone, AlgNotAllowed, Invalid, Malformed};
        matches!(one.result, Invalid | Malformed | AlgNone | AlgNotAllowed)
    };
    if checked.is_empty() {
        None
    } else if is_valid(|form| form == PayloadForm::Spec) {
        Some(SignatureVerdict::Valid)
    } else if is_valid(|_| true) {
        Some(SignatureVerdict::ValidNoncanonical)
    } else if checked.iter().any(is_wrong) {
        Some(SignatureVerdict::Invalid)
    } else {
        Some(SignatureVerdict::Unverifiable)
    }
}

/// Where a rule fires, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Occurrence {
    /// A JSON Pointer into the document; empty for the whole.
    pub pointer: String,
    /// What is wrong with this value.
    pub message: String,
    /// The rule's severity in this profile, or the occurrence's own.
    pub severity: Severity,
    /// The rule's impact in this profile, or the occurrence's own.
    pub impact: Option<Impact>,
    /// Line from 1, when the place is in the text.
    pub line: Option<usize>,
    /// Column from 1, in characters.
    pub column: Option<usize>,
}

/// What one rule said.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It fires, at least once.
    Fires(Vec<Occurrence>),
    /// It looked and found nothing.
    Passes,
    /// It says of itself that it does not concern this document.
    NotApplicable,
    /// It could not look.
    NotEvaluated(NotEvaluated),
}

/// One rule and what it said.
#[derive(Clone)]
pub struct RuleResult {
    /// The rule.
    pub rule: &'static Rule,
    /// What it said.
    pub outcome: Outcome,
}

/// What the document was judged as.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detected {
    /// Its kind.
    pub kind: Kind,
    /// Its revision, such as `a2a-1.0`; empty for kinds without revisions.
    pub profile: &'static str,
    /// How the revision is known.
    pub known: Known,
}

/// The specification answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Specification {
    /// The word.
    pub state: SpecificationState,
    /// Error findings (occurrences count once per rule).
    pub errors: usize,
    /// Warning findings.
    pub warnings: usize,
}

/// Everything that judging one document gave.
#[derive(Clone)]
pub struct Report {
    /// What it was judged as.
    pub detected: Detected,
    /// Every rule that applies to this kind and profile, in the order they ran.
    pub results: Vec<RuleResult>,
    /// Whether there was a document. A refusal that breaks no rule about refusals says nothing about the document behind
    /// it: such a report is never *sound*.
    pub has_document: bool,
    /// The signatures of a card, in their order, where they were checked.
    pub signatures: Vec<CheckedSignature>,
    /// Rules that fire at more places than are written out, and at how many more.
    pub more: Vec<(&'static str, usize)>,
}

impl Report {
    /// The same report with pointers that lead into a larger document, in which this one stands at `place`. Only what
    /// stands in the document has a line; other pointers stay.
    pub(crate) fn below(mut self, place: &str) -> Report {
        for result in &mut self.results {
            let Outcome::Fires(occurrences) = &mut result.outcome else { continue };
            for occurrence in occurrences.iter_mut().filter(|occurrence| occurrence.line.is_some()) {
                occurrence.pointer.insert_str(0, place);
            }
        }
        for signature in &mut self.signatures {
            signature.pointer.insert_str(0, place);
        }
        self
    }

    /// Rules that fire, with their occurrences.
    pub fn fired(&self) -> impl Iterator<Item = (&'static Rule, &[Occurrence])> {
        self.results.iter().filter_map(|result| match &result.outcome {
            Outcome::Fires(occurrences) => Some((result.rule, occurrences.as_slice())),
            Outcome::Passes | Outcome::NotApplicable | Outcome::NotEvaluated(_) => None,
        })
    }

    /// Rules that accuse: axis conformity, class finding.
    pub fn findings(&self) -> impl Iterator<Item = (&'static Rule, &[Occurrence])> {
        self.fired().filter(|(rule, _)| crate::judge::counts(rule))
    }

    /// Attributes that are set.
    pub fn facts(&self) -> impl Iterator<Item = (&'static Rule, &[Occurrence])> {
        self.fired().filter(|(rule, _)| rule.class == Class::Fact)
    }

    /// Rules of axis reach or detection that hold.
    pub fn states(&self) -> impl Iterator<Item = (&'static Rule, &[Occurrence])> {
        self.fired().filter(|(rule, _)| rule.axis != Axis::Conformity)
    }

    /// Rules that could not look, and why.
    pub fn not_evaluated(&self) -> impl Iterator<Item = (&'static Rule, NotEvaluated)> {
        self.results.iter().filter_map(|result| match result.outcome {
            Outcome::NotEvaluated(reason) => Some((result.rule, reason)),
            Outcome::Fires(_) | Outcome::Passes | Outcome::NotApplicable => None,
        })
    }

    /// The one word (catalogue §9).
    pub fn headline(&self) -> Headline {
        if self.states().any(|(rule, _)| rule.axis == Axis::Detection) {
            return Headline::NotDetected;
        }
        let grades: Vec<_> =
            self.findings().filter(|(rule, _)| !rule.guess).map(|(_, occurrences)| worst(occurrences)).collect();
        if grades.iter().any(|(_, impact)| *impact == Some(Impact::BreaksClients)) {
            Headline::Blocked
        } else if grades.iter().any(|(severity, _)| *severity == Severity::Error) {
            Headline::Deviates
        } else if self.has_document && self.detected.kind == Kind::Unknown {
            // Whatever was looked at, nothing was found out about a document of no known kind.
            Headline::NotDetected
        } else if self.has_document && self.results.iter().any(|r| !matches!(r.outcome, Outcome::NotEvaluated(_))) {
            Headline::Sound
        } else {
            Headline::NotEvaluated
        }
    }

    /// The specification answer (catalogue §9); guesses by name are left out.
    pub fn specification(&self) -> Specification {
        let count = |severity| {
            self.findings().filter(|(rule, _)| !rule.guess).filter(|(_, found)| worst(found).0 == severity).count()
        };
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let state = match self.headline() {
            Headline::NotDetected | Headline::NotEvaluated => SpecificationState::NotEvaluated,
            Headline::Sound | Headline::Deviates | Headline::Blocked if errors > 0 => SpecificationState::Deviates,
            Headline::Sound | Headline::Deviates | Headline::Blocked if warnings > 0 => SpecificationState::Warnings,
            Headline::Sound | Headline::Deviates | Headline::Blocked => SpecificationState::Conformant,
        };
        Specification { state, errors, warnings }
    }
}

/// The gravest severity and the worst impact of a finding's occurrences.
pub fn worst(occurrences: &[Occurrence]) -> (Severity, Option<Impact>) {
    let severity = occurrences.iter().map(|o| o.severity).max().unwrap_or(Severity::Info);
    let impact = occurrences.iter().filter_map(|o| o.impact).max();
    (severity, impact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use crate::judge::{Given, Origin, Settings, Subject, judge, judge_without_document};
    use crate::session::{Exchange, Session};

    fn session(status: u16) -> Session {
        let exchange = serde_json::json!({
            "request": { "method": "GET", "url": "https://tides.dev/.well-known/agent-card.json" },
            "response": { "status": status, "headers": { "www-authenticate": "Bearer" } }
        });
        let exchange: Exchange = serde_json::from_value(exchange).expect("it is an exchange");
        Session::from(vec![exchange])
    }

    #[test]
    fn a_refusal_alone_is_never_sound_and_an_unchanged_document_stays_so() {
        let given = Given::default();
        let (refused, unchanged) = (session(401), session(304));
        let subject = |session| Subject {
            kind: Some(Kind::AgentCard),
            version: None,
            origin: Origin::PublicHost,
            given: &given,
            session: Some(session),
            answer: None,
        };
        let settings = Settings::default();
        assert_eq!(judge_without_document(&subject(&refused), &settings).headline(), Headline::NotEvaluated);
        let card = include_str!("../examples/a2a-1.0.json").replace("example.com", "tides.dev");
        let report = judge(&Document::from_text(&card), &subject(&unchanged), &settings);
        assert_eq!(report.headline(), Headline::Sound);
    }
}
