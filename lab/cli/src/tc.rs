//! `hol path tc`: derives the network of an experiment from lines of `tc`.

use std::fmt::Write;

use hol_base::{BitRate, ByteCount, Duration, Ratio};

/// One direction of a link, shaped by queueing disciplines.
#[derive(Debug, Default, PartialEq)]
pub struct ShapedDirection {
    /// Keys and values of a direction's table, with the quotes of TOML.
    keys: Vec<(&'static str, String)>,
    /// Comments for the reader of the file.
    notes: Vec<String>,
    /// netem's limit on the packets that it holds, if the line sets no rate.
    transit_limit: Option<TransitLimit>,
    /// The major number of the discipline's handle.
    handle: Option<String>,
    /// The major number of the discipline that contains this one.
    parent: Option<String>,
    /// Whether another discipline can replace the queue, as tbf's.
    has_inner_queue: bool,
}

/// netem's limit on the packets that it holds, which includes those in transit (net/sched/sch_netem.c, netem_enqueue).
#[derive(Debug, PartialEq)]
struct TransitLimit {
    packets: u64,
    delay: Duration,
}

impl TransitLimit {
    /// Returns the rate in bit/s at which full packets in transit reach the limit.
    fn max_rate(&self) -> f64 {
        self.packets as f64 * FULL_PACKET_OCTETS as f64 * 8.0 / self.delay.as_secs_f64()
    }

    /// Returns the number of packets that may wait while full packets at this rate in bit/s are in transit.
    fn waiting(&self, rate: f64) -> u64 {
        let in_transit = (rate * self.delay.as_secs_f64() / 8.0 / FULL_PACKET_OCTETS as f64) as u64;
        self.packets.saturating_sub(in_transit).max(1)
    }
}

/// Octets of a full packet as `tc` counts them, with the Ethernet header.
const FULL_PACKET_OCTETS: u64 = 1514;
/// The rate in bit/s that is written if nothing limits it.
const UNLIMITED_RATE: f64 = 1e10;
/// From this rate in bit/s on, netem's rate is there only to keep packets in order.
const ORDER_ONLY_RATE: u64 = 1_000_000_000_000;
/// netem's default limit in packets. tc-netem(8).
const NETEM_DEFAULT_LIMIT: u64 = 1000;

const OVERHEAD_UNSUPPORTED: &str =
    "rate with an overhead is not supported; use network.overhead in the experiment";

/// Disciplines that leave packets as they are.
const DISCIPLINES_WITHOUT_EFFECT: [&str; 5] = ["noqueue", "mq", "ingress", "clsact", "noop"];

/// Returns the lines of an argument: one line, or those of the whole output of tc that name a discipline or a class,
/// without its statistics.
pub fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let is_output = text.trim().contains('\n');
    let names_one = |line: &str| {
        ["qdisc", "class", "tc"].iter().any(|first| line.split_whitespace().next() == Some(first))
    };
    text.lines().filter(move |line| !is_output || names_one(line))
}

/// Parses a line such as `qdisc add dev eth0 root netem delay 50ms`, or one that `tc qdisc show` or `tc class show` prints. Errors name the
/// wrong word, or list the supported disciplines.
pub fn read(line: &str) -> Result<ShapedDirection, String> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "\\").collect();
    let at = words.iter().position(|word| DISCIPLINES.iter().any(|(known, _)| known == word));
    let Some(at) = at else {
        if let Some(name) = words.iter().find(|word| DISCIPLINES_WITHOUT_EFFECT.contains(word)) {
            return Err(format!("{name} shapes no packets; remove the line"));
        }
        let known = DISCIPLINES.map(|(name, _)| name).join(", ");
        return Err(format!("no queueing discipline that hol supports; use one of {known}"));
    };
    let (_, read) = DISCIPLINES
        .iter()
        .find(|(known, _)| *known == words[at])
        .expect("the word is one of the disciplines");
    let major = |word: &&str| Some(word.split_once(':')?.0.to_owned());
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let mut shaped = ShapedDirection {
        handle: after("handle").or(words.get(at + 1)).and_then(major),
        parent: after("parent").and_then(major),
        ..ShapedDirection::default()
    };
    read(&mut shaped, &mut Words { words: without_handle_and_parent(&words[at + 1..]) })?;
    Ok(shaped)
}

