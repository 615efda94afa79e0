//! Applications of ns, and the times when they send.

use hol_base::Duration;

use crate::agents::{Class, packets};
use crate::new::unknown_class;
use crate::ns_defaults::read_default;
use crate::quantity::{any_number, bits_per_second, positive, seconds, switch};
use crate::random_sources::{Bursts, Pattern};
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at};

/// An application of a script: a traffic source that is attached to an agent.
#[derive(Debug)]
pub(crate) struct Application {
    /// Position in the script at which the application is created.
    pub at: usize,
    /// The class of the application in ns.
    pub class: &'static str,
    /// Whether the application sends as fast as the transport accepts data.
    pub greedy: bool,
    /// Index of the agent to which the application is attached.
    pub agent: Option<usize>,
    /// The size of a packet in octets.
    pub size: u64,
    /// The rate in bit/s.
    pub rate: f64,
    /// Interval between packets, an attribute that only Emulab has; ns has a rate instead.
    pub interval: Option<Duration>,
    /// Number of packets after which the application stops.
    pub max_packets: Option<u64>,
    /// When the application started to send; `None` if it does not send now.
    pub running_since: Option<Duration>,
    /// Whether `running_since` is the time at which an attribute changed, not the time of a start.
    continues: bool,
    /// The periods of sending that have ended.
    pub periods: Vec<SendingPeriod>,
    /// The packets that commands of the script request, such as `produce` and `send`.
    pub produced: Vec<ScriptedPackets>,
    /// The sum of the numbers of packets in `produced`.
    pub produced_packets: u64,
    /// The bursts of an application that sends at random times.
    pub bursts: Option<Bursts>,
}

/// A period in which an application sends at one interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendingPeriod {
    /// When the period starts.
    pub start: Duration,
    /// When the period ends; `None` if the script never stops the application.
    pub stop: Option<Duration>,
    /// The size of a packet in octets.
    pub size: u64,
    /// The time between packets in this period.
    pub interval: Duration,
    /// The time between packets in seconds, computed as ns computes it.
    exact_interval: f64,
    /// The number of packets that CBR sends in this period.
    pub packets: u64,
    /// Whether the application continued from the previous period without a restart, because only its attributes
    /// changed.
    continues: bool,
}

/// Packets that a script sends at one time, in addition to the packets that applications schedule themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptedPackets {
    /// When the script requests the packets.
    pub at: Duration,
    /// Number of packets that the script requests.
    pub count: u64,
    /// Octets of each packet; `None`: the packet size of the agent.
    pub octets: Option<u64>,
}

/// The pattern in which an application of a script sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Greedy,
    /// The application sends only the packets that commands of the script request.
    Counted,
    Constant,
    Random(Pattern),
}

/// The class that hol's messages name as the source of packets of `$udp send`.
pub(crate) const WRITER_CLASS: &str = "Application";

/// Classes of applications in ns, each with the name in hol's messages and the sending pattern.
pub(crate) const APPLICATIONS: [(&str, &str, Kind); 10] = [
    ("Application/FTP", "Application/FTP", Kind::Greedy),
    ("Source/FTP", "Source/FTP", Kind::Greedy),
    ("Application/Traffic/CBR", "Application/Traffic/CBR", Kind::Constant),
    ("Traffic/CBR", "Application/Traffic/CBR", Kind::Constant),
    (
        "Application/Traffic/Exponential",
        "Application/Traffic/Exponential",
        Kind::Random(Pattern::Exponential),
    ),
    ("Traffic/Expoo", "Application/Traffic/Exponential", Kind::Random(Pattern::Exponential)),
    ("Application/Traffic/Pareto", "Application/Traffic/Pareto", Kind::Random(Pattern::Pareto)),
    ("Traffic/Pareto", "Application/Traffic/Pareto", Kind::Random(Pattern::Pareto)),
    ("Application/Telnet", "Application/Telnet", Kind::Random(Pattern::Telnet)),
    ("Source/Telnet", "Application/Telnet", Kind::Random(Pattern::Telnet)),
];

/// Attributes of applications in ns; all other variables of an application are the script's own.
pub(crate) const ATTRIBUTES: [&str; 17] = [
    "agent_",
    "burst_time_",
    "class_",
    "dst_",
    "fid_",
    "flags_",
    "idle_time_",
    "interval_",
    "maxpkts_",
    "packetSize_",
    "packet_size_",
    "prio_",
    "random_",
    "rate_",
    "shape_",
    "type_",
    "enableRecv_",
];

pub(crate) fn no_agent_error(at: usize) -> WordError {
    WordError { at, problem: "this application has no agent; add $ftp attach-agent $tcp".to_owned() }
}

