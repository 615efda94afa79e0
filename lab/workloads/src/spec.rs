//! The `[workload]` table of an experiment.

use std::fmt;

use hol_base::{Duration, Frequency, Seed};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::tls;
use crate::{
    Application, Arrivals, FramingFn, Host, LedgerJoin, Load, OnwardClient, Pace, SizeClass, Sizes,
    StreamLayout, WorkloadKind,
};

/// A workload with its nodes and its start. The keys of its kind are in the same table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSpec {
    /// The kind of the workload, with its own settings.
    #[serde(flatten)]
    pub kind: WorkloadKind,
    /// Node of the client. Default `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Node of the server. Default `server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Time at which the client connects. Default 0.
    #[serde(default)]
    pub start: Duration,
    /// Maximum random delay of the start, drawn for each repetition. Default none.
    ///
    /// A host's timers expire at the ticks of its clock. If nothing else is random, runs that start at the same tick
    /// are identical, and their confidence interval of ± 0 is meaningless (phase effects: Floyd and Jacobson 1992). 256
    /// ms covers a slot of Linux's timer wheel for timeouts of up to 16 s.
    #[serde(default)]
    pub spread: Duration,
    /// Time limit for opening a connection, after which the run ends. Default: the transport's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Duration>,
    /// Whether the server listens; otherwise it refuses connections. Default true.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub listens: bool,
}

const fn yes() -> bool {
    true
}

impl WorkloadSpec {
    /// Creates a workload without any of the common keys.
    pub fn new(kind: impl Into<WorkloadKind>) -> Self {
        let kind = kind.into();
        let (start, spread) = (Duration::ZERO, Duration::ZERO);
        Self { kind, from: None, to: None, start, spread, connect_timeout: None, listens: true }
    }

    /// Returns the name of the client's node.
    pub fn client_node(&self) -> &str {
        self.from.as_deref().unwrap_or("client")
    }

    /// Returns the name of the server's node.
    pub fn server_node(&self) -> &str {
        self.to.as_deref().unwrap_or("server")
    }

    /// Returns the settings of the load; `None` unless messages are due at given times.
    pub fn load(&self) -> Option<&Load> {
        self.kind.workload().load()
    }

    /// Returns the time after which the workload stops sending, from the opening of its connections; `None`: unlimited.
    pub fn sending_duration(&self) -> Option<Duration> {
        match &self.kind {
            WorkloadKind::Bulk(bulk) => bulk.lasts,
            _ => None,
        }
    }

    /// Returns the settings of [`Self::load`], mutable.
    pub fn load_mut(&mut self) -> Option<&mut Load> {
        self.kind.workload_mut().load_mut()
    }

    /// Returns the keys for sizes that may differ from message to message.
    pub fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        self.kind.workload_mut().sizes_mut()
    }

    /// Returns the message rate of each source; `None` if the workload has no schedule.
    pub fn rate(&self) -> Option<Frequency> {
        self.load().and_then(Load::rate)
    }

    /// Returns the number of sources, which all send at the same times.
    pub fn source_count(&self) -> u16 {
        self.load().map_or(1, |load| load.sources)
    }

    /// Returns the distribution of the intervals between messages.
    pub fn arrivals(&self) -> Arrivals {
        self.load().map_or(Arrivals::Periodic, Load::arrivals)
    }

    /// Returns how long a due message may wait until the transport accepts it; `None`: unlimited.
    pub fn late_limit(&self) -> Option<Duration> {
        self.load().and_then(|load| load.late_limit)
    }

    /// Returns the number of octets per message; `None` if sizes differ.
    pub fn size(&self) -> Option<u64> {
        self.kind.workload().size()
    }

    /// Returns the number of octets of the longest message; `None` if it is unknown.
    pub fn longest_message(&self) -> Option<u64> {
        self.kind.workload().longest_message()
    }

    /// Returns the classes of sizes for which results are also reported separately; empty if all sizes are the same.
    pub fn classes(&self) -> Vec<SizeClass> {
        self.kind.workload().classes()
    }

    /// Returns the kind of records whose response times are reported.
    pub fn record_kind(&self) -> RecordKind {
        self.kind.workload().record_kind()
    }

    /// Returns whether the workload runs the user's own programs.
    pub const fn runs_programs(&self) -> bool {
        matches!(self.kind, WorkloadKind::Programs(_))
    }

    /// Returns whether each message is answered.
    pub fn has_replies(&self) -> bool {
        self.record_kind().has_reply()
    }

    /// Returns whether the next message comes due only after the reply to the previous one.
    pub fn waits_for_replies(&self) -> bool {
        self.kind.workload().pace() == Pace::Replied
    }

    /// Returns whether the workload sends as fast as the transport allows.
    pub fn is_greedy(&self) -> bool {
        self.kind.workload().pace() == Pace::Accepted
    }

    /// Returns the function that finds message boundaries in a byte stream. With TLS, these are the boundaries of the
    /// records of each message.
    pub fn framing_fn(&self, lanes: StreamLayout) -> FramingFn {
        tls::framing_fn(lanes.handshake, self.kind.workload().framing_fn())
    }

    /// Returns the rules by which the ledgers of both ends are joined; `may_lose_messages` says whether the transport
    /// may abandon messages.
    pub fn ledger_join(&self, may_lose_messages: bool) -> LedgerJoin {
        LedgerJoin { has_replies: self.has_replies(), may_lose_messages }
    }

    /// Creates the client, which sends `messages` messages ([`ENDLESS`](crate::ENDLESS): unlimited). Arrivals and
    /// requests derive from `seed`.
    pub fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application> {
        tls::with_tls(self.kind.workload().client(lanes, messages, seed), lanes.handshake)
    }

    /// Creates a client that sends a message whenever a request of a server waits for it to do so.
    ///
    /// # Panics If the messages of the workload have no replies.
    pub fn onward_client(
        &self,
        lanes: StreamLayout,
        client: OnwardClient,
        seed: Seed,
    ) -> Box<dyn Application> {
        let client = self.kind.workload().onward_client(lanes, client, seed);
        tls::with_tls(client.expect("a scenario is checked first"), lanes.handshake)
    }

    /// Creates the server application, which runs on `host`.
    pub fn server(&self, lanes: StreamLayout, messages: u64, host: Host) -> Box<dyn Application> {
        tls::with_tls(self.kind.workload().server(lanes, messages, host), lanes.handshake)
    }

    /// Returns the workload with its random start delay drawn from this seed.
    pub fn with_drawn_start(&self, seed: Seed) -> Self {
        let late = seed.derive("start").rng().below(self.spread.as_nanos().saturating_add(1));
        Self { start: self.start + Duration::from_nanos(late), spread: Duration::ZERO, ..self.clone() }
    }

    /// Returns the workload with every missing key set to its default.
    pub fn with_defaults(&self) -> Self {
        let (from, to) = (Some(self.client_node().to_owned()), Some(self.server_node().to_owned()));
        let mut settled = Self { from, to, ..self.clone() };
        settled.kind.workload_mut().set_defaults();
        settled
    }

    /// Returns an error for contradictory keys or impossible sizes.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.kind.workload().check()
    }
}

