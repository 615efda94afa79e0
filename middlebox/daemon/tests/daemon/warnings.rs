//! Warnings at the start about the state of the kernel.

use std::os::unix::net::UnixStream;
use std::process::Command;

use hol_daemon::{Daemon, FilterKind, Level, Log, NftablesSettings, Settings};

use crate::log_lines::LogLines;
use crate::namespace::in_a_namespace;

fn settings(nftables: NftablesSettings) -> Settings {
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    Settings { listen, filter: FilterKind::Nftables, nftables, ..Settings::default() }
}

/// Opens a daemon; returns it with the lines of its log that report this event.
fn open(nftables: NftablesSettings, event: &str) -> (Daemon, Vec<String>) {
    let log = LogLines::default();
    let daemon = settings(nftables).open(Log::new(Level::Warn, Box::new(log.clone()))).unwrap();
    let event = format!(" event={event} ");
    (daemon, log.text().lines().filter(|line| line.contains(&event)).map(str::to_owned).collect())
}

/// The interfaces in /sys are those of the namespace in which it was mounted, which has no in0.
#[test]
#[ignore = "needs root and network namespaces (util-linux, iproute2, nftables)"]
fn only_interfaces_that_the_namespace_lacks_are_reported() {
    if !in_a_namespace("warnings::only_interfaces_that_the_namespace_lacks_are_reported") {
        return;
    }
    let added =
        Command::new("ip").args(["link", "add", "in0", "type", "veth", "peer", "name", "out0"]).status();
    assert!(added.unwrap().success());
    for (outside, missing) in [("out0", None), ("eth7", Some("name=eth7"))] {
        let nftables = NftablesSettings {
            inside: Some("in0".into()),
            outside: Some(outside.into()),
            ..NftablesSettings::default()
        };
        let (_, warnings) = open(nftables, "no-such-interface");
        assert_eq!(warnings.len(), missing.iter().len(), "{warnings:?}");
        assert!(warnings.iter().zip(missing).all(|(line, name)| line.ends_with(name)), "{warnings:?}");
    }
}

/// A table outlives its daemon, and still filters.
#[test]
#[ignore = "needs root and network namespaces (util-linux, iproute2, nftables)"]
fn a_table_of_another_middlebox_is_reported() {
    if !in_a_namespace("warnings::a_table_of_another_middlebox_is_reported") {
        return;
    }
    let table = |name: &str| NftablesSettings { table: name.into(), ..NftablesSettings::default() };
    let (mut first, warnings) = open(table("first"), "another-table");
    assert!(warnings.is_empty(), "{warnings:?}");
    let (stop, stopped) = UnixStream::pair().unwrap();
    drop(stop);
    first.run(stopped, |_| {}).unwrap();
    drop(first);
    let (_, warnings) = open(table("first"), "another-table");
    assert!(warnings.is_empty(), "its own table: {warnings:?}");
    let (_, warnings) = open(table("second"), "another-table");
    assert!(matches!(&warnings[..], [line] if line.contains(" table=first ")), "{warnings:?}");
}
