//! `hol trace`: shows the packets of one run, as text or as a capture file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use hol_differential::{TraceRow, point_to_compare};
use hol_lab::{Experiment, LabError, Point, Source, WorldName};
use hol_measure::{RecordKind, WaterfallBuilder};
use hol_network::{Topology, node_of};
use hol_report::sequence::{self, PacketCollector, Trace as Sequence};
use hol_scenario::{Packet, PacketEvent, PacketObserver};
use hol_stack::{ProtocolKind, TransportSpec};
use hol_wire::PcapngWriter;
use hol_wire::quic::CONNECTION_ID_OCTETS;

use crate::comparison_flags::ComparisonFlags;
use crate::failure::Failure;
use crate::ns2::Ns2Trace;
use crate::qlog::Qlog;
use crate::terminal::{colour, note, print};
use crate::waterfall;

const EXAMPLES: &str = "\
Examples:
  hol trace tcp --count 50 --repetitions 1 --loss 5%                      packets on the terminal
  hol trace sctp:streams=8 --count 50 --repetitions 1 --loss 5% --pcap run.pcapng
  hol trace quic --count 50 --repetitions 1 --loss 5% --qlog run.qlog     for qvis: packets, frames, congestion window
  hol trace tcp --count 20 --repetitions 1 --beside kernel:uml            model and Linux side by side";

/// Show the packets of one run, or write them to a capture file.
///
/// The run is one of the runs of `hol compare` with the same flags, or of an experiment file.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Trace {
    /// Transport (tcp, sctp, quic, udp or mptcp, with options as in sctp:streams=8), or an experiment file
    #[arg(
        value_name = "TRANSPORT|FILE",
        required_unless_present = "experiment",
        conflicts_with = "experiment"
    )]
    transport: Option<String>,
    #[command(flatten)]
    flags: ComparisonFlags,
    /// Take the run from this experiment file instead; - is standard input
    #[arg(long, value_name = "FILE")]
    experiment: Option<PathBuf>,
    /// Number of the point in the experiment, as `hol run --plan` shows it
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true,
        requires = "experiment"
    )]
    point: usize,
    /// Index of the repetition, from 0
    #[arg(long, value_name = "R", default_value_t = 0, allow_negative_numbers = true)]
    repetition: u32,
    /// Write a capture (pcapng) for Wireshark and tshark instead of text; - is standard output, as in --pcap - | tshark -r -
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Show only packets at this node's interfaces; may be repeated
    #[arg(long, value_name = "NODE", conflicts_with_all = ["waterfall", "svg", "ns2"])]
    at: Vec<String>,
    /// Show one page of the run, object by object: the number of the page, from 1 [default: the page with the median
    /// time]
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["pcap", "ns2"])]
    waterfall: Option<Option<u64>>,
    /// Draw the packets between client and server as a sequence diagram instead; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pcap", "waterfall", "ns2"])]
    svg: Option<PathBuf>,
    /// Also perform the run in this world, such as kernel:uml, and show the packets of both worlds side by side
    #[arg(long, value_name = "WORLD", conflicts_with_all = ["pcap", "waterfall", "svg", "ns2", "at"])]
    beside: Option<WorldName>,
    /// Write the classic trace format of ns-2 instead, for awk; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "pcap")]
    ns2: Option<PathBuf>,
    /// Write a qlog for qvis instead: packets, frames, in the model world also congestion window and round-trip time; - is
    /// standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pcap", "waterfall", "svg", "ns2", "beside", "at"])]
    qlog: Option<PathBuf>,
}

impl Trace {
    /// Performs the run, and shows its packets.
    pub fn run(&self) -> Result<(), Failure> {
        self.flags.set_secret()?;
        let point = self.chosen_point()?;
        if self.repetition >= point.repetitions.max {
            let problem =
                format!("--repetition {}: the point has {} repetitions", self.repetition, point.repetitions);
            return Err(Failure::Usage(format!("{problem}; the first is number 0")));
        }
        if let Some(other) = &self.beside {
            return compare_worlds(&point, other);
        }
        if let Some(page) = self.waterfall {
            return self.show_page(&point, page);
        }
        if let Some(path) = &self.svg {
            return self.write_diagram(&point, path);
        }
        if let Some(path) = &self.qlog {
            return self.write_qlog(&point, path);
        }
        match (&self.pcap, &self.ns2) {
            (Some(path), _) => self.capture(&point, path),
            (None, Some(path)) => self.write_ns2(&point, path),
            (None, None) => {
                self.check_nodes(&point.scenario(self.repetition).interfaces().map_err(Failure::failed)?)?;
                self.perform_run(&point, &mut TextPrinter)
            }
        }
    }

