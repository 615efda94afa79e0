//! Enters the network namespace of an end.

use hol_scenario::Side;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::pair::Pair;

/// Moves the calling thread, which no other test uses, into the namespace of an end.
pub fn enter(pair: &Pair, end: Side) -> io::Result<()> {
    let [client, server] = &pair.names;
    let name = match end {
        Side::Client => client,
        Side::Server => server,
    };
    let namespace = File::open(format!("/run/netns/{name}"))?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
