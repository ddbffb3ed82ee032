//! Challenges in `WWW-Authenticate` (RFC 9110 §11.6.1).

/// One challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The scheme as written; its case means nothing.
    pub scheme: String,
    /// Its parameters in order, names in lower case, quoting undone.
    pub parameters: Vec<(String, String)>,
    /// What stands in place of parameters, for schemes that have none.
    pub token68: Option<String>,
}

impl Challenge {
    /// The first parameter of that name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the scheme is one of these.
    pub fn is(&self, schemes: &[&str]) -> bool {
        schemes.iter().any(|scheme| self.scheme.eq_ignore_ascii_case(scheme))
    }

    /// Whether it asks for an access token.
    pub fn wants_token(&self) -> bool {
        self.is(&["Bearer", "DPoP"])
    }
}

/// Reads a header's value: one challenge or several, and those of several lines joined by commas.
///
/// # Errors
/// A sentence that says what cannot be read, and the challenges before it.
pub fn challenges(value: &str) -> Result<Vec<Challenge>, (String, Vec<Challenge>)> {
    let mut reader = Reader { rest: value };
    let mut challenges = Vec::new();
    loop {
        reader.skip_commas();
        if reader.rest.is_empty() {
            return if challenges.is_empty() { Err(("it is empty".to_owned(), challenges)) } else { Ok(challenges) };
        }
        match reader.challenge() {
            Ok(challenge) => challenges.push(challenge),
            Err(what) => return Err((what, challenges)),
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn challenge(&mut self) -> Result<Challenge, String> {
        let scheme = self.token().ok_or_else(|| format!("`{}` names no scheme", start_of(self.rest)))?.to_owned();
        let spaced = self.skip_spaces();
        let mut challenge = Challenge { scheme, parameters: Vec::new(), token68: None };
        if self.is_at_end_of_element() {
            return Ok(challenge);
        }
        if !spaced {
            return Err(format!("`{}` follows the scheme {} directly", start_of(self.rest), challenge.scheme));
        }
        if !challenge.wants_token()
            && let Some(token68) = self.token68()
        {
            challenge.token68 = Some(token68.to_owned());
            return Ok(challenge);
        }
        loop {
            let parameter = self.parameter()?;
            challenge.parameters.push(parameter);
            self.skip_spaces();
            if !self.is_at_end_of_element() {
                return Err(format!("`{}` follows a parameter without a comma", start_of(self.rest)));
            }
            self.skip_commas();
            if !self.is_at_parameter() {
                return Ok(challenge);
            }
        }
    }

    fn parameter(&mut self) -> Result<(String, String), String> {
        let at = self.rest;
        let name = self.token().ok_or_else(|| format!("`{}` names no parameter", start_of(at)))?.to_ascii_lowercase();
        self.skip_spaces();
        let Some(rest) = self.rest.strip_prefix('=') else { return Err(format!("the parameter {name} has no value")) };
        self.rest = rest;
        self.skip_spaces();
        let value = match self.rest.strip_prefix('"') {
            Some(rest) => {
                self.rest = rest;
                self.quoted().ok_or_else(|| format!("the quotes around {name} are never closed"))?
            }
            None => self.token().ok_or_else(|| format!("the parameter {name} has no value"))?.to_owned(),
        };
        Ok((name, value))
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut letters = self.rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(letters.next()?.1),
                other => value.push(other),
            }
        }
        None
    }

    fn token(&mut self) -> Option<&'t str> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.rest.find(|c| !is_token(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    /// A token68 that fills the rest of its element.
    fn token68(&mut self) -> Option<&'t str> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let end = self.rest.find(|c| !is_letter(c)).unwrap_or(self.rest.len());
        let padding = self.rest[end..].find(|c| c != '=').unwrap_or(self.rest.len() - end);
        let (token, rest) = self.rest.split_at(end + padding);
        let behind = Reader { rest: rest.trim_start_matches([' ', '\t']) };
        if end == 0 || !behind.is_at_end_of_element() {
            return None;
        }
        self.rest = behind.rest;
        Some(token)
    }

    /// Whether a parameter of the same challenge follows, not a new scheme.
    fn is_at_parameter(&self) -> bool {
        let mut ahead = Reader { rest: self.rest };
        ahead.token().is_some() && {
            ahead.skip_spaces();
            ahead.rest.starts_with('=')
        }
    }

    fn is_at_end_of_element(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(',')
    }

    fn skip_spaces(&mut self) -> bool {
        let rest = self.rest.trim_start_matches([' ', '\t']);
        let skipped = rest.len() < self.rest.len();
        self.rest = rest;
        skipped
    }

    fn skip_commas(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', ',']);
    }
}

fn start_of(text: &str) -> String {
    text.chars().take(20).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<String> {
        let read = challenges(value).unwrap_or_else(|(what, _)| panic!("{value}: {what}"));
        read.iter()
            .map(|c| {
                let parameters: Vec<_> = c.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("{}[{}]{}", c.scheme, parameters.join(";"), c.token68.as_deref().unwrap_or_default())
            })
            .collect()
    }

    #[test]
    fn several_challenges_may_share_a_line() {
        assert_eq!(
            read(r#"Basic realm="a, b", Bearer scope="x y", error=z"#),
            ["Basic[realm=a, b]", "Bearer[scope=x y;error=z]"]
        );
        assert_eq!(read("Negotiate, Bearer"), ["Negotiate[]", "Bearer[]"]);
        assert_eq!(read("Negotiate abc+/==, NTLM"), ["Negotiate[]abc+/==", "NTLM[]"]);
        assert_eq!(read(r#", ,Bearer  realm = "a\"b" ,, Realm2=x"#), [r#"Bearer[realm=a"b;realm2=x]"#]);
    }

    #[test]
    fn what_the_grammar_does_not_know_is_named() {
        for (value, what) in [
            (r#"Bearer realm="tides"#, "never closed"),
            ("Bearer realm=", "has no value"),
            ("Bearer realm", "has no value"),
            ("Bearer a=b c=d", "without a comma"),
            ("Bearer resource_metadata=https://x.example/", "without a comma"),
            ("", "is empty"),
            ("=", "names no scheme"),
            ("Bearer\"x\"", "directly"),
        ] {
            let error = challenges(value).expect_err(value).0;
            assert!(error.contains(what), "{value}: {error}");
        }
        assert_eq!(challenges(r#"Basic realm=a, Bearer realm="b"#).expect_err("open").1.len(), 1);
    }
}
