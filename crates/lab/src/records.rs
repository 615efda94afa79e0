//! The records of single messages of every flow, one Parquet file a run: pandas, polars, DuckDB and R read it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
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

/// So many rows of a flow are a group, and at most so many records wait to be written.
const GROUP: usize = 1 << 17;

/// Where the records of single messages go, if they are kept.
#[derive(Debug, Clone, Default)]
pub struct Archive(Option<PathBuf>);

/// A file that is being written: whole or not at all, and in bounded memory.
pub(crate) struct RecordsFile {
    path: PathBuf,
    part: PathBuf,
    writer: SerializedFileWriter<File>,
    flows: Vec<Waiting>,
}

/// The records of a flow that are not written yet.
#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    /// Groups that were written before.
    groups: u64,
}

impl Archive {
    /// In a result directory.
    pub(crate) fn of(dir: &Path) -> Self {
        Self(Some(dir.join("records")))
    }

    /// Begins `records/<point>-<repetition>.parquet`, for the records of so many flows.
    pub(crate) fn begin(&self, key: RunKey, flows: usize) -> Result<Option<RecordsFile>, LabError> {
        let Some(dir) = &self.0 else { return Ok(None) };
        fs::create_dir_all(dir).map_err(|e| LabError::file("create", dir, e))?;
        let path = dir.join(format!("{}-{}.parquet", key.point, key.repetition));
        let part = path.with_extension("parquet.part");
        let file = File::create(&part).map_err(|e| LabError::file("write", &path, e))?;
        let writer = writer(file).map_err(|e| unwritten(&path, e))?;
        let flows = std::iter::repeat_with(Waiting::default).take(flows).collect();
        Ok(Some(RecordsFile { path, part, writer, flows }))
    }
}

impl RecordsFile {
    /// The next record of a flow.
    pub(crate) fn add(&mut self, flow: usize, record: &Record) -> Result<(), LabError> {
        let waiting = &mut self.flows[flow].records;
        waiting.push(*record);
        if waiting.len() < GROUP { Ok(()) } else { self.write_group(flow) }
    }

    /// Writes what waits.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        for flow in 0..self.flows.len() {
            let Waiting { records, groups } = &self.flows[flow];
            if !records.is_empty() || *groups == 0 {
                self.write_group(flow)?;
            }
        }
        self.writer.finish().map_err(|e| unwritten(&self.path, e))?;
        fs::rename(&self.part, &self.path).map_err(|e| LabError::file("write", &self.path, e))
    }

    /// A group of rows is of one flow, so that a reader of one need not read the others.
    fn write_group(&mut self, flow: usize) -> Result<(), LabError> {
        let Waiting { records, groups } = &mut self.flows[flow];
        *groups += 1;
        write_flow(&mut self.writer, flow as i64, records).map_err(|e| unwritten(&self.path, e))?;
        records.clear();
        Ok(())
    }
}

impl Drop for RecordsFile {
    /// What was not finished is of no use.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

fn unwritten(path: &Path, problem: ParquetError) -> LabError {
    LabError::file("write", path, std::io::Error::other(problem))
}

fn writer(file: File) -> Result<SerializedFileWriter<File>, ParquetError> {
    let numbers = COLUMNS.map(|(name, _)| format!("optional int64 {name};")).concat();
    let schema = format!(
        "message record {{ required int64 {FLOW}; {numbers} required binary kind (utf8); required binary outcome (utf8); }}"
    );
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(&schema)?);
    SerializedFileWriter::new(file, schema, Arc::new(properties))
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
        let path = dir.path().join(format!("records/{}-3.parquet", key.point));
        let mut file = Archive::of(dir.path()).begin(key, 3).unwrap().unwrap();
        for (flow, id) in [(0, 0), (2, 0), (0, 1)] {
            file.add(flow, &record(id)).unwrap();
        }
        assert!(!path.exists(), "it is not whole");
        file.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 3);
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let numbers: Vec<_> = rows.map(|row| (row.get_long(0).unwrap(), row.get_long(1).unwrap())).collect();
        assert_eq!(numbers, [(0, 0), (0, 1), (2, 0)]);
    }

    #[test]
    fn a_long_flow_is_written_in_groups_and_what_is_not_finished_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let begin = |repetition| {
            let key = RunKey { point: PointId(7), repetition };
            Archive::of(dir.path()).begin(key, 1).unwrap().unwrap()
        };
        let mut file = begin(0);
        for id in 0..=GROUP as u64 {
            file.add(0, &record(id)).unwrap();
            assert!(file.flows[0].records.len() < GROUP);
        }
        file.finish().unwrap();
        drop(begin(1));
        let files: Vec<_> =
            fs::read_dir(dir.path().join("records")).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let reader = SerializedFileReader::new(File::open(&files[0]).unwrap()).unwrap();
        let rows = reader.metadata().row_groups().iter().map(|group| group.num_rows());
        assert_eq!(rows.collect::<Vec<_>>(), [GROUP as i64, 1]);
    }
}
