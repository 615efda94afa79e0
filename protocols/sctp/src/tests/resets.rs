//! Tests stream resets during transfers. RFC 6525.

use hol_base::Duration;
use hol_transport::{Command, Event, Message, Reconfiguration, Reliability};
use proptest::prelude::*;

use super::pair::Pair;
use super::properties::{Sending, check, network, number, sending, stacks};
use crate::Config;

/// The action before a message is sent.
#[derive(Debug, Clone)]
enum ActionBefore {
    Nothing,
    /// The sender resets these outgoing streams, or all.
    Reset(Vec<u16>),
    /// The sender requests a reset of the peer's streams.
    AskForReset(Vec<u16>),
    /// The sender adds a stream.
    Add,
}

fn streams() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![Just(Vec::new()), (0u16..4).prop_map(|stream| vec![stream]), Just(vec![0, 2])]
}

fn resets() -> impl Strategy<Value = Vec<(Sending, ActionBefore)>> {
    let before = prop_oneof![
        6 => Just(ActionBefore::Nothing),
        3 => streams().prop_map(ActionBefore::Reset),
        1 => Just(ActionBefore::Add),
    ];
    prop::collection::vec((sending(), before), 1..40)
}

fn run(config: &Config, network: super::pair::Network, steps: &[(Sending, ActionBefore)], seed: u64) -> Pair {
    let mut pair = Pair::connected(config, network, seed);
    for (index, (sending, before)) in steps.iter().enumerate() {
        let Sending { side, stream, unordered, reliability, length, pause } = *sending;
        let what = match before {
            ActionBefore::Nothing => None,
            ActionBefore::Reset(streams) => Some(Reconfiguration::ResetOutgoing(streams.clone())),
            ActionBefore::AskForReset(streams) => Some(Reconfiguration::ResetIncoming(streams.clone())),
            ActionBefore::Add => Some(Reconfiguration::AddOutgoing(1)),
        };
        if let Some(what) = what {
            // Messages that wait for room have not been passed to the endpoint.
            pair.run_while(Duration::from_secs(3600), |pair| !pair.all_accepted());
            pair.command(side, Command::Reconfigure(what));
        }
        let mut payload = vec![index as u8; length];
        payload[..4].copy_from_slice(&(index as u32).to_be_bytes());
        pair.send(side, Message { stream, unordered, reliability, ppid: 0, payload: payload.into() });
        pair.run(Duration::from_millis(pause));
    }
    let is_busy = |pair: &Pair| pair.sides.iter().any(|side| !side.own_reconfig_requests.is_idle());
    pair.run_while(Duration::from_secs(7200), |pair| !pair.all_accepted() || is_busy(pair));
    pair.close();
    pair
}

/// Returns what an end received, in order: the numbers of messages, and completed reconfigurations.
fn told(pair: &Pair, side: usize) -> Vec<Result<u32, Reconfiguration>> {
    let told = pair.events[side].iter().filter_map(|(_, event)| match event {
        Event::Received(received) => Some(Ok(number(&received.payload))),
        Event::Reconfigured { what, done: true } => Some(Err(what.clone())),
        _ => None,
    });
    told.collect()
}

/// Checks that the peer receives the messages sent before a reset before it is informed of the reset, and later messages after.
fn check_places(pair: &Pair, steps: &[(Sending, ActionBefore)]) {
    for side in 0..2 {
        let of_side = steps.iter().enumerate().filter(|(_, (sending, _))| sending.side == side);
        let mut wanted = of_side.filter_map(|(index, (_, before))| match before {
            ActionBefore::Reset(streams) => Some((index as u32, streams)),
            _ => None,
        });
        let heard = told(pair, 1 - side);
        let places = heard.iter().enumerate().filter_map(|(place, what)| match what {
            Err(Reconfiguration::ResetIncoming(streams)) => Some((place, streams)),
            _ => None,
        });
        for (place, streams) in places {
            let (first, asked) = wanted.next().expect("no more resets than were asked for");
            assert_eq!(streams, asked);
            let is_of =
                |number: &u32| streams.is_empty() || streams.contains(&steps[*number as usize].0.stream);
            let numbers = |range: &[Result<u32, _>]| -> Vec<u32> {
                range.iter().filter_map(|what| what.as_ref().ok().copied()).filter(is_of).collect()
            };
            let (earlier, later) = (numbers(&heard[..place]), numbers(&heard[place..]));
            assert!(
                earlier.iter().all(|number| *number < first),
                "{earlier:?} before the reset before {first}"
            );
            assert!(later.iter().all(|number| *number >= first), "{later:?} behind the reset before {first}");
        }
        assert_eq!(wanted.next(), None, "all that were asked for have been done");
    }
}

