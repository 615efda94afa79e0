//! Formats a QUIC datagram.

use std::fmt;

use super::{CleartextPacket, Datagram, Frame, PacketNumberSpace, packets};

impl fmt::Display for Datagram {
    /// Writes each packet with its number space, number and frames: `quic 1rtt 7 [ACK 4-6, STREAM 6 0:128 FIN]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("quic")?;
        for (packet, separator) in
            packets(&self.payload).zip([" ", "; "].into_iter().chain(std::iter::repeat("; ")))
        {
            match packet {
                Ok(packet) => write!(f, "{separator}{packet}")?,
                Err(problem) => write!(f, "{separator}({problem})")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for CleartextPacket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = match self.space {
            PacketNumberSpace::Initial => "initial",
            PacketNumberSpace::Handshake => "handshake",
            PacketNumberSpace::Data if self.is_zero_rtt => "0rtt",
            PacketNumberSpace::Data => "1rtt",
        };
        write!(f, "{space} {} [", self.number.number)?;
        for (at, frame) in self.frames().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            match frame {
                Ok(frame) => frame.fmt(f)?,
                Err(problem) => write!(f, "({problem})")?,
            }
        }
        f.write_str("]")
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padding(octets) => write!(f, "PADDING {octets}"),
            Self::Ping => f.write_str("PING"),
            Self::Ack { ranges } => {
                f.write_str("ACK")?;
                ranges.iter().try_for_each(|(low, high)| match low == high {
                    true => write!(f, " {low}"),
                    false => write!(f, " {low}-{high}"),
                })
            }
            Self::ResetStream { id, .. } => write!(f, "RESET_STREAM {id}"),
            Self::StopSending { id, .. } => write!(f, "STOP_SENDING {id}"),
            Self::Crypto { offset, length } => write!(f, "CRYPTO {offset}:{}", offset + length),
            Self::NewToken => f.write_str("NEW_TOKEN"),
            Self::Stream { id, offset, length, fin } => {
                write!(f, "STREAM {id} {offset}:{}{}", offset + length, if *fin { " FIN" } else { "" })
            }
            Self::MaxData(maximum) => write!(f, "MAX_DATA {maximum}"),
            Self::MaxStreamData(id, maximum) => write!(f, "MAX_STREAM_DATA {id} {maximum}"),
            Self::MaxStreams(_, maximum) => write!(f, "MAX_STREAMS {maximum}"),
            Self::DataBlocked(limit) => write!(f, "DATA_BLOCKED {limit}"),
            Self::StreamDataBlocked(id, limit) => write!(f, "STREAM_DATA_BLOCKED {id} {limit}"),
            Self::StreamsBlocked(_, limit) => write!(f, "STREAMS_BLOCKED {limit}"),
            Self::NewConnectionId { sequence, .. } => write!(f, "NEW_CONNECTION_ID {sequence}"),
            Self::RetireConnectionId(sequence) => write!(f, "RETIRE_CONNECTION_ID {sequence}"),
            Self::PathChallenge => f.write_str("PATH_CHALLENGE"),
            Self::PathResponse => f.write_str("PATH_RESPONSE"),
            Self::ConnectionClose { error, .. } => write!(f, "CONNECTION_CLOSE {error}"),
            Self::HandshakeDone => f.write_str("HANDSHAKE_DONE"),
            Self::Datagram(octets) => write!(f, "DATAGRAM {octets}"),
            Self::AckFrequency { threshold, max_ack_delay } => {
                write!(f, "ACK_FREQUENCY {threshold} {max_ack_delay}us")
            }
            Self::ImmediateAck => f.write_str("IMMEDIATE_ACK"),
        }
    }
}
