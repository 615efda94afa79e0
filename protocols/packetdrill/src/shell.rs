//! Shell commands of a script: `` `sysctl -q net.ipv4.tcp_sack=0` ``. Commands that configure the system are supported, commands that
//! inspect it are not.

use std::path::Path;

use crate::python;
use crate::sysctl::{self, Setting};

/// Maximum nesting of command files.
const MAX_NESTED: usize = 4;
/// Maximum size of a command file in octets.
const MAX_FILE: u64 = 1 << 20;

/// Returns the settings that the commands in `text` make. Paths of command files are relative to the script's
/// `folder`.
pub(crate) fn parse_settings(text: &str, folder: Option<&Path>) -> Result<Vec<Setting>, String> {
    let mut settings = Vec::new();
    run(text, folder, 0, &mut settings)?;
    Ok(settings)
}

fn run(text: &str, folder: Option<&Path>, nested: usize, settings: &mut Vec<Setting>) -> Result<(), String> {
    let text = text.replace("\\\n", " ");
    text.lines().flat_map(|line| line.split(';')).flat_map(|part| part.split("&&")).try_for_each(|command| {
        let command = command.trim();
        if command.is_empty() || command.starts_with('#') {
            return Ok(());
        }
        let words = split_words(command)?;
        parse_simple_command(&words, folder, nested, settings)
            .map_err(|problem| problem.unwrap_or_else(|| unknown(command)))
    })
}

fn unknown(command: &str) -> String {
    let begin: String = command.chars().take(60).collect();
    format!("the command `{begin}` is not supported; use sysctl, set_sysctls.py or a file of such commands")
}

/// Parses a single command; `Err(None)` means that this command is unknown.
fn parse_simple_command(
    words: &[String],
    folder: Option<&Path>,
    nested: usize,
    settings: &mut Vec<Setting>,
) -> Result<(), Option<String>> {
    let (command, arguments) = words.split_first().ok_or(None)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let name = command.rsplit('/').next().unwrap_or_default();
    match (name, &arguments[..]) {
        ("sysctl" | "set_sysctls.py", _) => parse_assignment(&arguments, settings).map_err(Some),
        ("echo", [value, ">", file]) if file.starts_with("/proc/sys/") => {
            settings.extend(sysctl::parse(file, value).map_err(Some)?);
            Ok(())
        }
        // Ignored: the cache is always empty, a pfifo does not reorder, and the last commands only restore the system.
        ("ip", ["tcp_metrics", "flush", ..]) | ("tc", ["qdisc", "add" | "replace", .., "root", "pfifo"]) => {
            Ok(())
        }
        ("true" | ":" | "sync", []) => Ok(()),
        (name, []) if name.starts_with("sysctl_restore_") => Ok(()),
        (name, []) if name.ends_with(".sh") => read_file(command, folder, nested, settings).map_err(Some),
        _ => Err(None),
    }
}

/// Parses the arguments of `sysctl`: `name=value` or `name value`, after any flags.
fn parse_assignment(arguments: &[&str], settings: &mut Vec<Setting>) -> Result<(), String> {
    let arguments = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .take_while(|word| !word.starts_with(['>', '|']));
    let mut arguments: Vec<&str> = arguments.copied().collect();
    if arguments.last().is_some_and(|word| *word == "2") {
        arguments.pop();
    }
    for argument in arguments {
        let (name, value) = argument
            .split_once('=')
            .ok_or_else(|| format!("sysctl {argument} has no value; write {argument}=VALUE"))?;
        settings.extend(sysctl::parse(name, value)?);
    }
    Ok(())
}

/// Reads the commands in a file, whose path is relative to the script.
fn read_file(
    path: &str,
    folder: Option<&Path>,
    nested: usize,
    settings: &mut Vec<Setting>,
) -> Result<(), String> {
    if nested == MAX_NESTED {
        return Err(format!("{path}: command files are nested {MAX_NESTED} deep"));
    }
    let folder = folder.ok_or_else(|| {
        format!("{path}: the script was not read from a file, so the path cannot be resolved")
    })?;
    // Paths are relative to a folder above the script, or to its own.
    let place = folder.ancestors().map(|above| above.join(path)).find(|place| place.is_file());
    let place = place.unwrap_or_else(|| folder.join(path));
    let failed = |error: &dyn std::fmt::Display| format!("the commands of {path} cannot be read: {error}");
    let length = std::fs::metadata(&place).map_err(|error| failed(&error))?.len();
    if length > MAX_FILE {
        return Err(failed(&format!("the file has {length} octets; the maximum is {MAX_FILE}")));
    }
    let text = std::fs::read_to_string(&place).map_err(|error| failed(&error))?;
    run(&text, Some(folder), nested + 1, settings)
}

/// Splits a command into words. Quotes protect spaces, and `$((…))` is evaluated to a number.
fn split_words(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut rest = command;
    while let Some(next) = rest.chars().next() {
        if quote != Some('\'')
            && let Some(inner) = rest.strip_prefix("$((")
        {
            let (expression, after) = inner
                .split_once("))")
                .ok_or_else(|| format!("{rest:?} has no \"))\"; write one after it"))?;
            word.get_or_insert_default().push_str(&python::evaluate_constant(expression)?);
            rest = after;
            continue;
        }
        rest = &rest[next.len_utf8()..];
        match (quote, next) {
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(next);
            }
            (Some(open), _) if open == next => quote = None,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '>' | '|') => {
                words.extend(word.take());
                words.push(next.to_string());
            }
            _ => word.get_or_insert_default().push(next),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<String> {
        let settings = parse_settings(text, None).unwrap();
        settings.into_iter().map(|Setting { option, value, .. }| format!("{option}={value}")).collect()
    }

    #[test]
    fn sysctl_commands_become_settings() {
        assert_eq!(
            options("sysctl -q net.ipv4.tcp_sack=0 net.ipv4.tcp_dsack=0"),
            ["sack=false", "dsack=false"]
        );
        assert_eq!(options("sysctl -ew net.sctp.rto_min=100 > /dev/null 2>&1"), ["rto_min=100ms"]);
        assert_eq!(
            options(
                "../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=1 \\\n  /proc/sys/net/ipv4/tcp_frto=0"
            ),
            ["sack=true", "frto=false"]
        );
        assert_eq!(
            options("sysctl -q net.ipv4.tcp_wmem=\"4096 $((256*1024)) 4194304\""),
            ["send_buffer=262144B", "send_buffer_max=4194304B"]
        );
        assert_eq!(options("echo 5 > /proc/sys/net/ipv4/tcp_retries2; true"), ["max_retries=5"]);
        assert!(
            options("/tmp/sysctl_restore_${PPID}.sh\n# nothing\nip tcp_metrics flush all > /dev/null 2>&1")
                .is_empty()
        );
    }

    #[test]
    fn commands_that_inspect_the_system_are_refused() {
        for (text, cure) in [
            ("sockstat -4 | grep -c ESTABLISHED", "`sockstat -4 | grep -c ESTABLISHED` is not supported"),
            ("tc qdisc add dev tun0 root fq", "is not supported"),
            ("sysctl net.ipv4.tcp_sack", "has no value"),
            ("./defaults.sh", "was not read from a file"),
            ("sysctl -q net.ipv4.tcp_sack=$((1", "write one after it"),
        ] {
            let problem = parse_settings(text, None).unwrap_err();
            assert!(problem.contains(cure), "{text}: {problem}");
        }
        let missing = parse_settings("./no-such-file.sh", Some(Path::new("/"))).unwrap_err();
        assert!(missing.contains("cannot be read"), "{missing}");
    }
}
