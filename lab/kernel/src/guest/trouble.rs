//! What can go wrong in a guest.

use std::error::Error;

/// What can go wrong in here; the host gets it as text.
pub(crate) type Trouble = Box<dyn Error>;
