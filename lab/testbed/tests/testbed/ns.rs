//! Scripts of ns 2.35: defaults, changes during a run, and refused features.

use std::collections::BTreeMap;

use hol_network::{Discipline, NetworkSpec, Topology};
use hol_testbed::{Flow, FlowLoad, Script};

/// Two nodes with a link of 1 Mbit/s, and then `more`.
fn with(more: &str) -> String {
    format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n\
         proc finish {{}} {{ exit 0 }}\n{more}\n$ns run\n"
    )
}

fn read(text: &str) -> Script {
    Script::read("a.tcl", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn network(more: &str) -> NetworkSpec {
    read(&with(more)).network
}

fn refusal(more: &str) -> String {
    Script::read("a.tcl", &with(more)).expect_err(more).to_string()
}

/// An agent and its sink from a to b.
fn ends(agent: &str, sink: &str) -> String {
    format!(
        "set src [new Agent/{agent}]\nset dst [new Agent/{sink}]\n$ns attach-agent $a $src\n$ns attach-agent $b $dst\n$ns connect $src $dst\n"
    )
}

/// CBR over UDP from a to b, from the start of the run on.
fn cbr(more: &str) -> Flow {
    let text = format!(
        "{}set cbr [new Application/Traffic/CBR]\n$cbr attach-agent $src\n$ns at 0.0 \"$cbr start\"\n$ns at 10.0 \"finish\"\n{more}",
        ends("UDP", "Null")
    );
    read(&with(&text)).flows.swap_remove(0)
}

/// FTP over TCP from 1 s to 5 s.
fn ftp(agent: &str, more: &str) -> Flow {
    let text = format!(
        "{}set ftp [new Application/FTP]\n$ftp attach-agent $src\n$ns at 1.0 \"$ftp start\"\n$ns at 5.0 \"$ftp stop\"\n{more}",
        ends(agent, "TCPSink")
    );
    read(&with(&text)).flows.swap_remove(0)
}

/// Time and direction of each event.
fn events(more: &str) -> Vec<String> {
    let network = network(more);
    assert!(Topology::new(&network).is_ok());
    network.events.iter().map(|event| format!("{} {:?}", event.at, event.direction)).collect()
}

#[test]
fn a_script_gets_no_arguments() {
    assert_eq!(network("if {$argc > 0} { set d [lindex $argv 0] } else { set d 7 }").events, []);
    assert!(refusal("if {$argc != 1} { puts usage; exit 1 }").contains("if it needs arguments"));
}

#[test]
fn class_defaults_apply_to_objects_created_later() {
    let text = "Queue set limit_ 20\nQueue/RED set thresh_ 7\nAgent/TCP set window_ 30\nLL set delay_ 25us\n";
    let script = read(&format!("{text}{}", with("set c [$ns node]\n$ns duplex-link $a $c 1Mb 10ms RED")));
    let [tail, red] = &script.network.links[..] else { panic!("two links") };
    assert_eq!(tail.queue.unwrap().to_string(), "20p");
    // queue/red.cc: octets, in packets of 500.
    let Some(Discipline::Red(spec)) = red.discipline else { panic!("{red:?}") };
    assert_eq!(
        (spec.min.to_string(), spec.max.to_string(), spec.gentle),
        ("3500B".into(), "10500B".into(), true)
    );
    assert!(script.ignored.iter().any(|ignored| ignored.command.starts_with("LL set")));
    let flow = read(&format!(
        "Agent/TCP set window_ 30\n{}",
        with(&format!(
            "{}set ftp [$src attach-app FTP]\n$ns at 0 \"$ftp start\"\n$ns at 1 finish",
            ends("TCP/Reno", "TCPSink")
        ))
    ));
    assert!(flow.flows[0].transport.contains("receive_buffer=30000B"), "{}", flow.flows[0].transport);
    assert!(
        refusal("Agent/TCP set windowOption_ 8\nset t [new Agent/TCP]\n$ns attach-agent $a $t")
            .contains("windowOption_")
    );
}

#[test]
fn codel_and_sfq_codel_are_supported_queues() {
    let link = &network(
        "set c [$ns node]\n$ns duplex-link $a $c 1Mb 1ms CoDel\n$ns duplex-link $c $b 1Mb 1ms sfqCoDel",
    )
    .links;
    assert!(matches!(link[1].discipline, Some(Discipline::Codel(_))));
    assert!(matches!(link[2].discipline, Some(Discipline::FairCodel(_))));
}

#[test]
fn an_error_model_becomes_the_loss_of_a_direction() {
    let model = "set em [new ErrorModel]\n$em unit pkt\n$em set rate_ 0.02\n$em ranvar [new RandomVariable/Uniform]\n\
        $em drop-target [new Agent/Null]\n";
    let link = network(&format!("{model}$ns lossmodel $em $a $b")).links.swap_remove(0);
    assert_eq!(format!("{:?}", link.loss), "Some(Independent(Ratio(0.02)))");
    assert_eq!(format!("{:?}", link.down.unwrap().loss), "Some(Independent(Ratio(0.0)))");
    let list = "set em [new ErrorModel/List]\n$em droplist {3 7}\n$ns link-lossmodel $em $b $a";
    let back = network(list).links.swap_remove(0).down.unwrap().loss;
    // ns counts from 0.
    assert_eq!(format!("{back:?}"), "Some(Packets(ExplicitLoss { drop: [4, 8] }))");
    assert!(refusal(&format!("{model}$em unit byte\n$ns lossmodel $em $a $b")).contains("counts byte"));
    let pareto = model.replace("Uniform", "Pareto");
    assert!(refusal(&format!("{pareto}$ns lossmodel $em $a $b")).contains("RandomVariable/Uniform"));
    assert_eq!(events(&format!("{model}$ns lossmodel $em $a $b\n$ns at 3.0 \"$em set rate_ 0\"")), ["3s Up"]);
}

#[test]
fn link_changes_during_the_run_become_events() {
    let link = "set l [$ns link $a $b]\n";
    for (script, said) in [
        ("$ns at 2.0 \"$l down\"\n$ns at 6.0 \"$l up\"", &["2s Up", "6s Up"][..]),
        ("$ns at 1 \"$l modify BANDWIDTH=500 DELAY=20ms PLR=0.1\"", &["1s Both"; 3]),
        ("$ns at 1 \"$l modify bandwidth 2Mb delay 20ms plr 0.1\"", &["1s Both"; 3]),
        ("$ns at 1 \"$l modify {BANDWIDTH 500 DELAY=20}\"", &["1s Both"; 2]),
        ("$ns at 1 \"$l bandwidth 2Mb duplex\"", &["1s Both"]),
        ("$ns rtmodel-at 1.5 down $a $b\n$ns rtmodel-at 2.5 up $a", &["1500ms Both", "2500ms Both"]),
        ("$ns at 1 \"[[$ns link $b $a] link] set bandwidth_ 2Mb\"", &["1s Down"]),
        ("$ns at 1 \"[$l link] set delay_ 0.02\"", &["1s Up"]),
        (
            "$ns at 1 \"$ns bandwidth $a $b 3Mb duplex\"\n$ns at 2 \"$ns delay $a $b 3ms\"",
            &["1s Both", "2s Up"],
        ),
        (
            "$ns at 1 \"slower 2\"\nproc slower {n} { global ns a b\n for {set i 0} {$i < $n} {incr i} { $ns at [expr [$ns now] + $i] \"$ns bandwidth $a $b 1kb\" } }",
            &["1s Up", "2s Up"],
        ),
    ] {
        assert_eq!(events(&format!("{link}{script}")), said, "{script}");
    }
    assert_eq!(
        network("[[$ns link $a $b] link] set bandwidth_ 3Mb").links[0].rate.unwrap().to_string(),
        "3Mbit"
    );
    assert!(refusal("$ns at 1 \"$ns queue-limit $a $b 3\"").contains("of a queue during a run"));
    assert!(refusal("$ns rtproto Session\n$ns rtmodel-at 1 down $a $b").contains("only static routes"));
}

#[test]
fn two_simplex_links_make_one_link() {
    let text = "set c [$ns node]\n$ns simplex-link $b $c 2Mb 5ms DropTail\n";
    let link = network(&format!("{text}$ns simplex-link $c $b 1Mb 9ms DropTail")).links.swap_remove(1);
    let down = link.down.unwrap();
    assert_eq!(
        (link.rate.unwrap().to_string(), down.rate.unwrap().to_string()),
        ("2Mbit".into(), "1Mbit".into())
    );
    assert!(refusal(text).contains("has one direction"));
}

#[test]
fn a_detached_agent_sends_nothing() {
    let flow = ftp("TCP", "$ns at 1.4 \"$ns detach-agent $a $src ; $ns detach-agent $b $dst\"");
    assert_eq!((flow.start.to_string(), flow.stop.to_string()), ("1s".into(), "1400ms".into()));
    let text = format!(
        "{}set ftp [$src attach-app FTP]\n$ns at 0 \"$ftp start\"\n$ns at 2 finish\n$ns at 1 \"$ns detach-agent $b $dst\"",
        ends("TCP", "TCPSink")
    );
    assert!(refusal(&text).contains("detaching a sink during"));
}

/// ns 2.35, ns-default.tcl: a window of 20 packets of 1000 octets, a first window of 2, an RTO of 200 ms at least.
#[test]
fn tcp_agents_have_the_window_of_ns() {
    let plain = ftp("TCP/Sack1", "").transport;
    for option in [
        "sack=true",
        "mss=1000",
        "initial_window=2",
        "rto_min=200ms",
        "receive_buffer=20000B",
        "send_buffer=40000B",
    ] {
        assert!(plain.contains(option), "{option}: {plain}");
    }
    let set = ftp("TCP/Reno", "$src set window_ 8\n$src set packetSize_ 500\n$src set ecn_ 1").transport;
    for option in ["sack=false", "mss=500", "receive_buffer=4000B", "ecn=true"] {
        assert!(set.contains(option), "{option}: {set}");
    }
    let long = ftp("TCP", "$src set packetSize_ 1960");
    assert!(matches!(long.load, FlowLoad::Greedy { size: 1960, .. }));
    let emulab = read(&format!(
        "source tb_compat.tcl\n{}",
        with(&format!(
            "{}set ftp [$src attach-app FTP]\n$ns at 0 \"$ftp start\"\n$ns at 1 finish",
            ends("TCP", "TCPSink")
        ))
    ));
    assert_eq!(emulab.flows[0].transport, "tcp:cc=reno");
}

#[test]
fn cbr_may_change_and_its_agent_divides_packets() {
    let every = |flow: &Flow| match flow.load {
        FlowLoad::Every { size, interval, at_once, .. } => (size, interval.to_string(), at_once),
        _ => panic!("{flow:?}"),
    };
    // ns-lib.tcl: an interval sets the rate for the size of that moment.
    assert_eq!(every(&cbr("$cbr set packetSize_ 500\n$cbr set interval_ 0.01")), (472, "10ms".into(), 1));
    assert_eq!(every(&cbr("$cbr set interval_ 0.01\n$cbr set packetSize_ 420")), (392, "20ms".into(), 1));
    // apps/udp.cc: packets of 1000 octets.
    assert_eq!(every(&cbr("$cbr set packetSize_ 2000\n$cbr set interval_ 0.1")), (972, "100ms".into(), 2));
    assert_eq!(
        every(&cbr("$src set packetSize_ 2000\n$cbr set packetSize_ 2000\n$cbr set interval_ 0.1")).0,
        1972
    );
    let FlowLoad::Scripted(packets) =
        cbr("$cbr set packetSize_ 500\n$cbr set interval_ 1\n$ns at 5 \"$cbr set rate_ 8kb\"").load
    else {
        panic!("CBR that changes is scripted");
    };
    assert_eq!(
        (packets.len(), packets[5].0.to_string(), packets[6].0.to_string()),
        (15, "5s".into(), "5500ms".into())
    );
    // In ns 2.35 a change takes effect with the next packet, and each start sends a packet.
    let times = |more: &str| {
        let FlowLoad::Scripted(packets) = cbr(more).load else { panic!("CBR that changes is scripted") };
        let times = packets.iter().map(|(at, size)| format!("{} {}", at.as_secs_f64(), size + 28));
        times.collect::<Vec<_>>().join(",")
    };
    let many = "$cbr set packetSize_ 500\n$cbr set interval_ 1\n$cbr set maxpkts_ 3\n$ns at 3.2 \"$cbr set rate_ 8kb\"\n$ns at 5.2 \"$cbr stop\"\n$ns at 7 \"$cbr start\"";
    assert_eq!(times(many), "0 500,1 500,2 500,7 500");
    let changes = "$cbr set packetSize_ 500\n$cbr set interval_ 1\n$ns at 2.3 \"$cbr set rate_ 8kb\"\n$ns at 4.7 \"$cbr set packetSize_ 250\"\n$ns at 6.6 \"$cbr stop\"";
    let expected = "0 500,1 500,2 500,3 500,3.5 500,4 500,4.5 500,5 250,5.25 250,5.5 250,5.75 250,6 250,6.25 250,6.5 250";
    assert_eq!(times(changes), expected);
    let FlowLoad::Scripted(packets) = cbr("$cbr set packetSize_ 1500\n$cbr set interval_ 5").load else {
        panic!("a rest")
    };
    assert_eq!(packets.iter().map(|(_, size)| *size).collect::<Vec<_>>(), [972, 472, 972, 472]);
    assert!(matches!(cbr("$cbr set random_ null").load, FlowLoad::Every { size: 182, .. }));
    let limited = cbr("$cbr set packetSize_ 500\n$cbr set interval_ 1\n$cbr set maxpkts_ 3");
    assert_eq!(limited.stop.to_string(), "3s");
}

#[test]
fn measured_values_may_be_printed_but_not_tested() {
    let record = "set f [open out.tr w]\nproc record {} { global ns dst f\n set time 0.5\n set bw [$dst set bytes_]\n \
        puts $f \"[$ns now] [expr $bw / $time * 8 / 1000000]\"\n $dst set bytes_ 0\n $ns at [expr [$ns now] + $time] \"record\" }\n\
        $ns at 0 record\n";
    let flow = ftp("TCP", &format!("{record}$ns at 9 finish"));
    assert_eq!(flow.stop.to_string(), "5s");
    let decides =
        "proc record {} { global dst\n if {[$dst set bytes_] > 100} { puts more } }\n$ns at 1 record\n";
    assert!(
        refusal(&format!("{}{decides}", ends("TCP", "TCPSink"))).contains("depends on results of the run")
    );
}

#[test]
fn source_reads_files_next_to_the_script() {
    let files: BTreeMap<&str, &str> =
        [("nodes.tcl", "set a [$ns node]\nset b [$ns node]"), ("bad.tcl", "\nset x $y")].into();
    let beside =
        |name: &str| files.get(name).map(|text| (*text).to_owned()).ok_or_else(|| "not found".to_owned());
    let read = |file: &str| {
        let text = format!(
            "set ns [new Simulator]\nsource \"{file}\"\n$ns duplex-link $a $b 1Mb 10ms DropTail\n$ns run\n"
        );
        Script::read_with("main.ns", &text, &beside, &|_| Ok(()))
    };
    assert_eq!(read("nodes.tcl").unwrap().network.nodes, ["a", "b"]);
    let wrong = |file: &str| read(file).unwrap_err().to_string();
    assert!(wrong("bad.tcl").starts_with("bad.tcl:2:7: unknown variable"), "{}", wrong("bad.tcl"));
    assert_eq!(wrong("none.tcl"), "main.ns:2:8: source none.tcl: not found");
}

#[test]
fn a_refusal_names_its_cause_in_one_line() {
    for (script, cause) in [
        (
            "Mac/802_11 set dataRate_ 11Mb\nset ns [new Simulator]\nset topo [new Topography]\ncreate-god 2",
            "wireless",
        ),
        ("set ns [new Simulator]\n$ns node-config -adhocRouting AODV", "wireless"),
        ("set ns [new Simulator -multicast on]\nset group [Node allocaddr]", "multicast"),
        ("set ns [new Simulator]\n$ns rtproto DV", "static"),
        (
            "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms dsRED/edge",
            "DiffServ",
        ),
        ("Agent/Ping instproc recv {from rtt} { puts $rtt }", "ns calls this method during the run"),
    ] {
        let error = Script::read("a.tcl", script).unwrap_err().to_string();
        assert!(error.lines().count() == 1 && error.contains(cause), "{script}: {error}");
    }
}

#[test]
fn settings_of_one_lan_member_are_refused_by_command() {
    let error = refusal(
        "set c [$ns node]\nset lan [$ns make-lan \"$a $b $c\" 10Mb 1ms]\ntb-set-node-lan-params $a $lan 40ms 10Mb 0.0",
    );
    assert!(
        error.contains("tb-set-node-lan-params: this changes the LAN for one node only")
            && !error.contains("did you mean"),
        "{error}"
    );
}

/// Emulab checks for duplicate addresses only within a segment; hol assigns addresses that are unique in the network.
#[test]
fn assigned_addresses_are_unique_in_the_network() {
    let script = read(
        "source tb_compat.tcl\nset ns [new Simulator]\nset hub [$ns node]\nset n1 [$ns node]\nset n2 [$ns node]\nset n3 [$ns node]\n\
         set lan0 [$ns make-lan \"$hub $n1 $n2\" 100Mb 0ms]\nset link0 [$ns duplex-link $hub $n3 100Mb 0ms DropTail]\n\
         tb-set-ip-link $hub $link0 10.9.0.2\ntb-set-ip-lan $hub $lan0 10.9.0.3\n$ns run",
    );
    assert_eq!(format!("{:?}", script.network.links[0].addresses), "[10.9.0.2, 10.9.0.4]");
    assert_eq!(format!("{:?}", script.network.lans[0].addresses), "[10.9.0.3, 10.9.0.5, 10.9.0.6]");
}

/// Emulab's documentation shows both commands for the same interface.
#[test]
fn interface_may_get_its_address_from_two_commands() {
    for (second, addresses) in [("10.9.0.2", "[10.9.0.2, 10.9.0.3]"), ("10.9.0.7", "[10.9.0.7, 10.9.0.2]")] {
        let script = read(&format!(
            "source tb_compat.tcl\nset ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n\
             set link0 [$ns duplex-link $a $b 100Mb 0ms DropTail]\n\
             tb-set-ip $a 10.9.0.2\ntb-set-ip-interface $a $b {second}\n$ns run"
        ));
        assert_eq!(format!("{:?}", script.network.links[0].addresses), addresses, "{second}");
    }
}

/// ns 2.35, common/scheduler.cc: `atof`.
#[test]
fn time_of_an_event_with_a_unit_that_ns_ignores_is_refused() {
    for command in
        ["$ns at 500ms {puts x}", "$ns rtmodel-at 500ms down $a $b", "$ns at 1 {$ns after 500ms {puts x}}"]
    {
        assert!(refusal(command).contains("takes \"500ms\" for 500 s; write 0.5"), "{command}");
    }
    assert_eq!(events("$ns at 2s \"[$ns link $a $b] down\""), ["2s Up"]);
    let emulab = format!("source tb_compat.tcl\n{}", with("$ns at 500ms \"[$ns link $a $b] down\""));
    assert_eq!(read(&emulab).network.events[0].at.as_millis(), 500);
}

#[test]
fn a_script_is_recognised_by_its_text() {
    assert!(Script::looks_like_script(&with("")));
    assert!(!Script::looks_like_script("title = 'a'\ntransports = ['tcp']\n# set ns [new Simulator]\n"));
}

#[test]
fn advanceby_sets_the_number_of_packets() {
    let flow = read(&with(&format!("{}$ns at 1.0 \"$src advanceby 50\"", ends("TCP/Newreno", "TCPSink"))))
        .flows
        .swap_remove(0);
    assert_eq!(
        (flow.load, flow.start.to_string()),
        (FlowLoad::Greedy { size: 1000, packets: Some(50) }, "1s".into())
    );
    assert!(
        read(&with("$defaultRNG seed 0")).ignored[0]
            .to_string()
            .contains("ns takes this seed from the clock")
    );
    assert!(refusal("Node set cost_ 1").contains("defaults of \"Node\" are not supported"));
}
