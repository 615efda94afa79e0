//! packetdrill scripts against the endpoints, and with a program in place of packetdrill on Linux.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::program::{failure, hol, ok};

const PASSES: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 0\n+0 < S 0:0(0) win 100 <mss 1000>\n+0 > S. 0:0(0) ack 1 <...>\n";

#[test]
fn output_has_a_line_per_script_and_a_table() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("suite/deeper")).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("suite/a.pkt", PASSES);
    assert!(ok(dir.path(), &["packetdrill", "suite"]).starts_with("passed    suite/a.pkt\n"));
    write("suite/deeper/b.pkt", &PASSES.replace("ack 1 <...>", "ack 2 <...>"));
    write("suite/c.pkt", &format!("{PASSES}+0 splice(1) = 0\n"));
    write("suite/notes.txt", "no script");
    let run = hol(dir.path(), &["packetdrill", "suite", "suite/a.pkt"]);
    assert_eq!(run.status.code(), Some(1));
    let text = String::from_utf8(run.stdout).unwrap();
    for line in [
        "passed    suite/a.pkt\n",
        "not read  suite/c.pkt:5: splice() is not supported; ",
        "differs   suite/deeper/b.pkt:4: expected > S. 0:0(0) ack 2 <...> but got > S. 0:0(0) ack 1 win 64240 <mss 1460> at 0.000000\n",
        "suite              3       1        1         1\n",
        "all                4       2        1         1\n",
        "      1  splice() is not supported\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert_eq!(String::from_utf8(run.stderr).unwrap(), "error: 2 of 4 scripts failed\n");
    let run = hol(dir.path(), &["packetdrill", "suite/c.pkt", "--json"]);
    let row: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&row["verdict"], &row["line"]), (&"not read".into(), &5.into()));
}

#[test]
fn directory_without_scripts_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("octets.pkt"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(dir.path().join("a.pkt"), PASSES).unwrap();
    for (arguments, code, told) in [
        (&["packetdrill", "empty"][..], 2, "error: empty: no scripts found; their names end in .pkt\n"),
        (&["packetdrill", "none.pkt"], 2, "error: none.pkt: file not found\n"),
        (
            &["packetdrill", "a.pkt", "--stack", "frob"],
            2,
            "error: unknown stack \"frob\"; known: linux-6.12, ",
        ),
        (&["packetdrill", "octets.pkt"], 1, "error: 1 of 1 scripts failed\n"),
    ] {
        let (got, message) = failure(dir.path(), arguments);
        assert!(got == code && message.starts_with(told), "{arguments:?}: {got} {message}");
    }
    let run = hol(dir.path(), &["packetdrill", "octets.pkt"]);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.starts_with("not read  octets.pkt: is not UTF-8 text\n"), "{text}");
}

#[test]
fn options_of_the_other_world_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.pkt"), PASSES).unwrap();
    for (arguments, told) in [
        (&["--repetitions=2"][..], "error: --repetitions: only packetdrill on Linux has this option"),
        (&["--", "--verbose"], "error: options after --: only packetdrill on Linux has"),
        (&["--world=kernel:uml", "--strict"], "error: --strict: only the model world has this option"),
        (&["--world=kernel:uml", "--program=./none"], "error: ./none: program not found; build packetdrill"),
    ] {
        let (code, message) = failure(dir.path(), &[&["packetdrill", "a.pkt"], arguments].concat());
        assert!(code == 2 && message.starts_with(told), "{arguments:?}: {code} {message}");
    }
}

/// Stands in for packetdrill: it fails over IPv6 if the script's name says so, with a message like packetdrill's.
const STAND_IN: &str = r#"#!/bin/sh
[ -c /dev/net/tun ] && [ -f beside.sh ] && [ "$(cat /proc/sys/net/ipv6/conf/all/disable_ipv6)" = 0 ] || exit 3
case "$*" in
*--ip_version=ipv6*--tolerance_usecs=1000*bad.pkt) printf 'bad.pkt:7: timing error\nscript packet: .\n' >&2; exit 1 ;;
esac
"#;

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build) and mkfs.erofs (erofs-utils)"]
fn scripts_run_on_linux_over_each_version_of_ip() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("suite/deeper")).unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("suite/deeper/a.pkt", "--ip_version=ipv4\n");
    write("suite/deeper/bad.pkt", "");
    write("suite/deeper/beside.sh", "");
    write("stand-in", STAND_IN);
    fs::set_permissions(dir.path().join("stand-in"), fs::Permissions::from_mode(0o755)).unwrap();
    let all = ["packetdrill", "suite", "--world=kernel:uml", "--program=./stand-in", "--repetitions=2"];
    let run = hol(dir.path(), &[&all[..], &["--", "--tolerance_usecs=1000"]].concat());
    let text = String::from_utf8(run.stdout).unwrap();
    for line in [
        "passed    suite/deeper/a.pkt\n",
        "differs   suite/deeper/bad.pkt:7: ipv6: timing error script packet: .; 2 of 6 runs failed\n",
        "suite        2       1        1         0\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(String::from_utf8(run.stderr).unwrap().ends_with("error: 1 of 2 scripts failed\n"));
}
