//! A command whose effect in hol would differ from ns 2.35 is refused in one sentence, or listed as ignored; all others have the effect
//! of ns.

use hol_testbed::{Flow, FlowLoad, Script};

/// Two nodes with a link, a procedure for an agent with its sink, and then `more`.
fn with(more: &str) -> String {
    format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n\
         proc ends {{agent sink}} {{ global ns a b; set u [new Agent/$agent]; set z [new Agent/$sink]; set ::z1 $z\n\
         $ns attach-agent $a $u; $ns attach-agent $b $z; $ns connect $u $z; return $u }}\n\
         proc over {{agent class}} {{ set s [new Application/$class]; $s attach-agent $agent; return $s }}\n{more}\n\
         $ns at 5 {{exit 0}}\n$ns run\n"
    )
}

fn read(more: &str) -> Script {
    Script::read("a.tcl", &with(more)).unwrap_or_else(|error| panic!("{more}: {error}"))
}

fn flow(more: &str) -> Flow {
    read(more).flows.swap_remove(0)
}

/// Returns the commands that are listed as ignored.
fn ignored(more: &str) -> String {
    read(more).ignored.iter().map(|ignored| format!("{ignored}\n")).collect()
}

/// In ns 2.35, only links lower the TTL.
#[test]
fn sufficient_ttl_is_accepted() {
    let lan =
        "$ns make-lan \"$b [set c [$ns node]]\" 1Mb 1ms\nset u [ends UDP Null]\n$ns attach-agent $c $z1\n";
    for script in
        [format!("{lan}$u set ttl_ 2"), "set u [ends UDP Null]\n$u set ttl_ 2\n$z1 set ttl_ 0".to_owned()]
    {
        assert_eq!(
            read(&format!("{script}\n$ns at 0 \"[over $u Traffic/CBR] start\"")).flows.len(),
            1,
            "{script}"
        );
    }
}

