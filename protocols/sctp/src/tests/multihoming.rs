//! RFC 9260 sections 5.4, 6.4, 8.2 and 8.3, RFC 7829: tests several paths.

use super::pair::{Network, Pair};
use super::script::{REMOTE, Script, config, ms};
use crate::Config;
use hol_base::Duration;
use hol_transport::{Command, Event, PathStatus, Reliability};
use hol_wire::sctp::Chunk;

/// Returns a script with two confirmed paths.
pub(super) fn two_paths(config: Config) -> Script {
    let mut script = Script::established_over(config, 2);
    script.run_to(2000);
    answer_heartbeats(&mut script);
    assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Active);
    script.packets.clear();
    script.events.clear();
    script
}

fn answer_heartbeats(script: &mut Script) {
    let heartbeats: Vec<_> = script.packets.drain(..).flat_map(|(_, _, packet)| packet.chunks).collect();
    for chunk in heartbeats {
        if let Chunk::Heartbeat(info) = chunk {
            script.inject([Chunk::HeartbeatAck(info)]);
        }
    }
}

/// Returns the path of each packet with DATA.
pub(super) fn data_went_to(script: &mut Script) -> Vec<usize> {
    let packets = std::mem::take(&mut script.packets);
    let with_data = packets
        .iter()
        .filter(|(_, _, packet)| packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Data(_))));
    with_data.map(|(_, to, _)| REMOTE.iter().position(|address| address == to).unwrap()).collect()
}

/// Returns a script with two paths, of which only the peer listed the second.
fn one_path_of_two_verified(config: Config) -> Script {
    let mut script = Script::closed(config, 1);
    script.command(Command::Connect);
    script.inject([super::script::init_ack(8, &REMOTE)]);
    script.inject([Chunk::CookieAck]);
    script.packets.clear();
    script.events.clear();
    script
}

#[test]
fn address_given_by_the_application_needs_no_heartbeat() {
    // Section 5.4 rule 1; `net/sctp/associola.c` sctp_assoc_add_peer: SCTP_UNKNOWN becomes SCTP_ACTIVE.
    for config in [config(), crate::fixtures::linux()] {
        let mut script = Script::established_over(config, 2);
        assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Active);
        script.packets.clear();
        script.run_to(29_000);
        assert!(script.packets.is_empty(), "{:?}", script.packets);
    }
}

#[test]
fn unconfirmed_address_is_not_used_before_it_answers() {
    // Section 5.4.
    let mut script = one_path_of_two_verified(config());
    assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Inactive);
    script.run_to(2000);
    answer_heartbeats(&mut script);
    let confirmed = Event::Path { address: REMOTE[1], status: PathStatus::Active };
    assert_eq!(script.events, [confirmed]);
}

#[test]
fn addresses_are_learned_from_the_init_ack() {
    // Section 5.1.2.
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    script.inject([super::script::init_ack(8, &REMOTE)]);
    let addresses: Vec<_> = script.endpoint.paths().iter().map(crate::Path::address).collect();
    assert_eq!(addresses, REMOTE);
}

/// `net/sctp/sm_statefuns.c` sctp_sf_do_5_2_6_stale: only an INIT after an expiry of T1 goes to another address.
#[test]
fn init_after_a_stale_cookie_goes_to_the_address_that_answered() {
    let mut script = Script::closed(config(), 2);
    script.command(Command::Connect);
    for _ in 0..2 {
        script.inject([super::script::init_ack(8, &REMOTE)]);
        script.packets.clear();
        script.inject([Chunk::Error(vec![hol_wire::sctp::Cause::StaleCookie(1)])]);
        let [(_, to, _)] = &script.packets[..] else { panic!("{:?}", script.packets) };
        assert_eq!(*to, REMOTE[0]);
    }
    script.packets.clear();
    script.run_to(1000);
    let [(_, to, _)] = &script.packets[..] else { panic!("{:?}", script.packets) };
    assert_eq!(*to, REMOTE[1]);
}

#[test]
fn handshake_uses_the_address_that_answers() {
    let mut script = Script::closed(config(), 2);
    script.command(Command::Connect);
    script.run_to(1000);
    let went: Vec<_> = script.packets.drain(..).map(|(_, to, _)| to).collect();
    assert_eq!(went, REMOTE, "INIT tries the next address");
    script.from = 1;
    script.inject([super::script::init_ack(8, &REMOTE)]);
    script.inject([Chunk::CookieAck]);
    let statuses = script.endpoint.paths().iter().map(crate::Path::status).collect::<Vec<_>>();
    assert_eq!(statuses, [PathStatus::Active; 2]);
    script.packets.clear();
    script.send(0, 100);
    assert_eq!(data_went_to(&mut script), [0]);
    assert_eq!(script.endpoint.primary(), Some(REMOTE[0]));
}

