//! Marks, which quinn-proto counts and heeds: RFC 9000 section 13.4, RFC 9002 section 7.1. It has all its packets be marked until the
//! peer's acknowledgments say nothing of that.

use hol_wire::Ecn;
use quinn_proto::EcnCodepoint;

/// What comes.
pub(crate) fn heard(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::Congested => Some(EcnCodepoint::Ce),
    }
}

/// What leaves.
pub(crate) fn said(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::Congested,
    }
}
