//! A result directory that keeps every finished run even if the program is killed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::archive::Archive;
use crate::error::LabError;
use crate::failed_runs::FailedRun;
use crate::manifest::{FORMAT, Manifest, OLDEST_FORMAT};
use crate::results::Results;
use crate::run_results::RunResults;
use crate::sweep::EndedRun;
use crate::table;

const MANIFEST_FILE: &str = "manifest.json";
const JOURNAL_FILE: &str = "runs.jsonl";
const FAILED_DIRECTORY: &str = "failed";

/// A result directory that is being written.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    manifest: Manifest,
    journal: File,
}

impl Store {
    /// Creates a result directory, or continues a directory of the same experiment. Also returns the runs that are
    /// already in the directory.
    pub fn open(dir: &Path, manifest: Manifest) -> Result<(Self, RunResults), LabError> {
        match existing_or_new(dir)? {
            Some(old) => {
                check_same(dir, &old, &manifest)?;
                // Figures may change after the runs.
                match old.figures == manifest.figures {
                    true => Self::attach(dir, old),
                    false => Self::begin(dir, Manifest { figures: manifest.figures, ..old }),
                }
            }
            None => Self::begin(dir, manifest),
        }
    }

    /// Returns the manifest of a directory; `None` if it has none yet.
    pub fn existing_manifest(dir: &Path) -> Result<Option<Manifest>, LabError> {
        existing_or_new(dir)
    }

    /// Continues a directory that may belong to another experiment. Its runs count for every point with the same
    /// settings.
    pub fn extend(dir: &Path, manifest: Manifest) -> Result<(Self, RunResults), LabError> {
        existing_or_new(dir)?;
        Self::begin(dir, manifest)
    }

    /// Continues a directory of the same experiment; in a directory of another experiment, deletes the runs.
    pub fn open_or_replace(dir: &Path, manifest: Manifest) -> Result<(Self, RunResults), LabError> {
        match existing_or_new(dir)? {
            Some(old) if old.describes_same_runs(&manifest) => Self::attach(dir, old),
            _ => {
                let (store, _) = Self::begin(dir, manifest)?;
                let emptied = store.journal.set_len(0);
                emptied.map_err(|e| LabError::file("write", &dir.join(JOURNAL_FILE), e))?;
                Ok((store, RunResults::default()))
            }
        }
    }

    /// Writes the manifest, and continues with the runs that are already in the directory.
    fn begin(dir: &Path, manifest: Manifest) -> Result<(Self, RunResults), LabError> {
        write_atomically(&dir.join(MANIFEST_FILE), manifest.to_json().as_bytes())?;
        Self::attach(dir, manifest)
    }

    /// Locks the journal and reads the runs in it.
    fn attach(dir: &Path, manifest: Manifest) -> Result<(Self, RunResults), LabError> {
        let path = dir.join(JOURNAL_FILE);
        let journal = OpenOptions::new().create(true).append(true).open(&path);
        let journal = journal.map_err(|e| LabError::file("write", &path, e))?;
        lock(dir, &journal)?;
        let (finished, whole) = read_journal(&path)?;
        // A killed process may have left an incomplete last line, which is removed; its run is repeated.
        journal.set_len(whole).map_err(|e| LabError::file("write", &path, e))?;
        Ok((Self { dir: dir.to_owned(), manifest, journal }, finished))
    }

    /// Returns the path of the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the manifest of the directory.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Appends a run to the journal, in one line that is written at once. A failed run also gets a log file, which
    /// is removed when a later attempt succeeds.
    pub fn append(&mut self, ended: EndedRun<'_>) -> Result<(), LabError> {
        let line = match ended {
            Ok(run) => {
                let _ = fs::remove_file(self.dir.join(FailedRun::log_file(run.key)));
                serde_json::to_string(run)
            }
            Err(run) => {
                self.write_log(run)?;
                serde_json::to_string(run)
            }
        };
        let line = line.expect("a run can be serialised") + "\n";
        let written = self.journal.write_all(line.as_bytes());
        written.map_err(|e| LabError::file("write", &self.dir.join(JOURNAL_FILE), e))
    }

