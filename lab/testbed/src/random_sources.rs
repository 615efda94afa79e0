//! Sources whose times are random: on/off sources with exponential and Pareto times, CBR with `random_`, and
//! Telnet. ns 2.35: `tools/expoo.cc`, `tools/pareto.cc`, `tools/cbr_traffic.cc`, `apps/telnet.cc`.
//!
//! All sources draw from ns's default generator in the order of their bursts, unless the script gives them another
//! generator. They send at the same times as in ns, unless losses, RED, collisions or a closing FullTcp draw random
//! numbers in between.

use hol_base::Duration;

use crate::application::Application;
use crate::flow::MAX_SCRIPTED_PACKETS;
use crate::ns_defaults::read_default;
use crate::quantity::{positive, seconds};
use crate::simulator::Simulator;
use crate::tcl::{Word, WordError, error_at};

/// The pattern in which a random source sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Bursts and pauses whose lengths have an exponential distribution.
    Exponential,
    /// Bursts and pauses whose lengths have a Pareto distribution.
    Pareto,
    /// CBR whose intervals deviate randomly from their mean by up to half of it.
    JitteredCbr,
    /// Sends packets at exponentially distributed intervals, like ns's Application/Telnet.
    Telnet,
}

/// The state of a random source: its attributes, and its bursts so far.
#[derive(Debug)]
pub(crate) struct Bursts {
    pattern: Pattern,
    burst_time: Duration,
    idle_time: Duration,
    shape: f64,
    /// The mean interval between packets of Telnet.
    interval: Duration,
    /// Index of the random generator that the source draws from.
    pub generator: usize,
    bursts: Vec<Burst>,
    /// The number of packets in all bursts so far.
    packet_count: u64,
    /// How often the application has been started. It serves to ignore bursts that were scheduled before a stop.
    start_number: u32,
}

/// A burst: packets at equal intervals.
#[derive(Debug, Clone, Copy)]
struct Burst {
    at: Duration,
    count: u64,
    interval: Duration,
    size: u64,
}

impl Burst {
    fn time(&self, packet: u64) -> Duration {
        self.at + self.interval.saturating_mul(packet)
    }

    /// Returns how many packets of the burst are sent before `time`.
    fn before(&self, time: Duration) -> u64 {
        match self.interval {
            _ if time <= self.at => 0,
            Duration::ZERO => self.count,
            interval => (time - self.at).as_nanos().div_ceil(interval.as_nanos()).min(self.count),
        }
    }
}

impl Bursts {
    /// Creates a source that has sent nothing.
    pub fn new(pattern: Pattern, class: &str) -> Self {
        let time = |attribute| read_default(class, attribute, seconds).unwrap_or_default();
        Self {
            pattern,
            burst_time: time("burst_time_"),
            idle_time: time("idle_time_"),
            shape: read_default(class, "shape_", positive).unwrap_or(1.0),
            interval: time("interval_"),
            generator: 0,
            bursts: Vec::new(),
            packet_count: 0,
            start_number: 0,
        }
    }

    /// Returns whether the source sends bursts with pauses between them.
    pub fn has_pauses(&self) -> bool {
        matches!(self.pattern, Pattern::Exponential | Pattern::Pareto)
    }

    /// Returns whether the source has this attribute.
    pub fn has(&self, attribute: &str) -> bool {
        match attribute {
            "burst_time_" | "idle_time_" => self.has_pauses(),
            "shape_" => self.pattern == Pattern::Pareto,
            _ => self.pattern == Pattern::Telnet,
        }
    }

    /// Sets an attribute of the source, such as `burst_time_`.
    pub fn set(&mut self, attribute: &Word, value: &Word) -> Result<(), WordError> {
        match attribute.text.as_str() {
            "burst_time_" => self.burst_time = seconds(value)?,
            "idle_time_" => self.idle_time = seconds(value)?,
            "shape_" => self.shape = positive(value)?,
            _ => {
                self.interval = seconds(value)?;
                if self.interval == Duration::ZERO {
                    let problem = "in ns, an interval of 0 selects the traces of tcplib, which hol lacks; set a mean interval in seconds";
                    return error_at(value.at, problem);
                }
            }
        }
        Ok(())
    }

