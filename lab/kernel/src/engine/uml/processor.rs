//! The processor of a run. The kernel and its programs take turns, so a run needs one processor; on two the same work takes seven times as
//! long.

use std::sync::{Mutex, PoisonError};

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu};
use nix::unistd::Pid;

/// The host's processors that runs in progress have reserved, one entry per run.
static RESERVED_PROCESSORS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// A processor of this host that is reserved for a run.
#[derive(Debug)]
pub(super) struct Processor(usize);

impl Processor {
    /// Reserves the processor that the fewest runs of this process have reserved; among several, the one on which
    /// this thread runs.
    pub(super) fn reserve() -> Self {
        let mut taken = RESERVED_PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
        let here = sched_getcpu().unwrap_or(0);
        let chosen = choose(&allowed_processors(), here, &taken);
        taken.push(chosen);
        Self(chosen)
    }

    /// Returns a processor set that contains only this processor, for sched_setaffinity(2).
    pub(super) fn cpu_set(&self) -> nix::Result<CpuSet> {
        let mut set = CpuSet::new();
        set.set(self.0)?;
        Ok(set)
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        let mut taken = RESERVED_PROCESSORS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = taken.iter().position(|processor| *processor == self.0) {
            taken.swap_remove(place);
        }
    }
}

/// Returns the processors on which this process may run.
fn allowed_processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false)).collect()
}

fn choose(allowed_processors: &[usize], here: usize, taken: &[usize]) -> usize {
    let runs = |processor: usize| taken.iter().filter(|taken| **taken == processor).count();
    let chosen =
        allowed_processors.iter().copied().min_by_key(|processor| (runs(*processor), *processor != here));
    chosen.unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simultaneous_runs_have_different_processors() {
        assert_eq!(choose(&[0, 2, 3], 2, &[]), 2);
        assert_eq!(choose(&[0, 2, 3], 2, &[2]), 0);
        assert_eq!(choose(&[0, 2, 3], 2, &[2, 0, 3, 3]), 2);
        assert_eq!(choose(&[], 1, &[]), 1);
    }

    #[test]
    fn a_processor_is_free_again_after_the_run() {
        let here = || RESERVED_PROCESSORS.lock().unwrap().len();
        let before = here();
        let processor = Processor::reserve();
        assert!(processor.cpu_set().unwrap().is_set(processor.0).unwrap());
        assert_eq!(here(), before + 1);
        drop(processor);
        assert_eq!(here(), before);
    }
}
