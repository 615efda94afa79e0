//! Reports the state of this library to the process that started QEMU, as lines in a file that the environment names.
//!
//! When it is loaded: `exact` or the missing function, and `any pace` if the processor can be faster; later, `in step`,
//! when the processor thread is known. No line means that the library was never loaded. Without the variable the
//! library writes nothing. A script that starts QEMU also loads the library, and reports a missing function before QEMU
//! reports `exact`.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering::SeqCst};

use crate::{jump, pace};

/// The environment variable that names the file of the report.
const FILE: &CStr = c"HOL_LOCKSTEP";

const O_WRONLY: c_int = 0o1;
const O_APPEND: c_int = 0o2000;
const O_CLOEXEC: c_int = 0o2_000_000;

#[link(name = "c")]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *mut c_char;
    fn unsetenv(name: *const c_char) -> c_int;
    fn open(path: *const c_char, how: c_int, ...) -> c_int;
    safe fn abort() -> !;
}

/// The descriptor of the report's file, which stays open for the whole life of the process; `NONE` without a file.
static REPORT: AtomicI32 = AtomicI32::new(NONE);
const NONE: c_int = -1;
const STDERR: c_int = 2;

/// The function that the loader calls when all functions of the program are resolved, and before any of them runs.
#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn loaded() {
    // SAFETY: both names end with a zero, and no other thread is there yet.
    unsafe {
        let path = getenv(FILE.as_ptr());
        if path.is_null() {
            return;
        }
        REPORT.store(open(path, O_WRONLY | O_APPEND | O_CLOEXEC), SeqCst);
    }
    // Without a report file nothing may be changed.
    if REPORT.load(SeqCst) == NONE {
        return;
    }
    match jump::prepare() {
        Ok(()) => {
            write_line(&[b"exact"]);
            // Programs that QEMU starts load this library too and must not report.
            // SAFETY: as above.
            unsafe { unsetenv(FILE.as_ptr()) };
        }
        Err(missing) => return write_line(&[b"function ", missing.to_bytes(), b" not found"]),
    }
    match pace::prepare() {
        Some(()) => write_line(&[b"any pace"]),
        None if pace::is_requested() => abort_with_message(b"the pace of QEMU's clock cannot be changed"),
        None => {}
    }
}

/// Reports that the processor thread and QEMU's big lock have been found.
pub(crate) fn report_in_step() {
    write_line(&[b"in step"]);
}

/// Ends QEMU with a message on its standard error.
pub(crate) fn abort_with_message(reason: &[u8]) -> ! {
    REPORT.store(STDERR, SeqCst);
    write_line(&[reason]);
    abort()
}

fn write_line(words: &[&[u8]]) {
    for part in [b"hol lockstep: ".as_slice()].iter().chain(words).chain(&[b"\n".as_slice()]) {
        crate::next_write(REPORT.load(SeqCst), part.as_ptr().cast::<c_void>(), part.len());
    }
}