    /// Adds a burst of `count` packets of `size` octets, the first at `at`.
    pub fn add(&mut self, at: Duration, count: u64, interval: Duration, size: u64) {
        self.packet_count = self.packet_count.saturating_add(count);
        self.bursts.push(Burst { at, count, interval, size });
    }

    /// Removes the packets that would be sent from this time on.
    pub fn stop(&mut self, now: Duration) {
        self.start_number += 1;
        if let Some(last) = self.bursts.last_mut() {
            let sent = last.before(now);
            self.packet_count -= last.count - sent;
            last.count = sent;
        }
    }

    /// Returns all packets before `stop` with their sizes; `None` if there are more than `max`.
    pub fn packets(&self, stop: Duration, max: usize) -> Option<Vec<(Duration, u64)>> {
        let count: u64 = self.bursts.iter().map(|burst| burst.before(stop)).fold(0, u64::saturating_add);
        if count > max as u64 {
            return None;
        }
        let all = self.bursts.iter();
        let packets = all.flat_map(|burst| (0..burst.before(stop)).map(|own| (burst.time(own), burst.size)));
        Some(packets.collect())
    }
}

/// The warning that a random source may send at other times than in ns.
const SHARED_GENERATOR: &str = "in ns, losses, RED, collisions and a closing FullTcp draw from this source's random generator, too, which changes the times at which it sends; give Exponential and Pareto their own: $source use-rng [new RNG]";

