//! `hol replay`: converts a capture to an experiment whose messages have the sizes and times of the captured
//! ones.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use hol_base::{ByteCount, Duration};
use hol_lab::{Experiment, LabError, Source};
use hol_passive::{
    CapturedExchange, CapturedIp, CapturedMessages, EstimateError, MessageReconstructor, PathEstimator,
};
use hol_stack::{Protocol, TransportSpec};
use hol_workloads::{Exchange, WorkloadError};

use crate::capture_file::{self, CaptureResult};
use crate::failure::Failure;
use crate::terminal::{note, print};

const EXAMPLES: &str = "\
Examples:
  hol replay capture.pcapng mine.toml      the sizes and times of its messages
  hol run mine.toml                        the same messages over other transports";

/// Derive a workload from a capture: the sizes and times of its messages, and its network.
///
/// The messages of all connections become one workload, in which each message is due at the time at which it was sent.
/// SCTP and UDP preserve message boundaries; in TCP, a segment with PSH ends a message.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Replay {
    /// Capture of TCP, SCTP or UDP packets (pcap or pcapng, which may be compressed by gzip, zstd or xz); - is standard
    /// input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Experiment file to write, NAME.toml [default: standard output]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Use the packets of this interface [default: the one with the most packets]
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Use only packets from and to this host
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Use at most this number of messages, from the first message on
    #[arg(long, alias = "most", value_name = "N", default_value = "10000")]
    max_messages: NonZeroUsize,
}

/// The longest silence between messages in the workload. It is shorter than the 30 s after which QUIC closes a
/// connection without packets (`idle_timeout`; RFC 9308 section 3.2), so that the messages after a silence do not fail.
const LONGEST_SILENCE: Duration = Duration::from_secs(20);

/// Number of repetitions of the experiment; each has all messages.
const REPETITIONS: usize = 10;

