//! Tests our SCTP against usrsctp: as server and as client, with several workloads and ways to end.

mod theirs;

use crate::sender;
use crate::talks::{Side, Terms, every_talk_goes_well, make};
use theirs::Theirs;

const LEAVES_UNSENT: bool = false;

fn with_usrsctp(terms: Terms) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("peer");
    make(&program, include_bytes!("peer.c"), "usrsctp");
    every_talk_goes_well(terms, LEAVES_UNSENT, |side, talk, _| Theirs::new(&program, side, talk, terms));
}

#[test]
#[ignore = "needs libusrsctp-dev and gcc"]
fn usrsctp_interoperates_with_our_endpoint() {
    with_usrsctp(Terms { interleaving: false, zero_checksum: false });
}

/// RFC 8260 section 2.2.1.
#[test]
#[ignore = "needs libusrsctp-dev and gcc"]
fn usrsctp_interleaves_messages_with_our_endpoint() {
    with_usrsctp(Terms { interleaving: true, zero_checksum: false });
}

mod nightly {
    use super::*;

    /// `stacks/usrsctp.toml`.
    #[test]
    #[ignore = "needs libusrsctp-dev and gcc"]
    fn our_stack_sends_as_usrsctp_does() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("peer");
        make(&program, include_bytes!("peer.c"), "usrsctp");
        let library = |_| Theirs::with_defaults(&program, Side::Client);
        sender::compare("usrsctp", &hol_sctp::Config::usrsctp(), library);
    }
}
