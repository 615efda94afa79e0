//! Draws random scenarios: a transport, a workload, a path with loss or events, and further keys.

use std::collections::BTreeMap;

use hol_base::{Rng, Seed};
use hol_lab::fidelity::COMPARED_RANGES;
use hol_scenario::World;

use crate::key_space::{KeySpace, log_uniform, pick};
use crate::random_scenario::{RandomScenario, assumed_options};

/// Transports, each with the weight with which it is drawn.
const TRANSPORTS: [(&str, u64); 5] = [("tcp", 44), ("sctp", 44), ("udp", 8), ("quic", 8), ("mptcp", 8)];
/// Maximum number of octets that a run sends. With this limit a run takes about a second, and not a minute.
const MAX_OCTETS: f64 = 1.5e6;
/// Number of values that are tried for a key before the key is left out of a scenario.
const MAX_TRIES: usize = 12;
/// Number of refused scenarios after which the generator gives up and reports an error.
const MAX_REFUSALS: usize = 1000;
/// Conditions of the path to which `only` can restrict the scenarios, each with the key that it sets.
const CONDITIONS: [(&str, &str); 4] = [
    ("discipline", "network.discipline"),
    ("events", "network.events"),
    ("background", "background"),
    (L4S, "network.discipline"),
];
/// The value of `only` that selects TCP over DualPI2. Other scenarios do not use DualPI2, because Linux has it
/// only since 6.17.
const L4S: &str = "l4s";
/// The shortest outage of a path, in seconds.
const MIN_OUTAGE_SECONDS: f64 = 0.1;
/// The longest outage of a path, in seconds.
const MAX_OUTAGE_SECONDS: f64 = 10.0;
/// The highest rate of a path with greedy flows, in kbit/s. It keeps runs from having more packets than a
/// capture can contain.
const MAX_SHARED_KBPS: f64 = 4_000.0;
/// The longest time for which a scenario generates messages, in seconds.
const MAX_SCHEDULE_SECONDS: f64 = 30.0;

/// Draws random scenarios. A scenario depends only on the seed and its number, not on other scenarios drawn
/// before.
#[derive(Debug)]
pub struct Generator<'w> {
    space: KeySpace,
    seed: u64,
    only: Option<String>,
    worlds: Vec<&'w dyn World>,
}

impl<'w> Generator<'w> {
    /// Creates a generator of scenarios that all `worlds` support. `only` is the name of the only transport
    /// or workload, or one of four words: `discipline` for a queue that drops or marks early, `events` for a
    /// path that changes during the run, `background` for other flows,
    /// `l4s` for TCP over DualPI2.
    pub fn new(seed: u64, only: Option<String>, worlds: Vec<&'w dyn World>) -> Self {
        Self { space: KeySpace::new(), seed, only, worlds }
    }

    /// Returns the names that `only` accepts: transports, workloads and conditions.
    pub fn names() -> Vec<String> {
        let space = KeySpace::new();
        let transports = TRANSPORTS.iter().map(|(name, _)| *name);
        transports
            .chain(space.workloads().into_iter().filter(|kind| *kind != "programs"))
            .chain(CONDITIONS.map(|(name, _)| name))
            .map(str::to_owned)
            .collect()
    }

    /// Returns why a world refuses a scenario; `None` if every world accepts it.
    fn refusal(&self, scenario: &RandomScenario) -> Option<String> {
        let point = match scenario.point() {
            Ok(point) => point,
            Err(problem) => return Some(problem.to_string()),
        };
        let scenario = point.scenario(0);
        self.worlds.iter().find_map(|world| world.check(&scenario).err()).map(|problem| problem.to_string())
    }

    fn is_in_family(&self, scenario: &RandomScenario) -> bool {
        self.only.as_deref().is_none_or(|only| match CONDITIONS.iter().find(|(name, _)| *name == only) {
            Some((L4S, _)) => scenario.protocol == "tcp",
            Some((_, key)) => scenario.value(key).is_some(),
            None => scenario.family().split(' ').any(|word| word == only),
        })
    }