/// Removes the handle and the parent that follow the discipline in the output of tc: `qdisc netem 8001: dev eth0 root
/// refcnt 2 limit 1000 …`.
fn without_handle_and_parent<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    match words {
        ["root" | "offloaded", rest @ ..]
        | ["dev" | "parent" | "leaf" | "refcnt" | "ingress_block" | "egress_block", _, rest @ ..] => {
            without_handle_and_parent(rest)
        }
        [handle, rest @ ..] if handle.contains(':') => without_handle_and_parent(rest),
        _ => words,
    }
}

type OptionParser = fn(&mut ShapedDirection, &mut Words<'_>) -> Result<(), String>;

const DISCIPLINES: [(&str, OptionParser); 10] = [
    ("netem", parse_netem),
    ("tbf", parse_tbf),
    ("htb", parse_htb_class),
    ("pfifo", |shaped, words| fifo(shaped, words, "p")),
    ("bfifo", |shaped, words| fifo(shaped, words, "B")),
    ("fq_codel", |shaped, words| queue_management(shaped, words, "fq_codel")),
    ("codel", |shaped, words| queue_management(shaped, words, "codel")),
    ("pie", |shaped, words| queue_management(shaped, words, "pie")),
    ("dualpi2", |shaped, words| queue_management(shaped, words, "dualpi2")),
    ("red", parse_red),
];

/// The remaining words of a line.
struct Words<'w> {
    words: &'w [&'w str],
}

impl<'w> Words<'w> {
    fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// Returns the value of `key`.
    fn value(&mut self, key: &str) -> Result<&'w str, String> {
        self.next().ok_or_else(|| format!("{key:?} has no value"))
    }

    /// Returns the next word if it is a value and not a key.
    fn optional<T>(&mut self, read: fn(&str) -> Option<T>) -> Option<T> {
        let value = read(self.words.first()?)?;
        self.next();
        Some(value)
    }

    /// Skips a word that tc prints before a value.
    fn skip_label(&mut self, label: &str) -> &mut Self {
        if self.words.first() == Some(&label) {
            self.next();
        }
        self
    }

    fn read<T>(&mut self, key: &str, read: fn(&str) -> Option<T>) -> Result<T, String> {
        let word = self.value(key)?;
        read(word).ok_or_else(|| format!("{key}: unknown value {word}"))
    }
}

/// Parses a time; a bare number is in microseconds. tc(8), UNITS.
fn parse_time(word: &str) -> Option<Duration> {
    word.parse().or_else(|_| format!("{word}us").parse()).ok()
}

/// Parses a percentage; the percent sign may be missing (`parse_percent` in iproute2's tc_util.c).
fn share(word: &str) -> Option<Ratio> {
    word.parse().or_else(|_| format!("{word}%").parse()).ok()
}

