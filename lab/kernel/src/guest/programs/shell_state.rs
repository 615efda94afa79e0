//! The state of a node's shell between two lines: its working directory and exported variables.

use std::collections::BTreeMap;
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::str::Chars;

use super::container::CONTAINER_DIRECTORY;
use super::process::DEFAULT_ENVIRONMENT;
use crate::session_step::ShellState;

/// The file on a node that contains the state of its shell.
const STATE_FILE: &str = ".shell";
/// Variables that each shell sets by itself.
const SHELL_VARIABLES: [&str; 4] = ["OLDPWD", "PWD", "SHLVL", "_"];

/// Returns `line` with a trap in front that saves the shell's state when the shell exits. The trap starts no other
/// process.
pub(super) fn save_on_exit(line: &str) -> String {
    format!("trap 'pwd >|/{STATE_FILE}; export -p >>/{STATE_FILE}' EXIT; {line}\nexit")
}

/// Returns the shell state that the last line on the node saved; `None` if it saved none.
pub(super) fn read_saved(node: &str) -> Option<ShellState> {
    let text = fs::read_to_string(Path::new(CONTAINER_DIRECTORY).join(node).join("changes").join(STATE_FILE))
        .ok()?;
    let (directory, exports) = text.split_once('\n')?;
    let mut variables = parse_exports(exports);
    variables.retain(|name, value| {
        let is_usual = DEFAULT_ENVIRONMENT.contains(&(name.as_str(), value.as_str()));
        !is_usual && !SHELL_VARIABLES.contains(&name.as_str())
    });
    Some(ShellState { directory: PathBuf::from(directory), variables })
}

/// Parses the output of the shell command `export -p`: `export NAME='value'`, or `declare -x NAME="value"`.
/// POSIX.1-2017, 2.14 and 2.2.
fn parse_exports(text: &str) -> BTreeMap<String, String> {
    let mut chars = text.chars().peekable();
    let mut variables = BTreeMap::new();
    while chars.peek().is_some() {
        let head = take_until(&mut chars, &['=', '\n']);
        let name = head.split(' ').next_back().unwrap_or_default().to_owned();
        // A variable that is exported without a value is not in the environment.
        if chars.next() == Some('=') {
            variables.insert(name, take_word(&mut chars));
            chars.next();
        }
    }
    variables
}

fn take_until(chars: &mut Peekable<Chars<'_>>, ends: &[char]) -> String {
    let mut text = String::new();
    while let Some(char) = chars.next_if(|char| !ends.contains(char)) {
        text.push(char);
    }
    text
}

/// Returns the next quoted word, without its quotes, and skips the rest of its line.
fn take_word(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '\'' => {
                text += &take_until(chars, &['\'']);
                chars.next();
            }
            '"' => {
                while let Some(char) = chars.next().filter(|char| *char != '"') {
                    text.extend(if char == '\\' { chars.next() } else { Some(char) });
                }
            }
            '\\' => text.extend(chars.next()),
            _ => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exports_of_each_shell_are_parsed() {
        let of = |text: &str| parse_exports(text).into_iter().collect::<Vec<_>>();
        let all = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        // dash, bash, busybox
        assert_eq!(
            of("export A='it'\"'\"'s'\nexport B='two\nlines'\nexport C\nexport D=''\n"),
            all(&[("A", "it's"), ("B", "two\nlines"), ("D", "")])
        );
        assert_eq!(of("declare -x A=\"a \\\"b\\\" \\$c\"\n"), all(&[("A", "a \"b\" $c")]));
        assert_eq!(of("export A='it'\\''s'\n"), all(&[("A", "it's")]));
        assert_eq!(of("export A='open"), all(&[("A", "open")]));
    }
}
