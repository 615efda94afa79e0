//! `hol path tc` derives the network of an experiment from lines of `tc`; `script` does the reverse.

mod change;
mod netem;
mod qdisc_location;
mod queues;
mod red;
mod script;
mod words;

use std::fmt::Write;

use change::apply_changes;
use netem::{TransitLimit, parse_netem, transit_limit};
use qdisc_location::{QdiscLocation, TcHandle};
use queues::{parse_aqm, parse_fifo, parse_htb_class, parse_tbf};
use red::parse_red;
use words::Words;

pub use script::script;

/// One direction of a link with the settings that a line of tc gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShapedDirection {
    /// The kind of the discipline, such as `netem`.
    kind: &'static str,
    /// The command with which the line changes an existing discipline, if it does.
    change: Option<Change>,
    /// Keys and values for the table of this direction; the values include the quotes of TOML.
    keys: Vec<(&'static str, String)>,
    /// Notes for comments in the experiment file.
    notes: Vec<String>,
    /// netem's limit on the packets in it, if the line sets no rate, or if the limit keeps the link from reaching the
    /// rate.
    transit_limit: Option<TransitLimit>,
    /// The network device, if the line names one.
    device: Option<String>,
    /// The major number of the discipline's handle.
    handle: Option<String>,
    place: QdiscLocation,
    /// Whether the queue can be replaced by an inner discipline, as in tbf.
    has_inner_queue: bool,
}

/// A tc command that changes an existing discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// `change`: the discipline stays, with other options.
    Options,
    /// `replace`: another discipline takes the place of the existing one; if both are of the same kind, only the
    /// options change.
    Discipline,
}

/// Size of a full packet in octets as tc counts it, with the Ethernet header.
const FULL_PACKET_OCTETS: u64 = 1514;
/// The rate in bit/s that the output contains if nothing limits the rate.
const UNLIMITED_RATE: f64 = 1e10;
/// From this rate in bit/s on, netem's rate has no effect except that packets stay in order; transmission takes no
/// time.
const ORDER_ONLY_RATE: u64 = 1_000_000_000_000;

/// Disciplines that neither delay nor drop packets.
const DISCIPLINES_WITHOUT_EFFECT: [&str; 5] = ["noqueue", "mq", "ingress", "clsact", "noop"];

/// Returns the lines of tc in an argument. The argument is a single line, a script (whose lines `;` and `&&`
/// may separate), or the whole output of tc, whose statistics are left out.
pub fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_output = text.trim().contains('\n');
    let names_one = |line: &str| {
        ["qdisc", "class", "tc"].iter().any(|first| line.split_whitespace().next() == Some(first))
    };
    let commands = text.lines().flat_map(|line| line.split(';')).flat_map(|part| part.split("&&"));
    let commands = commands.map(|command| {
        let command = command.trim();
        command.strip_prefix("sudo ").unwrap_or(command)
    });
    commands.filter(move |line| !line.is_empty() && (!is_output || names_one(line)))
}

/// Returns whether a line neither delays nor drops packets: its discipline has no effect, or it is htb itself, of which
/// only the classes have rates.
fn shapes_nothing(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let names = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_known = DISCIPLINES.iter().any(|(name, _)| *name != "htb" && words.contains(name));
    !is_known
        && (names(&DISCIPLINES_WITHOUT_EFFECT) || names(&["htb"]) && !names(&["rate", "class", "classid"]))
}

/// Parses a line such as `qdisc add dev eth0 root netem delay 50ms`, or one that `tc qdisc show` or `tc class show` prints. Errors name the
/// wrong word, or list the supported disciplines.
fn read(line: &str) -> Result<ShapedDirection, String> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "\\").collect();
    let at = words.iter().position(|word| DISCIPLINES.iter().any(|(known, _)| known == word));
    let Some(at) = at else {
        if let Some(name) = words.iter().find(|word| DISCIPLINES_WITHOUT_EFFECT.contains(word)) {
            return Err(format!("{name} shapes no packets; remove the line"));
        }
        let known = DISCIPLINES.map(|(name, _)| name).join(", ");
        return Err(format!("no queueing discipline that hol supports; use one of {known}"));
    };
    let (kind, read) = DISCIPLINES
        .iter()
        .find(|(known, _)| *known == words[at])
        .expect("the word is one of the disciplines");
    let mut shaped = ShapedDirection::at_place(kind, &words, at);
    read(&mut shaped, &mut Words { words: without_handle_and_parent(&words[at + 1..]) })?;
    Ok(shaped)
}

