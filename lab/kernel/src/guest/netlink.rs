//! The way to the kernel's routing subsystem.

use hol_netlink::{Message, Socket};

use super::GuestError;

/// A socket to the routing subsystem of one namespace.
#[derive(Debug)]
pub(super) struct Routing(Socket);

impl Routing {
    /// For the namespace of this thread.
    pub(super) fn here() -> Result<Self, GuestError> {
        Ok(Self(Socket::routing()?))
    }

    /// Lists what a message asks for; `take` gets each entry.
    pub(super) fn list(&self, message: Message, take: impl FnMut(&[u8])) -> Result<(), GuestError> {
        self.0.list(message, take).map_err(|error| format!("cannot ask for the queues: {error}").into())
    }

    /// Has something done; `doing` names it in an error.
    pub(super) fn request(&self, message: Message, doing: &str) -> Result<(), GuestError> {
        self.0.tell(message).map_err(|error| format!("cannot {doing}: {error}").into())
    }
}
