//! Netlink sockets of the kernel's routing subsystem.

use hol_netlink::{Message, Socket};

use super::GuestError;

/// A netlink socket for the routing subsystem (rtnetlink) of one namespace.
#[derive(Debug)]
pub(super) struct RoutingSocket(Socket);

impl RoutingSocket {
    /// Opens a socket in this thread's namespace.
    pub(super) fn open() -> Result<Self, GuestError> {
        Ok(Self(Socket::routing()?))
    }

    /// Sends a dump request, and passes each entry of the reply to `take`.
    pub(super) fn list(&self, message: Message, take: impl FnMut(&[u8])) -> Result<(), GuestError> {
        self.0.list(message, take).map_err(|error| format!("cannot list the queues: {error}").into())
    }

    /// Sends a request and waits for its acknowledgment; `doing` describes the request in an error.
    pub(super) fn request(&self, message: Message, doing: &str) -> Result<(), GuestError> {
        self.0.execute(message).map_err(|error| format!("cannot {doing}: {error}").into())
    }
}
