//! Rows as Apache Parquet, for those who count: one column for each member, all of them optional, packed with zstd.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::Value;

use crate::export::{Column, ColumnKind};

/// A file that is being written.
pub struct Table {
    columns: Vec<Column>,
    file: SerializedFileWriter<Vec<u8>>,
}

impl Table {
    /// A file without rows.
    ///
    /// # Errors
    /// When the columns make no table, such as two of one name.
    pub fn begin(columns: Vec<Column>) -> Result<Table> {
        let fields = columns.iter().map(|column| {
            let (physical, logical) = match column.kind {
                ColumnKind::Integer => (Physical::INT64, None),
                ColumnKind::Number => (Physical::DOUBLE, None),
                ColumnKind::Boolean => (Physical::BOOLEAN, None),
                ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                ColumnKind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            };
            let field = Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical);
            field.build().map(Arc::new)
        });
        let row = Type::group_type_builder("row").with_fields(fields.collect::<Result<_>>()?).build()?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("plumbline ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let file = SerializedFileWriter::new(Vec::new(), Arc::new(row), Arc::new(properties))?;
        Ok(Table { columns, file })
    }

    /// Adds rows, each a JSON object, as one group.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, rows: &[Value]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in &self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            let cells: Vec<Option<&Value>> = rows.iter().map(|row| cell(row, &column.name)).collect();
            match writer.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    let (levels, values) = parted(&cells, Value::as_i64);
                    writer.write_batch(&values, Some(&levels), None)?;
                }
                ColumnWriter::DoubleColumnWriter(writer) => {
                    let (levels, values) = parted(&cells, Value::as_f64);
                    writer.write_batch(&values, Some(&levels), None)?;
                }
                ColumnWriter::BoolColumnWriter(writer) => {
                    let (levels, values) = parted(&cells, Value::as_bool);
                    writer.write_batch(&values, Some(&levels), None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    let words = |value: &Value| Some(ByteArray::from(text(column.kind, value).as_str()));
                    let (levels, values) = parted(&cells, words);
                    writer.write_batch(&values, Some(&levels), None)?;
                }
                _ => {}
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// The whole file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(self) -> Result<Vec<u8>> {
        self.file.into_inner()
    }
}

fn cell<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row.get(name).filter(|value| !value.is_null())
}

/// For every row whether there is a value, and the values.
fn parted<T>(cells: &[Option<&Value>], read: impl Fn(&Value) -> Option<T>) -> (Vec<i16>, Vec<T>) {
    let read: Vec<Option<T>> = cells.iter().map(|cell| cell.and_then(&read)).collect();
    let levels = read.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, read.into_iter().flatten().collect())
}

fn text(kind: ColumnKind, value: &Value) -> String {
    match value {
        Value::String(words) if kind == ColumnKind::Text => words.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_read_again_and_what_is_missing_is_missing() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind, says: String::new() };
        let columns = vec![
            column("n", ColumnKind::Integer),
            column("said", ColumnKind::Text),
            column("yes", ColumnKind::Boolean),
            column("list", ColumnKind::Json),
        ];
        let mut table = Table::begin(columns).unwrap();
        table.write(&[json!({ "n": 7, "said": "=1+1", "yes": true, "list": [1] }), json!({ "n": null })]).unwrap();
        table.write(&[json!({ "n": -1 })]).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(table.end().unwrap())).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].get_long(0).unwrap(), rows[2].get_long(0).unwrap()), (7, -1));
        assert_eq!((rows[0].get_string(1).unwrap().as_str(), rows[0].get_bool(2).unwrap()), ("=1+1", true));
        assert!(rows[1].get_long(0).is_err() && rows[1].get_string(1).is_err(), "no value, and not zero");
    }
}