/// Parses the lines of one direction. Disciplines such as htb and mq shape nothing themselves, but may replace
/// another discipline or be replaced. If there are no other disciplines, returns an error.
pub fn parse_lines(lines: &[&str]) -> Result<Vec<ShapedDirection>, String> {
    let is_mistake = lines.iter().all(|line| shapes_nothing(line));
    let parse = |line: &&str| match without_effect(line).filter(|_| !is_mistake) {
        Some(discipline) => Ok(discipline),
        None => read(line).map_err(|problem| format!("{line}: {problem}")),
    };
    lines.iter().map(parse).collect()
}

/// Returns the discipline of a line that neither delays nor drops packets; `None` for other lines.
fn without_effect(line: &str) -> Option<ShapedDirection> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let kinds = || DISCIPLINES_WITHOUT_EFFECT.into_iter().chain(["htb"]);
    let found =
        words.iter().enumerate().find_map(|(at, word)| Some((at, kinds().find(|kind| kind == word)?)));
    let (at, kind) = found.filter(|_| shapes_nothing(line))?;
    Some(ShapedDirection::at_place(kind, &words, at))
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
    ("pfifo", |shaped, words| parse_fifo(shaped, words, "p")),
    ("bfifo", |shaped, words| parse_fifo(shaped, words, "B")),
    ("fq_codel", |shaped, words| parse_aqm(shaped, words, "fq_codel")),
    ("codel", |shaped, words| parse_aqm(shaped, words, "codel")),
    ("pie", |shaped, words| parse_aqm(shaped, words, "pie")),
    ("dualpi2", |shaped, words| parse_aqm(shaped, words, "dualpi2")),
    ("red", parse_red),
];

impl ShapedDirection {
    /// Returns a discipline without options; the word at index `at` of the line names its kind.
    fn at_place(kind: &'static str, words: &[&str], at: usize) -> Self {
        let change = words[..at].iter().find_map(|word| match *word {
            "change" => Some(Change::Options),
            "replace" => Some(Change::Discipline),
            _ => None,
        });
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
        let name = words.get(at + 1);
        let place = QdiscLocation::of_line(words, name);
        let handle = after("handle").or(name).filter(|_| !matches!(place, QdiscLocation::Class(_)));
        Self {
            kind,
            change,
            device: after("dev").map(|device| (*device).to_owned()),
            handle: handle.and_then(|word| Some(TcHandle::parse(word)?.major)),
            place,
            ..Self::default()
        }
    }

    fn set(&mut self, key: &'static str, value: impl std::fmt::Display) {
        self.keys.push((key, format!("\"{value}\"")));
    }
}

