//! `hol help`: of a command, of a table of experiment files, or all that such a file may say.

use clap::{Args, CommandFactory};
use hol_lab::{Section, reference, schema};

use crate::Cli;
use crate::failure::Failure;
use crate::terminal::say;

/// Explain a command, or the keys of experiment files: hol help run, hol help network, hol help page
#[derive(Debug, Args)]
pub struct Help {
    /// A command; a table of experiment files or a kind of workload, as network, loss, program or page; `reference` for all of
    /// them; or `schema` for a JSON Schema, by which editors complete and check
    topic: Vec<String>,
}

impl Help {
    /// Prints it.
    pub fn run(&self) -> Result<(), Failure> {
        let mut command = Cli::command();
        command.build();
        let mut of = &mut command;
        let words: Vec<&str> = self.topic.iter().map(String::as_str).collect();
        for (place, word) in words.iter().enumerate() {
            if of.find_subcommand(word).is_none() {
                return if place == 0 && words.len() == 1 { explain(word) } else { Err(unknown(&words)) };
            }
            of = of.find_subcommand_mut(word).expect("it is there");
        }
        say(&of.render_long_help().to_string());
        // A word may be a command and a table.
        let also = reference();
        let also: Vec<&Section> =
            also.iter().filter(|section| matches!(words[..], [topic] if is_about(section, topic))).collect();
        say(&also.into_iter().map(|section| format!("\n{}", written(section))).collect::<String>());
        Ok(())
    }
}

fn explain(topic: &str) -> Result<(), Failure> {
    let all = reference();
    let sections: Vec<&Section> = match topic {
        "schema" => {
            say(&(serde_json::to_string_pretty(&schema()).map_err(Failure::failed)? + "\n"));
            return Ok(());
        }
        "reference" => all.iter().collect(),
        topic => all.iter().filter(|section| is_about(section, topic)).collect(),
    };
    if sections.is_empty() {
        return Err(unknown(&[topic]));
    }
    say(&sections.into_iter().map(written).collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// `path` is as good as `paths`.
fn is_about(section: &Section, topic: &str) -> bool {
    let mut words = section.table.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.any(|word| word == topic || word.strip_suffix('s') == Some(topic))
}

/// In Markdown, which a terminal shows as well.
fn written(section: &Section) -> String {
    let Section { table, about, keys, inherited } = section;
    let mut text = format!("## {table}\n\n{}\n\n", sentence(about));
    for key in keys {
        let required = if key.is_required { ", required" } else { "" };
        text += &format!("- `{}`{required}: {}. {}\n", key.name, key.value, sentence(&key.about));
    }
    if !inherited.is_empty() {
        let names: Vec<String> = inherited.iter().map(|name| format!("`{name}`")).collect();
        text += &format!("- As in `[network]`, whose values hold otherwise: {}.\n", names.join(", "));
    }
    text
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '`']) { text.to_owned() } else { format!("{text}.") }
}

fn unknown(words: &[&str]) -> Failure {
    Failure::Usage(format!(
        "{:?} is neither a command nor a table of experiment files; `hol --help` lists the commands, `hol help experiment` the tables",
        words.join(" ")
    ))
}