#[test]
fn data_goes_to_the_primary_and_retransmissions_to_another() {
    // Sections 6.4 and 6.4.1.
    let mut script = two_paths(Config { pf_threshold: 5, ..config() });
    script.send(0, 100);
    script.run_to(3100);
    assert_eq!(data_went_to(&mut script), [0, 1]);
    script.sack(1, &[]);
    script.send(0, 100);
    assert_eq!(data_went_to(&mut script), [0]);
}

#[test]
fn a_path_that_times_out_is_potentially_failed_and_avoided() {
    // RFC 7829 section 3.2: at the first timeout with a threshold of 0.
    let mut script = two_paths(config());
    script.send(0, 100);
    script.run_to(3100);
    script.sack(1, &[]);
    script.send(0, 100);
    assert_eq!(data_went_to(&mut script), [0, 1, 1]);
    assert_eq!(script.events, [Event::Path { address: REMOTE[0], status: PathStatus::PotentiallyFailed }]);
    script.run_to(6000);
    answer_heartbeats(&mut script);
    assert_eq!(script.endpoint.paths()[0].status(), PathStatus::Active);
}

#[test]
fn too_many_timeouts_make_a_path_inactive() {
    // Section 8.2.
    let mut script = two_paths(Config { path_max_retrans: 0, pf_threshold: 5, ..config() });
    script.send(0, 100);
    script.run_to(3100);
    assert_eq!(script.events, [Event::Path { address: REMOTE[0], status: PathStatus::Inactive }]);
    script.send(0, 100);
    assert_eq!(data_went_to(&mut script), [0, 1, 1]);
}

#[test]
fn acknowledged_data_reactivate_a_potentially_failed_path() {
    // RFC 7829 section 3.2; Linux waits for a HEARTBEAT ACK.
    for (pf_until_heartbeat_ack, after) in
        [(false, PathStatus::Active), (true, PathStatus::PotentiallyFailed)]
    {
        let mut script = Script::established(Config { pf_until_heartbeat_ack, ..config() });
        script.send(0, 100);
        script.run_to(1000);
        assert_eq!(script.endpoint.paths()[0].status(), PathStatus::PotentiallyFailed);
        script.sack(1, &[]);
        assert_eq!(script.endpoint.paths()[0].status(), after);
    }
}

#[test]
fn inactive_path_is_reactivated_only_by_its_own_packets() {
    // RFC 9260 section 8.2: the SACK may have used the other path, so it does not confirm this one.
    for answers_from in [0, 1] {
        let limits =
            Config { path_max_retrans: 0, pf_threshold: 5, association_max_retrans: 100, ..config() };
        let mut script = two_paths(limits);
        script.send(0, 100);
        script.run_to(8000);
        assert!(script.endpoint.paths().iter().all(|path| path.status() == PathStatus::Inactive));
        let last = *data_went_to(&mut script).last().unwrap();
        script.from = answers_from;
        script.sack(1, &[]);
        let is_active = script.endpoint.paths()[last].status() == PathStatus::Active;
        assert_eq!(is_active, answers_from == last);
    }
}

#[test]
fn idle_path_gets_heartbeats_at_intervals() {
    // Section 8.3: HB.interval plus RTO with a jitter of half of it.
    let mut script = Script::established(config());
    for _ in 0..4 {
        let answered = script.now;
        while script.packets.is_empty() {
            let next = script.deadline.map_or(0, |at| at.as_millis() + 1 - 1000);
            script.run_to(next);
        }
        let waited = script.packets[0].0.since(answered);
        assert!((ms(30_500)..=ms(31_501)).contains(&waited), "{waited}");
        answer_heartbeats(&mut script);
    }
    assert_eq!(script.endpoint.paths()[0].error_count(), 0);
}

#[test]
fn heartbeats_without_an_answer_fail_the_path() {
    // Sections 8.2 and 8.3.
    let mut script =
        two_paths(Config { path_max_retrans: 2, pf_threshold: 5, association_max_retrans: 100, ..config() });
    script.run_to(400_000);
    assert_eq!(
        script.endpoint.paths().iter().map(crate::Path::status).collect::<Vec<_>>(),
        [PathStatus::Inactive; 2]
    );
}

#[test]
fn heartbeat_ack_goes_to_the_source_of_the_heartbeat() {
    // Section 8.3.
    let mut script = two_paths(config());
    script.from = 1;
    script.inject([Chunk::Heartbeat(bytes::Bytes::from_static(b"opaque"))]);
    let (_, to, packet) = &script.packets[0];
    assert_eq!(
        (*to, &packet.chunks[0]),
        (REMOTE[1], &Chunk::HeartbeatAck(bytes::Bytes::from_static(b"opaque")))
    );
}

