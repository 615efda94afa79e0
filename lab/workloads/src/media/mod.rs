//! `media`: MP3 over RTP, played on arrival.

mod clock;
mod extended_counter;
mod fec;
mod fec_decoder;
mod frames;
mod keys;
mod packets;
mod player;
mod playout;
mod streamer;

use hol_base::{Duration, Seed};
use hol_measure::RecordKind;

pub use fec::Fec;
pub use keys::{Media, Packing};

use crate::{Application, FramingFn, Host, Pace, StreamLayout, Workload, WorkloadError};
use packets::Packetizer;
use player::Player;
use streamer::Streamer;

impl Media {
    /// The range of the key `packet`, in octets; the maximum is what fits into a datagram.
    const PACKET_SIZES: std::ops::RangeInclusive<u64> = 128..=65_507;

    fn kbps(&self) -> Option<u16> {
        let mut known = hol_rtp::BIT_RATES.into_iter();
        known.find(|kbps| u64::from(*kbps) * 1000 == self.bitrate.bits_per_second())
    }

    /// Returns how long a frame may wait at the player for the parity of its group, and for its turn in an interleaving
    /// cycle.
    fn max_waits(&self) -> [Duration; 2] {
        let group = self.fec.map_or(1, Fec::group_size);
        [
            clock::duration(u64::from(group) - 1),
            clock::duration(packets::max_interleaving_wait(self.interleave)),
        ]
    }
}

fn reject(problem: impl Into<String>) -> Result<(), WorkloadError> {
    Err(WorkloadError::Media(problem.into()))
}

impl Workload for Media {
    fn name(&self) -> &'static str {
        "media"
    }

    fn about(&self) -> &'static str {
        "MP3 over RTP into a jitter buffer; frames that miss their playout time are lost"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["bitrate", "packing", "interleave", "fec", "buffer", "packet"]
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let Self { bitrate, packing, interleave, buffer, packet, .. } = self;
        if self.kbps().is_none() {
            let known = hol_rtp::BIT_RATES.map(|kbps| kbps.to_string()).join(", ");
            return reject(format!(
                "`bitrate` is {bitrate}, but MPEG-1 layer III defines only {known} kbit/s; use one of them"
            ));
        }
        if !Self::PACKET_SIZES.contains(&packet.0) {
            return reject("`packet` must be 128 to 65507 octets");
        }
        if *interleave == 0 {
            return reject("`interleave` is 0, but a cycle has at least one unit; use 1 for no interleaving");
        }
        if *interleave > 1 && *packing == Packing::Mpa {
            return reject(
                "`interleave` needs self-contained units, but packing = \"mpa\" sends MP3 frames; set packing = \"adu\", or remove \
                `interleave`",
            );
        }
        let [group, cycle] = self.max_waits();
        let ms = |time: Duration| time.as_millis_f64().ceil();
        let (takes, cure) = match (group > *buffer, cycle > *buffer, group + cycle > *buffer) {
            (true, _, _) => (
                format!("`fec` restores the first packet of a group {} ms later", ms(group)),
                "the group smaller",
            ),
            (_, true, _) => {
                (format!("`interleave` delays a unit by up to {} ms", ms(cycle)), "the cycle shorter")
            }
            (_, _, true) => (
                format!("`fec` and `interleave` together take {} ms", ms(group + cycle)),
                "one of them smaller",
            ),
            _ => return Ok(()),
        };
        reject(format!("{takes}, but `buffer` is {buffer}; make {cure} or `buffer` longer"))
    }

    fn pace(&self) -> Pace {
        Pace::Interval(clock::duration(1))
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn longest_message(&self) -> Option<u64> {
        Some(self.packet.0)
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Frame
    }

    fn framing_fn(&self) -> FramingFn {
        packets::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, _: Seed) -> Box<dyn Application> {
        let kbps = self.kbps().expect("the bit rate was checked");
        Box::new(Streamer::new(Packetizer::new(self, lanes.is_stream), kbps, lanes, messages))
    }

    fn server(&self, lanes: StreamLayout, messages: u64, _: Host) -> Box<dyn Application> {
        Box::new(Player::new(self, lanes.is_stream, messages))
    }

    fn describe(&self) -> String {
        let Self { bitrate, packing, interleave, fec, .. } = self;
        let fec = fec.map(|fec| format!(" fec {fec}")).unwrap_or_default();
        let cycle = if *interleave > 1 { format!(" interleaved {interleave}") } else { String::new() };
        format!("media {bitrate} {}{cycle}{fec}", packing.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(keys: &str) -> Option<String> {
        let media: Media = serde_json::from_str(keys).expect("keys of media");
        media.check_own().err().map(|problem| problem.to_string())
    }

    #[test]
    fn media_that_the_buffer_cannot_play_is_refused_with_a_remedy() {
        for (keys, words) in [
            (
                "{\"fec\":\"10/14\"}",
                "`fec` restores the first packet of a group 236 ms later, but `buffer` is 200ms",
            ),
            ("{\"fec\":\"ulpfec:10/11\"}", "make the group smaller or `buffer` longer"),
            ("{\"packing\":\"adu\",\"interleave\":16}", "`interleave` delays a unit by up to 236 ms"),
            (
                "{\"packing\":\"adu\",\"interleave\":8,\"fec\":\"5/7\"}",
                "`fec` and `interleave` together take 236 ms",
            ),
            ("{\"interleave\":4}", "set packing = \"adu\""),
            ("{\"interleave\":0}", "use 1 for no interleaving"),
            ("{\"bitrate\":\"193kbit\"}", "`bitrate` is 193kbit"),
            ("{\"packet\":\"127B\"}", "128 to 65507 octets"),
        ] {
            let problem = problem(keys).unwrap_or_default();
            assert!(problem.contains(words), "{keys}: {problem}");
        }
        for keys in [
            "{}",
            "{\"fec\":\"8/255\"}",
            "{\"fec\":\"ulpfec:8/9\"}",
            "{\"packing\":\"adu\",\"interleave\":13}",
            "{\"buffer\":\"0s\"}",
        ] {
            assert_eq!(problem(keys), None, "{keys}");
        }
    }
}
