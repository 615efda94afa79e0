//! Records of single messages: a Parquet file for each run, with the messages of every flow
//! (docs/results.md). pandas, polars, DuckDB and R can read it. Column names contain units; each row contains
//! its point.

use std::path::PathBuf;

use hol_base::Time;
use hol_measure::{Outcome, Record, TransferTimes};

use crate::error::LabError;
use crate::parquet_rows::RowsFile;
use crate::point::Point;

/// A column of whole numbers: its name, and a function that returns the number of a record. Times are in ns since
/// the start of the run.
type Column = (&'static str, fn(&Record) -> Option<u64>);

/// The column with the number of a message's flow. The measured flow is 0, followed by background flows in the order of
/// the file and by flows of requests that servers send to other servers. hol's ns-2 traces use the same numbers.
const FLOW_COLUMN: &str = "flow";

const COLUMNS: [Column; 16] = [
    ("id", |r| Some(r.id)),
    ("parent", |r| r.parent.map(u64::from)),
    ("stream", |r| Some(r.stream.into())),
    ("size_octets", |r| Some(r.size.into())),
    ("reply_size_octets", |r| r.reply.map(|_| r.reply_size.into())),
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

fn time(leg: Option<TransferTimes>, of: fn(&TransferTimes) -> Time) -> Option<u64> {
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

/// The version of the layout, in the file's metadata. It is increased with every change of the layout.
const SCHEMA_VERSION: &str = "4";

/// The number of rows in a group of the Parquet file, and the maximum number of buffered records of a flow.
const ROWS_PER_GROUP: usize = 1 << 17;

/// A Parquet file that is being written.
pub(crate) struct RecordsFile {
    file: RowsFile,
    flows: Vec<UnwrittenRecords>,
}

/// The records of a flow that have not been written yet.
#[derive(Default)]
struct UnwrittenRecords {
    records: Vec<Record>,
    /// The number of row groups of this flow written so far.
    groups: u64,
}

impl RecordsFile {
    /// Creates the file at `path` for the records of `flows` flows.
    pub(crate) fn create(
        path: PathBuf,
        point: &Point,
        repetition: u32,
        flows: usize,
    ) -> Result<Self, LabError> {
        let numbers = COLUMNS.map(|(name, _)| format!("optional int64 {name};")).concat();
        let columns = format!(
            "required int64 {FLOW_COLUMN}; {numbers} required binary kind (utf8); required binary outcome (utf8);"
        );
        let about = [("schema", SCHEMA_VERSION.to_owned())];
        let file = RowsFile::create(path, point, repetition, &columns, &about)?;
        Ok(Self { file, flows: std::iter::repeat_with(UnwrittenRecords::default).take(flows).collect() })
    }

    /// Adds a record of a flow. The records of one flow must be added in order.
    pub(crate) fn add(&mut self, flow: usize, record: &Record) -> Result<(), LabError> {
        let waiting = &mut self.flows[flow].records;
        waiting.push(*record);
        if waiting.len() < ROWS_PER_GROUP { Ok(()) } else { self.write_group(flow) }
    }

    /// Writes the records that have not been written yet.
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        for flow in 0..self.flows.len() {
            let UnwrittenRecords { records, groups } = &self.flows[flow];
            if !records.is_empty() || *groups == 0 {
                self.write_group(flow)?;
            }
        }
        self.file.finish()
    }

    /// Writes the buffered records of a flow as a group of rows. All rows of a group belong to one flow, so that a
    /// reader of one flow can skip the others.
    fn write_group(&mut self, flow: usize) -> Result<(), LabError> {
        let UnwrittenRecords { records, groups } = &mut self.flows[flow];
        *groups += 1;
        self.file.write(records.len(), |group| {
            group.write_constant(flow as i64)?;
            for (_, number) in COLUMNS {
                group.write_optional_numbers(records.iter().map(number))?;
            }
            group.write_texts(records.iter().map(|record| record.kind.name()))?;
            group.write_texts(records.iter().map(|record| outcome(record.outcome)))
        })?;
        records.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

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
            reply_size: 0,
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
        let mut file = RecordsFile::create(path.clone(), &point, 3, 3).unwrap();
        for (flow, id) in [(0, 0), (2, 0), (0, 1)] {
            file.add(flow, &record(id)).unwrap();
        }
        assert!(!path.exists(), "an unfinished file has no final name");
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
    fn a_long_flow_is_written_in_groups_and_an_unfinished_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let records = dir.path().join("records");
        let begin = |repetition: u32| {
            RecordsFile::create(records.join(format!("{repetition}.parquet")), &point(), repetition, 1)
                .unwrap()
        };
        let mut file = begin(0);
        for id in 0..=ROWS_PER_GROUP as u64 {
            file.add(0, &record(id)).unwrap();
            assert!(file.flows[0].records.len() < ROWS_PER_GROUP);
        }
        file.finish().unwrap();
        drop(begin(1));
        let files: Vec<_> = fs::read_dir(&records).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        let reader = SerializedFileReader::new(File::open(&files[0]).unwrap()).unwrap();
        let rows = reader.metadata().row_groups().iter().map(|group| group.num_rows());
        assert_eq!(rows.collect::<Vec<_>>(), [ROWS_PER_GROUP as i64, 1]);
    }
}
