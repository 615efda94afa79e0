//! The server's persistent state: an SQLite database in its state directory.
//!
//! SQLite resolves conflicts of concurrent requests; each function here is one transaction.

mod directories;
mod experiments;
mod people;
mod schema;
mod texts;
mod usage;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

pub use directories::Owner;
pub use experiments::{Entry, Fresh, Moved};
pub use people::{Key, KeyKind, Member, Project, User};
pub use texts::Text;

/// How long another process, such as a backup, may lock the database.
const PATIENCE: Duration = Duration::from_secs(5);

/// The database.
#[derive(Debug)]
pub struct Store(Mutex<Connection>);

/// Why the database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite cannot use it.
    #[error("{0}: {1}; restore it from a copy, or choose another place with --state")]
    Database(std::path::PathBuf, rusqlite::Error),
    /// A newer program wrote it.
    #[error("{0}: a later version of this program wrote it (format {1}); use that version")]
    Later(std::path::PathBuf, i64),
}

impl Store {
    /// Opens the database at `path`, or creates it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Database(path.to_owned(), error);
        let mut connection = Connection::open(path).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        match schema::migrate(&mut connection).map_err(failed)? {
            Ok(()) => Ok(Self(Mutex::new(connection))),
            Err(version) => Err(StoreError::Later(path.to_owned(), version)),
        }
    }

    /// A panic in a transaction rolls it back, so the data are consistent.
    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Acknowledged data must be on the disk: WAL alone would lose the last transactions in a power failure.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
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
    fn a_database_of_a_later_program_is_left_alone() {
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
    fn what_is_no_database_is_said_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lab.db");
        std::fs::write(&path, "title = 'this is no database'\n".repeat(100)).unwrap();
        let refused = Store::open(&path).unwrap_err().to_string();
        assert!(refused.contains("lab.db") && refused.contains("restore it"), "{refused}");
    }
}
