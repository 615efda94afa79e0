//! MP3 over RTP in the model world.

use hol_base::{Duration, Seed};
use hol_measure::{Outcome, Playback, summarize};
use hol_model::run;
use hol_rtp::{FrameHeader, Stream};
use hol_scenario::{Run, RunEnd, Scenario};

fn media(transport: &str, network: &str, keys: &str, frames: u64, seed: u64) -> Run {
    let scenario = Scenario::with_single_flow(
        toml::from_str(network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(&format!("kind = 'media'\n{keys}")).unwrap(),
        frames,
    );
    run(&scenario, Seed(seed), None).unwrap()
}

fn playback(run: &Run) -> Playback {
    summarize(&run.records).playback.expect("frames")
}

const FRAMES: u64 = 20_000;

fn lossy(percent: u32) -> String {
    format!("rate = '10Mbit'\ndelay = '30ms'\nloss = '{percent}%'")
}

/// Checks a share of the frames within 4.5 standard deviations, which are twice as large because frames share
/// losses.
#[track_caller]
fn is_share(playback: Playback, expected: f64, what: &str) {
    let share = playback.playable as f64 / playback.frames as f64;
    let deviation = 2.0 * (expected * (1.0 - expected) / playback.frames as f64).sqrt();
    assert!((share - expected).abs() < 4.5 * deviation, "{what}: {share} is not {expected}");
}

/// Returns the share of frames that need data of the previous one.
fn reach_back() -> f64 {
    let frames = Stream::new(192).unwrap().take(FRAMES as usize);
    let reaching =
        frames.filter(|frame| FrameHeader::read(frame).unwrap().main_data_begin(frame) > 0).count();
    reaching as f64 / FRAMES as f64
}

/// RFC 3119 section 1: after a lost packet of RFC 2250 the next frame cannot be played either, if it needs
/// the lost data; with RFC 3119 it can.
#[test]
fn frames_that_udp_does_not_lose_are_playable() {
    let reach_back = reach_back();
    for percent in [1, 10] {
        let (p, line) = (f64::from(percent) / 100.0, lossy(percent));
        let of = |keys: &str| playback(&media("udp", &line, keys, FRAMES, 7));
        is_share(of(""), (1.0 - p) * (1.0 - p * reach_back), "frames");
        let units = of("packing = 'adu'");
        is_share(units, 1.0 - p, "units");
        // A glitch starts at a frame that is lost, if the previous one is not.
        let expected = p * (1.0 - p) / 1152.0 * 44_100.0 * 60.0;
        let glitches = units.glitches_per_minute().unwrap();
        assert!((glitches / expected - 1.0).abs() < 0.15, "{glitches} is not {expected}");
    }
}

/// Of a group of k frames and n − k of parity a frame cannot be played if it is lost and n − k of the n − 1 others are. RFC 5109 has n = k + 1.
#[test]
fn parity_restores_the_binomial_share_of_packets() {
    let p = 0.1_f64;
    for (code, k, n) in [("5/7", 5, 7), ("ulpfec:5/6", 5, 6), ("ulpfec:20/21", 20, 21)] {
        let exactly = |lost: i32| {
            let ways: f64 = (0..lost).map(|i| f64::from(n - 1 - i) / f64::from(i + 1)).product();
            ways * p.powi(lost) * (1.0 - p).powi(n - 1 - lost)
        };
        let expected = 1.0 - p * (n - k..n).map(exactly).sum::<f64>();
        for interleave in [1, 4] {
            let keys = format!("packing = 'adu'\nfec = '{code}'\ninterleave = {interleave}\nbuffer = '1s'");
            is_share(playback(&media("udp", &lossy(10), &keys, FRAMES, 7)), expected, &keys);
        }
    }
}

/// RFC 5109 section 9: one lost packet of a group can be restored, two cannot.
#[test]
fn ulpfec_restores_one_packet_per_group() {
    // Frames 1 to 4 are packets 1 to 4, and their parity is packet 5.
    for (lost, playable) in [("2", 20), ("2, 8", 20), ("5", 20), ("2, 3", 18), ("4, 5", 19)] {
        let line = format!("rate = '10Mbit'\nup = {{ loss = {{ drop = [{lost}] }} }}");
        let run = media("udp", &line, "packing = 'adu'\nfec = 'ulpfec:4/5'", 20, 1);
        assert_eq!(playback(&run).playable, playable, "{lost}");
    }
}

/// RFC 3119 section 6: four consecutive lost packets cause no gap of more than one frame.
#[test]
fn interleaving_spreads_a_run_of_losses() {
    const LINE: &str = "rate = '10Mbit'\nup = { loss = { drop = [33, 34, 35, 36] } }";
    let of = |keys: &str| playback(&media("udp", LINE, &format!("packing = 'adu'\n{keys}"), 100, 1));
    let (plain, spread) = (of(""), of("interleave = 8"));
    assert_eq!((plain.playable, plain.glitches), (96, 1));
    assert_eq!((spread.playable, spread.glitches), (96, 4));
}

/// A link below the rate of the medium: all frames arrive, most of them too late.
#[test]
fn reliable_transport_delivers_frames_too_late_to_be_played() {
    for transport in ["tcp", "sctp"] {
        let run = media(transport, "rate = '180kbit'\ndelay = '30ms'", "", 1000, 1);
        assert_eq!(run.run_end, RunEnd::Finished);
        let late = run.records.iter().filter(|record| record.outcome == Outcome::Late).count() as u64;
        let playback = playback(&run);
        assert_eq!(playback.playable + late, 1000);
        // It falls behind by a seventh of the time: the buffer of 200 ms is exhausted after some 1.4 s, 53
        // frames.
        assert!((30..80).contains(&playback.playable), "{transport}: {playback:?}");
        let latency = run.records.last().and_then(hol_measure::Record::latency).unwrap();
        assert!(latency > Duration::from_secs(3), "it counts, however late: {latency}");
    }
}

/// RFC 3758: a frame is retransmitted during its lifetime. An abandoned frame does not end the run early.
#[test]
fn partial_reliability_recovers_frames_within_the_buffer_time() {
    let line = lossy(5);
    let [udp, given_up, parity] = [
        ("udp", ""),
        ("sctp:unordered,lifetime=200ms", ""),
        ("sctp:unordered,lifetime=200ms", "packing = 'adu'\nfec = '5/7'"),
    ]
    .map(|(transport, keys)| {
        let run = media(transport, &line, keys, 4000, 3);
        assert_eq!((run.records.len(), &run.run_end), (4000, &RunEnd::Finished));
        // As many of the last frames can be played as of earlier ones, so the run has waited for them.
        assert!(
            run.records[3900..].iter().filter(|record| record.outcome == Outcome::Completed).count() > 80
        );
        playback(&run).playable_percent()
    });
    assert!(udp < 92.0 && given_up > 99.0 && parity >= given_up, "{udp} {given_up} {parity}");
}

/// The medium continues even if the transport blocks: a frame is due when the encoder has produced it.
#[test]
fn frames_are_due_at_the_frame_rate_of_the_medium() {
    let run = media("tcp:send_buffer=10kB,send_buffer_max=0B", "rate = '100kbit'", "", 200, 1);
    let since = |at: usize| run.records[at].scheduled.since(run.records[0].scheduled);
    assert_eq!(since(49), Duration::from_millis(1280));
    assert!(run.records[199].request.unwrap().written > run.records[199].scheduled);
}
