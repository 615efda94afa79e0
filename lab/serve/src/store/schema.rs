//! The database schema and its migrations.

use rusqlite::Connection;

/// Each migration upgrades the database by one version; released migrations are never changed.
const MIGRATIONS: [&str; 5] = [
    "
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    mail TEXT NOT NULL,
    password TEXT NOT NULL,
    is_administrator INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE projects (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE,
    title TEXT NOT NULL,
    leader INTEGER NOT NULL REFERENCES users,
    is_approved INTEGER NOT NULL,
    created INTEGER NOT NULL
) STRICT;
CREATE TABLE members (
    project INTEGER NOT NULL REFERENCES projects ON DELETE CASCADE,
    user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    is_admitted INTEGER NOT NULL,
    PRIMARY KEY (project, user)
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('session', 'token')),
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE TABLE experiments (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    project INTEGER NOT NULL REFERENCES projects,
    owner INTEGER NOT NULL REFERENCES users,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    priority INTEGER NOT NULL,
    batch INTEGER NOT NULL,
    cores INTEGER NOT NULL,
    idle_swap INTEGER,
    auto_swap INTEGER,
    study TEXT,
    quick INTEGER NOT NULL,
    format TEXT NOT NULL,
    version INTEGER NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    runs INTEGER NOT NULL DEFAULT 0,
    runs_wanted INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    messages_wanted INTEGER NOT NULL DEFAULT 0,
    share REAL NOT NULL DEFAULT 0,
    left REAL,
    shared BLOB UNIQUE
) STRICT;
CREATE INDEX experiments_by_state ON experiments (state, id);
CREATE INDEX experiments_by_project ON experiments (project, state);
CREATE TABLE texts (
    experiment INTEGER NOT NULL REFERENCES experiments ON DELETE CASCADE,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    format TEXT NOT NULL,
    author INTEGER NOT NULL REFERENCES users,
    created INTEGER NOT NULL,
    PRIMARY KEY (experiment, version)
) STRICT, WITHOUT ROWID;
",
    "
ALTER TABLE projects ADD COLUMN core_seconds INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN octets INTEGER NOT NULL DEFAULT 0;
",
    "
ALTER TABLE users ADD COLUMN mark TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN mark TEXT NOT NULL DEFAULT '';
ALTER TABLE experiments ADD COLUMN mark TEXT NOT NULL DEFAULT '';
",
    "
CREATE TABLE shares (
    digest BLOB PRIMARY KEY,
    experiment INTEGER NOT NULL REFERENCES experiments ON DELETE CASCADE,
    created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX shares_by_experiment ON shares (experiment);
INSERT INTO shares SELECT shared, id, changed FROM experiments WHERE shared IS NOT NULL;
UPDATE experiments SET shared = NULL;
",
    "
ALTER TABLE projects ADD COLUMN file_octets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiments ADD COLUMN text_octets INTEGER NOT NULL DEFAULT 0;
UPDATE experiments SET text_octets = coalesce((SELECT sum(octet_length(text)) FROM texts WHERE experiment = id), 0);
",
];

/// Creates or upgrades the tables; `Err` with the version of the database if a later program wrote it.
pub fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), i64>> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let Some(missing) = usize::try_from(version).ok().and_then(|known| MIGRATIONS.get(known..)) else {
        return Ok(Err(version));
    };
    for (step, migration) in (version..).zip(missing) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", step + 1)?;
        transaction.commit()?;
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_of_earlier_formats_are_upgraded_with_their_data() {
        for format in 1..MIGRATIONS.len() {
            let mut connection = Connection::open_in_memory().unwrap();
            MIGRATIONS[..format].iter().for_each(|step| connection.execute_batch(step).unwrap());
            connection.pragma_update(None, "user_version", format as i64).unwrap();
            let rows = "INSERT INTO users (id, name, mail, password, is_administrator, created) VALUES (1, 'ann', '', '', 0, 0);
                INSERT INTO projects (id, name, title, leader, is_approved, created) VALUES (1, 'alpha', '', 1, 1, 0);
                INSERT INTO experiments (id, name, title, project, owner, state, why, priority, batch, cores, quick, format,
                    version, created, changed, runs) VALUES (7, 'a', '', 1, 1, 'done', '', 0, 1, 1, 0, 'toml', 1, 0, 0, 5);";
            let share = match format {
                ..4 => "UPDATE experiments SET shared = x'0a' WHERE id = 7",
                _ => "INSERT INTO shares VALUES (x'0a', 7, 0)",
            };
            connection.execute_batch(rows).unwrap();
            connection.execute_batch(share).unwrap();
            let text = "INSERT INTO texts VALUES (7, 1, 'é', 'toml', 1, 0), (7, 2, 'abc', 'toml', 1, 0)";
            connection.execute_batch(text).unwrap();
            assert_eq!(migrate(&mut connection).unwrap(), Ok(()), "from format {format}");
            let used = "SELECT e.runs, e.octets, p.core_seconds, e.mark, p.mark FROM experiments e JOIN projects p ON p.id = e.project";
            let used = connection.query_row(used, [], |row| {
                let counts = [row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?];
                Ok((counts, [row.get(3)?, row.get::<_, String>(4)?]))
            });
            // The directory keeps its name, which is the number without a mark.
            assert_eq!(used.unwrap(), ([5, 0, 0], [String::new(), String::new()]), "from format {format}");
            let texts = "SELECT text_octets FROM experiments";
            let octets: i64 = connection.query_row(texts, [], |row| row.get(0)).unwrap();
            assert_eq!(octets, 5, "from format {format}");
            let shared = "SELECT experiment FROM shares WHERE digest = x'0a'";
            assert_eq!(
                connection.query_row(shared, [], |row| row.get::<_, i64>(0)).unwrap(),
                7,
                "from format {format}"
            );
            assert_eq!(migrate(&mut connection).unwrap(), Ok(()));
        }
    }
}
