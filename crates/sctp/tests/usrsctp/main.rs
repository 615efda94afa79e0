//! Our SCTP and usrsctp's, which nobody here wrote, over UDP on loopback, whose packets are lost as told: who is server and who client, what
//! is sent, who ends it and how. Without `libusrsctp-dev` and a C compiler the test says so and passes, unless `HOL_REQUIRE_USRSCTP` is set.

#[path = "../over_udp/mod.rs"]
mod over_udp;
#[path = "../talks/mod.rs"]
mod talks;

use over_udp::{Peer, Port, every_talk_goes_well, make};
use talks::Terms;

fn with_usrsctp(terms: Terms) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer { program: dir.path().join("peer"), port: Port::OfEach, cannot: |_, _| false };
    if make(&peer.program, "usrsctp", "HOL_REQUIRE_USRSCTP") {
        every_talk_goes_well(&peer, terms);
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
