//! The shape of one rule: what it demands, how grave it is, and the function that looks.

use crate::conversation::Conversation;
use crate::document::{Document, Node};
use crate::judge::{Context, Occurrences};
use crate::kind::Kind;
use crate::session::Session;

/// Declares an enum whose variants have one spelling, used by SQL, JSON, URLs and CSS alike.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every variant, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Its one spelling.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok($name::$variant),)+
                    other => Err(format!("`{other}` is none of {}", [$($word),+].join(", "))),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({ "type": "string", "enum": [$($word),+] })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

words! {
    /// What the specification says about a finding (catalogue §2). Later is graver.
    pub enum Severity {
        /// A hint, or something legal that readers want to know; counts for nothing.
        Info = "info",
        /// Breaks a SHOULD, is probably a mistake, or only a person can weigh it.
        Warning = "warning",
        /// Breaks a MUST or a required member.
        Error = "error",
    }
}

words! {
    /// What released clients do about a finding (catalogue §2). Later is worse.
    pub enum Impact {
        /// No released client behaves differently, or none is known to.
        Cosmetic = "cosmetic",
        /// It loads, but meaning is lost or differs between clients.
        Degrades = "degrades",
        /// A named released client refuses the document or cannot finish the handshake.
        BreaksClients = "breaks-clients",
    }
}

words! {
    /// What a rule's outcome says something about.
    pub enum Axis {
        /// The document or behaviour against its specification.
        Conformity = "conformity",
        /// Whether it could be reached; moves the reach state and never a verdict.
        Reach = "reach",
        /// Whether it is the kind of thing that was looked for.
        Detection = "detection",
    }
}

words! {
    /// Whether a rule of axis conformity accuses or describes.
    pub enum Class {
        /// Something is wrong, or worth a hint.
        Finding = "finding",
        /// An attribute of the surface with history; never counted, never alerted.
        Fact = "fact",
    }
}

words! {
    /// Where the demand comes from.
    pub enum Basis {
        /// The written specification.
        Spec = "spec",
        /// Our own or a registry operator's policy.
        Policy = "policy",
        /// Experience.
        Hint = "hint",
    }
}

words! {
    /// What has to be done to look (catalogue §1).
    pub enum Mode {
        /// Documents, handshakes, lists: safe on any public server at every crawl.
        Read = "read",
        /// Odd but harmless requests: at most daily.
        Probe = "probe",
        /// Calls that use what is offered: only the operator's own targets.
        Active = "active",
        /// Commands that the operator configured.
        Stdio = "stdio",
        /// Computed from stored observations.
        History = "history",
    }
}

words! {
    /// What can prove a finding; it sets the confirmation counts of the state machine.
    pub enum Evidence {
        /// The bytes alone.
        Document = "document",
        /// The endpoint's behaviour.
        Live = "live",
        /// Order or speed.
        Timing = "timing",
        /// The clock.
        Time = "time",
        /// Stored observations.
        History = "history",
    }
}

