//! Checks whether a service is ready.

use std::fs;

use hol_base::Duration;
use hol_scenario::Ready;
use nix::sched::{CloneFlags, setns};

use super::container::NetworkNamespace;
use super::process::Process;
use crate::guest::GuestError;
use crate::guest::clock::wall_clock_ns;

/// Returns whether the service is ready. May move this thread to the service's `network` namespace.
pub(super) fn is_ready(
    ready: &Ready,
    process: &Process,
    network: &NetworkNamespace,
) -> Result<bool, GuestError> {
    Ok(match ready {
        Ready::Listens(port) => {
            setns(network, CloneFlags::CLONE_NEWNET)?;
            let table =
                |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
            ["tcp", "tcp6"].iter().any(|name| has_socket(&table(name), *port, "0A"))
                || ["udp", "udp6"].iter().any(|name| has_socket(&table(name), *port, "07"))
                || has_endpoint(&table("sctp/eps"), *port)
        }
        Ready::Prints(text) => process.has_printed(text),
        Ready::After(time) => {
            Duration::from_nanos(wall_clock_ns().saturating_sub(process.started_at)) >= *time
        }
    })
}

/// Returns whether a table of sockets in proc(5) contains a socket with this port and state. The columns are
/// number, local address, remote address and state; numbers are hexadecimal.
fn has_socket(table: &str, port: u16, state: &str) -> bool {
    let port = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some(state)
    })
}

/// Returns whether Linux's table of SCTP endpoints contains a listening endpoint with this port. The state is in
/// column 4, the port in column 6.
fn has_endpoint(table: &str, port: u16) -> bool {
    const LISTENING_STATE: &str = "10";
    table.lines().skip(1).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(3) == Some(&LISTENING_STATE) && words.get(5).is_some_and(|own| own.parse() == Ok(port))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_found_in_the_tables_of_all_protocols() {
        let tcp = "  sl  local_address rem_address   st tx_queue\n   0: 00000000:0050 00000000:0000 0A 0\n\
                   \x20  1: 0100007F:0051 0100007F:9999 01 0\n";
        assert!(has_socket(tcp, 80, "0A"));
        assert!(!has_socket(tcp, 81, "0A") && !has_socket(tcp, 0x9999, "0A"));
        let sctp = " ENDPT     SOCK   STY SST HBKT LPORT   UID INODE LADDRS\n 0 0 2   10  27   8080     0 12711 0.0.0.0\n";
        assert!(has_endpoint(sctp, 8080) && !has_endpoint(sctp, 80));
    }
}
