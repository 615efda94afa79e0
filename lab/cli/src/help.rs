//! `hol help`: explains a command, a table of experiment files, or any option or key by its name.

use std::collections::BTreeSet;

use clap::{Arg, Args, Command, CommandFactory};
use hol_lab::{Key, Section, reference, schema};
use hol_stack::ProtocolKind;

use crate::Cli;
use crate::failure::Failure;
use crate::overview::OVERVIEW;
use crate::terminal::print;
use crate::{glossary, list, named_path, transport_option};

const EXAMPLES: &str = "\
Examples:
  hol help run         a command
  hol help network     a table of experiment files: keys, units, defaults
  hol help lifetime    an option of a transport, a flag or a key
  hol help p99         a term of the reports
  hol help schema      a JSON Schema for editors, which then complete and check experiment files";

/// Explain a command, option, key or term, or a table of an experiment file such as `[network]`
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES)]
pub struct Help {
    /// A command, transport, option, path, flag, key, table, workload or term; `reference` for all keys of
    /// experiment files, `schema` for their JSON Schema, `glossary` for all terms
    topic: Vec<String>,
}

impl Help {
    /// Prints the explanation of the topic, or an overview without a topic.
    pub fn run(&self) -> Result<(), Failure> {
        let mut command = Cli::command();
        command.build();
        let words: Vec<&str> = self.topic.iter().map(String::as_str).collect();
        let text = match words[..] {
            [] => OVERVIEW.to_owned(),
            ["schema"] => serde_json::to_string_pretty(&schema()).map_err(Failure::failed)? + "\n",
            ["reference"] => whole_reference(),
            ["glossary"] => glossary::all(),
            _ => {
                let mut found: Vec<String> = Vec::new();
                found.extend(command_help(&mut command, &words));
                found.extend(glossary::explain(&words.join(" ")));
                if let [word] = words[..] {
                    found.extend(find_by_name(&command, word));
                }
                found.join("\n")
            }
        };
        if text.is_empty() {
            return Err(unknown_topic(&words));
        }
        print(&text);
        Ok(())
    }
}

/// Returns the help of the command that `words` name; `None` if there is no such command.
fn command_help(mut command: &mut Command, words: &[&str]) -> Option<String> {
    for word in words {
        command = command.find_subcommand_mut(word)?;
    }
    Some(command.render_long_help().to_string())
}

/// Describes everything that is called `word`, except for commands: a transport, tables, options, keys and flags.
fn find_by_name(command: &Command, word: &str) -> Vec<String> {
    let word = word.trim_start_matches('-');
    let transport = ProtocolKind::ALL.into_iter().find(|kind| kind.name() == word).map(list::options);
    let all = reference();
    let tables = all.iter().filter(|section| is_about(section, word)).map(|section| as_markdown(section, 0));
    let paths = ["path", "paths"].contains(&word).then(named_path::table);
    let found = transport.into_iter().chain(named_path::explain(word)).chain(tables).chain(paths);
    let found: Vec<String> = found.collect();
    // If a word names a table, keys of the same name are not described.
    if !found.is_empty() {
        return found;
    }
    let option = hol_stack::canonical_option_name(word);
    let found = [describe_option(option), describe_key(&all, word), describe_flag(command, word)];
    found.into_iter().flatten().collect()
}

/// Describes the option `word` of each transport that has it; `None` if none does.
fn describe_option(word: &str) -> Option<String> {
    let of_kind = |kind: ProtocolKind| {
        let options = transport_option::options_of(kind).into_iter().filter(|option| option.name == word);
        options.map(move |option| format!("  {:<6}{}", kind.name(), option.describe()))
    };
    let lines: String = ProtocolKind::ALL.into_iter().flat_map(of_kind).collect();
    (!lines.is_empty()).then(|| format!("Option of a transport, as in sctp:KEY=VALUE:\n{lines}"))
}

/// Describes the key `word` of each table that has it; `None` if none does.
fn describe_key(all: &[Section], word: &str) -> Option<String> {
    let of_table = |section: &Section| {
        let keys = section.keys.iter().filter(|key| key.name == word);
        keys.map(|key| format!("  {}: {}. {}\n", section.table, key.value, sentence(&key.about)))
            .collect::<String>()
    };
    let lines: String = all.iter().map(of_table).collect();
    (!lines.is_empty()).then(|| format!("Key of an experiment file, by its table:\n{lines}"))
}

