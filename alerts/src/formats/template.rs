//! JSON from a template of one's own: it sees the message and nothing else, runs for a bounded number of steps, and what it
//! makes must be JSON.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::{FormatError, Sending};

/// Steps a template may take; a long message with a loop over its items takes some thousand.
const FUEL: u64 = 50_000;

/// Bytes of a template, at most.
const MOST: usize = 32 * 1024;

/// The body that a receiver's template makes of a message.
pub(super) fn fill(sending: &Sending<'_>) -> Result<Vec<u8>, FormatError> {
    let options: Value = serde_json::from_str(&sending.endpoint.options).unwrap_or_default();
    let template = options["template"].as_str().ok_or_else(|| FormatError::Template("none is set".to_owned()))?;
    let message: Value = serde_json::from_slice(sending.body).unwrap_or_default();
    preview(template, &message)
}

/// What a template makes of a message.
///
/// # Errors
/// When it cannot be read or filled, takes too many steps, or makes something that is no JSON.
pub fn preview(template: &str, message: &Value) -> Result<Vec<u8>, FormatError> {
    let wrong = |error: String| FormatError::Template(error);
    if template.len() > MOST {
        return Err(wrong(format!("it has more than {MOST} bytes")));
    }
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let made = environment.render_str(template, message).map_err(|error| wrong(error.to_string()))?;
    if made.len() > crate::payload::MOST_BYTES {
        return Err(wrong("it makes more than 256 KiB".to_owned()));
    }
    let value: Value =
        serde_json::from_str(&made).map_err(|error| wrong(format!("it makes no JSON ({error}): use `| tojson`")))?;
    Ok(value.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_makes_json_or_says_why_not() {
        let message = json!({ "type": "ping", "data": { "message": "say \"hi\"", "items": [1, 2] } });
        let made = preview(r#"{"m": {{ data.message | tojson }}, "n": {{ data.items | length }}}"#, &message).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&made).unwrap(), json!({ "m": "say \"hi\"", "n": 2 }));
        for (template, why) in [
            (r#"{"m": "{{ data.message }}"}"#, "no JSON"),
            ("{{ data.message", "syntax"),
            ("{% for i in range(100000) %}{% for j in range(100000) %}1{% endfor %}{% endfor %}", ""),
            ("{% include 'etc/passwd' %}", ""),
        ] {
            let error = preview(template, &message).unwrap_err().to_string();
            assert!(error.contains(why), "{template}: {error}");
        }
    }
}
