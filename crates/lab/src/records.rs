//! The records of single messages of every flow, one Parquet file a run: pandas, polars, DuckDB and R read it.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use hol_base::Time;
use hol_measure::{Leg, Outcome, Record};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::LabError;
use crate::point::RunKey;

/// A column of whole numbers; times are in ns since the start of the run.
type Column = (&'static str, fn(&Record) -> Option<u64>);

/// Which flow a message belongs to: 0 is measured, from 1 on those of the background in the order of the file. The same
/// number as in a trace of ns-2.
const FLOW: &str = "flow";

const COLUMNS: [Column; 15] = [
    ("id", |r| Some(r.id)),
    ("parent", |r| r.parent.map(u64::from)),
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

/// Writes the records of all `flows` to `records/<point>-<repetition>.parquet` under `dir`, whole or not at all.
pub(crate) fn write(dir: &Path, key: RunKey, flows: &[Vec<Record>]) -> Result<(), LabError> {
    let dir = dir.join("records");
    fs::create_dir_all(&dir).map_err(|e| LabError::file("create", &dir, e))?;
    let path = dir.join(format!("{}-{}.parquet", key.point, key.repetition));
    let part = path.with_extension("parquet.part");
    let file = File::create(&part).map_err(|e| LabError::file("write", &path, e))?;
    write_flows(file, flows).map_err(|e| LabError::file("write", &path, std::io::Error::other(e)))?;
    fs::rename(&part, &path).map_err(|e| LabError::file("write", &path, e))
}

/// A group of rows for each flow, so that a reader of one need not read the others.
fn write_flows(file: File, flows: &[Vec<Record>]) -> Result<(), ParquetError> {
    let numbers = COLUMNS.map(|(name, _)| format!("optional int64 {name};")).concat();
    let schema = format!(
        "message record {{ required int64 {FLOW}; {numbers} required binary kind (utf8); required binary outcome (utf8); }}"
    );
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    for (flow, records) in (0..).zip(flows) {
        write_flow(&mut writer, flow, records)?;
    }
    writer.close()?;
    Ok(())
}

fn write_flow(
    writer: &mut SerializedFileWriter<File>,
    flow: i64,
    records: &[Record],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    write_column::<Int64Type>(&mut group, &vec![flow; records.len()], None)?;
    for (_, number) in COLUMNS {
        let cells: Vec<Option<u64>> = records.iter().map(number).collect();
        let present: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<i64> = cells.into_iter().flatten().map(|value| value as i64).collect();
        write_column::<Int64Type>(&mut group, &values, Some(&present))?;
    }
    let kinds: Vec<ByteArray> = records.iter().map(|r| ByteArray::from(r.kind.name())).collect();
    write_column::<ByteArrayType>(&mut group, &kinds, None)?;
    let outcomes: Vec<ByteArray> = records.iter().map(|r| ByteArray::from(outcome(r.outcome))).collect();
    write_column::<ByteArrayType>(&mut group, &outcomes, None)?;
    group.close()?;
    Ok(())
}

/// Writes the next column of the schema.
fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("a writer for each column of the schema");
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use hol_measure::RecordKind;

    use crate::point::PointId;

    fn record(id: u64) -> Record {
        let scheduled = Time::from_millis(id);
        let outcome = Outcome::Unfinished;
        Record {
            id,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 500,
            scheduled,
            request: None,
            reply: None,
            outcome,
        }
    }

    #[test]
    fn every_message_is_a_row_with_the_number_of_its_flow() {
        let dir = tempfile::tempdir().unwrap();
        let key = RunKey { point: PointId(7), repetition: 3 };
        let flows = [vec![record(0), record(1)], Vec::new(), vec![record(0)]];
        write(dir.path(), key, &flows).unwrap();
        let file = File::open(dir.path().join(format!("records/{}-3.parquet", key.point))).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let numbers: Vec<_> = rows.map(|row| (row.get_long(0).unwrap(), row.get_long(1).unwrap())).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (2, 0)]);
    }
}
