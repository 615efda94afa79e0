//! The interface of a service for another host.

use crate::control::{Reply, Request};

/// The work done for one client. Dropping it undoes everything.
pub(crate) trait ClientService {
    /// Returns the reply to a request, if any.
    fn answer(&mut self, request: Request) -> Option<Reply>;
}