    /// Returns an error if `--at` names a node that has none of `interfaces`.
    fn check_nodes(&self, interfaces: &[String]) -> Result<(), Failure> {
        let nodes: BTreeSet<&str> = interfaces.iter().map(|interface| node_of(interface)).collect();
        match self.at.iter().find(|node| !nodes.contains(node.as_str())) {
            None => Ok(()),
            Some(node) => {
                let there_are = nodes.into_iter().collect::<Vec<_>>().join(", ");
                Err(Failure::Usage(format!("--at {node}: unknown node; use one of {there_are}")))
            }
        }
    }

    /// Returns the point whose run is shown.
    pub fn chosen_point(&self) -> Result<Point, Failure> {
        // `hol trace mine.toml` names an experiment, and `hol trace chain.tcl` a script, not a transport.
        let file = self.transport.as_ref().filter(|transport| is_file(transport)).map(PathBuf::from);
        let experiment = match (self.experiment.as_ref().or(file.as_ref()), &self.transport) {
            (Some(file), _) => {
                let mut source = Source::read(file)?;
                self.flags.apply(&mut source)?;
                Experiment::parse(&source.stem(), &source)?
            }
            (None, Some(transport)) => self.flags.experiment(std::slice::from_ref(transport))?,
            (None, None) => unreachable!("clap requires a transport or an experiment"),
        };
        point_by_number(experiment, self.point)
    }

