//! Says what to write instead of an option that a command does not have.

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use hol_lab::FLAGS;

use crate::comparison_flags::is_network_key;

/// Names under which other tools know options of `hol compare`, each with hol's name.
const OTHER_WORDS: [(&str, &str); 2] = [("--latency", "--delay"), ("--bw", "--bandwidth")];

/// Returns what to write instead of the option `flag`, for a command that has `--set`.
fn remedy(command: &Command, flag: &str) -> Option<String> {
    let usual = OTHER_WORDS.iter().find(|(word, _)| *word == flag).map_or(flag, |(_, usual)| usual);
    if command.get_arguments().any(|argument| argument.get_long() == usual.strip_prefix("--")) {
        return Some(format!("write {usual}"));
    }
    if let Some((_, key)) = FLAGS.iter().find(|(known, _)| *known == usual) {
        return Some(format!("the file has this value as the key {key}: write --set {key}=VALUE"));
    }
    let key = flag.strip_prefix("--")?.replace('-', "_");
    is_network_key(&key).then(|| format!("write --set network.{key}=VALUE"))
}

/// Returns the error of a command line with a helpful remedy. For an option of `hol compare` that was given to a
/// command that reads a file, the remedy is `--set`; otherwise it is a similar option, if there is one. `hol` is the
/// command with all subcommands.
pub fn explain(mut error: Error, mut hol: Command) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    let flag = option.split('=').next().unwrap_or_default();
    hol.build();
    let message = error.to_string();
    let name = message.split("Usage: ").nth(1).and_then(|usage| usage.split_whitespace().nth(1));
    let command = name.and_then(|name| hol.find_subcommand_mut(name));
    if let Some(command) = command
        && command.get_arguments().any(|argument| argument.get_long() == Some("set"))
        && let Some(remedy) = remedy(command, flag)
    {
        let problem = format!("`hol {}` has no option {flag}; {remedy}", command.get_name());
        return command.error(ErrorKind::UnknownArgument, problem);
    }
    // clap suggests any option that shares a few letters, and suggests passing the option as a value after `--`.
    error.remove(ContextKind::Suggested);
    if let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg)
        && similar.get(..4) != flag.get(..4)
    {
        error.remove(ContextKind::SuggestedArg);
    }
    error
}