/// Describes the flag `--word` of each command that has it; `None` if none does.
fn describe_flag(command: &Command, word: &str) -> Option<String> {
    let of_command = |command: &Command| {
        let about = |flag: &Arg| flag.get_help().map(ToString::to_string).unwrap_or_default();
        let flags = command.get_arguments().filter(|flag| flag.get_long() == Some(word));
        flags
            .map(|flag| format!("  hol {} --{word}: {}\n", command.get_name(), about(flag)))
            .collect::<String>()
    };
    let lines: String = command.get_subcommands().map(of_command).collect();
    (!lines.is_empty()).then(|| format!("Flag:\n{lines}"))
}

/// Returns the reference of all tables. Units, and keys that several kinds of workload share, are described only once.
fn whole_reference() -> String {
    let mut all = reference();
    let shared = move_shared_keys(&mut all);
    let shared_keys = shared.keys.len();
    let first_kind = all.iter().position(is_kind).unwrap_or(all.len());
    all.insert(first_kind, shared);
    let mut units = BTreeSet::new();
    for key in all.iter_mut().flat_map(|section| &mut section.keys) {
        if let Some((quantity, example, rest)) = split_quantity(&key.value) {
            let one = quantity.rsplit(", or ").next().unwrap_or(quantity);
            units.insert(format!("- {one}, such as {example}.\n"));
            key.value = format!("{quantity}{rest}");
        }
    }
    let tables: Vec<String> = all.iter().map(|section| as_markdown(section, shared_keys)).collect();
    format!("## Quantities\n\n{}\n{}", units.into_iter().collect::<String>(), tables.join("\n"))
}

/// Splits a description such as `a time such as "10ms" (units: ms, s), or a table` into the quantity, the example with
/// its units, and the rest; `None` if it has no units.
fn split_quantity(value: &str) -> Option<(&str, &str, &str)> {
    let (quantity, rest) = value.split_once(" such as ")?;
    let end = rest.find(')')? + 1;
    rest[..end].contains("(units: ").then(|| (quantity, &rest[..end], &rest[end..]))
}

fn is_kind(section: &Section) -> bool {
    section.table.starts_with("[workload] kind")
}

/// Moves the keys that several kinds of workload have to a section of their own, which it returns.
fn move_shared_keys(all: &mut [Section]) -> Section {
    let mut kinds: Vec<&mut Section> = all.iter_mut().filter(|section| is_kind(section)).collect();
    let every: Vec<Key> = kinds.iter().flat_map(|kind| kind.keys.clone()).collect();
    let is_shared = |key: &Key| {
        let same_name: Vec<&Key> = every.iter().filter(|other| other.name == key.name).collect();
        same_name.len() > 1 && same_name.iter().all(|other| *other == key)
    };
    let mut keys: Vec<Key> = Vec::new();
    for kind in &mut kinds {
        let (shared, own): (Vec<Key>, Vec<Key>) = kind.keys.drain(..).partition(is_shared);
        kind.keys = own;
        kind.inherited = shared.iter().map(|key| key.name.clone()).collect();
        keys.extend(shared);
    }
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    keys.dedup();
    let about = "Keys of several kinds of workload; each kind names those that it takes.".to_owned();
    Section { table: "[workload]".to_owned(), about, keys, inherited: Vec::new() }
}

/// Returns whether the section matches the topic; the singular matches, too: `path` for `paths`.
fn is_about(section: &Section, topic: &str) -> bool {
    let mut words = section.table.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| word == topic || word.strip_suffix('s') == Some(topic))
}

/// Returns the section as Markdown, which is legible in a terminal, too. `shared_keys`: the number of keys that several
/// kinds of workload have.
fn as_markdown(section: &Section, shared_keys: usize) -> String {
    let Section { table, about, keys, inherited } = section;
    let mut text = format!("## {table}\n\n{}\n\n", sentence(about));
    for key in keys {
        let required = if key.is_required { ", required" } else { "" };
        text += &format!("- `{}`{required}: {}. {}\n", key.name, key.value, sentence(&key.about));
    }
    if is_kind(section) && !inherited.is_empty() && inherited.len() == shared_keys {
        text += "- Also takes all keys of `[workload]`.\n";
    } else if !inherited.is_empty() {
        let names: Vec<String> = inherited.iter().map(|name| format!("`{name}`")).collect();
        let of = if is_kind(section) {
            " of `[workload]`"
        } else {
            " of `[network]`, whose values are the defaults"
        };
        text += &format!("- Also takes these keys{of}: {}.\n", names.join(", "));
    }
    text
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '`']) { text.to_owned() } else { format!("{text}.") }
}

fn unknown_topic(words: &[&str]) -> Failure {
    Failure::Usage(format!(
        "unknown topic {:?}; `hol` lists the commands, `hol list` the transports, `hol help experiment` the keys of experiment files",
        words.join(" ")
    ))
}
