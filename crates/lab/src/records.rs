//! The records of single messages of every flow, one Parquet file a run: pandas, polars, DuckDB and R read it
//! (docs/results.md). Units are in the names of the columns; each row says which point it is of.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hol_base::Time;
use hol_measure::{Leg, Outcome, Record};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::LabError;
use crate::experiment::Keep;
use crate::point::{Point, RunKey};

/// A column of whole numbers; times are in ns since the start of the run.
type Column = (&'static str, fn(&Record) -> Option<u64>);

/// Which flow a message belongs to: 0 is measured, from 1 on those of the background in the order of the file, then what
/// servers ask of others. The same
/// number as in a trace of ns-2.
const FLOW: &str = "flow";

const COLUMNS: [Column; 15] = [
    ("id", |r| Some(r.id)),
    ("parent", |r| r.parent.map(u64::from)),
    ("stream", |r| Some(r.stream.into())),
    ("size_octets", |r| Some(r.size.into())),
    ("scheduled_ns", |r| Some(r.scheduled.as_nanos())),
    ("request_written_ns", |r| time(r.request, |leg| leg.written)),
    ("request_first_sent_ns", |r| time(r.request, |leg| leg.first_sent)),
    ("request_last_sent_ns", |r| time(r.request, |leg| leg.last_sent)),
    ("request_arrived_ns", |r| time(r.request, |leg| leg.arrived)),
    ("request_delivered_ns", |r| time(r.request, |leg| leg.delivered)),
    ("reply_written_ns", |r| time(r.reply, |leg| leg.written)),
    ("reply_first_sent_ns", |r| time(r.reply, |leg| leg.first_sent)),
    ("reply_last_sent_ns", |r| time(r.reply, |leg| leg.last_sent)),
    ("reply_arrived_ns", |r| time(r.reply, |leg| leg.arrived)),
    ("reply_delivered_ns", |r| time(r.reply, |leg| leg.delivered)),
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
        Outcome::Late => "late",
    }
}

/// The layout of these files, in their metadata; a change of it is a new number.
const SCHEMA: &str = "3";

/// So many rows of a flow are a group, and at most so many records wait to be written.
const GROUP: usize = 1 << 17;

/// Where what is large goes: the records of single messages, and what programs write for the user.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    records: Option<PathBuf>,
    files: Option<PathBuf>,
}

/// Directories of a result directory.
const RECORDS: &str = "records";
const FILES: &str = "out";

fn name(key: RunKey) -> String {
    format!("{}-{}", key.point, key.repetition)
}

/// The records of a run, in a result directory.
pub(crate) fn records_of(key: RunKey) -> PathBuf {
    Path::new(RECORDS).join(format!("{}.parquet", name(key)))
}

/// The directory of the files that programs left in a run, in a result directory.
pub(crate) fn files_of(key: RunKey) -> PathBuf {
    Path::new(FILES).join(name(key))
}

/// A file that is being written: whole or not at all, and in bounded memory.
pub(crate) struct RecordsFile {
    path: PathBuf,
    part: PathBuf,
    writer: SerializedFileWriter<File>,
    /// What every row says of its run.
    origin: Vec<(String, String)>,
    repetition: i64,
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
    pub(crate) fn of(dir: &Path, keep: Keep) -> Self {
        let records = (keep == Keep::All).then(|| dir.join(RECORDS));
        Self { records, ..Self::of_files(&dir.join(FILES)) }
    }

    /// Of files alone, in this directory.
    pub fn of_files(dir: &Path) -> Self {
        Self { records: None, files: Some(dir.to_owned()) }
    }

    /// Puts the files of a run, a tar archive, into `<point>-<repetition>`, in place of what an earlier try has left there.
    pub(crate) fn unpack(&self, key: RunKey, files: &[u8]) -> Result<(), LabError> {
        let Some(dir) = self.files.as_ref().filter(|_| !files.is_empty()) else { return Ok(()) };
        let place = dir.join(name(key));
        let failed = |problem| LabError::file("write", &place, problem);
        if place.exists() {
            fs::remove_dir_all(&place).map_err(failed)?;
        }
        fs::create_dir_all(&place).map_err(failed)?;
        tar::Archive::new(files).unpack(&place).map_err(failed)
    }

