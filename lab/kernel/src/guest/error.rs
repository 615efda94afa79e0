//! The error type of the guest.

use std::error::Error;

/// An error in the guest; the host receives its text.
pub(crate) type GuestError = Box<dyn Error>;