impl Simulator<'_> {
    /// Creates an application, and returns the name of its object.
    pub(crate) fn add_application(&mut self, at: usize, class: &'static str, kind: Kind) -> String {
        self.traffic.applications.push(Application::new(at, class, kind));
        self.add(Object::Application(self.traffic.applications.len() - 1))
    }

    /// Executes `$tcp attach-app FTP` or `$tcp attach-source FTP`, which create an application over an agent.
    pub(crate) fn attach_kind(&mut self, agent: usize, method: &str, kind: &Word) -> Outcome {
        let prefix = if method == "attach-app" { "Application" } else { "Source" };
        let class = Word { text: format!("{prefix}/{}", kind.text), ..kind.clone() };
        let Some(object) = self.new_endpoint(&class) else {
            return self.unknown(kind.at, unknown_class(&class.text));
        };
        let object = object?;
        if let Some(Object::Application(index)) = self.object(&object) {
            self.traffic.attach(index, agent, kind.at)?;
        }
        Ok(object)
    }

    /// Executes `$udp attach-traffic $cbr`, which attaches an application to an agent.
    pub(crate) fn attach_traffic(&mut self, agent: usize, traffic: &Word) -> Outcome {
        let Some(Object::Application(index)) = self.object(&traffic.text) else {
            return error_at(
                traffic.at,
                "this is not an application; create one with new Application/Traffic/CBR",
            );
        };
        self.attach_application(index, agent, traffic.at)?;
        Ok(String::new())
    }

    pub(crate) fn attach_application(
        &mut self,
        index: usize,
        agent: usize,
        at: usize,
    ) -> Result<(), WordError> {
        let has_begun = self.has_begun();
        if has_begun && self.traffic.applications[index].agent.is_some_and(|known| known != agent) {
            return error_at(at, "an application cannot change its agent during a run; create another one");
        }
        self.traffic.attach(index, agent, at)
    }

    /// Executes a command of an application.
    pub(crate) fn application_command(&mut self, index: usize, method: &Word, words: &[Word]) -> Outcome {
        let now = self.schedule.now.unwrap_or_default();
        let application = &mut self.traffic.applications[index];
        match (method.text.as_str(), &words[2..]) {
            ("attach-agent", [word]) => {
                let agent = self.agent_of(word)?;
                self.attach_application(index, agent, word.at)?;
            }
            ("set", [name]) => {
                return Ok(match name.text.as_str() {
                    "packetSize_" | "packet_size_" => application.size.to_string(),
                    "rate_" => application.rate.to_string(),
                    "interval_" => application.interval().as_secs_f64().to_string(),
                    "maxpkts_" if application.max_packets.is_some() => {
                        application.max_packets.unwrap_or_default().to_string()
                    }
                    _ => MEASURED_VALUE.to_owned(),
                });
            }
            ("set", [name, value]) => return self.set_application(index, name, value, words),
            ("start", []) => self.start_application(index, now),
            ("stop", []) => self.stop_application(index, method.at)?,
            ("produce" | "producemore", [count]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent_error(application.at))?;
                if self.traffic.agents[agent].class == Class::Sctp {
                    let problem =
                        "ns's SCTP cannot send a number of packets; use send with a number of octets";
                    return error_at(method.at, problem);
                }
                return self.produce(agent, Some(index), method, packets(count)?);
            }
            ("send", [octets]) if application.greedy => {
                let agent = application.agent.ok_or_else(|| no_agent_error(application.at))?;
                return self.send_octets(agent, method, octets);
            }
            // CBR and Telnet have no such command.
            ("use-rng", [generator]) if application.bursts.as_ref().is_some_and(Bursts::has_pauses) => {
                let generator = self.generator(generator)?;
                let bursts = self.traffic.applications[index].bursts.as_mut();
                bursts.expect("the pattern has checked that the times are random").generator = generator;
            }
            ("agent", []) => {
                let agent = application.agent.map(Object::Agent);
                return Ok(agent.map_or_else(|| MEASURED_VALUE.to_owned(), |agent| self.add(agent)));
            }
            _ => {
                return self.unknown(
                    method.at,
                    format!("{:?} is not a supported command of an application", method.text),
                );
            }
        }
        Ok(String::new())
    }

    pub(crate) fn stop_application(&mut self, index: usize, at: usize) -> Result<(), WordError> {
        let now = self.schedule.now.unwrap_or_default();
        let agent = self.traffic.applications[index].agent;
        let is_tcp = agent.is_some_and(|agent| matches!(self.traffic.agents[agent].class, Class::Tcp { .. }));
        let is_counted = |own: &Application| !own.produced.is_empty();
        // TCP discards the packets that it has not sent by then: ns-source.tcl, Application/FTP stop.
        if is_tcp && agent.is_some_and(|agent| self.traffic.find(agent, is_counted).is_some()) {
            return error_at(
                at,
                "an application that sends a number of packets cannot be stopped before the last one; send fewer packets",
            );
        }
        self.traffic.applications[index].stop(now);
        Ok(())
    }

    pub(crate) fn set_application(
        &mut self,
        index: usize,
        name: &Word,
        value: &Word,
        words: &[Word],
    ) -> Outcome {
        let (now, is_emulab) = (self.schedule.now.unwrap_or_default(), self.is_emulab);
        let application = &mut self.traffic.applications[index];
        let is_running = application.running_since.is_some();
        match name.text.as_str() {
            "agent_" => {
                let agent = self.agent_of(value)?;
                self.attach_application(index, agent, value.at)?;
                return Ok(value.text.clone());
            }
            "type_" | "fid_" | "class_" | "flags_" | "prio_" | "dst_" => {
                return self.ignore(words, "the attribute only marks packets in traces");
            }
            "random_" | "maxpkts_"
                if application.is_cbr() && (is_running || !application.periods.is_empty()) =>
            {
                let problem =
                    format!("{:?} cannot change once CBR has sent; set it before its first start", name.text);
                return self.unknown(name.at, problem);
            }
            "random_" if application.is_cbr() => {
                // ns reads a word that is not a number as 0, such as the `null` that NSG2 writes.
                let is_number = |number: f64| number != 0.0;
                let is_random = match value.text.as_str() {
                    "null" => false,
                    _ => switch(value).or_else(|_| any_number(value).map(is_number))?,
                };
                application.bursts = is_random.then(|| Bursts::new(Pattern::JitteredCbr, application.class));
                return Ok(value.text.clone());
            }
            _ if application.bursts.is_some() && is_running => {
                let problem = format!(
                    "{:?} of a random source cannot change while it sends; set it before its start",
                    name.text
                );
                return self.unknown(name.at, problem);
            }
            "burst_time_" | "idle_time_" | "shape_" | "interval_"
                if application.bursts.as_mut().is_some_and(|bursts| bursts.has(&name.text)) =>
            {
                let bursts =
                    application.bursts.as_mut().expect("the pattern has checked that the times are random");
                bursts.set(name, value)?;
                return Ok(value.text.clone());
            }
            "packetSize_" | "packet_size_" | "interval_" | "rate_" | "maxpkts_" => {}
            _ => {
                let problem = format!(
                    "{:?} of an application is not supported; supported are packetSize_, rate_, interval_, maxpkts_ and random_ (CBR), burst_time_, idle_time_ and shape_ (Pareto)",
                    name.text
                );
                return self.unknown(name.at, problem);
            }
        }
        // A change takes effect with the next packet. tools/trafgen.cc, `TrafficGenerator::timeout`.
        let (next, periods) = (application.next_packet(now), application.periods.len());
        let is_running = is_running && !application.greedy;
        if is_running {
            application.stop(now);
        }
        match name.text.as_str() {
            "packetSize_" | "packet_size_" => application.size = positive(value)?,
            "rate_" => application.rate = bits_per_second(value)?,
            // Only a default of a class gets here: ns does not read this attribute of such an application
            // (`is_unread_limit`).
            "maxpkts_" if !matches!(application.class, "Application/Traffic/CBR" | "Source/FTP") => {}
            "maxpkts_" => application.max_packets = Some(packets(value)?),
            _ if is_emulab => application.interval = Some(seconds(value)?),
            // ns-lib.tcl, Application/Traffic/CBR set: an interval sets the rate, with the size of that moment.
            _ => {
                let interval = seconds(value)?.max(Duration::from_nanos(1));
                application.rate = application.size as f64 * 8.0 / interval.as_secs_f64();
            }
        }
        if is_running {
            application.running_since = Some(next);
            application.continues |= application.periods.len() > periods;
        }
        Ok(value.text.clone())
    }
}

