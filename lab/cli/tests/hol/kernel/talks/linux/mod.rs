//! Our SCTP and Linux's over UDP (RFC 6951) on loopback, with datagrams lost at a given rate.

mod process;
mod wire;

use std::path::Path;

use hol_base::Seed;

use super::table::{self, LOSSES, SIDES, Side, TALKS, Talk, Terms};
use process::Process;
pub use process::SOURCE;
pub use wire::SCTP_OVER_UDP;
use wire::Wire;

/// Returns a description of the first fault of a talk, if there is one.
fn first_fault(
    program: &Path,
    talk: &Talk,
    own_side: Side,
    terms: Terms,
    loss: f64,
    seed: Seed,
) -> Option<String> {
    let mut own = Wire::new(own_side, talk, terms, loss, seed);
    let mut peer = Process::start(program, own_side.other(), own.port(), talk, terms);
    let done = own.talk();
    let Some(peer_done) = peer.done() else { return Some(format!("the peer said nothing; {done:?}")) };
    let went_well = talk.went_well(own_side, &done) && talk.went_well(own_side.other(), &peer_done);
    let as_agreed = terms.interleaving == own.has_interleaved;
    (!went_well || !as_agreed)
        .then(|| format!("we {done:?}, the peer {peer_done:?}, I-DATA: {}", own.has_interleaved))
}

/// Runs all talks of the table, with us as client and as server, and with all loss rates. Talks that `cannot` names as
/// unsupported by the peer's `program` must fail.
pub fn every_talk_goes_well(program: &Path, terms: Terms, cannot: fn(&Talk, Terms) -> bool) {
    let (mut cases, mut problems) = (0, Vec::new());
    for (talk, side) in TALKS.iter().flat_map(|talk| SIDES.map(|side| (talk, side))) {
        for loss in LOSSES {
            let what = match (first_fault(program, talk, side, terms, loss, Seed(cases)), cannot(talk, terms))
            {
                (Some(_), true) => None,
                (None, true) => Some("it can now".to_owned()),
                (what, false) => what,
            };
            let name = side.name();
            problems
                .extend(what.map(|what| format!("{}, we are the {name}, {loss} lost: {what}", talk.name)));
            cases += 1;
        }
    }
    assert!(problems.is_empty(), "{} of {cases}:\n{}", problems.len(), problems.join("\n"));
}
