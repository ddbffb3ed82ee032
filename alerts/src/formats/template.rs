//! JSON from a template of one's own: it sees the message and nothing else, runs for a bounded number of steps, and what it
//! makes must be JSON.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt};
use minijinja::machinery::parse;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::{FormatError, Sending};

/// What a template may take: one for each step, and one for every 64 bytes that it makes or goes through, so that neither time
/// nor memory can run away. A long message with a loop over its items takes some thousand.
const FUEL: u64 = 100_000;

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
    let parsed = parse(template, "template", Default::default()).map_err(|error| wrong(error.to_string()))?;
    must_not_grow(&parsed).map_err(wrong)?;
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    let made =
        environment.render_str(template, minijinja::value::Serde(message)).map_err(|error| wrong(error.to_string()))?;
    if made.len() > crate::payload::MOST_BYTES {
        return Err(wrong("it makes more than 256 KiB".to_owned()));
    }
    let value: Value =
        serde_json::from_str(&made).map_err(|error| wrong(format!("it makes no JSON ({error}): use `| tojson`")))?;
    Ok(value.to_string().into_bytes())
}

/// The engine counts what strings cost, but not lists that hold other lists twice: sixty names, each given two of the one before,
/// would be written for ever. So a name is given a value as it is, a part of one, or a string; lists and objects are made where
/// they are written out.
fn must_not_grow(statement: &Stmt<'_>) -> Result<(), String> {
    let all = |body: &[Stmt<'_>]| body.iter().try_for_each(must_not_grow);
    match statement {
        Stmt::Template(one) => all(&one.children),
        Stmt::ForLoop(one) => {
            must_be_plain(&one.iter)?;
            all(&one.body)?;
            all(&one.else_body)
        }
        Stmt::IfCond(one) => {
            all(&one.true_body)?;
            all(&one.false_body)
        }
        Stmt::WithBlock(one) => {
            one.assignments.iter().try_for_each(|(_, value)| must_be_plain(value))?;
            all(&one.body)
        }
        Stmt::Set(one) => must_be_plain(&one.expr),
        Stmt::SetBlock(one) => all(&one.body),
        Stmt::AutoEscape(one) => all(&one.body),
        Stmt::FilterBlock(one) => all(&one.body),
        Stmt::EmitExpr(_) | Stmt::EmitRaw(_) => Ok(()),
        Stmt::Do(_) => Err("`do` is not known here".to_owned()),
    }
}

fn must_be_plain(value: &Expr<'_>) -> Result<(), String> {
    let refused = |what: &str| {
        Err(format!(
            "a name cannot be given {what}: make it where it is written out, as in `{{{{ [one, two] | tojson }}}}`"
        ))
    };
    match value {
        Expr::Var(_) | Expr::Const(_) | Expr::Test(_) | Expr::Compare(_) | Expr::UnaryOp(_) => Ok(()),
        Expr::GetAttr(one) => must_be_plain(&one.expr),
        Expr::GetItem(one) => must_be_plain(&one.expr),
        Expr::Slice(one) => must_be_plain(&one.expr),
        Expr::IfExpr(one) => {
            must_be_plain(&one.true_expr)?;
            one.false_expr.as_ref().map_or(Ok(()), must_be_plain)
        }
        Expr::BinOp(one) => {
            let is_sum = matches!(one.op, BinOpKind::Add);
            if is_sum && !matches!((&one.left, &one.right), (Expr::Const(_), _) | (_, Expr::Const(_))) {
                return refused("a sum of two others (`~` joins strings)");
            }
            must_be_plain(&one.left)?;
            must_be_plain(&one.right)
        }
        Expr::Filter(one) => {
            let is_constant =
                |arg: &CallArg<'_>| matches!(arg, CallArg::Pos(Expr::Const(_)) | CallArg::Kwarg(_, Expr::Const(_)));
            if !one.args.iter().all(is_constant) {
                return refused("a filter of two others");
            }
            one.expr.as_ref().map_or(Ok(()), must_be_plain)
        }
        Expr::Call(one) => match &one.expr {
            Expr::Var(name) if name.id == "range" => Ok(()),
            _ => refused("what a call makes"),
        },
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) if value.as_const().is_some() => Ok(()),
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => refused("a list or an object of others"),
    }
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
        let plain = r#"{% set d = data.items or [0, 1] %}{% set n = d | length + 1 %}{% set m = data.message ~ "!" %}
            {{ {"m": m, "all": [d, n]} | tojson }}"#;
        let made = preview(plain, &message).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&made).unwrap(), json!({ "m": "say \"hi\"!", "all": [[1, 2], 3] }));
        for (template, why) in [
            (r#"{"m": "{{ data.message }}"}"#, "no JSON"),
            ("{{ data.message", "syntax"),
            ("{% for i in range(100000) %}{% for j in range(100000) %}1{% endfor %}{% endfor %}", ""),
            (&format!("{}{{{{ x | tojson }}}}", "{% set x = [x or 1, x or 1] %}".repeat(60)), "of others"),
            (&"{% set x = (x or [1]) + (x or [1]) %}".repeat(60), "sum of two"),
            (&"{% set x = (x or [1]) | chain(x or [1]) %}".repeat(60), "filter of two"),
            (&"{% with x = dict(a=x, b=x) %}".repeat(60), ""),
            ("{% for x in [data, data] %}1{% endfor %}", "of others"),
            ("{% include 'etc/passwd' %}", ""),
            (r#"{{ "a" * 100000000 }}"#, "fuel"),
            (r#"{% set n = 100000000 %}{% set a = "a" * n %}{{ a }}"#, "fuel"),
            (r#"{% set n = 100000000 %}{% set a = ([1] * n) | list %}{{ a | length }}"#, "fuel"),
            (&"{% set x = (x or data.message) ~ (x or data.message) %}".repeat(60), "fuel"),
            (&"{% set x %}{{ x or data.message }}{{ x or data.message }}{% endset %}".repeat(60), "fuel"),
            (&format!("{{% set x = (x or data.message){} %}}{{{{ x }}}}", " | tojson".repeat(60)), "fuel"),
        ] {
            let error = preview(template, &message).unwrap_err().to_string();
            assert!(error.contains(why), "{template}: {error}");
        }
    }
}
