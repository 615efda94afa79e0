//! Received frames, and which of them could be played.

use hol_rtp::{AduFragment, FrameHeader, Header, ParseError, fragments, mpa};

use super::Packing;
use crate::window::EntryWindow;

/// A frame is discarded once it is this many frames older than the newest one: about half an hour.
const MAX_AGE: u32 = 1 << 16;

/// The received parts of frames, by frame number.
#[derive(Debug)]
pub(super) struct FrameAssembler {
    packing: Packing,
    frames: EntryWindow<Frame>,
}

/// The received packets of an MP3 frame or of its application data unit.
#[derive(Debug, Default)]
struct Frame {
    /// The sequence numbers of the received packets of the frame.
    packets: Vec<u16>,
    octets: usize,
    /// The lengths that the first packet of the frame states; `None` until this packet arrives.
    head: Option<Head>,
    /// Whether all data that a decoder needs to play the frame have arrived.
    is_playable: bool,
}

/// The lengths of the parts of an MP3 frame, in octets.
#[derive(Debug, Clone, Copy)]
struct Head {
    octets: usize,
    /// Octets of the frame's main data that are in earlier frames.
    earlier_octets: usize,
    /// Maximum number of octets of main data in the frame itself.
    main_data_room: usize,
}

impl Frame {
    fn complete_head(&self) -> Option<Head> {
        self.head.filter(|head| head.octets == self.octets)
    }
}

impl Head {
    fn from_frame(offset: u16, octets: &[u8]) -> Result<Option<Self>, ParseError> {
        if offset > 0 {
            return Ok(None);
        }
        let header = FrameHeader::read(octets)?;
        // The header and the side information are always in the first packet.
        let earlier_octets = octets
            .get(..header.main_data_offset())
            .map(|octets| header.main_data_begin(octets))
            .ok_or(PARTS_CONTRADICT)?;
        Ok(Some(Self {
            octets: header.frame_length(),
            earlier_octets,
            main_data_room: header.main_data_room(),
        }))
    }

    /// Returns the lengths for a data unit, which every fragment of the unit states.
    fn from_unit(piece: &AduFragment<'_>) -> Self {
        Self { octets: piece.size.into(), earlier_octets: 0, main_data_room: 0 }
    }
}

const PARTS_CONTRADICT: ParseError = ParseError("the parts of a frame contradict each other");

impl FrameAssembler {
    /// Creates an assembler that has received nothing.
    pub(super) fn new(packing: Packing) -> Self {
        Self { packing, frames: EntryWindow::default() }
    }

    /// Adds a packet of frame `number`; returns the frames that can now be played, in order.
    pub(super) fn add_packet(
        &mut self,
        number: u32,
        header: Header,
        payload: &[u8],
    ) -> Result<Vec<u32>, ParseError> {
        let (octets, head) = match self.packing {
            Packing::Mpa => {
                let (offset, octets) = mpa::read(payload)?;
                (octets.len(), Head::from_frame(offset, octets)?)
            }
            Packing::Adu => {
                let [piece] = fragments(payload)?[..] else { return Err(PARTS_CONTRADICT) };
                (piece.octets.len(), Some(Head::from_unit(&piece)))
            }
        };
        self.make_room(number)?;
        let Some(frame) = self.frames.get_mut(number) else { return Ok(Vec::new()) };
        // A packet that was restored from parity may still arrive.
        if frame.packets.contains(&header.sequence) || frame.complete_head().is_some() {
            return Ok(Vec::new());
        }
        frame.packets.push(header.sequence);
        frame.octets += octets;
        frame.head = frame.head.or(head);
        Ok(if frame.complete_head().is_some() { self.newly_playable(number) } else { Vec::new() })
    }

    fn make_room(&mut self, number: u32) -> Result<(), ParseError> {
        if number >= self.frames.end().saturating_add(MAX_AGE) {
            return Err(ParseError("a timestamp is too far ahead"));
        }
        while self.frames.end() <= number {
            self.frames.push(Frame::default());
            if self.frames.end() - self.frames.start() > MAX_AGE {
                self.frames.pop();
            }
        }
        Ok(())
    }

    /// Returns the frames that can be played now that frame `number` is complete.
    fn newly_playable(&mut self, number: u32) -> Vec<u32> {
        // At the lowest bit rate main data begin up to eight frames earlier.
        const MAX_EARLIER_FRAMES: u32 = 8;
        let waiting = number..=number.saturating_add(MAX_EARLIER_FRAMES);
        let playable: Vec<u32> = waiting.filter(|number| self.has_become_playable(*number)).collect();
        for number in &playable {
            if let Some(frame) = self.frames.get_mut(*number) {
                frame.is_playable = true;
            }
        }
        playable
    }