/// Returns the `[network]` table. It has one table for the direction from the client and, if lines were given for
/// it, one for the reverse direction.
pub fn network(up: &[ShapedDirection], down: &[ShapedDirection]) -> Result<String, String> {
    let mut text =
        "[network]\n# No limit of rate and no delay, unless a line sets them.\nrate = \"10Gbit\"\ndelay = \"0s\"\n"
            .to_owned();
    for (name, lines) in [("up", up), ("down", down)] {
        if lines.is_empty() {
            continue;
        }
        let _ = write!(text, "\n[network.{name}]\n");
        let lines = apply_changes(lines)?;
        let mut keys_so_far: Vec<&str> = Vec::new();
        let contains_netem = |outer: &ShapedDirection| {
            let is_inside = |netem: &ShapedDirection| {
                netem.place.container().is_some_and(|handle| Some(handle) == outer.handle.as_deref())
            };
            lines.iter().filter(|inner| inner.transit_limit.is_some()).any(is_inside)
        };
        let rate = lines.iter().find_map(ShapedDirection::rate);
        let limit = lines.iter().find_map(|shaped| shaped.transit_limit.as_ref());
        let restricted = limit.and_then(|limit| limit.restricted_rate(rate));
        for shaped in &lines {
            shaped.notes.iter().for_each(|note| text += &format!("# {note}.\n"));
            let is_replaced = shaped.has_inner_queue && contains_netem(shaped);
            for (key, value) in shaped.keys.iter().filter(|(key, _)| !(is_replaced && *key == "queue")) {
                if keys_so_far.contains(key) {
                    return Err(format!("two lines set `{key}`; remove one of them"));
                }
                keys_so_far.push(key);
                if restricted.is_none() || *key != "rate" {
                    text += &format!("{key} = {value}\n");
                }
            }
        }
        if let Some(limit) = limit {
            text += &transit_limit(limit, rate, restricted, keys_so_far.contains(&"queue"));
        }
    }
    check(&text)?;
    Ok(text)
}

