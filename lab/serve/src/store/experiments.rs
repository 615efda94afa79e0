//! Stored experiments and their states.

use rusqlite::{OptionalExtension, Row, Transaction, params};

use super::Store;
use super::directories::{Owner, set_mark};
use crate::experiment::{Experiment, Filter, Format, Links, Progress, State};
use crate::lifecycle::{Event, next_state};
use crate::queue::QueuedExperiment;

/// A stored experiment with its owner, project and last change.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredExperiment {
    /// The experiment, as the API returns it.
    pub experiment: Experiment,
    /// Number of the project.
    pub project: i64,
    /// Number of the owner.
    pub owner: i64,
    /// Number of the leader of the project.
    pub leader: i64,
    /// Time of the last state change, in seconds since 1970.
    pub changed_at: i64,
}

/// What is stored about a new experiment.
#[derive(Debug, Clone)]
pub struct NewExperiment {
    /// Short name, which is also used in file names.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// Number of the project.
    pub project: i64,
    /// Number of the owner.
    pub owner: i64,
    /// Initial state: new or queued.
    pub state: State,
    /// Priority; experiments with a higher priority start first.
    pub priority: i64,
    /// Whether the experiment waits for free cores.
    pub batch: bool,
    /// Number of cores that the experiment needs.
    pub cores: u32,
    /// Seconds without progress after which the experiment is swapped out.
    pub idle_swap: Option<u32>,
    /// Seconds after which the experiment is swapped out in any case.
    pub auto_swap: Option<u32>,
    /// Name of the study, if the experiment is one.
    pub study: Option<String>,
    /// Whether the experiment sends a twentieth of the study's messages.
    pub quick: bool,
    /// Text of the experiment; empty for a study.
    pub text: String,
    /// The language of `text`.
    pub format: Format,
    /// Submission time, seconds since 1970.
    pub now: i64,
}

/// A change of an experiment's state.
#[derive(Debug, Clone)]
pub struct StateChange {
    /// The previous state.
    pub from: State,
    /// The experiment after the change.
    pub entry: StoredExperiment,
}

const SELECT_EXPERIMENTS: &str = "
SELECT e.id, e.name, e.title, p.name, u.name, e.state, e.why, e.priority, e.batch, e.cores, e.idle_swap, e.auto_swap,
    e.study, e.quick, e.version, strftime('%Y-%m-%dT%H:%M:%SZ', e.created, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%SZ', e.changed, 'unixepoch'), e.format, e.runs, e.runs_wanted, e.failed, e.messages,
    e.messages_wanted, e.share, e.left, e.project, e.owner, p.leader, e.changed
FROM experiments e JOIN projects p ON p.id = e.project JOIN users u ON u.id = e.owner ";

/// SQL condition for the experiments visible to user ?1. The `+` prevents SQLite from searching by project and then
/// sorting: reading from the newest experiment on is faster.
const IS_VISIBLE: &str = "+e.project IN (SELECT m.project FROM members m JOIN projects q ON q.id = m.project
    WHERE m.user = ?1 AND m.is_admitted AND q.is_approved)";

