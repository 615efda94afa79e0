//! ECN, which quinn-proto handles: RFC 9000 section 13.4, RFC 9002 section 7.1. It marks all packets as
//! ECN-capable until the peer's acknowledgments lack ECN counts.

use hol_wire::Ecn;
use quinn_proto::EcnCodepoint;

/// Converts the ECN codepoint of a received packet for quinn-proto.
pub(crate) fn to_quinn(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::Congested => Some(EcnCodepoint::Ce),
    }
}

/// Converts the ECN codepoint that quinn-proto sets in a packet to send.
pub(crate) fn from_quinn(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::Congested,
    }
}