impl Replay {
    /// Reads the capture, and writes the experiment.
    pub fn run(&self) -> Result<(), Failure> {
        let take =
            |(learner, listener): &mut (PathEstimator, MessageReconstructor), at, ip: CapturedIp<'_>| {
                learner.handle_packet(at, ip);
                listener.handle_packet(at, ip);
            };
        let CaptureResult { computed: (learner, listener), mut notes } =
            capture_file::read(&self.capture, self.interface.as_deref(), take)?;
        let place = self.capture.display();
        let nothing = |why: EstimateError| {
            let why = match why {
                EstimateError::Cut { .. } => why.to_string(),
                _ => "the capture contains no data over TCP, SCTP or UDP; use another capture, interface or --host".to_owned(),
            };
            Failure::failed(format!("{place}: {why}"))
        };
        let messages = listener.finish(self.host).map_err(nothing)?;
        let exchanges = self.supported_exchanges(&messages, &mut notes);
        // The network is estimated for the hosts of the messages; without --host, for the busiest pair of hosts.
        let network =
            learner.finish(self.host).map_or_else(|_| String::new(), |learned| format!("\n{learned}"));
        let experiment = supported_experiment(&messages, &exchanges, &network, &mut notes);
        notes.iter().for_each(|words| note!("note: {words}"));
        let notes: String = notes.iter().map(|words| format!("# Note: {words}.\n")).collect();
        let head = format!(
            "# Converted by `hol replay` from {}: {} messages.\n{notes}",
            capture_file::escape_control_characters(&place.to_string()),
            exchanges.len()
        );
        self.write(&format!("{head}{experiment}"))
    }

    /// Returns the exchanges of messages, with sizes changed where the workload does not support them. Adds a note
    /// about the changes.
    fn supported_exchanges(&self, messages: &CapturedMessages, notes: &mut Vec<String>) -> Vec<Exchange> {
        let all = messages.exchanges.len();
        if all > self.max_messages.get() {
            notes.push(format!(
                "only the first {} of the capture's {all} messages are used; --max-messages N sets this number",
                self.max_messages
            ));
        }
        if messages.unsolicited > 0 {
            notes.push(format!("{} messages without a request are ignored", messages.unsolicited));
        }
        let taken = &messages.exchanges[..all.min(self.max_messages.get())];
        let are_answered = taken.iter().any(|exchange| exchange.reply > 0);
        let silent = taken.iter().filter(|exchange| are_answered && exchange.reply == 0).count();
        if silent > 0 {
            notes.push(format!(
                "{silent} messages had no reply in the capture; each gets a reply of 8 octets"
            ));
        }
        let is_possible = |octets: u64| (WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE).contains(&octets);
        let unfit =
            taken.iter().filter(|e| !is_possible(e.octets) || e.reply > 0 && !is_possible(e.reply)).count();
        if unfit > 0 {
            notes.push(format!("{unfit} messages were shorter than 8 octets or longer than 16 MiB; their sizes are changed to these \
                limits"));
        }
        let size = |octets: u64| ByteCount(octets.clamp(WorkloadError::MIN_SIZE, WorkloadError::MAX_SIZE));
        let exchange = |(exchange, at): (&CapturedExchange, u64)| Exchange {
            at: Duration::from_micros(at / 1000),
            octets: size(exchange.octets),
            reply: are_answered.then(|| size(exchange.reply)),
        };
        taken.iter().zip(times_without_silences(taken, notes)).map(exchange).collect()
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        let Some(path) = &self.file else {
            print(text);
            return Ok(());
        };
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        match file.and_then(|mut file| file.write_all(text.as_bytes())) {
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
}

/// Returns the times of the exchanges in ns, with each silence shortened to at most `LONGEST_SILENCE`. The octets of an
/// exchange are sent over the same time as in the capture.
fn times_without_silences(exchanges: &[CapturedExchange], notes: &mut Vec<String>) -> Vec<u64> {
    let (mut removed, mut count, mut times) = (0, 0, Vec::new());
    let mut busy_until = exchanges.first().map_or(0, |first| first.at);
    for exchange in exchanges {
        let max = busy_until.saturating_add(LONGEST_SILENCE.as_nanos());
        if exchange.at > max {
            removed += exchange.at - max;
            count += 1;
        }
        times.push(exchange.at - removed);
        busy_until = busy_until.max(exchange.at.saturating_add(exchange.sending_time));
    }
    if count > 0 {
        let silences = if count == 1 { "a silence".to_owned() } else { format!("{count} silences") };
        notes.push(format!(
            "shortened {silences} of more than {LONGEST_SILENCE} between messages to {LONGEST_SILENCE}, because QUIC closes a connection \
             after 30s without packets"
        ));
    }
    times
}

/// Returns an experiment that hol accepts: with those transports that support the workload, and with the network if
/// one of them supports it.
fn supported_experiment(
    messages: &CapturedMessages,
    exchanges: &[Exchange],
    network: &str,
    notes: &mut Vec<String>,
) -> String {
    let text = |transports: &[&str], network: &str| {
        format!("{}{network}", experiment_text(messages, exchanges, transports))
    };
    let refusal = |transports: &[&str], network: &str| {
        let source = Source::new("replay", text(transports, network));
        Experiment::parse("replay", &source).err().map(|error| error.problem)
    };
    let sctp = sctp_for(exchanges);
    let all = ["tcp", &sctp, "quic"];
    let refused: Vec<(&str, String)> = match refusal(&all, network) {
        None => return text(&all, network),
        Some(_) => all.iter().filter_map(|one| Some((*one, refusal(&[*one], network)?))).collect(),
    };
    if let [.., (_, problem)] = &refused[..]
        && refused.len() == all.len()
    {
        notes.push(format!("the network is left out, because hol cannot run it: {problem}"));
        return text(&all, "");
    }
    let is_refused = |one: &&str| refused.iter().any(|(name, _)| name == one);
    let others: Vec<&str> = all.into_iter().filter(|one| !is_refused(one)).collect();
    notes.extend(refused.iter().map(|(name, problem)| format!("{name} is left out: {problem}")));
    text(&others, network)
}

/// Returns SCTP with a send buffer that can hold the longest message, because Linux refuses messages that exceed the
/// buffer.
fn sctp_for(exchanges: &[Exchange]) -> String {
    let sizes = exchanges.iter().flat_map(|exchange| [Some(exchange.octets), exchange.reply]).flatten();
    let longest = sizes.map(|size| size.0).max().unwrap_or(0);
    let default: TransportSpec = "sctp".parse().expect("sctp is a transport");
    match default.protocol() {
        Protocol::Sctp { config, .. } if longest > config.send_buffer.0 => {
            format!("sctp:streams=8,send_buffer={}kB", (2 * longest).div_ceil(1000))
        }
        _ => "sctp:streams=8".to_owned(),
    }
}

/// Returns the experiment file without its network.
fn experiment_text(captured: &CapturedMessages, exchanges: &[Exchange], transports: &[&str]) -> String {
    let messages = exchanges.len() * REPETITIONS;
    let mut text = format!(
        "transports = {transports:?}\n# Number of messages in all repetitions together; each repetition sends the whole capture.\n\
         messages = {messages}\nrepetitions = {REPETITIONS}\n\n[workload]\nkind = \"replay\"\n"
    );
    if captured.is_reversed {
        text += "# Only the side that accepted connections sent data.\nfrom = \"server\"\nto = \"client\"\n";
    }
    text += "# Time, octets, and octets of the reply.\nexchanges = [\n";
    for exchange in exchanges {
        text += &format!("  \"{exchange}\",\n");
    }
    text + "]\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While one connection downloads for a minute, messages of another one are 39 s apart.
    #[test]
    fn only_times_in_which_no_connection_sends_are_silences() {
        let nanos = |seconds: u64| seconds * 1_000_000_000;
        let exchange = |(at, sending_time)| CapturedExchange {
            at: nanos(at),
            octets: 100,
            reply: 100,
            sending_time: nanos(sending_time),
        };
        let mut notes = Vec::new();
        let times = times_without_silences(&[(0, 60), (1, 0), (40, 0), (100, 0)].map(exchange), &mut notes);
        assert_eq!(times, [0, 1, 40, 80].map(nanos));
        assert!(notes[0].starts_with("shortened a silence of more than 20s"), "{notes:?}");
    }
}