    /// Begins `records/<point>-<repetition>.parquet`, for the records of so many flows.
    pub(crate) fn begin(
        &self,
        point: &Point,
        repetition: u32,
        flows: usize,
    ) -> Result<Option<RecordsFile>, LabError> {
        let Some(dir) = &self.records else { return Ok(None) };
        let key = RunKey { point: point.id, repetition };
        fs::create_dir_all(dir).map_err(|e| LabError::file("create", dir, e))?;
        let path = dir.join(format!("{}.parquet", name(key)));
        let part = path.with_extension("parquet.part");
        let file = File::create(&part).map_err(|e| LabError::file("write", &path, e))?;
        let origin = origin(point);
        let writer = writer(file, &origin).map_err(|e| unwritten(&path, e))?;
        let flows = std::iter::repeat_with(Waiting::default).take(flows).collect();
        Ok(Some(RecordsFile { path, part, writer, origin, repetition: repetition.into(), flows }))
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
        let run = Run { origin: &self.origin, repetition: self.repetition };
        write_flow(&mut self.writer, &run, flow as i64, records).map_err(|e| unwritten(&self.path, e))?;
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

/// What is the same in all rows of a run.
struct Run<'r> {
    origin: &'r [(String, String)],
    repetition: i64,
}

/// Which point it is: its id, its transport, and the swept keys with their values as written. A dot would be a path.
fn origin(point: &Point) -> Vec<(String, String)> {
    let named = [("point", point.id.to_string()), ("transport", point.label.clone())];
    let named = named.map(|(name, value)| (name.to_owned(), value));
    let column = |key: &str| key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    named.into_iter().chain(point.axes.iter().map(|(key, value)| (column(key), value.clone()))).collect()
}

fn writer(file: File, origin: &[(String, String)]) -> Result<SerializedFileWriter<File>, ParquetError> {
    let texts: String = origin.iter().map(|(name, _)| format!("required binary {name} (utf8);")).collect();
    let numbers = COLUMNS.map(|(name, _)| format!("optional int64 {name};")).concat();
    let schema = format!(
        "message record {{ {texts} required int64 repetition; required int64 {FLOW}; {numbers} required binary kind (utf8); required binary outcome (utf8); }}"
    );
    let says = |key: &str, value: &str| KeyValue::new(format!("headofline.{key}"), value.to_owned());
    let about = vec![says("schema", SCHEMA), says("version", env!("CARGO_PKG_VERSION"))];
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(about))
        .build();
    let schema = Arc::new(parse_message_type(&schema)?);
    SerializedFileWriter::new(file, schema, Arc::new(properties))
}

fn write_flow(
    writer: &mut SerializedFileWriter<File>,
    run: &Run<'_>,
    flow: i64,
    records: &[Record],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (_, value) in run.origin {
        let value = ByteArray::from(value.as_str());
        write_column::<ByteArrayType>(&mut group, &vec![value; records.len()], None)?;
    }
    for number in [run.repetition, flow] {
        write_column::<Int64Type>(&mut group, &vec![number; records.len()], None)?;
    }
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

    use crate::experiment::Experiment;
    use crate::source::Source;

    fn point() -> Point {
        let text = "transports = ['tcp']\n[sweep]\n'network.loss' = ['1%']";
        Experiment::parse("test", &Source::new("test", text)).unwrap().points.remove(0)
    }

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
        let point = point();
        let path = dir.path().join(format!("records/{}-3.parquet", point.id));
        let mut file = Archive::of(dir.path(), Keep::All).begin(&point, 3, 3).unwrap().unwrap();
        for (flow, id) in [(0, 0), (2, 0), (0, 1)] {
            file.add(flow, &record(id)).unwrap();
        }
        assert!(!path.exists(), "it is not whole");
        file.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 3);
        let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
        let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
        assert_eq!(names[..7], ["point", "transport", "network_loss", "repetition", "flow", "id", "parent"]);
        assert!(names.contains(&"size_octets") && names.contains(&"reply_delivered_ns"), "{names:?}");
        let about = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(about.iter().any(|pair| pair.key == "headofline.schema"), "{about:?}");
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let cells: Vec<_> = rows
            .map(|row| {
                assert_eq!((row.get_string(2).unwrap().as_str(), row.get_long(3).unwrap()), ("1%", 3));
                (row.get_long(4).unwrap(), row.get_long(5).unwrap())
            })
            .collect();
        assert_eq!(cells, [(0, 0), (0, 1), (2, 0)]);
    }

    #[test]
    fn a_long_flow_is_written_in_groups_and_what_is_not_finished_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let begin =
            |repetition| Archive::of(dir.path(), Keep::All).begin(&point(), repetition, 1).unwrap().unwrap();
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