#[test]
fn features_that_differ_from_ns_are_refused() {
    for (script, refusal) in [
        // Sizes and numbers without a sensible bound.
        ("set u [ends UDP Null]\n$ns at 1 \"$u send 9000000000000000\"", "send fewer"),
        (
            "set e [over [ends UDP Null] Traffic/Exponential]\n$e set packetSize_ 1000000000000\n$e set rate_ 1e14\n$ns at 0 \"$e start\"",
            "send fewer",
        ),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$c set packetSize_ 1000000000000000000\n$ns at 0 \"$c start\"",
            "send fewer",
        ),
        (
            "set c [over [ends TCP TCPSink] Traffic/CBR]\n$c set packetSize_ 1000000000000000000\n$ns at 0 \"$c start\"",
            "send fewer",
        ),
        (
            "for {set i 0} {$i < 300} {incr i} { set e [over [ends UDP Null] Traffic/Exponential]\n$e set rate_ 1e14\n$e set idle_time_ 0\n\
             $e set burst_time_ 1e-30\n$ns at 0 \"$e start\" }",
            "more than 1000000 bursts",
        ),
        (
            "for {set i 0} {$i < 11} {incr i} { set c [over [ends UDP Null] Traffic/CBR]\n$c set packetSize_ 100\n$c set rate_ 15Mb\n\
             $ns at 0 \"$c start\"\n$ns at 2 \"$c set packetSize_ 99\" }",
            "send more than 1000000",
        ),
        (
            "set f [over [ends TCP TCPSink] FTP]\n[$f agent] set packetSize_ 18446744073709551615\n$ns at 0 \"$f start\"",
            "longer than IP allows",
        ),
        (
            "set x a\nfor {set i 0} {$i < 19} {incr i} { append x $x }\nfor {set i 0} {$i < 200} {incr i} { $ns at 1 $x }",
            "more than 64 MiB",
        ),
        // Links.
        ("$ns duplex-link-op $a $b errormodule [new ErrorModel]", "one direction of a link"),
        ("$ns duplex-link-op $a $b wobble", "not a supported command of a link"),
        ("[$ns link $a $b] modify \"{\"", "never closed"),
        (
            "$ns simplex-link $a $b 1Mb 1ms DropTail\n$ns simplex-link $b $a 1Mb 1ms DropTail",
            "ns uses the last",
        ),
        (
            "$ns lossmodel [new ErrorModel] $a $b\n$ns link-lossmodel [new ErrorModel] $a $b",
            "both would lose packets",
        ),
        ("set em [new ErrorModel]\n$ns lossmodel $em $a $b\n$ns lossmodel $em $b $a", "create another one"),
        (
            "set c [$ns node]\nQueue/RED set bytes_ false\n$ns duplex-link $b $c 1Mb 1ms RED",
            "only 1 is supported",
        ),
        (
            "set c [$ns node]\nQueue set blocked_ true\n$ns duplex-link $b $c 1Mb 1ms DropTail",
            "only 0 is supported",
        ),
        (
            "set c [$ns node]\nQueue/RED set ns1_compat_ true\n$ns duplex-link $b $c 1Mb 1ms RED",
            "only 0 is supported",
        ),
        ("$ns queue-limit $a $b 1", "a limit of 1 drops all packets"),
        ("[[$ns link $a $b] queue] set limit_ 1", "a limit of 1 drops all packets"),
        // Agents.
        (
            "set u [ends UDP Null]\n$u set ttl_ 1\n$ns at 0 \"[over $u Traffic/CBR] start\"",
            "because its ttl_ is 1;",
        ),
        (
            "Agent set ttl_ 1\n$ns at 0 \"[over [ends TCP TCPSink] FTP] start\"",
            "number of links on the path (1)",
        ),
        (
            "set t [ends TCP TCPSink]\n$z1 set ttl_ 0.5\n$ns at 0 \"[over $t FTP] start\"",
            "because its ttl_ is 0.5;",
        ),
        (
            "set last $b\nfor {set i 0} {$i < 31} {incr i} { set n [$ns node]\n$ns duplex-link $last $n 1Mb 1ms DropTail\nset last $n }\n\
             set u [ends UDP Null]\n$ns attach-agent $last $z1\n$ns at 0 \"[over $u Traffic/CBR] start\"",
            "because its ttl_ is 32;",
        ),
        ("set t [ends TCP TCPSink]\n$t set segsize_ 500", "Agent/TCP of ns has no attribute \"segsize_\""),
        ("set t [ends SCTP SCTP]\n$t set window_ 5", "Agent/SCTP of ns has no attribute \"window_\""),
        ("Agent/TCPSink set packetSize_ 900\nends TCP TCPSink", "hol supports only 40"),
        ("Agent/TCPSink/Sack1 set maxSackBlocks_ 1\nends TCP/Sack1 TCPSink/Sack1", "hol supports only 3"),
        ("Agent/TCPSink set generateDSacks_ 1\nends TCP TCPSink", "hol supports only false"),
        ("Agent/TCP set tcpTick_ 0.5\nends TCP TCPSink", "hol supports only 0.01"),
        (
            "set t [ends TCP TCPSink]\nforeach class {FTP FTP} { $ns at 1 \"[over $t $class] start\" }",
            "another application sends over the same agent",
        ),
        (
            "set t [ends TCP TCPSink]\n$ns at 1 \"[over $t FTP] start\"\n$ns at 2 \"$t advance 10\"",
            "the same agent",
        ),
        (
            "set t [ends TCP TCPSink]\n$ns at 1 \"[over $t FTP] start\"\nset u [new Agent/TCP]\n$ns attach-agent $a $u\n$ns connect $u $z1",
            "this application's sink is connected to another agent",
        ),
        // Changes during a run.
        (
            "set u [ends UDP Null]\nset z [new Agent/Null]\n$ns attach-agent $b $z\n$ns at 2 \"$ns connect $u $z\"",
            "cannot change its other end",
        ),
        ("set u [ends UDP Null]\n$ns at 2 \"$ns attach-agent $b $u\"", "cannot change its node"),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$ns at 2 \"$c attach-agent [ends UDP Null]\"",
            "cannot change its agent",
        ),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$ns at 2 \"[ends UDP Null] attach-traffic $c\"",
            "cannot change its agent",
        ),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$ns at 1 \"$c start\"\n$ns at 2 \"$c set random_ 1\"",
            "before its first start",
        ),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$ns at 1 \"$c start\"\n$ns at 2 \"$c stop\"\n$ns at 3 \"$c set random_ 1\"\n$ns at 4 \"$c start\"",
            "before its first start",
        ),
        // Applications.
        (
            "set f [over [ends TCP TCPSink] FTP]\n$ns at 1 \"$f produce 1000\"\n$ns at 2 \"$f stop\"",
            "send fewer",
        ),
        (
            "set t [ends TCP TCPSink]\n$ns at 1 \"$t advance 1000\"\n$ns at 2 \"$ns detach-agent $a $t\"",
            "send fewer",
        ),
        ("set t [over [ends TCP/FullTcp TCP/FullTcp] Telnet]\n$ns at 1 \"$t start\"", "packets of two sizes"),
        (
            "set f [over [ends TCP TCPSink] FTP]\n$ns at 1 \"$f produce 10\"\n$ns at 2 \"$f produce 10\"",
            "use advanceby",
        ),
        (
            "set t [ends TCP/FullTcp TCP/FullTcp]\n$ns at 1 \"$t advance 10\"\n$ns at 2 \"$t advance 99\"",
            "use advanceby",
        ),
        ("set f [over [ends SCTP SCTP] FTP]\n$ns at 1 \"$f produce 10\"", "use send with a number of octets"),
        (
            "set c [over [ends UDP Null] Traffic/CBR]\n$c set packetSize_ 20\n$ns at 1 \"$c start\"",
            "use at least 36",
        ),
        ("set u [ends UDP Null]\n$ns at 1 \"$u send 3\"", "use at least 36"),
        ("[over [ends UDP Null] Telnet] use-rng [new RNG]", "not a supported command"),
        ("[new ErrorModel] FECstrength 2", "not a supported command"),
    ] {
        let error = Script::read("a.tcl", &with(script)).expect_err(script).to_string();
        assert!(error.lines().count() == 1 && error.contains(refusal), "{script}: {error}");
    }
}

