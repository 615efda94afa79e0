//! `hol shell`: a terminal on a node of a simulated network, whose time stands while one types.
//!
//! `input` is where lines come from, `command` what they mean, `network` what they are done in, `ears` who hears what comes of
//! them, `voice` who is told, `record` what of them becomes an experiment.

mod command;
mod ears;
mod input;
mod network;
mod record;
mod voice;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hol_kernel::{Ended, Kernel, Order, Reply};
use hol_lab::{Experiment, Point, Source, WorldName};
use hol_scenario::Scenario;
use hol_workloads::{Programs, WorkloadSpec};
use toml::Value;

use crate::attended::Parent;
use crate::failure::Failure;
use crate::question::{Conditions, over};
use crate::service::{Service, table};
use crate::trace;
use command::{Command, HELP};
use ears::mind_interrupts;
use input::{Input, Next};
use network::{Network, Problem, Taken};
use record::Record;
use voice::{Prompt, Voice};

/// The exit code of what wrote more than it may: 128 and the number of SIGXFSZ. signal(7)
const WROTE_TOO_MUCH: i32 = 128 + 25;

/// Open a shell on a node; virtual time stops while you type.
///
/// Each line runs in the shell of a node, with programs as they are installed here, on a Linux kernel in virtual time: same
/// lines, same packets, however long you take. `:help` says what else can be done: change links, look at packets, go back.
#[derive(Debug, Args)]
pub struct Shell {
    /// tcp, sctp or mptcp, with options as in tcp:cc=reno; or an experiment file, for its network and its programs [default: tcp]
    #[arg(value_name = "TRANSPORT|FILE")]
    what: Option<String>,
    /// Node on which the shell starts [default: the client]
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// Which of the experiment's points, as `hol run --plan` numbers them
    #[arg(long, value_name = "N", default_value_t = 0)]
    point: usize,
    #[command(flatten)]
    service: Service,
    #[command(flatten)]
    conditions: Conditions,
    /// Record your commands as an experiment file for hol run
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// For programs: print one JSON object per line; errors do not end the session, and captures go to this directory
    #[arg(long, value_name = "FORMAT")]
    dialogue: Option<Format>,
    #[command(flatten)]
    parent: Parent,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
}

impl Shell {
    /// Takes lines until there are no more; the exit code is that of the last.
    pub fn run(&self) -> Result<ExitCode, Failure> {
        self.parent.attend()?;
        let (source, point) = self.point()?;
        let record = self.record.as_deref().map(|path| Record::new(path, source, &point)).transpose()?;
        let kernel = kernel(&point)?;
        mind_interrupts()?;
        let scenario = of_programs(&point);
        let node = self.node.clone().unwrap_or_else(|| scenario.workload.from().to_owned());
        let nodes = network::nodes(&scenario);
        check_node(&nodes, &node).map_err(|problem| Failure::Usage(format!("--node: {problem}")))?;
        let seed = point.seed_of(0);
        let voice = self.dialogue.map_or(Voice::Person, |Format::Json| Voice::Program);
        let warning = kernel.warning().map_err(Failure::failed)?;
        warning.iter().for_each(|warning| voice.note(&format!("warning: {warning}")));
        let network = Network::start(kernel, scenario, seed, &node, voice).map_err(Failure::failed)?;
        let (input, places) = (Input::open(voice)?, BTreeMap::new());
        let mut terminal = Terminal { input, voice, network, nodes, node, code: 0, places };
        let ended = terminal.serve();
        if let Some(record) = record {
            record.write(terminal.network.past())?;
        }
        // As of any program, only the last eight bits are told.
        ended.map(|()| ExitCode::from(terminal.code as u8))
    }

