//! `--baseline`: what was found before is known, and only what is new fails.
//!
//! A finding is known again by its rule, the kind and path of its document, and its place. In the place an item of a list is
//! named by its own id, name or address where it has one, so that it stays the same when items are added or reordered;
//! items without a name are counted. Text that may be secret is in the file only as a short hash.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use plumbline_rules::catalogue;
use plumbline_rules::document::{Document, Node};
use plumbline_rules::report::Report;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The form of the file; another form is refused, not misread.
const FORM: &str = "plumbline-baseline-1";

/// Names longer than this are told by their hash.
const LONGEST_NAME: usize = 60;

/// Where a finding stands, as far as it survives changes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The rule's id.
    pub rule: String,
    /// The kind of the document.
    pub kind: String,
    /// Its path or address.
    pub file: String,
    /// The place in it, items told by their names.
    pub place: String,
}

/// A finding that is known, so many times.
#[derive(Serialize, Deserialize)]
struct Known {
    #[serde(flatten)]
    mark: Mark,
    count: usize,
}

#[derive(Serialize, Deserialize)]
struct File {
    format: String,
    catalogue: String,
    findings: Vec<Known>,
}

/// What is known, and how often it may still be met.
#[derive(Debug, Clone, Default)]
pub struct Baseline(BTreeMap<Mark, usize>);

impl Baseline {
    /// Reads what `--write-baseline` wrote.
    ///
    /// # Errors
    /// When the file cannot be read or is none of ours.
    pub fn read(path: &Path) -> Result<Baseline> {
        let named = || format!("--baseline {}", path.display());
        let text = std::fs::read_to_string(path).with_context(named)?;
        let file: File = serde_json::from_str(&text).with_context(named)?;
        if file.format != FORM {
            bail!("{}: its format is `{}`, not {FORM}", named(), file.format);
        }
        let mut counts = BTreeMap::new();
        for known in file.findings {
            *counts.entry(known.mark).or_default() += known.count;
        }
        Ok(Baseline(counts))
    }

    /// Whether a finding is known; each known one is used up once.
    pub fn takes(&mut self, mark: &Mark) -> bool {
        match self.0.get_mut(mark) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Known findings that were not met again.
    pub fn left(&self) -> usize {
        self.0.values().sum()
    }
}

/// Writes a baseline in which all these are known.
///
/// # Errors
/// When the file cannot be written.
pub fn write<'m>(path: &Path, marks: impl Iterator<Item = &'m Mark>) -> Result<()> {
    let mut counts: BTreeMap<&Mark, usize> = BTreeMap::new();
    for mark in marks {
        *counts.entry(mark).or_default() += 1;
    }
    let findings = counts.into_iter().map(|(mark, count)| Known { mark: mark.clone(), count }).collect();
    let file = File { format: FORM.to_owned(), catalogue: catalogue::revision().to_owned(), findings };
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    std::fs::write(path, text).with_context(|| format!("--write-baseline {}", path.display()))
}

/// The marks of all occurrences of findings, in the order of [`Report::findings`].
pub fn marks(file: &str, document: &Document, report: &Report) -> Vec<Mark> {
    // Judging hides values from later rules; a fresh reading has them all.
    let fresh = Document::from_text(document.text());
    let kind = report.detected.kind.as_str();
    let mark = |rule: &str, pointer: &str| Mark {
        rule: rule.to_owned(),
        kind: kind.to_owned(),
        file: file.to_owned(),
        place: place(&fresh, pointer),
    };
    report.findings().flat_map(|(rule, found)| found.iter().map(|o| mark(rule.id, &o.pointer))).collect()
}

/// Hex digits that tell a text without telling it.
pub fn short_hash(text: &str) -> String {
    plumbline_rules::canonical::hex(&Sha256::digest(text.as_bytes())[..5])
}

fn place(document: &Document, pointer: &str) -> String {
    let mut place = String::new();
    let mut node = document.root();
    for segment in pointer.split('/').skip(1) {
        let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
        let item = node.filter(|_| is_number).and_then(|list| list.items().nth(segment.parse().ok()?));
        place.push('/');
        match item {
            Some(item) => place.push_str(&named(item)),
            None if is_number && node.is_none() => place.push('*'),
            None => place.push_str(segment),
        }
        node = item.or_else(|| node.and_then(|object| object.get(&unescaped(segment))));
    }
    place
}

/// How an item of a list is called: by the member that tells it from its neighbours, else `*`.
fn named(item: Node<'_>) -> String {
    if let Some(text) = item.text() {
        return format!("[#{}]", short_hash(text));
    }
    for member in ["id", "name", "identifier", "operationId"] {
        if let Some(text) = item.get(member).and_then(Node::text).filter(|text| !text.is_empty()) {
            let is_plain = text.len() <= LONGEST_NAME && !text.chars().any(char::is_control);
            let said = if is_plain { text.replace('/', "~1") } else { format!("#{}", short_hash(text)) };
            return format!("[{member}={said}]");
        }
    }
    let address = ["url", "uri", "src"].into_iter().find_map(|member| item.get(member).and_then(Node::text));
    address.map_or_else(|| "*".to_owned(), |text| format!("[#{}]", short_hash(text)))
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: &str = r#"{"skills": [{"id": "a", "tags": ["x", ""]}, {"id": "b"}, {"tags": []}], "a/b": 1}"#;

    #[test]
    fn an_item_is_told_by_its_name() {
        let document = Document::from_text(CARD);
        assert_eq!(place(&document, "/skills/1/tags"), "/skills/[id=b]/tags");
        assert_eq!(place(&document, "/skills/2/name"), "/skills/*/name");
        assert_eq!(place(&document, "/skills/0/tags/0"), format!("/skills/[id=a]/tags/[#{}]", short_hash("x")));
        assert_eq!(place(&document, "/a~1b"), "/a~1b");
        assert_eq!(place(&document, ""), "");
        assert_eq!(place(&document, "/exchanges/3/response"), "/exchanges/*/response");
    }

    #[test]
    fn a_known_finding_is_used_up_once() {
        let mark = Mark { rule: "r".into(), kind: "k".into(), file: "f".into(), place: "/skills/*/name".into() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("baseline.json");
        write(&path, [&mark, &mark].into_iter()).expect("it is written");
        let mut baseline = Baseline::read(&path).expect("it is read");
        assert_eq!(baseline.left(), 2);
        assert_eq!([(); 3].map(|()| baseline.takes(&mark)), [true, true, false]);
    }
}
