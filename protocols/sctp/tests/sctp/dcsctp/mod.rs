//! Tests our SCTP against the crate dcsctp, a port of WebRTC's SCTP: as server and as client, with several workloads
//! and ways to end.

mod theirs;

use dcsctp::api::{
    Options, ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_LOWER_LAYER_DTLS as OVER_DTLS,
    ZERO_CHECKSUM_ALTERNATE_ERROR_DETECTION_METHOD_NONE as NO_METHOD,
};

use crate::sender;
use crate::talks::{Side, Terms, every_talk_goes_well};
use theirs::Theirs;

/// dcsctp may send SHUTDOWN while messages still wait in its queues, although an association stays in
/// SHUTDOWN-PENDING until all data are acknowledged (RFC 9260 section 9.2).
const LEAVES_UNSENT: bool = true;

fn with_dcsctp(terms: Terms) {
    let options = Options {
        enable_message_interleaving: terms.interleaving,
        zero_checksum_alternate_error_detection_method: if terms.zero_checksum {
            OVER_DTLS
        } else {
            NO_METHOD
        },
        ..Options::default()
    };
    every_talk_goes_well(terms, LEAVES_UNSENT, |side, talk, seed| {
        fastrand::seed(seed.derive("dcsctp").rng().next_u64());
        Theirs::new(side, talk, &options)
    });
}

#[test]
fn dcsctp_interoperates_with_our_endpoint() {
    with_dcsctp(Terms { interleaving: false, zero_checksum: false });
}

/// RFC 8260 section 2.2.1.
#[test]
fn dcsctp_interleaves_messages_with_our_endpoint() {
    with_dcsctp(Terms { interleaving: true, zero_checksum: false });
}

/// RFC 9653 section 5.
#[test]
fn dcsctp_omits_checksums_with_our_endpoint() {
    with_dcsctp(Terms { interleaving: false, zero_checksum: true });
}

mod nightly {
    use super::*;

    /// `stacks/dcsctp.toml`.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn our_stack_sends_as_dcsctp_does() {
        sender::compare("dcsctp", &hol_sctp::Config::dcsctp(), |seed| {
            fastrand::seed(seed.derive("dcsctp").rng().next_u64());
            Theirs::with_defaults(Side::Client)
        });
    }
}
