//! The way to the kernel's routing subsystem.

use hol_netlink::{Message, Socket};

use super::Trouble;

/// A socket to the routing subsystem of one namespace.
#[derive(Debug)]
pub(super) struct Routing(Socket);

impl Routing {
    /// For the namespace of this thread.
    pub(super) fn here() -> Result<Self, Trouble> {
        Ok(Self(Socket::routing()?))
    }

    /// Has something done; `doing` names it in an error.
    pub(super) fn tell(&self, message: Message, doing: &str) -> Result<(), Trouble> {
        self.0.tell(message).map_err(|error| format!("cannot {doing}: {error}").into())
    }
}
