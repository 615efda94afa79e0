//! A library that is preloaded into QEMU, so that runs are reproducible on a busy machine too, and take less processor
//! time.
//!
//! QEMU's processor thread runs the guest without QEMU's big lock, and counts the executed instructions when it comes
//! back. When the guest halts, its processor looks idle a moment before they are counted. If QEMU's main thread looks
//! just then (because the host has taken the processor thread off its CPU), it computes the jump over idle time from a
//! clock that is late, and sets the guest's clock some nanoseconds too far ahead.
//!
//! So a thread that takes the big lock waits until the processor thread wants it too, which happens only when the count is correct. It
//! waits with the lock held: the processor thread announces that it leaves the guest before it queues for the lock, so there is no
//! deadlock. `jump` makes it rarely necessary for the main thread to take the lock.
//!
//! The processor thread is recognised by its name (`-name …,debug-threads=on`), the big lock as the one with
//! which that thread goes to sleep. If a function of QEMU is missing, none of this is used: QEMU works as it
//! does without this library, and `report` reports it.
//!
//! A thread acquires a lock in four ways: pthread_mutex_lock, pthread_mutex_trylock, and the return from pthread_cond_wait and
//! pthread_cond_timedwait. Counted in QEMU 7.2, a run of 2,000 messages takes the big lock 127,000 times by the first, never by the second
//! and the fourth, and 3 times by the third in a thread other than the processor's, before the guest runs and after it has stopped. All
//! four follow the rule nevertheless. Whether QEMU's five functions are what `jump` assumes cannot be checked here, so this library is
//! loaded into QEMU 7.2 only.

#![no_std]

mod function;
mod jump;
mod pace;
mod report;

use core::ffi::{CStr, c_int, c_long, c_ulong, c_void};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};

use function::Function;

type Mutex = *mut c_void;
type Condition = *mut c_void;

/// The state of QEMU's processor thread: outside of the guest, in the guest, or awaited.
static PROCESSOR_STATE: AtomicU32 = AtomicU32::new(OUTSIDE);
const OUTSIDE: u32 = 0;
const IN_GUEST: u32 = 1;
/// State in which the processor thread runs the guest, and the owner of the big lock waits for this thread.
const AWAITED: u32 = 2;

/// The ID of the processor thread (pthread_self(3)); 0 until it is known.
static PROCESSOR: AtomicUsize = AtomicUsize::new(0);
/// The address of QEMU's big lock; null until it is known.
static BIG_LOCK: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// QEMU's name for the single thread that runs all processors in turn.
const NAME: &CStr = c"ALL CPUs/TCG";
const PR_GET_NAME: c_int = 16;

const FUTEX: c_long = if cfg!(target_arch = "x86_64") { 202 } else { 98 };
const FUTEX_WAIT_PRIVATE: c_int = 128;
const FUTEX_WAKE_PRIVATE: c_int = 129;

