//! A middlebox with the packet filter of this machine's kernel.

use std::process::Command;

use hol_scenario::FilterReport;
use hol_sockets::{EndAddresses, FlowParameters, FlowRun, run};
use hol_workloads::{Filter, HostSpec, RequestMix, Simco, WorkloadSpec};

use crate::namespaces::enter;
use crate::pair::Pair;
use crate::{assert_complete, parameters};

fn filtered(pair: &Pair, transport: &str, mix: RequestMix) -> FlowRun {
    let [client, server] =
        Pair::ADDRESSES.map(|address| EndAddresses { addresses: vec![address.into()], port: 0 });
    let parameters = parameters(transport, "simco");
    let load = parameters.workload.load().expect("simco has a load").clone();
    let workload = WorkloadSpec::new(Simco { mix, load });
    let server_host = HostSpec { filter: Filter::Nftables, ..HostSpec::default() };
    let parameters = FlowParameters { client, server, workload, server_host, messages: 300, ..parameters };
    run(&parameters, &mut |end| enter(pair, end)).unwrap_or_else(|problem| panic!("{transport}: {problem}"))
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn the_filter_finally_holds_the_granted_rules() {
    let pair = Pair::new();
    for transport in ["tcp", "tcp:connections=3"] {
        let enabled = filtered(&pair, transport, RequestMix::default());
        assert_complete(&enabled, 300);
        assert_eq!(
            enabled.filter,
            Some(FilterReport { rules: 300, ending: 0, missing: 0, surplus: 0 }),
            "{transport}"
        );
        assert!(elements(&pair) >= 300);
        let mixed = filtered(&pair, transport, RequestMix { enable: 2, lifetime: 1, delete: 1 });
        assert_complete(&mixed, 300);
        let Some(FilterReport { rules, ending: 0, missing: 0, surplus: 0 }) = mixed.filter else {
            panic!("{transport}: {:?}", mixed.filter)
        };
        assert!((50..150).contains(&rules), "{transport}: {rules}");
    }
}

/// Returns the number of elements that `nft` lists.
fn elements(pair: &Pair) -> usize {
    let list = ["netns", "exec", &pair.names[1], "nft", "list", "table", "inet", "simco"];
    let listed = Command::new("ip").args(list).output().expect("ip has made the namespaces");
    assert!(listed.status.success(), "nft: {}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8_lossy(&listed.stdout).matches("expires").count()
}
