//! Backups: copies of a state directory, which a server can use like the original.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::store::{DATABASE_FILE, Owner};

/// Why a backup failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The destination is not empty.
    #[error("{0}: not empty; choose a new directory for each backup")]
    Taken(PathBuf),
    /// The database cannot be copied.
    #[error("{0}: {1}; name the state directory with --state DIR")]
    Database(PathBuf, rusqlite::Error),
    /// A file cannot be copied.
    #[error("{0}: {1}; the backup is not complete")]
    File(PathBuf, io::Error),
}

/// Copies the state directory `state` to `to`. A server may use `state` at the same time.
///
/// The database is copied first, as a snapshot without files that are added later. A server that uses the
/// copy repeats a run whose line in the journal was copied incompletely.
pub fn back_up(state: &Path, to: &Path) -> Result<(), BackupError> {
    let failed = |error| BackupError::File(to.to_owned(), error);
    // Only the owner may read the copy, as with the original.
    DirBuilder::new().recursive(true).mode(0o700).create(to).map_err(failed)?;
    if fs::read_dir(to).map_err(failed)?.next().is_some() {
        return Err(BackupError::Taken(to.to_owned()));
    }
    let (database, copy) = (state.join(DATABASE_FILE), to.join(DATABASE_FILE));
    let unread = |error| BackupError::Database(database.clone(), error);
    // These flags do not create a missing database.
    let connection =
        Connection::open_with_flags(&database, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(unread)?;
    connection.execute("VACUUM INTO ?1", [copy.to_string_lossy()]).map_err(unread)?;
    for owner in [Owner::Experiment, Owner::User, Owner::Project] {
        copy_directory(&state.join(owner.table_name()), &to.join(owner.table_name()))?;
    }
    Ok(())
}

/// Copies files and directories, except those that are deleted meanwhile. Does not follow symbolic links, because
/// experiments can create them.
fn copy_directory(from: &Path, to: &Path) -> Result<(), BackupError> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| BackupError::File(from.to_owned(), error))?,
    };
    DirBuilder::new().mode(0o700).create(to).map_err(|error| BackupError::File(to.to_owned(), error))?;
    for entry in entries {
        let entry = entry.map_err(|error| BackupError::File(from.to_owned(), error))?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            copy_directory(&path, &copy)?;
        } else if kind.is_file() {
            match fs::copy(&path, &copy) {
                Err(error) if error.kind() != io::ErrorKind::NotFound || path.exists() => {
                    return Err(BackupError::File(path, error));
                }
                _ => (),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::experiment::Filter;
    use crate::quota::Quota;
    use crate::submission::Submission;
    use crate::tests::{TEXT, with_script};

    /// Made while the server runs, and used by another.
    #[test]
    fn a_backup_is_a_state_directory() {
        let dir = tempfile::tempdir().unwrap();
        let (server, ..) = with_script(dir.path(), "exit 0", Quota::UNLIMITED);
        let requester = server.local.clone().unwrap();
        let id = server
            .submit(&requester, Submission { text: TEXT.to_owned(), ..Submission::default() })
            .unwrap()
            .id;
        let results = server.runner_command(id).unwrap().results();
        fs::create_dir_all(&results).unwrap();
        fs::write(results.join("points.csv"), "1,2\n").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", results.join("link")).unwrap();
        let to = dir.path().join("restored/state");
        back_up(&server.config.state, &to).unwrap();
        assert!(matches!(back_up(&server.config.state, &to), Err(BackupError::Taken(_))));
        assert!(matches!(back_up(dir.path(), &dir.path().join("other")), Err(BackupError::Database(..))));
        let later = Submission { text: TEXT.to_owned(), ..Submission::default() };
        server.submit(&requester, later).unwrap();
        drop(server);
        let (restored, ..) = with_script(&dir.path().join("restored"), "exit 0", Quota::UNLIMITED);
        let listed = restored.experiments(&requester, &Filter::default()).unwrap();
        assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
        let results = restored.runner_command(id).unwrap().results();
        assert!(results.starts_with(&to));
        assert_eq!(fs::read_to_string(results.join("points.csv")).unwrap(), "1,2\n");
        assert!(!results.join("link").exists());
    }
}
