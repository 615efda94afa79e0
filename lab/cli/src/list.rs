//! `hol list`: lists everything that can be named on the command line.

use clap::Args;
use hol_lab::Study;
use hol_network::NamedPath;
use hol_stack::{DEFAULT_STACK, ProtocolKind, Stack, stacks};
use serde::Serialize;

use crate::failure::Failure;
use crate::named_path;
use crate::point_row::json;
use crate::terminal::print;
use crate::transport_option;

const EXAMPLES: &str = "\
Examples:
  hol list           transports, workloads, stacks, studies
  hol list sctp      every option of a transport: default, meaning and source
  hol list paths     rates, delays and queues of the named paths; likewise transports, workloads, stacks, studies
  hol list --json    everything, for programs";

/// List transports, workloads, paths, stacks and studies; or the options of one transport.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct List {
    /// Transport whose options are listed; or transports, workloads, paths, stacks, studies
    #[arg(value_name = "TRANSPORT", value_parser = topic)]
    topic: Option<Topic>,
    /// Print a JSON object for each entry, one per line
    #[arg(long)]
    json: bool,
}

/// What `hol list` lists: a group of names, or the options of a transport.
#[derive(Debug, Clone, Copy)]
enum Topic {
    Options(ProtocolKind),
    Group(Group),
}

/// A group of names that can be listed.
#[derive(Debug, Clone, Copy)]
enum Group {
    Transports,
    Workloads,
    Paths,
    Stacks,
    Studies,
}

/// An entry of a list, as printed in JSON.
#[derive(Debug, Serialize)]
struct Entry<'n> {
    /// Kind of the entry: study, workload, path, stack or option.
    what: &'static str,
    name: &'n str,
    about: &'n str,
    /// The transport of an option; `None` for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    /// The default of an option; `None` for other entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

fn topic(name: &str) -> Result<Topic, String> {
    let name = name.to_lowercase();
    let kind = ProtocolKind::ALL.into_iter().find(|kind| kind.name() == name).map(Topic::Options);
    let group = Group::ALL.into_iter().find(|group| group.name() == name).map(Topic::Group);
    kind.or(group).ok_or_else(|| {
        let (transports, groups) =
            (ProtocolKind::ALL.map(ProtocolKind::name).join(", "), Group::ALL.map(Group::name).join(", "));
        format!("unknown; use one of {transports}, or one of {groups}; `hol help {name}` may explain it")
    })
}

impl List {
    /// Prints the names of the chosen topic.
    pub fn run(&self) -> Result<(), Failure> {
        match (self.topic, self.json) {
            (Some(Topic::Options(kind)), true) => print_options_json(kind),
            (Some(Topic::Options(kind)), false) => print(&options(kind)),
            (Some(Topic::Group(group)), true) => group.print_json(),
            (Some(Topic::Group(Group::Paths)), false) => {
                print(&format!(
                    "{}\nhol help NAME shows the settings of a path, and which of them are measured\n",
                    named_path::table()
                ));
            }
            (Some(Topic::Group(group)), false) => print(&group.names()),
            (None, true) => {
                Group::ALL.into_iter().for_each(Group::print_json);
                ProtocolKind::ALL.into_iter().for_each(print_options_json);
            }
            (None, false) => print(&Group::ALL.map(Group::names).join("\n")),
        }
        Ok(())
    }
}

impl Group {
    const ALL: [Self; 5] = [Self::Transports, Self::Workloads, Self::Paths, Self::Stacks, Self::Studies];

    const fn name(self) -> &'static str {
        match self {
            Self::Transports => "transports",
            Self::Workloads => "workloads",
            Self::Paths => "paths",
            Self::Stacks => "stacks",
            Self::Studies => "studies",
        }
    }

    /// Returns a sentence that explains how to use the listed names.
    const fn use_of_names(self) -> &'static str {
        match self {
            Self::Transports => "hol list TRANSPORT shows its options",
            Self::Workloads => "--workload KIND; hol help KIND shows its keys",
            Self::Paths => "--path NAME; hol list paths shows their rates, delays and queues",
            Self::Stacks => "option stack=NAME",
            Self::Studies => "hol reproduce STUDY",
        }
    }

    /// Returns each name with its description.
    fn entries(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Transports => {
                ProtocolKind::ALL.map(|kind| (kind.name(), kind.description().to_owned())).to_vec()
            }
            Self::Workloads => {
                let kinds = hol_workloads::WorkloadKind::all();
                kinds
                    .iter()
                    .map(|kind| (kind.workload().name(), kind.workload().about().to_owned()))
                    .collect()
            }
            Self::Paths => {
                NamedPath::ALL.iter().map(|path| (path.name(), path.summary().to_owned())).collect()
            }
            Self::Stacks => stacks().iter().map(|stack| (stack.name, describe_stack(stack))).collect(),
            Self::Studies => Study::all().map(|(name, title)| (name, title.to_owned())).collect(),
        }
    }

    fn names(self) -> String {
        let lines = self.entries().into_iter().map(|(name, about)| format!("  {name:<18} {about}\n"));
        format!("{} ({}):\n{}", self.name(), self.use_of_names(), lines.collect::<String>())
    }

    fn print_json(self) {
        let what = match self {
            // The options of all transports follow as entries of their own.
            Self::Transports => return,
            Self::Workloads => "workload",
            Self::Paths => "path",
            Self::Stacks => "stack",
            Self::Studies => "study",
        };
        for (name, about) in self.entries() {
            print(&json(&Entry { what, name, about: &about, transport: None, default: None }));
        }
    }
}

fn describe_stack(stack: &Stack) -> String {
    let is_of_quic = ProtocolKind::Quic.stacks().next().is_some_and(|first| first.name == stack.name);
    let default = match (stack.name == DEFAULT_STACK, is_of_quic) {
        (true, _) => " (default)",
        (false, true) => " (default of quic)",
        (false, false) => "",
    };
    format!("{}{default}", first_comment(stack.text))
}

/// Returns a transport's options with their default values.
pub fn options(kind: ProtocolKind) -> String {
    let name = kind.name();
    let lines = transport_option::options_of(kind)
        .iter()
        .map(transport_option::TransportOption::describe)
        .collect::<String>();
    format!("{name}: {}. Options, as in {name}:KEY=VALUE,KEY=VALUE:\n{lines}", kind.description())
}

fn print_options_json(kind: ProtocolKind) {
    let transport = Some(kind.name());
    for option in transport_option::options_of(kind) {
        let transport_option::TransportOption { name, default, about } = option;
        print(&json(&Entry { what: "option", name: &name, about, transport, default }));
    }
}

/// Returns the first comment in the file of a stack.
fn first_comment(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix('#')).unwrap_or("").trim()
}
