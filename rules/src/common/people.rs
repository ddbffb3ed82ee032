//! Personal data in a document that everybody reads.

use std::sync::LazyLock;

use regex::Regex;

use crate::document::Node;
use crate::judge::{Context, Occurrences};
use crate::rule::{Basis, Check, Rule, fires, silent};
use crate::text::is_placeholder;

use super::strings::{name, says, strings};

pub(super) const RULES: &[&Rule] = &[&PERSONAL_DATA];

crate::rule! {
    /// A personal mailbox or telephone number is published.
    ///
    /// A document that machines copy around the world keeps a person's address long after it was meant to be seen.
    /// Addresses at the publisher's own domain are its business and stay unmentioned.
    static PERSONAL_DATA = {
        id: "common/personal-data",
        basis: Basis::Policy,
        place: "/**",
        fix: "Use a role address of the organisation.",
        spec: "crawler policy: public, non-personal data",
        seeds: &["gaip:PUBLIC_NON_PERSONAL_DATA_REQUIRED"],
        examples: &[
            fires(&["/capabilities/extensions/0/params/contact"], in_params!(r#"{"contact": "mail jane.doe.1987@gmail.com."}"#)),
            fires(&["/capabilities/extensions/0/params/owner"], in_params!(r#"{"owner": "Jane <j.doe@Yahoo.co.uk>"}"#)),
            fires(&["/capabilities/extensions/0/params/phone"], in_params!(r#"{"phone": "+49 (151) 234-567-89"}"#)),
            silent(in_params!(r#"{"contact": "support@example.com", "mail": "info@mygmail.com, x@gmail.com.example.org"}"#)),
            silent(in_params!(r#"{"sample": "your.name@gmail.com", "phone": "+1 234", "range": "+123456789012"}"#)),
        ],
        check: Check::Document(personal_data),
    }
}

/// Domains at which everybody gets a mailbox.
const MAIL_DOMAINS: &[&str] = &[
    "gmail.com",
    "googlemail.com",
    "outlook.com",
    "hotmail.com",
    "live.com",
    "icloud.com",
    "me.com",
    "proton.me",
    "protonmail.com",
    "qq.com",
    "163.com",
    "mail.ru",
];

/// The same under many suffixes.
const MAIL_LABELS: &[&str] = &["yahoo", "gmx", "yandex"];

static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"([A-Za-z0-9._%+-]+)@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)";
    Regex::new(pattern).expect("the pattern is a literal")
});

static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\+[0-9](?:[ ().\-/]{0,2}[0-9]){8,14}").expect("the pattern is a literal"));

fn personal_data(root: Node<'_>, _: &Context<'_>, out: &mut Occurrences) {
    let document = root.document();
    let has_address = says(document, |text| text.contains('@'));
    if !has_address && !says(document, |text| text.contains('+')) {
        return;
    }
    for (node, text) in strings(root) {
        if let Some(masked) = text.contains('@').then(|| mailbox(text)).flatten() {
            out.add(node, format!("a mailbox at a free-mail provider: {masked}"));
        } else if text.contains('+') && names_a_phone(name(node)) && NUMBER.is_match(text) {
            out.add(node, "an international telephone number");
        }
    }
}

fn mailbox(text: &str) -> Option<String> {
    ADDRESS.captures_iter(text).find_map(|found| {
        let (mailbox, domain) = (found.get(1)?.as_str(), found.get(2)?.as_str().to_ascii_lowercase());
        (is_free_mail(&domain) && !is_sample(mailbox))
            .then(|| format!("`{}…@{domain}`", mailbox.get(..1).unwrap_or_default()))
    })
}

fn is_free_mail(domain: &str) -> bool {
    let under_suffix =
        |label: &&str| domain.strip_prefix(*label).is_some_and(|rest| rest.starts_with('.') && rest.len() <= 7);
    MAIL_DOMAINS.contains(&domain) || MAIL_LABELS.iter().any(under_suffix)
}

fn is_sample(mailbox: &str) -> bool {
    const WORDS: &[&str] =
        &["user", "username", "name", "email", "me", "test", "someone", "foo", "bar", "john.doe", "jane.doe"];
    is_placeholder(mailbox) || WORDS.iter().any(|word| mailbox.eq_ignore_ascii_case(word))
}

fn names_a_phone(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["phone", "tel", "mobile", "contact"].iter().any(|word| lower == *word || lower.ends_with(&format!("_{word}")))
}
