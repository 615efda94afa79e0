//! BPF programs of tc for effects that queueing disciplines lack. RFC 9669.

use hol_base::Ratio;
use hol_network::TokenBucket;

use super::bpf::{Map, Program, Purpose};
use super::bpf_assembler::*;
use super::{GuestError, waker};

/// Verdicts of a tc program (linux/pkt_cls.h): `TC_ACT_UNSPEC` leaves the packet to the default action, `TC_ACT_SHOT` drops it.
const TC_ACT_UNSPEC: i32 = -1;
const TC_ACT_SHOT: i32 = 2;
/// Offsets of fields in `struct __sk_buff` of linux/bpf.h.
const LENGTH_OFFSET: i16 = 0;
const MARK_OFFSET: i16 = 8;
const PROTOCOL_OFFSET: i16 = 16;
const INTERFACE_OFFSET: i16 = 40;
/// EtherType of IPv6, in network byte order. linux/if_ether.h
const IPV6: i32 = 0xdd86;
/// Offset of the field Next Header in an IPv6 packet, relative to SKF_NET_OFF of linux/filter.h. Its value 0 means
/// hop-by-hop options. RFC 8200 section 3.
const NEXT_HEADER: i32 = -0x10_0000 + 6;
const ICMPV6: i32 = 58;
/// Numbers of BPF helper functions. linux/bpf.h
const KTIME_GET_NS: i32 = 5;
const CLONE_REDIRECT: i32 = 13;
const REDIRECT: i32 = 23;
/// Number of octets by which a packet's length in `struct __sk_buff` exceeds the length of the IP packet.
const ETHERNET_HEADER: i32 = 14;
/// The mark of a duplicated packet, which must not be duplicated again.
const COPY_MARK: i32 = 1;
/// The mark of a packet that has returned from the detour through the queue's own interface.
pub(super) const RETURNED_MARK: i32 = 2;

/// Limits a queue to `limit` octets by two filters, one before the transmitter and one after it.
pub(super) fn octet_limit_programs(limit: u64) -> Result<[Program; 2], GuestError> {
    let taken = Map::new_number(0)?;
    // The packet's own octets (r1) and those in the queue (r2). An empty queue accepts a packet of any length.
    let admit = code().look_up_number(&taken).op(LOAD_WORD, 1, 6, LENGTH_OFFSET, 0).op(
        ADD,
        1,
        0,
        0,
        -ETHERNET_HEADER,
    );
    let admit = admit.op(LOAD, 2, 0, 0, 0).op(IF_EQUAL, 2, 0, 4, 0);
    let admit =
        admit.constant(3, limit).op(SUBTRACT_REGISTER, 3, 1, 0, 0).op(IF_GREATER_REGISTER, 2, 3, 3, 0);
    let admit = admit.op(ADD_REGISTER, 2, 1, 0, 0).op(STORE, 0, 2, 0, 0).pass().drop_packet();
    let release = code().look_up_number(&taken).op(LOAD_WORD, 1, 6, LENGTH_OFFSET, 0).op(
        ADD,
        1,
        0,
        0,
        -ETHERNET_HEADER,
    );
    let release = release.op(LOAD, 2, 0, 0, 0).op(SUBTRACT_REGISTER, 2, 1, 0, 0).op(STORE, 0, 2, 0, 0);
    Ok([admit.load()?, release.load()?])
}

/// Drops the packets with these numbers, counted from 1. Packets of neighbour discovery and MLD are not counted,
/// because the model does not send them.
pub(super) fn drop_program(numbers: &[u64]) -> Result<Program, GuestError> {
    let (count, wanted) = (Map::new_number(0)?, Map::new_set(numbers)?);
    let code = code().op(LOAD_WORD, 1, 6, PROTOCOL_OFFSET, 0).op(IF_UNEQUAL, 1, 0, 4, IPV6);
    let code = code.op(LOAD_PACKET_OCTET, 0, 0, 0, NEXT_HEADER).pass_if(IF_EQUAL, 0, 0);
    let code = code.op(ADD, 0, 0, 0, -ICMPV6).pass_if(IF_EQUAL, 0, 0);
    let code = code.look_up_number(&count).op(LOAD, 1, 0, 0, 0).op(ADD, 1, 0, 0, 1).op(STORE, 0, 1, 0, 0);
    let code = code.op(STORE, 10, 1, -8, 0).look_up(&wanted, -8);
    code.drop_packet().load()
}

/// Drops the frames that are sent only to make an interface's disciplines send packets. The kernel dequeues after
/// each frame, even after one that is dropped (net/core/dev.c, `__dev_xmit_skb`).
pub(super) fn wake_frame_drop_program() -> Result<Program, GuestError> {
    let code = code().op(LOAD_WORD, 1, 6, PROTOCOL_OFFSET, 0);
    code.pass_unless(1, waker::ETHER_TYPE.to_be().into()).drop_packet().load()
}

