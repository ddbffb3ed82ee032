//! Rows as a table or line by line: what leaves for spreadsheets and programs. Columns stand in the order of the fields.

use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
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

/// A column of a table that leaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What a cell holds, if anything.
    pub kind: ColumnKind,
    /// What it means.
    pub says: String,
}

/// What cells hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Number,
    /// Yes or no.
    Boolean,
    /// Words.
    Text,
    /// A list or an object, as JSON.
    Json,
}

/// The columns of rows of this type, by name.
pub fn columns<T: JsonSchema>() -> Vec<Column> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let members = schema.as_value()["properties"].as_object().cloned().unwrap_or_default();
    let column = |(name, schema): (String, Value)| Column {
        name,
        kind: kind(&schema),
        says: schema["description"].as_str().unwrap_or_default().to_owned(),
    };
    members.into_iter().map(column).collect()
}

fn kind(schema: &Value) -> ColumnKind {
    let mut types = Vec::new();
    gather(schema, &mut types);
    types.retain(|one| one != "null");
    types.dedup();
    match types.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["integer"] => ColumnKind::Integer,
        ["number"] => ColumnKind::Number,
        ["boolean"] => ColumnKind::Boolean,
        ["string"] => ColumnKind::Text,
        _ => ColumnKind::Json,
    }
}

/// The JSON types that a schema lets in.
fn gather(schema: &Value, types: &mut Vec<String>) {
    match &schema["type"] {
        Value::String(one) => types.push(one.clone()),
        Value::Array(all) => types.extend(all.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ if schema["const"].is_string() || schema["enum"][0].is_string() => types.push("string".to_owned()),
        _ => {}
    }
    for choice in ["anyOf", "oneOf"] {
        schema[choice].as_array().into_iter().flatten().for_each(|one| gather(one, types));
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
    fn columns_say_what_they_hold_and_mean() {
        let columns = columns::<plumbline_store::views::FindingRow>();
        let kind = |name: &str| columns.iter().find(|column| column.name == name).map(|column| column.kind);
        assert_eq!(kind("id"), Some(ColumnKind::Integer));
        assert_eq!(kind("opened_s"), Some(ColumnKind::Integer), "an integer that may be missing");
        assert_eq!(kind("state"), Some(ColumnKind::Text), "a word of a closed list");
        assert_eq!(kind("cause"), Some(ColumnKind::Text), "one that may be missing");
        assert_eq!(kind("is_security"), Some(ColumnKind::Boolean));
        assert_eq!(kind("places"), Some(ColumnKind::Json));
        assert!(columns.iter().all(|column| !column.says.is_empty()), "{columns:?}");
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
