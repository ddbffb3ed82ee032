//! Names in curly braces that somebody fills in: `https://{tenant}.example.com:{port}/mcp`.

use std::borrow::Cow;

/// One name in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable<'t> {
    /// What stands between the braces; never empty.
    pub name: &'t str,
    /// What stands before the opening brace.
    pub before: &'t str,
    /// What stands behind the closing brace.
    pub after: &'t str,
}

impl Variable<'_> {
    /// Whether it is written as a shell would, `${NAME}`.
    pub fn is_of_a_shell(&self) -> bool {
        self.before.ends_with('$')
    }

    /// Whether the name is one of a programming language, dashes allowed: what JSON in braces is not.
    pub fn is_identifier(&self) -> bool {
        self.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    }

    fn stands_for_a_port(&self) -> bool {
        self.before.ends_with(':') && (self.after.is_empty() || self.after.starts_with(['/', '?', '#']))
    }
}

/// The variables of a text, in the order written. Braces do not nest: the innermost count.
pub fn variables(text: &str) -> impl Iterator<Item = Variable<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let open = from + text[from..].find('{')?;
            let end = open + 1 + text[open + 1..].find(['{', '}'])?;
            from = end;
            if text[end..].starts_with('}') && end > open + 1 {
                return Some(Variable { name: &text[open + 1..end], before: &text[..open], after: &text[end + 1..] });
            }
        }
    })
}

/// A URL with samples in place of its variables: a number where a port stands, a letter elsewhere.
pub fn with_samples(url: &str) -> Cow<'_, str> {
    let mut filled = String::new();
    let mut from = 0;
    for variable in variables(url) {
        filled.push_str(&url[from..variable.before.len()]);
        filled.push_str(if variable.stands_for_a_port() { "8080" } else { "x" });
        from = url.len() - variable.after.len();
    }
    if from == 0 {
        return Cow::Borrowed(url);
    }
    filled.push_str(&url[from..]);
    Cow::Owned(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_between_the_innermost_braces() {
        let names = |text| variables(text).map(|v| v.name).collect::<Vec<_>>();
        assert_eq!(names("https://{tenant}.x:{--port}/"), ["tenant", "--port"]);
        assert_eq!(names("{{ a }} {} {b"), [" a "]);
        assert_eq!(names("no } here {"), Vec::<&str>::new());
        assert_eq!(names("ä{ö}"), ["ö"]);
    }

    #[test]
    fn json_and_shells_are_told_apart() {
        let of = |text| variables(text).next().map(|v| (v.is_identifier(), v.is_of_a_shell()));
        assert_eq!(of("Bearer {api-key}"), Some((true, false)));
        assert_eq!(of("${VAR}"), Some((true, true)));
        assert_eq!(of(r#"{"a":1}"#), Some((false, false)));
        assert_eq!(of("{1}"), Some((false, false)));
    }

    #[test]
    fn samples_make_a_url_whole() {
        assert_eq!(with_samples("https://{a}.x:{b}/{c}?{d}"), "https://x.x:8080/x?x");
        assert_eq!(with_samples("http://{host}:{port}"), "http://x:8080");
        assert_eq!(with_samples("{base}/mcp"), "x/mcp");
        assert_eq!(with_samples("https://x"), "https://x");
    }
}