/// Parses a rate; bare numbers are bits, and `mbps` are octets. tc(8), UNITS.
fn parse_rate(word: &str) -> Option<BitRate> {
    let small = word.to_ascii_lowercase();
    if let Some(octets) = small.strip_suffix("bps") {
        let digits = octets.trim_end_matches(char::is_alphabetic);
        let factor = match &octets[digits.len()..] {
            "" => 8.0,
            "k" => 8e3,
            "m" => 8e6,
            "g" => 8e9,
            "ki" => 8.0 * 1024.0,
            "mi" => 8.0 * 1024.0 * 1024.0,
            "gi" => 8.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        return BitRate::from_bits_per_second((digits.parse::<f64>().ok()? * factor) as u64);
    }
    small.parse().ok().or_else(|| BitRate::from_bits_per_second(small.parse().ok()?))
}

/// Parses a number of octets; `k` and `kb` are 1024. tc(8), UNITS.
fn parse_octets(word: &str) -> Option<u64> {
    let small = word.to_ascii_lowercase();
    let digits = small.trim_end_matches(char::is_alphabetic);
    let factor = match &small[digits.len()..] {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 128.0,
        "mbit" => 131_072.0,
        _ => return None,
    };
    Some((digits.parse::<f64>().ok()? * factor) as u64)
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

fn count(word: &str) -> Option<u64> {
    word.parse().ok()
}

impl ShapedDirection {
    fn set(&mut self, key: &'static str, value: impl std::fmt::Display) {
        self.keys.push((key, format!("\"{value}\"")));
    }
}

/// Parses the options of netem. tc-netem(8).
fn parse_netem(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut delay, mut speed, mut limit) = (Duration::ZERO, None, NETEM_DEFAULT_LIMIT);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = words.read(word, count)?,
            "delay" | "latency" => {
                delay = words.read(word, parse_time)?;
                if let Some(jitter) = words.optional(parse_time).filter(|jitter| *jitter > Duration::ZERO) {
                    shaped.set("jitter", jitter);
                    shaped.notes.push(
                        "netem reorders packets if the delay varies by more than the interval between them; hol keeps their order"
                            .to_owned(),
                    );
                    if let Some(correlation) = words.optional(share) {
                        shaped.set("jitter_correlation", correlation);
                    }
                }
            }
            "distribution" => {
                let kind = words.value(word)?;
                if !["uniform", "normal", "pareto", "paretonormal"].contains(&kind) {
                    return Err(format!("distribution {kind} is not supported; use uniform, normal, pareto or paretonormal, or set \
                        network.jitter_distribution to a file"));
                }
                shaped.set("jitter_distribution", kind);
            }
            "loss" | "drop" => loss(shaped, words)?,
            "duplicate" | "corrupt" => {
                let key = if word == "corrupt" { "corrupt" } else { "duplicate" };
                let own = words.read(word, share)?;
                shaped.set(key, own);
                if words.optional(share).is_some_and(|correlation| !correlation.is_zero()) {
                    return Err(format!("{word} with a correlation is not supported, because hol draws each packet independently; omit the correlation"));
                }
            }
            "rate" => {
                speed = Some(words.read(word, parse_rate)?);
                if words.optional(count).is_some_and(|overhead| overhead > 0) {
                    return Err(OVERHEAD_UNSUPPORTED.to_owned());
                }
            }
            "ecn" => return Err("netem's ecn is not supported, because hol marks packets only in queues; use discipline = { codel = { ecn = true } }".to_owned()),
            "packetoverhead" => {
                if words.read(word, count)? > 0 {
                    return Err(OVERHEAD_UNSUPPORTED.to_owned());
                }
            }
            "slot" => {
                let problem = "netem's slot is not supported, because it releases packets in bursts at fixed times";
                return Err(problem.to_owned());
            }
            "reorder" | "gap" if words.optional(|word| share(word).filter(|share| share.is_zero())).is_some() => {
                words.optional(share);
            }
            "reorder" | "gap" => {
                return Err(format!(
                    "netem's {word} is not supported, because it sends some packets at once and delays the others; use the keys `reorder` \
                    and `reorder_by`, which delay some packets more than the others"
                ));
            }
            "seed" => drop(words.next()),
            other => return Err(format!("option {other:?} of netem is not supported")),
        }
    }
    if !delay.is_zero() || shaped.keys.is_empty() && speed.is_none() {
        shaped.keys.insert(0, ("delay", format!("\"{delay}\"")));
    }
    set_rate_and_queue(shaped, speed, delay, limit);
    Ok(())
}

/// Derives rate and queue from netem's limit, which counts packets in transit, too; hol's queue counts only
/// waiting packets.
fn set_rate_and_queue(shaped: &mut ShapedDirection, speed: Option<BitRate>, delay: Duration, packets: u64) {
    let limit = TransitLimit { packets, delay };
    // netem with a rate, however high, does not reorder packets whose delays vary.
    let Some(speed) = speed.filter(|speed| speed.bits_per_second() < ORDER_ONLY_RATE) else {
        shaped.transit_limit = Some(limit);
        return;
    };
    let waiting = limit.waiting(speed.bits_per_second() as f64);
    shaped.set("rate", speed);
    shaped.set("queue", format!("{waiting}p"));
    if waiting < packets {
        shaped.notes.push(format!(
            "netem's limit of {packets} packets includes {} full packets in transit; hol's queue holds only the others",
            packets - waiting
        ));
    }
}

