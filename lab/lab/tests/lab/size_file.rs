//! `{ file = "sizes.txt" }`: sizes of messages that a file lists.

use hol_lab::{Experiment, InputError, Source};

const FILE: &str = "# octets of replies\n1kB\n1000\n200kB, 3\n";

fn parse(text: &str, sizes: &str) -> Result<Experiment, InputError> {
    let text = format!("transports = ['tcp']\nmessages = 100\n{text}");
    Experiment::parse("t", &Source::new("t.toml", text).with_file("sizes.txt", sizes))
}

#[test]
fn the_sizes_become_part_of_the_point() {
    let from_file = parse("[workload]\nkind = 'rpc'\nreply = { file = 'sizes.txt' }", FILE).unwrap();
    let written = parse("[workload]\nkind = 'rpc'\nreply = { '1kB' = 2, '200kB' = 3 }", FILE).unwrap();
    assert_eq!(from_file.points[0].id, written.points[0].id);
    let kept = serde_json::to_string(&from_file.points[0]).unwrap();
    assert!(!kept.contains("sizes.txt"), "{kept}");
}

#[test]
fn every_workload_and_every_axis_may_name_a_file() {
    let swept = "[workload]\nkind = 'page'\n[sweep]\n'workload.size' = [{ file = 'sizes.txt' }, '3kB']";
    assert_eq!(parse(swept, FILE).unwrap().points.len(), 2);
    let background =
        "[[background]]\nworkload = { kind = 'rpc', rate = '5/s', request = { file = 'sizes.txt' } }";
    let point = parse(background, FILE).unwrap().points.remove(0);
    assert!(!serde_json::to_string(&point).unwrap().contains("sizes.txt"));
}

#[test]
fn a_file_that_cannot_be_used_is_refused() {
    let background = "workload.kind = 'rpc'\n[[background]]\nworkload = { kind = 'rpc', rate = '5/s', reply = { file = 'none.txt' } }";
    let error = parse(background, FILE).unwrap_err().to_string();
    assert!(error.starts_with("t.toml:4:1: `reply`: \"none.txt\": not found"), "{error}");
    for (reply, sizes, place, words) in [
        ("{ file = 'none.txt' }", FILE, "t.toml:5:9", "`reply`: \"none.txt\": not found"),
        ("{ file = 'sizes.txt' }", "1kB\n7Mbit\n", "sizes.txt:2", "\"7Mbit\" is not a size"),
        ("{ file = 'sizes.txt' }", "1kB\n7B\n", "sizes.txt:2", "a message of 7B is not possible"),
        ("{ file = 'sizes.txt' }", "1kB\n17MB\n", "t.toml:5", "`reply` must be 8 octets to 16 MiB"),
        ("{ file = 7 }", FILE, "t.toml:5", "sizes with weights"),
        ("{ file = 'sizes.txt', '1kB' = 2 }", FILE, "t.toml:5", "sizes with weights"),
    ] {
        let text = format!("[workload]\nkind = 'rpc'\nreply = {reply}");
        let error = parse(&text, sizes).expect_err(reply).to_string();
        assert!(error.starts_with(place) && error.contains(words), "{reply}: {error}");
    }
}
