//! Stored users, projects, members and keys.

use std::collections::BTreeSet;

use rusqlite::{ErrorCode, OptionalExtension, params};
use serde::Serialize;
use utoipa::ToSchema;

use super::Store;
use super::directories::{Owner, set_mark};
use crate::requester::Requester;

/// A user without the password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct User {
    /// Name of the user.
    pub name: String,
    /// Mail address; may be empty.
    pub mail: String,
    /// Whether the user is an administrator, who approves projects.
    pub is_administrator: bool,
}

/// The data to check a password.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// Number of the user.
    pub id: i64,
    /// Hash of the password, with its salt and parameters.
    pub password: String,
}

/// A project, as the current user sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Project {
    /// Short name.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// Name of the leader, who admits members.
    pub leader: String,
    /// Whether an administrator has approved the project.
    pub is_approved: bool,
    /// Whether the current user is a member.
    pub is_member: bool,
}

/// A member or applicant of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Member {
    /// Name of the user.
    pub name: String,
    /// Whether the leader has admitted this user.
    pub is_admitted: bool,
}

/// What a key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A session of a browser, in a cookie.
    Session,
    /// A token of a program, in a header.
    Token,
}

impl KeyKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Token => "token",
        }
    }
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Key {
    /// Number of the token, for its revocation.
    pub id: i64,
    /// Purpose of the token.
    pub name: String,
    /// Time of creation, RFC 3339.
    pub created: String,
    /// Time of expiry, RFC 3339.
    pub expires: String,
}

/// SQL query for the numbers of the project called ?1 and of its leader, if the project is approved and user ?2 is an
/// admitted member.
const PROJECT_OF_MEMBER: &str = "SELECT p.id, p.leader FROM projects p JOIN members m ON m.project = p.id
    WHERE p.name = ?1 AND m.user = ?2 AND m.is_admitted AND p.is_approved";

impl Store {
    /// Adds a user; `None` if the name is taken.
    pub fn add_user(&self, user: &User, password: &str, now: i64) -> rusqlite::Result<Option<i64>> {
        unless_taken(self.transact(|transaction| {
            transaction.execute(
                "INSERT INTO users (name, mail, password, is_administrator, created) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![user.name, user.mail, password, user.is_administrator, now],
            )?;
            let id = transaction.last_insert_rowid();
            set_mark(transaction, Owner::User, id)?;
            Ok(id)
        }))
    }

    /// Returns whether there is a user who can log in.
    pub fn has_users(&self) -> rusqlite::Result<bool> {
        self.connection()
            .query_row("SELECT EXISTS (SELECT 1 FROM users WHERE password <> '')", [], |row| row.get(0))
    }

