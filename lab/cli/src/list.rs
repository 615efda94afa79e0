//! `hol list`: lists everything that can be named on the command line.

use clap::Args;
use hol_lab::Study;
use hol_network::NamedPath;
use hol_stack::{DEFAULT_STACK, Kind, stacks};
use serde::Serialize;

use crate::failure::Failure;
use crate::named_path;
use crate::row::json;
use crate::terminal::say;
use crate::transport_option;

const EXAMPLES: &str = "\
Examples:
  hol list           transports, workloads, stacks, studies
  hol list sctp      every option of a transport, its default and the source of it
  hol list paths     rates, delays and queues of the paths by name
  hol list --json    everything, for programs";

/// List transports, workloads, paths, stacks and studies; or the options of one transport.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct List {
    /// Transport whose options are listed, or `paths`
    #[arg(value_name = "TRANSPORT", value_parser = topic)]
    topic: Option<Topic>,
    /// Print a JSON object for each entry, one per line
    #[arg(long)]
    json: bool,
}

/// The topic of a list.
#[derive(Debug, Clone, Copy)]
enum Topic {
    Options(Kind),
    Paths,
}

/// An entry of the list.
#[derive(Debug, Serialize)]
struct Entry<'n> {
    /// study, workload, path, stack or option.
    what: &'static str,
    name: &'n str,
    about: &'n str,
    /// For an option: its transport and its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

fn topic(name: &str) -> Result<Topic, String> {
    let names = Kind::ALL.map(Kind::name).join(", ");
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name.to_lowercase());
    let found = found.map(Topic::Options).or((name == "paths").then_some(Topic::Paths));
    found.ok_or_else(|| format!("unknown transport; use one of {names}, or `paths` for the named paths"))
}

impl List {
    /// Prints the list.
    pub fn run(&self) -> Result<(), Failure> {
        match (self.topic, self.json) {
            (Some(Topic::Options(kind)), true) => print_options_json(kind),
            (Some(Topic::Paths), true) => print_paths_json(),
            (None, true) => print_json(),
            (Some(Topic::Options(kind)), false) => say(&options(kind)),
            (Some(Topic::Paths), false) => {
                say(&format!(
                    "{}\nhol help NAME shows the settings of a path, and which of them are measured\n",
                    named_path::table()
                ));
            }
            (None, false) => say(&list_names()),
        }
        Ok(())
    }
}

/// Returns all names except for those of options.
fn list_names() -> String {
    let mut text = String::from("transports (hol list TRANSPORT shows its options):\n");
    for kind in Kind::ALL {
        text += &format!("  {:<18} {}\n", kind.name(), kind.about());
    }
    text += "\nworkloads (--workload KIND; hol help KIND shows its keys):\n";
    for kind in hol_workloads::Kind::all() {
        text += &format!("  {:<18} {}\n", kind.workload().name(), kind.workload().about());
    }
    text += "\npaths (--path NAME; hol list paths shows their rates, delays and queues):\n";
    for path in NamedPath::ALL {
        text += &format!("  {:<18} {}\n", path.name(), path.summary());
    }
    text += "\nstacks (option stack=NAME):\n";
    for stack in stacks() {
        let is_of_quic = Kind::Quic.stacks().next().is_some_and(|first| first.name == stack.name);
        let default = match (stack.name == DEFAULT_STACK, is_of_quic) {
            (true, _) => " (default)",
            (false, true) => " (default of quic)",
            (false, false) => "",
        };
        text += &format!("  {:<18} {}{default}\n", stack.name, first_comment(stack.text));
    }
    text += "\nstudies (hol reproduce STUDY):\n";
    for (name, title) in Study::all() {
        text += &format!("  {name:<18} {title}\n");
    }
    text
}

/// Returns a transport's options with their default values.
pub fn options(kind: Kind) -> String {
    let name = kind.name();
    let lines = transport_option::options_of(kind)
        .iter()
        .map(transport_option::TransportOption::line)
        .collect::<String>();
    format!("{name}: {}. Options, as in {name}:KEY=VALUE,KEY=VALUE:\n{lines}", kind.about())
}

/// Prints the list as JSON, one object per line.
fn print_json() {
    Study::all().for_each(|(name, title)| print_entry("study", name, title));
    print_paths_json();
    for kind in hol_workloads::Kind::all() {
        print_entry("workload", kind.workload().name(), kind.workload().about());
    }
    for stack in stacks() {
        print_entry("stack", stack.name, first_comment(stack.text));
    }
    Kind::ALL.into_iter().for_each(print_options_json);
}

fn print_paths_json() {
    NamedPath::ALL.iter().for_each(|path| print_entry("path", path.name(), path.summary()));
}

fn print_entry(what: &'static str, name: &str, about: &str) {
    say(&json(&Entry { what, name, about, transport: None, default: None }));
}

fn print_options_json(kind: Kind) {
    let transport = Some(kind.name());
    for option in transport_option::options_of(kind) {
        let transport_option::TransportOption { name, default, about } = option;
        say(&json(&Entry { what: "option", name: &name, about, transport, default }));
    }
}

/// Returns the first comment in the file of a stack.
fn first_comment(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix('#')).unwrap_or("").trim()
}
