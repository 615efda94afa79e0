//! Reads time series row by row, so that memory is bounded.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hol_base::{Duration, Time};
use hol_scenario::Side;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::{Row, SCHEMA_VERSION, SampledObject, VALUE_COLUMNS};
use crate::archive::series_path;
use crate::error::LabError;
use crate::point::RunKey;

/// The time series of a run.
pub struct Series {
    path: PathBuf,
    file: SerializedFileReader<File>,
    interval: Duration,
}

impl Series {
    /// Opens the time series of a run in a result directory; `None` if it was not kept.
    pub fn open(dir: &Path, key: RunKey) -> Result<Option<Self>, LabError> {
        let path = dir.join(series_path(key));
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|e| LabError::file("read", &path, e))?,
        };
        let file = catch_panic(|| SerializedFileReader::new(file)).map_err(|e| read_error(&path, &e))?;
        let about = file.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
        let says = |key: &str| about.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone());
        if says("headofline.series").as_deref() != Some(SCHEMA_VERSION) {
            let problem = format!(
                "the file is not a time series of layout {SCHEMA_VERSION}; use the version of hol that wrote the file, or run the experiment again"
            );
            return Err(LabError::Damaged { path, line: 1, problem });
        }
        let interval = says("headofline.interval_ns").and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Some(Self { path, file, interval: Duration::from_nanos(interval) }))
    }

    /// Returns the interval of the samples.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Passes all rows to `take`. The rows of senders and queues come first, in order of time. The rows of flows
    /// follow, one flow after another.
    pub fn for_each_row(&self, mut take: impl FnMut(Row)) -> Result<(), LabError> {
        for number in 0..self.file.num_row_groups() {
            let group =
                catch_panic(|| self.file.get_row_group(number).and_then(|group| read_rows(group.as_ref())));
            group.map_err(|e| read_error(&self.path, &e))?.into_iter().for_each(&mut take);
        }
        Ok(())
    }
}

/// Calls `read` and catches panics of the Parquet library, which asserts properties of its input. A damaged file is not
/// a bug of hol.
fn catch_panic<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let damaged = |_| Err(ParquetError::General("the file is damaged".to_owned()));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(damaged)
}

fn read_error(path: &Path, problem: &ParquetError) -> LabError {
    let problem = format!(
        "{problem}; remove the file and its line of runs.jsonl, and run the experiment again, which repeats the run"
    );
    LabError::Damaged { path: path.to_owned(), line: 1, problem }
}

fn read_rows(group: &dyn RowGroupReader) -> Result<Vec<Row>, ParquetError> {
    let (times, kinds) = (numbers(group, "time_ns")?, texts(group, "subject")?);
    let (flows, connections) = (numbers(group, "flow")?, numbers(group, "connection")?);
    let (sides, paths, queues) = (texts(group, "side")?, texts(group, "path")?, texts(group, "queue")?);
    let columns = VALUE_COLUMNS.iter().map(|name| numbers(group, name)).collect::<Result<Vec<_>, _>>()?;
    let rows = 0..times.len();
    let row = |at: usize| {
        let flow = flows[at].and_then(|flow| u32::try_from(flow).ok());
        let subject = match (kinds[at].as_deref()?, flow) {
            ("flow", Some(flow)) => SampledObject::Flow(flow),
            ("queue", _) => SampledObject::Queue(queues[at].clone()?),
            ("sender", Some(flow)) => SampledObject::Sender {
                flow,
                connection: u32::try_from(connections[at]?).ok()?,
                side: if sides[at].as_deref() == Some(Side::Client.name()) {
                    Side::Client
                } else {
                    Side::Server
                },
                path: paths[at].clone()?,
            },
            _ => return None,
        };
        let numbers = std::array::from_fn(|of| columns[of][at]);
        Some(Row { at: Time::from_nanos(times[at]?), subject, numbers })
    };
    let damaged = || ParquetError::General("a row names neither a flow, nor a path, nor a queue".to_owned());
    rows.map(|at| row(at).ok_or_else(damaged)).collect()
}

fn numbers(group: &dyn RowGroupReader, column: &str) -> Result<Vec<Option<u64>>, ParquetError> {
    cells::<Int64Type, _>(group, column, |number| Ok(number as u64))
}

fn texts(group: &dyn RowGroupReader, column: &str) -> Result<Vec<Option<Arc<str>>>, ParquetError> {
    let mut last: Option<(ByteArray, Arc<str>)> = None;
    cells::<ByteArrayType, _>(group, column, |octets| {
        // Neighbouring rows often have the same text.
        if let Some((_, text)) = last.as_ref().filter(|(known, _)| *known == octets) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = octets.as_utf8()?.into();
        last = Some((octets, Arc::clone(&text)));
        Ok(text)
    })
}

/// Returns the cells of a column, some of which may be empty.
fn cells<T: DataType, C>(
    group: &dyn RowGroupReader,
    column: &str,
    mut cell: impl FnMut(T::T) -> Result<C, ParquetError>,
) -> Result<Vec<Option<C>>, ParquetError> {
    let rows = group.metadata().num_rows() as usize;
    let columns = group.metadata().schema_descr().columns();
    let place =
        columns.iter().position(|one| one.name() == column && one.physical_type() == T::get_physical_type());
    let place = place.ok_or_else(|| ParquetError::General(format!("no column {column}")))?;
    let is_optional = columns[place].max_def_level() > 0;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(place)?);
    let (mut values, mut present) = (Vec::with_capacity(rows), Vec::new());
    let mut read = 0;
    while read < rows {
        let levels = is_optional.then_some(&mut present);
        let (more, _, _) = reader.read_records(rows - read, levels, None, &mut values)?;
        if more == 0 {
            return Err(ParquetError::General(format!("column {column} ends after {read} of {rows} rows")));
        }
        read += more;
    }
    let mut values = values.into_iter();
    let mut next =
        || values.next().ok_or_else(|| ParquetError::General(format!("column {column} has too few values")));
    let cells = (0..rows).map(|row| {
        if is_optional && present[row] == 0 { Ok(None) } else { next().and_then(&mut cell).map(Some) }
    });
    cells.collect()
}
