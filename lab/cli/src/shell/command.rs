//! Parses what the user types: a command line for a node, or a command of the shell itself.

use std::path::PathBuf;

use hol_base::{Duration, nearest_word};
use hol_network::EventSpec;

/// The output of `:help`.
pub const HELP: &str = "\
A line runs on the node of the prompt, with `sh -c`, until it ends or Ctrl-C interrupts it. Directory and exported variables are kept.
  @NODE LINE          run one line on another node
  :node NODE          change to another node
  :wait 5s            let virtual time pass; otherwise it stops while no command runs
  :link [NAME|PATH] [up|down] loss=3% delay=50ms rate=1Mbit down=true
                      change all links, one link or one direction, from now on
  :snapshot NAME      save the state of the network and its nodes
  :back NAME          return to a saved state, by repeating all steps before it
  :pcap FILE          write all packets so far to a capture file for Wireshark
  :time               print the virtual time
  :quit               end the shell, as Ctrl-D does
";

/// What the user's line requests.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// The line is empty; nothing is done.
    Nothing,
    /// Runs a command line on a node; `None` for the node of the prompt.
    Run(Option<String>, String),
    /// Changes the node of the prompt.
    Node(String),
    /// Lets this much virtual time pass.
    Wait(Duration),
    /// Changes links.
    Link(Box<EventSpec>),
    /// Stores a snapshot under this name.
    Snapshot(String),
    /// Returns to the snapshot of this name.
    ReturnTo(String),
    /// Writes the packets so far to a file.
    Pcap(PathBuf),
    /// Prints the virtual time.
    Time,
    /// Lists the commands.
    Help,
    /// Ends the shell.
    Quit,
}

const COMMAND_NAMES: [&str; 9] = ["node", "wait", "link", "snapshot", "back", "pcap", "time", "help", "quit"];

impl Command {
    /// Parses a line of the user. If the line is invalid, the error explains the syntax.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix('@') {
            let (node, line) = split_first_word(rest);
            return match line.is_empty() {
                true => {
                    Err(format!("@{node}: the command is missing; to change to that node use `:node {node}`"))
                }
                false => Ok(Self::Run(Some(node.to_owned()), line.to_owned())),
            };
        }
        match line.strip_prefix(':') {
            // `: curl` is a line for the shell of a node: `:` is its null command.
            Some(rest) if !rest.starts_with(char::is_whitespace) && !rest.is_empty() => {
                parse_shell_command(rest)
            }
            _ if line.is_empty() => Ok(Self::Nothing),
            _ => Ok(Self::Run(None, line.to_owned())),
        }
    }
}

/// Parses a command of the shell itself, without its colon.
fn parse_shell_command(rest: &str) -> Result<Command, String> {
    let (word, rest) = split_first_word(rest);
    let one = |example: &str| match rest.split_whitespace().collect::<Vec<_>>()[..] {
        [only] => Ok(only.to_owned()),
        _ => Err(format!("`:{word}` needs one argument, as in `:{word} {example}`")),
    };
    let none =
        |command| if rest.is_empty() { Ok(command) } else { Err(format!("`:{word}` has no arguments")) };
    let command = match word {
        "node" => one("server").map(Command::Node),
        "wait" => one("5s").and_then(|time| time.parse().map(Command::Wait).map_err(|e| format!("{e}"))),
        "link" => parse_event(rest).map(|event| Command::Link(Box::new(event))),
        "snapshot" => one("before").map(Command::Snapshot),
        "back" => one("before").map(Command::ReturnTo),
        "pcap" => one("packets.pcapng").map(|file| Command::Pcap(file.into())),
        "time" => none(Command::Time),
        "help" => none(Command::Help),
        "quit" => none(Command::Quit),
        _ => {
            let meant = nearest_word(word, COMMAND_NAMES)
                .map_or(String::new(), |word| format!("did you mean `:{word}`? "));
            return Err(format!("unknown command `:{word}`; {meant}`:help` lists the commands"));
        }
    };
    command.map_err(|problem| format!("`:{word}`: {problem}"))
}

