//! `hol init`: writes a comparison as an experiment file, with further keys as comments.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use hol_lab::{LabError, reference};
use toml::Table;

use crate::comparison_flags::ComparisonFlags;
use crate::failure::Failure;
use crate::terminal::print;

/// Transports of the file if the user names none.
const DEFAULT_TRANSPORTS: [&str; 2] = ["tcp", "sctp:streams=8"];

/// Write an experiment file with the options of `hol compare`; `hol run` of this file gives the same result.
#[derive(Debug, Args)]
pub struct Init {
    /// File to write, NAME.toml [default: standard output], then the transports to compare [default: tcp sctp:streams=8]
    #[arg(value_name = "[FILE] [TRANSPORT]")]
    words: Vec<String>,
    #[command(flatten)]
    flags: ComparisonFlags,
}

/// The explanation of a key in the file: the key, its comment, and an example value.
type Note = (&'static str, &'static str, &'static str);

/// The notes for the keys of an experiment that are not in a table, in the order of the file.
const TOP_LEVEL_KEYS: [Note; 11] = [
    ("title", "", "\"What is compared\""),
    ("transports", "Transports to compare, in order; `hol list tcp` shows the options of one.", "[]"),
    ("messages", "Number of messages in all repetitions together.", "10000"),
    (
        "repetitions",
        "Number of independent runs; each has its own random losses, the same for all transports.",
        "10",
    ),
    (
        "precision",
        "Repeat until the half width of the 95 % CI of the mean is at most this share of the mean; needs repetitions = \"5..40\".",
        "\"1%\"",
    ),
    ("seed", "Seed of all random numbers.", "1"),
    (
        "world",
        "Where to run: simulated endpoints and links (model), or Linux in a virtual machine (kernel).",
        "\"kernel\"",
    ),
    ("records", "Also keep the records of all messages.", "\"all\""),
    ("series", "Record congestion windows, round-trip times and queues at this interval.", "\"10ms\""),
    ("timeline", "Also count the deliveries in each interval of this length.", "\"1s\""),
    ("topology", "An ns script that defines the network.", "\"testlink.ns\""),
];

/// The notes for the keys of `[network]`, in the order of the file.
const NETWORK_KEYS: [Note; 12] = [
    ("path", "A path by name; the keys below override its settings. `hol list paths` shows all.", "\"lte\""),
    (
        "rate",
        "Settings of the link in both directions; [network.up] and [network.down] override those of one direction.",
        "\"100Mbit\"",
    ),
    ("delay", "One-way propagation delay.", "\"10ms\""),
    ("jitter", "Largest deviation of the delay, plus or minus.", "\"0s\""),
    (
        "jitter_distribution",
        "Distribution of the jitter: \"normal\", \"pareto\" or \"paretonormal\"; needs jitter.",
        "\"uniform\"",
    ),
    (
        "jitter_correlation",
        "Correlation of a packet's jitter with that of the previous packet; needs jitter.",
        "\"0%\"",
    ),
    (
        "loss",
        "Packet loss in each direction; for bursts { good_to_bad = \"1%\", bad_to_good = \"25%\" }.",
        "\"0%\"",
    ),
    ("queue", "Capacity of the queue: packets, or octets as in \"64KiB\".", "\"1000p\""),
    (
        "discipline",
        "Queueing discipline: \"red\", \"codel\" and \"pie\" drop early, \"fq_codel\" serves flows in turns, \"dualpi2\" separates L4S flows.",
        "\"droptail\"",
    ),
    (
        "police",
        "Drop packets that leave the link faster than { rate = \"1Mbit\", burst = \"10kB\" }.",
        "\"none\"",
    ),
    (
        "channel",
        "Name of a shared channel: all links that name it together transmit one packet at a time.",
        "\"own\"",
    ),
    ("mtu", "Maximum size of an IP packet.", "\"1500B\""),
];

/// The notes for the keys of `[workload]` that several kinds of workload have. `workload_notes` inserts those of
/// one kind.
const WORKLOAD_KEYS: [Note; 5] = [
    ("kind", "Workload; `hol list` describes each.", "\"simco\""),
    ("rate", "Messages per second, independent of earlier messages.", "\"100/s\""),
    ("arrivals", "Distribution of the intervals between messages: periodic or poisson.", "\"periodic\""),
    ("start", "Time from the start of the run until the client connects.", "\"0s\""),
    (
        "late_limit",
        "End the run if the transport still refuses a message this long after its scheduled time.",
        "\"10s\"",
    ),
];

/// A commented-out sweep, for files without a sweep.
const SWEEP_COMMENT: &str = "
# Every combination of the values in these lists is a point; remove a swept key above.
# [sweep]
# \"network.loss\" = [\"0%\", \"1%\", \"2%\"]
";

impl Init {
    /// Writes the experiment file, or prints it if no file is named.
    pub fn run(&self) -> Result<(), Failure> {
        self.flags.set_secret()?;
        let (file, text) = self.path_and_text()?;
        let Some(path) = file else {
            print(&text);
            return Ok(());
        };
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::Usage(format!(
                "{}: already exists; choose another file, or remove it",
                path.display()
            ))),
            Err(error) => Err(LabError::file("write", path, error).into()),
            Ok(()) => {
                print(&format!("{0} written; `hol run {0}` runs it\n", path.display()));
                Ok(())
            }
        }
    }

    /// Returns the path of the file (`None` for standard output) and its text.
    pub fn path_and_text(&self) -> Result<(Option<&Path>, String), Failure> {
        let (file, transports) = match self.words.split_first() {
            Some((first, rest)) if first.ends_with(".toml") => (Some(Path::new(first)), rest),
            _ => (None, &self.words[..]),
        };
        let transports = if transports.is_empty() {
            DEFAULT_TRANSPORTS.map(str::to_owned).to_vec()
        } else {
            transports.to_vec()
        };
        // Only an experiment that can be run is written.
        self.flags.experiment(&transports)?;
        Ok((file, format_file(self.flags.source(&transports)?.merged()?)))
    }
}