impl Application {
    /// Creates an application with ns's default attributes. A class without a size or rate never uses the values set
    /// here.
    fn new(at: usize, class: &'static str, kind: Kind) -> Self {
        let bursts = match kind {
            Kind::Random(pattern) => Some(Bursts::new(pattern, class)),
            _ => None,
        };
        Self {
            at,
            class,
            greedy: kind == Kind::Greedy,
            agent: None,
            size: read_default(class, "packetSize_", positive).unwrap_or(1),
            rate: read_default(class, "rate_", bits_per_second).unwrap_or(1.0),
            interval: None,
            max_packets: None,
            running_since: None,
            continues: false,
            periods: Vec::new(),
            produced: Vec::new(),
            produced_packets: 0,
            bursts,
        }
    }

    /// Starts sending, unless the application already sends.
    pub(crate) fn start(&mut self, now: Duration) {
        if self.running_since.is_none() {
            (self.running_since, self.continues) = (Some(now), false);
        }
    }

    /// Returns the maximum number of packets of an application that sends at random times.
    pub(crate) fn max_packets(&self) -> u64 {
        self.max_packets.unwrap_or(u64::MAX)
    }

    /// Makes the application stop sending.
    pub(crate) fn stop(&mut self, now: Duration) {
        if let Some(bursts) = &mut self.bursts {
            bursts.stop(now);
        }
        if let Some(start) = self.running_since.take().filter(|start| *start < now) {
            self.periods.push(self.sending_period(start, Some(now)));
        }
    }

