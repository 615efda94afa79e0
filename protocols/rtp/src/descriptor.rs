//! ADU frames in payloads, each after its descriptor. RFC 3119 sections 3.2 and 3.3.

use crate::ParseError;

/// An ADU frame in an RTP payload, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AduFragment<'p> {
    /// Whether the octets continue an ADU frame of the previous packet: the C flag.
    pub continues: bool,
    /// Length of the whole ADU frame in octets.
    pub size: u16,
    /// The octets of the ADU frame that this payload contains.
    pub octets: &'p [u8],
}

const CONTINUES_BIT: u8 = 0x80;
const LONG_BIT: u8 = 0x40;
/// Maximum length of an ADU frame in octets; the field has fourteen bits.
const MAX_OCTETS: usize = (1 << 14) - 1;

fn descriptor(size: usize, continues: bool) -> Vec<u8> {
    assert!(size <= MAX_OCTETS, "an ADU frame of {size} octets");
    let flag = if continues { CONTINUES_BIT } else { 0 };
    if size < 64 { vec![flag | size as u8] } else { vec![flag | LONG_BIT | (size >> 8) as u8, size as u8] }
}

/// Splits an ADU frame into as few payloads of at most `room` octets as possible.
///
/// # Panics
/// If `room` is not longer than a descriptor, or the frame has more than 16383 octets.
pub fn split(adu: &[u8], room: usize) -> impl Iterator<Item = Vec<u8>> {
    let first = descriptor(adu.len(), false).len();
    let part = room
        .checked_sub(first)
        .filter(|part| *part > 0)
        .expect("the packet has room for a part of an ADU frame");
    adu.chunks(part)
        .enumerate()
        .map(move |(index, octets)| [&descriptor(adu.len(), index > 0)[..], octets].concat())
}

/// Returns the ADU frames, or the part of an ADU frame, in a payload.
///
/// # Errors
/// If descriptors do not fit the octets after them.
pub fn fragments(payload: &[u8]) -> Result<Vec<AduFragment<'_>>, ParseError> {
    let (mut rest, mut fragments) = (payload, Vec::new());
    while !rest.is_empty() {
        let (flags, size, behind) = match rest {
            [flags, low, behind @ ..] if flags & LONG_BIT != 0 => {
                (flags, u16::from(flags & 0x3f) << 8 | u16::from(*low), behind)
            }
            [flags, behind @ ..] if flags & LONG_BIT == 0 => (flags, u16::from(flags & 0x3f), behind),
            _ => return Err(ParseError("a descriptor is incomplete")),
        };
        let continues = flags & CONTINUES_BIT != 0;
        let is_whole = !continues && behind.len() >= usize::from(size);
        if !is_whole && (!fragments.is_empty() || behind.len() > usize::from(size)) {
            return Err(ParseError("a packet has a fragment of an ADU frame together with other frames"));
        }
        let (octets, next) = behind.split_at(if is_whole { size.into() } else { behind.len() });
        fragments.push(AduFragment { continues, size, octets });
        rest = next;
    }
    Ok(fragments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 3119 section 3.2.
    #[test]
    fn a_descriptor_has_one_octet_or_two() {
        assert_eq!(descriptor(63, false), [0x3f]);
        assert_eq!(descriptor(64, true), [0xc0, 64]);
        assert_eq!(descriptor(0x1234, false), [0x52, 0x34]);
    }

    /// RFC 3119 section 3.3: several whole ADU frames, or a part of a single one.
    #[test]
    fn payload_holds_whole_adu_frames_or_one_fragment() {
        let (short, long) = ([1; 10], [2; 100]);
        let both: Vec<u8> = split(&short, 200).chain(split(&long, 200)).flatten().collect();
        let read: Vec<&[u8]> = fragments(&both).unwrap().iter().map(|piece| piece.octets).collect();
        assert_eq!(read, [&short[..], &long[..]]);
        let parts: Vec<Vec<u8>> = split(&long, 60).collect();
        assert_eq!(parts.iter().map(|part| &part[..2]).collect::<Vec<_>>(), [[0x40, 100], [0xc0, 100]]);
        let part = fragments(&parts[1]).unwrap()[0];
        assert_eq!((part.continues, part.size, part.octets.len()), (true, 100, 42));
        let mixed = [split(&short, 200).next().unwrap(), parts[0].clone()].concat();
        assert!(fragments(&mixed).is_err());
        assert!(fragments(&[0x40]).is_err());
    }

    proptest! {
        #[test]
        fn fragments_join_to_the_adu_frame(adu in proptest::collection::vec(any::<u8>(), 1..3000), room in 3usize..1500) {
            let mut whole = Vec::new();
            for payload in split(&adu, room) {
                prop_assert!(payload.len() <= room);
                let fragments = fragments(&payload).unwrap();
                prop_assert_eq!((fragments.len(), usize::from(fragments[0].size)), (1, adu.len()));
                prop_assert_eq!(fragments[0].continues, !whole.is_empty());
                whole.extend_from_slice(fragments[0].octets);
            }
            prop_assert_eq!(whole, adu);
        }

        #[test]
        fn arbitrary_payload_does_not_panic(octets: Vec<u8>) {
            let _ = fragments(&octets);
        }
    }
}
