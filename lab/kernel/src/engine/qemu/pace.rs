//! How fast a machine's processor is. Time in a machine is what its processor has carried out.

/// A power of two of instructions in a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    shift: u32,
}

impl Pace {
    /// As QEMU has it, at which every guest boots, for it waits in busy loops then, and all but the user's programs run.
    pub(super) const ONE: Self = Self { shift: 0 };
    /// About what today's processors do.
    pub(super) const TODAY: Self = Self { shift: 3 };

    pub(super) const fn shift(self) -> u32 {
        self.shift
    }

    pub(super) const fn instructions_per_ns(self) -> u32 {
        1 << self.shift
    }

    /// A clock that counts instructions and jumps over idle time. QEMU by itself takes a shift for one to the left: `lockstep/pace.rs`.
    pub(super) fn clock(self) -> [String; 2] {
        ["-icount".to_owned(), format!("shift={},sleep=off", self.shift)]
    }
}
