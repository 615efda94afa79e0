//! The congestion control of an SCTP path. RFC 9260 section 7.2.