/// Returns a configuration with enough streams for additions.
fn resetting(config: Config) -> Config {
    Config { reconfig: true, streams: 10, max_inbound_streams: 100, ..config }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// RFC 6525 sections 5.1.2, 5.2.2 and 5.2.7: no message is lost, repeated or reordered, and each stays on its side of the reset.
    #[test]
    fn messages_do_not_cross_a_stream_reset(
        config in stacks(),
        network in network(),
        steps in resets(),
        seed in any::<u64>(),
    ) {
        let pair = run(&resetting(config), network, &steps, seed);
        let sendings: Vec<Sending> = steps.iter().map(|(sending, _)| sending.clone()).collect();
        check(&pair, &sendings);
        check_places(&pair, &steps);
        let added = |side: usize| {
            let adds = |(sending, before): &&(Sending, ActionBefore)| {
                sending.side == side && matches!(before, ActionBefore::Add)
            };
            steps.iter().filter(adds).count()
        };
        for side in 0..2 {
            prop_assert_eq!(usize::from(pair.sides[side].outbound_streams()), 10 + added(side));
        }
    }

    /// RFC 6525 section 5.2.3: both ends may request any resets, even at the same time.
    #[test]
    fn resets_requested_by_both_ends_lose_nothing(
        config in stacks(),
        network in network(),
        steps in prop::collection::vec(
            (sending(), prop_oneof![
                2 => Just(ActionBefore::Nothing),
                1 => streams().prop_map(ActionBefore::Reset),
                1 => streams().prop_map(ActionBefore::AskForReset),
            ]),
            1..40,
        ),
        seed in any::<u64>(),
    ) {
        let pair = run(&resetting(config), network, &steps, seed);
        let sendings: Vec<Sending> = steps.iter().map(|(sending, _)| sending.clone()).collect();
        check(&pair, &sendings);
    }
}

/// RFC 6525 section 5.1.2 A1: a closing association also delivers messages that wait for a reset.
#[test]
fn messages_waiting_for_a_reset_are_delivered_before_closing() {
    let mut pair = Pair::connected(&resetting(super::script::config()), super::pair::Network::PERFECT, 1);
    let message = |octet: u8| Message {
        stream: 1,
        unordered: false,
        reliability: Reliability::Full,
        ppid: 0,
        payload: vec![octet; 10].into(),
    };
    pair.send(0, message(1));
    pair.command(0, Command::Reconfigure(Reconfiguration::ResetOutgoing(vec![1])));
    pair.send(0, message(2));
    pair.close();
    let octets: Vec<u8> = pair.received(1).iter().map(|received| received.payload[0]).collect();
    assert_eq!(octets, [1, 2]);
}

/// RFC 6525 section 5.1.1: a request before the association, or for streams that do not exist, is refused at once.
#[test]
fn impossible_stream_reset_is_refused_at_once() {
    let mut pair = Pair::connected(&resetting(super::script::config()), super::pair::Network::PERFECT, 1);
    let what = Reconfiguration::ResetOutgoing(vec![10]);
    pair.command(0, Command::Reconfigure(what.clone()));
    let refused = Event::Reconfigured { what, done: false };
    assert!(pair.events[0].iter().any(|(_, event)| *event == refused));
    assert!(pair.sides[0].own_reconfig_requests.is_idle());
}