#[link(name = "c")]
unsafe extern "C" {
    safe fn pthread_self() -> usize;
    fn prctl(option: c_int, ...) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// Looks up the C library's function that a function of this library replaces.
macro_rules! next {
    ($name:literal: $kind:ty) => {{
        // SAFETY: this is its declaration in POSIX, and the one of this library's function.
        static NEXT: Function<$kind> = unsafe { Function::next($name) };
        NEXT.get()
    }};
}

/// The error code that is returned if the C library lacks the function.
const ENOSYS: c_int = 38;

/// Replaces pthread_cond_wait(3). Its first calls show which thread is the processor thread, and with which lock
/// this thread sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_wait(condition: Condition, mutex: Mutex) -> c_int {
    if PROCESSOR.load(SeqCst) == 0 && jump::is_possible() && is_named(NAME) {
        BIG_LOCK.store(mutex, SeqCst);
        PROCESSOR.store(pthread_self(), SeqCst);
        report::report_in_step();
    }
    if is_processor() && mutex == BIG_LOCK.load(SeqCst) && jump::to_next_timer() {
        // POSIX allows spurious wake-ups; QEMU checks its condition again.
        return 0;
    }
    let next = next!(c"pthread_cond_wait": extern "C" fn(Condition, Mutex) -> c_int);
    sleep_outside(mutex, || next.map_or(ENOSYS, |next| next(condition, mutex)))
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_cond_timedwait(condition: Condition, mutex: Mutex, until: *const c_void) -> c_int {
    let next = next!(c"pthread_cond_timedwait": extern "C" fn(Condition, Mutex, *const c_void) -> c_int);
    sleep_outside(mutex, || next.map_or(ENOSYS, |next| next(condition, mutex, until)))
}

/// Calls `sleep`, which releases `mutex` while this thread sleeps.
fn sleep_outside(mutex: Mutex, sleep: impl FnOnce() -> c_int) -> c_int {
    if is_processor() {
        jump::release(|file, octets| {
            next_write(file, octets.as_ptr().cast(), octets.len());
        });
        return sleep();
    }
    let result = sleep();
    after_acquisition(mutex);
    result
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_lock(mutex: Mutex) -> c_int {
    if mutex == BIG_LOCK.load(SeqCst) && is_processor() {
        leave_guest();
    }
    let next = next!(c"pthread_mutex_lock": extern "C" fn(Mutex) -> c_int);
    let result = next.map_or(ENOSYS, |next| next(mutex));
    after_acquisition(mutex);
    result
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_trylock(mutex: Mutex) -> c_int {
    let next = next!(c"pthread_mutex_trylock": extern "C" fn(Mutex) -> c_int);
    let result = next.map_or(ENOSYS, |next| next(mutex));
    match result {
        0 if is_processor() && mutex == BIG_LOCK.load(SeqCst) => leave_guest(),
        0 => after_acquisition(mutex),
        _ => {}
    }
    result
}

/// Called when this thread has acquired `mutex`. If this is QEMU's big lock and another thread than the processor
/// thread, waits until the processor thread wants the lock, too.
fn after_acquisition(mutex: Mutex) {
    if mutex == BIG_LOCK.load(SeqCst) && !is_processor() {
        await_processor();
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pthread_mutex_unlock(mutex: Mutex) -> c_int {
    if mutex == BIG_LOCK.load(SeqCst) && is_processor() {
        pace::keep_clock_monotonic();
        PROCESSOR_STATE.store(IN_GUEST, SeqCst);
    }
    let next = next!(c"pthread_mutex_unlock": extern "C" fn(Mutex) -> c_int);
    next.map_or(ENOSYS, |next| next(mutex))
}

#[unsafe(no_mangle)]
pub extern "C" fn write(file: c_int, octets: *const c_void, length: usize) -> isize {
    if is_processor() && !octets.is_null() {
        // SAFETY: the caller of write(2) guarantees this many octets.
        let octets = unsafe { slice::from_raw_parts(octets.cast(), length) };
        if jump::defer_write(file, octets) {
            return length.cast_signed();
        }
    }
    next_write(file, octets, length)
}

fn next_write(file: c_int, octets: *const c_void, length: usize) -> isize {
    let next = next!(c"write": extern "C" fn(c_int, *const c_void, usize) -> isize);
    next.map_or(-1, |next| next(file, octets, length))
}

fn is_processor() -> bool {
    pthread_self() == PROCESSOR.load(SeqCst)
}

fn is_named(name: &CStr) -> bool {
    let mut own = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes 16 octets, the last one a zero.
    unsafe { prctl(PR_GET_NAME, own.as_mut_ptr()) };
    own.starts_with(name.to_bytes_with_nul())
}

fn leave_guest() {
    if PROCESSOR_STATE.swap(OUTSIDE, SeqCst) == AWAITED {
        // SAFETY: futex(2) only takes the address of a word.
        unsafe { syscall(FUTEX, &PROCESSOR_STATE, FUTEX_WAKE_PRIVATE, 1 as c_ulong) };
    }
}

/// Waits until the processor thread has left the guest. Only the owner of the big lock calls this function, so that
/// there is only one caller at a time.
fn await_processor() {
    while PROCESSOR_STATE.load(SeqCst) != OUTSIDE {
        if PROCESSOR_STATE.compare_exchange(IN_GUEST, AWAITED, SeqCst, SeqCst) != Err(OUTSIDE) {
            // SAFETY: futex(2) only reads the word, and there is no time limit.
            unsafe { syscall(FUTEX, &PROCESSOR_STATE, FUTEX_WAIT_PRIVATE, AWAITED as c_ulong, null_mut::<c_void>()) };
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
