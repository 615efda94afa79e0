//! The usage of projects.

use rusqlite::params;

use super::Store;
use crate::quota::Usage;

impl Store {
    /// Returns the usage of `project`.
    pub fn usage(&self, project: i64) -> rusqlite::Result<Usage> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT coalesce(sum(e.octets + e.text_octets), 0) + p.file_octets, coalesce(sum(e.runs), 0), p.core_seconds
             FROM projects p LEFT JOIN experiments e ON e.project = p.id WHERE p.id = ?1",
        )?;
        statement.query_row([project], |row| {
            let count = |column| row.get::<_, i64>(column).map(|count| count as u64);
            Ok(Usage { octets: count(0)?, runs: count(1)?, core_seconds: count(2)? })
        })
    }

    /// Returns the projects whose files have not been counted, because they were stored before files had a quota.
    pub fn uncounted_projects(&self) -> rusqlite::Result<Vec<i64>> {
        let connection = self.connection();
        let mut statement = connection.prepare("SELECT id FROM projects WHERE file_octets = 0")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// Records the octets of all files of `project`.
    pub fn record_files(&self, project: i64, octets: u64) -> rusqlite::Result<()> {
        let octets = i64::try_from(octets).unwrap_or(i64::MAX);
        self.transact(|transaction| {
            let record = "UPDATE projects SET file_octets = ?2 WHERE id = ?1";
            transaction.execute(record, [project, octets]).map(drop)
        })
    }

    /// Records the octets that experiment `id` occupies on the disk, and the core seconds that it has used since the last call.
    pub fn record_usage(&self, id: i64, octets: u64, core_seconds: u64) -> rusqlite::Result<()> {
        let [octets, core_seconds] =
            [octets, core_seconds].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        self.transact(|transaction| {
            transaction.execute("UPDATE experiments SET octets = ?2 WHERE id = ?1", [id, octets])?;
            transaction.execute(
                "UPDATE projects SET core_seconds = core_seconds + ?2
                 WHERE id = (SELECT project FROM experiments WHERE id = ?1)",
                params![id, core_seconds],
            )?;
            Ok(())
        })
    }
}