fn loss(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    match words.value("loss")? {
        "gemodel" => {
            let begins = words.skip_label("p").read("gemodel", share)?;
            let end = words.skip_label("r").optional(share);
            // tc-netem(8): r is 1 - p by default; then 1 - h, the loss in the bad state, and 1 - k, that in the good one.
            let ends = end.or_else(|| Ratio::new(1.0 - begins.value())).unwrap_or_default();
            let mut table = format!("{{ good_to_bad = \"{begins}\", bad_to_good = \"{ends}\"");
            if let Some(bad) = words.skip_label("1-h").optional(share) {
                let _ = write!(table, ", loss_bad = \"{bad}\"");
            }
            if let Some(good) = words.skip_label("1-k").optional(share) {
                let _ = write!(table, ", loss_good = \"{good}\"");
            }
            shaped.keys.push(("loss", table + " }"));
        }
        "state" => return Err("loss state is not supported; use gemodel, a Gilbert-Elliott link".to_owned()),
        first => {
            let word = if first == "random" { words.value("loss random")? } else { first };
            let own = share(word).ok_or_else(|| format!("loss {word}: write a percentage such as 1%"))?;
            if words.optional(share).is_some_and(|correlation| !correlation.is_zero()) {
                return Err(
                    "loss with a correlation is not supported, because netem then drops fewer packets than configured; use loss gemodel"
                        .to_owned(),
                );
            }
            shaped.set("loss", own);
        }
    }
    Ok(())
}

/// Parses the options of tbf. tc-tbf(8).
fn parse_tbf(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut speed, mut burst, mut limit, mut latency) = (None, 0, None, None);
    while let Some(word) = words.next() {
        match word {
            "rate" => speed = Some(words.read(word, parse_rate)?),
            "burst" | "buffer" | "maxburst" => {
                let own = words.value(word)?;
                burst = parse_octets(own.split('/').next().unwrap_or_default())
                    .ok_or_else(|| format!("{word} {own}: write a size such as 32kbit"))?;
            }
            "limit" => limit = Some(words.read(word, parse_octets)?),
            "latency" | "lat" => latency = Some(words.read(word, parse_time)?),
            "mtu" | "minburst" | "mpu" | "linklayer" => drop(words.next()),
            other => {
                return Err(format!(
                    "option {other:?} of tbf is not supported; supported are rate, burst, limit and latency"
                ));
            }
        }
    }
    let speed = speed.ok_or("tbf has no rate; add one, such as rate 10mbit")?;
    let waits =
        latency.map(|latency| (latency.as_secs_f64() * speed.bits_per_second() as f64 / 8.0) as u64 + burst);
    shaped.has_inner_queue = true;
    shaped.set("rate", speed);
    shaped.set(
        "queue",
        ByteCount(
            limit
                .or(waits)
                .ok_or("tbf has neither limit nor latency; add one of them")?
                .max(FULL_PACKET_OCTETS),
        ),
    );
    if burst > 10 * FULL_PACKET_OCTETS {
        shaped.notes.push(format!(
            "after a pause tbf sends a burst of {burst} octets at once; hol's link sends it at the link's rate"
        ));
    }
    Ok(())
}

/// Parses the rate of an HTB class. tc-htb(8).
fn parse_htb_class(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let (mut speed, mut ceiling) = (None, None);
    while let Some(word) = words.next() {
        match word {
            "rate" => speed = Some(words.read(word, parse_rate)?),
            "ceil" => ceiling = Some(words.read(word, parse_rate)?),
            "default"
            | "burst"
            | "cburst"
            | "prio"
            | "r2q"
            | "quantum"
            | "direct_packets_stat"
            | "direct_qlen"
            | "linklayer"
            | "overhead"
            | "mpu"
            | "level" => {
                words.next();
            }
            other => {
                return Err(format!("option {other:?} of htb is not supported; supported are rate and ceil"));
            }
        }
    }
    // A class without competitors can borrow up to its ceiling.
    shaped.set("rate", ceiling.or(speed).ok_or("this line of htb has no rate; use the rate of its class")?);
    Ok(())
}

fn fifo(shaped: &mut ShapedDirection, words: &mut Words<'_>, unit: &str) -> Result<(), String> {
    while let Some(word) = words.next() {
        match word {
            "limit" => {
                let limit = words.read(word, |text| parse_octets(text.strip_suffix('p').unwrap_or(text)))?;
                shaped.set("queue", format!("{limit}{unit}"));
            }
            other => return Err(format!("option {other:?} of a fifo is not supported; supported is limit")),
        }
    }
    Ok(())
}

