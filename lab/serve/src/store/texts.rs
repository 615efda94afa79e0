//! The texts of experiments, in all versions.

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Serialize;
use utoipa::ToSchema;

use super::Store;
use super::experiments::{StateChange, apply, read_entry};
use crate::experiment::{Format, State};
use crate::lifecycle::Event;

/// One version of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Text {
    /// Number of the version, from 1.
    pub version: u32,
    /// Language of the text.
    pub format: Format,
    /// The whole text.
    pub text: String,
    /// Name of the user who wrote this version.
    pub author: String,
    /// Time of submission, RFC 3339.
    pub created: String,
}

const SELECT_TEXT: &str = "
SELECT t.version, t.format, t.text, u.name, strftime('%Y-%m-%dT%H:%M:%SZ', t.created, 'unixepoch')
FROM texts t JOIN users u ON u.id = t.author WHERE t.experiment = ?1 ";

impl Store {
    /// Returns a version of the text of experiment `id`, by default the last one.
    pub fn text(&self, id: i64, version: Option<u32>) -> rusqlite::Result<Option<Text>> {
        let connection = self.connection();
        let sql = format!("{SELECT_TEXT} AND (?2 IS NULL OR t.version = ?2) ORDER BY t.version DESC LIMIT 1");
        connection.prepare_cached(&sql)?.query_row(params![id, version], text).optional()
    }

    /// Returns the newest versions of the text of experiment `id`, the newest first, until their total length reaches
    /// `max` octets.
    pub fn texts(&self, id: i64, max: usize) -> rusqlite::Result<Vec<Text>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(&format!("{SELECT_TEXT} ORDER BY t.version DESC"))?;
        let (mut found, mut octets) = (Vec::new(), 0);
        for text in statement.query_map([id], text)? {
            let text = text?;
            octets += text.text.len();
            found.push(text);
            if octets >= max {
                break;
            }
        }
        Ok(found)
    }

    /// Replaces the text of experiment `id`. Returns the change, or the state that does not allow a new text; `None` if
    /// the experiment does not exist.
    pub fn write_text(
        &self,
        id: i64,
        (text, format): (&str, Format),
        title: &str,
        author: i64,
        now: i64,
    ) -> rusqlite::Result<Option<Result<StateChange, State>>> {
        self.transact(|transaction| {
            let from = match apply(transaction, id, Event::Modify, "the text of the experiment was changed", now)? {
                Some(Ok(moved)) => moved.from,
                refused => return Ok(refused),
            };
            let version: u32 = transaction.query_row(
                "UPDATE experiments SET version = version + 1, format = ?2, title = ?3 WHERE id = ?1 RETURNING version",
                params![id, format.word(), title],
                |row| row.get(0),
            )?;
            insert(transaction, id, version, (text, format), author, now)?;
            Ok(Some(Ok(StateChange { from, entry: read_entry(transaction, id)? })))
        })
    }
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    id: i64,
    version: u32,
    (text, format): (&str, Format),
    author: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let values = params![id, version, text, format.word(), author, now];
    transaction.execute("INSERT INTO texts VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values)?;
    let count = "UPDATE experiments SET text_octets = text_octets + ?2 WHERE id = ?1";
    transaction.execute(count, params![id, text.len() as i64]).map(drop)
}

pub(super) fn format(row: &Row<'_>, column: usize) -> rusqlite::Result<Format> {
    Ok(if row.get_ref(column)?.as_str()? == Format::Ns.word() { Format::Ns } else { Format::Toml })
}

fn text(row: &Row<'_>) -> rusqlite::Result<Text> {
    Ok(Text {
        version: row.get(0)?,
        format: format(row, 1)?,
        text: row.get(2)?,
        author: row.get(3)?,
        created: row.get(4)?,
    })
}
