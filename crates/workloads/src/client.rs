//! The side that sends messages by the schedule and counts the replies.

use bytes::Bytes;
use hol_base::{Duration, Seed, Time};

use crate::agent::{Agent, Answered};
use crate::contract::{Delivery, Face, Input, Outgoing, Output, Trouble};
use crate::held::Held;
use crate::journal::{Arrived, Asked};
use crate::padding::{self, Padding};
use crate::schedule::Schedule;
use crate::{ENDLESS, Kind, WorkloadSpec};

/// The load generator and the application behind it.
///
/// Messages leave in the order of the schedule. When the transport's buffer is full, the one it refused and
/// all that come due after it wait; if that takes longer than the late limit the run is given up, because
/// from then on it would measure the backlog and not the transport (Kiesel et al. 2006, section 3.2). Where the
/// transport sets the pace each connection sets its own: a full one does not hold up those beside it.
#[derive(Debug)]
pub struct Client {
    requests: Requests,
    face: Face,
    schedule: Schedule,
    endless: bool,
    late_limit: Duration,
    /// SEs still to be sent.
    sessions_to_open: std::ops::Range<u16>,
    sessions_opening: u16,
    held: Held,
    trouble: Option<Trouble>,
    journal: Vec<Asked>,
    replies: u64,
}

/// Makes requests and reads replies.
#[derive(Debug)]
enum Requests {
    Simco(Agent),
    Padding(Padding),
}

impl Client {
    /// A client that sends `messages` messages, or [`ENDLESS`] ones; of `seed` come the arrivals and what is asked for.
    pub fn new(spec: &WorkloadSpec, face: Face, messages: u64, seed: Seed) -> Self {
        let draws = |what| seed.derive(what).rng();
        let requests = match spec.kind {
            Kind::Simco => Requests::Simco(Agent::new(face.sessions, spec.mix, draws("workload/mix"))),
            Kind::Echo | Kind::Pingpong | Kind::Oneway | Kind::Bulk => {
                Requests::Padding(Padding::new(spec.size() as usize))
            }
        };
        Self {
            requests,
            face,
            schedule: Schedule::new(spec, messages, draws("workload/arrivals")),
            endless: messages == ENDLESS,
            late_limit: spec.late_limit,
            sessions_to_open: 0..0,
            sessions_opening: 0,
            held: Held::default(),
            trouble: None,
            journal: crate::journal::with_room_for(messages),
            replies: 0,
        }
    }

