//! The guest's mailbox: memory that its kernel does not use. The guest writes its results there, then pauses the machine, and the host
//! reads the memory. No device is involved, so the host's speed has no effect on the guest.

use std::fmt;

/// The address of the mailbox in the guest's physical memory.
pub(crate) const ADDRESS: u64 = 256 << 20;
/// The size of the mailbox in octets.
pub(crate) const SIZE: u64 = 64 << 20;

/// Length of the mailbox's header in octets: a magic number, and the lengths of the five parts.
pub(crate) const HEADER_LENGTH: usize = 48;
const MAGIC: u64 = u64::from_le_bytes(*b"hol-mail");

/// The content of the mailbox: the results that a guest returns when it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MailboxContent {
    /// The [`JobResult`](crate::job::JobResult) as JSON.
    pub(crate) result_json: Vec<u8>,
    /// The records of all messages, packed.
    pub(crate) records: Vec<u8>,
    /// The captured packets, packed; empty unless the job requests a capture.
    pub(crate) packets: Vec<u8>,
    /// Files that programs wrote for the user, as a tar archive.
    pub(crate) files: Vec<u8>,
    /// The samples of the time series, packed; empty unless the job requests a time series.
    pub(crate) samples: Vec<u8>,
}

/// The header of the mailbox: the lengths of its parts in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    result_json: u64,
    records: u64,
    packets: u64,
    files: u64,
    samples: u64,
}

/// Why a mailbox cannot be read or written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MailboxError {
    Missing,
    TooLong(usize),
}

impl fmt::Display for MailboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the guest ended without a result"),
            Self::TooLong(length) => {
                let max = SIZE >> 20;
                write!(
                    f,
                    "the result of the guest has {length} octets, but the maximum is {max} MiB; run fewer messages per run, or set a longer interval of `series`"
                )
            }
        }
    }
}

impl MailboxContent {
    /// Returns the octets of header and parts, to be written at [`ADDRESS`].
    pub(crate) fn to_octets(&self) -> Result<Vec<u8>, MailboxError> {
        let parts = [&self.result_json, &self.records, &self.packets, &self.files, &self.samples];
        let lengths = parts.map(|part| part.len() as u64);
        let length = HEADER_LENGTH + parts.iter().map(|part| part.len()).sum::<usize>();
        if length as u64 > SIZE {
            return Err(MailboxError::TooLong(length));
        }
        let head = [[MAGIC].as_slice(), &lengths].concat();
        let mut octets = Vec::with_capacity(length);
        head.iter().for_each(|number| octets.extend_from_slice(&number.to_le_bytes()));
        parts.into_iter().for_each(|part| octets.extend_from_slice(part));
        Ok(octets)
    }

    /// Reads the octets of [`MailboxContent::to_octets`].
    pub(crate) fn from_octets(octets: &[u8]) -> Result<Self, MailboxError> {
        Header::parse(octets)?.split(octets)
    }
}

impl Header {
    /// Parses a header from the first [`HEADER_LENGTH`] octets.
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, MailboxError> {
        let (numbers, _) = octets.get(..HEADER_LENGTH).ok_or(MailboxError::Missing)?.as_chunks();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let [MAGIC, result_json, records, packets, files, samples] = numbers[..] else {
            return Err(MailboxError::Missing);
        };
        let sum = [records, packets, files, samples].into_iter().try_fold(result_json, u64::checked_add);
        let fits = sum.is_some_and(|length| length <= SIZE);
        if fits {
            Ok(Self { result_json, records, packets, files, samples })
        } else {
            Err(MailboxError::Missing)
        }
    }

    /// Returns the length of the header and all parts, in octets.
    pub(crate) const fn total_length(self) -> u64 {
        HEADER_LENGTH as u64 + self.result_json + self.records + self.packets + self.files + self.samples
    }

    /// Splits `octets` into the parts of the mailbox.
    pub(crate) fn split(self, octets: &[u8]) -> Result<MailboxContent, MailboxError> {
        let mut rest = octets.get(HEADER_LENGTH..).unwrap_or_default();
        let mut part = |length: u64| {
            let (part, behind) = rest.split_at_checked(length as usize).ok_or(MailboxError::Missing)?;
            rest = behind;
            Ok(part.to_vec())
        };
        Ok(MailboxContent {
            result_json: part(self.result_json)?,
            records: part(self.records)?,
            packets: part(self.packets)?,
            files: part(self.files)?,
            samples: part(self.samples)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_survives_encoding() {
        let mail = MailboxContent {
            result_json: b"{}".to_vec(),
            records: vec![1, 2, 3],
            packets: vec![4],
            files: vec![5, 6],
            samples: vec![7; 9],
        };
        let octets = mail.to_octets().unwrap();
        let head = Header::parse(&octets[..HEADER_LENGTH]).unwrap();
        assert_eq!(head.total_length(), octets.len() as u64);
        assert_eq!(MailboxContent::from_octets(&octets), Ok(mail));
        assert_eq!(head.split(&octets[..HEADER_LENGTH + 5]), Err(MailboxError::Missing));
    }

    #[test]
    fn empty_memory_is_no_mail() {
        assert_eq!(Header::parse(&[0; HEADER_LENGTH]), Err(MailboxError::Missing));
        assert_eq!(Header::parse(&[]), Err(MailboxError::Missing));
    }
}
