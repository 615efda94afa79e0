//! The conformance cases that do not change the path, over this machine's loopback interface. Time is real, and these cases do not compare
//! times.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hol_live::{Live, Secret, Server, Service};
use hol_network::NetworkSpec;
use hol_scenario::World;
use hol_scenario::conformance::{CaseResult, ConformanceCase, cases};
use hol_stack::{ProtocolKind, TransportSpec};

/// The number of cases that run at once, because they mostly wait.
const SIDE_BY_SIDE: usize = 16;

/// Returns the cases that require no property of the path.
fn of_any_path() -> Vec<ConformanceCase> {
    let plain: NetworkSpec = toml::from_str("rate = '10Mbit'").unwrap();
    let mut cases = cases();
    cases.retain(|case| [&plain, &NetworkSpec::default()].contains(&&case.scenario.network));
    // A sender of datagrams without a receiver waits for minutes of real time.
    let speaks_alone = |transport: &TransportSpec| {
        transport.kind() == ProtocolKind::Udp
            || transport.kind() == ProtocolKind::Sctp && transport.is_userspace()
    };
    cases.retain(|case| !speaks_alone(&case.scenario.transport) || case.scenario.workload.listens);
    cases.iter_mut().for_each(|case| case.scenario.network = NetworkSpec::default());
    cases
}

/// Returns whether a machine may refuse the case, because no machine or not every one supports it.
fn may_be_refused(case: &ConformanceCase, why: &str) -> bool {
    let is_of = |kind: &str, words: &str| case.name.starts_with(kind) && why.contains(words);
    is_of("sctp", "this kernel has no SCTP") || is_of("mptcp", "this kernel has no MPTCP")
}

#[test]
#[ignore = "takes a minute, because datagrams without a receiver time out in real time"]
fn loopback_passes_all_cases_that_need_no_path_properties() {
    let (cases, next) = (of_any_path(), AtomicUsize::new(0));
    let (kept, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                // A separate world for each case, so that cases do not take turns.
                let live = Live::new();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match case.verdict(&live) {
                        CaseResult::Passed => drop(kept.fetch_add(1, Ordering::Relaxed)),
                        CaseResult::Refused(why) if may_be_refused(case, &why) => {}
                        CaseResult::Refused(what) | CaseResult::Differs(what) => {
                            wrong.lock().unwrap().push(format!("{case}: {what}"));
                        }
                    }
                }
            });
        }
    });
    let (wrong, kept) = (wrong.into_inner().unwrap(), kept.into_inner());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(kept > 60, "{kept} of {}", cases.len());
    assert!(!Live::new().is_repeatable());
}

/// Both ends of the control channel are on this machine, and so are both ends of each flow; but each end receives the other's state only
/// over the channel.
#[test]
#[ignore = "takes a minute, because datagrams without a receiver time out in real time"]
fn two_hosts_pass_all_cases_that_need_no_path_properties() {
    let secret = || Secret::new(super::SECRET).unwrap();
    secret().set_for_process();
    let (cases, next) = (of_any_path(), AtomicUsize::new(0));
    let (kept, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                let server =
                    Server::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), secret(), Service::Ends(None))
                        .unwrap();
                let told: Mutex<Vec<String>> = Mutex::default();
                let place = server.address().unwrap().to_string();
                thread::scope(|serving| {
                    let (server, told) = (&server, &told);
                    serving
                        .spawn(move || server.run(false, &|what| told.lock().unwrap().push(what)).unwrap());
                    let live = Live::with_peer(&place).unwrap();
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        match case.verdict(&live) {
                            CaseResult::Passed => drop(kept.fetch_add(1, Ordering::Relaxed)),
                            CaseResult::Refused(why) if may_be_refused(case, &why) => {}
                            CaseResult::Refused(why) if why.contains("on one host") => {}
                            CaseResult::Refused(what) | CaseResult::Differs(what) => {
                                let told = told.lock().unwrap().join("; ");
                                wrong.lock().unwrap().push(format!("{case}: {what} ({told})"));
                            }
                        }
                    }
                    drop(live);
                    server.stop().unwrap();
                });
            });
        }
    });
    let (wrong, kept) = (wrong.into_inner().unwrap(), kept.into_inner());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(kept > 50, "{kept} of {}", cases.len());
}
