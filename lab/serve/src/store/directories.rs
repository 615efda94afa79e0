//! The names of directories in the state directory.
//!
//! The name of a directory consists of its owner's number and a random mark. A new database, or an older one that was
//! restored, may use the number again; the mark prevents the new owner from seeing the files of the earlier one.

use rusqlite::{OptionalExtension, Transaction};

use super::Store;

/// The kind of owner of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The directory belongs to an experiment.
    Experiment,
    /// The directory belongs to a user.
    User,
    /// The directory belongs to a project.
    Project,
}

impl Owner {
    /// Returns the name of the database table of these owners, which is also the name of their directories' parent
    /// directory.
    pub const fn table_name(self) -> &'static str {
        match self {
            Self::Experiment => "experiments",
            Self::User => "users",
            Self::Project => "projects",
        }
    }
}

impl Store {
    /// Returns the name of an owner's directory: its number and its mark, a random suffix. Only the number if the owner
    /// is from an earlier version, which had no marks.
    pub fn directory(&self, owner: Owner, id: i64) -> rusqlite::Result<Option<String>> {
        let connection = self.connection();
        let table = owner.table_name();
        let name =
            format!("SELECT id || CASE mark WHEN '' THEN '' ELSE '-' || mark END FROM {table} WHERE id = ?1");
        connection.prepare_cached(&name)?.query_row([id], |row| row.get(0)).optional()
    }
}

/// Stores a random mark for a new owner.
pub(super) fn set_mark(transaction: &Transaction<'_>, owner: Owner, id: i64) -> rusqlite::Result<()> {
    let table = owner.table_name();
    let mark = format!("UPDATE {table} SET mark = lower(hex(randomblob(8))) WHERE id = ?1");
    transaction.prepare_cached(&mark)?.execute([id]).map(drop)
}