    fn write_log(&self, run: &FailedRun) -> Result<(), LabError> {
        let dir = self.dir.join(FAILED_DIRECTORY);
        fs::create_dir_all(&dir).map_err(|e| LabError::file("create", &dir, e))?;
        let text = format!("{run}\n\nconsole output of its machine:\n{}", run.log);
        write_atomically(&self.dir.join(FailedRun::log_file(run.key)), text.as_bytes())
    }

    /// Returns the destination of records, time series and program files according to the manifest.
    pub fn archive(&self) -> Archive {
        Archive::of(&self.dir, &self.manifest)
    }

    /// Writes the tables of the points in `finished`, each atomically.
    pub fn write_tables(&self, finished: &RunResults) -> Result<Results, LabError> {
        let results = Results::new(self.manifest.clone(), finished);
        let rows = table::rows(&results.points);
        write_atomically(&self.dir.join("points.csv"), table::csv(&rows).as_bytes())?;
        write_atomically(&self.dir.join("points.json"), table::json(rows).as_bytes())?;
        Ok(results)
    }
}

// In this module, because it reads the same journal.
impl Results {
    /// Reads a result directory without changing it.
    pub fn load(dir: &Path) -> Result<Self, LabError> {
        let (manifest, finished) = load(dir)?;
        Ok(Self::new(manifest, &finished))
    }
}

/// Returns whether a directory is a result directory.
pub(crate) fn is_result_directory(dir: &Path) -> bool {
    dir.join(MANIFEST_FILE).is_file()
}

/// Returns the manifest and the runs of a directory.
pub(crate) fn load(dir: &Path) -> Result<(Manifest, RunResults), LabError> {
    let manifest = read_manifest(dir)?;
    let (finished, _) = read_journal(&dir.join(JOURNAL_FILE))?;
    Ok((manifest, finished))
}

/// Writes a file atomically: writes it under another name, then renames it.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let mut name = path.file_name().expect("a file has a name").to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let write = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(content)?;
        file.sync_data()?;
        fs::rename(&part, path)
    };
    write().map_err(|e| {
        // An incomplete file only takes space, so an error when removing it is ignored.
        let _ = fs::remove_file(&part);
        LabError::file("write", path, e)
    })
}

/// Returns the manifest of a directory; `None` if the directory is new. Creates the directory if it does not exist. A
/// directory with other contents is an error.
fn existing_or_new(dir: &Path) -> Result<Option<Manifest>, LabError> {
    fs::create_dir_all(dir).map_err(|e| LabError::file("create", dir, e))?;
    if dir.join(MANIFEST_FILE).exists() {
        return read_manifest(dir).map(Some);
    }
    check_empty(dir).map(|()| None)
}

fn read_manifest(dir: &Path) -> Result<Manifest, LabError> {
    let path = dir.join(MANIFEST_FILE);
    let text = fs::read(&path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound if dir.is_dir() => no_manifest(dir),
        _ => LabError::file("read", &path, e),
    })?;
    let damaged = |line, problem| LabError::Damaged { path: path.clone(), line, problem };
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(|e| {
        let cure =
            format!("restore it from a copy, or remove {} and run the experiment again", dir.display());
        damaged(e.line().max(1), format!("the file is damaged; {cure}"))
    })?;
    if !(OLDEST_FORMAT..=FORMAT).any(|format| value["format"] == format) {
        let problem = format!(
            "the results have format {}, but this program reads formats {OLDEST_FORMAT} to {FORMAT}; use the version of hol that wrote them",
            value["format"]
        );
        return Err(damaged(1, problem));
    }
    Manifest::from_json(&text)
        .map_err(|e| damaged(e.line().max(1), format!("{e}; use the version of hol that wrote the file")))
}