    /// Takes one input.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Connected if matches!(self.requests, Requests::Simco(_)) => {
                self.sessions_to_open = 0..self.face.sessions;
                self.sessions_opening = self.face.sessions;
            }
            Input::Connected => self.schedule.start(now),
            Input::Message(delivery) => self.take_reply(now, &delivery),
            Input::Full(outgoing) => self.held.refused(outgoing),
            Input::Writable => self.held.retry(),
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self, now: Time) -> Output {
        if let Some(trouble) = self.trouble {
            return Output::Stop(trouble);
        }
        if let Some(outgoing) = self.held.next() {
            if let Some(entry) = outgoing.entry {
                self.journal[entry].written = now;
            }
            return Output::Send(outgoing);
        }
        if self.is_blocked() {
            return self.wait_for_room(now);
        }
        if let Some(session) = self.sessions_to_open.next() {
            let (tid, payload) = Agent::open(session);
            return Output::Send(Outgoing { stream: self.stream(tid.0), payload, entry: None });
        }
        if self.schedule.next() > now {
            return Output::Wait(self.schedule.next());
        }
        Output::Send(self.next_message(now))
    }

    /// Notes the rest of the schedule as never sent: the run is over. Without an end there is no rest.
    pub fn give_up(&mut self, now: Time) {
        if self.endless {
            return;
        }
        while self.schedule.left() > 0 {
            if self.schedule.next() == Time::MAX {
                self.schedule.start(now);
            }
            drop(self.next_message(now));
        }
    }

    /// How many messages have been answered.
    pub fn replies(&self) -> u64 {
        self.replies
    }

    /// How many messages have come due and were handed to the transport, or are held for it.
    pub fn sent(&self) -> u64 {
        self.journal.len() as u64
    }

    /// Nothing comes due before the other side answers: a session, or the reply of a ping-pong.
    pub fn awaits_answer(&self) -> bool {
        self.schedule.left() > 0 && self.schedule.next() == Time::MAX
    }

    /// When the latest of them was scheduled.
    pub fn last_scheduled(&self) -> Option<Time> {
        self.journal.last().map(|asked| asked.scheduled)
    }

    pub(crate) fn journal(&self) -> &[Asked] {
        &self.journal
    }

    /// No connection takes the next message.
    fn is_blocked(&self) -> bool {
        let most = if self.schedule.is_open_loop() { 1 } else { usize::from(self.face.sessions) };
        self.held.len() >= most
    }

    fn wait_for_room(&self, now: Time) -> Output {
        let Some(message) = self.held.oldest().and_then(|outgoing| outgoing.entry) else {
            return Output::Wait(Time::MAX);
        };
        if !self.schedule.is_open_loop() {
            return Output::Wait(Time::MAX);
        }
        let scheduled = self.journal[message].scheduled;
        let limit = scheduled + self.late_limit;
        if now < limit {
            return Output::Wait(limit);
        }
        Output::Stop(Trouble::BehindSchedule { message: message as u64, scheduled })
    }

    fn next_message(&mut self, now: Time) -> Outgoing {
        let entry = self.journal.len();
        let number = entry as u32;
        let (stream, payload) = match &mut self.requests {
            Requests::Simco(agent) => {
                let (tid, payload) = agent.request(now, number);
                (self.stream(tid.0), payload)
            }
            Requests::Padding(padding) => {
                let payload = padding.message(number);
                (self.stream(number), payload)
            }
        };
        let scheduled = self.schedule.advance(now);
        let size = payload.len() as u32;
        self.journal.push(Asked { scheduled, written: now, stream, size, reply: None, refused: false });
        Outgoing { stream, payload, entry: Some(entry) }
    }

    /// Transactions take the streams in turn, TID modulo the number of streams, but for those of a full connection.
    fn stream(&self, tid: u32) -> u16 {
        let Face { streams, sessions } = self.face;
        let streams = u32::from(streams);
        let turn = |skipped| ((tid % streams + skipped) % streams) as u16;
        let has_room = |stream: &u16| !self.held.waits_for(stream % sessions, sessions);
        (0..streams).map(turn).find(has_room).unwrap_or(turn(0))
    }

    fn take_reply(&mut self, now: Time, delivery: &Delivery) {
        let (number, refused) = match self.answered(now, &delivery.payload) {
            Ok(Answered::Session) => return self.session_opened(now),
            Ok(Answered::Message(number)) => (number, false),
            Ok(Answered::Refused(number)) => (number, true),
            Err(reason) => {
                self.trouble = Some(Trouble::Nonsense(reason));
                return;
            }
        };
        match self.journal.get_mut(number as usize) {
            Some(asked) if asked.reply.is_none() => {
                asked.reply = Some(Arrived { passage: delivery.passage, delivered: now });
                asked.refused = refused;
                self.replies += 1;
                self.schedule.replied(now);
            }
            _ => self.trouble = Some(Trouble::Nonsense("a reply to no request")),
        }
    }

    fn session_opened(&mut self, now: Time) {
        self.sessions_opening -= 1;
        if self.sessions_opening == 0 {
            self.schedule.start(now);
        }
    }

    fn answered(&mut self, now: Time, payload: &Bytes) -> Result<Answered, &'static str> {
        match &mut self.requests {
            Requests::Simco(agent) => agent.reply(now, payload),
            Requests::Padding(_) => {
                padding::number(payload).map(Answered::Message).ok_or("a message without a number")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;
    use hol_transport::Passage;

    fn client(kind: Kind, streams: u16, messages: u64) -> Client {
        Client::new(&WorkloadSpec::new(kind), Face { streams, sessions: 1 }, messages, Seed(1))
    }

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[track_caller]
    fn send(client: &mut Client, now: Time) -> Outgoing {
        match client.poll(now) {
            Output::Send(outgoing) => outgoing,
            other => panic!("{other:?} at {now}"),
        }
    }

    #[track_caller]
    fn wait(client: &mut Client, now: Time) -> Time {
        match client.poll(now) {
            Output::Wait(until) => until,
            other => panic!("{other:?} at {now}"),
        }
    }

    fn reply(client: &mut Client, now: Time, payload: Bytes) {
        let delivery = Delivery { stream: 0, payload, passage: Passage::default() };
        client.handle(now, Input::Message(delivery));
    }

    #[test]
    fn nothing_is_sent_before_the_connection_is_open() {
        assert_eq!(wait(&mut client(Kind::Echo, 1, 3), ms(500)), Time::MAX);
    }

    #[test]
    fn messages_take_the_streams_in_turn() {
        let mut client = client(Kind::Oneway, 3, 5);
        client.handle(ms(0), Input::Connected);
        let streams: Vec<u16> = (1..=5).map(|k| send(&mut client, ms(10 * k)).stream).collect();
        assert_eq!(streams, [0, 1, 2, 0, 1]);
        assert_eq!(wait(&mut client, ms(60)), Time::MAX);
    }

    /// The load generator of Kiesel et al. 2006 (IKR report 53): the measurement is aborted when a message
    /// could not be passed to the transport within one second of its scheduled time.
    #[test]
    fn a_blocked_channel_aborts_the_run_one_second_after_the_scheduled_time() {
        let mut client = client(Kind::Oneway, 1, 1000);
        client.handle(ms(0), Input::Connected);
        let first = send(&mut client, ms(10));
        client.handle(ms(10), Input::Full(first));
        assert_eq!(wait(&mut client, ms(10)), ms(1010));
        assert_eq!(wait(&mut client, ms(1009)), ms(1010));
        let Output::Stop(trouble) = client.poll(ms(1010)) else { panic!("it goes on") };
        assert_eq!(trouble, Trouble::BehindSchedule { message: 0, scheduled: ms(10) });
    }

    #[test]
    fn a_blocked_channel_delays_messages_but_not_their_schedule() {
        let mut client = client(Kind::Oneway, 1, 3);
        client.handle(ms(0), Input::Connected);
        let first = send(&mut client, ms(10));
        client.handle(ms(10), Input::Full(first));
        client.handle(ms(900), Input::Writable);
        (0..3).for_each(|_| drop(send(&mut client, ms(900))));
        let times: Vec<_> = client.journal().iter().map(|asked| (asked.scheduled, asked.written)).collect();
        assert_eq!(times, [(ms(10), ms(900)), (ms(20), ms(900)), (ms(30), ms(900))]);
    }

    #[test]
    fn a_greedy_client_is_never_late_and_goes_on_when_there_is_room() {
        let mut client = client(Kind::Bulk, 1, ENDLESS);
        client.handle(ms(0), Input::Connected);
        let first = send(&mut client, ms(0));
        let second = send(&mut client, ms(0));
        client.handle(ms(0), Input::Full(second));
        assert_eq!((first.payload.len(), wait(&mut client, ms(9000))), (4096, Time::MAX));
        client.handle(ms(9000), Input::Writable);
        (0..3).for_each(|_| drop(send(&mut client, ms(9000))));
        let scheduled: Vec<Time> = client.journal().iter().map(|asked| asked.scheduled).collect();
        assert_eq!(scheduled, [ms(0), ms(0), ms(9000), ms(9000)]);
    }

    #[test]
    fn a_full_connection_does_not_hold_up_a_greedy_client_on_another() {
        let face = Face { streams: 4, sessions: 2 };
        let mut client = Client::new(&WorkloadSpec::new(Kind::Bulk), face, ENDLESS, Seed(1));
        client.handle(ms(0), Input::Connected);
        let first = send(&mut client, ms(0));
        assert_eq!(first.stream, 0);
        client.handle(ms(0), Input::Full(first));
        let streams = [(); 4].map(|()| send(&mut client, ms(0)).stream);
        assert_eq!(streams, [1, 3, 3, 1], "streams 0 and 2 are those of the full connection");
        let last = send(&mut client, ms(0));
        client.handle(ms(0), Input::Full(last));
        assert_eq!(wait(&mut client, ms(0)), Time::MAX);
        client.handle(ms(7), Input::Writable);
        let again = send(&mut client, ms(7));
        assert_eq!((again.stream, again.entry), (0, Some(0)));
    }

    #[test]
    fn giving_up_notes_every_message_that_was_not_sent() {
        for kind in [Kind::Oneway, Kind::Pingpong] {
            let mut client = client(kind, 1, 4);
            client.handle(ms(0), Input::Connected);
            drop(send(&mut client, ms(10)));
            client.give_up(ms(15));
            assert_eq!((client.sent(), client.journal().len()), (4, 4));
        }
    }

    #[test]
    fn pingpong_sends_when_the_reply_came() {
        let mut client = client(Kind::Pingpong, 1, 2);
        client.handle(ms(7), Input::Connected);
        let first = send(&mut client, ms(7));
        assert_eq!(wait(&mut client, ms(7)), Time::MAX);
        reply(&mut client, ms(27), first.payload);
        assert_eq!(padding::number(&send(&mut client, ms(27)).payload), Some(1));
    }

    /// RFC 4540 section 7: no transaction before the session is established.
    #[test]
    fn simco_establishes_its_session_first() {
        let mut client = client(Kind::Simco, 8, 2);
        client.handle(ms(0), Input::Connected);
        let establishment = send(&mut client, ms(0));
        assert_eq!(establishment.stream, 0);
        assert_eq!(wait(&mut client, ms(0)), Time::MAX);
        let capabilities = hol_simco::Capabilities::firewall(hol_simco::Lifetime(60));
        let granted = hol_simco::Message::reply(hol_simco::Tid(0), hol_simco::Reply::Se { capabilities });
        reply(&mut client, ms(20), granted.to_bytes());
        assert_eq!(wait(&mut client, ms(20)), ms(30));
        assert_eq!(send(&mut client, ms(30)).stream, 1);
    }

    #[test]
    fn a_refused_request_is_answered_and_the_run_goes_on() {
        use hol_simco::{Message, Refusal, Tid};
        let mut client = client(Kind::Simco, 1, 2);
        client.schedule.start(ms(0));
        send(&mut client, ms(10));
        reply(&mut client, ms(30), Message::refusal(Tid(1), Refusal::ConfigurationFailed).to_bytes());
        assert_eq!((client.replies(), client.journal()[0].refused), (1, true));
        send(&mut client, ms(30));
    }

    #[test]
    fn nonsense_from_the_other_side_ends_the_run() {
        let mut client = client(Kind::Echo, 1, 2);
        client.handle(ms(0), Input::Connected);
        let first = send(&mut client, ms(10));
        reply(&mut client, ms(30), first.payload.clone());
        reply(&mut client, ms(30), first.payload);
        assert!(matches!(client.poll(ms(30)), Output::Stop(Trouble::Nonsense(_))));
    }
}
