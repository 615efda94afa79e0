//! The first checks of each message. RFC 4540 section 6.

use crate::world::*;
use hol_base::Time;
use hol_simco::*;
use proptest::prelude::*;

fn bfm() -> Option<Body> {
    Some(Body::Notification(Notification::Bfm))
}

fn ast() -> Option<Body> {
    Some(Body::Notification(Notification::Ast))
}

fn refusal(refusal: Refusal) -> Option<Body> {
    Some(Body::Refusal(refusal))
}

fn closed() -> (World, SessionId) {
    let mut world = World::new(Middlebox::firewall(HOUR));
    let id = world.connect(ConnectionInfo::plain(Framing::Messages));
    (world, id)
}

/// Returns the answers on a connection and in a session to octets with one or several errors.
fn answers(octets: &[u8]) -> [Vec<Option<Body>>; 2] {
    [closed(), World::firewall()].map(|(mut world, id)| {
        world.take_messages(id);
        world.receive(START, id, octets);
        world.take_messages(id)
    })
}

/// Steps 1, 3, 4, 5: the first that fails answers; without a session the connection is closed.
#[test]
fn format_errors_are_answered_in_the_order_of_section_6() {
    let cases: [(&[u8], Refusal, Refusal); 6] = [
        (&[2, 0x21, 0, 0, 0, 0, 0, 1], Refusal::WrongBasicType, Refusal::WrongBasicType),
        (&[9, 0xff, 0, 0, 0, 0, 0, 1], Refusal::WrongBasicType, Refusal::WrongBasicType),
        (&[1, 0x16, 0, 0, 0, 0, 0, 1], Refusal::WrongSubType, Refusal::WrongSubType),
        (&[1, 0x21, 0, 0, 0, 0, 0, 1], Refusal::WrongSubType, Refusal::BadlyFormed),
        (&[1, 0x01, 0, 0, 0, 0, 0, 1], Refusal::BadlyFormed, Refusal::BadlyFormed),
        (&[1, 0x21, 0, 4, 0, 0, 0, 1, 0, 6, 0, 0], Refusal::WrongSubType, Refusal::BadlyFormed),
    ];
    for (octets, without_session, with_session) in cases {
        let [without, with] = answers(octets);
        assert_eq!(without, [refusal(without_session), None], "{octets:x?}");
        assert_eq!(with, [refusal(with_session)], "{octets:x?}");
    }
}

/// Step 1: an impossible length, first of a user message, and then of a stream that announces 64 KiB.
#[test]
fn a_broken_header_ends_the_connection() {
    let [without, with] = answers(&[1, 0x21, 0, 9, 0, 0, 0, 1]);
    assert_eq!((without, with), (vec![bfm(), None], vec![bfm(), ast(), None]));
    let (mut world, _) = closed();
    let id = world.connect(ConnectionInfo::plain(Framing::Stream));
    world.receive(START, id, &[1, 0x12, 0xff, 0xff, 0, 0, 0, 1]);
    assert_eq!(world.take_messages(id), [bfm(), None]);
}

/// Section 4.2.5: notifications have TIDs of the middlebox's own, each once.
#[test]
fn notifications_have_their_own_tids() {
    let (mut world, id) = World::firewall();
    world.middlebox.receive(START, id, vec![0; 3].into(), &mut world.batch);
    let mut tids = Vec::new();
    for output in world.batch.release() {
        if let Output::Send(_, message) = output {
            tids.push(message.tid);
        }
    }
    assert_eq!(tids.len(), 2);
    assert_ne!(tids[0], tids[1]);
}