#[test]
fn link_commands_have_the_effect_of_ns() {
    let lines = |more: &str| {
        let network = read(more).network;
        let events =
            network.events.iter().map(|event| format!("{} {:?} {:?}", event.at, event.direction, event.down));
        events.collect::<Vec<_>>().join(", ")
    };
    for (script, events) in [
        ("$ns at 1 \"$ns duplex-link-op $a $b down\"", "1s Both Some(true)"),
        ("$ns at 1 \"$ns simplex-link-op $b $a down\"", "1s Down Some(true)"),
        ("$ns at 1 \"[$ns link $a $b] down\"", "1s Up Some(true)"),
        ("source tb_compat.tcl\n$ns at 1 \"[$ns link $a $b] down\"", "1s Both Some(true)"),
        (
            "set l [$ns duplex-link $b [$ns node] 1Mb 1ms DropTail]\n$ns at 1 \"$l down\"",
            "1s Both Some(true)",
        ),
        ("$ns duplex-link-op $a $b dynamic\n$ns at 2 \"$ns duplex-link-op $b $a up\"", "2s Both Some(false)"),
        (
            "$ns duplex-link-op $a $b orient right\n$ns simplex-link-op $a $b queuePos 0.5\n$ns duplex-link-op $a $b color red",
            "",
        ),
    ] {
        assert_eq!(lines(script), events, "{script}");
    }
    let lossy =
        read("set em [new ErrorModel]\n$em set rate_ 0.1\n$ns simplex-link-op $b $a errormodule $em").network;
    assert_eq!(lossy.links[0].loss, None);
    assert_eq!(format!("{:?}", lossy.links[0].down.as_ref().unwrap().loss), "Some(Independent(Ratio(0.1)))");
    let around =
        "set c [$ns node]\n$ns duplex-link $a $c 1Mb 1ms DropTail\n$ns duplex-link $c $b 1Mb 1ms DropTail";
    let error =
        Script::read("a.tcl", &with(&format!("{around}\n$ns duplex-link-op $a $b cost 5"))).unwrap_err();
    assert!(error.to_string().contains("costs of links"), "{error}");
}

