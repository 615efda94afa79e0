//! Replaces files and directories atomically, so that readers always find either the old or the new version.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::KernelError;

/// Moves the directory `fresh` to `place`. If there was a directory at `place`, it is afterwards at the path of
/// `fresh`, and the caller has to remove it.
pub(crate) fn replace_directory(fresh: &Path, place: &Path) -> Result<(), KernelError> {
    let failed = |problem| KernelError::file("create", place, problem);
    loop {
        match exchange(fresh, place) {
            Err(Errno::NOENT) if fresh.exists() => match fs::rename(fresh, place) {
                // Another process created the directory first, so the two can be exchanged.
                Err(problem) if is_occupied(&problem) => {}
                done => return done.map_err(failed),
            },
            // Some network file systems do not support an exchange, nor do kernels before 3.15.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                return in_two_steps(fresh, place).map_err(failed);
            }
            done => return done.map_err(|problem| failed(problem.into())),
        }
    }
}

/// Exchanges the directories at two paths in one step. rename(2), RENAME_EXCHANGE.
fn exchange(fresh: &Path, place: &Path) -> Result<(), Errno> {
    renameat_with(CWD, fresh, CWD, place, RenameFlags::EXCHANGE)
}

fn is_occupied(problem: &io::Error) -> bool {
    matches!(problem.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

/// Moves the directory in two steps, between which nothing is at `place`. This gap is shorter than the removal of the
/// previous directory would take.
fn in_two_steps(fresh: &Path, place: &Path) -> io::Result<()> {
    let old = fresh.with_extension("old");
    match fs::rename(place, &old) {
        Err(problem) if problem.kind() != ErrorKind::NotFound => return Err(problem),
        _ => {}
    }
    if let Err(problem) = fs::rename(fresh, place) {
        let _ = fs::rename(&old, place);
        return Err(problem);
    }
    if old.exists() { fs::rename(&old, fresh) } else { Ok(()) }
}

/// Writes a file with these `octets` to `place`.
pub(crate) fn write_file(place: &Path, octets: &[u8]) -> Result<(), KernelError> {
    let write = || {
        // The permissions of any new file: the umask determines who else may read it.
        let as_usual = Permissions::from_mode(0o666);
        let directory = place.parent().unwrap_or(Path::new("."));
        let mut fresh = tempfile::Builder::new().permissions(as_usual).tempfile_in(directory)?;
        fresh.write_all(octets)?;
        fresh.persist(place).map_err(|problem| problem.error)
    };
    write().map(drop).map_err(|problem| KernelError::file("write", place, problem))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn make(place: &Path, name: &str, octets: &str) -> PathBuf {
        let path = place.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), octets).unwrap();
        path
    }

    #[test]
    fn readers_always_find_one_version_during_a_replacement() {
        let work = tempfile::tempdir().unwrap();
        let kernels = work.path().join("kernels");
        let default = work.path().join("default");
        write_file(&default, b"6.12").unwrap();
        replace_directory(&make(work.path(), "first", "first"), &kernels).unwrap();
        let over = AtomicBool::new(false);
        let reads = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = 0_u32;
                while !over.load(Ordering::Relaxed) || reads == 0 {
                    assert!(fs::metadata(kernels.join("file")).is_ok_and(|file| file.len() >= 5));
                    assert_eq!(fs::read(&default).unwrap(), b"6.12");
                    reads += 1;
                }
                reads
            });
            for round in 0..300 {
                let fresh = make(work.path(), "fresh", &format!("round {round}"));
                replace_directory(&fresh, &kernels).unwrap();
                write_file(&default, b"6.12").unwrap();
                fs::remove_dir_all(fresh).unwrap();
            }
            over.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(reads > 0);
        assert_eq!(fs::read_to_string(kernels.join("file")).unwrap(), "round 299");
    }

    #[test]
    fn without_exchange_a_directory_is_replaced_in_two_steps() {
        let work = tempfile::tempdir().unwrap();
        let kernels = work.path().join("kernels");
        for name in ["first", "second"] {
            let fresh = make(work.path(), "fresh", name);
            in_two_steps(&fresh, &kernels).unwrap();
            assert_eq!(fs::read_to_string(kernels.join("file")).unwrap(), name);
            let _ = fs::remove_dir_all(fresh);
        }
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_replacement_is_reported_with_its_path() {
        let work = tempfile::tempdir().unwrap();
        let problem = replace_directory(&work.path().join("none"), &work.path().join("place")).unwrap_err();
        assert!(problem.to_string().contains("place"), "{problem}");
    }
}