    /// The point whose network it is, and the text that it was read from.
    pub fn point(&self) -> Result<(Source, Point), Failure> {
        if self.conditions.repeats() {
            let problem = "--repetitions: a shell is one run; leave it out, or take --seed for other losses";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let what = self.what.as_deref().unwrap_or("tcp");
        let is_file = Path::new(what).extension().is_some_and(|ending| ending == "toml" || ending == "ns");
        let mut source = match is_file {
            true => Source::read(Path::new(what))?,
            false => over(&[what.to_owned()])?,
        };
        if self.service.is_given() {
            if is_file {
                let problem =
                    "--server and --file: the experiment says which programs there are; add them there";
                return Err(Failure::Usage(problem.to_owned()));
            }
            let programs = self
                .service
                .programs(table([("command", "sh".into()), ("start", network::NEVER.to_string().into())]))?;
            source.set("--server", "program", &Value::Array(programs).to_string())?;
        }
        self.service.apply(&mut source)?;
        if !source.merged()?.contains_key("world") {
            source.set("world (the default)", "world", &WorldName::of_programs().to_string())?;
        }
        if !is_file {
            source.set("repetitions (the default)", "repetitions", "1")?;
        }
        self.conditions.apply(&mut source)?;
        let experiment = Experiment::parse(&source.stem(), &source)?;
        let point = trace::point_of(experiment, self.point)?;
        Ok((source, point))
    }
}

/// The kernel of a point's world.
fn kernel(point: &Point) -> Result<Kernel, Failure> {
    let world = &point.world;
    if world.family() != "kernel" {
        let best = WorldName::of_programs();
        let problem = format!("programs run in the kernel world and not in {world}; add --world {best}");
        return Err(Failure::Usage(problem));
    }
    Kernel::find(world.variant()).map_err(Failure::failed)
}

/// The network of a point with its programs, and nothing else that it does.
fn of_programs(point: &Point) -> Scenario {
    let scenario = point.scenario(0);
    let ends = [scenario.workload.from(), scenario.workload.to()].map(|end| Some(end.to_owned()));
    let [from, to] = ends;
    let workload = WorkloadSpec { from, to, ..WorkloadSpec::new(Programs::default()) };
    let (hosts, background, onward) = (BTreeMap::new(), Vec::new(), Vec::new());
    Scenario { workload, messages: 1, hosts, background, onward, ..scenario }
}

/// Somebody who types, and what is typed on.
struct Terminal {
    input: Input,
    voice: Voice,
    network: Network,
    /// Where lines can run.
    nodes: Vec<String>,
    /// Where lines run.
    node: String,
    /// Of the last line.
    code: i32,
    /// What was done up to the places that have a name, and the node there.
    places: BTreeMap<String, (String, Vec<Taken>)>,
}

impl Terminal {
    /// Takes lines until there are no more.
    fn serve(&mut self) -> Result<(), Failure> {
        for number in 1.. {
            self.voice.prompt(self.prompt());
            let prompt = self.prompt().words();
            let command = match self.input.next(&prompt)? {
                Next::Line(line) => Command::parse(&line),
                Next::Dropped => continue,
                Next::End => break,
            };
            let done = match command {
                Ok(Command::Quit) => break,
                Ok(command) => self.carry_out(command),
                Err(problem) => Err(Problem::Refused(problem)),
            };
            match done {
                Ok(()) => {}
                Err(Problem::Refused(problem)) if self.is_forgiving() => {
                    self.voice.note(&format!("error: {problem}"));
                }
                Err(Problem::Refused(problem)) => {
                    return Err(Failure::Usage(format!("standard input:{number}: {problem}")));
                }
                Err(Problem::Over(problem)) => return Err(Failure::Failed(problem)),
            }
        }
        Ok(())
    }

    /// Whether somebody is there whom a mistake need not end.
    fn is_forgiving(&self) -> bool {
        self.input.is_terminal() || self.voice == Voice::Program
    }

    fn prompt(&self) -> Prompt<'_> {
        Prompt { node: &self.node, now: self.network.now(), code: self.code, nodes: &self.nodes }
    }

