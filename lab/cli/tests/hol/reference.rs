//! `hol help` and the files generated from it: `docs/reference.md`, and `docs/experiment.schema.json` for editors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hol_lab::fidelity::KNOWN_DIFFERENCES;

use crate::program::{failure, ok};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the expected content of a file of the documentation.
fn documented(topic: &str) -> String {
    let text = ok(Path::new(ROOT), &["help", topic]);
    match topic {
        "schema" => text,
        "glossary" => format!(
            "# Glossary\n\nThe words of reports and help texts; `hol help WORD` explains one.\n\n{text}"
        ),
        _ => format!(
            "# Experiment files\n\nThis page lists all keys, as `hol help reference` prints them; `hol help network` prints a part. \
             [A JSON Schema](experiment.schema.json)\nlets editors \
             with taplo complete and check a file that begins with\n`#:schema ./experiment.schema.json`. \
             `hol list` shows transports and their options. \
             A key means the same\nin every world (model, kernel, live); one that does not support it reports an error that names it.\n\n{text}"
        ),
    }
}

/// `HOL_BLESS=1 cargo test -p headofline --test hol reference` rewrites the files.
#[test]
fn generated_documentation_matches_the_code() {
    for (topic, file) in [
        ("reference", "reference.md"),
        ("glossary", "guide/glossary.md"),
        ("schema", "experiment.schema.json"),
    ] {
        let (path, text) = (Path::new(ROOT).join("docs").join(file), documented(topic));
        if std::env::var_os("HOL_BLESS").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let is_same = fs::read_to_string(&path).is_ok_and(|there| there == text);
        assert!(is_same, "docs/{file} is old; HOL_BLESS=1 cargo test -p headofline --test hol reference");
    }
}

/// The page docs/fidelity.md has a table of the known differences, with the names that reports use.
#[test]
fn fidelity_page_lists_every_known_difference() {
    const BEGIN: &str = "## What is known to differ\n";
    const END: &str = "\n**The engines differ**";
    let rows = KNOWN_DIFFERENCES
        .iter()
        .map(|known| format!("| {} | {} | {} |\n", known.description, known.size, known.condition));
    let table = format!(
        "| difference | size | where it matters |\n| --- | --- | --- |\n{}",
        rows.collect::<String>()
    );
    let path = Path::new(ROOT).join("docs/fidelity.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("a heading");
    let (_, after) = rest.split_once(END).expect("what follows the table");
    let right = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("HOL_BLESS").is_some() {
        fs::write(&path, &right).unwrap();
    }
    let is_same = fs::read_to_string(&path).is_ok_and(|there| there == right);
    assert!(is_same, "docs/fidelity.md is old; HOL_BLESS=1 cargo test -p headofline --test hol reference");
}

#[test]
fn help_explains_commands_tables_and_kinds_of_workload() {
    let here = Path::new(ROOT);
    for (topic, expected) in [
        (&["network"][..], "`rate`: a bit rate above zero such as \"100Mbit\""),
        (&["network"], "network.discipline = { codel"),
        (&["path"], "Also takes these keys of `[network]`, whose values are the defaults: `channel`"),
        (&["page"], "`way`: \"close\", \"keepalive\""),
        (&["echo"], "`size`: a size such as"),
        (&["ready"], "`listens`: a whole number"),
        (&["experiment"], "`transports`, required"),
        (&["run"], "--shard"),
        (&["lifetime"], "give up a message after this time"),
        (&["rto_min"], "tcp     rto_min=200ms"),
        (&["sweep"], "An experiment file"),
        (&["seed"], "hol compare --seed"),
        (&["quic"], "per_message"),
        (&["p99"], "99th percentile"),
        (&["RTO"], "retransmission timeout"),
        (&["cc"], "congestion=cubic"),
        (&[], "hol compare tcp"),
    ] {
        let said = ok(here, &[&["help"], topic].concat());
        assert!(said.contains(expected), "{topic:?}: {said}");
    }
    let (code, said) = failure(here, &["help", "netwrok"]);
    assert!(code == 2 && said.contains("hol help experiment"), "{said}");
}

#[test]
fn completions_and_manual_have_every_command() {
    let dir = tempfile::TempDir::new().unwrap();
    ok(dir.path(), &["manual", "man"]);
    let page = fs::read_to_string(dir.path().join("man/hol-run.1")).unwrap();
    assert!(page.contains("\\-\\-shard"), "{page}");
    for shell in ["bash", "zsh", "fish"] {
        let script = ok(dir.path(), &["completions", shell]);
        assert!(script.contains("reproduce") && script.contains("with-parent"), "{shell}: {script}");
    }
}

fn experiments(dir: PathBuf, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            experiments(entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "toml") {
            let text = fs::read_to_string(&entry).unwrap();
            // Claims and figures of a study have other formats.
            let is_other = entry.ends_with("claims.toml") || entry.ends_with("figures.toml");
            if !is_other && text.lines().any(|line| line.starts_with("transports = ")) {
                found.push(entry);
            }
        }
    }
}

