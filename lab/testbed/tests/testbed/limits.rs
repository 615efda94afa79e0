//! No script takes all memory or time, or causes a panic.

use hol_testbed::{FlowLoad, Script};

/// Two nodes with a link, agents and CBR between them, and then `more`.
fn read(more: &str) -> Result<Script, String> {
    let script = format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n\
         set u [new Agent/UDP]\nset z [new Agent/Null]\n$ns attach-agent $a $u\n$ns attach-agent $b $z\n$ns connect $u $z\n\
         set c [new Application/Traffic/CBR]\n$c attach-agent $u\n$ns at 9 {{exit 0}}\n\
         proc long {{count}} {{ set x 1; for {{set i 0}} {{$i < $count}} {{incr i}} {{append x \" $x\"}}; return $x }}\n\
         {more}\n$ns run\n"
    );
    Script::read("a.tcl", &script).map_err(|error| error.to_string())
}

#[test]
fn the_memory_of_a_script_is_limited() {
    for (script, refusal) in [
        // Each object copies the defaults of its class.
        (
            "for {set i 0} {$i < 2000} {incr i} {Agent/TCP set x$i [long 10]}; for {set i 0} {$i < 2000} {incr i} {new Agent/TCP}",
            "more than 64 MiB",
        ),
        ("Agent/TCP set x [long 17]; for {set i 0} {$i < 9000} {incr i} {new Agent/TCP}", "more than 64 MiB"),
        // Each change of a link has the list of its error model.
        (
            "set em [new ErrorModel/List]; $em droplist [long 16]; $ns lossmodel $em $a $b\n\
             proc again {} {global ns em; $em unit pkt; $ns after 0.001 again}; $ns at 1 again",
            "more than 64 MiB",
        ),
        (
            "set v [new RandomVariable/Uniform]; for {set i 0} {$i < 2000} {incr i} {[new ErrorModel] ranvar $v}\n\
             for {set i 0} {$i < 2000} {incr i} {$v set min_ 0}",
            "more than 64 MiB",
        ),
        // Each start has the command of its program and the archives of its node.
        (
            "set p [$a program-agent -command [long 16]]; proc again {} {global ns p; $p start; $ns after 0.001 again}; $ns at 1 again",
            "more than 64 MiB",
        ),
        (
            "for {set i 0} {$i < 2000} {incr i} {tb-set-node-tarfiles $a /x y; tb-set-node-startcmd $a ls}",
            "more than 64 MiB",
        ),
        ("for {set i 0} {$i < 90000} {incr i} {$ns duplex-link $a $b 1Mb 1ms DropTail}", "more than 64 MiB"),
        (
            "for {set i 0} {$i < 900} {incr i} {$ns duplex-link $a [$ns node] 1Mb 1ms DropTail}\n\
             for {set i 0} {$i < 900} {incr i} {$ns rtmodel-at 1 down $a}",
            "more than 64 MiB",
        ),
        // Starts the run during the run.
        ("proc again {} {global ns; $ns run}; $ns at 1 again", "the run has already begun"),
        ("$ns at 1 {catch {$ns run}}", "the run has already begun"),
        // The name is too long to be compared with others for a suggestion.
        ("$ns [string map {{ } x} [long 2]]", "string SUBCOMMAND"),
        ("$ns [join [long 17] x]", "hol reads ns's methods"),
    ] {
        let Err(error) = read(script) else { panic!("{script} is accepted") };
        assert!(error.contains(refusal), "{script}: {}", &error[..error.len().min(1000)]);
    }
}

/// Features of ns that hol lacks are refused, even if a script catches errors.
#[test]
fn catch_does_not_hide_unsupported_commands() {
    for (script, refusal) in [
        ("catch {set q [new Agent/RAP]}", "unsupported agent"),
        ("catch {$ns nosuch}", "unknown command \"nosuch\""),
        ("catch {nosuch}", "unknown command \"nosuch\""),
        ("catch {$ns rtproto DV}", "only static routes"),
        ("catch {$c set packetSize_ [string map {a b} 1]}", "string SUBCOMMAND"),
        ("catch {$ns at [clock seconds] {}}", "depends on results"),
        ("catch {if {[$u set seqno_] > 5} {set x 1}}", "depends on results"),
        ("catch {source nosuch.tcl}", "this script has no directory"),
        (
            "Class A -superclass Agent/UDP; A instproc init args {eval $self next $args}; catch {new A 1}",
            "that a script extends takes no arguments",
        ),
        ("$ns at 1 {catch {set q [new Agent/RAP]}}", "unsupported agent"),
    ] {
        let Err(error) = read(script) else { panic!("{script} is accepted") };
        assert!(error.contains(refusal), "{script}: {error}");
    }
    assert!(read("catch {set nosuch}; catch {expr {1 / 0}}; catch {error no}").is_ok());
}

fn packets(more: &str) -> u64 {
    let script = read(more).unwrap_or_else(|error| panic!("{more}: {error}"));
    let flow = &script.flows[0];
    match &flow.load {
        FlowLoad::Every { times, .. } => *times,
        FlowLoad::Scripted(all) => all.len() as u64,
        FlowLoad::Greedy { .. } => panic!("CBR is not greedy"),
    }
}

/// The expected numbers are from traces of Debian's ns 2.35.
#[test]
fn cbr_sends_as_many_packets_as_in_ns() {
    for (script, expected) in [
        // The sums of 400, 800 and 3000 intervals are less than 4, 8 and 4 s.
        ("$c set interval_ 0.01\n$ns at 1 {$c start}\n$ns at 5 {$c stop}", 401),
        ("$c set interval_ 0.01\n$ns at 0 {$c start}\n$ns at 8 {$c stop}", 801),
        ("$c set packetSize_ 500\n$c set rate_ 3Mb\n$ns at 0 {$c start}\n$ns at 4 {$c stop}", 3001),
        // A start sends a packet before ns checks the number.
        ("$c set maxpkts_ 0\n$c set interval_ 0.01\n$ns at 0 {$c start}", 1),
        (
            "$c set maxpkts_ 5\n$c set interval_ 0.01\n$ns at 0 {$c start}\n$ns at 1 {$c stop}\n$ns at 2 {$c start}",
            6,
        ),
        // A change takes effect with the next packet, before which the script ends.
        ("$c set maxpkts_ 9\n$c set interval_ 10\n$ns at 0 {$c start}\n$ns at 1 {$c set packetSize_ 99}", 1),
    ] {
        assert_eq!(packets(script), expected, "{script}");
    }
}