/// Parses the options of a queue management. tc-codel(8), tc-fq_codel(8), tc-pie(8), tc-dualpi2(8).
fn queue_management(
    shaped: &mut ShapedDirection,
    words: &mut Words<'_>,
    name: &'static str,
) -> Result<(), String> {
    let (mut keys, mut ecn) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match (name, word) {
            (_, "limit") => {
                let limit = words.read(word, |text| count(text.strip_suffix('p').unwrap_or(text)))?;
                shaped.set("queue", format!("{limit}p"));
            }
            (_, "target") | ("codel" | "fq_codel", "interval" | "ce_threshold") => {
                let own = words.read(word, parse_time)?;
                keys.push(format!("{word} = \"{own}\""));
            }
            ("dualpi2", "step_thresh") => keys.push(format!("step = \"{}\"", words.read(word, parse_time)?)),
            ("dualpi2", "coupling_factor") => keys.push(format!("coupling = {}", words.read(word, count)?)),
            ("dualpi2", "classic_protection") => {
                let percent = words.read(word, |text| count(text.strip_suffix('%').unwrap_or(text)))?;
                keys.push(format!("classic_protection = {percent}"));
            }
            // These are the defaults of dualpi2.
            ("dualpi2", "drop_on_overload" | "drop_dequeue" | "l4s_ect" | "split_gso") => {}
            ("pie" | "dualpi2", "tupdate") => {
                keys.push(format!("update = \"{}\"", words.read(word, parse_time)?));
            }
            // In pie the value is a number without a unit, in dualpi2 it is in Hz, as in hol.
            ("pie" | "dualpi2", "alpha" | "beta") => {
                keys.push(format!("{word} = {}", words.read(word, number)?));
            }
            ("dualpi2", "memlimit" | "min_qlen_step") => {
                words.next();
            }
            ("fq_codel", "flows") => keys.push(format!("flows = {}", words.read(word, count)?)),
            ("fq_codel", "quantum") => {
                keys.push(format!("quantum = \"{}B\"", words.read(word, parse_octets)?));
            }
            ("codel" | "fq_codel" | "pie", "ecn" | "noecn") => ecn = Some(word == "ecn"),
            ("fq_codel", "memory_limit" | "drop_batch") => drop(words.next()),
            (_, other) => return Err(format!("option {other:?} of {name} is not supported")),
        }
    }
    keys.extend(ecn.map(|ecn| format!("ecn = {ecn}")));
    if name == "fq_codel" && shaped.keys.is_empty() {
        // Its default; the others' is 1000.
        shaped.set("queue", "10240p");
    }
    let table = format!("{{ {name} = {{ {} }} }}", keys.join(", "));
    shaped.keys.push(("discipline", if keys.is_empty() { format!("\"{name}\"") } else { table }));
    Ok(())
}

/// Parses the options of RED. tc-red(8).
fn parse_red(shaped: &mut ShapedDirection, words: &mut Words<'_>) -> Result<(), String> {
    let mut keys = Vec::new();
    let (mut limit, mut min, mut max, mut packet, mut burst, mut probability) =
        (None, None, None, None, None, None);
    while let Some(word) = words.next() {
        match word {
            "limit" => limit = Some(words.read(word, parse_octets)?),
            "min" => min = Some(words.read(word, parse_octets)?),
            "max" => max = Some(words.read(word, parse_octets)?),
            "avpkt" => packet = Some(words.read(word, parse_octets)?),
            "burst" => burst = Some(words.read(word, count)?),
            "probability" => probability = Some(words.read(word, |word| Ratio::new(word.parse().ok()?))?),
            "bandwidth" => drop(words.next()),
            "ecn" => keys.push("ecn = true".to_owned()),
            other => return Err(format!("option {other:?} of red is not supported")),
        }
    }
    // The defaults of tc/q_red.c in iproute2; what tc prints has both thresholds.
    let max = max.or(min.map(|min| min * 3)).or(limit.map(|limit| limit / 4));
    let min = min.or(max.map(|max| max / 3));
    let thresholds = [("min", min), ("max", max), ("packet", packet)];
    keys.extend(thresholds.into_iter().filter_map(|(key, octets)| Some(format!("{key} = \"{}B\"", octets?))));
    match (min, max, packet.filter(|packet| *packet > 0)) {
        // A line to execute, to which tc adds its defaults.
        (Some(min), Some(max), Some(packet)) => {
            let burst = burst.unwrap_or((2 * min + max) / (3 * packet));
            keys.push(format!("weight = {}", red_weight(min, burst, packet)?));
            probability = probability.or(Ratio::new(0.02));
        }
        _ => shaped
            .notes
            .push("tc does not show the weight of the average; add weight = … if it is not 0.002".to_owned()),
    }
    match probability {
        Some(drop) => keys.push(format!("drop = \"{drop}\"")),
        None => shaped.notes.push(
            "the line has no probability, which tc does not show; add drop = \"…\" if it is not 10 %"
                .to_owned(),
        ),
    }
    if let Some(limit) = limit {
        shaped.set("queue", ByteCount(limit));
    }
    shaped.keys.push(("discipline", format!("{{ red = {{ {} }} }}", keys.join(", "))));
    Ok(())
}

