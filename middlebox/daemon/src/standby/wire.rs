//! The messages between active and standby.

use std::io::{self, Read, Write};
use std::time::Duration;

use hol_base::Time;

/// The maximum interval between messages of the active daemon.
pub(super) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// The time after which a silent peer counts as lost.
pub(super) const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which a silent peer counts as lost while a copy of all rules is written to the disk.
pub(super) const LONG_SILENCE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a message's content in octets, which is more than a turn of the daemon records.
const MAX_CONTENT: u32 = 64 << 20;

/// The version of the replication protocol: the first octet that the active daemon sends. Before there were versions,
/// the first octet was the kind of a message, which was never 5.
const VERSION: u8 = 5;

/// The kinds of messages that the active daemon sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// A part of the copy of all rules: entries of the journal.
    Snapshot = 1,
    /// The copy of all rules is complete. The content is the active daemon's time, by which rules expire.
    Complete = 2,
    /// Entries of a batch of changes.
    Batch = 3,
    /// The standby has received all batches. This is sent when it becomes true, and then once a second; the content is
    /// the active daemon's time.
    Heartbeat = 4,
}

/// Sends the version of the protocol, after which a copy begins.
pub(super) fn send_version(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&[VERSION])
}

/// Receives the version of the protocol; returns an error if it differs from [`VERSION`].
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

/// Sends a message whose content is the time `now`.
pub(super) fn send_time(out: &mut impl Write, kind: MessageKind, number: u64, now: Time) -> io::Result<()> {
    send(out, kind, number, &now.as_nanos().to_be_bytes())
}

/// Parses the content of a message that contains a time.
pub(super) fn time_of(content: &[u8]) -> io::Result<Time> {
    content.try_into().map(|octets| Time::from_nanos(u64::from_be_bytes(octets))).map_err(|_| malformed())
}

fn malformed() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the other middlebox sent an invalid message; install the same version of simcod on both",
    )
}

/// Receives a message; returns its kind, number and content.
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