/// Returns an experiment file with `keys`. Comments in it explain these keys, and the keys that are not set.
fn format_file(mut keys: Table) -> String {
    let mut table = |name: &str| match keys.remove(name) {
        Some(toml::Value::Table(table)) => table,
        _ => Table::new(),
    };
    let (network, workload, sweep) = (table("network"), table("workload"), table("sweep"));
    let mut text =
        "# An experiment of headofline: hol run FILE. Every quantity is text with its unit.\n".to_owned();
    text += &format_table(&TOP_LEVEL_KEYS, keys);
    text += &format!(
        "\n# The network between client and server.\n[network]{}",
        format_table(&NETWORK_KEYS, network)
    );
    let notes = workload_notes(workload.get("kind").and_then(toml::Value::as_str).unwrap_or("simco"));
    text += &format!("\n# The workload.\n[workload]{}", format_table(&notes, workload));
    text + &if sweep.is_empty() {
        SWEEP_COMMENT.to_owned()
    } else {
        format!("\n[sweep]{}", format_table(&[], sweep))
    }
}

/// Returns notes for the keys that only this kind of workload has, or for which it has another default.
fn own_notes(kind: &str) -> &'static [Note] {
    match kind {
        "rpc" => &[
            (
                "arrivals",
                "Distribution of the intervals between messages: periodic or poisson.",
                "\"poisson\"",
            ),
            (
                "request",
                "Octets per request, or sizes with weights as in { \"200B\" = 9, \"5kB\" = 1 }.",
                "\"200B\"",
            ),
            (
                "reply",
                "Octets per reply, or sizes with weights as in { \"200B\" = 9, \"5kB\" = 1 }.",
                "\"1kB\"",
            ),
        ],
        "echo" | "pingpong" | "oneway" => &[("size", "Octets per message.", "\"128B\"")],
        "bulk" => &[("size", "Octets per message.", "\"4096B\"")],
        "files" => &[("size", "Octets per file.", "\"100B\"")],
        "page" => &[
            ("request", "Octets per request.", "\"400B\""),
            ("document", "Octets of a page's document, which lists its objects.", "\"30kB\""),
            ("size", "Octets per object.", "\"20kB\""),
        ],
        _ => &[],
    }
}

/// Returns the notes for a kind of workload, in this order: those of `kind` and of the load, those of `own_notes`, and
/// the rest.
fn workload_notes(kind: &str) -> Vec<Note> {
    const LOAD: usize = 3;
    let all = reference();
    let section = all.iter().find(|section| section.table == format!("[workload] kind = \"{kind}\""));
    let own = own_notes(kind);
    let has = |name: &str| section.is_some_and(|section| section.keys.iter().any(|key| key.name == name));
    let is_shown =
        |note: &Note| note.0 == "kind" || has(note.0) && own.iter().all(|(name, ..)| *name != note.0);
    let (load, rest) = WORKLOAD_KEYS.split_at(LOAD);
    let [load, rest] = [load, rest].map(|notes| notes.iter().copied().filter(is_shown));
    load.chain(own.iter().copied()).chain(rest).collect()
}

/// Returns a line for each key: first the keys with a note, as a comment if they are not set, then all other keys.
fn format_table(notes: &[Note], mut keys: Table) -> String {
    let mut text = "\n".to_owned();
    for (key, what, example) in notes {
        let what = if what.is_empty() { String::new() } else { format!("# {what}\n") };
        text += &match keys.remove(*key) {
            Some(value) => format!("{what}{key} = {value}\n"),
            None => format!("{what}# {key} = {example}\n"),
        };
    }
    for (key, value) in keys {
        let is_bare = key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        text += &format!("{} = {value}\n", if is_bare { key } else { toml::Value::String(key).to_string() });
    }
    text
}
