//! Fragments until their message is whole. RFC 9260 section 6.9.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use hol_wire::sctp::{Data, DataFlags, Tsn};

/// Fragments of incomplete messages, ascending by TSN.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    fragments: VecDeque<Data>,
    /// Octets of user data.
    held: usize,
}

impl Reassembly {
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Takes a fragment with a new TSN; gives the message that it completes.
    pub(crate) fn push(&mut self, fragment: Data) -> Option<Bytes> {
        let behind = self.fragments.iter().rev().take_while(|other| other.tsn.after(fragment.tsn)).count();
        let at = self.fragments.len() - behind;
        self.held += fragment.payload.len();
        self.fragments.insert(at, fragment);
        let first = self.first_of_message(at)?;
        let last = self.last_of_message(at)?;
        let length = self.fragments.range(first..=last).map(|fragment| fragment.payload.len()).sum();
        let mut message = BytesMut::with_capacity(length);
        for fragment in self.fragments.drain(first..=last) {
            message.extend_from_slice(&fragment.payload);
        }
        self.held -= length;
        Some(message.freeze())
    }

    /// Going down without a gap from the fragment at `at`, the place of the first fragment.
    fn first_of_message(&self, at: usize) -> Option<usize> {
        let mut index = at;
        while !self.fragments[index].flags.contains(DataFlags::BEGIN) {
            let before = index.checked_sub(1)?;
            if self.fragments[before].tsn.next() != self.fragments[index].tsn {
                return None;
            }
            index = before;
        }
        Some(index)
    }

    /// Going up without a gap from the fragment at `at`, the place of the last fragment.
    fn last_of_message(&self, at: usize) -> Option<usize> {
        let mut index = at;
        while !self.fragments[index].flags.contains(DataFlags::END) {
            if self.fragments.get(index + 1)?.tsn != self.fragments[index].tsn.next() {
                return None;
            }
            index += 1;
        }
        Some(index)
    }

    /// The rest of what began up to `tsn` will not come. RFC 3758 section 3.6.
    pub(crate) fn discard_through(&mut self, tsn: Tsn) {
        while let Some(first) = self.fragments.front()
            && first.tsn.at_or_before(tsn)
        {
            self.held -= first.payload.len();
            self.fragments.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_wire::Stamp;
    use hol_wire::sctp::Ssn;

    fn fragment(tsn: u32, flags: DataFlags) -> Data {
        let payload = Bytes::from(vec![tsn as u8]);
        Data { flags, tsn: Tsn(tsn), stream: 0, ssn: Ssn(0), ppid: 0, payload, stamp: Stamp::default() }
    }

    #[test]
    fn a_message_is_whole_when_its_last_gap_closes() {
        // RFC 9260 section 6.9; the second message begins right behind the first.
        let mut reassembly = Reassembly::default();
        let (begin, middle, end) = (DataFlags::BEGIN, DataFlags::default(), DataFlags::END);
        assert_eq!(reassembly.push(fragment(3, end)), None);
        assert_eq!(reassembly.push(fragment(4, begin)), None);
        assert_eq!(reassembly.push(fragment(1, begin)), None);
        assert_eq!(reassembly.push(fragment(2, middle)).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(reassembly.push(fragment(5, end)).as_deref(), Some(&[4, 5][..]));
        assert_eq!(reassembly.held(), 0);
    }

    #[test]
    fn forward_tsn_discards_what_stays_incomplete() {
        let mut reassembly = Reassembly::default();
        reassembly.push(fragment(1, DataFlags::BEGIN));
        reassembly.push(fragment(4, DataFlags::BEGIN));
        reassembly.discard_through(Tsn(2));
        assert_eq!(reassembly.held(), 1);
        assert!(reassembly.push(fragment(5, DataFlags::END)).is_some());
    }
}