/// Drops a packet if the token bucket has too few tokens, by the same arithmetic as the model.
pub(super) fn policer_program(bucket: TokenBucket) -> Result<Program, GuestError> {
    let (tokens, since) = (Map::new_number(bucket.capacity())?, Map::new_number(0)?);
    // The address of the tokens (r7), and the time since they were counted (r0), at most the time to fill the bucket.
    let code = code().look_up_number(&tokens).op(MOVE_REGISTER, 7, 0, 0, 0).look_up_number(&since);
    let code = code.op(MOVE_REGISTER, 8, 0, 0, 0).op(CALL, 0, 0, 0, KTIME_GET_NS);
    let code = code.op(LOAD, 1, 8, 0, 0).op(STORE, 8, 0, 0, 0).op(SUBTRACT_REGISTER, 0, 1, 0, 0);
    let code = code.at_most(0, bucket.fill_time());
    // The current tokens (r0), and those that the packet takes (r1).
    let code = code
        .constant(2, bucket.parts_per_ns())
        .op(MULTIPLY_REGISTER, 0, 2, 0, 0)
        .at_most(0, bucket.capacity());
    let code = code.op(LOAD, 1, 7, 0, 0).op(ADD_REGISTER, 0, 1, 0, 0).at_most(0, bucket.capacity());
    let code = code.op(LOAD_WORD, 1, 6, LENGTH_OFFSET, 0).op(ADD, 1, 0, 0, -ETHERNET_HEADER);
    let code = code.constant(2, TokenBucket::PARTS_PER_TOKEN).op(MULTIPLY_REGISTER, 1, 2, 0, 0);
    let code = code.op(IF_NOT_BELOW_REGISTER, 0, 1, 3, 0).op(STORE, 7, 0, 0, 0).drop_packet();
    code.op(SUBTRACT_REGISTER, 0, 1, 0, 0).op(STORE, 7, 0, 0, 0).load()
}

/// Duplicates a random share of the packets. Packet number k uses the k-th number of a SplitMix64 generator.
pub(super) fn duplication_program(share: Ratio, seed: u64) -> Result<Program, GuestError> {
    let state = Map::new_number(seed)?;
    let threshold = (share.value() * 2_f64.powi(32)).round() as u64;
    let code = code().op(LOAD_WORD, 1, 6, MARK_OFFSET, 0).op(IF_UNEQUAL, 1, 0, 4, COPY_MARK);
    let code = code.op(MOVE, 1, 0, 0, 0).op(STORE_WORD, 6, 1, MARK_OFFSET, 0).pass_here();
    let code = code.look_up_number(&state).op(LOAD, 1, 0, 0, 0).constant(2, 0x9e37_79b9_7f4a_7c15);
    let code = code.op(ADD_REGISTER, 1, 2, 0, 0).op(STORE, 0, 1, 0, 0);
    let code = code
        .xor_shift(30)
        .multiply(0xbf58_476d_1ce4_e5b9)
        .xor_shift(27)
        .multiply(0x94d0_49bb_1331_11eb)
        .xor_shift(31);
    let code = code.op(SHIFT_RIGHT, 1, 0, 0, 32).constant(2, threshold);
    let code = code.pass_unless_below(1, 2).op(MOVE, 1, 0, 0, COPY_MARK).op(STORE_WORD, 6, 1, MARK_OFFSET, 0);
    let code =
        code.op(MOVE_REGISTER, 1, 6, 0, 0).op(LOAD_WORD, 2, 6, INTERFACE_OFFSET, 0).op(MOVE, 3, 0, 0, 1);
    let code =
        code.op(CALL, 0, 0, 0, CLONE_REDIRECT).op(MOVE, 1, 0, 0, 0).op(STORE_WORD, 6, 1, MARK_OFFSET, 0);
    code.load()
}

/// Redirects packets that leave an interface to the interface `away`, except for packets that have returned from
/// the detour.
pub(super) fn redirect_to_detour(away: u32) -> Result<Program, GuestError> {
    let code = code().op(LOAD_WORD, 1, 6, MARK_OFFSET, 0).op(IF_UNEQUAL, 1, 0, 3, RETURNED_MARK);
    let code = code.op(MOVE, 1, 0, 0, 0).op(STORE_WORD, 6, 1, MARK_OFFSET, 0).pass();
    code.redirect(away).load()
}

/// Redirects packets that arrive from the detour to the interface through which they were to leave.
pub(super) fn return_from_detour(to: u32) -> Result<Program, GuestError> {
    let code = code().op(MOVE, 1, 0, 0, RETURNED_MARK).op(STORE_WORD, 6, 1, MARK_OFFSET, 0);
    code.redirect(to).load()
}

/// Begins a filter program: register 6 contains the packet, which passes by default.
fn code() -> BpfAssembler {
    BpfAssembler::new(TC_ACT_UNSPEC)
}

impl BpfAssembler {
    fn drop_packet(self) -> Self {
        self.return_value(TC_ACT_SHOT)
    }

    /// Appends the redirection of the packet to the interface with this index.
    fn redirect(self, interface: u32) -> Self {
        let code = self.op(MOVE, 1, 0, 0, interface.cast_signed()).op(MOVE, 2, 0, 0, 0);
        code.op(CALL, 0, 0, 0, REDIRECT).op(EXIT, 0, 0, 0, 0)
    }

    fn load(self) -> Result<Program, GuestError> {
        Program::load(Purpose::Packets, &self.finish()?)
    }
}
