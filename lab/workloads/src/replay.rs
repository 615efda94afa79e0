//! `replay`: messages of given sizes at given times, for example from a capture.

use bytes::Bytes;
use hol_base::{Seed, Time};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchanges::Exchanges;
use crate::load::Pacer;
use crate::padded_messages::{self, Zeros};
use crate::receiver::{Receiver, ReplySource};
use crate::sender::{RepliedRequest, RequestSource, Sender};
use crate::{
    Application, ConnectionId, ENDLESS, FramingFn, Host, OnwardClient, Pace, StreamLayout, Workload,
    WorkloadError,
};

/// Settings of the workload `replay`: the keys of `[workload] kind = "replay"`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Messages in order of time, each with its due time, its size and the size of its reply, if any: `"12ms 200B
    /// 5kB"`. Longer runs repeat them. Default: 128 octets each way.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub exchanges: Exchanges,
}

impl Workload for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn about(&self) -> &'static str {
        "messages of given sizes at given times, as `hol replay` takes them from a capture"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["exchanges"]
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let exchanges = &self.exchanges.0;
        let sizes = exchanges.iter().flat_map(|exchange| [Some(exchange.octets), exchange.reply]);
        let possible = WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE;
        if let Some(size) = sizes.flatten().find(|size| !possible.contains(&size.0)) {
            return Err(WorkloadError::Size { size: size.0 });
        }
        let is_mixed =
            !self.exchanges.are_answered() && exchanges.iter().any(|exchange| exchange.reply.is_some());
        match exchanges.windows(2).position(|pair| pair[0].at > pair[1].at) {
            _ if exchanges.is_empty() => {
                Err(WorkloadError::Replay("`exchanges` is empty; add at least one".to_owned()))
            }
            _ if is_mixed => {
                let problem = "some of `exchanges` have a reply and some have none; give those without one the shortest reply, \"8B\"";
                Err(WorkloadError::Replay(problem.to_owned()))
            }
            Some(at) => {
                let problem = "is due before the previous one; sort `exchanges` by their times";
                Err(WorkloadError::Replay(format!(
                    "exchange {}, \"{}\", {problem}",
                    at + 2,
                    exchanges[at + 1]
                )))
            }
            None => Ok(()),
        }
    }

    fn pace(&self) -> Pace {
        Pace::Interval(self.exchanges.period() / self.exchanges.0.len() as u64)
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn longest_message(&self) -> Option<u64> {
        let sizes = self
            .exchanges
            .0
            .iter()
            .flat_map(|exchange| [Some(exchange.octets.0), exchange.reply.map(|r| r.0)]);
        sizes.flatten().max()
    }

    fn record_kind(&self) -> RecordKind {
        if self.exchanges.are_answered() { RecordKind::Transaction } else { RecordKind::Message }
    }

    fn framing_fn(&self) -> FramingFn {
        padded_messages::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, _: Seed) -> Box<dyn Application> {
        let pacer = Pacer::scripted(self.exchanges.clone(), messages);
        Box::new(Sender::new(ReplayMessages::new(self), lanes, pacer, messages, None))
    }

    fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        _: Seed,
    ) -> Option<Box<dyn Application>> {
        let sender =
            Sender::new(ReplayMessages::new(self), lanes, Pacer::for_onward_requests(client), ENDLESS, None);
        self.exchanges.are_answered().then(|| Box::new(sender) as Box<dyn Application>)
    }

    fn server(&self, _: StreamLayout, messages: u64, host: Host) -> Box<dyn Application> {
        Box::new(
            Receiver::new(ReplayMessages::new(self), messages).with_pending_requests(host.pending_requests),
        )
    }

    fn describe(&self) -> String {
        format!("replay of {} messages", self.exchanges.0.len())
    }
}

/// The messages and replies of a replay; both ends know all sizes from the start.
#[derive(Debug)]
struct ReplayMessages {
    exchanges: Exchanges,
    zeros: Zeros,
    kind: RecordKind,
}

impl ReplayMessages {
    fn new(replay: &Replay) -> Self {
        let (exchanges, kind) = (replay.exchanges.clone(), replay.record_kind());
        Self { exchanges, zeros: Zeros::default(), kind }
    }
}

impl RequestSource for ReplayMessages {
    fn kind(&self) -> RecordKind {
        self.kind
    }

    fn next(&mut self, _: Time, number: u32) -> (u32, Bytes) {
        let octets = self.exchanges.get(number).octets.0 as usize;
        (number, padded_messages::message(&mut self.zeros, octets, number))
    }

    fn reply(&mut self, _: Time, payload: &Bytes) -> Result<RepliedRequest, &'static str> {
        padded_messages::number(payload).map(RepliedRequest::Message).ok_or("the message has no number")
    }
}

impl ReplySource for ReplayMessages {
    fn number(&self, request: &Bytes) -> Option<u32> {
        padded_messages::number(request)
    }

    fn answer(&mut self, _: Time, _: ConnectionId, request: Bytes) -> Result<Option<Bytes>, &'static str> {
        let number = padded_messages::number(&request).ok_or("the message has no number")?;
        let reply = self.exchanges.get(number).reply;
        Ok(reply.map(|octets| padded_messages::message(&mut self.zeros, octets.0 as usize, number)))
    }
}

#[cfg(test)]
mod tests {
    use crate::WorkloadSpec;

    fn read(exchanges: &str) -> Result<WorkloadSpec, String> {
        let json = format!("{{\"kind\":\"replay\",\"exchanges\":{exchanges}}}");
        serde_json::from_str(&json).map_err(|problem| problem.to_string())
    }

    #[test]
    fn exchanges_round_trip_and_repeat_after_the_last() {
        let spec = read("[\"0s 100B 8B\",\"30ms 2kB 9B\"]").unwrap();
        assert_eq!(
            serde_json::from_value::<WorkloadSpec>(serde_json::to_value(&spec).unwrap()).unwrap(),
            spec
        );
        assert_eq!((spec.check(), spec.longest_message(), spec.has_replies()), (Ok(()), Some(2000), true));
        let crate::WorkloadKind::Replay(replay) = &spec.kind else { panic!("{spec:?}") };
        let due: Vec<u64> = (0..5).map(|number| replay.exchanges.due_time(number).as_millis()).collect();
        assert_eq!(due, [0, 30, 60, 90, 120]);
    }

    #[test]
    fn invalid_exchanges_are_refused_with_a_remedy() {
        for (exchanges, cure) in [
            ("[]", "add at least one"),
            ("[\"2ms 9B\",\"1ms 9B\"]", "exchange 2, \"1ms 9B\", is due before"),
            ("[\"2ms 9B\",\"3ms 9B 9B\"]", "the shortest reply, \"8B\""),
            ("[\"2ms 7B\"]", "must have 8 to"),
        ] {
            let problem = read(exchanges).unwrap().check().unwrap_err().to_string();
            assert!(problem.contains(cure), "{problem}");
        }
        assert!(read("[\"2ms\"]").unwrap_err().contains("a time and one or two sizes"));
        assert!(read("[\"2 9B\"]").unwrap_err().contains("a time such as"));
    }
}
