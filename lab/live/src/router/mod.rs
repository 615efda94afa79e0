//! The service of `hol live route`: this host lies between two others and shapes the path between them
//! during a run.
//!
//! `settings` determines which experiments it supports, `interfaces` where packets leave, `shape` the
//! queueing disciplines, and `guardian` removes them if this process cannot.

mod guardian;
mod interfaces;
mod settings;
mod shape;

use std::io;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use hol_base::Seed;
use hol_network::NetworkSpec;

use crate::control::{Reply, Request};
use crate::service::ClientService;
use guardian::Guardian;
use interfaces::{Interface, interfaces_between};

pub use guardian::guard;
pub(crate) use settings::shaped_links;
pub(crate) use shape::check_support as check_emulators;

/// A router. No other process uses its interfaces, and the queueing disciplines of earlier runs have been removed.
#[derive(Debug)]
pub struct Router {
    _alone: UnixListener,
    _guardian: Guardian,
}

impl Router {
    /// Starts the router. If something is missing on this host, returns what it is, and the remedy. `guardian` is a
    /// program that calls [`guard`].
    pub fn begin(guardian: Command) -> Result<Self, String> {
        let alone = ensure_single_router()?;
        shape::check_support()?;
        shape::restore().map_err(|problem| {
            format!("cannot remove the queueing disciplines of an earlier run: {problem}")
        })?;
        let guardian = Guardian::start(guardian).map_err(|problem| {
            format!("cannot start the process that restores the path after a crash: {problem}")
        })?;
        Ok(Self { _alone: alone, _guardian: guardian })
    }
}

/// Ensures that only one router runs on this host, because two would undo each other's changes. To this end, it opens a
/// socket with an abstract name. Such a name belongs to a network namespace, and is released when the process ends.
/// unix(7)
fn ensure_single_router() -> Result<UnixListener, String> {
    let name = SocketAddr::from_abstract_name("headofline live route").map_err(|e| e.to_string())?;
    UnixListener::bind_addr(&name).map_err(|problem| match problem.kind() {
        io::ErrorKind::AddrInUse => {
            "another `hol live route` runs on this host; only one is possible".to_owned()
        }
        _ => problem.to_string(),
    })
}

/// A router that a client is using.
#[derive(Debug, Default)]
pub(crate) struct RouterService {
    /// The interfaces to the client and to the server; `None` before the client has named these hosts.
    interfaces: Option<[Interface; 2]>,
    is_shaped: bool,
}

impl ClientService for RouterService {
    fn answer(&mut self, request: Request) -> Option<Reply> {
        let done = match request {
            Request::Between { client, server } => self.between(client, server).map(Reply::Interfaces),
            Request::Shape { network, seed } => self.shape(&network, Seed(seed)).map(|()| Reply::Shaped),
            Request::Restore => self.restore(),
            Request::Check(_) | Request::Plan(_) | Request::EndClients | Request::End => {
                Err("this host is a router (`hol live route`) and runs no servers; start `hol live serve` on the other host"
                    .to_owned())
            }
            Request::Start { .. } | Request::ServerReport(..) | Request::Alive | Request::Ping => return None,
        };
        Some(done.unwrap_or_else(Reply::Refused))
    }
}

impl RouterService {
    /// Returns the names of the interfaces towards client and server, after checking that this host lies between them,
    /// and that hol may emulate the path on these interfaces.
    fn between(&mut self, client: IpAddr, server: IpAddr) -> Result<[String; 2], String> {
        let interfaces = interfaces_between(client, server)?;
        interfaces.iter().try_for_each(shape::check_unused)?;
        let names = interfaces.each_ref().map(|interface| interface.name.clone());
        self.interfaces = Some(interfaces);
        Ok(names)
    }

    fn shape(&mut self, network: &NetworkSpec, seed: Seed) -> Result<(), String> {
        let lines = shaped_links(network).map_err(|why| why.to_string())?;
        let [client, server] =
            self.interfaces.as_ref().ok_or("the two hosts of the path have not been set")?;
        shape::restore().map_err(|problem| problem.to_string())?;
        self.is_shaped = true;
        // Upstream packets leave towards the server.
        for (line, interface) in lines.iter().zip([server, client]) {
            shape::set_up(interface, line, seed)?;
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<Reply, String> {
        let [client, server] =
            self.interfaces.as_ref().ok_or("the two hosts of the path have not been set")?;
        let passed = shape::counters([server, client]);
        let done = shape::restore();
        self.is_shaped = done.is_err();
        done.and(passed).map(Reply::LinkCounters).map_err(|problem| problem.to_string())
    }
}

impl Drop for RouterService {
    /// Restores the path, because the client may have disconnected in the middle of a run.
    fn drop(&mut self) {
        if self.is_shaped {
            // If this fails, the guardian tries too, and so does the next start.
            let _ = shape::restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_out_of_sequence_or_for_servers_are_refused() {
        let refusal = |request| match RouterService::default().answer(request) {
            Some(Reply::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        let shape = |text: &str| Request::Shape { network: Box::new(toml::from_str(text).unwrap()), seed: 1 };
        assert!(refusal(shape("delay = '20ms'")).contains("have not been set"));
        assert!(refusal(shape("duplicate = '1%'")).contains("`network.duplicate`"));
        assert!(refusal(Request::Restore).contains("have not been set"));
        assert!(refusal(Request::End).contains("hol live serve"));
    }
}