#[test]
fn a_heartbeat_ack_from_the_future_is_no_answer() {
    // Section 8.3: the round trip is from the time in the HEARTBEAT to now; section 5.4: only an answer verifies the address.
    let mut script = one_path_of_two_verified(config());
    script.run_to(2000);
    let mut chunks = script.packets.drain(..).flat_map(|(_, _, packet)| packet.chunks);
    let info = chunks.find_map(|chunk| if let Chunk::Heartbeat(info) = chunk { Some(info) } else { None });
    let info = info.expect("an address that is not verified is asked");
    drop(chunks);
    let later = script.now + Duration::from_nanos(1);
    let changed = [&info[..4], &later.as_nanos().to_be_bytes(), &info[12..]].concat();
    script.inject([Chunk::HeartbeatAck(changed.into())]);
    assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Inactive);
    script.inject([Chunk::HeartbeatAck(info)]);
    assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Active, "the true one is still awaited");
}

#[test]
fn sack_goes_to_the_source_of_the_data() {
    // Section 6.4.
    let mut script = two_paths(config());
    script.from = 1;
    script.inject([super::script::data(1)]);
    assert_eq!(script.packets[0].1, REMOTE[1]);
    // The same for a duplicate, whose first SACK may have been lost on the other path.
    for from in [0, 1] {
        script.packets.clear();
        script.from = from;
        script.inject([super::script::data(1)]);
        assert_eq!(script.packets[0].1, REMOTE[from], "a duplicate");
    }
}

#[test]
fn an_idle_window_shrinks_once_a_timeout() {
    // Section 7.2.1.
    let mut script = Script::established(Config { initial_window: hol_base::ByteCount(9000), ..config() });
    let mut acknowledged = 0;
    for _ in 0..20 {
        (0..20).for_each(|_| script.send(0, 1400));
        acknowledged += script.take_data().len() as u32;
        script.sack(acknowledged, &[]);
    }
    while script.flight_size() > 0 {
        acknowledged += script.take_data().len() as u32;
        script.sack(acknowledged, &[]);
    }
    let grown = script.endpoint.paths()[0].cwnd();
    assert!(grown > 12_000, "{grown}");
    script.packets.clear();
    script.run_to(1500);
    script.send(0, 100);
    assert_eq!(script.endpoint.paths()[0].cwnd(), grown / 2);
}

#[test]
fn an_association_survives_the_loss_of_a_path() {
    // Section 6.4: failover and back.
    let network = Network { paths: 2, ..Network::PERFECT };
    let mut pair = Pair::connected(&config(), network, 5);
    pair.run(Duration::from_secs(5));
    for number in 0..1000 {
        pair.cut = [(200..600).contains(&number), false];
        pair.send_numbered(0, 0, number, Reliability::Full);
        pair.run(ms(20));
    }
    pair.close();
    assert!(pair.numbers(1, 0).into_iter().eq(0..1000));
    assert_eq!(pair.sides[0].paths()[0].status(), PathStatus::Active);
}

#[test]
fn lost_heartbeat_stops_rtt_samples_until_one_is_answered() {
    // Section 6.3.1 C4, as in Linux: the heartbeat is the one measurement in progress.
    for (holds, measured) in [(true, None), (false, Some(ms(50)))] {
        let mut script = Script::established(Config { heartbeat_holds_rtt: holds, ..config() });
        script.run_to(32_000);
        script.send(0, 100);
        script.run_to(32_050);
        script.sack(1, &[]);
        assert_eq!(script.endpoint.paths()[0].srtt(), measured);
        answer_heartbeats(&mut script);
        let answered = script.endpoint.paths()[0].srtt();
        script.send(0, 100);
        script.run_to(32_070);
        script.sack(2, &[]);
        assert_ne!(script.endpoint.paths()[0].srtt(), answered, "DATA is measured again");
    }
}

#[test]
fn first_heartbeat_after_a_timeout_uses_the_old_rto() {
    // RFC 7829 section 3.2 requires one every RTO: half of it and a jitter of up to 1 s, counted from T3-rtx.
    let mut script = Script::established(config());
    script.send(0, 100);
    script.run_to(1000);
    let timed_out = [Event::Path { address: REMOTE[0], status: PathStatus::PotentiallyFailed }];
    assert_eq!(script.events, timed_out);
    script.packets.clear();
    script.run_to(2500);
    let sent: Vec<_> = script.packets.iter().flat_map(|(_, _, packet)| &packet.chunks).collect();
    assert!(matches!(sent[..], [Chunk::Heartbeat(_)]), "{sent:?}");
}