    fn carry_out(&mut self, command: Command) -> Result<(), Problem> {
        match command {
            Command::Run(node, line) => {
                let node = node.unwrap_or_else(|| self.node.clone());
                self.check(&node)?;
                let reply = self.network.run(&node, &line)?;
                self.tell(reply)?;
            }
            Command::Node(node) => {
                self.check(&node)?;
                self.node = node;
            }
            Command::Wait(time) => done(self.network.take(Order::Wait(time))?)?,
            Command::Link(event) => done(self.network.take(Order::Change(*event))?)?,
            Command::Snapshot(name) => {
                self.places.insert(name, (self.node.clone(), self.network.past().to_vec()));
            }
            Command::Back(name) => self.back(&name)?,
            Command::Pcap(file) => self.capture(&file)?,
            Command::Time => {
                self.voice.out(format!("{:.9} s\n", self.network.now().as_secs_f64()).as_bytes());
            }
            Command::Help => self.voice.out(HELP.as_bytes()),
            Command::Nothing | Command::Quit => {}
        }
        Ok(())
    }

    /// Says how a line ended, as far as its exit code does not.
    fn tell(&mut self, reply: Reply) -> Result<(), Problem> {
        if let Some(Ended { code, was_out_of_memory, .. }) = reply.ended {
            self.code = code;
            if was_out_of_memory {
                self.voice.note(
                    "error: it took more memory than a program has, 640 MB, and was killed; let it do less at a time",
                );
            }
            if code == WROTE_TOO_MUCH {
                self.voice.note(
                    "error: it wrote more than 256 MB into one file or output; send less, or to /dev/null",
                );
            }
        }
        done(reply)
    }

    fn check(&self, node: &str) -> Result<(), Problem> {
        check_node(&self.nodes, node).map_err(Problem::Refused)
    }

    fn back(&mut self, name: &str) -> Result<(), Problem> {
        let Some((node, past)) = self.places.get(name) else {
            let known: Vec<&str> = self.places.keys().map(String::as_str).collect();
            let known =
                if known.is_empty() { "none is".to_owned() } else { format!("{} are", known.join(", ")) };
            return Err(Problem::Refused(format!(
                "no place is called {name:?}; {known}, and `:snapshot` makes one"
            )));
        };
        self.network.back(past.clone())?;
        self.node.clone_from(node);
        self.code = past.iter().rev().find_map(|taken| Some(taken.reply.ended.as_ref()?.code)).unwrap_or(0);
        Ok(())
    }

    fn capture(&mut self, file: &Path) -> Result<(), Problem> {
        // Whoever has a program type here need not be who may write everywhere.
        if self.voice == Voice::Program
            && (file.file_name() != Some(file.as_os_str()) || file == Path::new("-"))
        {
            let problem = format!(
                "{}: here captures have a name and no directory, as in `:pcap run.pcapng`",
                file.display()
            );
            return Err(Problem::Refused(problem));
        }
        let packets = self.network.packets()?;
        let (network, names) = (&self.network, self.network.interfaces());
        let written = trace::write_capture(file, names, "hol shell", |witness| {
            network.show(&packets, witness).map_err(Failure::failed)
        });
        let packets = written.map_err(|problem| Problem::Refused(problem.to_string()))?;
        let what = format!("{packets} packets of hol shell");
        match self.voice {
            Voice::Person => trace::written(file, &what),
            Voice::Program => self.voice.note(&format!("{}: {what}", file.display())),
        }
        Ok(())
    }
}

/// What was not done is a problem.
fn done(reply: Reply) -> Result<(), Problem> {
    reply.refused.map_or(Ok(()), |problem| Err(Problem::Refused(problem)))
}

fn check_node(nodes: &[String], node: &str) -> Result<(), String> {
    if nodes.iter().any(|known| known == node) {
        return Ok(());
    }
    Err(format!("there is no node {node:?}; there are {}", nodes.join(", ")))
}