    /// Adds packets that a command of the script requests.
    pub(crate) fn produce(&mut self, produced: ScriptedPackets) {
        self.produced_packets = self.produced_packets.saturating_add(produced.count);
        self.produced.push(produced);
    }

    fn is_cbr(&self) -> bool {
        self.class == "Application/Traffic/CBR"
    }

    /// Returns the time of the application's next packet at or after `now`.
    fn next_packet(&self, now: Duration) -> Duration {
        let start = self.running_since.unwrap_or(now);
        let sent = now.saturating_sub(start).as_nanos().div_ceil(self.interval().as_nanos());
        start + self.interval().saturating_mul(sent)
    }

    fn sending_period(&self, start: Duration, stop: Option<Duration>) -> SendingPeriod {
        let (size, interval, continues) = (self.size, self.interval(), self.continues);
        let exact_interval = self.interval.map_or(size as f64 * 8.0 / self.rate, Duration::as_secs_f64);
        SendingPeriod { start, stop, size, interval, exact_interval, packets: 0, continues }
    }

    pub(crate) fn starts_itself(&self) -> bool {
        self.running_since.is_some() || !self.periods.is_empty()
    }

    pub(crate) fn start_time(&self) -> Option<Duration> {
        let first = self.periods.first().map(|period| period.start).or(self.running_since);
        first.or(self.produced.first().map(|own| own.at))
    }

    /// Returns the periods in which the application sends, which end at `end` at the latest; `None` if it never stops.
    /// Packets that must be counted one by one are subtracted from the limit `countable`.
    pub(crate) fn sending_periods(
        &self,
        end: Option<Duration>,
        countable: &mut u64,
    ) -> Option<Vec<SendingPeriod>> {
        if let (Some(first), Some(last)) = (self.produced.first(), self.produced.last()) {
            let stop = last.at + Duration::from_nanos(1);
            return Some(vec![self.sending_period(first.at, end.or(Some(stop)))]);
        }
        let open = self.running_since.map(|start| self.sending_period(start, end));
        let mut periods: Vec<SendingPeriod> = self.periods.iter().copied().chain(open).collect();
        // A greedy flow with a number of packets needs no stop.
        let last = periods
            .last_mut()
            .filter(|last| self.greedy && self.max_packets.is_some() && last.stop.is_none());
        if let Some(last) = last {
            last.stop = Some(last.start + Duration::from_nanos(1));
        }
        if !self.greedy && self.bursts.is_none() {
            count_packets(&mut periods, self.max_packets, countable);
        }
        if periods.iter().any(|period| period.stop.is_none()) {
            return None;
        }
        periods.retain(|period| period.stop.is_some_and(|stop| stop > period.start));
        Some(periods)
    }

    fn interval(&self) -> Duration {
        let own = Duration::from_secs_f64(self.size as f64 * 8.0 / self.rate);
        self.interval.unwrap_or(own).max(Duration::from_nanos(1))
    }
}

/// Sets the number of packets that CBR sends in each period; the sum over all periods is at most `max`. Adds up the
/// intervals in floating point, as ns does: with a packet every 10 ms, the packet that is due at 4 s may therefore be
/// sent before a stop at 4 s.
fn count_packets(periods: &mut [SendingPeriod], max: Option<u64>, countable: &mut u64) {
    let (mut next, mut left) = (None, max.unwrap_or(u64::MAX));
    for period in periods {
        // tools/cbr_traffic.cc: a start sends a packet before it looks at the number.
        let most = left.max(u64::from(!period.continues));
        if max.is_some() {
            let end = period.start + period.interval.saturating_mul(most);
            period.stop = Some(period.stop.map_or(end, |stop| stop.min(end)));
        }
        let Some(stop) = period.stop else { return };
        // The script may end before the packet that a change waits for.
        let usual = stop.saturating_sub(period.start).as_nanos().div_ceil(period.interval.as_nanos());
        let mut count = usual;
        if let Some(rest) = countable.checked_sub(usual) {
            *countable = rest;
            let mut time = next.filter(|_| period.continues).unwrap_or(period.start.as_secs_f64());
            count = 0;
            while time < stop.as_secs_f64() && count <= usual {
                time += period.exact_interval;
                count += 1;
            }
            next = Some(time);
        }
        period.packets = count.min(most);
        left -= left.min(count);
    }
}