    /// Returns the credentials of the user called `name`.
    pub fn credentials(&self, name: &str) -> rusqlite::Result<Option<Credentials>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached("SELECT id, password FROM users WHERE name = ?1")?;
        let found = |row: &rusqlite::Row<'_>| Ok(Credentials { id: row.get(0)?, password: row.get(1)? });
        statement.query_row([name], found).optional()
    }

    /// Changes a password. Ends all sessions of `user` except the session whose key has the digest `kept`.
    pub fn set_password(&self, user: i64, password: &str, kept: Option<&[u8]>) -> rusqlite::Result<()> {
        self.transact(|transaction| {
            transaction.execute("UPDATE users SET password = ?2 WHERE id = ?1", params![user, password])?;
            let end = "DELETE FROM keys WHERE user = ?1 AND kind = 'session' AND digest IS NOT ?2";
            transaction.execute(end, params![user, kept]).map(drop)
        })
    }

    /// Returns the mail address of a user; `None` if there is no such user.
    pub fn mail_of(&self, user: i64) -> rusqlite::Result<Option<String>> {
        let found =
            self.connection().query_row("SELECT mail FROM users WHERE id = ?1", [user], |row| row.get(0));
        found.optional()
    }

    /// Adds a key, which authenticates `user` until it expires. Removes expired keys.
    pub fn add_key(
        &self,
        digest: &[u8],
        user: i64,
        (kind, name): (KeyKind, &str),
        now: i64,
        expires: i64,
    ) -> rusqlite::Result<()> {
        self.transact(|transaction| {
            transaction.execute("DELETE FROM keys WHERE expires <= ?1", [now])?;
            transaction.execute(
                "INSERT INTO keys (digest, user, kind, name, created, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![digest, user, kind.word(), name, now, expires],
            )?;
            Ok(())
        })
    }

    /// Returns the user of the key with this `kind` and `digest`; `None` if there is no such key or it has
    /// expired.
    pub fn user_of_key(&self, digest: &[u8], kind: KeyKind, now: i64) -> rusqlite::Result<Option<Requester>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT u.id, u.name, u.is_administrator, CASE k.kind WHEN 'token' THEN k.expires END FROM keys k JOIN users u ON u.id = k.user
             WHERE k.digest = ?1 AND k.kind = ?2 AND k.expires > ?3",
        )?;
        let found = |row: &rusqlite::Row<'_>| {
            let (id, name, is_administrator) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Requester { id, name, is_administrator, token_expires_at: row.get(3)? })
        };
        statement.query_row(params![digest, kind.word(), now], found).optional()
    }

    /// Removes the key with this `digest`.
    pub fn remove_key(&self, digest: &[u8]) -> rusqlite::Result<()> {
        let remove = "DELETE FROM keys WHERE digest = ?1";
        self.transact_on_full_disk(|transaction| transaction.execute(remove, [digest]).map(drop))
    }

    /// Revokes token `id` of `user`; returns whether it existed.
    pub fn revoke_token(&self, user: i64, id: i64) -> rusqlite::Result<bool> {
        let removed = "DELETE FROM keys WHERE id = ?1 AND user = ?2 AND kind = 'token'";
        self.transact_on_full_disk(|transaction| Ok(transaction.execute(removed, [id, user])? > 0))
    }

    /// Returns the tokens of `user`.
    pub fn tokens(&self, user: i64) -> rusqlite::Result<Vec<Key>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT id, name, strftime('%Y-%m-%dT%H:%M:%SZ', created, 'unixepoch'),
                strftime('%Y-%m-%dT%H:%M:%SZ', expires, 'unixepoch')
             FROM keys WHERE user = ?1 AND kind = 'token' ORDER BY id",
        )?;
        let rows = statement.query_map([user], |row| {
            Ok(Key { id: row.get(0)?, name: row.get(1)?, created: row.get(2)?, expires: row.get(3)? })
        })?;
        rows.collect()
    }

    /// Adds a project with its leader as its first member; `None` if the name is taken.
    pub fn add_project(
        &self,
        (name, title): (&str, &str),
        leader: i64,
        is_approved: bool,
        now: i64,
    ) -> rusqlite::Result<Option<i64>> {
        unless_taken(self.transact(|transaction| {
            transaction.execute(
                "INSERT INTO projects (name, title, leader, is_approved, created) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![name, title, leader, is_approved, now],
            )?;
            let id = transaction.last_insert_rowid();
            set_mark(transaction, Owner::Project, id)?;
            transaction.execute("INSERT INTO members VALUES (?1, ?2, TRUE)", [id, leader])?;
            Ok(id)
        }))
    }

    /// Approves a project; returns whether it exists.
    pub fn approve_project(&self, name: &str) -> rusqlite::Result<bool> {
        Ok(self.connection().execute("UPDATE projects SET is_approved = TRUE WHERE name = ?1", [name])? > 0)
    }

    /// Returns the numbers of the project called `name` and of its leader, if `user` is a member.
    pub fn project(&self, name: &str, user: i64) -> rusqlite::Result<Option<(i64, i64)>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(PROJECT_OF_MEMBER)?;
        statement.query_row(params![name, user], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }

    /// Returns the projects that have `user` as a member, including unapproved ones; with `all`, all
    /// projects.
    pub fn projects(&self, user: i64, all: bool) -> rusqlite::Result<Vec<Project>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT p.name, p.title, u.name, p.is_approved, coalesce(m.is_admitted, FALSE)
             FROM projects p JOIN users u ON u.id = p.leader
             LEFT JOIN members m ON m.project = p.id AND m.user = ?1
             WHERE ?2 OR m.is_admitted ORDER BY p.name",
        )?;
        let rows = statement.query_map(params![user, all], |row| {
            Ok(Project {
                name: row.get(0)?,
                title: row.get(1)?,
                leader: row.get(2)?,
                is_approved: row.get(3)?,
                is_member: row.get(4)?,
            })
        })?;
        rows.collect()
    }

    /// Returns the projects whose experiments `user` may see.
    pub fn projects_of(&self, user: i64) -> rusqlite::Result<BTreeSet<i64>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT p.id FROM projects p JOIN members m ON m.project = p.id
             WHERE m.user = ?1 AND m.is_admitted AND p.is_approved",
        )?;
        statement.query_map([user], |row| row.get(0))?.collect()
    }

    /// Records that `user` requests to join a project. If the project does not exist, does nothing and returns no
    /// error, because the response must not reveal this.
    pub fn request_to_join(&self, project: &str, user: i64) -> rusqlite::Result<()> {
        let ask = "INSERT OR IGNORE INTO members SELECT id, ?2, FALSE FROM projects WHERE name = ?1";
        self.connection().execute(ask, params![project, user]).map(drop)
    }

    /// Returns the members and applicants of `project`.
    pub fn members(&self, project: i64) -> rusqlite::Result<Vec<Member>> {
        let connection = self.connection();
        let mut statement = connection.prepare_cached(
            "SELECT u.name, m.is_admitted FROM members m JOIN users u ON u.id = m.user
             WHERE m.project = ?1 ORDER BY u.name",
        )?;
        let rows = statement
            .query_map([project], |row| Ok(Member { name: row.get(0)?, is_admitted: row.get(1)? }))?;
        rows.collect()
    }

    /// Admits an applicant; returns whether the applicant existed.
    pub fn admit_member(&self, project: i64, name: &str) -> rusqlite::Result<bool> {
        let admit = "UPDATE members SET is_admitted = TRUE
            WHERE project = ?1 AND user = (SELECT id FROM users WHERE name = ?2)";
        Ok(self.connection().execute(admit, params![project, name])? > 0)
    }

    /// Removes a member or an applicant, but not the leader; returns whether there was one.
    pub fn remove_member(&self, project: i64, name: &str) -> rusqlite::Result<bool> {
        let dismiss =
            "DELETE FROM members WHERE project = ?1 AND user = (SELECT id FROM users WHERE name = ?2)
            AND user <> (SELECT leader FROM projects WHERE id = ?1)";
        self.transact_on_full_disk(
            |transaction| Ok(transaction.execute(dismiss, params![project, name])? > 0),
        )
    }
}

fn unless_taken(added: rusqlite::Result<i64>) -> rusqlite::Result<Option<i64>> {
    match added {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(None),
        Err(error) => Err(error),
    }
}