/// Returns the runs in a journal, and the length of its complete lines in octets.
fn read_journal(path: &Path) -> Result<(RunResults, u64), LabError> {
    let (mut finished, mut whole) = (RunResults::default(), 0);
    let unread = |e| LabError::file("read", path, e);
    let mut journal = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((finished, whole)),
        Err(e) => return Err(unread(e)),
    };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = journal.read_until(b'\n', &mut line).map_err(unread)?;
        // A line without a newline is incomplete.
        if line.pop() != Some(b'\n') {
            break;
        }
        whole += length as u64;
        if line.is_empty() {
            continue;
        } else if let Ok(run) = serde_json::from_slice(&line) {
            finished.insert(run);
        } else if let Ok(run) = serde_json::from_slice(&line) {
            finished.insert_failed(run);
        } else {
            let problem = "the line is not the record of a run; remove the line, and run the experiment again, which repeats the run".to_owned();
            return Err(LabError::Damaged { path: path.to_owned(), line: number, problem });
        }
    }
    Ok((finished, whole))
}

fn check_same(dir: &Path, old: &Manifest, new: &Manifest) -> Result<(), LabError> {
    if old.describes_same_runs(new) {
        return Ok(());
    }
    let what = if old.version == new.version {
        "the directory contains results of another experiment, or of other settings"
    } else {
        "another version of hol created the directory"
    };
    let problem =
        format!("{what} ({:?}); choose another directory with --out, or remove this one", old.title);
    Err(LabError::Directory { path: dir.to_owned(), problem })
}

fn no_manifest(dir: &Path) -> LabError {
    let problem = format!("{MANIFEST_FILE} is missing; restore the file, or use another directory");
    LabError::Directory { path: dir.to_owned(), problem }
}

fn check_empty(dir: &Path) -> Result<(), LabError> {
    if dir.join(JOURNAL_FILE).exists() {
        return Err(no_manifest(dir));
    }
    let mut entries = fs::read_dir(dir).map_err(|e| LabError::file("read", dir, e))?;
    // A process that was killed right at the start may have left an incomplete manifest.
    let foreign = entries.find(|entry| entry.as_ref().is_ok_and(|e| e.file_name() != "manifest.json.part"));
    match foreign {
        None => Ok(()),
        Some(_) => Err(LabError::Directory {
            path: dir.to_owned(),
            problem: "the directory contains other files; choose another directory with --out".to_owned(),
        }),
    }
}