/// Returns the weight of RED's average with which a burst of `burst` packets passes below `min`: the largest power of
/// two for which it does. `tc_red_eval_ewma` in tc_red.c of iproute2.
fn red_weight(min: u64, burst: u64, packet: u64) -> Result<f64, String> {
    let above = burst as f64 + 1.0 - min as f64 / packet as f64;
    if above < 1.0 {
        return Err(format!(
            "burst {burst} is too short for RED's min of {min} octets; raise burst, or omit it"
        ));
    }
    let weights = (1..32).map(|exponent| 0.5f64.powi(exponent));
    weights
        .into_iter()
        .find(|weight| above <= (1.0 - (1.0 - weight).powf(burst as f64)) / weight)
        .ok_or_else(|| format!("no weight of RED fits a burst of {burst} packets; lower it"))
}

/// Returns the `[network]`: one table for the direction from the client, and one for the reverse direction if lines
/// were given for it.
pub fn network(up: &[ShapedDirection], down: &[ShapedDirection]) -> Result<String, String> {
    let mut text =
        "[network]\n# No limit of rate and no delay, unless a line sets them.\nrate = \"10Gbit\"\ndelay = \"0s\"\n"
            .to_owned();
    for (name, lines) in [("up", up), ("down", down)] {
        if lines.is_empty() {
            continue;
        }
        let _ = write!(text, "\n[network.{name}]\n");
        let mut keys_so_far: Vec<&str> = Vec::new();
        let contains_netem = |outer: &ShapedDirection| {
            let netem = |inner: &&ShapedDirection| inner.transit_limit.is_some() && inner.parent.is_some();
            lines.iter().filter(netem).any(|inner| inner.parent == outer.handle)
        };
        for shaped in lines {
            shaped.notes.iter().for_each(|note| text += &format!("# {note}.\n"));
            let is_replaced = shaped.has_inner_queue && contains_netem(shaped);
            for (key, value) in shaped.keys.iter().filter(|(key, _)| !(is_replaced && *key == "queue")) {
                if keys_so_far.contains(key) {
                    return Err(format!("two lines set `{key}`; remove one of them"));
                }
                keys_so_far.push(key);
                text += &format!("{key} = {value}\n");
            }
        }
        if let Some(netem) = lines.iter().find(|shaped| shaped.transit_limit.is_some()) {
            text += &transit_limit(netem, lines, &keys_so_far);
        }
    }
    Ok(text)
}

