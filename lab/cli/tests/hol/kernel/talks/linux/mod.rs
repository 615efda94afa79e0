//! Our SCTP beside Linux', in datagrams of UDP (RFC 6951) over loopback, which are lost as told.

mod process;
mod wire;

use std::path::Path;

use hol_base::Seed;

use super::table::{self, LOSSES, SIDES, Side, TALKS, Talk, Terms};
use process::Process;
pub use process::SOURCE;
pub use wire::SCTP_OVER_UDP;
use wire::Wire;

/// What is not as it has to be.
fn wrong(program: &Path, talk: &Talk, own_side: Side, terms: Terms, loss: f64, seed: Seed) -> Option<String> {
    let mut own = Wire::new(own_side, talk, terms, loss, seed);
    let mut peer = Process::start(program, own_side.other(), own.port(), talk, terms);
    let done = own.talk();
    let Some(peer_done) = peer.done() else { return Some(format!("the peer said nothing; {done:?}")) };
    let went_well = talk.went_well(own_side, &done) && talk.went_well(own_side.other(), &peer_done);
    let as_agreed = terms.interleaving == own.has_interleaved;
    (!went_well || !as_agreed)
        .then(|| format!("we {done:?}, the peer {peer_done:?}, I-DATA: {}", own.has_interleaved))
}

/// All of the table, with us as client and as server, and over all losses. What the peer's `program` is known not to do has to go wrong.
pub fn every_talk_goes_well(program: &Path, terms: Terms, cannot: fn(&Talk, Terms) -> bool) {
    let (mut cases, mut problems) = (0, Vec::new());
    for (talk, side) in TALKS.iter().flat_map(|talk| SIDES.map(|side| (talk, side))) {
        for loss in LOSSES {
            let what = match (wrong(program, talk, side, terms, loss, Seed(cases)), cannot(talk, terms)) {
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
