//! Writes time series.

use std::path::PathBuf;
use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_measure::Record;
use hol_network::Topology;
use hol_scenario::{QueueSample, Sample, SampleValue, SenderSample};
use hol_transport::PathState;

use super::delivered::DeliveredOctets;
use super::{Row, SCHEMA_VERSION, SampledObject, VALUE_COLUMNS};
use crate::error::LabError;
use crate::parquet_rows::RowsFile;
use crate::point::Point;

/// The number of rows in a group of the Parquet file, and the maximum number of buffered rows.
const ROWS_PER_GROUP: usize = 1 << 16;

/// A Parquet file that is being written.
pub(crate) struct SeriesFile {
    file: RowsFile,
    interval: Duration,
    /// The names of the queues.
    queues: Vec<Arc<str>>,
    waiting_rows: Vec<Row>,
    rows: u64,
    /// The number of rows that a run may have.
    max: u64,
    delivered: DeliveredOctets,
    /// A description of the point, for error messages.
    point: String,
}

impl SeriesFile {
    /// Creates the file at `path` for the samples of `flows` flows, which are taken at every multiple of
    /// `interval`.
    pub(crate) fn create(
        path: PathBuf,
        point: &Point,
        repetition: u32,
        flows: usize,
        interval: Duration,
    ) -> Result<Self, LabError> {
        let numbers = VALUE_COLUMNS.map(|name| format!("optional int64 {name};")).concat();
        let columns = format!(
            "required int64 time_ns; required binary subject (utf8); optional int64 flow; optional int64 connection; \
             optional binary side (utf8); optional binary path (utf8); optional binary queue (utf8); {numbers}"
        );
        let about = [("series", SCHEMA_VERSION.to_owned()), ("interval_ns", interval.as_nanos().to_string())];
        let file = RowsFile::create(path, point, repetition, &columns, &about)?;
        let network =
            Topology::new(&point.network).map_err(|e| Self::refuse(point.to_string(), e.to_string()))?;
        let queues = network.queues().into_iter().map(Arc::from).collect();
        let delivered = DeliveredOctets::new(interval, flows);
        Ok(Self {
            file,
            interval,
            queues,
            waiting_rows: Vec::new(),
            rows: 0,
            max: Sample::MAX_PER_RUN,
            delivered,
            point: point.to_string(),
        })
    }

    /// Writes a sample as one row.
    pub(crate) fn add(&mut self, sample: &Sample) -> Result<(), LabError> {
        let row = self.row(sample);
        self.push(row)
    }

    /// Adds a record of a flow. The records of one flow must be added in order.
    pub(crate) fn add_record(&mut self, flow: usize, record: &Record) -> Result<(), LabError> {
        let fits = self.delivered.add(flow, record, self.max);
        if fits { Ok(()) } else { Err(self.too_many(record.delivered_at().unwrap_or(Time::ZERO))) }
    }

    /// Writes the remaining rows, and the deliveries until the end of the run.
    pub(crate) fn finish(mut self, ended: Time) -> Result<(), LabError> {
        let delivered = std::mem::replace(&mut self.delivered, DeliveredOctets::new(self.interval, 0));
        for (flow, intervals) in delivered.finish(ended) {
            for (at, octets) in intervals {
                let mut row = Row { at, subject: SampledObject::Flow(flow), numbers: [None; _] };
                row.set("delivered_octets", Some(octets));
                self.push(row)?;
            }
        }
        self.write_group()?;
        self.file.finish()
    }

    fn push(&mut self, row: Row) -> Result<(), LabError> {
        self.rows += 1;
        if self.rows > self.max {
            return Err(self.too_many(row.at));
        }
        self.waiting_rows.push(row);
        if self.waiting_rows.len() < ROWS_PER_GROUP { Ok(()) } else { self.write_group() }
    }

    fn write_group(&mut self) -> Result<(), LabError> {
        let rows = &self.waiting_rows;
        self.file.write(rows.len(), |group| {
            group.write_numbers(rows.iter().map(|row| row.at.as_nanos() as i64))?;
            group.write_texts(rows.iter().map(|row| row.subject.kind()))?;
            group.write_optional_numbers(rows.iter().map(|row| row.subject.flow()))?;
            group.write_optional_numbers(rows.iter().map(|row| row.subject.connection()))?;
            group.write_optional_texts(rows.iter().map(|row| row.subject.side()))?;
            group.write_optional_texts(rows.iter().map(|row| row.subject.path()))?;
            group.write_optional_texts(rows.iter().map(|row| row.subject.queue()))?;
            (0..VALUE_COLUMNS.len())
                .try_for_each(|of| group.write_optional_numbers(rows.iter().map(|row| row.numbers[of])))
        })?;
        self.waiting_rows.clear();
        Ok(())
    }

    fn row(&self, Sample { at, value }: &Sample) -> Row {
        let mut row = Row { at: *at, subject: SampledObject::Flow(0), numbers: [None; _] };
        match *value {
            SampleValue::Sender(SenderSample { flow, connection, side, path, sent_again }) => {
                let PathState { peer, cwnd, ssthresh, srtt, pacing_rate, in_flight } = path;
                row.subject = SampledObject::Sender { flow, connection, side, path: peer.to_string().into() };
                row.set("cwnd_octets", cwnd);
                row.set("ssthresh_octets", ssthresh);
                row.set("srtt_ns", srtt.map(Duration::as_nanos));
                row.set("pacing_octets_per_s", pacing_rate);
                row.set("in_flight_octets", in_flight);
                row.set("sent_again", sent_again);
            }
            SampleValue::Queue(QueueSample { queue: line, packets, octets, dropped, lost }) => {
                row.subject = SampledObject::Queue(Arc::clone(&self.queues[line as usize]));
                row.set("queue_packets", Some(packets));
                row.set("queue_octets", Some(octets));
                row.set("dropped", Some(dropped));
                row.set("lost", lost);
            }
        }
        row
    }

    fn too_many(&self, at: Time) -> LabError {
        let problem = format!(
            "after {:.3} s the time series of the run would exceed {} rows; use a longer interval than series = \"{}\"",
            at.as_secs_f64(),
            self.max,
            self.interval
        );
        Self::refuse(self.point.clone(), problem)
    }

    const fn refuse(point: String, problem: String) -> LabError {
        LabError::Scenario { point, problem }
    }
}

impl Row {
    fn set(&mut self, column: &str, number: Option<u64>) {
        let place = VALUE_COLUMNS.iter().position(|name| *name == column);
        self.numbers[place.expect("the value has a column")] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::source::Source;

    #[test]
    fn too_many_rows_are_refused_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let experiment =
            Experiment::parse("test", &Source::new("test", "transports = ['tcp']".to_owned())).unwrap();
        let path = dir.path().join("series/0.parquet");
        let interval = Duration::from_micros(10);
        let mut file = SeriesFile::create(path, &experiment.points[0], 1, 1, interval).unwrap();
        file.max = 100_000;
        let queue = QueueSample { queue: 0, packets: 0, octets: 0, dropped: 0, lost: None };
        let sample = |n: u64| Sample { at: Time::from_nanos(10_000 * n), value: SampleValue::Queue(queue) };
        (0..100_000).for_each(|n| file.add(&sample(n)).unwrap());
        let problem = file.add(&sample(100_000)).unwrap_err();
        assert!(problem.is_usage_error(), "{problem}");
        let problem = problem.to_string();
        for said in ["after 1.000 s", "exceed 100000 rows", "use a longer interval than series = \"10us\""] {
            assert!(problem.contains(said), "{problem}");
        }
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path().join("series")).unwrap().count(), 0);
    }
}
