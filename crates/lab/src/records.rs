//! The records of single messages, one Parquet file a run: pandas, polars, DuckDB and R read it.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use hol_base::Time;
use hol_measure::{Leg, Outcome, Record};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::error::LabError;
use crate::point::RunKey;

/// A column of whole numbers; times are in ns since the start of the run.
type Column = (&'static str, fn(&Record) -> Option<u64>);

const COLUMNS: [Column; 14] = [
    ("id", |r| Some(r.id)),
    ("stream", |r| Some(r.stream.into())),
    ("size", |r| Some(r.size.into())),
    ("scheduled", |r| Some(r.scheduled.as_nanos())),
    ("request_written", |r| time(r.request, |leg| leg.written)),
    ("request_first_sent", |r| time(r.request, |leg| leg.first_sent)),
    ("request_last_sent", |r| time(r.request, |leg| leg.last_sent)),
    ("request_arrived", |r| time(r.request, |leg| leg.arrived)),
    ("request_delivered", |r| time(r.request, |leg| leg.delivered)),
    ("reply_written", |r| time(r.reply, |leg| leg.written)),
    ("reply_first_sent", |r| time(r.reply, |leg| leg.first_sent)),
    ("reply_last_sent", |r| time(r.reply, |leg| leg.last_sent)),
    ("reply_arrived", |r| time(r.reply, |leg| leg.arrived)),
    ("reply_delivered", |r| time(r.reply, |leg| leg.delivered)),
];

fn time(leg: Option<Leg>, of: fn(&Leg) -> Time) -> Option<u64> {
    leg.as_ref().map(|leg| of(leg).as_nanos())
}

const fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Unfinished => "unfinished",
        Outcome::Abandoned => "abandoned",
        Outcome::Refused => "refused",
    }
}

/// Writes `records/<point>-<repetition>.parquet` under `dir`, whole or not at all.
pub(crate) fn write(dir: &Path, key: RunKey, records: &[Record]) -> Result<(), LabError> {
    let dir = dir.join("records");
    fs::create_dir_all(&dir).map_err(|e| LabError::file("create", &dir, e))?;
    let path = dir.join(format!("{}-{}.parquet", key.point, key.repetition));
    let part = path.with_extension("parquet.part");
    let file = File::create(&part).map_err(|e| LabError::file("write", &path, e))?;
    write_columns(file, records).map_err(|e| LabError::file("write", &path, std::io::Error::other(e)))?;
    fs::rename(&part, &path).map_err(|e| LabError::file("write", &path, e))
}

fn write_columns(file: File, records: &[Record]) -> Result<(), ParquetError> {
    let numbers = COLUMNS.map(|(name, _)| format!("optional int64 {name};")).concat();
    let schema = format!("message record {{ {numbers} required binary outcome (utf8); }}");
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, number) in COLUMNS {
        let cells: Vec<Option<u64>> = records.iter().map(number).collect();
        let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<i64> = cells.into_iter().flatten().map(|value| value as i64).collect();
        let mut column = group.next_column()?.expect("a writer for each column of the schema");
        column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
        column.close()?;
    }
    let outcomes: Vec<ByteArray> = records.iter().map(|r| ByteArray::from(outcome(r.outcome))).collect();
    let mut column = group.next_column()?.expect("a writer for each column of the schema");
    column.typed::<ByteArrayType>().write_batch(&outcomes, None, None)?;
    column.close()?;
    group.close()?;
    writer.close()?;
    Ok(())
}
