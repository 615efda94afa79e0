//! `rpc`: requests and replies with different sizes, a server that needs time, and users who may wait for
//! replies.

use bytes::{Bytes, BytesMut};
use hol_base::{ByteCount, Duration, Rng, Seed, Time};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Pacer, Users};
use crate::padded_messages::{self, Zeros};
use crate::receiver::{Receiver, ReplySource};
use crate::sender::{RepliedRequest, RequestSource, Sender};
use crate::{
    Application, Arrivals, ConnectionId, ENDLESS, FramingFn, Host, Load, OnwardClient, Pace, SizeClass,
    Sizes, StreamLayout, Workload, WorkloadError,
};

/// Settings of the workload `rpc`: the keys of `[workload] kind = "rpc"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rpc {
    /// The load: when requests are due. By default a Poisson process.
    #[serde(flatten)]
    pub load: Load,
    /// Octets per request: a size, weights `{ "1kB" = 9, "200kB" = 1 }`, a log-normal `{ median = "2kB", sigma = 1.5 }`, or `{ file =
    /// "sizes.txt" }`. Default 200.
    #[serde(default = "request")]
    pub request: Sizes,
    /// Octets per reply, in any form that `request` accepts. Default 1 kB.
    #[serde(default = "reply")]
    pub reply: Sizes,
    /// Mean processing time of a request, exponentially distributed; requests are processed in parallel. Default none.
    #[serde(default)]
    pub service: Duration,
    /// Number of users, who each send a request after the previous reply (closed loop); excludes `rate`, `interval`,
    /// `arrivals` and `sources`. Default: open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Mean time from a reply to the user's next request, exponentially distributed; needs `users`. Default
    /// none.
    #[serde(default)]
    pub think: Duration,
    /// Octets of each request that are written first; Nagle's algorithm delays the rest (RFC 9293 section 3.7.4).
    /// Default: one write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ByteCount>,
}

fn request() -> Sizes {
    Sizes::Fixed(ByteCount(200))
}

fn reply() -> Sizes {
    Sizes::Fixed(ByteCount(1000))
}

impl Default for Rpc {
    fn default() -> Self {
        Self {
            load: Load::default(),
            request: request(),
            reply: reply(),
            service: Duration::ZERO,
            users: None,
            think: Duration::ZERO,
            head: None,
        }
    }
}

/// Minimum length of a request in octets: its length and number, the size of the reply, and the service time in ns.
const MIN_REQUEST: u64 = 8 + 4 + 8;
/// The value of the reply's size that marks the part of a request that is written first.
const HEAD_PART: u32 = u32::MAX;

impl Rpc {
    /// Returns the load; its intervals are exponential (a Poisson process) unless `arrivals` is set.
    fn load_or_poisson(&self) -> Load {
        let is_timed = self.load.pace() != Pace::Accepted;
        let arrivals = self.load.arrivals.or(is_timed.then_some(Arrivals::Poisson));
        Load { arrivals, ..self.load.clone() }
    }

    fn pacer(&self, messages: u64, seed: Seed) -> Pacer {
        match self.users {
            Some(number) => Pacer::closed(Users::new(number, self.think, seed), messages),
            None => self.load_or_poisson().pacer(messages, seed),
        }
    }
}