/// Step 2: the rest of a message may arrive 60 s after its last octet; a connection without a session gets 60 s in
/// all, because a trickle of octets could keep it open for days.
#[test]
fn an_incomplete_message_times_out_after_a_minute() {
    for (is_open, end) in [(false, 60), (true, 110)] {
        let mut world = World::new(Middlebox::firewall(HOUR));
        let id = world.connect(ConnectionInfo::plain(Framing::Stream));
        if is_open {
            world.ask(START, id, se());
        }
        let octets = Message::request(Tid(1), per(60)).to_bytes();
        world.receive(START, id, &octets[..20]);
        world.receive(at(50), id, &octets[20..30]);
        assert_eq!(world.middlebox.wake_at(), at(end));
        world.advance(Time::from_millis(end * 1000 - 1));
        assert_eq!(world.take_messages(id), []);
        world.advance(at(end));
        let expected = if is_open { vec![bfm(), ast(), None] } else { vec![bfm(), None] };
        assert_eq!(world.take_messages(id), expected);
    }
}

/// An answer can be eight thousand times as long as its request.
#[test]
fn messages_wait_for_a_full_batch_without_a_timeout() {
    let mut world = World::new(Middlebox::firewall(HOUR));
    let id = world.connect(ConnectionInfo::plain(Framing::Stream));
    world.ask(START, id, se());
    world.batch = Batch::with_room(10);
    world.receive(START, id, &Message::request(Tid(1), Request::Prl).to_bytes().repeat(5));
    assert_eq!(world.take_messages(id).len(), 2, "two answers of eight octets");
    assert_eq!((world.middlebox.has_waiting_messages(id), world.middlebox.wake_at()), (true, Time::MAX));
    for (answers, has_waiting_messages) in [(2, true), (1, false)] {
        world.middlebox.resume(at(100), id, &mut world.batch);
        world.release();
        assert_eq!(
            (world.take_messages(id).len(), world.middlebox.has_waiting_messages(id)),
            (answers, has_waiting_messages)
        );
    }
}

/// A connection without an open session is closed after a minute of silence; an open session may be silent without
/// limit.
#[test]
fn silent_connections_are_closed_and_silent_sessions_are_not() {
    let (mut world, open) = World::firewall();
    let silent: Vec<SessionId> =
        (0..10_000).map(|_| world.connect(ConnectionInfo::plain(Framing::Stream))).collect();
    assert_eq!(world.middlebox.wake_at(), at(60));
    world.advance(at(60));
    assert!(silent.into_iter().all(|id| world.take_messages(id) == [None]));
    assert_eq!(world.middlebox.wake_at(), Time::MAX);
    world.granted(at(1_000_000), open, per(60));
}

proptest! {
    /// The stream is split by the lengths of the messages, regardless of its segments and of the size of
    /// batches.
    #[test]
    fn every_split_of_the_stream_gives_the_same_answers(
        cuts in prop::collection::vec(0usize..200, 0..20),
        room in 1usize..300,
    ) {
        let requests = [se(), per(60), Request::Prl, plc(Pid(1), 30), Request::Prs { pid: Pid(1) }, Request::St];
        let numbered = (0..).zip(requests);
        let stream: Vec<u8> = numbered.flat_map(|(tid, r)| Message::request(Tid(tid), r).to_bytes()).collect();
        let answers = |cuts: &[usize], room| {
            let mut world = World::new(Middlebox::firewall(HOUR));
            world.batch = Batch::with_room(room);
            let id = world.connect(ConnectionInfo::plain(Framing::Stream));
            let mut start = 0;
            for end in cuts.iter().copied().chain([stream.len()]) {
                world.receive(START, id, &stream[start..end]);
                while world.middlebox.has_waiting_messages(id) {
                    world.middlebox.resume(START, id, &mut world.batch);
                    world.release();
                }
                start = end;
            }
            world.take_messages(id)
        };
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
        cuts.sort_unstable();
        let whole = answers(&[], usize::MAX);
        let positive = |received: &Option<Body>| matches!(received, None | Some(Body::Reply(_)));
        prop_assert!(whole.len() == 7 && whole.iter().all(positive), "six replies and the end");
        prop_assert_eq!(answers(&cuts, room), whole);
    }
}
