//! For tests: disturbs QEMU as a busy machine does, but often. Without `lockstep` two runs of 200 messages then always differ.
//!
//! QEMU leaves a halted guest by a long jump before it counts the instructions. A pause there gives its main thread time to read the clock
//! at the wrong moment.

#![no_std]

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Only one long jump in this many is delayed by a pause.
const JUMPS_PER_PAUSE: u32 = 4;
const PAUSE_US: c_uint = 60;

#[link(name = "c")]
unsafe extern "C" {
    safe fn usleep(microseconds: c_uint) -> c_int;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

type Jump = extern "C" fn(*mut c_void, c_int) -> !;

#[unsafe(no_mangle)]
pub extern "C" fn siglongjmp(place: *mut c_void, value: c_int) -> ! {
    pause_and_jump(c"siglongjmp", place, value)
}

/// Replaces the function for long jumps that QEMU calls if it was compiled with hardening (_FORTIFY_SOURCE).
#[unsafe(no_mangle)]
pub extern "C" fn __longjmp_chk(place: *mut c_void, value: c_int) -> ! {
    pause_and_jump(c"__longjmp_chk", place, value)
}

fn pause_and_jump(name: &CStr, place: *mut c_void, value: c_int) -> ! {
    const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
    static JUMPS: AtomicU32 = AtomicU32::new(0);
    if JUMPS.fetch_add(1, SeqCst).is_multiple_of(JUMPS_PER_PAUSE) {
        usleep(PAUSE_US);
    }
    // SAFETY: it is the same function of the C library, with the caller's arguments; no value here needs to be dropped.
    unsafe { transmute::<*mut c_void, Jump>(dlsym(RTLD_NEXT, name.as_ptr()))(place, value) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
