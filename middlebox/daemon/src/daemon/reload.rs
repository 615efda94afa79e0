//! Reloads settings, policy, secrets and certificates, while sessions and rules continue.

use std::fmt;
use std::io;

use hol_base::Time;
use hol_system::Interest;

use super::Daemon;
use crate::event_source::Token;
use crate::log::Level;
use crate::{Settings, SetupError, Signals};

/// What a reload needs: the signals that trigger it, and the settings.
pub(super) struct Reload {
    signals: Signals,
    /// The settings with which the daemon was started.
    settings: Settings,
    read: Box<dyn Fn() -> Result<Settings, SetupError> + Send>,
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Daemon {
    /// Reads the settings again at each signal, and reloads the policy, the secrets, the certificates, and the format
    /// and level of the log. Other settings take effect only after a restart; the log names those that have changed
    /// since the start.
    pub fn reload_on(
        &mut self,
        signals: Signals,
        settings: &Settings,
        read: impl Fn() -> Result<Settings, SetupError> + Send + 'static,
    ) -> io::Result<()> {
        self.poller.add(&signals, Token::Reload, Interest::Read)?;
        self.reload = Some(Reload { signals, settings: settings.clone(), read: Box::new(read) });
        Ok(())
    }

    /// Reloads the files; if any of them is invalid, nothing changes.
    pub(super) fn reload(&mut self, now: Time) -> io::Result<()> {
        let Some(Reload { signals, settings: first, read }) = &mut self.reload else { return Ok(()) };
        signals.take()?;
        let ready = read().and_then(|settings| {
            settings.middlebox()?;
            let (tls, access) = (settings.tls()?, settings.read_policy_and_authentication()?);
            Ok((settings, tls, access))
        });
        let reloaded = ready.and_then(|(settings, tls, (policy, authentication))| {
            let path = settings.policy.clone().or(settings.secrets.clone()).unwrap_or_default();
            let ruled = self.middlebox.replace_policy(policy, authentication);
            ruled.map_err(|source| SetupError::Policy { path, source })?;
            self.listeners.iter_mut().for_each(|listeners| listeners.set_tls(tls.clone()));
            self.log.reconfigure(settings.log, settings.format);
            Ok(first.settings_needing_restart(&settings).join(", "))
        });
        match reloaded {
            Ok(changed) => {
                self.log.write(now, Level::Info, "reloaded", &[]);
                if !changed.is_empty() {
                    self.log.write(now, Level::Warn, "needs-restart", &[("settings", &changed)]);
                }
            }
            Err(error) => self.log.write(now, Level::Error, "not-reloaded", &[("reason", &error)]),
        }
        Ok(())
    }
}
