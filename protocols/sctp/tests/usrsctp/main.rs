//! Our SCTP and usrsctp's, which nobody here wrote: who is server and who client, what is sent, who ends it and how. Without
//! `libusrsctp-dev` and a C compiler the test says so and passes, unless `HOL_REQUIRE_USRSCTP` is set.

#[path = "../talks/mod.rs"]
mod talks;
mod theirs;

use crate::talks::{Terms, every_talk_goes_well, make};
use crate::theirs::Theirs;

const LEAVES_UNSENT: bool = false;

fn with_usrsctp(terms: Terms) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("peer");
    if make(&program, include_bytes!("peer.c"), "usrsctp", "HOL_REQUIRE_USRSCTP") {
        every_talk_goes_well(terms, LEAVES_UNSENT, |side, talk, _| Theirs::new(&program, side, talk, terms));
    }
}

#[test]
fn usrsctp_understands_us_and_we_it() {
    with_usrsctp(Terms { interleaving: false, zero_checksum: false });
}

/// RFC 8260 section 2.2.1.
#[test]
fn usrsctp_and_we_interleave_messages() {
    with_usrsctp(Terms { interleaving: true, zero_checksum: false });
}
