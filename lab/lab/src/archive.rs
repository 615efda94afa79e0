//! The large files of a result directory: records of single messages, time series, and files that programs write for the user.

use std::fs;
use std::path::{Path, PathBuf};

use hol_base::Duration;

use crate::error::LabError;
use crate::experiment_file::RecordsKept;
use crate::manifest::Manifest;
use crate::point::{Point, RunKey};
use crate::records::RecordsFile;
use crate::series::SeriesFile;

/// The destination of a run's large files in a result directory, if they are kept.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    records: Option<PathBuf>,
    series: Option<PathBuf>,
    /// The interval at which runs are sampled, even if the samples are not kept; `None` if they are not sampled.
    interval: Option<Duration>,
    files: Option<PathBuf>,
}

/// Names of the subdirectories of a result directory.
const RECORDS_DIRECTORY: &str = "records";
const SERIES_DIRECTORY: &str = "series";
const FILES_DIRECTORY: &str = "out";

fn run_name(key: RunKey) -> String {
    format!("{}-{}", key.point, key.repetition)
}

fn table(dir: &Path, key: RunKey) -> PathBuf {
    dir.join(format!("{}.parquet", run_name(key)))
}

/// Returns the paths of a run's Parquet files, as far as the result directory keeps them.
pub(crate) fn parquet_paths(manifest: &Manifest, key: RunKey) -> Vec<PathBuf> {
    let records = (manifest.records == RecordsKept::All).then_some(RECORDS_DIRECTORY);
    let series = manifest.series.map(|_| SERIES_DIRECTORY);
    records.into_iter().chain(series).map(|dir| table(Path::new(dir), key)).collect()
}

/// Returns the path of a run's time series in a result directory.
pub(crate) fn series_path(key: RunKey) -> PathBuf {
    table(Path::new(SERIES_DIRECTORY), key)
}

/// Returns the path, in a result directory, of the directory with the files that programs wrote in a run.
pub(crate) fn program_files_directory(key: RunKey) -> PathBuf {
    Path::new(FILES_DIRECTORY).join(run_name(key))
}

impl Archive {
    /// Creates an archive that stores large files in the result directory `dir`, as far as the manifest requests them.
    pub(crate) fn of(dir: &Path, manifest: &Manifest) -> Self {
        let records = (manifest.records == RecordsKept::All).then(|| dir.join(RECORDS_DIRECTORY));
        let series = manifest.series.map(|_| dir.join(SERIES_DIRECTORY));
        Self { records, series, interval: manifest.series, ..Self::of_files(&dir.join(FILES_DIRECTORY)) }
    }

    /// Creates an archive that keeps nothing. `interval` must be the sampling interval of the runs with which the
    /// new runs are compared, because sampling a kernel takes time.
    pub(crate) fn discarding(interval: Option<Duration>) -> Self {
        Self { interval, ..Self::default() }
    }

    /// Returns the interval at which a run is sampled.
    pub(crate) const fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Creates an archive in the directory `dir` that keeps only the files of programs.
    pub fn of_files(dir: &Path) -> Self {
        Self { files: Some(dir.to_owned()), ..Self::default() }
    }

    /// Extracts a run's files from a tar archive to `<point>-<repetition>`, and replaces the files of an earlier
    /// attempt.
    pub(crate) fn unpack(&self, key: RunKey, files: &[u8]) -> Result<(), LabError> {
        let Some(dir) = self.files.as_ref().filter(|_| !files.is_empty()) else { return Ok(()) };
        let place = dir.join(run_name(key));
        let failed = |problem| LabError::file("write", &place, problem);
        if place.exists() {
            fs::remove_dir_all(&place).map_err(failed)?;
        }
        fs::create_dir_all(&place).map_err(failed)?;
        tar::Archive::new(files).unpack(&place).map_err(failed)
    }

    /// Creates `records/<point>-<repetition>.parquet` for the records of this many flows.
    pub(crate) fn create_records_file(
        &self,
        point: &Point,
        repetition: u32,
        flows: usize,
    ) -> Result<Option<RecordsFile>, LabError> {
        let Some(dir) = &self.records else { return Ok(None) };
        let path = table(dir, RunKey { point: point.id, repetition });
        RecordsFile::create(path, point, repetition, flows).map(Some)
    }

    /// Creates `series/<point>-<repetition>.parquet` for this many flows.
    pub(crate) fn create_series_file(
        &self,
        point: &Point,
        repetition: u32,
        flows: usize,
    ) -> Result<Option<SeriesFile>, LabError> {
        let (Some(dir), Some(interval)) = (&self.series, self.interval) else { return Ok(None) };
        let path = table(dir, RunKey { point: point.id, repetition });
        SeriesFile::create(path, point, repetition, flows, interval).map(Some)
    }
}