    fn show_page(&self, point: &Point, number: Option<u64>) -> Result<(), Failure> {
        let world = point.world.open().map_err(LabError::from)?;
        if point.workload.record_kind() != RecordKind::Page {
            let problem = "--waterfall needs pages; use --workload page";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let run = world.run(&point.scenario(self.repetition), point.seed_of(self.repetition));
        let run = run.map_err(LabError::from)?;
        let page = waterfall::select_page(&run.records, number).ok_or_else(|| {
            let pages = point.messages_in(self.repetition);
            Failure::Usage(match number {
                Some(number) => format!("--waterfall {number}: the run has {pages} pages, counted from 1"),
                None => format!(
                    "--waterfall: the run has no page, or its median page has more than {} files; choose a page, as in --waterfall 1",
                    WaterfallBuilder::MAX_FILES
                ),
            })
        })?;
        print(&waterfall::draw(&page));
        Ok(())
    }

    fn capture(&self, point: &Point, path: &Path) -> Result<(), Failure> {
        let names = point.scenario(self.repetition).interfaces().map_err(Failure::failed)?;
        self.check_nodes(&names)?;
        let title = self.describe_run(point);
        let packets = write_capture(path, names, &title, |observer| self.perform_run(point, observer))?;
        report_written(path, &format!("{packets} packets of {title}"));
        Ok(())
    }

    fn write_diagram(&self, point: &Point, path: &Path) -> Result<(), Failure> {
        let (scenario, seed) = (point.scenario(self.repetition), point.seed_of(self.repetition));
        let world = point.world.open().map_err(LabError::from)?;
        let workload = &scenario.workload;
        let mut collector = PacketCollector::between([workload.client_node(), workload.server_node()]);
        let run = world.trace(&scenario, seed, &mut collector).map_err(LabError::from)?;
        let size = workload.size().and_then(|size| u32::try_from(size).ok());
        let sequence = Sequence::new(&collector, &run.records, size);
        if sequence.arrows.is_empty() {
            let problem = "client and server sent no messages, so the diagram would be empty; run a workload with messages";
            return Err(Failure::failed(format!("--svg: {problem}")));
        }
        if collector.omitted > 0 {
            note!("note: the last {} packets are not drawn; use fewer messages", collector.omitted);
        }
        let picture = sequence::draw("sequence", &point.to_string(), &sequence).standalone();
        let mut file = open_output(path)?;
        file.write_all(picture.as_bytes())
            .and_then(|()| file.flush())
            .map_err(|error| cannot_write(path, &error))?;
        report_written(path, &format!("{}, of {}", sequence.describe_counts(), self.describe_run(point)));
        Ok(())
    }

    fn write_ns2(&self, point: &Point, path: &Path) -> Result<(), Failure> {
        let world = point.world.open().map_err(LabError::from)?;
        let Some(hops) = world.hops() else {
            let problem = format!(
                "world {} captures packets only at the ends, not hop by hop as in a trace of ns-2",
                world.name()
            );
            return Err(Failure::Usage(format!("--ns2: {problem}; use --world model, or --pcap")));
        };
        let wrong = |error| cannot_write(path, &error);
        let (scenario, seed) = (point.scenario(self.repetition), point.seed_of(self.repetition));
        let topology = Topology::new(&scenario.network).map_err(Failure::failed)?;
        let file = open_output(path)?;
        let mut trace = Ns2Trace::new(file, &topology);
        hops.tap(&scenario, seed, &mut trace).map_err(LabError::from)?;
        let packets = trace.packets;
        trace.finish().and_then(|mut file| file.flush()).map_err(wrong)?;
        report_written(path, &format!("{packets} packets of {}", self.describe_run(point)));
        Ok(())
    }

    fn write_qlog(&self, point: &Point, path: &Path) -> Result<(), Failure> {
        let world = point.world.open().map_err(LabError::from)?;
        let (scenario, seed) = (point.scenario(self.repetition), point.seed_of(self.repetition));
        let ends = [scenario.workload.client_node(), scenario.workload.server_node()];
        let mut log = Qlog::between(ends, scenario.transport.kind() == ProtocolKind::Quic);
        world.trace(&scenario, seed, &mut log).map_err(LabError::from)?;
        if point.world.is_default() {
            // Performs the same run again, for the samples. Observing a run of the model does not change it.
            world.follow(&scenario, seed, &mut log).map_err(LabError::from)?;
        }
        if log.sealed > 0 {
            note!(
                "warning: {} datagrams of QUIC could not be decrypted completely; the qlog lacks their packets",
                log.sealed
            );
        }
        let mut out = open_output(path)?;
        let (packets, title) = (log.packets, self.describe_run(point));
        log.write(&mut out, &title).map_err(|error| cannot_write(path, &error))?;
        report_written(path, &format!("{packets} packets of {title}"));
        Ok(())
    }

    fn describe_run(&self, point: &Point) -> String {
        format!("hol {point}, repetition {}, seed {}", self.repetition, point.seed)
    }

    /// Performs the run and passes its packets to `observer`.
    fn perform_run(&self, point: &Point, observer: &mut dyn PacketObserver) -> Result<(), Failure> {
        let (scenario, seed) = (point.scenario(self.repetition), point.seed_of(self.repetition));
        let world = point.world.open().map_err(LabError::from)?;
        let mut observer = NodeFilter { nodes: &self.at, observer };
        world.trace(&scenario, seed, &mut observer).map_err(LabError::from)?;
        Ok(())
    }
}

/// Returns whether a word names an experiment file or a script: by its extension, or because it is a file and not a transport.
fn is_file(word: &str) -> bool {
    let path = Path::new(word);
    let is_named = ["toml", "tcl", "ns"].map(OsStr::new).iter().any(|known| path.extension() == Some(known));
    is_named || path.is_file() && word.parse::<TransportSpec>().is_err()
}

/// Shows the packets that hosts send in two worlds, until the last message has completed or failed.
fn compare_worlds(point: &Point, other: &WorldName) -> Result<(), Failure> {
    let names = [&point.world, other];
    let [here, there] = names.map(|name| name.open().map_err(LabError::from));
    let worlds = [here?, there?];
    let mut traces = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let (world, beside) = (worlds[at].as_ref(), worlds[1 - at].as_ref());
        let point = if name.is_default() { point_to_compare(point, &beside.name()) } else { point.clone() };
        world.check(&point.scenario(0)).map_err(LabError::from)?;
        traces.push((name.to_string(), hol_differential::trace(&point, world).map_err(LabError::from)?));
    }
    let [(here, first), (there, second)] = &traces[..] else {
        unreachable!("there is a trace for each of two worlds")
    };
    print(&format!(
        "  {here:>12} {there:>12}  ms; = equal, ~ different time, ! different window, x lost or marked in one world, - + sent in one world only\n"
    ));
    for line in hol_differential::align(first, second) {
        let colour_of = match &line {
            TraceRow::Same(..) => None,
            TraceRow::DifferentTime(..) | TraceRow::DifferentWindow(..) | TraceRow::DifferentOutcome(..) => {
                Some(1)
            }
            TraceRow::First(_) => Some(5),
            TraceRow::Second(_) => Some(3),
        };
        let text = line.to_string();
        let text = colour_of.map_or(text.clone(), |index| colour(&text, index));
        print(&(text + "\n"));
    }
    match first.first_difference(second) {
        None => print("both worlds sent the same packets at the same times\n"),
        Some(difference) => {
            let when = difference
                .first
                .iter()
                .chain(&difference.second)
                .map(|sent| sent.time)
                .min()
                .unwrap_or_default();
            print(&format!("first difference: {}, at {when}\n", difference.category()));
        }
    }
    Ok(())
}

/// Passes on to another observer only the packets at the interfaces of `nodes`, or all packets if `nodes` is
/// empty.
struct NodeFilter<'a> {
    nodes: &'a [String],
    observer: &'a mut dyn PacketObserver,
}

