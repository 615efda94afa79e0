//! Notifies systemd that the daemon is ready, stops, or is alive. sd_notify(3).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use hol_base::{Duration, Time};

/// The connection to the service manager (systemd), if it has started this process.
#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    /// Time without a sign of life after which the service manager considers the daemon dead; `None` without a
    /// watchdog.
    watchdog: Option<Duration>,
    /// When to send the next sign of life to the service manager.
    alive_at: Time,
}

impl ServiceManager {
    /// Returns the service manager that started this process, according to the environment.
    pub fn from_environment() -> io::Result<Self> {
        let is_ours = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
        let micros = env::var("WATCHDOG_USEC").ok().and_then(|micros| micros.parse().ok());
        let watchdog = micros.filter(|_| is_ours).map(Duration::from_micros);
        Self::connect(env::var_os("NOTIFY_SOCKET").as_deref(), watchdog)
    }

    /// Returns the service manager that listens at this socket; a name that starts with @ is in the abstract namespace.
    fn connect(socket: Option<&OsStr>, watchdog: Option<Duration>) -> io::Result<Self> {
        let connect = |name: &OsStr| {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
                _ => SocketAddr::from_pathname(name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.set_nonblocking(true)?;
            socket.connect_addr(&address)?;
            Ok(socket)
        };
        let socket: Option<io::Result<_>> = socket.map(connect);
        Ok(Self { socket: socket.transpose()?, watchdog, alive_at: Time::ZERO })
    }

    /// Reports to the service manager that agents can connect.
    pub fn report_ready(&self) {
        self.notify("READY=1");
    }

    /// Reports to the service manager that the daemon stops as requested.
    pub fn report_stopping(&self) {
        self.notify("STOPPING=1");
    }

    /// Reports to the service manager that the event loop runs. A turn must take less than half of the watchdog's time.
    pub fn report_alive(&mut self, now: Time) {
        if let Some(watchdog) = self.watchdog
            && self.alive_at <= now
        {
            self.notify("WATCHDOG=1");
            self.alive_at = now + watchdog / 2;
        }
    }

    /// Returns when to send the next sign of life; [`Time::MAX`] without a watchdog.
    pub fn wake_at(&self) -> Time {
        if self.watchdog.is_some() { self.alive_at } else { Time::MAX }
    }

    /// Sends a state to the service manager. Errors are ignored, because a manager that does not read must not stop the
    /// daemon.
    fn notify(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the states that the service manager has received so far.
    fn received(socket: &UnixDatagram) -> Vec<String> {
        socket.set_nonblocking(true).unwrap();
        let mut buffer = [0; 64];
        let next = || {
            socket.recv(&mut buffer).ok().map(|count| String::from_utf8(buffer[..count].to_vec()).unwrap())
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn systemd_is_notified_of_start_watchdog_and_stop() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let mut supervisor =
            ServiceManager::connect(Some(path.as_os_str()), Some(Duration::from_secs(10))).unwrap();
        supervisor.report_ready();
        let start = Time::from_millis(1_800_000_000_000);
        for second in 0..11 {
            supervisor.report_alive(start + Duration::from_secs(second));
        }
        assert_eq!(supervisor.wake_at(), start + Duration::from_secs(15));
        supervisor.report_stopping();
        assert_eq!(received(&socket), ["READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]);
    }

    #[test]
    fn a_name_that_begins_with_an_at_sign_is_abstract() {
        let name = format!("hol-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        ServiceManager::connect(Some(format!("@{name}").as_ref()), None).unwrap().report_ready();
        assert_eq!(received(&socket), ["READY=1"]);
    }

    #[test]
    fn without_systemd_nothing_is_sent() {
        let mut supervisor = ServiceManager::connect(None, None).unwrap();
        supervisor.report_ready();
        supervisor.report_alive(Time::ZERO);
        assert_eq!(supervisor.wake_at(), Time::MAX);
    }
}
