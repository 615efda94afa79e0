//! Merges the results of several machines that have run parts of one plan. The result is the same as if one machine had
//! run the whole plan.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::archive::{parquet_paths, program_files_directory};
use crate::error::LabError;
use crate::failed_runs::FailedRun;
use crate::manifest::Manifest;
use crate::plan::Plan;
use crate::point::RunKey;
use crate::run_result::RunResult;
use crate::run_results::RunResults;
use crate::shard::{Shard, divide_runs};
use crate::store::{Store, is_result_directory, load};
use crate::verify::differences;

/// The result of merging the parts of an experiment.
#[derive(Debug)]
pub struct MergeResult {
    /// The joined result directory.
    pub store: Store,
    /// The runs of all parts.
    pub finished: RunResults,
    /// The number of runs that more than one part contains; their results are equal.
    pub repeated: u64,
    /// Incomplete parts, each with the number of its missing runs. Empty if it is unknown how the plan was
    /// divided.
    pub missing: Vec<(Shard, u64)>,
}

/// Merges `parts` into the directory `out`, which is new or already contains some of the parts. Instead of the
/// directories of parts, a directory that contains them may be given. Does not change the parts.
pub fn merge(parts: &[PathBuf], out: &Path, command: Vec<String>) -> Result<MergeResult, LabError> {
    let parts = parts.iter().map(|dir| expand(dir)).collect::<Result<Vec<_>, LabError>>()?.concat();
    let read =
        parts.iter().map(|dir| Ok((dir.as_path(), load(dir)?))).collect::<Result<Vec<_>, LabError>>()?;
    let Some((first, (manifest, _))) = read.first() else {
        return Err(LabError::Directory {
            path: out.to_owned(),
            problem: "no parts to join were found".into(),
        });
    };
    let manifest = Manifest { shard: None, command, ..manifest.clone() };
    for (dir, (other, _)) in &read {
        check_same(first, &manifest, dir, other)?;
    }
    let (mut store, mut finished) = Store::open(out, manifest)?;
    let mut from: BTreeMap<RunKey, &Path> = finished.runs().map(|run| (run.key, out)).collect();
    let mut repeated = 0;
    for (dir, (_, part)) in read.iter().filter(|(dir, _)| !is_same(dir, out)) {
        for run in part.runs() {
            if let Some(known) = finished.get(run.key) {
                check_equal(&store, (from[&run.key], known), (dir, run))?;
                repeated += 1;
                continue;
            }
            copy_run_files(dir, out, store.manifest(), run.key)?;
            store.append(Ok(run))?;
            finished.insert(run.clone());
            from.insert(run.key, dir);
        }
    }
    for (dir, (_, part)) in &read {
        for run in part.failed().filter(|run| !finished.contains(run.key)).cloned().collect::<Vec<_>>() {
            let log = fs::read_to_string(dir.join(FailedRun::log_file(run.key))).unwrap_or_default();
            let run = FailedRun { log, ..run };
            store.append(Err(&run))?;
            finished.insert_failed(run);
        }
    }
    let missing = missing_runs(read.iter().map(|(_, (manifest, _))| manifest.shard), &store, &finished);
    Ok(MergeResult { store, finished, repeated, missing })
}

/// Returns the directory itself if it is a part of an experiment, otherwise the result directories in it.
fn expand(dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    if is_result_directory(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let entries = fs::read_dir(dir).map_err(|e| LabError::file("read", dir, e))?;
    let mut parts: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_result_directory(path)).collect();
    parts.sort();
    if parts.is_empty() {
        let problem =
            "neither this directory nor a directory in it contains results; give the output directories of `hol run --shard`"
                .into();
        return Err(LabError::Directory { path: dir.to_owned(), problem });
    }
    Ok(parts)
}

