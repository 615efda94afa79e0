//! A processor that executes more than one instruction per nanosecond, like current processors.
//!
//! QEMU's clock counts instructions, each of which takes `1 << shift` ns, at least one. Two of its functions convert a count to a time by a
//! left shift, and one converts a time to a count by a right shift. With these shifts reversed `1 << shift` instructions take a nanosecond.
//! Everything in QEMU and in its guest gets the time from these functions.
//!
//! The functions are patched in memory, as they are in Debian's QEMU 7.2, before QEMU runs: all three, or none. The time of a guest that
//! booted at one instruction per nanosecond continues without a jump: [`keep_clock_monotonic`].

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

use crate::function::Function;
use crate::report;

/// The environment variable that requests a faster processor. Its value is one digit: the binary logarithm of the
/// number of instructions per nanosecond.
const PACE_VARIABLE: &CStr = c"HOL_LOCKSTEP_PACE";

#[link(name = "c")]
unsafe extern "C" {
    fn getenv(name: *const c_char) -> *mut c_char;
    fn mprotect(address: *mut c_void, length: usize, protection: c_int) -> c_int;
    safe fn sysconf(name: c_int) -> c_long;
}

const SC_PAGESIZE: c_int = 30;
const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const PROT_EXEC: c_int = 4;

/// Opcode of `shl %cl, %rax`, followed by that of `shr %cl, %rax`. Intel SDM, volume 2, SAL/SAR/SHL/SHR.
const SHIFT_LEFT: &[u8] = &[0x48, 0xd3, 0xe0];
const SHIFT_RIGHT: &[u8] = &[0x48, 0xd3, 0xe8];
/// Opcode of `ret`, which ends a function.
const RETURN: u8 = 0xc3;
/// The code with which `icount_round` rounds its argument up and shifts it, after the shift has been loaded into `ecx`.
const ROUNDING_CODE: &[u8] = &[
    0xb8, 0x01, 0x00, 0x00, 0x00, // mov $1, %eax
    0xd3, 0xe0, // shl %cl, %eax
    0x48, 0x98, // cltq
    0x48, 0x8d, 0x44, 0x38, 0xff, // lea -1(%rax, %rdi), %rax
    0x48, 0xd3, 0xf8, // sar %cl, %rax
    RETURN,
];
/// The code that replaces `ROUNDING_CODE`: it shifts a time left, which gives the number of instructions without
/// rounding.
const SHIFTING_CODE: &[u8] = &[
    0x48, 0x89, 0xf8, // mov %rdi, %rax
    0x48, 0xd3, 0xe0, // shl %cl, %rax
    RETURN,
];
/// Opcode of the instruction `mov …(%rip), %rsi`. With it, `icount_get` loads the time that it adds to the time of the
/// executed instructions. The relative address of the added time follows the opcode.
const LOAD_ADDED_TIME: &[u8] = &[0x48, 0x8b, 0x35];

/// The requested binary logarithm of the number of instructions per nanosecond; 0 if none was requested.
static SHIFT: AtomicU32 = AtomicU32::new(0);
/// Address of the time in ns that QEMU adds to the time of the executed instructions, because its clock has jumped
/// over idle time.
static JUMPED_TIME: AtomicPtr<i64> = AtomicPtr::new(null_mut());

/// Patches QEMU's functions that convert instruction counts and times, if another speed was requested. Returns `None`
/// if one of them has unknown code or cannot be patched.
pub(crate) fn prepare() -> Option<()> {
    let get = Code::of(c"icount_get")?;
    let changes = [
        (get.address_of(SHIFT_LEFT)?, SHIFT_RIGHT),
        (Code::of(c"icount_to_ns")?.address_of(SHIFT_LEFT)?, SHIFT_RIGHT),
        (Code::of(c"icount_round")?.address_of(ROUNDING_CODE)?, SHIFTING_CODE),
    ];
    JUMPED_TIME.store(get.operand(LOAD_ADDED_TIME)?, SeqCst);
    let is_open = |is: bool| changes.iter().all(|(place, octets)| protect(*place, octets.len(), is));
    if !is_open(true) {
        return None;
    }
    if let Some(shift) = requested_shift() {
        for (place, octets) in changes {
            // SAFETY: it is QEMU's code, which can be written to now, and which no thread runs yet.
            unsafe { place.copy_from_nonoverlapping(octets.as_ptr(), octets.len()) };
        }
        SHIFT.store(shift, SeqCst);
    }
    is_open(false).then_some(())
}

/// Returns whether another processor speed than QEMU's was requested.
pub(crate) fn is_requested() -> bool {
    requested_shift().is_some()
}

fn requested_shift() -> Option<u32> {
    // SAFETY: the name ends with a zero, and so does the value of the variable.
    let digit = unsafe { getenv(PACE_VARIABLE.as_ptr()).as_ref()? };
    Some(*digit as u32 - u32::from(b'0'))
}