/// Validated with Python's independent implementation of JSON Schema.
#[test]
#[ignore = "needs Python with jsonschema (pip install jsonschema, HOL_PYTHON names the Python)"]
fn schema_accepts_all_experiments_and_rejects_misspelt_keys() {
    let python = std::env::var("HOL_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut files = Vec::new();
    experiments(Path::new(ROOT).join("experiments"), &mut files);
    experiments(Path::new(ROOT).join("studies"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    let check = r"
import json, sys, tomllib, jsonschema
schema = json.load(open(sys.argv[1]))
check = jsonschema.Draft7Validator(schema)
jsonschema.Draft7Validator.check_schema(schema)
for path in sys.argv[2:]:
    table = tomllib.load(open(path, 'rb'))
    for error in check.iter_errors(table):
        sys.exit(f'{path}: {error.json_path}: {error.message}')
hello = dict(transports=['tcp'])
for wrong in [dict(), dict(hello, mesages=3), dict(hello, network=dict(rat='1Mbit')), dict(hello, messages='3'),
              dict(hello, workload=dict(kind='echo', way='close')), dict(hello, workload=dict(kind='ecko')),
              dict(hello, network=dict(discipline='reed')), dict(hello, network=dict(loss=dict(drop=3)))]:
    assert not check.is_valid(wrong), wrong
assert check.is_valid(dict(hello, workload=dict(kind='echo', rate='3/s', to='b')))
";
    let output = Command::new(python)
        .args(["-c", check])
        .arg(Path::new(ROOT).join("docs/experiment.schema.json"))
        .args(&files)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Every file that a text names by its path in the repository exists.
#[test]
fn files_named_in_texts_exist() {
    const TOP: [&str; 10] = [
        "protocols",
        "lab",
        "middlebox",
        "os",
        "scripts",
        "docs",
        "studies",
        "experiments",
        "packaging",
        "stacks",
    ];
    let is_path = |word: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
        word.split_once('/').is_some_and(|(top, _)| TOP.contains(&top)) && word.chars().all(plain)
    };
    let mut missing = Vec::new();
    let mut directories = vec![Path::new(ROOT).to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir()
                && !name.starts_with('.')
                && !["target", "node_modules", "results"].contains(&&*name)
            {
                directories.push(path);
            } else if name.ends_with(".md") && name != "CHANGELOG.md" {
                let text = fs::read_to_string(&path).unwrap();
                let words = text.split(|c: char| c.is_whitespace() || "`()[]|,;:\"'".contains(c));
                let absent = words
                    .filter(is_path)
                    .filter(|word| !Path::new(ROOT).join(word.trim_end_matches('.')).exists());
                missing.extend(absent.map(|word| format!("{}: {word}", path.display())));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
