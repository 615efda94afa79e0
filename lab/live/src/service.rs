//! The interface of a service for another host.

use crate::control::{Reply, Request};

/// A service for one client. Dropping it undoes all changes.
pub(crate) trait ClientService {
    /// Returns the reply to a request; `None` if it has none.
    fn answer(&mut self, request: Request) -> Option<Reply>;
}