fn check_same(first: &Path, manifest: &Manifest, dir: &Path, other: &Manifest) -> Result<(), LabError> {
    let other = Manifest { shard: None, ..other.clone() };
    if manifest.describes_same_runs(&other) {
        return Ok(());
    }
    let what = match (manifest.version == other.version, manifest.provenance == other.provenance) {
        (false, _) => format!(
            "version {} wrote these results, but version {2} wrote {1}",
            other.version,
            first.display(),
            manifest.version
        ),
        (_, false) => {
            format!(
                "these runs took place on {}, but those of {} on {}",
                other.provenance,
                first.display(),
                manifest.provenance
            )
        }
        (true, true) => format!("the experiment or its settings differ from those of {}", first.display()),
    };
    let problem = format!(
        "{what}; omit this directory, or run the part again with the version and settings of the others"
    );
    Err(LabError::Directory { path: dir.to_owned(), problem })
}

/// Checks that two results of the same run are equal, because the same settings and seed always give the same
/// result.
fn check_equal(
    store: &Store,
    known: (&Path, &RunResult),
    other: (&Path, &RunResult),
) -> Result<(), LabError> {
    let fields = differences(known.1, other.1);
    if fields.is_empty() {
        return Ok(());
    }
    let RunKey { point, repetition } = other.1.key;
    let name = store.manifest().points.iter().find(|one| one.id == point).map(ToString::to_string);
    let problem = format!(
        "{}, repetition {repetition}: {} (in {}); run `hol verify` on both directories to find out which result can be repeated",
        name.unwrap_or_else(|| point.to_string()),
        fields.join("; "),
        known.0.display()
    );
    Err(LabError::Directory { path: other.0.to_owned(), problem })
}

/// Copies the large files of a run. This is done before the run is added to the journal.
fn copy_run_files(part: &Path, out: &Path, manifest: &Manifest, key: RunKey) -> Result<(), LabError> {
    for table in parquet_paths(manifest, key) {
        copy(&part.join(&table), &out.join(&table))?;
    }
    let files = program_files_directory(key);
    if part.join(&files).is_dir() { copy_all(&part.join(&files), &out.join(&files)) } else { Ok(()) }
}

fn copy_all(from: &Path, to: &Path) -> Result<(), LabError> {
    for entry in fs::read_dir(from).map_err(|e| LabError::file("read", from, e))? {
        let entry = entry.map_err(|e| LabError::file("read", from, e))?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy_all(&path, &to)?;
        } else {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

/// Makes a hard link if the file system supports it, because files of records are large; otherwise copies the file
/// atomically.
fn copy(from: &Path, to: &Path) -> Result<(), LabError> {
    let dir = to.parent().unwrap_or(to);
    fs::create_dir_all(dir).map_err(|e| LabError::file("create", dir, e))?;
    match fs::hard_link(from, to) {
        Ok(()) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(LabError::file("read", from, e)),
        Err(_) => {}
    }
    let part = to.with_extension("part");
    let copied = fs::copy(from, &part).and_then(|_| fs::rename(&part, to));
    copied.map_err(|e| {
        let _ = fs::remove_file(&part);
        LabError::file("write", to, e)
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the parts that lack runs, if all joined directories are parts of the same plan divided in the same way.
fn missing_runs(
    shards: impl Iterator<Item = Option<Shard>>,
    store: &Store,
    finished: &RunResults,
) -> Vec<(Shard, u64)> {
    let divisions: Option<Vec<usize>> = shards.map(|shard| shard.map(Shard::part_count)).collect();
    let Some(&[of, ref others @ ..]) = divisions.as_deref() else { return Vec::new() };
    if others.iter().any(|other| *other != of) {
        return Vec::new();
    }
    let points = &store.manifest().points;
    let missing = Plan::of_points(points.clone());
    let missing = missing.next_runs(finished);
    let of_share = divide_runs(points, of)
        .into_iter()
        .map(|share| missing.iter().filter(|run| share.includes(run.key())).count() as u64);
    Shard::all(of).zip(of_share).filter(|(_, missing)| *missing > 0).collect()
}