    /// Returns whether a frame becomes playable now: all packets of the frame, and of the earlier frames with parts of
    /// its main data, have arrived. A missing earlier frame may have had any amount of the main data.
    fn has_become_playable(&self, number: u32) -> bool {
        let whole = |number: u32| self.frames.get(number).and_then(Frame::complete_head);
        let Some(head) = whole(number).filter(|_| self.frames.get(number).is_some_and(|f| !f.is_playable))
        else {
            return false;
        };
        let (mut earlier_octets, mut before) = (head.earlier_octets, number);
        while earlier_octets > 0 {
            let Some(head) = before.checked_sub(1).and_then(whole) else { return false };
            earlier_octets = earlier_octets.saturating_sub(head.main_data_room);
            before -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use hol_rtp::{AduConverter, BIT_RATES, Stream};

    const HEADER: Header = Header { payload_type: 14, marker: false, sequence: 0, timestamp: 0, source: 0 };

    /// Adds the packets of these frames in the given order. Returns the frames that become playable with each packet.
    fn played(frames: &[Vec<u8>], room: usize, order: &[usize]) -> Vec<Vec<u32>> {
        let mut taken = FrameAssembler::new(Packing::Mpa);
        let packets: Vec<(u32, Vec<u8>)> = frames
            .iter()
            .zip(0..)
            .flat_map(|(frame, number)| {
                mpa::split_into_payloads(frame, room).map(move |payload| (number, payload))
            })
            .collect();
        let take = |at: &usize| {
            let (number, payload) = &packets[*at];
            taken
                .add_packet(*number, Header { sequence: *at as u16, ..HEADER }, payload)
                .expect("the packet is valid")
        };
        order.iter().filter(|at| **at < packets.len()).map(take).collect()
    }

    /// Frames after a lost frame may need its data, so that a decoder cannot play them, either. RFC 3119 section 1.
    #[test]
    fn lost_frame_makes_later_frames_that_need_its_data_unplayable() {
        let frames: Vec<Vec<u8>> = Stream::new(192).unwrap().take(40).collect();
        let reaches =
            |number: usize| FrameHeader::read(&frames[number]).unwrap().main_data_begin(&frames[number]) > 0;
        let lost = (1..39).find(|number| reaches(number + 1)).unwrap();
        let order: Vec<usize> = (0..40).filter(|number| *number != lost).collect();
        let played = played(&frames, 1400, &order).concat();
        assert!(
            !played.contains(&(lost as u32 + 1)) && played.contains(&(lost as u32 + 2)),
            "{lost}: {played:?}"
        );
        let late: Vec<usize> = order.iter().copied().chain([lost]).collect();
        assert_eq!(
            super::tests::played(&frames, 1400, &late).last(),
            Some(&vec![lost as u32, lost as u32 + 1])
        );
    }

    #[test]
    fn a_duplicate_packet_counts_once() {
        let frames: Vec<Vec<u8>> = Stream::new(192).unwrap().take(2).collect();
        let played = played(&frames, 400, &[0, 0, 1, 1, 0]);
        assert_eq!(played, [vec![], vec![], vec![0], vec![], vec![]]);
    }

    #[test]
    fn timestamp_too_far_ahead_is_refused() {
        let mut frames = FrameAssembler::new(Packing::Mpa);
        let payload =
            mpa::split_into_payloads(&Stream::new(192).unwrap().next().unwrap(), 1400).next().unwrap();
        assert!(frames.add_packet(MAX_AGE, HEADER, &payload).is_err());
        assert_eq!(frames.add_packet(MAX_AGE - 1, HEADER, &payload), Ok(vec![MAX_AGE - 1]));
        assert!(frames.add_packet(2 * MAX_AGE - 1, HEADER, &payload).is_ok());
        assert_eq!(frames.add_packet(3, HEADER, &payload), Ok(vec![]), "this frame is too old");
    }

    proptest! {
        /// A frame is playable if, and only if, its data unit can be built from the frames after the last missing one.
        /// RFC 3119 appendix A.1.
        #[test]
        fn frame_is_playable_when_its_unit_is_complete(
            rate in 0usize..14,
            lost in proptest::collection::vec(prop::bool::weighted(0.2), 10..60),
            order in Just((0..60_usize).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let frames: Vec<Vec<u8>> = Stream::new(BIT_RATES[rate]).unwrap().take(lost.len()).collect();
            let order: Vec<usize> = order.into_iter().filter(|at| *at < lost.len() && !lost[*at]).collect();
            let mut played = played(&frames, 1500, &order).concat();
            played.sort_unstable();
            let mut adus = AduConverter::default();
            let units = frames.iter().zip(&lost).zip(0_u32..).filter_map(|((frame, lost), number)| {
                if *lost {
                    adus = AduConverter::default();
                    return None;
                }
                adus.next(frame).unwrap().map(|_| number)
            });
            prop_assert_eq!(played, units.collect::<Vec<_>>());
        }
    }
}