#[test]
fn waiting_lost_data_delay_a_heartbeat_where_the_stack_says_so() {
    // `net/sctp/outqueue.c` sctp_outq_flush_rtx: last_time_sent is set although the window allows nothing.
    for delays in [false, true] {
        let mut script = Script::established(Config { lost_data_delay_heartbeats: delays, ..config() });
        (0..20).for_each(|_| script.send(0, 1000));
        script.run_to(1000);
        script.packets.clear();
        for tenth in 0..20 {
            script.run_to(1000 + 100 * tenth);
            script.send(0, 1000);
        }
        let is_heartbeat = |chunk: &Chunk| matches!(chunk, Chunk::Heartbeat(_));
        let heartbeats = script
            .packets
            .iter()
            .flat_map(|(_, _, packet)| &packet.chunks)
            .filter(|chunk| is_heartbeat(chunk));
        assert_eq!(heartbeats.count(), usize::from(!delays), "while the application writes");
    }
}

#[test]
fn sack_of_data_over_a_failed_path_goes_where_the_stack_says() {
    // Section 6.4; `net/sctp/outqueue.c` sctp_outq_select_transport.
    for (avoids, to) in [(false, 0), (true, 1)] {
        let mut script = two_paths(Config { replies_avoid_failed_path: avoids, ..config() });
        script.send(0, 100);
        script.run_to(3100);
        assert_eq!(script.endpoint.paths()[0].status(), PathStatus::PotentiallyFailed);
        script.packets.clear();
        script.from = 0;
        script.inject([super::script::data(1)]);
        assert_eq!(script.packets[0].1, REMOTE[to]);
    }
}

/// Returns the script after a minute in which the second path answered no HEARTBEAT.
fn idle_path_gone(heartbeat_fails_association: bool) -> Script {
    let limits = Config { association_max_retrans: 3, hb_interval: ms(1000), ..config() };
    let mut script = two_paths(Config { heartbeat_fails_association, ..limits });
    for second in 0..60 {
        script.run_to(2000 + 1000 * second);
        let heartbeats: Vec<_> = script.packets.drain(..).filter(|(_, to, _)| *to != REMOTE[1]).collect();
        for chunk in heartbeats.into_iter().flat_map(|(_, _, packet)| packet.chunks) {
            // Section 8.1: with data outstanding the answer need not clear the count.
            if let Chunk::Heartbeat(info) = chunk {
                let errors = script.endpoint.error_count;
                script.inject([Chunk::HeartbeatAck(info)]);
                script.endpoint.error_count = errors;
            }
        }
    }
    script
}

#[test]
fn failed_idle_path_does_not_end_the_association() {
    // Section 8.1; Linux counts it.
    let idle = idle_path_gone(false);
    assert_eq!(idle.endpoint.state_name(), "ESTABLISHED");
    assert!(idle.endpoint.paths()[1].error_count() > 3);
    let counted = idle_path_gone(true);
    assert!(counted.endpoint.is_closed());
}

#[test]
fn failed_unconfirmed_path_does_not_end_the_association() {
    // Section 5.4: probing counts for the path only.
    for config in [config(), crate::fixtures::linux()] {
        let config = Config { association_max_retrans: 3, hb_interval: ms(1_000_000), ..config };
        let mut script = one_path_of_two_verified(config);
        script.run_to(120_000);
        assert_eq!(script.endpoint.state_name(), "ESTABLISHED");
        assert!(script.endpoint.paths()[1].error_count() > 3);
        assert_eq!(script.endpoint.error_count, 0);
    }
}

#[test]
fn an_address_that_is_not_verified_gets_no_sack() {
    // Section 5.4.
    let mut script = one_path_of_two_verified(config());
    script.from = 1;
    script.inject([super::script::data(1)]);
    assert_eq!(script.packets[0].1, REMOTE[0]);
    script.inject([Chunk::Heartbeat(bytes::Bytes::new())]);
    assert_eq!(script.packets[1].1, REMOTE[1], "but the answer to its HEARTBEAT");
}

#[test]
fn lost_cookie_echo_is_resent_with_data_to_the_next_address() {
    // Section 5.1: like an INIT; and no other packet is sent before COOKIE ACK.
    for (tries, went_to) in [(true, [1, 0, 1]), (false, [1, 1, 1])] {
        let mut script = Script::closed(Config { cookie_echo_tries_all_paths: tries, ..config() }, 2);
        script.command(Command::Connect);
        script.send(0, 100);
        script.run_to(1000);
        script.packets.clear();
        script.from = 1;
        script.inject([super::script::init_ack(8, &REMOTE)]);
        script.run_to(4000);
        let whole = |packet: &hol_wire::sctp::Packet| {
            matches!(packet.chunks.as_slice(), [Chunk::CookieEcho(_), Chunk::Data(_)])
        };
        assert!(script.packets.iter().all(|(_, _, packet)| whole(packet)), "{:?}", script.packets);
        assert_eq!(
            script.packets.iter().map(|(_, to, _)| *to).collect::<Vec<_>>(),
            went_to.map(|at| REMOTE[at])
        );
    }
}
