//! Plays every script in the folders beside this file.

use std::path::{Path, PathBuf};

/// Plays the scripts of `folder`, and reports all that fail.
#[track_caller]
fn play_folder(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let files = std::fs::read_dir(&folder).expect("the folder of scripts").map(|file| file.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|ext| ext == "pkt")).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no scripts in {}", folder.display());
    let mistakes: Vec<String> = scripts.iter().filter_map(|script| failure(script)).collect();
    assert!(mistakes.is_empty(), "{} of {} scripts:\n{}", mistakes.len(), scripts.len(), mistakes.join("\n"));
}

/// Returns the reason for which a script fails; a panic of an endpoint is a failure, and the other scripts are still played.
fn failure(script: &Path) -> Option<String> {
    match std::panic::catch_unwind(|| {
        hol_packetdrill::play_file(script, &hol_packetdrill::PlayRules::strict())
    }) {
        Ok(played) => played.err().map(|mistake| mistake.to_string()),
        Err(_) => Some(format!("{}: the endpoint panicked, see above", script.display())),
    }
}

#[test]
fn tcp_passes_its_scripts() {
    play_folder("tcp");
}

#[test]
fn sctp_passes_its_scripts() {
    play_folder("sctp");
}

#[test]
fn every_rule_of_tcp_has_its_test() {
    check_list("tcp", &["tcp", "congestion", "wire"]);
}

#[test]
fn every_rule_of_quic_has_its_test() {
    check_list("quic", &["quic", "wire"]);
}

#[test]
fn every_rule_of_sctp_has_its_test() {
    check_list("sctp", &["sctp", "congestion", "wire"]);
}

/// Checks the tests that docs/conformance-PROTOCOL.md names in backquotes: scripts, and functions of `crates`.
fn check_list(protocol: &str, crates: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = format!("docs/conformance-{protocol}.md");
    let list = std::fs::read_to_string(root.join(&place)).expect("the list of rules");
    let mut sources = String::new();
    for name in crates {
        ["src", "tests"]
            .iter()
            .for_each(|part| collect(&root.join("protocols").join(name).join(part), &mut sources));
    }
    let names: Vec<&str> =
        list.split('`').skip(1).step_by(2).filter(|name| !name.contains(['/', ' '])).collect();
    let scripts = root.join("protocols/packetdrill/tests").join(protocol);
    let is_there = |name: &&str| match name.ends_with(".pkt") {
        true => scripts.join(name).exists(),
        false => sources.contains(&format!("fn {name}(")),
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{place} names tests that do not exist; correct the names: {missing:?}");
    // QUIC has no scripts: packetdrill's language does not support its packets.
    let files = std::fs::read_dir(&scripts).into_iter().flatten().map(|file| file.unwrap().file_name());
    let unlisted: Vec<_> = files.filter(|file| !names.contains(&file.to_str().unwrap_or_default())).collect();
    assert!(unlisted.is_empty(), "add these to {place}: {unlisted:?}");
}

/// Appends the text of every Rust file in and below `folder`, if it exists.
fn collect(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            collect(&entry, text);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&entry).expect("a source"));
        }
    }
}

/// Scripts that fail for different reasons, with the line and the words of each error.
#[test]
fn failing_script_reports_line_and_reason() {
    let begin = "--stack=rfc\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 connect(3, ..., ...) = -1 EINPROGRESS\n";
    for (rest, place, told) in [
        ("+0 > S 0:0(0) <mss 1400>", ":4:", "but got > S 0:0(0) win 65535 <mss 1460,sackOK"),
        ("+.1 > S 0:0(0) <...>", ":4:", "was sent at 0.000000, not at 0.100000"),
        ("+0 > S 0:0(0) <...>\n+.5 > S 0:0(0) <...>", ":5:", "by 0.501000, but no packet was sent"),
        ("+.1 < S 0:0(0) win 1", ":4:", "unexpected > S 0:0(0)"),
        ("+0 > S 0:0(0) <...>\n+2", ":5:", "sent at 1.000000"),
        (
            "+0 > S 0:0(0) <...>\n+0 accept(3, ..., ...) = 4",
            ":5:",
            "expected accept() = 4, but got -1 EINVAL",
        ),
        ("+0 > S 0:0(0) <...>\n%{ assert tcpi_state == LISTEN }%", ":5:", "but tcpi_state is SYN-SENT"),
        ("+0 > S 0:0(0) <...>\n+0 frob(3) = 0", ":5:", "frob() is not supported; supported are"),
        ("+0 > S 0:0(0) <...>\nfrob", ":5:", "is not a time; write seconds"),
        ("--frob=1", ":2:", "has no option \"frob\""),
    ] {
        let told_is =
            hol_packetdrill::play(&format!("{begin}{rest}\n"), None, &hol_packetdrill::PlayRules::strict())
                .unwrap_err()
                .to_string();
        assert!(told_is.contains(place) && told_is.contains(told), "{rest}: {told_is}");
    }
}
