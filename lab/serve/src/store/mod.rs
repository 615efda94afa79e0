//! The server's persistent state: an SQLite database in its state directory.
//!
//! Each function is one transaction, so SQLite resolves conflicts of concurrent requests.

mod directories;
mod experiments;
mod people;
mod reserve;
mod schema;
mod texts;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction};

pub use directories::Owner;
pub use experiments::{NewExperiment, StateChange, StoredExperiment};
pub use people::{Key, KeyKind, Member, Project, User};
use reserve::Reserve;
pub use texts::Text;

/// Maximum time for which another process, such as a backup, may lock the database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// File name of the database in a state directory.
pub const DATABASE_FILE: &str = "lab.db";
/// Name of the reserve, a file next to the database that is deleted to free space on a full disk.
const RESERVE_FILE: &str = "reserve";

/// The database of the server.
#[derive(Debug)]
pub struct Store {
    connection: Mutex<Connection>,
    reserve: Reserve,
}

/// Why the database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite cannot open the database.
    #[error("{0}: {1}; restore it from a backup, or choose another directory with --state DIR")]
    Database(PathBuf, rusqlite::Error),
    /// The database is damaged.
    #[error(
        "{0}: the database is damaged ({1}); restore it from a backup, or save what is left with `sqlite3 {0} .recover`"
    )]
    Damaged(PathBuf, String),
    /// A later version of this program wrote the database.
    #[error("{0}: a later version of this program wrote it (format {1}); use that version")]
    Later(PathBuf, i64),
}

impl Store {
    /// Opens the database at `path`, or creates it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Database(path.to_owned(), error);
        let mut connection = Connection::open(path).map_err(failed)?;
        configure(&connection).map_err(failed)?;
        check_integrity(&connection).map_err(|problem| StoreError::Damaged(path.to_owned(), problem))?;
        match schema::migrate(&mut connection).map_err(failed)? {
            Ok(()) => Ok(Self {
                connection: Mutex::new(connection),
                reserve: Reserve::new(path.with_file_name(RESERVE_FILE)),
            }),
            Err(version) => Err(StoreError::Later(path.to_owned(), version)),
        }
    }

    /// Locks the connection, even after a panic: the panic rolled back its transaction, so the data are consistent.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the reserve again, if the disk has room for it.
    pub fn fill_reserve(&self) {
        // Fails while the disk is full.
        let _ = self.reserve.fill();
    }

    /// Runs `work` in a transaction. If the disk is full, releases the reserve and tries again. Used only for
    /// deletions, and for state changes of experiments, which may end the experiment that fills the disk.
    fn transact_on_full_disk<T>(
        &self,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        match self.transact(&work) {
            Err(error) if is_disk_full(&error) && self.reserve.release() => self.transact(&work),
            done => done,
        }
    }

    /// Runs `work` in a transaction.
    fn transact<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// Returns whether an error means that the disk is full. This includes errors of SQLite when it cannot extend
/// the index of its write-ahead log.
pub fn is_disk_full(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return false };
    let no_room = [rusqlite::ffi::SQLITE_IOERR_SHMSIZE, rusqlite::ffi::SQLITE_IOERR_SHMOPEN];
    failure.code == ErrorCode::DiskFull || no_room.contains(&failure.extended_code)
}

/// Checks a database for damage, before writing makes it worse; the error is the first problem.
fn check_integrity(connection: &Connection) -> Result<(), String> {
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    match found.map_err(|error| error.to_string())? {
        found if found == "ok" => Ok(()),
        problem => Err(problem.lines().last().unwrap_or_default().to_owned()),
    }
}

/// Configures the connection so that acknowledged data are on the disk: WAL alone would lose the last transactions in a power failure.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_later_version_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lab.db");
        drop(Store::open(&path).unwrap());
        drop(Store::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        let refused = Store::open(&path).unwrap_err().to_string();
        assert!(refused.contains("format 99") && refused.contains("use that version"), "{refused}");
    }

    #[test]
    fn damaged_database_is_reported_with_its_file_and_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lab.db");
        drop(Store::open(&path).unwrap());
        let mut octets = std::fs::read(&path).unwrap();
        // The first page, which has the positions of the others, remains intact.
        octets[8192..16384].fill(0x55);
        std::fs::write(&path, octets).unwrap();
        let refused = Store::open(&path).unwrap_err().to_string();
        assert!(refused.contains("lab.db: the database is damaged"), "{refused}");
        assert!(refused.contains("restore it from a backup"), "{refused}");
    }

    #[test]
    fn file_that_is_not_a_database_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lab.db");
        std::fs::write(&path, "title = 'this is no database'\n".repeat(100)).unwrap();
        let refused = Store::open(&path).unwrap_err().to_string();
        assert!(refused.contains("lab.db") && refused.contains("restore it from a backup"), "{refused}");
    }
}
