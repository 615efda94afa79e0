//! Jumps over idle time in the processor thread.
//!
//! When the guest halts, QEMU's processor thread wakes its main thread. The main thread sets the clock to the next
//! timer and runs that timer, which wakes the processor thread. These two context switches take a third of a run's
//! processor time. The processor thread also holds the big lock when it is about to sleep, so it may set the clock and
//! run the timer itself. The same timer runs at the same time, so the run is the same.
//!
//! Wake-ups of other threads are held back until the processor thread really sleeps. They only announce that
//! the clock has advanced, and no timer of those threads depends on that.

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

use crate::function::Function;

/// QEMU's number for the clock of the guest and of its devices.
const QEMU_CLOCK_VIRTUAL: c_int = 1;

type Processor = *mut c_void;

/// The functions of QEMU that a jump over idle time needs; either all or none of them are used.
struct Qemu {
    processor: extern "C" fn(c_int) -> Processor,
    is_stopped: extern "C" fn(Processor) -> bool,
    are_idle: extern "C" fn() -> bool,
    warp: extern "C" fn(),
    ring: extern "C" fn(c_int) -> bool,
}

impl Qemu {
    /// Looks up all functions that a jump needs; returns the name of the first missing one.
    fn get() -> Result<Self, &'static CStr> {
        macro_rules! own {
            ($name:literal: $kind:ty) => {{
                // SAFETY: this is its declaration in QEMU 7.2.
                static FUNCTION: Function<$kind> = unsafe { Function::of_qemu($name) };
                FUNCTION.get().ok_or($name)?
            }};
        }
        Ok(Self {
            processor: own!(c"qemu_get_cpu": extern "C" fn(c_int) -> Processor),
            is_stopped: own!(c"cpu_is_stopped": extern "C" fn(Processor) -> bool),
            are_idle: own!(c"all_cpu_threads_idle": extern "C" fn() -> bool),
            warp: own!(c"icount_start_warp_timer": extern "C" fn()),
            ring: own!(c"qemu_clock_run_timers": extern "C" fn(c_int) -> bool),
        })
    }

    /// Returns whether the guest is halted until the next timer, and the machine is not stopped.
    fn is_halted(&self) -> bool {
        let processor = (self.processor)(0);
        !processor.is_null() && !(self.is_stopped)(processor) && (self.are_idle)()
    }
}

/// Whether this QEMU has all functions that a jump needs.
static POSSIBLE: AtomicBool = AtomicBool::new(false);

/// Looks up all functions that a jump needs; returns the name of the first missing one.
pub(crate) fn prepare() -> Result<(), &'static CStr> {
    Qemu::get().map(|_| POSSIBLE.store(true, SeqCst))
}

/// Returns whether [`prepare`] found all functions that a jump needs.
pub(crate) fn is_possible() -> bool {
    POSSIBLE.load(SeqCst)
}

/// Sets the guest's clock to the next timer and runs the timer. Called when the processor thread is about to
/// sleep. Returns whether the guest then has something to do; if not, QEMU must continue without this library's
/// help.
pub(crate) fn to_next_timer() -> bool {
    let Some(qemu) = Qemu::get().ok().filter(Qemu::is_halted) else { return false };
    (qemu.warp)();
    (qemu.ring)(QEMU_CLOCK_VIRTUAL);
    !(qemu.are_idle)()
}

/// The value that is written to an event counter to wake a thread: one. eventfd(2)
const ONE: [u8; 8] = 1_u64.to_ne_bytes();
const NONE: c_int = -1;

/// The event counters (eventfd(2)) to which the processor thread has not yet added the one that wakes another thread.
/// Each entry is a file descriptor, or `NONE` if it is unused.
static DEFERRED_WRITES: [AtomicI32; 4] = [const { AtomicI32::new(NONE) }; 4];

/// Defers a write of the processor thread if the write only wakes another thread and there is a free entry. Returns
/// whether the write was deferred.
pub(crate) fn defer_write(file: c_int, octets: &[u8]) -> bool {
    if octets != ONE {
        return false;
    }
    let mut places = DEFERRED_WRITES.iter();
    let Some(place) = places.find(|place| [NONE, file].contains(&place.load(SeqCst))) else { return false };
    place.store(file, SeqCst);
    true
}

/// Performs the deferred writes, before the processor thread sleeps.
pub(crate) fn release(write: impl Fn(c_int, &[u8])) {
    for place in &DEFERRED_WRITES {
        let file = place.swap(NONE, SeqCst);
        if file != NONE {
            write(file, &ONE);
        }
    }
}
