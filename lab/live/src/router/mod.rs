//! `hol live route`: this host lies between two others, and has the path between them be what an experiment says, for as long as a run takes.
//!
//! `settings` says which experiments it can do, `interfaces` where packets to the two leave, `shape` what stands there then, and `guardian`
//! takes it away when this process cannot.

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
use crate::service::Deeds;
use guardian::Guardian;
use interfaces::{Interface, between};

pub use guardian::guard;
pub(crate) use settings::lines;
pub(crate) use shape::is_possible as has_emulators;

/// This host may be a router: nobody else has its interfaces, and nothing of an earlier run stands there.
#[derive(Debug)]
pub struct Router {
    _alone: UnixListener,
    _guardian: Guardian,
}

impl Router {
    /// Says what is missing, with the cure. `guardian` is a program that does what [`guard`] does.
    pub fn begin(guardian: Command) -> Result<Self, String> {
        let alone = alone()?;
        shape::is_possible()?;
        shape::put_back().map_err(|problem| format!("cannot remove what an earlier run left: {problem}"))?;
        let guardian = Guardian::start(guardian)
            .map_err(|problem| format!("cannot start who puts the path back after a crash: {problem}"))?;
        Ok(Self { _alone: alone, _guardian: guardian })
    }
}

/// Two of them would put back what the other has in force. Names like this one belong to a network namespace, and end with who has them.
/// unix(7)
fn alone() -> Result<UnixListener, String> {
    let name = SocketAddr::from_abstract_name("headofline live route").map_err(|e| e.to_string())?;
    UnixListener::bind_addr(&name).map_err(|problem| match problem.kind() {
        io::ErrorKind::AddrInUse => {
            "another `hol live route` runs on this host; two would undo what the other does".to_owned()
        }
        _ => problem.to_string(),
    })
}

/// What a client has of this router.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    /// Towards the client, and towards the server.
    interfaces: Option<[Interface; 2]>,
    is_shaped: bool,
}

impl Deeds for Routing {
    fn answer(&mut self, request: Request) -> Option<Reply> {
        let done = match request {
            Request::Between { client, server } => self.between(client, server).map(Reply::Way),
            Request::Shape { network, seed } => self.shape(&network, Seed(seed)).map(|()| Reply::Shaped),
            Request::PutBack => self.put_back(),
            Request::Check(_) | Request::Plan(_) | Request::EndClients | Request::Over => {
                Err("it is a router (`hol live route`) and has no servers; start `hol live serve` on the other host"
                    .to_owned())
            }
            Request::Start { .. } | Request::News(..) | Request::Alive | Request::Ping => return None,
        };
        Some(done.unwrap_or_else(Reply::Refused))
    }
}

impl Routing {
    /// The names of the interfaces towards two hosts between which this one lies. They may have emulators.
    fn between(&mut self, client: IpAddr, server: IpAddr) -> Result<[String; 2], String> {
        let interfaces = between(client, server)?;
        interfaces.iter().try_for_each(shape::is_free)?;
        let names = interfaces.each_ref().map(|interface| interface.name.clone());
        self.interfaces = Some(interfaces);
        Ok(names)
    }

    fn shape(&mut self, network: &NetworkSpec, seed: Seed) -> Result<(), String> {
        let lines = lines(network).map_err(|why| why.to_string())?;
        let [client, server] = self.interfaces.as_ref().ok_or("nobody said between whom")?;
        shape::put_back().map_err(|problem| problem.to_string())?;
        self.is_shaped = true;
        // What goes up leaves towards the server.
        for (line, interface) in lines.iter().zip([server, client]) {
            shape::put(interface, line, seed)?;
        }
        Ok(())
    }

    fn put_back(&mut self) -> Result<Reply, String> {
        let [client, server] = self.interfaces.as_ref().ok_or("nobody said between whom")?;
        let passed = shape::passed([server, client]);
        let done = shape::put_back();
        self.is_shaped = done.is_err();
        done.and(passed).map(Reply::Passed).map_err(|problem| problem.to_string())
    }
}

impl Drop for Routing {
    /// The client has gone in the middle of a run.
    fn drop(&mut self) {
        if self.is_shaped {
            // Where that fails the guardian tries, too, and the next start.
            let _ = shape::put_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_out_of_place_or_beyond_a_router_is_refused() {
        let refusal = |request| match Routing::default().answer(request) {
            Some(Reply::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        let shape = |text: &str| Request::Shape { network: Box::new(toml::from_str(text).unwrap()), seed: 1 };
        assert!(refusal(shape("delay = '20ms'")).contains("between whom"));
        assert!(refusal(shape("duplicate = '1%'")).contains("`network.duplicate`"));
        assert!(refusal(Request::PutBack).contains("between whom"));
        assert!(refusal(Request::Over).contains("hol live serve"));
    }
}