impl Workload for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn about(&self) -> &'static str {
        "requests and replies of any size, in an open loop (Poisson arrivals) or a closed loop (users)"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["request", "reply", "service", "users", "think", "head"]
    }

    fn set_defaults(&mut self) {
        if self.users.is_none() {
            self.load = self.load_or_poisson();
            self.load.set_defaults();
        }
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let Self { load, request, reply, users, think, head, .. } = self;
        let refuse = |problem| Err(WorkloadError::Rpc(problem));
        let late_limit = load.late_limit;
        if users.is_some() && *load != (Load { late_limit, ..Load::default() }) {
            return refuse(
                "with `users` requests have no schedule, because each follows a reply; remove `rate`, `interval`, `arrivals` and `sources`",
            );
        }
        if *users == Some(0) {
            return refuse("`users` is 0; set at least 1");
        }
        if users.is_none() && *think > Duration::ZERO {
            return refuse("`think` has no effect without `users`; set `users`, or remove `think`");
        }
        let first = head.map_or(0, |head| head.0);
        if head.is_some() && first < WorkloadError::MIN_SIZE {
            return refuse("`head` must be at least 8 octets");
        }
        if !request.is_possible(|octets| (MIN_REQUEST + first..=WorkloadError::MAX_SIZE).contains(&octets)) {
            return refuse(
                "`request` must be at least 20 octets after its `head`, and at most 16 MiB; at least one weight must be above 0, `sigma` \
                between 0 and 4, and `max` at least `median`",
            );
        }
        let possible = WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE;
        if !reply.is_possible(|octets| possible.contains(&octets)) {
            return refuse(
                "`reply` must be 8 octets to 16 MiB; at least one weight must be above 0, `sigma` between 0 and 4, and `max` at least \
                `median`",
            );
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        if self.users.is_some() { Pace::Replied } else { self.load.pace() }
    }

    fn load(&self) -> Option<&Load> {
        self.users.is_none().then_some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        if self.users.is_none() { Some(&mut self.load) } else { None }
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        vec![("request", &mut self.request), ("reply", &mut self.reply)]
    }

    fn longest_message(&self) -> Option<u64> {
        let max = |sizes: &Sizes| sizes.largest().unwrap_or(WorkloadError::MAX_SIZE);
        Some(max(&self.request).max(max(&self.reply)))
    }

    fn classes(&self) -> Vec<SizeClass> {
        let reply_classes = self.reply.classes(true);
        if reply_classes.is_empty() { self.request.classes(false) } else { reply_classes }
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn framing_fn(&self) -> FramingFn {
        padded_messages::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application> {
        let (calls, pacer) = (RpcRequests::new(self, seed), self.pacer(messages, seed));
        Box::new(Sender::new(calls, lanes, pacer, messages, self.load.late_limit))
    }

    fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        seed: Seed,
    ) -> Option<Box<dyn Application>> {
        Some(Box::new(Sender::new(
            RpcRequests::new(self, seed),
            lanes,
            Pacer::for_onward_requests(client),
            ENDLESS,
            None,
        )))
    }

    fn server(&self, _: StreamLayout, messages: u64, host: Host) -> Box<dyn Application> {
        Box::new(Receiver::new(RpcReplies::default(), messages).with_pending_requests(host.pending_requests))
    }

    fn describe(&self) -> String {
        let Self { request, reply, users, .. } = self;
        let users = users.map_or(String::new(), |users| format!(", {users} users"));
        format!("rpc, requests of {request}, replies of {reply}{users}")
    }
}

/// The requests of an rpc client. The client draws all random values, and each request contains those that the server
/// needs.
#[derive(Debug)]
struct RpcRequests {
    rpc: Rpc,
    rng: Rng,
    zeros: Zeros,
    /// Size of the reply to the last request, in octets.
    reply: u32,
}

impl RpcRequests {
    fn new(rpc: &Rpc, seed: Seed) -> Self {
        let rng = seed.derive("workload/sizes").rng();
        Self { rpc: rpc.clone(), rng, zeros: Zeros::default(), reply: 0 }
    }
}

impl RequestSource for RpcRequests {
    fn kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn next(&mut self, _: Time, number: u32) -> (u32, Bytes) {
        let Rpc { request, reply, service, head, .. } = &self.rpc;
        let first = head.map_or(0, |head| head.0);
        let octets = request.draw(&mut self.rng, [MIN_REQUEST + first, WorkloadError::MAX_SIZE]);
        self.reply = reply.draw(&mut self.rng, [WorkloadError::MIN_SIZE, WorkloadError::MAX_SIZE]);
        let service = match service.as_nanos() {
            0 => 0,
            mean => self.rng.exponential(mean as f64) as u64,
        };
        let mut message = self.zeros.take(octets as usize - first as usize);
        message[8..12].copy_from_slice(&self.reply.to_be_bytes());
        message[12..20].copy_from_slice(&service.to_be_bytes());
        (number, padded_messages::with_header(message, number))
    }

    fn head(&mut self, _: u32) -> Option<Bytes> {
        self.rpc.head.map(|head| padded_messages::message(&mut self.zeros, head.0 as usize, HEAD_PART))
    }

    fn reply_size(&self) -> u32 {
        self.reply
    }

    fn reply(&mut self, _: Time, payload: &Bytes) -> Result<RepliedRequest, &'static str> {
        padded_messages::number(payload).map(RepliedRequest::Message).ok_or("the message has no number")
    }
}

/// The replies of an rpc server; each request contains the size of its reply and its service time.
#[derive(Debug, Default)]
struct RpcReplies {
    zeros: Zeros,
}

/// Returns the size of the reply in octets and the service time, as the request states them; `None` for the head of a
/// request, which is written separately.
fn request_parameters(request: &Bytes) -> Option<(u32, Duration)> {
    padded_messages::number(request).filter(|number| *number != HEAD_PART)?;
    let octets = u32::from_be_bytes(*request.get(8..)?.first_chunk()?);
    let service = u64::from_be_bytes(*request.get(12..)?.first_chunk()?);
    Some((octets, Duration::from_nanos(service)))
}