/// How a rule looks. *Where* is data, *what* is code.
#[derive(Clone, Copy)]
pub enum Check {
    /// The way to the document: redirects and refusals, before anything is said about bytes.
    Way(fn(&Session, &Context<'_>, &mut Occurrences)),
    /// The body as it arrived, also when it gave no tree.
    Body(fn(&Document, &Context<'_>, &mut Occurrences)),
    /// Every value that one of the patterns reaches (`*` one step, `**` any number).
    Each(&'static [&'static str], fn(Node<'_>, &Context<'_>, &mut Occurrences)),
    /// The judged document, once.
    Document(fn(Node<'_>, &Context<'_>, &mut Occurrences)),
    /// All that was observed: the document where one came, and the conversation where there was one.
    Observation(fn(&Context<'_>, &mut Occurrences)),
    /// The conversation as a whole.
    Session(fn(&Session, &Context<'_>, &mut Occurrences)),
    /// The conversation with an MCP endpoint, read.
    Conversation(fn(&Conversation<'_>, &Context<'_>, &mut Occurrences)),
}

/// What of the document is out of sight for later rules once this one has spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stops {
    /// Nothing.
    Nothing,
    /// The value it spoke about and all below it.
    Value,
    /// Everything: nothing else is judged.
    Document,
}

/// A document that shows when a rule fires or stays silent: a test and documentation at once.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The pointers at which the rule fires; empty for a near miss.
    pub fires: &'static [&'static str],
    /// The base document it lies over (a file in `rules/examples` without its ending); empty: the newest of the rule's versions.
    pub base: &'static str,
    /// What is laid over the base: objects merge, `null` removes, an array's elements lie over the base's first element.
    /// `{"$repeat": [value, times]}` stands for a long string or list, `#` in an item for its number.
    /// For rules about bytes it is the whole body (`base64:` in front when it is no text), for rules about a conversation
    /// the session.
    pub text: &'static str,
    /// The text is the whole document and lies over nothing.
    pub whole: bool,
    /// The `context` of the example, in the JSON form of the vectors; empty: none.
    pub context: &'static str,
    /// Rules that by their own words speak beside this one.
    pub beside: &'static [&'static str],
}

impl Example {
    /// The same example over another base document.
    pub const fn over(mut self, base: &'static str) -> Example {
        self.base = base;
        self
    }

    /// The same example as a whole document.
    pub const fn whole(mut self) -> Example {
        self.whole = true;
        self
    }

    /// The same example, beside which other rules speak as well.
    pub const fn beside(mut self, rules: &'static [&'static str]) -> Example {
        self.beside = rules;
        self
    }

    /// The same example with facts from outside the document.
    pub const fn given(mut self, context: &'static str) -> Example {
        self.context = context;
        self
    }
}

/// An example at which the rule fires, exactly at these pointers.
pub const fn fires(at: &'static [&'static str], text: &'static str) -> Example {
    Example { fires: at, base: "", text, whole: false, context: "", beside: &[] }
}

/// A near miss: no rule but facts speaks.
pub const fn silent(text: &'static str) -> Example {
    Example { fires: &[], base: "", text, whole: false, context: "", beside: &[] }
}

/// One entry of the catalogue. Keys are those of catalogue §1.
pub struct Rule {
    /// `family/kebab-name`, never reused.
    pub id: &'static str,
    /// Raised when the condition changes (decisions 5).
    pub version: u32,
    /// Its documentation: the first sentence is the title.
    pub doc: &'static str,
    /// What it says something about.
    pub axis: Axis,
    /// Whether it accuses or describes.
    pub class: Class,
    /// What the specification says.
    pub severity: Severity,
    /// Where a specification version differs.
    pub severity_overrides: &'static [(&'static str, Severity)],
    /// What released clients do; `None` for hints, facts and reach.
    pub impact: Option<Impact>,
    /// Where a specification version differs.
    pub impact_overrides: &'static [(&'static str, Impact)],
    /// Which SDKs were tested and when, or why without a run.
    pub impact_evidence: &'static str,
    /// `SDK VERSION: refuses|limits`, in brackets the profiles if not all.
    pub clients: &'static [&'static str],
    /// Leaks, weakened authentication, foreign hosts, hostile text: a tag beside the colour.
    pub security: bool,
    /// Place in the first release, 1 to 40; 0 for none.
    pub rank: u8,
    /// Where the demand comes from.
    pub basis: Basis,
    /// The specification versions it applies to; `all` for every one.
    pub versions: &'static [&'static str],
    /// What has to be done to look.
    pub mode: Mode,
    /// What can prove it.
    pub evidence: Evidence,
    /// The kinds of document it looks at; empty for every kind.
    pub on: &'static [Kind],
    /// Where it looks, for readers.
    pub place: &'static str,
    /// What to do about it, one sentence.
    pub fix: &'static str,
    /// The section that asks for it.
    pub spec: &'static str,
    /// Rules of published catalogues that this one covers.
    pub seeds: &'static [&'static str],
    /// When it fires and when it just does not.
    pub examples: &'static [Example],
    /// What is out of sight for later rules once it has spoken.
    pub stops: Stops,
    /// Rules that, speaking about the same pointer, leave this one unsaid.
    pub yields_to: &'static [&'static str],
    /// A guess by name: shown for review, left out of headline and specification answer (catalogue §9).
    pub guess: bool,
    /// How it looks.
    pub check: Check,
    /// Where it stands in the source.
    pub file: &'static str,
    /// The line there.
    pub line: u32,
}

