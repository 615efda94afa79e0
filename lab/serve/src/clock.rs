//! The wall clock: for display and for session expiry, never for results.

#![expect(clippy::disallowed_types, reason = "the one place where the server looks at the clock")]

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