/// Returns the queue that netem's limit means at the rate of another line, or else the rate to which the limit
/// restricts the link, as lines of a direction's table.
fn transit_limit(netem: &ShapedDirection, lines: &[ShapedDirection], keys_so_far: &[&str]) -> String {
    let Some(limit @ TransitLimit { packets, delay }) = &netem.transit_limit else { return String::new() };
    let rates = lines.iter().flat_map(|shaped| &shaped.keys).filter(|(key, _)| *key == "rate");
    let rate = rates.filter_map(|(_, rate)| rate.trim_matches('"').parse::<BitRate>().ok()).next();
    let mut text = String::new();
    let has_queue = keys_so_far.contains(&"queue");
    match (rate, BitRate::from_bits_per_second(limit.max_rate() as u64)) {
        (Some(rate), _) if !has_queue => {
            let _ = writeln!(text, "queue = \"{}p\"", limit.waiting(rate.bits_per_second() as f64));
        }
        (None, Some(max)) if limit.max_rate() <= UNLIMITED_RATE => {
            let _ = writeln!(
                text,
                "# netem drops packets when it holds {packets}, including those in transit, so a delay of {delay} limits the rate to \
                {max}.\nrate = \"{max}\""
            );
            if !has_queue {
                // netem passes a burst of this length at once.
                let _ = writeln!(text, "queue = \"{packets}p\"");
            }
        }
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys_of(line: &str) -> String {
        let shaped = read(line).unwrap_or_else(|problem| panic!("{line}: {problem}"));
        shaped
            .keys
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
            .replace('"', "")
    }

    /// What iproute2 6.1 prints for these disciplines.
    #[test]
    fn output_of_tc_show_is_read_like_the_command() {
        for (shown, set) in [
            (
                "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 50ms  10ms loss 1%",
                "netem limit 1000 delay 50ms 10ms loss 1%",
            ),
            (
                "qdisc tbf 8001: root refcnt 3 rate 10Mbit burst 4Kb lat 50ms",
                "tbf rate 10mbit burst 32kbit latency 50ms",
            ),
            ("qdisc pfifo 8002: root refcnt 3 limit 50p", "pfifo limit 50"),
            ("qdisc bfifo 8003: parent 1:10 limit 30000b", "bfifo limit 30000"),
            (
                "class htb 1:10 root leaf 8002: prio 0 rate 5Mbit ceil 8Mbit burst 1600b cburst 1600b",
                "class add dev eth0 parent 1: classid 1:10 htb rate 5mbit ceil 8mbit",
            ),
            (
                "qdisc fq_codel 8004: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn \
                 drop_batch 64",
                "fq_codel limit 10240 flows 1024 quantum 1514 target 5ms interval 100ms ecn",
            ),
            (
                "qdisc netem 8001: root refcnt 2 limit 1000 delay 10ms loss gemodel p 1% r 10% 1-h 70% 1-k 0.1%",
                "netem limit 1000 delay 10ms loss gemodel 1% 10% 70% 0.1%",
            ),
            (
                "qdisc netem 8001: root offloaded refcnt 2 limit 9 reorder 0% rate 10Mbit packetoverhead 0",
                "netem limit 9 rate 10mbit",
            ),
            (
                "qdisc pie 8002: root refcnt 2 limit 100p target 15ms tupdate 16ms alpha 2 beta 20",
                "pie limit 100 target 15ms tupdate 16ms alpha 2 beta 20",
            ),
        ] {
            let [shown, set] = [shown, set].map(|line| read(line).unwrap());
            assert_eq!((shown.keys, shown.notes), (set.keys, set.notes));
            assert_eq!(shown.transit_limit, set.transit_limit);
        }
        let class = read(
            "qdisc htb 1: dev v0 root refcnt 3 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000",
        );
        assert!(class.unwrap_err().contains("use the rate of its class"));
        assert!(read("qdisc noqueue 0: dev lo root refcnt 2").unwrap_err().contains("shapes no packets"));
    }

    /// Typical lines from tc-netem(8), tc-tbf(8) and tc-fq_codel(8).
    #[test]
    fn tc_lines_become_keys_of_a_direction() {
        for (line, keys) in [
            (
                "qdisc add dev eth0 root netem delay 50ms 10ms 25% loss gemodel 1% 10% limit 1000 rate 10mbit",
                "delay=50ms jitter=10ms jitter_correlation=25% loss={ good_to_bad = 1%, bad_to_good = 10% } rate=10Mbit queue=959p",
            ),
            ("tc qdisc add dev eth0 root netem delay 100ms", "delay=100ms"),
            ("tc qdisc add dev eth0 root netem loss 0.3%", "loss=0.3%"),
            ("netem delay 50000 10000 25 loss 1", "delay=50ms jitter=10ms jitter_correlation=25% loss=1%"),
            (
                "netem loss random 1% duplicate 2% corrupt 0.1% delay 20ms rate 1mbit",
                "loss=1% duplicate=2% corrupt=0.1% rate=1Mbit",
            ),
            ("qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms", "rate=1Mbit queue=54096B"),
            ("qdisc replace dev eth0 root tbf rate 1mbps burst 1540 limit 30k", "rate=8Mbit queue=30720B"),
            ("class add dev eth0 parent 1: classid 1:1 htb rate 5mbit ceil 10mbit", "rate=10Mbit"),
            ("qdisc add dev eth0 root pfifo limit 50", "queue=50p"),
            (
                "qdisc add dev eth0 root fq_codel target 10ms flows 64 noecn",
                "discipline={ fq_codel = { target = 10ms, flows = 64, ecn = false } }",
            ),
            (
                "qdisc add dev eth0 root dualpi2 limit 500 step_thresh 500us coupling_factor 2 classic_protection 20%",
                "queue=500p discipline={ dualpi2 = { step = 500us, coupling = 2, classic_protection = 20 } }",
            ),
            ("qdisc add dev eth0 root codel", "discipline=codel"),
        ] {
            let own = keys_of(line);
            assert!(keys.split(' ').all(|key| own.contains(key)), "{line}: {own}");
        }
    }

    #[test]
    fn unsupported_tc_options_are_refused_by_name() {
        for (line, problem) in [
            ("qdisc add dev eth0 root cake bandwidth 10mbit", "no queueing discipline"),
            ("netem delay 10ms reorder 25% 50%", "reorder"),
            ("netem loss 1% 25%", "gemodel"),
            ("netem delay soon", "delay: unknown value soon"),
            ("netem delay 100000000000000000", "delay: unknown value 1"),
            ("netem loss 101", "loss 101: write a percentage"),
            ("netem delay", "has no value"),
            ("netem wobble 3", "\"wobble\""),
            ("tbf burst 3k", "no rate"),
        ] {
            let own = read(line).unwrap_err();
            assert!(own.contains(problem), "{line}: {own}");
        }
    }

    #[test]
    fn converted_tc_lines_are_a_valid_network() {
        let up =
            read("netem delay 50ms 10ms 25% distribution normal loss gemodel 1% 10% rate 10mbit").unwrap();
        let down = [read("netem delay 5ms").unwrap(), read("codel limit 10 target 4ms").unwrap()];
        let queues = ["pfifo limit 50", "codel limit 10"].map(|line| read(line).unwrap());
        assert!(network(&[], &queues).unwrap_err().contains("`queue`"));
        let text = network(&[up], &down[1..]).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let network: hol_network::NetworkSpec = table["network"].clone().try_into().unwrap();
        assert!(hol_network::Topology::new(&network).is_ok(), "{text}");
    }

    /// A packet in transit counts towards netem's limit (net/sched/sch_netem.c, netem_enqueue), which matters if nothing else limits the rate.
    #[test]
    fn netem_limit_restricts_the_rate_unless_a_line_sets_one() {
        let netem = || read("qdisc netem 20: parent 1:10 limit 1000 delay 100ms").unwrap();
        let alone = network(&[netem()], &[]).unwrap();
        assert!(
            alone.ends_with("limits the rate to 121120kbit.\nrate = \"121120kbit\"\nqueue = \"1000p\"\n"),
            "{alone}"
        );
        let class =
            read("class htb 1:10 root leaf 20: prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b")
                .unwrap();
        let both = network(&[class, netem()], &[]).unwrap();
        assert!(
            both.ends_with("[network.up]\nrate = \"5Mbit\"\ndelay = \"100ms\"\nqueue = \"959p\"\n"),
            "{both}"
        );
    }

    /// The child's queue replaces tbf's (net/sched/sch_tbf.c, tbf_graft).
    #[test]
    fn netem_below_tbf_has_the_queue() {
        let tbf =
            || read("qdisc add dev eth0 root handle 1:0 tbf rate 256kbit buffer 1600 limit 3000").unwrap();
        let child = read("qdisc add dev eth0 parent 1:1 handle 10: netem delay 100ms").unwrap();
        let text = network(&[tbf(), child], &[]).unwrap();
        assert!(text.ends_with("rate = \"256kbit\"\ndelay = \"100ms\"\nqueue = \"998p\"\n"), "{text}");
        let root = read("qdisc add dev eth0 root handle 1: netem delay 100ms").unwrap();
        let child =
            read("qdisc add dev eth0 parent 1: handle 2: tbf rate 256kbit buffer 1600 limit 3000").unwrap();
        let text = network(&[root, child], &[]).unwrap();
        assert!(text.contains("queue = \"3000B\"") && !text.contains("p\""), "{text}");
    }
}