/// ns keeps only the last link between two nodes, with its settings.
#[test]
fn the_last_link_between_two_nodes_replaces_earlier_ones() {
    let more = "set c [$ns node]\n$ns duplex-link $b $c 4Mb 1ms DropTail\n$ns queue-limit $a $b 7\n\
        $ns lossmodel [new ErrorModel] $a $b\n$ns rtmodel-at 1 down $a $b\nset l [$ns duplex-link $b $a 3Mb 1ms DropTail]\n\
        $ns lossmodel [new ErrorModel/List] $b $a\n$ns rtmodel-at 2 down $a $b";
    let network = read(more).network;
    let links: Vec<String> =
        network.links.iter().map(|link| format!("{} {}", link.from, link.rate.unwrap())).collect();
    assert_eq!((links, network.links[1].queue), (vec!["b 4Mbit".to_owned(), "b 3Mbit".to_owned()], None));
    let events: Vec<String> =
        network.events.iter().map(|event| format!("{} {:?}", event.at, event.link)).collect();
    assert_eq!(events, ["2s Some(\"l\")"]);
    let emulab = Script::read("a.tcl", &format!("source tb_compat.tcl\n{}", with(more))).unwrap();
    assert_eq!(emulab.network.links.len(), 3);
}

/// The expected numbers and sizes of packets are those of ns 2.35.
#[test]
fn agents_divide_writes_into_packets() {
    let sizes = |more: &str| match flow(more).load {
        FlowLoad::Scripted(packets) => {
            let sizes: std::collections::BTreeSet<u64> = packets.iter().map(|(_, size)| *size).collect();
            format!("{sizes:?}")
        }
        FlowLoad::Every { size, at_once, .. } => format!("{at_once} of {size}"),
        FlowLoad::Greedy { size, packets } => format!("{packets:?} of {size}"),
    };
    let source = |agent: &str, sink: &str, class: &str, more: &str| {
        sizes(&format!("set s [over [ends {agent} {sink}] {class}]\n{more}\n$ns at 0 \"$s start\""))
    };
    for (agent, sink, class, more, expected) in [
        // tcp/tcp.cc, sendmsg: whole packets.
        ("TCP", "TCPSink", "Traffic/CBR", "", "1 of 1000"),
        ("TCP", "TCPSink", "Traffic/CBR", "$s set packetSize_ 2100", "3 of 1000"),
        ("TCP/Reno", "TCPSink", "Traffic/Exponential", "", "{1000}"),
        ("TCP/FullTcp", "TCP/FullTcp", "Traffic/CBR", "", "1 of 210"),
        ("TCP/FullTcp", "TCP/FullTcp", "FTP", "", "None of 536"),
        ("TCP/FullTcp", "TCP/FullTcp", "FTP", "[$s agent] set packetSize_ 1460", "None of 536"),
        ("TCP/FullTcp", "TCP/FullTcp", "FTP", "[$s agent] set segsize_ 1460", "None of 1460"),
        // apps/telnet.cc: a packet of the agent, whose headers UDP counts.
        ("TCP", "TCPSink", "Telnet", "$s set interval_ 0.1", "{1000}"),
        ("UDP", "Null", "Telnet", "$s set interval_ 0.1", "{972}"),
        ("SCTP", "SCTP", "FTP", "", "None of 1452"),
        ("SCTP", "SCTP", "Telnet", "$s set interval_ 0.1", "{1452}"),
    ] {
        assert_eq!(source(agent, sink, class, more), expected, "{class} over {agent} {more}");
    }
    let changed =
        flow("set f [over [ends TCP TCPSink] FTP]\n$ns at 1 \"$f start\"\n$ns at 2 \"$f set rate_ 1Mb\"");
    assert_eq!(
        (changed.load, changed.stop.to_string()),
        (FlowLoad::Greedy { size: 1000, packets: None }, "5s".into())
    );
    let many = "set s [over [ends UDP Null] Traffic/Exponential]\n$s set maxpkts_ 3\n$ns at 0 \"$s start\"";
    let FlowLoad::Scripted(packets) = flow(many).load else { panic!("{many}") };
    assert!(packets.len() > 3 && ignored(many).contains("$s set maxpkts_ 3: ns has no such attribute"));
    assert!(ignored("[ends TCP/FullTcp TCP/FullTcp] set packetSize_ 1460").contains("segsize_"));
    let writes = "set t [ends TCP/FullTcp TCP/FullTcp]\n$ns at 1 \"$t send 2048\"\n$ns at 2 \"$t send 100\"";
    assert_eq!(sizes(writes), "{100, 2048}");
    assert_eq!(sizes("set f [over [ends SCTP SCTP] FTP]\n$ns at 1 \"$f send 5000\""), "{5000}");
}

