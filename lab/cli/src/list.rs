//! `hol list`: everything that can be named on the command line, from the tables that give it its meaning.

use clap::Args;
use hol_lab::Study;
use hol_stack::{DEFAULT_STACK, Kind, TransportSpec, stack, stacks};

use serde::Serialize;

use crate::failure::Failure;
use crate::row::json;
use crate::terminal::say;

/// List studies, stacks, transports with their options, and workloads.
#[derive(Debug, Args)]
pub struct List {
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// One thing that can be named.
#[derive(Debug, Serialize)]
struct Named<'n> {
    /// study, workload, stack or option.
    what: &'static str,
    name: &'n str,
    about: &'n str,
    /// Of an option: its transport, and its value when none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

impl List {
    /// Prints the list.
    pub fn run(&self) -> Result<(), Failure> {
        if self.json {
            list_for_programs();
            return Ok(());
        }
        let mut text = String::from("studies (hol reproduce STUDY, hol validate STUDY):\n");
        for (name, title) in Study::all() {
            text += &format!("  {name:<10} {title}\n");
        }
        text += "\n";
        text += "workloads (--workload KIND):\n";
        for kind in hol_workloads::Kind::all() {
            text += &format!("  {:<10} {}\n", kind.workload().name(), kind.workload().about());
        }
        text += "\nstacks (option stack=NAME):\n";
        for stack in stacks() {
            let is_of_quic = Kind::Quic.stacks().next().is_some_and(|first| first.name == stack.name);
            let default = match (stack.name == DEFAULT_STACK, is_of_quic) {
                (true, _) => " (default)",
                (false, true) => " (default of quic)",
                (false, false) => "",
            };
            text += &format!("  {:<10} {}{default}\n", stack.name, purpose(stack.text));
        }
        for kind in Kind::ALL {
            text += &transport(kind);
        }
        say(&text);
        Ok(())
    }
}

/// The same as one object a line.
fn list_for_programs() {
    let plain = |what, name, about| say(&json(&Named { what, name, about, transport: None, default: None }));
    Study::all().for_each(|(name, title)| plain("study", name, title));
    for kind in hol_workloads::Kind::all() {
        plain("workload", kind.workload().name(), kind.workload().about());
    }
    for stack in stacks() {
        plain("stack", stack.name, purpose(stack.text));
    }
    for kind in Kind::ALL {
        let transport = Some(kind.name());
        for &(name, about) in kind.uses() {
            say(&json(&Named { what: "option", name, about, transport, default: None }));
        }
        let spec: TransportSpec = kind.name().parse().expect("a protocol alone is a transport");
        let file = stack(spec.stack()).map_or("", |stack| stack.text);
        for (name, value) in spec.behaviour().iter().filter(|_| kind != Kind::Mptcp) {
            let default = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let about = meaning(file, kind, name);
            say(&json(&Named { what: "option", name, about, transport, default: Some(default) }));
        }
    }
}

/// The first comment of a stack's file.
fn purpose(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix('#')).unwrap_or("").trim()
}

/// A transport's options with the values that they have when none is given.
fn transport(kind: Kind) -> String {
    let mut text = format!("\ntransport {}", kind.name());
    if kind == Kind::Mptcp {
        return text + ", in the kernel world and live only, options as in tcp\n";
    }
    text += &format!(", options as in {}:KEY=VALUE,KEY=VALUE:\n", kind.name());
    for (name, meaning) in kind.uses() {
        text += &format!("  {name:<36} {meaning}\n");
    }
    let spec: TransportSpec = kind.name().parse().expect("a protocol alone is a transport");
    let file = stack(spec.stack()).map_or("", |stack| stack.text);
    for (name, value) in spec.behaviour() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text += &format!("  {:<36} {}\n", format!("{name}={value}"), meaning(file, kind, name));
    }
    text
}

/// The comment that explains a behaviour: behind it, or on the line before.
fn meaning<'t>(text: &'t str, kind: Kind, name: &str) -> &'t str {
    let head = format!("[{}]", kind.name());
    let mut before = "";
    for line in
        text.lines().skip_while(|line| line.trim() != head).skip(1).take_while(|line| !line.starts_with('['))
    {
        let is_it = line.split_once('=').is_some_and(|(key, _)| key.trim() == name);
        if is_it {
            return line.split_once('#').map_or(before, |(_, comment)| comment.trim());
        }
        before = line.strip_prefix('#').map_or("", str::trim);
    }
    ""
}
