//! The cache directory of kernels, snapshots and images.

use std::path::PathBuf;

/// Returns the cache directory: `$XDG_CACHE_HOME/headofline`, or `~/.cache/headofline`.
pub fn cache_directory() -> PathBuf {
    let from = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || from("HOME").map_or_else(|| PathBuf::from("/tmp"), |home| home.join(".cache"));
    from("XDG_CACHE_HOME").unwrap_or_else(home).join("headofline")
}