impl ReplySource for RpcReplies {
    fn number(&self, request: &Bytes) -> Option<u32> {
        padded_messages::number(request).filter(|number| *number != HEAD_PART)
    }

    fn answer(&mut self, _: Time, _: ConnectionId, request: Bytes) -> Result<Option<Bytes>, &'static str> {
        let Some(number) = self.number(&request) else { return Ok(None) };
        let (octets, _) =
            request_parameters(&request).ok_or("the client sent a request without the size of the reply")?;
        let possible = WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE;
        if !possible.contains(&u64::from(octets)) {
            return Err("the client requested a reply of an invalid size");
        }
        let reply: BytesMut = self.zeros.take(octets as usize);
        Ok(Some(padded_messages::with_header(reply, number)))
    }

    fn service(&self, request: &Bytes) -> Duration {
        request_parameters(request).map_or(Duration::ZERO, |(_, service)| service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partial_transport::PartialTransport;
    use crate::{Delivery, Input, Outgoing, Output, WorkloadSpec};
    use hol_transport::DeliveryTimes;
    use proptest::prelude::*;

    const ONE: StreamLayout = StreamLayout {
        streams: 1,
        connections: 1,
        may_lose_messages: false,
        is_stream: true,
        handshake: None,
    };

    fn spec(keys: &str) -> WorkloadSpec {
        serde_json::from_str(&format!("{{\"kind\":\"rpc\"{keys}}}")).unwrap()
    }

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn deliver(to: &mut dyn Application, at: Time, payload: Bytes) {
        let (connection, delivery_times) = (ConnectionId(0), DeliveryTimes::default());
        to.handle(at, Input::Message(Delivery { connection, stream: 0, payload, delivery_times }));
    }

    /// Returns the messages that the application sends at `now`, and the time until which it then waits.
    fn drain(application: &mut dyn Application, now: Time) -> (Vec<Outgoing>, Time) {
        let mut sent = Vec::new();
        loop {
            match application.poll(now) {
                Output::Send(outgoing) => sent.push(outgoing),
                Output::Wait(until) => return (sent, until),
                Output::Open(_) => application.handle(now, Input::Opened(ConnectionId(0))),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_reply_has_the_requested_size() {
        let spec = spec(",\"users\":1,\"request\":\"300B\",\"reply\":{\"1kB\":1,\"2kB\":1}");
        let mut client = spec.client(ONE, 50, Seed(1));
        let mut server = spec.server(ONE, 50, Host::default());
        let mut replies = Vec::new();
        for at in 0..50 {
            let (requests, _) = drain(client.as_mut(), ms(at));
            let [request] = &requests[..] else { panic!("{requests:?}") };
            assert_eq!(request.payload.len(), 300);
            deliver(server.as_mut(), ms(at), request.payload.clone());
            let (answers, _) = drain(server.as_mut(), ms(at));
            replies.push(answers[0].payload.len());
            deliver(client.as_mut(), ms(at), answers[0].payload.clone());
        }
        assert!(replies.contains(&1000) && replies.contains(&2000), "{replies:?}");
        let mut sizes = Vec::new();
        let reading = spec.ledger_join(false);
        reading.settle_all(client.ledger(), server.ledger(), |record| {
            sizes.push(record.reply_size as usize);
            assert_eq!(record.size, 300);
        });
        assert_eq!(sizes, replies);
    }

    #[test]
    fn server_processes_requests_in_parallel() {
        let spec = spec(",\"service\":\"50ms\",\"rate\":\"1000/s\",\"arrivals\":\"periodic\"");
        let mut client = spec.client(ONE, 100, Seed(1));
        let mut server = spec.server(ONE, 100, Host::default());
        drain(client.as_mut(), ms(0));
        let (requests, _) = drain(client.as_mut(), ms(200));
        assert_eq!(requests.len(), 100);
        requests.into_iter().for_each(|request| deliver(server.as_mut(), ms(200), request.payload));
        let mut now = ms(200);
        let mut times = Vec::new();
        while times.len() < 100 {
            let (answers, next) = drain(server.as_mut(), now);
            times.extend(answers.iter().map(|_| now.since(ms(200)).as_millis_f64()));
            now = next;
        }
        // Exponential: the mean of 100 has a standard deviation of 5 ms.
        let mean = times.iter().sum::<f64>() / 100.0;
        assert!((35.0..65.0).contains(&mean), "{mean}");
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    }

    #[test]
    fn user_sends_again_after_the_reply_and_a_think_time() {
        let spec = spec(",\"users\":3,\"think\":\"1s\"");
        let mut client = spec.client(ONE, 5, Seed(1));
        let mut server = spec.server(ONE, 5, Host::default());
        let (mut now, mut under_way, mut max) = (ms(0), 0, 0);
        for _ in 0..20 {
            let (requests, next) = drain(client.as_mut(), now);
            under_way += requests.len();
            max = max.max(under_way);
            for request in requests {
                deliver(server.as_mut(), now, request.payload);
            }
            if next == Time::MAX && under_way == 0 {
                break;
            }
            for answer in drain(server.as_mut(), now).0 {
                deliver(client.as_mut(), now + Duration::from_millis(3), answer.payload);
                under_way -= 1;
            }
            let (_, next) = drain(client.as_mut(), now + Duration::from_millis(3));
            now = if next == Time::MAX { now + Duration::from_millis(3) } else { next };
        }
        assert_eq!((client.progress().messages_done, client.progress().is_all_due), (5, true));
        assert!(max <= 3, "{max}");
    }

    #[test]
    fn request_head_is_written_before_the_rest_and_gets_no_reply() {
        let spec = spec(",\"users\":1,\"head\":\"40B\",\"request\":\"200B\"");
        let mut client = spec.client(ONE, 1, Seed(1));
        let mut server = spec.server(ONE, 1, Host::default());
        let (parts, _) = drain(client.as_mut(), ms(0));
        let lengths: Vec<usize> = parts.iter().map(|part| part.payload.len()).collect();
        assert_eq!(lengths, [40, 160]);
        parts.into_iter().for_each(|part| deliver(server.as_mut(), ms(1), part.payload));
        assert_eq!((drain(server.as_mut(), ms(1)).0.len(), server.progress().messages_done), (1, 1));
    }

    #[test]
    fn contradictory_keys_are_refused_with_a_remedy() {
        for (keys, cure) in [
            (",\"users\":2,\"rate\":\"5/s\"", "remove `rate`"),
            (",\"users\":0", "set at least 1"),
            (",\"think\":\"5ms\"", "set `users`"),
            (",\"request\":\"19B\"", "at least 20"),
            (",\"request\":\"30B\",\"head\":\"20B\"", "after its `head`"),
            (",\"reply\":\"7B\"", "must be 8 octets"),
            (",\"reply\":{\"1kB\":0}", "weight"),
        ] {
            let problem = spec(keys).check().unwrap_err().to_string();
            assert!(problem.contains(cure), "{keys}: {problem}");
        }
        assert_eq!(spec(",\"users\":2,\"late_limit\":\"1s\"").check(), Ok(()));
    }

    #[test]
    fn default_load_of_rpc_is_a_poisson_process() {
        let arrivals = |keys: &str| spec(keys).with_defaults().arrivals();
        assert_eq!(arrivals(""), Arrivals::Poisson);
        assert_eq!(arrivals(",\"arrivals\":\"periodic\""), Arrivals::Periodic);
        assert_eq!(spec(",\"interval\":\"0s\"").with_defaults().check(), Ok(()));
        assert_eq!(spec(",\"users\":4").with_defaults().rate(), None);
    }

    proptest! {
        /// The rest of a request directly follows its head, even if a connection accepts only parts of either.
        #[test]
        fn requests_are_not_interleaved(
            rooms in prop::collection::vec(1_usize..300, 1..200),
            returns_rest: bool,
            users in 1_u32..6,
        ) {
            let spec = spec(&format!(",\"users\":{users},\"head\":\"40B\",\"request\":\"200B\""));
            let lanes = StreamLayout { streams: 2, connections: 2, ..ONE };
            let mut client = spec.client(lanes, 100, Seed(1));
            let mut server = spec.server(lanes, 100, Host::default());
            let mut transport = PartialTransport::new(returns_rest);
            for id in 0..2 {
                prop_assert!(matches!(client.poll(ms(0)), Output::Open(_)));
                client.handle(ms(0), Input::Opened(ConnectionId(id)));
            }
            for room in rooms {
                (0..2).for_each(|id| client.handle(ms(0), Input::Writable(ConnectionId(id))));
                for _ in 0..9 {
                    let Output::Send(outgoing) = client.poll(ms(0)) else { break };
                    let payload = outgoing.payload.clone();
                    match transport.send(outgoing, room) {
                        Some(refused) => client.handle(ms(0), Input::Full(refused)),
                        // Requests that were accepted completely have replies.
                        None if payload.len() == 160 => deliver(server.as_mut(), ms(0), payload),
                        None => {}
                    }
                }
                drain(server.as_mut(), ms(0)).0.into_iter().for_each(|reply| deliver(client.as_mut(), ms(0), reply.payload));
            }
            prop_assert!(transport.lengths(padded_messages::length_of).iter().all(|length| [40, 160].contains(length)));
        }
    }
}