    /// Returns scenario `number`, and the keys that were left out because a world refused them, each with the reason. An error says why no
    /// scenario is possible.
    pub fn scenario(&self, number: u64) -> Result<(RandomScenario, Vec<(String, String)>), String> {
        let mut rng = Seed(self.seed).derive("scenario").derive_for_index(number).rng();
        let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let (mut scenario, more) = self.draw_base(number, &mut rng);
            if !self.is_in_family(&scenario) {
                continue;
            }
            if let Some(reason) = self.refusal(&scenario) {
                *refusals.entry(reason).or_default() += 1;
                let count = refusals.values().sum::<usize>();
                if count >= MAX_REFUSALS {
                    let usual = refusals.into_iter().max_by_key(|(_, times)| *times);
                    let (reason, times) = usual.unwrap_or_default();
                    return Err(format!(
                        "none of {count} random scenarios is supported by both worlds; the most frequent reason ({times} times): {reason}"
                    ));
                }
                continue;
            }
            let mut refused = Vec::new();
            for mut extra in more {
                let mut problem = None;
                // Another value may be valid, or this one together with another key of its table.
                for attempt in 0..MAX_TRIES {
                    let mut with = scenario.clone();
                    let name = extra.add_to(&mut with);
                    if attempt >= MAX_TRIES / 2 {
                        let partner = self.neighbour(&extra, &scenario, &mut rng);
                        partner.into_iter().for_each(|partner| drop(partner.add_to(&mut with)));
                    }
                    match self.refusal(&with) {
                        None => {
                            (scenario, problem) = (with, None);
                            break;
                        }
                        Some(reason) => problem = Some((name, reason)),
                    }
                    extra = self.redraw(extra, &scenario, &mut rng);
                }
                refused.extend(problem);
            }
            return Ok((scenario, refused));
        }
    }

    /// Returns a scenario with the keys that every scenario has, and further keys that it may get.
    fn draw_base(&self, number: u64, rng: &mut Rng) -> (RandomScenario, Vec<Extra>) {
        let protocol = weighted(rng, &TRANSPORTS);
        let kind = pick(rng, &self.space.workloads()).copied().unwrap_or("echo").to_owned();
        let mut scenario = RandomScenario {
            name: format!("random-{}-{number}", self.seed),
            protocol: protocol.to_owned(),
            options: Vec::new(),
            assumed: self.assumed(protocol),
            settings: Vec::new(),
        };
        let mut set = |key: &str, value: String| scenario.settings.push((key.to_owned(), value));
        set("workload.kind", format!("{kind:?}"));
        let keys = self.space.keys(&kind);
        let has = |name: &str| keys.iter().any(|key| key.path == format!("workload.{name}"));
        let size =
            if kind == "bulk" { log_uniform(rng, 500.0, 64_000.0) } else { draw_small_or_large(rng) }.round();
        if has("size") && kind != "page" && kind != "media" {
            set("workload.size", format!("\"{size}B\""));
        }
        let mut max = (MAX_OCTETS / size.max(128.0)).min(300.0);
        if has("reply") {
            let request = draw_small_or_large(rng).round();
            set("workload.request", format!("\"{request}B\""));
            set("workload.reply", draw_reply_sizes(size, rng));
            max = max.min(MAX_OCTETS / request.max(128.0));
        }
        if has("users") && rng.chance(0.3) {
            set("workload.users", format!("{:.0}", log_uniform(rng, 1.0, 20.0)));
        } else if has("rate") {
            let rate = log_uniform_in(rng, COMPARED_RANGES.rate);
            set("workload.rate", format!("\"{rate:.1}/s\""));
            max = max.min(rate * MAX_SCHEDULE_SECONDS);
            // Periodic arrivals are not random, so that packets can be compared, too.
            if has("reply") && rng.chance(0.7) {
                set("workload.arrivals", "\"periodic\"".to_owned());
            }
        }
        if kind == "files" {
            // Each file of a batch is uploaded and downloaded.
            let files = (MAX_OCTETS / (4.0 * size.max(128.0))).clamp(1.0, 100.0);
            set("workload.files", format!("{:.0}", log_uniform(rng, 1.0, files.max(2.0))));
            max = 3.0;
        } else if matches!(kind.as_str(), "page" | "media") {
            max = 20.0;
        }
        set("messages", format!("{:.0}", log_uniform(rng, 2.0, max.max(3.0))));
        set("network.delay", format!("\"{:.1}ms\"", log_uniform_in(rng, COMPARED_RANGES.delay_ms)));
        // A minimum rate, so that no run lasts for minutes.
        set("network.rate", format!("\"{:.0}kbit\"", log_uniform_in(rng, COMPARED_RANGES.bandwidth_kbps)));
        let mut extras = self.draw_condition(&mut scenario, rng);
        if protocol == "mptcp" {
            add_second_path(&mut scenario, rng);
        }
        while rng.chance(0.5) && extras.len() < 4 {
            extras.extend(self.draw_extra(protocol, &kind, rng));
        }
        (scenario, extras)
    }

    /// Returns the options that the model needs to behave like the second world; none if both worlds are kernels.
    fn assumed(&self, protocol: &str) -> Vec<(String, String)> {
        let is_model = self.worlds.first().is_none_or(|world| !world.name().starts_with("kernel:"));
        let others = self.worlds.iter().filter(|_| is_model);
        let assumed = others.flat_map(|world| assumed_options(protocol, &world.name()));
        assumed.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Draws the condition of the path: none, loss of given packets, random loss, a queue that builds up, a change, or
    /// other flows; returns further keys and options that belong to it.
    fn draw_condition(&self, scenario: &mut RandomScenario, rng: &mut Rng) -> Vec<Extra> {
        if self.only.as_deref() == Some(L4S) {
            return add_l4s(scenario, rng);
        }
        let mut set = |key: &str, value: String| scenario.settings.push((key.to_owned(), value));
        match rng.below(27) {
            0..8 => {}
            8..14 => {
                let direction = if rng.chance(0.6) { "up" } else { "down" };
                let mut numbers: Vec<u64> = (0..1 + rng.below(3)).map(|_| 1 + rng.below(40)).collect();
                numbers.sort_unstable();
                numbers.dedup();
                set(&format!("network.{direction}.loss"), format!("{{ drop = {numbers:?} }}"));
            }
            14..17 => {
                set("network.loss", format!("\"{:.1}%\"", log_uniform_in(rng, COMPARED_RANGES.loss_percent)));
            }
            17 => {
                let good_to_bad = log_uniform(rng, 0.3, 5.0);
                set(
                    "network.loss",
                    format!("{{ good_to_bad = \"{good_to_bad:.1}%\", bad_to_good = \"30%\" }}"),
                );
            }
            18 => {
                set("network.queue", format!("\"{:.0}p\"", log_uniform_in(rng, COMPARED_RANGES.short_queue)));
            }
            19..21 => return add_queue_management(scenario, rng),
            21..24 => add_events(scenario, rng),
            24..26 => add_background(scenario, rng),
            _ => set(
                "network.down.loss",
                format!("\"{:.1}%\"", log_uniform_in(rng, COMPARED_RANGES.loss_percent)),
            ),
        }
        Vec::new()
    }

    /// Returns the key of `extra` with another value.
    fn redraw(&self, extra: Extra, scenario: &RandomScenario, rng: &mut Rng) -> Extra {
        match extra {
            Extra::Option(key, value) => {
                let mut options = self.space.draw_options(&scenario.protocol, rng);
                options.retain(|(known, _)| *known == key);
                let value = pick(rng, &options).map_or(value, |(_, value)| value.clone());
                Extra::Option(key, value)
            }
            Extra::Key(path, value) => {
                let keys = self.space.keys(scenario.kind());
                let key = keys.iter().find(|key| key.path == path);
                let value = key.and_then(|key| self.space.draw_value(key, rng)).unwrap_or(value);
                Extra::Key(path, value)
            }
        }
    }

    /// Returns another key of the table to which the key of `extra` belongs.
    fn neighbour(&self, extra: &Extra, scenario: &RandomScenario, rng: &mut Rng) -> Option<Extra> {
        let Extra::Key(path, _) = extra else { return None };
        let table = path.rsplit_once('.')?.0;
        let keys = self.space.keys(scenario.kind());
        let neighbours: Vec<_> = keys
            .iter()
            .filter(|key| key.path != *path && key.path.rsplit_once('.').is_some_and(|(of, _)| of == table))
            .collect();
        let key = pick(rng, &neighbours)?;
        Some(Extra::Key(key.path.clone(), self.space.draw_value(key, rng)?))
    }

    fn draw_extra(&self, protocol: &str, kind: &str, rng: &mut Rng) -> Option<Extra> {
        if rng.chance(0.5) {
            let options = self.space.draw_options(protocol, rng);
            return pick(rng, &options).cloned().map(|(key, value)| Extra::Option(key, value));
        }
        let keys = self.space.keys(kind);
        let key = pick(rng, &keys)?;
        Some(Extra::Key(key.path.clone(), self.space.draw_value(key, rng)?))
    }
}

