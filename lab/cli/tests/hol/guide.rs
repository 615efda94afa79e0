//! The guide is correct: every command in it is run, and prints what the guide shows. In chapters about the kernel
//! world, numbers may differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use tempfile::TempDir;

use crate::program::BIN;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

/// The chapter that takes longer than all others together.
const TICKETS: &str = "tickets.md";

/// Executes a chapter in a directory of its own. A block ```` ```toml file=NAME ```` becomes a file; in a block ````
/// ```console ```` each line after `$ ` is a shell command, followed by its output. Returns the chapter with the real
/// output.
fn execute_chapter(chapter: &str) -> String {
    let dir = TempDir::new().unwrap();
    let (mut text, mut lines) = (String::new(), chapter.lines().peekable());
    while let Some(line) = lines.next() {
        writeln!(text, "{line}").unwrap();
        let Some(info) = line.strip_prefix("```") else { continue };
        let mut block = Vec::new();
        while let Some(line) = lines.next_if(|line| *line != "```") {
            block.push(line);
        }
        if info == "console" {
            let commands = block.into_iter().filter_map(|line| line.strip_prefix("$ "));
            commands.for_each(|command| text += &format!("$ {command}\n{}", printed(command, dir.path())));
        } else {
            block.iter().for_each(|line| writeln!(text, "{line}").unwrap());
            if let Some((_, name)) = info.split_once(" file=") {
                fs::write(dir.path().join(name), block.join("\n") + "\n").unwrap();
            }
        }
        writeln!(text, "{}", lines.next().expect("a block has an end")).unwrap();
    }
    text
}

fn printed(command: &str, dir: &Path) -> String {
    let programs = Path::new(BIN).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output =
        Command::new("sh").args(["-c", command]).current_dir(dir).env("PATH", path).output().unwrap();
    // If there is output on standard output, progress and warnings on standard error are ignored, because they depend
    // on the machine.
    let shown = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8(shown).unwrap();
    // Editors remove spaces at the ends of lines.
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

fn chapters() -> BTreeMap<PathBuf, String> {
    let entries = fs::read_dir(GUIDE).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Compares a chapter with the real output. `HOL_BLESS=1 cargo test -p headofline --test hol guide` rewrites it.
fn check(path: &Path, chapter: &str, same: fn(&str) -> String) {
    const CURE: &str = "HOL_BLESS=1 cargo test -p headofline --test hol guide";
    let done = execute_chapter(chapter);
    let is_same = same(&done) == same(chapter);
    if std::env::var_os("HOL_BLESS").is_some() {
        if !is_same {
            fs::write(path, &done).unwrap();
        }
        return;
    }
    for (number, (is, was)) in done.lines().zip(chapter.lines()).enumerate() {
        assert_eq!(same(is), same(was), "{}:{}; {CURE}", path.display(), number + 1);
    }
    assert!(is_same, "{}; {CURE}", path.display());
}

/// Removes the numbers of a table, and the widths that depend on them.
fn without_numbers(text: &str) -> String {
    let words = text.split_inclusive('\n').flat_map(|line| line.split(' '));
    let words = words.map(|word| word.replace(|c: char| c.is_ascii_digit() || c == '.' || c == ',', ""));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_of_the_kernel(chapter: &str) -> bool {
    chapter.contains("world = \"kernel:uml\"")
}

#[test]
fn commands_print_the_output_in_the_guide() {
    let chapters = chapters();
    let commands =
        chapters.values().flat_map(|chapter| chapter.lines()).filter(|line| line.starts_with("$ "));
    assert!(commands.count() > 15);
    // Two chapters run at a time: together they are the longest test.
    let chapters =
        chapters.iter().filter(|(path, chapter)| !is_of_the_kernel(chapter) && !path.ends_with(TICKETS));
    let left = Mutex::new(chapters);
    let next = || left.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((path, chapter)) = next() {
                    check(path, chapter, str::to_owned);
                }
            });
        }
    });
}

#[test]
#[ignore = "repeats twelve reports in half a minute of processor time"]
fn commands_print_the_output_in_the_page_of_reports() {
    let path = Path::new(GUIDE).join(TICKETS);
    check(&path, &fs::read_to_string(&path).unwrap(), str::to_owned);
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), libsctp-dev, gcc and mkfs.erofs (erofs-utils)"]
fn programs_of_the_guide_print_its_output_in_linux() {
    for (path, chapter) in chapters().iter().filter(|(_, chapter)| is_of_the_kernel(chapter)) {
        check(path, chapter, without_numbers);
    }
}

/// Every page is in the table of contents, and every link has a target.
#[test]
fn every_page_is_in_the_book_and_links_have_targets() {
    let docs = Path::new(GUIDE).parent().unwrap();
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let mut pages = chapters();
    pages.extend(fs::read_dir(docs).unwrap().map(|entry| entry.unwrap().path()).filter_map(|path| {
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        is_page.then(|| (path.clone(), fs::read_to_string(path).unwrap()))
    }));
    for (path, text) in pages {
        let name = path.strip_prefix(docs).unwrap().display().to_string();
        assert!(
            name == "SUMMARY.md" || summary.contains(&format!("({name})")),
            "{name} is not in SUMMARY.md"
        );
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_elsewhere = link.is_empty() || link.contains("://") || link.contains(' ');
            assert!(
                is_elsewhere || path.parent().unwrap().join(link).exists(),
                "{name}: {link} leads nowhere"
            );
        }
    }
}
