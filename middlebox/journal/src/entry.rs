//! Entries: what a change leaves behind in the journal.

use hol_simco::{AgentId, Change, Owner, Pid, Recorded};

/// The kinds of entries.
const HOLDS: u8 = 1;
const ENDED: u8 = 2;

/// What an entry says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// From now on the rule is this, whether it is new or replaces one with its PID.
    Holds(Recorded),
    /// The rule is no more.
    Ended(Pid),
}

/// Appends what a change comes to.
pub(crate) fn write(change: &Change, owner: &impl Fn(AgentId) -> Owner, out: &mut Vec<u8>) {
    match (&change.before, &change.after) {
        (_, Some(rule)) => write_as(HOLDS, out, |out| rule.record(&owner(rule.owner), out)),
        (Some(rule), None) => write_as(ENDED, out, |out| out.extend_from_slice(&rule.pid.0.to_be_bytes())),
        (None, None) => {}
    }
}

fn write_as(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, 0]);
    let begin = out.len();
    write(out);
    let length = u16::try_from(out.len() - begin).expect("a rule has less than 1000 octets");
    out[begin - 2..begin].copy_from_slice(&length.to_be_bytes());
}

/// The entries of a frame, each with its octets; `None` in place of one that breaks the format, and then no more.
pub(crate) fn parse_all(mut frame: &[u8]) -> impl Iterator<Item = Option<(Entry, &[u8])>> {
    std::iter::from_fn(move || {
        if frame.is_empty() {
            return None;
        }
        let (entry, rest) =
            parse(frame).map_or((None, &[][..]), |(entry, octets, rest)| (Some((entry, octets)), rest));
        frame = rest;
        Some(entry)
    })
}

/// The first entry, its octets, and the others.
fn parse(octets: &[u8]) -> Option<(Entry, &[u8], &[u8])> {
    let ([kind, l0, l1], rest) = octets.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes([*l0, *l1]));
    let (body, rest) = rest.split_at_checked(length)?;
    let entry = match *kind {
        HOLDS => Entry::Holds(Recorded::parse(body).ok()?),
        ENDED => Entry::Ended(Pid(u32::from_be_bytes(body.try_into().ok()?))),
        _ => return None,
    };
    Some((entry, &octets[..3 + length], rest))
}
