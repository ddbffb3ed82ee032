//! Media types as HTTP writes them (RFC 9110 §8.3).

/// A media type, taken apart where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType<'t> {
    /// Before the slash.
    pub kind: &'t str,
    /// Behind the slash.
    pub subtype: &'t str,
    /// Everything behind the first semicolon, as written.
    pub parameters: &'t str,
}

impl<'t> MediaType<'t> {
    /// Reads `type/subtype` with or without parameters; both sides are tokens, `*` among them.
    pub fn parse(text: &'t str) -> Option<MediaType<'t>> {
        let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
        let (kind, subtype) = essence.trim().split_once('/')?;
        (is_token(kind) && is_token(subtype)).then_some(MediaType { kind, subtype, parameters })
    }

    /// Whether it is that type and subtype, in any letter case and with any parameters.
    pub fn is(&self, kind: &str, subtype: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.subtype.eq_ignore_ascii_case(subtype)
    }

    /// Whether it stands for JSON: `application/json` or anything that ends in `+json`.
    pub fn is_json(&self) -> bool {
        let suffix = self.subtype.rsplit_once('+').map(|(_, suffix)| suffix);
        self.is("application", "json") || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"))
    }

    /// Whether it stands for an HTML page.
    pub fn is_html(&self) -> bool {
        self.is("text", "html") || self.is("application", "xhtml+xml")
    }

    /// Whether a part is `*`.
    pub fn is_range(&self) -> bool {
        self.kind == "*" || self.subtype == "*"
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_letter_case_do_not_matter() {
        let json = |text| MediaType::parse(text).is_some_and(|media_type| media_type.is_json());
        for text in ["application/json", "Application/JSON; charset=utf-8", "application/a2a+json", "image/x+json;v=1"]
        {
            assert!(json(text), "{text}");
        }
        for text in ["text/plain", "application/jsonp", "json", "application/ json", "", "application/json+xml"] {
            assert!(!json(text), "{text}");
        }
        assert!(MediaType::parse(" text/HTML ;x").is_some_and(|media_type| media_type.is_html()));
        assert!(MediaType::parse("text/*").is_some_and(|media_type| media_type.is_range()));
        assert_eq!(MediaType::parse("a/b/c"), None);
    }
}