#[test]
fn a_huge_window_does_not_overflow() {
    let transport =
        flow("set f [over [ends TCP TCPSink] FTP]\n[$f agent] set window_ 1e30\n$ns at 0 \"$f start\"")
            .transport;
    assert!(transport.contains("receive_buffer=1000000000000B,window_scale=14"), "{transport}");
}

/// A class with its own default in ns does not inherit that of a superclass.
#[test]
fn defaults_of_nearer_classes_take_precedence() {
    for (script, attribute, expected) in [
        ("Agent set packetSize_ 300", "[[ends TCP TCPSink] set packetSize_]", "1000"),
        ("Agent/TCP set packetSize_ 300", "[[ends TCP/Reno TCPSink] set packetSize_]", "300"),
        ("Agent/TCP set minrto_ 1", "[[ends TCP/Linux TCPSink/Sack1] set minrto_]", "0.2"),
        ("Agent set packetSize_ 300", "[Agent/UDP set packetSize_]", "1000"),
        ("Application/Traffic set packetSize_ 300", "[[new Application/Traffic/CBR] set packetSize_]", "210"),
        ("set t [ends TCP TCPSink]\n$t set fid_ 3", "[$t set fid_]", "3"),
        ("set t [ends TCP TCPSink]", "[$t set class_ 2]", "2"),
    ] {
        let script = format!(
            "{script}\nset [set name x{attribute}] [$ns node]\n$ns duplex-link $b [set [set name]] 1Mb 1ms DropTail"
        );
        assert_eq!(read(&script).network.nodes[2], format!("x{expected}"), "{script}");
    }
    let rate = format!("{:?}", flow("Application/Traffic set rate_ 1Mb\nset c [over [ends UDP Null] Traffic/CBR]\n$c set packetSize_ 448\n$ns at 0 \"$c start\"").load);
    assert!(rate.contains("8ms"), "{rate}");
}

/// ns reads a random variable for each packet.
#[test]
fn changing_a_random_variable_changes_its_error_models() {
    let model = "set v [new RandomVariable/Uniform]\nset em [new ErrorModel]\n$em set rate_ 0.5\n$em ranvar $v\n$ns lossmodel $em $a $b\n";
    let loss = |more: &str| format!("{:?}", read(&format!("{model}{more}")).network.links[0].loss);
    assert_eq!(loss(""), "Some(Independent(Ratio(0.5)))");
    assert_eq!(loss("$v set max_ 100"), "Some(Independent(Ratio(0.005)))");
    let events = read(&format!("{model}$ns at 2 \"$v set max_ 100\"")).network.events;
    assert_eq!(format!("{:?}", events[0].loss), "Some(Independent(Ratio(0.005)))");
}

/// In ns, losses and RED draw from the generator of random sources.
#[test]
fn sources_that_share_random_numbers_are_listed() {
    let source = "set e [over [ends UDP Null] Traffic/Exponential]\n$ns at 0 \"$e start\"\n";
    let model = "set em [new ErrorModel]\n$ns lossmodel $em $a $b\n";
    let red = "set c [$ns node]\n$ns duplex-link $b $c 1Mb 1ms RED\n";
    let full = "set f [over [ends TCP/FullTcp TCP/FullTcp] FTP]\n$ns at 1 \"$f start\"\n";
    let own = "set v [new RandomVariable/Uniform]\n$v use-rng [new RNG]\n$em ranvar $v\n";
    for (script, is_listed) in [
        (source.to_owned(), false),
        (format!("{source}{model}"), true),
        (format!("{source}{red}"), true),
        (format!("{source}{full}"), false),
        (format!("{source}{full}$ns at 2 \"$f stop\"\n"), true),
        (format!("{source}{model}{own}"), false),
        (format!("{source}{model}$e use-rng [new RNG]\n"), false),
        (format!("{model}{red}set c [over [ends UDP Null] Traffic/CBR]\n$ns at 0 \"$c start\"\n"), false),
    ] {
        assert_eq!(
            ignored(&script).contains("draw from this source's random generator"),
            is_listed,
            "{script}"
        );
    }
}
