//! The speed of a machine's processor. Time in a machine is the number of executed instructions.

/// The speed of the virtual processor in instructions per nanosecond, a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessorSpeed {
    shift: u32,
}

impl ProcessorSpeed {
    /// QEMU's own processor speed. Every guest boots with it, because booting waits in busy loops. Runs without
    /// the user's programs have it, too.
    pub(super) const ONE: Self = Self { shift: 0 };
    /// The approximate speed of current processors, as a power of two.
    pub(super) const CURRENT_PROCESSORS: Self = Self { shift: 3 };

    /// Returns the binary logarithm of the number of instructions per nanosecond: an instruction count is shifted
    /// right by this number of bits to convert it to nanoseconds.
    pub(super) const fn shift(self) -> u32 {
        self.shift
    }

    /// Returns the speed of the virtual processor in instructions per nanosecond.
    pub(super) const fn instructions_per_ns(self) -> u32 {
        1 << self.shift
    }

    /// Returns QEMU's arguments for a clock that counts instructions and jumps over idle time. QEMU itself shifts a
    /// count to the left; `lockstep/pace.rs` reverses that.
    pub(super) fn clock_arguments(self) -> [String; 2] {
        ["-icount".to_owned(), format!("shift={},sleep=off", self.shift)]
    }
}
