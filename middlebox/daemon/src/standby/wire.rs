//! The messages between active and standby.

use std::io::{self, Read, Write};
use std::time::Duration;

use hol_base::Time;

/// The maximum interval between messages of the active side.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a side may be silent.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a side may be silent while a copy of all rules is written to the disk.
pub(super) const LONG_SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of octets of the content of a message: more than a turn of a middlebox records.
const MAX_CONTENT: u32 = 64 << 20;

/// The version of this protocol, the first octet that the active side sends. Before versions were introduced, the first
/// octet was the kind of a message, which was never 5.
const VERSION: u8 = 5;

/// The kinds of messages that the active side sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// Entries of the rules of a new copy.
    Snapshot = 1,
    /// The new copy is complete. Contains the active side's time, by which rules end.
    Complete = 2,
    /// Entries of a batch.
    Batch = 3,
    /// The standby has all batches. Sent when this becomes true, and then once a second; also contains the time.
    Heartbeat = 4,
}

/// Sends the version, which begins a copy.
pub(super) fn send_version(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[VERSION])
}

/// Receives the version; fails if it differs from this one.
pub(super) fn receive_version(from: &mut impl Read) -> io::Result<()> {
    let mut version = [0];
    from.read_exact(&mut version)?;
    let other = |version| {
        format!(
            "the other middlebox uses version {version} of the replication protocol, but this one version {VERSION}; install the same \
            version of simcod on both"
        )
    };
    match version {
        [VERSION] => Ok(()),
        [version] => Err(io::Error::new(io::ErrorKind::InvalidData, other(version))),
    }
}

pub(super) fn send(out: &mut impl Write, kind: MessageKind, number: u64, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).ok().filter(|length| *length <= MAX_CONTENT);
    let length = length.ok_or_else(|| io::Error::other("a batch is too large to be copied"))?;
    let mut head = [0; 13];
    head[0] = kind as u8;
    head[1..9].copy_from_slice(&number.to_be_bytes());
    head[9..].copy_from_slice(&length.to_be_bytes());
    out.write_all(&head)?;
    out.write_all(content)
}

/// Sends a message that contains the time.
pub(super) fn send_time(out: &mut impl Write, kind: MessageKind, number: u64, now: Time) -> io::Result<()> {
    send(out, kind, number, &now.as_nanos().to_be_bytes())
}

/// Returns the time in the content of a message.
pub(super) fn time_of(content: &[u8]) -> io::Result<Time> {
    content.try_into().map(|octets| Time::from_nanos(u64::from_be_bytes(octets))).map_err(|_| malformed())
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other middlebox sent an invalid message; install the same version of simcod on both",
    )
}

/// Returns the kind, the number and the content of the next message.
pub(super) fn receive(from: &mut impl Read) -> io::Result<(MessageKind, u64, Vec<u8>)> {
    let mut head = [0; 13];
    from.read_exact(&mut head)?;
    let kinds = [MessageKind::Snapshot, MessageKind::Complete, MessageKind::Batch, MessageKind::Heartbeat];
    let kind = kinds.into_iter().find(|kind| *kind as u8 == head[0]).ok_or_else(malformed)?;
    let number = u64::from_be_bytes(head[1..9].try_into().expect("the slice has eight octets"));
    let length = u32::from_be_bytes(head[9..].try_into().expect("the slice has four octets"));
    if length > MAX_CONTENT {
        return Err(malformed());
    }
    let mut content = Vec::new();
    // Memory is allocated as octets arrive, not by the announced length.
    let read = from.take(length.into()).read_to_end(&mut content)?;
    if read == length as usize {
        Ok((kind, number, content))
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_sending_and_invalid_ones_are_refused() {
        let mut octets = Vec::new();
        send_version(&mut octets).unwrap();
        receive_version(&mut &octets[..]).unwrap();
        octets.clear();
        send(&mut octets, MessageKind::Batch, 7, b"entries").unwrap();
        send(&mut octets, MessageKind::Heartbeat, 8, b"").unwrap();
        let mut from = &octets[..];
        assert_eq!(receive(&mut from).unwrap(), (MessageKind::Batch, 7, b"entries".to_vec()));
        assert_eq!(receive(&mut from).unwrap(), (MessageKind::Heartbeat, 8, Vec::new()));
        assert!(from.is_empty());
        for end in 0..20 {
            assert!(receive(&mut &octets[..end]).is_err(), "{end}");
        }
        let error = receive_version(&mut &octets[..]).unwrap_err().to_string();
        assert!(error.contains("uses version 3 of"), "an older version begins with a message: {error}");
        let mut other = octets.clone();
        other[0] = 9;
        assert!(receive(&mut &other[..]).is_err());
        let mut long = octets;
        long[9] = 0xff;
        assert!(receive(&mut &long[..]).is_err());
    }
}
