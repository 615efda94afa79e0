//! Journal entries: the result of a change.

use hol_simco::{AgentId, Change, Owner, Pid, RecordedRule};

/// The kinds of entries: a current rule, or an ended one.
const CURRENT_RULE: u8 = 1;
const ENDED_RULE: u8 = 2;

/// An entry of the journal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The state of a rule that is new or has changed.
    Current(RecordedRule),
    /// The end of the rule with this PID.
    Ended(Pid),
}

/// Encodes the entry of a change and appends it to `out`.
pub(crate) fn write(change: &Change, owner: &impl Fn(AgentId) -> Owner, out: &mut Vec<u8>) {
    match (&change.before, &change.after) {
        (_, Some(rule)) => write_with_length(CURRENT_RULE, out, |out| rule.record(&owner(rule.owner), out)),
        (Some(rule), None) => {
            write_with_length(ENDED_RULE, out, |out| out.extend_from_slice(&rule.pid.0.to_be_bytes()));
        }
        (None, None) => {}
    }
}

/// Encodes the entry of a current rule and appends it to `out`.
pub(crate) fn write_rule(recorded: &RecordedRule, out: &mut Vec<u8>) {
    write_with_length(CURRENT_RULE, out, |out| {
        recorded.rule.record(&Owner::new(recorded.owner.clone()), out);
    });
}

fn write_with_length(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, 0]);
    let begin = out.len();
    write(out);
    let length = u16::try_from(out.len() - begin).expect("a rule has less than 1000 octets");
    out[begin - 2..begin].copy_from_slice(&length.to_be_bytes());
}

/// Parses the entries of a frame, and returns each with its octets; `None` for a malformed entry, which is the last.
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

/// Parses the first entry. Returns the entry, its octets, and the remaining octets.
fn parse(octets: &[u8]) -> Option<(Entry, &[u8], &[u8])> {
    let ([kind, l0, l1], rest) = octets.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes([*l0, *l1]));
    let (body, rest) = rest.split_at_checked(length)?;
    let entry = match *kind {
        CURRENT_RULE => Entry::Current(RecordedRule::parse(body).ok()?),
        ENDED_RULE => Entry::Ended(Pid(u32::from_be_bytes(body.try_into().ok()?))),
        _ => return None,
    };
    Some((entry, &octets[..3 + length], rest))
}