impl Store {
    /// Adds an experiment with the first version of its text, and returns its number.
    pub fn add_experiment(&self, fresh: &NewExperiment) -> rusqlite::Result<i64> {
        self.transact(|transaction| {
            transaction.execute(
                "INSERT INTO experiments (name, title, project, owner, state, why, priority, batch, cores, idle_swap,
                    auto_swap, study, quick, format, version, created, changed)
                 VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, 1, ?14, ?14)",
                params![
                    fresh.name,
                    fresh.title,
                    fresh.project,
                    fresh.owner,
                    fresh.state.word(),
                    fresh.priority,
                    fresh.batch,
                    fresh.cores,
                    fresh.idle_swap,
                    fresh.auto_swap,
                    fresh.study,
                    fresh.quick,
                    fresh.format.word(),
                    fresh.now
                ],
            )?;
            let id = transaction.last_insert_rowid();
            set_mark(transaction, Owner::Experiment, id)?;
            super::texts::insert(transaction, id, 1, (&fresh.text, fresh.format), fresh.owner, fresh.now)?;
            Ok(id)
        })
    }

    /// Returns experiment `id`, for any user.
    pub fn entry(&self, id: i64) -> rusqlite::Result<Option<StoredExperiment>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(&format!("{SELECT_EXPERIMENTS} WHERE e.id = ?1"))?;
        statement.query_row([id], entry).optional()
    }

    /// Returns experiment `id` if `user` may see it.
    pub fn visible_experiment(&self, user: i64, id: i64) -> rusqlite::Result<Option<StoredExperiment>> {
        let connection = self.connection();
        let mut statement =
            connection.prepare_cached(&format!("{SELECT_EXPERIMENTS} WHERE e.id = ?2 AND {IS_VISIBLE}"))?;
        statement.query_row([user, id], entry).optional()
    }

    /// Returns the experiments that `user` may see, the newest first.
    pub fn list_experiments(&self, user: i64, filter: &Filter) -> rusqlite::Result<Vec<Experiment>> {
        let connection = self.connection();
        let state = if filter.state.is_some() { "e.state = ?2" } else { "?2 IS NULL" };
        let text = format!(
            "{SELECT_EXPERIMENTS} WHERE {state} AND e.id < ?3 AND {IS_VISIBLE} AND (?5 IS NULL OR p.name = ?5) AND (?6 IS NULL OR u.name = ?6)
             AND (?7 IS NULL OR instr(lower(e.title || ' ' || e.name), lower(?7)) > 0) ORDER BY e.id DESC LIMIT ?4"
        );
        let mut statement = connection.prepare_cached(&text)?;
        let (state, before) = (filter.state.map(State::word), filter.before.unwrap_or(i64::MAX));
        let Filter { project, owner, search, limit, .. } = filter;
        let values = params![user, state, before, *limit as i64, project, owner, search];
        let rows = statement.query_map(values, |row| entry(row).map(|entry| entry.experiment))?;
        rows.collect()
    }

    /// Returns how many experiments that `user` may see are in each state.
    pub fn counts(&self, user: i64) -> rusqlite::Result<Vec<(State, u64)>> {
        let connection = self.connection();
        let visible = IS_VISIBLE.trim_start_matches('+');
        let text = format!("SELECT e.state, count(*) FROM experiments e WHERE {visible} GROUP BY e.state");
        let mut statement = connection.prepare_cached(&text)?;
        let rows = statement.query_map([user], |row| Ok((state(row, 0)?, row.get::<_, i64>(1)? as u64)))?;
        rows.collect()
    }

    /// Applies `event` to experiment `id`. Returns the change, or the state that does not allow the event; `None` if
    /// the experiment does not exist.
    pub fn apply(
        &self,
        id: i64,
        event: Event,
        why: &str,
        now: i64,
    ) -> rusqlite::Result<Option<Result<StateChange, State>>> {
        self.transact_on_full_disk(|transaction| apply(transaction, id, event, why, now))
    }

    /// Returns all queued experiments.
    pub fn queued_experiments(&self) -> rusqlite::Result<Vec<QueuedExperiment>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT id, priority, created, batch, cores FROM experiments WHERE state = 'queued'",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(QueuedExperiment {
                id: row.get(0)?,
                priority: row.get(1)?,
                submitted_at: row.get(2)?,
                batch: row.get(3)?,
                cores: row.get(4)?,
                obstacle: None,
            })
        })?;
        rows.collect()
    }

    /// Returns the numbers of all experiments that should have a process.
    pub fn holding_cores(&self) -> rusqlite::Result<Vec<i64>> {
        let connection = self.connection();
        let mut statement = connection
            .prepare_cached("SELECT id FROM experiments WHERE state IN ('starting', 'active') ORDER BY id")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// Records why experiments wait.
    pub fn record_wait_reasons(&self, whys: &[(i64, String)]) -> rusqlite::Result<()> {
        self.transact(|transaction| {
            let mut statement = transaction
                .prepare_cached("UPDATE experiments SET why = ?2 WHERE id = ?1 AND state = 'queued'")?;
            whys.iter().try_for_each(|(id, why)| statement.execute(params![id, why]).map(drop))
        })
    }

    /// Records the progress of an experiment.
    pub fn record_progress(&self, id: i64, progress: &Progress) -> rusqlite::Result<()> {
        let Progress { runs, runs_wanted, failed, messages, messages_wanted, share, remaining_seconds } =
            *progress;
        let counts = [runs, runs_wanted, failed, messages, messages_wanted];
        let [runs, runs_wanted, failed, messages, messages_wanted] =
            counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        self.connection()
            .prepare_cached(
                "UPDATE experiments SET runs = ?2, runs_wanted = ?3, failed = ?4, messages = ?5, messages_wanted = ?6,
                 share = ?7, left = ?8 WHERE id = ?1",
            )?
            .execute(params![id, runs, runs_wanted, failed, messages, messages_wanted, share, remaining_seconds])?;
        Ok(())
    }

    /// Stores the fields of an experiment that a user may change in any state.
    pub fn update_experiment(&self, id: i64, to: &Experiment) -> rusqlite::Result<()> {
        self.connection().execute(
            "UPDATE experiments SET name = ?2, title = ?3, priority = ?4, batch = ?5, idle_swap = ?6, auto_swap = ?7,
             cores = ?8 WHERE id = ?1",
            params![id, to.name, to.title, to.priority, to.batch, to.idle_swap, to.auto_swap, to.cores],
        )?;
        Ok(())
    }

    /// Deletes an experiment that uses no cores; returns whether there was such an experiment.
    pub fn remove_experiment(&self, id: i64) -> rusqlite::Result<bool> {
        let remove = "DELETE FROM experiments WHERE id = ?1 AND state NOT IN ('starting', 'active')";
        self.transact_on_full_disk(|transaction| Ok(transaction.execute(remove, [id])? > 0))
    }

    /// Returns the number of `user`'s experiments that have not ended.
    pub fn count_unfinished(&self, user: i64) -> rusqlite::Result<u64> {
        let count: i64 = self.connection().query_row(
            "SELECT count(*) FROM experiments WHERE owner = ?1
             AND state IN ('new', 'queued', 'starting', 'active', 'swapped_out')",
            [user],
            |row| row.get(0),
        )?;
        Ok(count as u64)
    }

    /// Gives the key with this `digest` read access to experiment `id`.
    pub fn share(&self, id: i64, digest: &[u8], now: i64) -> rusqlite::Result<()> {
        let share = "INSERT INTO shares (digest, experiment, created) VALUES (?1, ?2, ?3)";
        self.connection().execute(share, params![digest, id, now]).map(drop)
    }

    /// Returns how many keys give read access to an experiment.
    pub fn count_shares(&self, id: i64) -> rusqlite::Result<u64> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached("SELECT count(*) FROM shares WHERE experiment = ?1")?;
        statement.query_row([id], |row| row.get::<_, i64>(0)).map(|count| count as u64)
    }

    /// Ends the access of all keys to an experiment.
    pub fn unshare(&self, id: i64) -> rusqlite::Result<()> {
        let remove = "DELETE FROM shares WHERE experiment = ?1";
        self.transact_on_full_disk(|transaction| transaction.execute(remove, [id]).map(drop))
    }

    /// Returns the experiment to which the key with this `digest` gives access.
    pub fn experiment_of_key(&self, digest: &[u8]) -> rusqlite::Result<Option<StoredExperiment>> {
        let connection = self.connection();
        let shared = format!("{SELECT_EXPERIMENTS} JOIN shares s ON s.experiment = e.id WHERE s.digest = ?1");
        connection.prepare_cached(&shared)?.query_row([digest], entry).optional()
    }
}