/// Adds a second path, with its own delay and rate, to the scenario.
fn add_second_path(scenario: &mut RandomScenario, rng: &mut Rng) {
    let delay = log_uniform_in(rng, COMPARED_RANGES.delay_ms);
    let rate = log_uniform(rng, 1_000.0, 100_000.0);
    let paths = format!("[{{}}, {{ delay = \"{delay:.1}ms\", rate = \"{rate:.0}kbit\" }}]");
    scenario.settings.push(("network.paths".to_owned(), paths));
}

/// Sets a discipline that drops or marks early, and a rate at which its queue builds up; returns the options
/// with which TCP reacts to marks.
fn add_queue_management(scenario: &mut RandomScenario, rng: &mut Rng) -> Vec<Extra> {
    let marks = rng.chance(0.5);
    let target = log_uniform(rng, 1.0, 20.0);
    let interval = target * log_uniform(rng, 3.0, 20.0);
    let delays = format!("target = \"{target:.1}ms\", interval = \"{interval:.1}ms\"");
    let min = log_uniform(rng, 3_000.0, 60_000.0);
    let discipline = match rng.below(6) {
        0..2 => format!("{{ codel = {{ {delays}, ecn = {marks} }} }}"),
        2..4 => format!("{{ fq_codel = {{ {delays}, ecn = {marks} }} }}"),
        4 => format!("{{ pie = {{ target = \"{target:.1}ms\", ecn = {marks} }} }}"),
        _ => format!("{{ red = {{ min = \"{min:.0}B\", max = \"{:.0}B\", ecn = {marks} }} }}", 3.0 * min),
    };
    set_congested_discipline(scenario, discipline, rng);
    if scenario.protocol != "tcp" || !marks {
        return Vec::new();
    }
    let heeds = ["ecn", "accurate_ecn", "accurate_ecn"].map(|option| (option, "true"));
    let heeds = heeds.into_iter().chain([("cc", "dctcp")]).collect::<Vec<_>>();
    let option = pick(rng, &heeds).map(|(key, value)| Extra::Option((*key).to_owned(), (*value).to_owned()));
    option.into_iter().collect()
}

