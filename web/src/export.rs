//! Rows as a table or line by line: what leaves for spreadsheets and programs. Columns stand in the order of the fields.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// An object whose members keep their order.
struct Ordered(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Ordered;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Ordered(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

/// Rows as RFC 4180 has them, with a header, lines that end in CR LF, and nothing a spreadsheet would run.
pub fn csv<R: Serialize>(rows: &[R]) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for (n, row) in rows.iter().enumerate() {
        let (header, line) = csv_row(row)?;
        if n == 0 {
            out.push_str(&header);
        }
        out.push_str(&line);
    }
    Ok(out)
}

/// The header and the line of one row.
pub fn csv_row<R: Serialize>(row: &R) -> Result<(String, String), serde_json::Error> {
    let Ordered(members) = serde_json::from_str(&serde_json::to_string(row)?)?;
    let line = |cells: Vec<String>| format!("{}\r\n", cells.join(","));
    let header = line(members.iter().map(|(name, _)| quoted(name)).collect());
    Ok((header, line(members.iter().map(|(_, value)| cell(value)).collect())))
}

/// One object a line.
pub fn json_lines<R: Serialize>(rows: &[R]) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for row in rows {
        out.push_str(&serde_json::to_string(row)?);
        out.push('\n');
    }
    Ok(out)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(&harmless(text)),
        Value::Array(_) | Value::Object(_) => quoted(&value.to_string()),
    }
}

/// A text that a spreadsheet takes for text: what it would take for a formula gets an apostrophe before it.
fn harmless(text: &str) -> String {
    let runs = text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r', '\n']);
    if runs { format!("'{text}") } else { text.to_owned() }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row {
        z: i64,
        a: Option<&'static str>,
        list: Vec<i64>,
    }

    #[test]
    fn columns_keep_the_order_of_the_fields_and_nothing_is_run() {
        let rows = [
            Row { z: -1, a: Some("=1+1"), list: vec![] },
            Row { z: 2, a: Some("say \"a\", b"), list: vec![1, 2] },
            Row { z: 3, a: None, list: vec![] },
            Row { z: 4, a: Some("  @SUM(A1)"), list: vec![] },
            Row { z: 5, a: Some("\tcmd"), list: vec![] },
        ];
        assert_eq!(
            csv(&rows).unwrap(),
            "z,a,list\r\n-1,'=1+1,[]\r\n2,\"say \"\"a\"\", b\",\"[1,2]\"\r\n3,,[]\r\n4,'  @SUM(A1),[]\r\n5,'\tcmd,[]\r\n"
        );
        assert_eq!(csv::<Row>(&[]).unwrap(), "");
        assert_eq!(json_lines(&rows[2..3]).unwrap(), "{\"z\":3,\"a\":null,\"list\":[]}\n");
    }
}
