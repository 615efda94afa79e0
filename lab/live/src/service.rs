//! What a host does for another one.

use crate::control::{Reply, Request};

/// What is done for one client. When this is gone nothing is left of it.
pub(crate) trait Deeds {
    /// What is said to a request, if anything.
    fn answer(&mut self, request: Request) -> Option<Reply>;
}