fn split_first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// Parses a change to one link or all links: the link and the direction (both optional) and the changes, written as the
/// keys of an experiment's event.
fn parse_event(text: &str) -> Result<EventSpec, String> {
    let mut table = toml::Table::new();
    table.insert("at".to_owned(), "0s".into());
    for word in split_words(text) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, parse_value(value)),
            None if ["up", "down"].contains(&word) => ("direction", word.into()),
            None => match word.parse::<i64>() {
                Ok(number) => ("path", number.into()),
                Err(_) => ("link", word.into()),
            },
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(match key {
                "link" | "path" => format!("{word:?} is a second link; name one link, or none to change all"),
                _ => format!("{key} is given twice; remove one"),
            });
        }
    }
    let changes = table.keys().any(|key| !["at", "direction", "path", "link"].contains(&key.as_str()));
    match changes {
        true => table.try_into().map_err(|problem| hol_base::rewrite_parse_error(problem.message())),
        false => {
            Err("name the changes, as in `:link up loss=3% delay=50ms rate=1Mbit`, or `down=true`".to_owned())
        }
    }
}

/// Parses a value as TOML; other text becomes a string, so that it needs no quotes.
fn parse_value(text: &str) -> toml::Value {
    let document = format!("value = {text}").parse::<toml::Table>();
    document.ok().and_then(|mut table| table.remove("value")).unwrap_or_else(|| text.into())
}

/// Splits text at blanks that are not in braces.
fn split_words(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_between = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth <= 0 && c.is_whitespace()
    };
    text.split(is_between).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> String {
        Command::parse(line).unwrap_err()
    }

    #[test]
    fn lines_without_a_colon_run_on_a_node() {
        assert_eq!(Command::parse("  "), Ok(Command::Nothing));
        assert_eq!(Command::parse(" ping -c1 server "), Ok(Command::Run(None, "ping -c1 server".to_owned())));
        assert_eq!(Command::parse(": curl"), Ok(Command::Run(None, ": curl".to_owned())));
        assert_eq!(
            Command::parse("@server ss -t"),
            Ok(Command::Run(Some("server".to_owned()), "ss -t".to_owned()))
        );
        assert_eq!(Command::parse(":node server"), Ok(Command::Node("server".to_owned())));
        assert_eq!(Command::parse(":wait 5s"), Ok(Command::Wait(Duration::from_secs(5))));
        assert_eq!(Command::parse(":quit"), Ok(Command::Quit));
    }

    #[test]
    fn link_command_takes_the_keys_of_experiment_events() {
        let event = |line: &str| match Command::parse(line).unwrap() {
            Command::Link(event) => serde_json::to_value(event).unwrap(),
            other => panic!("{other:?}"),
        };
        let up = event(":link up loss=3% delay=50ms rate=1Mbit");
        assert_eq!(
            (&up["direction"], &up["loss"], &up["delay"]),
            (&"up".into(), &"3%".into(), &"50ms".into())
        );
        assert_eq!(event(":link 2 down=true")["path"], 2);
        let bursts = event(":link a-b loss={ good_to_bad = '1%', bad_to_good = '25%' }");
        assert_eq!((&bursts["link"], &bursts["loss"]["good_to_bad"]), (&"a-b".into(), &"1%".into()));
    }

    #[test]
    fn invalid_shell_commands_are_refused_with_a_remedy() {
        assert!(problem(":nod server").contains("did you mean `:node`"));
        assert!(problem(":xyzzy").contains("`:help`"));
        assert!(
            problem(":node").contains("`:node server`") && problem(":quit now").contains("has no arguments")
        );
        assert!(problem(":wait 5").contains("5") && problem(":wait 5").contains("time such as"));
        assert!(problem(":link").contains("loss=3%") && problem(":link up").contains("name the changes"));
        assert!(problem(":link a b loss=1%").contains("second link"));
        assert!(problem(":link los=1%").contains("did you mean \"loss\""));
        assert!(problem(":link delay=50").contains("50"));
        assert!(problem("@server").contains(":node server"));
    }
}
