//! Operations on accounts: register, log in, change the password, create tokens.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::accounts::attempts::{Attempts, name_at_network};
use crate::accounts::{key, password};
use crate::client::ClientNetwork;
use crate::clock::now;
use crate::concurrency::DelayPermit;
use crate::events::EventKind;
use crate::refusal::Refusal;
use crate::requester::Requester;
use crate::server::{LOCAL_USER, Server};
use crate::store::{KeyKind, User};
use crate::submission::check_name;

/// Lifetime of a session in seconds.
pub const SESSION_SECONDS: i64 = 7 * 86_400;
/// Maximum number of tokens of a user.
const MAX_TOKENS: usize = 50;

/// The credentials of a user who logs in.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Name of the user.
    pub name: String,
    /// Password of the user.
    pub password: String,
}

/// A new account.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// Name of the user: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Mail address; may be empty.
    pub mail: String,
    /// Password: at least 8 characters.
    pub password: String,
    /// Project to join; its leader decides whether to admit the user.
    pub project: Option<String>,
}

/// A change of a password.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// Current password.
    pub old: String,
    /// New password: at least 8 characters.
    pub password: String,
}

impl Server {
    /// Changes the password of a user. Ends all sessions except the session whose key has the digest `kept`.
    /// Tokens remain valid.
    pub fn change_password(
        &self,
        ClientNetwork(network): &ClientNetwork,
        requester: &Requester,
        new: &NewPassword,
        kept: Option<&[u8]>,
    ) -> Result<(), Refusal> {
        if requester.token_expires_at.is_some() {
            return Err(Refusal::new(
                axum::http::StatusCode::FORBIDDEN,
                "a token cannot change the password",
                "log in to change it",
            ));
        }
        let found = self.store.credentials(&requester.name)?;
        if !password::verify(&new.old, found.as_ref().map(|found| found.password.as_str())) {
            return Err(Refusal::bad_request(
                "the current password is wrong",
                "enter the password with which you log in",
            ));
        }
        self.attempts().reset_login_count(network, &requester.name);
        self.store.set_password(requester.id, &password::hash(&new.password)?, kept)?;
        self.end_streams();
        Ok(())
    }

    /// Counts an attempt to log in, before the password is checked, so that concurrent attempts are counted, too. After
    /// many wrong passwords, returns the time for which the attempt has to wait, and the permission to wait.
    pub(crate) fn delay_login(
        &self,
        ClientNetwork(network): &ClientNetwork,
        name: &str,
    ) -> Result<Option<(Duration, DelayPermit)>, Refusal> {
        let seconds = self.attempts().count_login(network, name, now());
        if seconds == 0 {
            return Ok(None);
        }
        let permit = self.limits.admit_delay(&name_at_network(network, name), seconds)?;
        Ok(Some((Duration::from_secs(seconds.into()), permit)))
    }

    /// Starts a session, and returns its key.
    pub fn log_in(&self, ClientNetwork(network): &ClientNetwork, login: &Login) -> Result<String, Refusal> {
        let found = self.store.credentials(&login.name)?;
        if !password::verify(&login.password, found.as_ref().map(|found| found.password.as_str())) {
            return Err(Refusal::unauthorized("the name or the password is wrong"));
        }
        self.attempts().reset_login_count(network, &login.name);
        let found = found.ok_or_else(Refusal::not_found)?;
        let key = key::generate()?;
        self.store.add_key(
            &key::digest(&key),
            found.id,
            (KeyKind::Session, ""),
            now(),
            now() + SESSION_SECONDS,
        )?;
        Ok(key)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an account, if the rate limit of `network` allows it.
    pub fn sign_up(&self, ClientNetwork(network): &ClientNetwork, new: &Registration) -> Result<(), Refusal> {
        self.attempts().count_registration(network, now())?;
        self.register(new, false)
    }

    /// Creates an account.
    pub fn register(&self, new: &Registration, is_administrator: bool) -> Result<(), Refusal> {
        check_name(&new.name)?;
        check_mail(&new.mail)?;
        let taken = || Refusal::conflict("the name is taken", "choose another");
        // Hashes first, so that the response takes the same time if the name is taken.
        let hash = password::hash(&new.password)?;
        if new.name.eq_ignore_ascii_case(LOCAL_USER) {
            return Err(taken());
        }
        let user = User { name: new.name.clone(), mail: new.mail.clone(), is_administrator };
        let id = self.store.add_user(&user, &hash, now())?.ok_or_else(taken)?;
        if let Some(project) = &new.project {
            self.store.request_to_join(project, id)?;
        }
        Ok(())
    }

    /// Creates a token for a program.
    pub fn create_token(&self, requester: &Requester, name: &str, days: u32) -> Result<String, Refusal> {
        if self.store.tokens(requester.id)?.len() >= MAX_TOKENS {
            return Err(Refusal::conflict(
                format!("you have {MAX_TOKENS} tokens, which is the maximum"),
                "revoke one first",
            ));
        }
        let expires = now() + i64::from(days) * 86_400;
        // Otherwise a stolen token could be extended forever.
        if let Some(end) = requester.token_expires_at.filter(|end| *end < expires) {
            let max = (end - now()) / 86_400;
            let problem = "a token cannot create a token that expires later than itself";
            return Err(Refusal::bad_request(problem, format!("choose at most {max} days, or log in")));
        }
        let key = key::generate()?;
        self.store.add_key(&key::digest(&key), requester.id, (KeyKind::Token, name), now(), expires)?;
        Ok(key)
    }

    /// Returns the number of the project called `name`, if `requester` leads it.
    pub(crate) fn project_led_by(&self, requester: &Requester, name: &str) -> Result<i64, Refusal> {
        let (project, leader) = self.store.project(name, requester.id)?.ok_or_else(Refusal::not_found)?;
        if leader != requester.id {
            return Err(Refusal::forbidden(format!("{} is not the leader of {name}", requester.name)));
        }
        Ok(project)
    }

    /// Ends all streams; clients that still have access reconnect and are authorised again.
    pub(crate) fn end_streams(&self) {
        self.hub.publish(0, 0, EventKind::Closed, &());
    }
}

/// Checks the syntax of a mail address; only a mail server knows whether it exists.
fn check_mail(mail: &str) -> Result<(), Refusal> {
    let address: Result<lettre::Address, _> = mail.parse();
    let cure = "write NAME@HOST, or leave it empty to get no mail";
    if mail.is_empty() || (mail.len() <= 254 && address.is_ok()) {
        Ok(())
    } else {
        Err(Refusal::bad_request("this is not a valid mail address", cure))
    }
}