/// Applies an event like [`Store::apply`], within a transaction.
pub(super) fn apply(
    transaction: &Transaction<'_>,
    id: i64,
    event: Event,
    why: &str,
    now: i64,
) -> rusqlite::Result<Option<Result<StateChange, State>>> {
    let state = |row: &Row<'_>| state(row, 0);
    let from =
        transaction.query_row("SELECT state FROM experiments WHERE id = ?1", [id], state).optional()?;
    let Some(from) = from else { return Ok(None) };
    let Some(to) = next_state(from, event) else { return Ok(Some(Err(from))) };
    transaction.execute(
        "UPDATE experiments SET state = ?2, why = ?3, changed = ?4 WHERE id = ?1",
        params![id, to.word(), why, now],
    )?;
    Ok(Some(Ok(StateChange { from, entry: read_entry(transaction, id)? })))
}

/// Returns experiment `id`, which must exist.
pub(super) fn read_entry(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<StoredExperiment> {
    transaction.query_row(&format!("{SELECT_EXPERIMENTS} WHERE e.id = ?1"), [id], entry)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<StoredExperiment> {
    let id = row.get(0)?;
    let count = |column| row.get::<_, i64>(column).map(|count| count as u64);
    let experiment = Experiment {
        id,
        name: row.get(1)?,
        title: row.get(2)?,
        project: row.get(3)?,
        owner: row.get(4)?,
        state: state(row, 5)?,
        why: row.get(6)?,
        priority: row.get(7)?,
        batch: row.get(8)?,
        cores: row.get(9)?,
        idle_swap: row.get(10)?,
        auto_swap: row.get(11)?,
        study: row.get(12)?,
        quick: row.get(13)?,
        version: row.get(14)?,
        created: row.get(15)?,
        changed: row.get(16)?,
        format: super::texts::format(row, 17)?,
        progress: Progress {
            runs: count(18)?,
            runs_wanted: count(19)?,
            failed: count(20)?,
            messages: count(21)?,
            messages_wanted: count(22)?,
            share: row.get(23)?,
            remaining_seconds: row.get(24)?,
        },
        links: Links::of(id),
    };
    let (project, owner, leader, changed_at) = (row.get(25)?, row.get(26)?, row.get(27)?, row.get(28)?);
    Ok(StoredExperiment { experiment, project, owner, leader, changed_at })
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    let word: String = row.get(column)?;
    State::from_word(&word).ok_or(rusqlite::Error::InvalidColumnType(
        column,
        word,
        rusqlite::types::Type::Text,
    ))
}