impl PacketObserver for NodeFilter<'_> {
    fn add_secrets(&mut self, secrets: &str) {
        self.observer.add_secrets(secrets);
    }

    fn observe(&mut self, event: &PacketEvent<'_>) {
        let node = node_of(event.point.name);
        if self.nodes.is_empty() || self.nodes.iter().any(|wanted| wanted == node) {
            self.observer.observe(event);
        }
    }
}

/// Returns the point with this number, as `hol run --plan` shows it.
pub fn point_by_number(experiment: Experiment, number: usize) -> Result<Point, Failure> {
    let count = experiment.points.len();
    experiment.points.into_iter().nth(number).ok_or_else(|| {
        Failure::Usage(format!("--point {number}: the experiment has {count} points; the first is number 0"))
    })
}

/// Performs a run with `run`, writes its packets to a capture with interfaces called `names` and a `comment`, and
/// returns the number of packets.
pub fn write_capture(
    path: &Path,
    mut names: Vec<String>,
    comment: &str,
    run: impl FnOnce(&mut dyn PacketObserver) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let wrong = |error| cannot_write(path, &error);
    names.push("dropped".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let writer = PcapngWriter::new(open_output(path)?, comment, &names).map_err(wrong)?;
    let drop_interface = names.len() as u32 - 1;
    let mut capture = CaptureWriter {
        writer,
        drop_interface,
        logged_connections: BTreeSet::new(),
        packets: 0,
        first_error: None,
    };
    run(&mut capture)?;
    if let Some(error) = capture.first_error {
        return Err(wrong(error));
    }
    capture.writer.finish().and_then(|mut file| file.flush()).map_err(wrong)?;
    Ok(capture.packets)
}

/// Opens the file for writing, or standard output for `-`.
fn open_output(path: &Path) -> Result<BufWriter<Box<dyn Write>>, Failure> {
    let out: Box<dyn Write> = match is_standard(path) {
        true => Box::new(io::stdout()),
        false => Box::new(File::create(path).map_err(|error| cannot_write(path, &error))?),
    };
    Ok(BufWriter::new(out))
}

fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Prints what was written, and where.
pub fn report_written(path: &Path, what: &str) {
    if is_standard(path) {
        note!("standard output: {what}");
    } else {
        print(&format!("{}: {what}\n", path.display()));
    }
}

/// Ends the program silently if the reader of standard output has closed the pipe; otherwise returns the error.
fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    if is_standard(path) && error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    let name = if is_standard(path) { "standard output".to_owned() } else { path.display().to_string() };
    Failure::failed(format!("{name}: cannot write: {error}"))
}

/// Writes packets to a capture. The capture contains the packets that each interface sent and received; dropped
/// packets, with the reason, are on a separate interface.
struct CaptureWriter<W: Write> {
    writer: PcapngWriter<W>,
    /// Index of the interface for dropped packets.
    drop_interface: u32,
    /// The connections whose TLS secrets have been written, by the client's first destination connection ID.
    logged_connections: BTreeSet<[u8; CONNECTION_ID_OCTETS]>,
    packets: u64,
    /// The first error of the writer; nothing is written after it.
    first_error: Option<io::Error>,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the TLS secrets of the packet's connection, unless they have been written before.
    fn write_secrets(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let Packet::Value(packet) = packet else { return Ok(()) };
        match packet.secrets() {
            Some(secrets) if self.logged_connections.insert(secrets.origin) => {
                self.writer.key_log(&secrets.key_log())
            }
            _ => Ok(()),
        }
    }
}

impl<W: Write> PacketObserver for CaptureWriter<W> {
    fn add_secrets(&mut self, secrets: &str) {
        if self.first_error.is_none() && !secrets.is_empty() {
            self.first_error = self.writer.key_log(secrets).err();
        }
    }

    fn observe(&mut self, event: &PacketEvent<'_>) {
        let PacketEvent { time, point, event, packet } = event;
        if self.first_error.is_some() {
            return;
        }
        self.first_error = self.write_secrets(packet).err();
        let written = if event.is_drop() {
            let comment = format!("{} at {}", event.name(), point.name);
            self.writer.packet(self.drop_interface, *time, &packet.octets(), Some(&comment))
        } else {
            self.packets += 1;
            self.writer.packet(point.interface as u32, *time, &packet.octets(), None)
        };
        self.first_error = self.first_error.take().or(written.err());
    }
}

/// Prints packets as they are sent, received or dropped, one per line.
struct TextPrinter;

impl PacketObserver for TextPrinter {
    fn observe(&mut self, event: &PacketEvent<'_>) {
        let PacketEvent { time, point, event, packet } = event;
        print(&format!("{time} {:<10} {:<8} {packet}\n", point.name, event.name()));
    }
}
