//! Checks that several virtual machines fit into the host's memory.

use std::fs;

use crate::{Image, KernelError, engine};

/// Returns an error if `machines` simultaneous virtual machines with `image` do not fit into the free
/// memory.
pub(crate) fn check_free_memory(image: &Image, machines: usize) -> Result<(), KernelError> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // If the system does not report its free memory, that is no reason to refuse.
    available(&text).map_or(Ok(()), |free| check_fit(machines, engine::engine_for(image).memory(), free))
}

/// Returns an error if `machines` virtual machines, each of which needs `one` MiB, need more than `free` MiB.
fn check_fit(machines: usize, one: u64, free: u64) -> Result<(), KernelError> {
    let needed = one * machines as u64;
    if needed <= free {
        return Ok(());
    }
    Err(KernelError::Memory { machines, needed, free, fitting: free / one })
}

/// Returns `MemAvailable` in MiB. proc(5).
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_machines_are_refused_with_the_number_that_fits() {
        let free = available("MemTotal: 4000000 kB\nMemAvailable:    2048000 kB\n").unwrap();
        assert_eq!(free, 2000);
        assert!(check_fit(2, 812, free).is_ok());
        let problem = check_fit(3, 812, free).unwrap_err().to_string();
        assert!(problem.contains("2436 MiB") && problem.contains("--jobs 2"), "{problem}");
        assert!(check_fit(1, 812, 100).unwrap_err().to_string().contains("free some"));
    }
}
