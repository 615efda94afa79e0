//! Parses arbitrary octets as RTP packets of MP3 in each packing, and as parity of earlier packets.
#![no_main]

use hol_rtp::parity::{self, ReedSolomonPayload};
use hol_rtp::ulpfec::UlpfecPayload;
use hol_rtp::{AduConverter, Deinterleaver, FrameRestorer, Header, mpa};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packets: Vec<Vec<u8>>| {
    let (mut adus, mut deinterleaver, mut frames) =
        (AduConverter::default(), Deinterleaver::default(), FrameRestorer::default());
    let mut come: Vec<(u8, &[u8])> = Vec::new();
    for packet in &packets {
        let Ok((header, payload)) = Header::read(packet) else { continue };
        assert_eq!(Header::read(&[&header.octets()[..], payload].concat()), Ok((header, payload)));
        if let Ok((_, frame)) = mpa::read(payload) {
            let _ = adus.next(frame);
        }
        for piece in hol_rtp::fragments(payload).unwrap_or_default() {
            for adu in deinterleaver.push(piece.octets.to_vec()).unwrap_or_default() {
                let _ = frames.push(&adu);
            }
        }
        if let Ok(parity) = ReedSolomonPayload::read(payload) {
            let _ = parity::restore_packets(&come, &[parity]);
        }
        if let Ok(protection) = UlpfecPayload::read(payload) {
            let _ = protection.restore_packet(&come, header.source);
        }
        come.push((header.sequence as u8, packet));
    }
    frames.finish();
});
