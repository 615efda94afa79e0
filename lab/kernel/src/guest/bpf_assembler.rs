//! Assembles BPF programs. RFC 9669.

use super::GuestError;
use super::bpf::Map;

/// Opcodes of RFC 9669 sections 4 and 5, for 64 bits unless the name says otherwise.
pub(super) const ADD: u8 = 0x07;
pub(super) const ADD_REGISTER: u8 = 0x0f;
pub(super) const SUBTRACT_REGISTER: u8 = 0x1f;
pub(super) const MULTIPLY_REGISTER: u8 = 0x2f;
pub(super) const AND: u8 = 0x57;
pub(super) const SHIFT_RIGHT: u8 = 0x77;
pub(super) const XOR_REGISTER: u8 = 0xaf;
pub(super) const MOVE: u8 = 0xb7;
pub(super) const MOVE_REGISTER: u8 = 0xbf;
pub(super) const LOAD_CONSTANT: u8 = 0x18;
pub(super) const LOAD_WORD: u8 = 0x61;
pub(super) const LOAD: u8 = 0x79;
/// Opcode that loads an octet of the packet in register 6 into register 0; clobbers registers 1 to 5.
/// linux/filter.h, BPF_LD_ABS.
pub(super) const LOAD_PACKET_OCTET: u8 = 0x30;
pub(super) const STORE_WORD: u8 = 0x63;
pub(super) const STORE: u8 = 0x7b;
pub(super) const STORE_CONSTANT_WORD: u8 = 0x62;
pub(super) const IF_EQUAL: u8 = 0x15;
pub(super) const IF_UNEQUAL: u8 = 0x55;
pub(super) const IF_NOT_BELOW_REGISTER: u8 = 0x3d;
/// Opcode of a jump that is taken if the first operand is greater; the comparison is signed.
pub(super) const IF_GREATER: u8 = 0x65;
pub(super) const IF_GREATER_REGISTER: u8 = 0x6d;
pub(super) const JUMP: u8 = 0x05;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;

/// Number of the BPF helper function bpf_map_lookup_elem(). linux/bpf.h
const MAP_LOOKUP: i32 = 1;

/// A program under construction; register 6 holds its context.
#[derive(Debug)]
pub(super) struct BpfAssembler {
    instructions: Vec<u64>,
    /// The default return value of the program.
    default_value: i32,
    /// Indices of the jumps to the end of the program, where it returns its default value.
    jumps_to_end: Vec<usize>,
}

impl BpfAssembler {
    /// Creates an empty program with this default return value.
    pub(super) fn new(default_value: i32) -> Self {
        Self { instructions: Vec::new(), default_value, jumps_to_end: Vec::new() }.op(
            MOVE_REGISTER,
            6,
            1,
            0,
            0,
        )
    }

    /// Appends an instruction with the given fields.
    pub(super) fn op(mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) -> Self {
        let [low, high] = offset.to_le_bytes();
        let [a, b, c, d] = value.to_le_bytes();
        self.instructions.push(u64::from_ne_bytes([code, to | from << 4, low, high, a, b, c, d]));
        self
    }

    /// Appends the two instructions that load a constant into register `to`.
    pub(super) fn constant(self, to: u8, value: u64) -> Self {
        let (low, high) = (value as u32, (value >> 32) as u32);
        self.op(LOAD_CONSTANT, to, 0, 0, low.cast_signed()).op(0, 0, 0, 0, high.cast_signed())
    }

    /// Appends code that sets register 0 to the address of the only number in `map`.
    pub(super) fn look_up_number(self, map: &Map) -> Self {
        self.op(STORE_CONSTANT_WORD, 10, 0, -4, 0).look_up(map, -4)
    }

    /// Appends code that sets register 0 to the address of the value in `map` for the key at offset `key` of the
    /// stack. The program returns its default value if `map` lacks the key.
    pub(super) fn look_up(self, map: &Map, key: i16) -> Self {
        const MAP: u8 = 1;
        let code = self.op(LOAD_CONSTANT, 1, MAP, 0, map.descriptor()).op(0, 0, 0, 0, 0);
        let code = code.op(MOVE_REGISTER, 2, 10, 0, 0).op(ADD, 2, 0, 0, key.into());
        code.op(CALL, 0, 0, 0, MAP_LOOKUP).pass_if(IF_EQUAL, 0, 0)
    }

    /// Appends a step of SplitMix64 on register 1: r1 ^= r1 >> `by`.
    pub(super) fn xor_shift(self, by: i32) -> Self {
        self.op(MOVE_REGISTER, 2, 1, 0, 0).op(SHIFT_RIGHT, 2, 0, 0, by).op(XOR_REGISTER, 1, 2, 0, 0)
    }

    /// Appends a multiplication of register 1 by a constant. Clobbers register 2.
    pub(super) fn multiply(self, by: u64) -> Self {
        self.constant(2, by).op(MULTIPLY_REGISTER, 1, 2, 0, 0)
    }

    /// Appends code that limits a register to `max`. Clobbers register 2.
    pub(super) fn at_most(self, register: u8, max: u64) -> Self {
        let code = self.constant(2, max).op(IF_NOT_BELOW_REGISTER, 2, register, 1, 0);
        code.op(MOVE_REGISTER, register, 2, 0, 0)
    }

    /// Makes the program return its default value unless the value in register `one` is less than that in register
    /// `other`.
    pub(super) fn pass_unless_below(self, one: u8, other: u8) -> Self {
        self.pass_if(IF_NOT_BELOW_REGISTER, one, other)
    }

    /// Appends a jump to the end of the program, where it returns its default value.
    pub(super) fn pass(self) -> Self {
        self.pass_if(JUMP, 0, 0)
    }

    /// Appends a return of the program's default value.
    pub(super) fn pass_here(self) -> Self {
        let default_value = self.default_value;
        self.return_value(default_value)
    }

    /// Appends a return of the value `answer`.
    pub(super) fn return_value(self, answer: i32) -> Self {
        self.op(MOVE, 0, 0, 0, answer).op(EXIT, 0, 0, 0, 0)
    }

    /// Makes the program return its default value unless the register equals `value`.
    pub(super) fn pass_unless(mut self, register: u8, value: i32) -> Self {
        self.jumps_to_end.push(self.instructions.len());
        self.op(IF_UNEQUAL, register, 0, 0, value)
    }

    /// Makes the program return its default value if the jump with the opcode `condition` is taken for the registers
    /// `one` and `other`.
    pub(super) fn pass_if(mut self, condition: u8, one: u8, other: u8) -> Self {
        self.jumps_to_end.push(self.instructions.len());
        self.op(condition, one, other, 0, 0)
    }

    /// Returns the instructions, with the targets of all jumps to the end filled in. If there are no such jumps, no
    /// end is added, because the verifier rejects unreachable code.
    pub(super) fn finish(self) -> Result<Vec<u64>, GuestError> {
        if self.jumps_to_end.is_empty() {
            return Ok(self.instructions);
        }
        let end = self.instructions.len();
        let mut code = self;
        for at in std::mem::take(&mut code.jumps_to_end) {
            let distance = i16::try_from(end - at - 1)?;
            code.instructions[at] |= u64::from(distance.cast_unsigned()) << 16;
        }
        Ok(code.pass_here().instructions)
    }
}