impl Simulator<'_> {
    /// Adds a warning for each random source that shares ns's default generator with parts of ns that draw from it
    /// during a run.
    pub(crate) fn report_shared_generators(&mut self) {
        let mut segments = self.draft.segments.iter();
        let is_shared = !self.is_emulab
            && (segments
                .any(|own| !own.is_link() || own.lines.iter().any(|line| line.queue.draws_random_numbers()))
                || self.error_models.iter().any(|own| own.draws_random_numbers(&self.randoms))
                || self.traffic.applications.iter().any(|own| own.greedy && self.closes_connection(own)));
        let sources = self.traffic.applications.iter().filter(|own| {
            is_shared
                && own.bursts.as_ref().is_some_and(|bursts| bursts.generator == 0 && bursts.packet_count > 0)
        });
        let sources: Vec<(usize, &str)> = sources.map(|own| (own.at, own.class)).collect();
        for (at, class) in sources {
            let _ = self.ignore(&[Word { text: class.to_owned(), at, verbatim: None }], SHARED_GENERATOR);
        }
    }

    /// Returns whether the application is an FTP source over FullTcp that stops. The other end of its connection
    /// draws a random number after it has closed the connection.
    fn closes_connection(&self, application: &Application) -> bool {
        let is_full_tcp = |agent: usize| self.traffic.agents[agent].is_full_tcp();
        !application.periods.is_empty() && application.agent.is_some_and(is_full_tcp)
    }

    /// Opens the connection of a random source at its first packet, unless the source has been stopped before.
    pub(crate) fn open_by_burst(&mut self, index: usize, start: u32) {
        let application = &self.traffic.applications[index];
        let is_current = application.bursts.as_ref().is_some_and(|bursts| bursts.start_number == start);
        if let Some(agent) = application.agent.filter(|_| is_current) {
            self.note_sending(agent);
        }
    }

    /// Starts an application. If it sends at random times, draws the time of its first packet.
    pub(crate) fn start_application(&mut self, index: usize, now: Duration) {
        let application = &mut self.traffic.applications[index];
        let was_running = application.running_since.is_some();
        application.start(now);
        let agent = application.agent;
        let pattern = application.bursts.as_ref().map(|bursts| bursts.pattern);
        if let (None | Some(Pattern::JitteredCbr), Some(agent)) = (pattern, agent) {
            self.note_sending(agent);
        }
        let application = &mut self.traffic.applications[index];
        let Some(bursts) = &mut application.bursts else { return };
        if was_running {
            return;
        }
        let start = bursts.start_number;
        match bursts.pattern {
            // CBR_Traffic::start: the first packet goes at once, and the next one is drawn with it.
            Pattern::JitteredCbr => {
                let size = application.size;
                bursts.add(now, 1, Duration::ZERO, size);
                self.next_burst(index, start);
            }
            _ => {
                let (count, pause) = self.draw_burst(index);
                self.begin_burst(index, start, now + pause, count);
            }
        }
    }

    /// Draws the next burst of an application. Called at the time of the last packet of the previous burst.
    pub(crate) fn next_burst(&mut self, index: usize, start: u32) {
        let now = self.schedule.now.unwrap_or_default();
        let application = &self.traffic.applications[index];
        let is_current = application.bursts.as_ref().is_some_and(|bursts| bursts.start_number == start);
        let packet_count = application.bursts.as_ref().map_or(0, |bursts| bursts.packet_count);
        // A source with more packets is refused later.
        if is_current && application.running_since.is_some() && packet_count <= MAX_SCRIPTED_PACKETS as u64 {
            let (count, pause) = self.draw_burst(index);
            self.begin_burst(index, start, now + pause, count);
        }
    }

    /// Returns the number of packets of the next burst, and the time from the previous packet to the first packet of
    /// the burst.
    fn draw_burst(&mut self, index: usize) -> (u64, Duration) {
        let application = &self.traffic.applications[index];
        let bursts = application.bursts.as_ref().expect("the caller has checked that the times are random");
        let generator = &mut self.randoms.generators[bursts.generator];
        let interval = application.size as f64 * 8.0 / application.rate;
        let (mean_count, mean_pause) =
            (bursts.burst_time.as_secs_f64() / interval, bursts.idle_time.as_secs_f64());
        let whole = |count: f64| ((count + 0.5) as u64).max(1);
        let scale = (bursts.shape - 1.0) / bursts.shape;
        let (count, pause) = match bursts.pattern {
            Pattern::Exponential => {
                let count = whole(generator.exponential(mean_count));
                (count, interval + generator.exponential(mean_pause))
            }
            Pattern::Pareto => {
                let count = whole(generator.pareto(mean_count * scale, bursts.shape));
                (count, interval + generator.pareto(mean_pause * scale, bursts.shape))
            }
            Pattern::JitteredCbr => (1, interval + interval * (generator.uniform() - 0.5)),
            Pattern::Telnet => (1, generator.exponential(bursts.interval.as_secs_f64())),
        };
        (count, Duration::from_secs_f64(pause.clamp(1e-9, 1e9)))
    }

    /// Adds a burst, and schedules the drawing of the next burst at the time of its last packet.
    fn begin_burst(&mut self, index: usize, start: u32, at: Duration, count: u64) {
        let application = &mut self.traffic.applications[index];
        let interval = Duration::from_secs_f64(application.size as f64 * 8.0 / application.rate);
        let (size, max_packets) = (application.size, application.max_packets());
        let bursts = application.bursts.as_mut().expect("the caller has checked that the times are random");
        let count = count.min(max_packets.saturating_sub(bursts.packet_count));
        if count == 0 {
            application.stop(at);
            return;
        }
        bursts.add(at, count, interval, size);
        let is_closed =
            |agent: usize| self.traffic.agents[agent].is_full_tcp() && !self.traffic.agents[agent].is_open;
        if application.agent.is_some_and(is_closed) {
            self.schedule.add_opening(at, index, start);
        }
        let last = at + interval.saturating_mul(count - 1);
        self.schedule.add_burst(last, index, start);
    }
}