/// Sets DualPI2, and a rate at which its queues build up. Half of the scenarios also get a flow of CUBIC. Returns the
/// options of the transport: TCP with or without ECN, or DCTCP, whose packets take the low-latency queue if that
/// accepts ECT(0).
fn add_l4s(scenario: &mut RandomScenario, rng: &mut Rng) -> Vec<Extra> {
    let (target, step) = (log_uniform(rng, 5.0, 25.0), log_uniform(rng, 0.3, 3.0));
    let any_ect = rng.chance(0.5);
    let delays = format!("target = \"{target:.1}ms\", step = \"{step:.2}ms\"");
    set_congested_discipline(scenario, format!("{{ dualpi2 = {{ {delays}, any_ect = {any_ect} }} }}"), rng);
    if rng.chance(0.5) {
        let rate = log_uniform(rng, 1_000.0, MAX_SHARED_KBPS);
        let mut set = |key: &str, value: String| {
            scenario.settings.retain(|(known, _)| known != key);
            scenario.settings.push((key.to_owned(), value));
        };
        set(
            "background",
            "[{ transport = \"tcp\", workload = { kind = \"bulk\", start = \"0.1s\" }, spread = \"0s\" }]"
                .to_owned(),
        );
        set("network.rate", format!("\"{rate:.0}kbit\""));
    }
    let controls: [&[(&str, &str)]; 5] = [
        &[],
        &[("ecn", "true")],
        &[("accurate_ecn", "true")],
        &[("cc", "dctcp")],
        &[("cc", "dctcp"), ("accurate_ecn", "true")],
    ];
    let options = controls[rng.below(controls.len() as u64) as usize];
    scenario.options.extend(options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    Vec::new()
}

/// Sets a discipline, its queue limit, and a rate near the offered load, so that packets queue.
fn set_congested_discipline(scenario: &mut RandomScenario, discipline: String, rng: &mut Rng) {
    let number = |key: &str, unit: &str| {
        scenario.value(key).and_then(|text| text.trim_matches('"').strip_suffix(unit)?.parse::<f64>().ok())
    };
    let offered = number("workload.rate", "/s").zip(number("workload.size", "B"));
    let kbps = offered.map_or(3_000.0, |(rate, size)| rate * (size + 60.0) * 8.0 / 1e3);
    let rate = (kbps * log_uniform(rng, 0.3, 1.5)).clamp(200.0, 100_000.0);
    let mut set = |key: &str, value: String| {
        scenario.settings.retain(|(known, _)| known != key);
        scenario.settings.push((key.to_owned(), value));
    };
    set("network.discipline", discipline);
    set("network.rate", format!("\"{rate:.0}kbit\""));
    set("network.queue", format!("\"{:.0}p\"", log_uniform(rng, 20.0, 1000.0)));
}

/// Adds events while messages are due: the path fails or sends nothing for a time, or its delay, its rate or both
/// change. An SCTP association may get a second path.
fn add_events(scenario: &mut RandomScenario, rng: &mut Rng) {
    let number = |key: &str, unit: &str| {
        scenario.value(key).and_then(|text| text.trim_matches('"').strip_suffix(unit)?.parse::<f64>().ok())
    };
    let schedule = number("messages", "").zip(number("workload.rate", "/s"));
    let seconds = schedule.map_or(1.0, |(messages, rate)| messages / rate);
    let at = seconds * (0.05 + 0.65 * rng.uniform());
    let direction = match rng.below(5) {
        0..3 => "",
        3 => ", direction = \"up\"",
        _ => ", direction = \"down\"",
    };
    let has_second_path = scenario.protocol == "sctp" && rng.chance(0.3);
    let path = if has_second_path { ", path = 1" } else { "" };
    let drawn_rate = |rng: &mut Rng| log_uniform_in(rng, COMPARED_RANGES.bandwidth_kbps);
    let events = match rng.below(10) {
        0..6 => {
            let end = at + log_uniform(rng, MIN_OUTAGE_SECONDS, MAX_OUTAGE_SECONDS);
            format!(
                "[{{ at = \"{at:.3}s\", down = true{direction}{path} }}, {{ at = \"{end:.3}s\", down = false{direction}{path} }}]"
            )
        }
        6 => {
            let delay = log_uniform_in(rng, COMPARED_RANGES.delay_ms);
            format!("[{{ at = \"{at:.3}s\", delay = \"{delay:.1}ms\"{direction}{path} }}]")
        }
        7 => {
            let rate = drawn_rate(rng);
            format!("[{{ at = \"{at:.3}s\", rate = \"{rate:.0}kbit\"{direction}{path} }}]")
        }
        8 => {
            let (end, rate) =
                (at + log_uniform(rng, MIN_OUTAGE_SECONDS, MAX_OUTAGE_SECONDS), drawn_rate(rng));
            format!(
                "[{{ at = \"{at:.3}s\", rate = \"0bit\"{direction}{path} }}, {{ at = \"{end:.3}s\", rate = \"{rate:.0}kbit\"{direction}{path} }}]"
            )
        }
        _ => {
            // Packets after the second change may overtake earlier ones if its delay is shorter.
            let changes = [at, at + 0.2 * rng.uniform()].map(|at| {
                let (delay, rate) = (log_uniform_in(rng, COMPARED_RANGES.delay_ms), drawn_rate(rng));
                format!(
                    "{{ at = \"{at:.3}s\", delay = \"{delay:.1}ms\", rate = \"{rate:.0}kbit\"{direction}{path} }}"
                )
            });
            format!("[{}]", changes.join(", "))
        }
    };
    scenario.settings.push(("network.events".to_owned(), events));
    if has_second_path {
        add_second_path(scenario, rng);
    }
}

/// Adds flows that share a queue with the measured one. They start one after the other, so that the order of their
/// first packets is certain.
fn add_background(scenario: &mut RandomScenario, rng: &mut Rng) {
    let flows: Vec<String> = (0..1 + rng.below(2)).map(|_| draw_background(rng)).collect();
    let rate = log_uniform(rng, 1_000.0, MAX_SHARED_KBPS);
    let queue = log_uniform(rng, 20.0, 200.0);
    let mut set = |key: &str, value: String| {
        scenario.settings.retain(|(known, _)| known != key);
        scenario.settings.push((key.to_owned(), value));
    };
    set("background", format!("[{}]", flows.join(", ")));
    set("network.rate", format!("\"{rate:.0}kbit\""));
    set("network.queue", format!("\"{queue:.0}p\""));
}

fn draw_background(rng: &mut Rng) -> String {
    let transport = match rng.below(4) {
        0 => "transport = \"tcp\", ",
        1 => "transport = \"sctp\", ",
        _ => "",
    };
    let start = log_uniform(rng, 0.01, 0.5);
    let workload = if rng.chance(0.5) {
        let size = log_uniform(rng, 500.0, 8_000.0);
        format!("kind = \"bulk\", size = \"{size:.0}B\"")
    } else {
        let (size, rate) = (log_uniform(rng, 50.0, 4_000.0), log_uniform(rng, 10.0, 300.0));
        format!("kind = \"oneway\", size = \"{size:.0}B\", rate = \"{rate:.1}/s\"")
    };
    format!("{{ {transport}workload = {{ {workload}, start = \"{start:.4}s\" }}, spread = \"0s\" }}")
}

/// An option or a key in addition to those that every scenario has.
#[derive(Debug, Clone)]
enum Extra {
    Option(String, String),
    Key(String, String),
}

impl Extra {
    /// Adds the option or key to a scenario; if the scenario has one of the same name, replaces it. Returns the
    /// name.
    fn add_to(&self, scenario: &mut RandomScenario) -> String {
        let (list, key, value, name) = match self {
            Self::Option(key, value) => {
                (&mut scenario.options, key, value, format!("{}:{key}", scenario.protocol))
            }
            Self::Key(key, value) => (&mut scenario.settings, key, value, key.clone()),
        };
        if key == "network.rate" && list.iter().any(|(known, _)| known == "background") {
            // Greedy flows over a fast path send too much.
            return name;
        }
        // A round-trip time replaces the delay that every scenario has.
        let stands_for = if key == "network.rtt" { "network.delay" } else { key };
        list.retain(|(known, _)| known != key && known != stands_for);
        list.push((key.clone(), value.clone()));
        name
    }
}

fn weighted(rng: &mut Rng, choices: &[(&'static str, u64)]) -> &'static str {
    let mut left = rng.below(choices.iter().map(|(_, weight)| weight).sum());
    for (choice, weight) in choices {
        if left < *weight {
            return choice;
        }
        left -= weight;
    }
    choices[0].0
}

/// Draws a message size; half of all sizes fit into one packet.
fn draw_small_or_large(rng: &mut Rng) -> f64 {
    let [min, max] = COMPARED_RANGES.size;
    if rng.chance(0.5) { log_uniform(rng, min, 1400.0) } else { log_uniform(rng, 1400.0, max) }
}

/// Draws one size of replies, or two with weights.
fn draw_reply_sizes(size: f64, rng: &mut Rng) -> String {
    if rng.chance(0.8) {
        return format!("\"{size}B\"");
    }
    let (other, weights) = (draw_small_or_large(rng).round(), [1 + rng.below(9), 1 + rng.below(3)]);
    format!("{{ \"{size}B\" = {}, \"{other}B\" = {} }}", weights[0], weights[1])
}

fn log_uniform_in(rng: &mut Rng, [min, max]: [f64; 2]) -> f64 {
    log_uniform(rng, min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_always_gives_the_same_valid_scenario() {
        let draw = Generator::new(7, None, Vec::new());
        for number in 0..60 {
            let (scenario, _) = draw.scenario(number).unwrap();
            assert_eq!(scenario, draw.scenario(number).unwrap().0);
            assert!(scenario.point().is_ok() && scenario.experiment_text().is_ok(), "{scenario:?}");
        }
    }

    #[test]
    fn named_paths_are_drawn_and_count_as_random() {
        let draw = Generator::new(7, None, Vec::new());
        let drawn: Vec<_> = (0..1500).map(|number| draw.scenario(number).unwrap().0).collect();
        let named: Vec<_> =
            drawn.iter().filter(|scenario| scenario.value("network.path").is_some()).collect();
        assert!(!named.is_empty());
        assert!(named.iter().all(|scenario| scenario.has_randomness() && scenario.point().is_ok()));
    }

    #[test]
    fn each_control_is_compared_over_both_queues_of_dualpi2() {
        let draw = Generator::new(7, Some(L4S.to_owned()), Vec::new());
        let all: Vec<_> = (0..150).map(|number| draw.scenario(number).unwrap().0).collect();
        let has = |scenario: &RandomScenario, option: (&str, &str), any_ect: bool| {
            let options = &scenario.options;
            let discipline = scenario.value("network.discipline").unwrap_or_default();
            options.iter().any(|(key, value)| (key.as_str(), value.as_str()) == option)
                && discipline.starts_with("{ dualpi2")
                && discipline.contains(&format!("any_ect = {any_ect}"))
        };
        for option in [("ecn", "true"), ("accurate_ecn", "true"), ("cc", "dctcp")] {
            for any_ect in [false, true] {
                let count = all.iter().filter(|scenario| has(scenario, option, any_ect)).count();
                assert!(count >= 5, "{option:?} {any_ect}: {count}");
            }
        }
        assert!(all.iter().any(|scenario| scenario.value("background").is_some()));
    }

    #[test]
    fn only_the_selected_family_is_drawn() {
        let draw = Generator::new(7, Some("bulk".to_owned()), Vec::new());
        assert!((0..20).all(|number| draw.scenario(number).unwrap().0.family().ends_with(" bulk")));
    }

    /// The model has no MPTCP: a search for a scenario that it accepts would never end.
    #[test]
    fn a_scenario_that_no_world_accepts_is_reported_with_the_reason() {
        let draw = Generator::new(7, Some("mptcp".to_owned()), vec![&hol_model::Model]);
        let reason = draw.scenario(0).unwrap_err();
        assert!(reason.to_lowercase().contains("mptcp"), "{reason}");
    }

    /// A discipline was one of a hundred keys, so that only about 10 of 1,000 scenarios had one, and hardly
    /// any had a queue.
    #[test]
    fn one_scenario_in_eleven_has_a_queue_that_drops_or_marks_early() {
        let draw = Generator::new(7, None, Vec::new());
        let all: Vec<_> = (0..600).map(|number| draw.scenario(number).unwrap().0).collect();
        let managed: Vec<_> =
            all.iter().filter(|scenario| scenario.value("network.discipline").is_some()).collect();
        assert!((35..85).contains(&managed.len()), "{}", managed.len());
        for name in ["codel", "fq_codel", "pie", "red"] {
            let has = |scenario: &&&RandomScenario| {
                scenario
                    .value("network.discipline")
                    .is_some_and(|value| value.starts_with(&format!("{{ {name} ")))
            };
            assert!(managed.iter().filter(has).count() > 2, "{name}");
        }
    }
    /// No scenario had an outage or another flow, so what the stacks do then was not compared.
    #[test]
    fn changing_paths_and_other_flows_are_drawn() {
        let draw = Generator::new(7, None, Vec::new());
        let all: Vec<_> = (0..600).map(|number| draw.scenario(number).unwrap().0).collect();
        for (key, word, least) in [
            ("network.events", "down = true", 25),
            ("network.events", "delay =", 5),
            ("network.events", "0bit", 5),
            ("network.events", "ms\", rate =", 5),
            ("background", "bulk", 10),
        ] {
            let has =
                |scenario: &&RandomScenario| scenario.value(key).is_some_and(|value| value.contains(word));
            let count = all.iter().filter(has).count();
            assert!(count >= least, "{key} with {word}: {count}");
        }
        for (name, key) in CONDITIONS {
            let draw = Generator::new(7, Some(name.to_owned()), Vec::new());
            assert!((0..20).all(|number| draw.scenario(number).unwrap().0.value(key).is_some()), "{name}");
        }
    }
}
