//! Formats SCTP packets like tcpdump.

use std::fmt;

use super::{Chunk, Data, DataFlags, IData, Init, Packet, Sack};

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sctp")?;
        let mut numbered = self.chunks.iter().zip(1..);
        numbered.try_for_each(|(chunk, number)| write!(f, " ({number}) {chunk}"))
    }
}

impl fmt::Display for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(data) => write!(f, "{data}"),
            Self::Init(init) => write!(f, "[INIT] {init}"),
            Self::InitAck(init) => write!(f, "[INIT ACK] {init}"),
            Self::Sack(sack) => write!(f, "{sack}"),
            Self::Heartbeat(_) => write!(f, "[HB REQ]"),
            Self::HeartbeatAck(_) => write!(f, "[HB ACK]"),
            Self::Abort { causes, .. } => write!(f, "[ABORT] {causes:?}"),
            Self::Shutdown { cumulative_tsn } => write!(f, "[SHUTDOWN] [cum ack {cumulative_tsn}]"),
            Self::ShutdownAck => write!(f, "[SHUTDOWN ACK]"),
            Self::Error(causes) => write!(f, "[OP ERR] {causes:?}"),
            Self::CookieEcho(_) => write!(f, "[COOKIE ECHO]"),
            Self::CookieAck => write!(f, "[COOKIE ACK]"),
            Self::Ecne(tsn) => write!(f, "[ECN ECHO] [TSN: {tsn}]"),
            Self::Cwr(tsn) => write!(f, "[CWR] [TSN: {tsn}]"),
            Self::ShutdownComplete { .. } => write!(f, "[SHUTDOWN COMPLETE]"),
            Self::Auth(_) => write!(f, "[AUTH]"),
            Self::Asconf(asconf) => write!(f, "[ASCONF {}] {:?}", asconf.serial, asconf.requests),
            Self::AsconfAck(ack) => write!(f, "[ASCONF ACK {}] {:?}", ack.serial, ack.responses),
            Self::ForwardTsn(forward) => write!(f, "[FORWARD CUM TSN {}]", forward.new_cumulative_tsn),
            Self::IData(data) => write!(f, "{data}"),
            Self::IForwardTsn(forward) => write!(f, "[I-FORWARD-TSN {}]", forward.new_cumulative_tsn),
            Self::Reconfig(parameters) => write!(f, "[RE-CONFIG] {parameters:?}"),
            Self::Unknown { kind, .. } => write!(f, "[unknown chunk type {kind:#04x}]"),
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flags, tsn, stream, ssn, ppid, payload, .. } = self;
        write!(f, "[DATA] {flags} [TSN: {tsn}] [SID: {stream}] [SSEQ {ssn}] [PPID {ppid:#x}] ")?;
        write!(f, "[length {}]", payload.len())
    }
}

impl fmt::Display for IData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flags, tsn, stream, mid, fsn, ppid, payload, .. } = self;
        write!(f, "[I-DATA] {flags} [TSN: {tsn}] [SID: {stream}] [MID {mid}] ")?;
        if flags.contains(DataFlags::BEGIN) {
            write!(f, "[PPID {ppid:#x}] ")?;
        } else {
            write!(f, "[FSN {fsn}] ")?;
        }
        write!(f, "[length {}]", payload.len())
    }
}

impl fmt::Display for DataFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LETTERS: [(DataFlags, &str); 4] = [
            (DataFlags::IMMEDIATE, "(I)"),
            (DataFlags::UNORDERED, "(U)"),
            (DataFlags::BEGIN, "(B)"),
            (DataFlags::END, "(E)"),
        ];
        let mut set = LETTERS.iter().filter(|(flag, _)| self.contains(*flag));
        set.try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl fmt::Display for Init {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn, parameters: _ } =
            self;
        write!(f, "[init tag: {initiate_tag}] [rwnd: {a_rwnd}] [OS: {outbound_streams}] ")?;
        write!(f, "[MIS: {inbound_streams}] [init TSN: {initial_tsn}]")
    }
}

impl fmt::Display for Sack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cumulative_tsn, a_rwnd, gaps, duplicates } = self;
        write!(f, "[SACK] [cum ack {cumulative_tsn}] [a_rwnd {a_rwnd}]")?;
        for gap in gaps {
            write!(
                f,
                " [gap {}-{}]",
                *cumulative_tsn + u32::from(gap.start),
                *cumulative_tsn + u32::from(gap.end)
            )?;
        }
        duplicates.iter().try_for_each(|tsn| write!(f, " [dup {tsn}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fsn, GapAckBlock, Mid, Ssn, Tsn};
    use super::*;
    use crate::SendTimes;
    use bytes::Bytes;
    use smallvec::smallvec;

    #[test]
    fn a_bundle_prints_on_one_line() {
        let sack = Sack {
            cumulative_tsn: Tsn(10),
            a_rwnd: 65536,
            gaps: smallvec![GapAckBlock { start: 2, end: 3 }],
            duplicates: smallvec![Tsn(9)],
        };
        let data = Data {
            flags: DataFlags::BEGIN | DataFlags::END,
            tsn: Tsn(4),
            stream: 1,
            ssn: Ssn(2),
            ppid: 15,
            payload: Bytes::from_static(b"abc"),
            stamp: SendTimes::default(),
        };
        let packet = Packet {
            source_port: 1,
            destination_port: 2,
            verification_tag: 3,
            zero_checksum: false,
            chunks: smallvec![Chunk::Sack(sack), Chunk::Data(data)],
        };
        let expected = "sctp (1) [SACK] [cum ack 10] [a_rwnd 65536] [gap 12-13] [dup 9] \
                        (2) [DATA] (B)(E) [TSN: 4] [SID: 1] [SSEQ 2] [PPID 0xf] [length 3]";
        assert_eq!(packet.to_string(), expected);
    }

    #[test]
    fn i_data_prints_mid_and_fsn() {
        let (tsn, payload) = (Tsn(4), Bytes::from_static(b"abc"));
        let (mid, fsn, stamp) = (Mid(5), Fsn(6), SendTimes::default());
        let data = IData { flags: DataFlags::END, tsn, stream: 1, mid, fsn, ppid: 0, payload, stamp };
        assert_eq!(data.to_string(), "[I-DATA] (E) [TSN: 4] [SID: 1] [MID 5] [FSN 6] [length 3]");
        let first = IData { flags: DataFlags::BEGIN, fsn: Fsn(0), ppid: 15, ..data };
        assert_eq!(first.to_string(), "[I-DATA] (B) [TSN: 4] [SID: 1] [MID 5] [PPID 0xf] [length 3]");
    }
}
