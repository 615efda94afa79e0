//! Our SCTP with Linux's, in the same talks as with usrsctp and dcsctp; in User-Mode Linux, because this machine's
//! kernel may lack SCTP.

mod linux;
#[path = "../../../../../../protocols/sctp/tests/talks/mod.rs"]
mod table;

use std::path::Path;
use std::{env, fs};

use crate::program::{code, hol};
use linux::{SCTP_OVER_UDP, SOURCE, every_talk_goes_well};
use table::{Talk, Terms, make};

/// Environment variable with the path of the peer's program, set if this test runs in the guest.
const PEER: &str = "HOL_PEER";
/// On loopback SCTP passes UDP trains of packets that are not segmented again, unless a train is limited to one packet.
const LOOPBACK: &str = "ip link set lo up mtu 1500 gso_max_size 1500";
const LINK: &str = "tc qdisc add dev lo root netem delay 5ms rate 100mbit limit 10000";

/// Returns whether Linux 6.12 does not support a talk.
///
/// It counts the fragments of an interleaved message from the second one, which has the number 0 there
/// (`sctp_chunk_assign_mid`, `sctp_intl_retrieve_reassembled`) and 1 in RFC 8260 section 2.1: it understands only its
/// own messages.
fn cannot(talk: &Talk, terms: Terms) -> bool {
    const FRAGMENT: usize = 1400;
    terms.interleaving && talk.size > FRAGMENT
}

/// Runs `test`, this test, again in a guest whose Linux has SCTP.
fn with_linux(test: &str, terms: Terms) {
    match env::var_os(PEER) {
        Some(program) => every_talk_goes_well(program.as_ref(), terms, cannot),
        None => in_a_guest(test),
    }
}

fn in_a_guest(test: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (peer, out) = (dir.path().join("peer"), dir.path().join("out"));
    make(&peer, SOURCE, "sctp");
    let settings = [("udp_port", SCTP_OVER_UDP), ("reconf_enable", 1), ("intl_enable", 1)]
        .map(|(name, value)| format!("echo {value} >/proc/sys/net/sctp/{name}"))
        .join(" && ");
    let (peer, itself) = (peer.display(), env::current_exe().unwrap());
    let again = format!(
        "{PEER}={peer} {} --exact {test} --include-ignored --nocapture >/out/said 2>&1",
        itself.display()
    );
    let line = format!("{LOOPBACK} && {LINK} && {settings} && {again}");
    let fixed = ["exec", "tcp", "--world=kernel:uml", "--repetitions=1", "--out", out.to_str().unwrap()];
    let run = hol(Path::new("."), &[&fixed[..], &["--", "sh", "-c", &line]].concat());
    let node = fs::read_dir(out).into_iter().flatten().next().map(|point| point.unwrap().path());
    let said = node.and_then(|node| fs::read_to_string(node.join("client/said")).ok()).unwrap_or_default();
    assert!(code(&run) == 0 && said.contains("1 passed"), "{run:?}, and the guest said:\n{said}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), libsctp-dev, gcc, iproute2 and mkfs.erofs (erofs-utils)"]
fn linux_and_the_model_complete_all_talks() {
    with_linux(
        "kernel::talks::linux_and_the_model_complete_all_talks",
        Terms { interleaving: false, zero_checksum: false },
    );
}

/// RFC 8260 section 2.2.1.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), libsctp-dev, gcc, iproute2 and mkfs.erofs (erofs-utils)"]
fn linux_and_the_model_interleave_messages() {
    with_linux(
        "kernel::talks::linux_and_the_model_interleave_messages",
        Terms { interleaving: true, zero_checksum: false },
    );
}
