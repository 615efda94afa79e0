//! The wall clock: for display and for session expiry, never for results.

#![expect(clippy::disallowed_types, reason = "the only function of the server that reads the clock")]

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the number of seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