fn nothing(_: &Document, _: &Context<'_>, _: &mut Occurrences) {}

impl Rule {
    /// What a declaration leaves out.
    pub const DEFAULTS: Rule = Rule {
        id: "",
        version: 1,
        doc: "",
        axis: Axis::Conformity,
        class: Class::Finding,
        severity: Severity::Info,
        severity_overrides: &[],
        impact: None,
        impact_overrides: &[],
        impact_evidence: "",
        clients: &[],
        security: false,
        rank: 0,
        basis: Basis::Spec,
        versions: &["all"],
        mode: Mode::Read,
        evidence: Evidence::Document,
        on: &[],
        place: "",
        fix: "",
        spec: "",
        seeds: &[],
        examples: &[],
        stops: Stops::Nothing,
        yields_to: &[],
        guess: false,
        check: Check::Body(nothing),
        file: "",
        line: 0,
    };

    /// The family before the slash.
    pub fn family(&self) -> &'static str {
        self.id.split('/').next().unwrap_or_default()
    }

    /// The first sentence of its documentation, without the full stop.
    pub fn title(&self) -> String {
        let first = self.doc.split("\n\n").next().unwrap_or_default();
        let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = line.find(". ").unwrap_or(line.len());
        line[..end].trim_end_matches('.').to_owned()
    }

    /// Its documentation after the first sentence, as paragraphs.
    pub fn why(&self) -> Vec<String> {
        let text: Vec<String> =
            self.doc.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let mut paragraphs = Vec::new();
        for (n, paragraph) in text.into_iter().enumerate() {
            let rest =
                if n == 0 { paragraph.find(". ").map(|at| paragraph[at + 2..].to_owned()) } else { Some(paragraph) };
            paragraphs.extend(rest.filter(|p| !p.is_empty()));
        }
        paragraphs
    }

    /// What the specification says, in the strictest of these versions.
    pub fn severity_in(&self, versions: &[&str]) -> Severity {
        strictest(self.severity, self.severity_overrides, self.versions, versions)
    }

    /// What clients do, in the worst of these versions.
    pub fn impact_in(&self, versions: &[&str]) -> Option<Impact> {
        self.impact.map(|impact| strictest(impact, self.impact_overrides, self.versions, versions))
    }
}

/// The gravest value among the judged versions that the rule applies to.
fn strictest<T: Copy + Ord>(general: T, overrides: &[(&str, T)], applies: &[&str], judged: &[&str]) -> T {
    judged
        .iter()
        .filter(|version| applies.contains(version) || applies.contains(&"all"))
        .map(|version| overrides.iter().find(|(v, _)| v == version).map_or(general, |(_, value)| *value))
        .max()
        .unwrap_or(general)
}

/// Declares a rule: its documentation comment becomes data, what is left out comes from [`Rule::DEFAULTS`].
#[macro_export]
macro_rules! rule {
    ($(#[doc = $doc:literal])+ $vis:vis static $name:ident = { $($field:ident : $value:expr),* $(,)? }) => {
        $(#[doc = $doc])+
        $vis static $name: $crate::rule::Rule = $crate::rule::Rule {
            doc: concat!($($doc, "\n"),+),
            file: file!(),
            line: line!(),
            $($field: $value,)*
            ..$crate::rule::Rule::DEFAULTS
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::rule! {
        /// Skill ids are unique. A client
        /// picks by id.
        ///
        /// The second can never be called.
        static SAMPLE = {
            id: "a2a/sample",
            severity: Severity::Error,
            severity_overrides: &[("0.3", Severity::Warning)],
            versions: &["0.3", "1.0"],
        }
    }

    #[test]
    fn the_first_sentence_is_the_title_and_the_rest_says_why() {
        assert_eq!(SAMPLE.title(), "Skill ids are unique");
        assert_eq!(SAMPLE.why(), ["A client picks by id.", "The second can never be called."]);
        assert_eq!(SAMPLE.family(), "a2a");
    }

    #[test]
    fn a_hybrid_takes_the_stricter_version() {
        assert_eq!(SAMPLE.severity_in(&["0.3"]), Severity::Warning);
        assert_eq!(SAMPLE.severity_in(&["0.3", "1.0"]), Severity::Error);
    }
}
