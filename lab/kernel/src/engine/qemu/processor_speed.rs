//! The speed of a machine's processor. Time in a machine is the number of executed instructions.

/// The speed of a processor in instructions per nanosecond, a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessorSpeed {
    shift: u32,
}

impl ProcessorSpeed {
    /// QEMU's own speed. Every guest boots with it, because booting waits in busy loops. Runs without the
    /// user's programs also keep it.
    pub(super) const ONE: Self = Self { shift: 0 };
    /// The approximate speed of current processors.
    pub(super) const CURRENT_PROCESSORS: Self = Self { shift: 3 };

    /// Returns the number of bits by which an instruction count is shifted to convert it to nanoseconds.
    pub(super) const fn shift(self) -> u32 {
        self.shift
    }

    /// Returns the number of instructions per nanosecond.
    pub(super) const fn instructions_per_ns(self) -> u32 {
        1 << self.shift
    }

    /// Returns the arguments for a clock that counts instructions and jumps over idle time. QEMU itself shifts to the left;
    /// `lockstep/pace.rs` reverses that.
    pub(super) fn clock_arguments(self) -> [String; 2] {
        ["-icount".to_owned(), format!("shift={},sleep=off", self.shift)]
    }
}