/// Formats the workload as a short description.
impl fmt::Display for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.workload().describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<WorkloadSpec, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn keys_of_another_kind_are_refused_by_name() {
        for (json, key) in [
            ("{\"kind\":\"pingpong\",\"rate\":\"1/s\"}", "rate"),
            ("{\"kind\":\"bulk\",\"interval\":\"0s\"}", "interval"),
            ("{\"kind\":\"simco\",\"size\":\"100B\"}", "size"),
            ("{\"kind\":\"echo\",\"mix\":{\"enable\":1}}", "mix"),
            ("{\"kind\":\"oneway\",\"sizes\":\"1B\"}", "sizes"),
        ] {
            let problem = read(json).unwrap_err();
            assert!(problem.contains(&format!("unknown field `{key}`")), "{problem}");
        }
        assert!(read("{\"kind\":\"ftp\"}").unwrap_err().contains("`simco`"));
    }

    #[test]
    fn common_keys_are_accepted_with_every_kind() {
        let text = "{\"kind\":\"echo\",\"to\":\"b\",\"rate\":\"5/s\",\"size\":\"64B\",\"start\":\"2s\"}";
        let workload = read(text).unwrap();
        assert_eq!(
            (workload.server_node(), workload.size(), workload.start),
            ("b", Some(64), Duration::from_secs(2))
        );
        assert_eq!(workload.rate(), Frequency::new(5.0));
        let again = read(&serde_json::to_string(&workload).unwrap()).unwrap();
        assert_eq!(again, workload);
    }

    #[test]
    fn the_start_is_drawn_from_the_seed_up_to_the_spread() {
        let workload = read("{\"kind\":\"echo\",\"start\":\"5s\",\"spread\":\"8ms\"}").unwrap();
        let drawn = |seed| workload.with_drawn_start(Seed(seed));
        let late: Vec<f64> =
            (0..1000).map(|seed| (drawn(seed).start - workload.start).as_millis_f64()).collect();
        assert!(late.iter().all(|late| *late <= 8.0));
        let mean = late.iter().sum::<f64>() / 1000.0;
        // Uniform: the mean of 1000 has a standard deviation of 8 / sqrt(12000) ms.
        assert!((mean - 4.0).abs() < 0.3, "{mean}");
        assert_eq!((drawn(7), drawn(7).with_drawn_start(Seed(8))), (drawn(7), drawn(7)), "it is drawn once");
        assert_eq!(
            WorkloadSpec { spread: Duration::ZERO, ..workload.clone() }.with_drawn_start(Seed(1)).start,
            workload.start
        );
    }

    #[test]
    fn invalid_sizes_and_mixes_are_refused_with_a_remedy() {
        let check = |json| read(json).unwrap().check().map_err(|e| e.to_string());
        assert!(check("{\"kind\":\"echo\",\"size\":\"7B\"}").unwrap_err().contains("must have 8 to"));
        assert_eq!(check("{\"kind\":\"simco\",\"mix\":{\"enable\":2,\"lifetime\":1,\"delete\":2}}"), Ok(()));
        assert!(check("{\"kind\":\"simco\",\"mix\":{\"enable\":0}}").is_err());
        let problem = check("{\"kind\":\"simco\",\"mix\":{\"enable\":1,\"delete\":2}}").unwrap_err();
        assert!(problem.contains("1 for enable and 2 for delete"), "{problem}");
    }

    #[test]
    fn table_with_defaults_names_every_key_and_stays_valid() {
        for kind in WorkloadKind::all() {
            let (name, workload) = (kind.workload().name(), WorkloadSpec::new(kind));
            let settled = workload.with_defaults();
            assert_eq!((settled.check(), settled.kind.workload().name()), (Ok(()), name));
            let json = serde_json::to_value(&settled).unwrap();
            assert_eq!(json.get("rate").is_some(), workload.load().is_some(), "{json}");
            let sized = !["rpc", "simco", "media", "replay", "programs"].contains(&name);
            assert_eq!(json.get("size").is_some(), sized, "{json}");
        }
    }
}
