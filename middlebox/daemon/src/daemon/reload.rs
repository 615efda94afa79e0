//! Reloads policy, secrets and certificates, while sessions and rules continue.

use std::io;

use hol_base::Time;
use hol_system::Interest;

use super::Daemon;
use crate::log::Level;
use crate::token::Token;
use crate::{Settings, SetupError, Signals};

/// When to reload which files.
#[derive(Debug)]
pub(super) struct Reload {
    signals: Signals,
    settings: Settings,
}

impl Daemon {
    /// Reloads the policy, the secrets and the certificates of these settings at each signal.
    pub fn reload_on(&mut self, signals: Signals, settings: &Settings) -> io::Result<()> {
        self.poller.add(&signals, Token::Reload, Interest::Read)?;
        self.reload = Some(Reload { signals, settings: settings.clone() });
        Ok(())
    }

    /// Reloads the files; if one is invalid, nothing changes.
    pub(super) fn reload(&mut self, now: Time) -> io::Result<()> {
        let Some(Reload { signals, settings }) = &mut self.reload else { return Ok(()) };
        signals.take()?;
        let access = settings.tls().and_then(|tls| Ok((tls, settings.access()?)));
        let read = access.and_then(|(tls, (policy, authentication))| {
            let path = settings.policy.clone().or(settings.secrets.clone()).unwrap_or_default();
            let ruled = self.middlebox.rule_by(policy, authentication);
            ruled.map_err(|source| SetupError::Policy { path, source })?;
            self.listeners.iter_mut().for_each(|listeners| listeners.speak(tls.clone()));
            Ok(())
        });
        match read {
            Ok(()) => self.log.write(now, Level::Info, "reloaded", &[]),
            Err(error) => self.log.write(now, Level::Error, "not-reloaded", &[("reason", &error)]),
        }
        Ok(())
    }
}
