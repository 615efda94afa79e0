//! The error type of the guest.

use std::error::Error;

/// An error in the guest; the host receives it as text.
pub(crate) type GuestError = Box<dyn Error>;