/// Returns an error for settings that hol's runs do not support, such as a correlation of delays from a table.
fn check(text: &str) -> Result<(), String> {
    #[derive(serde::Deserialize)]
    struct File {
        network: hol_network::NetworkSpec,
    }
    let File { network } = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    hol_network::Topology::new(&network).map(drop).map_err(|problem| problem.to_string())
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
        assert!(class.unwrap_err().contains("use the line of its class"));
        assert!(read("qdisc noqueue 0: dev lo root refcnt 2").unwrap_err().contains("shapes no packets"));
        for (line, shapes) in [
            ("qdisc add dev eth0 root handle 1: htb default 10", false),
            (
                "qdisc htb 1: dev v0 root refcnt 3 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000",
                false,
            ),
            ("qdisc noqueue 0: dev lo root refcnt 2", false),
            ("class add dev eth0 parent 1: classid 1:10 htb rate 5mbit", true),
            ("qdisc add dev eth0 parent 1:10 netem delay 20ms", true),
            ("qdisc add dev eth0 root frobnicate", true),
        ] {
            assert_eq!(!shapes_nothing(line), shapes, "{line}");
        }
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
            (
                "qdisc add dev eth0 root red limit 60000 min 15000 max 45000 avpkt 1000 burst 20",
                "queue=60000B discipline={ red = { min = 15000B, max = 45000B, packet = 1000B, weight = 0.125, drop = 2% } }",
            ),
            (
                "qdisc add dev eth0 root red limit 400kb avpkt 1kb bandwidth 1mbps",
                "queue=409600B discipline={ red = { min = 34133B, max = 102400B, packet = 1024B, weight = 0.03125, drop = 2% } }",
            ),
            (
                "qdisc red 8001: dev eth0 root refcnt 2 limit 60000b min 15000b max 45000b ewma 3 probability 0.1 Scell_log 13",
                "queue=60000B discipline={ red = { min = 15000B, max = 45000B, weight = 0.125, drop = 10% } }",
            ),
            (
                "qdisc add dev eth0 root fq_codel ecn noecn",
                "queue=10240p discipline={ fq_codel = { ecn = false } }",
            ),
            ("qdisc add dev eth0 root netem rate 25gbit", "rate=25Gbit queue=1000p"),
            ("qdisc add dev eth0 root netem rate 2gibps limit 9", "rate=17179869184bit queue=9p"),
            ("qdisc add dev eth0 root tbf rate 1mbit burst 32kbit latency 400ms", "rate=1Mbit queue=54096B"),
            ("qdisc replace dev eth0 root tbf rate 1mbps burst 1540 limit 30k", "rate=8Mbit queue=30720B"),
            ("class add dev eth0 parent 1: classid 1:1 htb rate 5mbit ceil 10mbit", "rate=10Mbit"),
            ("qdisc add dev eth0 root pfifo limit 50", "queue=50p"),
            (
                "qdisc add dev eth0 root fq_codel target 10ms flows 64 noecn",
                "discipline={ fq_codel = { target = 10ms, flows = 64, ecn = false } }",
            ),
            (
                "qdisc add dev eth0 root dualpi2 limit 500 step_thresh 500us coupling_factor 2 classic_protection 20% any_ect",
                "queue=500p discipline={ dualpi2 = { step = 500us, coupling = 2, classic_protection = 20, any_ect = true } }",
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
            ("red min 750599937895088mbit", "min: unknown value"),
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

    /// net/sched/sch_netem.c, netem_change: the fields of `struct tc_netem_qopt` are replaced, the attributes that are missing are kept.
    #[test]
    fn change_of_netem_resets_delay_loss_and_limit() {
        let up = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|line| read(line).unwrap()).collect();
            network(&lines, &[]).map(|text| text.split_once("[network.up]\n").unwrap().1.to_owned())
        };
        let set = "qdisc add dev eth0 root netem delay 10ms 2ms limit 20 duplicate 1% rate 5mbit";
        for change in ["change", "replace"] {
            let changed = up(&[set, &format!("qdisc {change} dev eth0 root netem loss 1%")]).unwrap();
            assert_eq!(changed, "loss = \"1%\"\nrate = \"5Mbit\"\nqueue = \"1000p\"\n", "{change}");
        }
        let twice =
            ["qdisc change dev eth0 root netem delay 1ms", "qdisc change dev eth0 root netem rate 1mbit"];
        let changed = up(&[set, twice[0], twice[1]]).unwrap();
        assert_eq!(changed, "rate = \"1Mbit\"\nqueue = \"1000p\"\n");
        // Another discipline, and one elsewhere.
        let replaced = up(&[set, "qdisc replace dev eth0 root pfifo limit 50"]).unwrap();
        assert_eq!(replaced, "queue = \"50p\"\n");
        let [class, below] = [
            "class add dev eth0 parent 1: classid 1:1 htb rate 5mbit",
            "qdisc add dev eth0 parent 1:1 handle 10: netem",
        ];
        let changed =
            up(&[class, below, "qdisc change dev eth0 parent 1:1 handle 10: netem delay 3ms"]).unwrap();
        assert!(changed.contains("rate = \"5Mbit\"\ndelay = \"3ms\"\n"), "{changed}");
        let kept =
            up(&["qdisc add dev eth0 root codel limit 10", "qdisc change dev eth0 root codel target 9ms"]);
        let problem = "hol does not apply changes of codel; write its final options in one line, and remove the line of the change";
        assert_eq!(kept.unwrap_err(), problem);
        assert!(up(&["qdisc change dev eth0 root netem delay 3ms"]).unwrap().contains("delay = \"3ms\""));
    }

    /// net/sched/sch_api.c, tc_modify_qdisc, and tc-htb(8).
    #[test]
    fn change_concerns_the_place_that_it_names() {
        let up = |lines: &[&str]| {
            let text = network(&parse_lines(lines)?, &[])?;
            Ok::<_, String>(text.split_once("[network.up]\n").map_or(text.clone(), |(_, up)| up.to_owned()))
        };
        let netem = "qdisc add dev eth0 root handle 1: netem loss 1% corrupt 2%";
        // Each sets the same key as the line before it, at another place.
        for line in
            ["qdisc replace dev eth1 root netem loss 3%", "qdisc replace dev eth0 parent 1:1 netem loss 3%"]
        {
            assert!(up(&[netem, line]).unwrap_err().contains("two lines set `loss`"), "{line}");
        }
        let class = "class add dev eth0 parent 1: classid 1:1 htb rate 5mbit";
        let [first, second] =
            ["1:1", "1:2"].map(|class| format!("qdisc add dev eth0 parent {class} netem loss 1%"));
        let change = "qdisc change dev eth0 parent 1:01 netem loss 4%";
        assert!(up(&[class, &first, change]).unwrap().contains("loss = \"4%\""));
        assert!(up(&[class, &second, change]).unwrap_err().contains("two lines set `loss`"));
        let other = "class replace dev eth0 parent 1: classid 1:2 htb rate 6mbit";
        assert!(up(&[class, other]).unwrap_err().contains("two lines set `rate`"));
        let same = other.replace("1:2", "1:1");
        assert!(up(&[class, &same]).unwrap_err().contains("does not apply changes of htb"));
        // Another handle is another discipline, which keeps nothing of the first.
        for (handle, corrupt) in
            [("handle 1:", true), ("handle 01:0", true), ("", true), ("handle 2:", false)]
        {
            let replaced =
                up(&[netem, &format!("qdisc replace dev eth0 root {handle} netem loss 3%")]).unwrap();
            assert_eq!(replaced.contains("corrupt = \"2%\""), corrupt, "{handle}: {replaced}");
            assert!(replaced.contains("loss = \"3%\""), "{handle}: {replaced}");
        }
        assert!(
            up(&[netem, "qdisc change dev eth0 root handle 2: netem loss 3%"])
                .unwrap_err()
                .contains("use replace")
        );
        let by_handle = up(&[netem, "qdisc change dev eth0 handle 1: netem loss 3%"]).unwrap();
        assert!(by_handle.contains("loss = \"3%\"") && by_handle.contains("corrupt"), "{by_handle}");
    }

    /// net/sched/sch_api.c, qdisc_graft: the inner disciplines of a replaced one are destroyed.
    #[test]
    fn replaced_discipline_leaves_nothing() {
        let up = |lines: &[&str]| {
            let text = network(&parse_lines(lines).unwrap(), &[]).unwrap();
            text.split_once("[network.up]\n").unwrap().1.to_owned()
        };
        let tree = [
            "qdisc add dev eth0 root handle 1: htb default 10",
            "class add dev eth0 parent 1: classid 1:10 htb rate 5mbit",
            "qdisc add dev eth0 parent 1:10 handle 10: netem delay 50ms",
            "qdisc add dev eth0 parent 10:1 handle 20: codel limit 9",
        ];
        let after = |line: &str| up(&[&tree[..], &[line]].concat());
        for kind in DISCIPLINES_WITHOUT_EFFECT.iter().filter(|kind| !["ingress", "clsact"].contains(kind)) {
            assert_eq!(after(&format!("qdisc replace dev eth0 root {kind}")), "", "{kind}");
        }
        assert_eq!(after("qdisc replace dev eth0 root pfifo limit 7"), "queue = \"7p\"\n");
        assert_eq!(
            after("qdisc replace dev eth0 parent 1:10 pfifo limit 7"),
            "rate = \"5Mbit\"\nqueue = \"7p\"\n"
        );
        for line in [
            "qdisc replace dev eth1 root noqueue",
            "qdisc replace dev eth0 clsact",
            "qdisc replace dev eth0 ingress",
        ] {
            assert_eq!(after(line), up(&tree), "{line}");
        }
        let again = "qdisc add dev eth0 root netem loss 1%";
        assert_eq!(up(&[again, "qdisc replace dev eth0 root noqueue", again]), "loss = \"1%\"\n");
        assert!(
            parse_lines(&["qdisc replace dev eth0 root noqueue"]).unwrap_err().contains("shapes no packets")
        );
    }

    #[test]
    fn limit_of_netem_alone_is_a_queue() {
        let up = |line: &str| network(&[read(line).unwrap()], &[]).unwrap();
        for line in ["netem limit 20", "netem limit 20 loss 1%", "netem delay 1us limit 20"] {
            assert!(up(line).contains("queue = \"20p\""), "{line}: {}", up(line));
        }
        assert!(!up("netem loss 1%").contains("queue"));
    }

    /// The kernel accepts these, but no run does.
    #[test]
    fn what_no_run_accepts_is_refused() {
        for (line, words) in [
            ("netem delay 50ms 10ms 25% distribution pareto", "use \"normal\""),
            ("netem delay 50ms distribution pareto", "jitter"),
        ] {
            let problem = network(&[read(line).unwrap()], &[]).unwrap_err();
            assert!(problem.contains(words), "{line}: {problem}");
        }
        for kind in ["uniform", "normal", "pareto", "paretonormal"] {
            let line = format!("netem delay 50ms 10ms distribution {kind}");
            assert!(network(&[read(&line).unwrap()], &[]).is_ok(), "{line}");
        }
    }

    /// A packet in transit counts towards netem's limit (net/sched/sch_netem.c, netem_enqueue), which matters if nothing else limits the rate.
    #[test]
    fn netem_limit_restricts_the_rate_unless_a_line_sets_one() {
        let netem = || read("qdisc netem 20: parent 1:10 limit 1000 delay 100ms").unwrap();
        let alone = network(&[netem()], &[]).unwrap();
        assert!(
            alone.ends_with("waits up to 100ms longer.\nrate = \"121120kbit\"\nqueue = \"1000p\"\n"),
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

    /// netem's limit restricts also a rate that a line sets.
    #[test]
    fn netem_limit_restricts_a_higher_rate() {
        let up = |lines: &[&str]| network(&parse_lines(lines).unwrap(), &[]).unwrap();
        let netem = "qdisc add dev eth0 root handle 1: netem delay 100ms";
        let class = "class add dev eth0 parent 1: classid 1:10 htb rate 1gbit";
        let tbf = "qdisc add dev eth0 root handle 1: tbf rate 1gbit burst 10kb limit 3mb";
        let below = "qdisc add dev eth0 parent 1:1 netem delay 100ms";
        let changed = "qdisc change dev eth0 root netem delay 100ms";
        let queue = "rate = \"121120kbit\"\nqueue = \"1000p\"\n";
        for lines in [
            &["qdisc add dev eth0 root netem delay 100ms rate 1gbit"][..],
            &[class, "qdisc add dev eth0 parent 1:10 netem delay 100ms"],
            &[tbf, below],
            &["qdisc add dev eth0 root netem rate 1gbit", changed],
            &[
                "qdisc add dev eth0 root netem rate 1mbit",
                "qdisc change dev eth0 root netem delay 100ms rate 1gbit",
            ],
        ] {
            let text = up(lines);
            assert!(
                text.contains("limits the rate to 121120kbit instead of 1Gbit") && text.ends_with(queue),
                "{text}"
            );
        }
        // tbf's own queue behind netem remains.
        let text =
            up(&[netem, "qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1gbit burst 10kb limit 3mb"]);
        assert!(
            text.contains("queue = \"3145728B\"") && text.ends_with("\nrate = \"121120kbit\"\n"),
            "{text}"
        );
        // A change applies the rate of the line, not that to which the limit restricts it.
        let text = up(&[
            "qdisc add dev eth0 root netem delay 100ms rate 1gbit",
            "qdisc change dev eth0 root netem delay 1ms",
        ]);
        assert!(text.ends_with("rate = \"1Gbit\"\nqueue = \"918p\"\n"), "{text}");
    }

    #[test]
    fn separators_of_a_shell_separate_lines() {
        let text = "tc qdisc add dev eth0 root handle 1: netem delay 9ms; sudo tc qdisc add dev eth0 parent 1:1 tbf rate 1mbit burst 9kb limit 9kb && ";
        let lines: Vec<_> = split_lines(text).collect();
        assert_eq!(lines.len(), 2);
        let network = network(&parse_lines(&lines).unwrap(), &[]).unwrap();
        assert!(network.contains("rate = \"1Mbit\"") && network.contains("delay = \"9ms\""), "{network}");
        assert_eq!(split_lines(&text.replace("; ", ";\n Sent 0 bytes\n")).count(), 2);
    }

    #[test]
    fn statistics_of_a_whole_output_are_skipped() {
        let text =
            "qdisc netem 8001: root refcnt 2 limit 1000 delay 40ms\n Sent 0 bytes 0 pkt\n backlog 0b 0p\n";
        assert_eq!(split_lines(text).count(), 1);
        assert_eq!(split_lines("netem delay 40ms").count(), 1);
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