fn lock(dir: &Path, journal: &File) -> Result<(), LabError> {
    match journal.try_lock() {
        Err(TryLockError::WouldBlock) => Err(LabError::Directory {
            path: dir.to_owned(),
            problem: "another hol writes to this directory; wait until it ends, or choose another directory with --out".to_owned(),
        }),
        // A file system without locks is accepted.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::point::{PointId, RunKey};
    use crate::run_result::RunResult;
    use crate::source::Source;

    fn manifest(text: &str) -> Manifest {
        let experiment = Experiment::parse("test", &Source::new("test", text)).unwrap();
        Manifest::new("A test", None, &[experiment], vec!["hol".to_owned()])
    }

    fn run(repetition: u32) -> RunResult {
        RunResult::with_mean(RunKey { point: PointId(7), repetition }, 20)
    }

    #[test]
    fn points_share_the_events_of_a_trace_in_the_file() {
        let events: String = (1..=500).map(|at| format!("{{ at = '{at}ms', rate = '{at}Mbit' }},")).collect();
        let text = format!(
            "transports = ['tcp', 'udp']\n[network]\nevents = [{events}]\n[sweep]\n'network.loss' = ['0%', '1%']"
        );
        let written = manifest(&text);
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path(), written.clone()).unwrap());
        let (read, _) = load(dir.path()).unwrap();
        let networks =
            |manifest: &Manifest| manifest.points.iter().map(|p| p.network.clone()).collect::<Vec<_>>();
        assert_eq!(networks(&read), networks(&written));
        let file = fs::read_to_string(dir.path().join(MANIFEST_FILE)).unwrap();
        assert_eq!(file.matches("\"317Mbit\"").count(), 1);
    }

    #[test]
    fn a_journal_survives_a_kill_in_the_middle_of_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), manifest("transports = ['tcp']"));
        let (mut store, finished) = open().unwrap();
        assert_eq!(finished.runs().count(), 0);
        store.append(Ok(&run(0))).unwrap();
        store.journal.write_all(b"{\"point\":\"00").unwrap();
        drop(store);
        let (mut store, finished) = open().unwrap();
        assert_eq!(finished.runs().count(), 1);
        store.append(Ok(&run(1))).unwrap();
        drop(store);
        assert_eq!(open().unwrap().1.runs().count(), 2);
    }

    #[test]
    fn a_run_that_failed_has_a_log_until_it_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), manifest("transports = ['tcp']"));
        let key = run(3).key;
        let (name, failed, console) = ("a point".to_owned(), "crashed".to_owned(), "Oops".to_owned());
        let log = dir.path().join(FailedRun::log_file(key));
        open().unwrap().0.append(Err(&FailedRun { key, name, failed, log: console })).unwrap();
        let (mut store, finished) = open().unwrap();
        assert_eq!((finished.runs().count(), finished.failed().count()), (0, 1));
        let said = fs::read_to_string(&log).unwrap();
        assert!(said.contains("a point, repetition 3: crashed") && said.contains("Oops"), "{said}");
        store.append(Ok(&run(3))).unwrap();
        drop(store);
        let (_, finished) = open().unwrap();
        assert_eq!((finished.runs().count(), finished.failed().count(), log.exists()), (1, 0, false));
    }

    #[test]
    fn a_changed_line_of_the_journal_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), manifest("transports = ['tcp']")).unwrap();
        store.journal.write_all(b"nonsense\n").unwrap();
        store.append(Ok(&run(0))).unwrap();
        let error = load(dir.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("runs.jsonl:1: the line is not the record of a run; remove the line, and run the experiment again, which repeats the run"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_or_missing_manifest_is_reported_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), manifest("transports = ['tcp']")).map(|_| ());
        open().unwrap();
        let path = dir.path().join(MANIFEST_FILE);
        for damaged in ["", "{\"format\": 1,", "\u{0}"] {
            fs::write(&path, damaged).unwrap();
            let error = open().unwrap_err().to_string();
            assert!(
                error.contains("damaged; restore it from a copy, or remove") && !error.contains("column"),
                "{error}"
            );
        }
        fs::remove_file(&path).unwrap();
        assert!(open().unwrap_err().to_string().contains("manifest.json is missing"));
        assert!(load(dir.path()).unwrap_err().to_string().contains("manifest.json is missing"));
    }

    #[test]
    fn a_directory_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Store::open(dir.path(), manifest("transports = ['tcp']"));
        let _first = open().unwrap();
        assert!(open().unwrap_err().to_string().contains("another hol"));
    }

    #[test]
    fn a_directory_is_continued_with_another_title_but_not_other_settings() {
        let dir = tempfile::tempdir().unwrap();
        let open = |text| Store::open(dir.path(), manifest(text)).map(|_| ());
        open("transports = ['tcp']").unwrap();
        open("transports = ['tcp']\ntitle = 'other words'").unwrap();
        assert!(open("transports = ['tcp']\nseed = 2").unwrap_err().to_string().contains("--out"));
        assert!(open("transports = ['tcp']\nrecords = 'all'").is_err());
    }

    #[test]
    fn extending_a_directory_keeps_all_runs_and_renewing_it_only_matching_ones() {
        let (one, two) = ("transports = ['tcp']", "transports = ['tcp', 'sctp']");
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path(), manifest(one)).unwrap().0;
        store.append(Ok(&run(0))).unwrap();
        drop(store);
        let runs = |opened: (Store, RunResults)| opened.1.runs().count();
        assert_eq!(runs(Store::extend(dir.path(), manifest(two)).unwrap()), 1);
        assert_eq!(runs(Store::open_or_replace(dir.path(), manifest(two)).unwrap()), 1);
        assert_eq!(runs(Store::open_or_replace(dir.path(), manifest(one)).unwrap()), 0);
        assert_eq!(load(dir.path()).unwrap().1.runs().count(), 0);
    }

    #[test]
    fn a_manifest_reads_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let new =
            manifest("transports = ['tcp', 'sctp:streams=8']\n[sweep]\n'network.loss' = ['0%', '2.9%']");
        drop(Store::open(dir.path(), new.clone()).unwrap());
        let (old, _) = load(dir.path()).unwrap();
        assert_eq!(serde_json::to_value(&old).unwrap(), serde_json::to_value(&new).unwrap());
        assert!(old.points.iter().all(|point| point.id == point.identity()));
    }
}