/// Keeps the guest's clock from going back when the processor's speed changes. It is called before a guest that
/// has booted at one instruction per nanosecond continues at another speed.
pub(crate) fn keep_clock_monotonic() {
    // SAFETY: this is its declaration in QEMU 7.2.
    static COUNT: Function<extern "C" fn() -> i64> = unsafe { Function::of_qemu(c"icount_get_raw") };
    let shift = SHIFT.load(SeqCst);
    let count = COUNT.get().filter(|_| shift > 0).map_or(0, |count| count());
    // Before the guest's state is loaded nothing has been counted.
    if count > 0 {
        SHIFT.store(0, SeqCst);
        let jumped = JUMPED_TIME.load(SeqCst);
        // SAFETY: it is what `icount_get` reads, and this thread has the lock that its writers take.
        let before = unsafe { *jumped };
        if !uses_shift(shift, count, before) {
            report::abort_with_message(b"the clock of QEMU does not run at the requested pace");
        }
        // SAFETY: the same.
        unsafe { *jumped = before + count - (count >> shift) };
    }
}

/// Returns whether QEMU's functions convert counts and times with this shift. To find out, it calls them.
fn uses_shift(shift: u32, count: i64, jumped: i64) -> bool {
    // SAFETY: these are their declarations in QEMU 7.2.
    static TIME: Function<extern "C" fn() -> i64> = unsafe { Function::of_qemu(c"icount_get") };
    // SAFETY: the same.
    static TO_TIME: Function<extern "C" fn(i64) -> i64> = unsafe { Function::of_qemu(c"icount_to_ns") };
    // SAFETY: the same.
    static TO_COUNT: Function<extern "C" fn(i64) -> i64> = unsafe { Function::of_qemu(c"icount_round") };
    let (Some(time), Some(to_time), Some(to_count)) = (TIME.get(), TO_TIME.get(), TO_COUNT.get()) else {
        return false;
    };
    time() == jumped + (count >> shift) && to_time(1 << shift) == 1 && to_count(1) == 1 << shift
}

/// The instructions of a function of QEMU.
struct Code {
    start: *mut u8,
    octets: &'static [u8],
}

impl Code {
    fn of(name: &'static CStr) -> Option<Self> {
        /// Number of octets to read from the start of a function. Each function is shorter, and more of QEMU's
        /// code follows it.
        const MAX_LENGTH: usize = 64;
        // SAFETY: it is not called; a function of any type has an address.
        let start: *mut u8 = unsafe { Function::of_qemu(name) }.get()?;
        // SAFETY: this many octets can be read, and no thread writes to them meanwhile.
        let octets = unsafe { slice::from_raw_parts(start.cast_const(), MAX_LENGTH) };
        let octets = octets.get(..=octets.iter().position(|octet| *octet == RETURN)?)?;
        Some(Self { start, octets })
    }

    /// Returns the position of these octets in the function; `None` unless they occur exactly once.
    fn find(&self, octets: &[u8]) -> Option<usize> {
        let is_there = |at: &usize| self.octets.get(*at..).is_some_and(|rest| rest.starts_with(octets));
        let mut places = (0..self.octets.len()).filter(is_there);
        let place = places.next()?;
        places.next().is_none().then_some(place)
    }

    /// Returns the address of these octets in the function; `None` unless they occur exactly once.
    fn address_of(&self, octets: &[u8]) -> Option<*mut u8> {
        self.find(octets).map(|at| self.start.wrapping_add(at))
    }

    /// Returns the address to which the operand of `instruction` refers. The operand is the four octets after
    /// `instruction`: the distance from the next instruction. Intel SDM, volume 2, section 2.2.1.6.
    fn operand(&self, instruction: &[u8]) -> Option<*mut i64> {
        let at = self.find(instruction)? + instruction.len();
        let distance = i32::from_le_bytes(*self.octets.get(at..)?.first_chunk()?);
        let next = self.start.wrapping_add(at + size_of::<i32>());
        Some(next.wrapping_offset(distance as isize).cast())
    }
}

/// Makes the memory pages of `length` octets of code at `place` writable if `is_open`, otherwise read-only.
/// Returns false if the host forbids that.
fn protect(place: *mut u8, length: usize, is_open: bool) -> bool {
    let page = sysconf(SC_PAGESIZE) as usize;
    let first = place as usize & !(page - 1);
    let length = place as usize + length - first;
    let how = PROT_READ | PROT_EXEC | if is_open { PROT_WRITE } else { 0 };
    // SAFETY: the content of the pages does not change, and they can be read and executed all the time.
    unsafe { mprotect(first as *mut c_void, length, how) == 0 }
}
