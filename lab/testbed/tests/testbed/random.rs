//! Random numbers and sources with random times. All expected values are those of ns 2.35.

use hol_testbed::{Flow, FlowLoad, Script};

fn flows(more: &str) -> Vec<Flow> {
    let text = format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 10Mb 1ms DropTail\n\
         proc make {{class agent sink}} {{ global ns a b\n set u [new Agent/$agent]\n set z [new Agent/$sink]\n $ns attach-agent $a $u\n\
         $ns attach-agent $b $z\n $ns connect $u $z\n set s [new $class]\n $s attach-agent $u\n return $s }}\n{more}\n$ns run\n"
    );
    Script::read("a.tcl", &text).unwrap_or_else(|error| panic!("{error}\n{text}")).flows
}

/// Returns the times of packets in seconds since the start of the run, and their sizes with UDP's headers.
fn packets(flow: &Flow) -> Vec<(f64, u64)> {
    let FlowLoad::Scripted(packets) = &flow.load else { panic!("{flow:?}") };
    packets.iter().map(|(at, size)| ((flow.start + *at).as_secs_f64(), size + 28)).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-6
}

#[test]
fn random_sources_send_at_the_times_of_ns() {
    let flows = flows(
        "set e [make Application/Traffic/Exponential UDP Null]\nset p [make Application/Traffic/Pareto UDP Null]\n\
         foreach s \"$e $p\" { $ns at 0.1 \"$s start\"\n $ns at 3 \"$s stop\" }\n$ns at 4 {exit 0}",
    );
    let [exponential, pareto] = [0, 1].map(|index| packets(&flows[index]));
    assert_eq!((exponential.len(), pareto.len()), (99, 78));
    assert!(is_near(exponential[0].0, 0.419_851) && is_near(exponential[21].0, 0.971_101), "{exponential:?}");
    assert!(
        is_near(pareto[0].0, 0.967_885) && is_near(pareto[11].0, 0.967_885 + 11.0 * 0.026_25),
        "{pareto:?}"
    );
    assert!(exponential.iter().all(|(_, size)| *size == 210));
    assert_eq!((flows[0].start.to_string(), flows[0].stop.to_string()), ("100ms".into(), "3s".into()));
}

#[test]
fn cbr_with_random_intervals_and_telnet_draw_in_the_order_of_ns() {
    let flows = flows(
        "set c [make Application/Traffic/CBR UDP Null]\n$c set random_ 1\n$c set rate_ 16800\n\
         set t [make Application/Telnet TCP TCPSink]\n$t set interval_ 0.2\n\
         foreach s \"$c $t\" { $ns at 0.5 \"$s start\"\n $ns at 2.5 \"$s stop\" }\n$ns at 3 {exit 0}",
    );
    let cbr = packets(&flows[0]);
    for (own, expected) in
        cbr.iter().zip([0.5, 0.551_42, 0.645_538, 0.775_453, 0.856_75, 0.988_397, 1.102_284])
    {
        assert!(is_near(own.0, expected), "{cbr:?}");
    }
    let FlowLoad::Scripted(keys) = &flows[1].load else { panic!("{flows:?}") };
    assert!(is_near((flows[1].start + keys[0].0).as_secs_f64(), 0.985_805), "{keys:?}");
    assert!(keys.iter().all(|(_, size)| *size == 1000));
}

/// Each flow starts at a number that ns prints for the same commands.
#[test]
fn a_script_draws_the_numbers_of_ns() {
    let flows = flows(
        "set rng [new RNG]\n$rng seed 3\nset v [new RandomVariable/Exponential]\n$v use-rng $rng\n$v set avg_ 0.3\n\
         set w [new RandomVariable/Weibull]\n$w set shape_ 2\n\
         foreach at [list [$v value] [$v value] [$rng uniform 1 5] [uniform 0 10] [[new RandomVariable/HyperExponential] value] [$w value] [[new RandomVariable/ParetoII] value]] {\n\
           set s [make Application/FTP TCP TCPSink]\n $ns at $at \"$s start\" }\n$ns at 20 {exit 0}",
    );
    let starts: Vec<f64> = flows.iter().map(|flow| flow.start.as_secs_f64()).collect();
    let expected = [2.069_88, 0.121_203_3, 1.170_413_749, 0.003_395_77, 1.581_362, 4.858_051, 1.955_386];
    assert!(starts.iter().zip(expected).all(|(own, expected)| is_near(*own, expected)), "{starts:?}");
}

#[test]
fn invalid_settings_of_random_objects_are_refused() {
    let wrong = |more: &str| {
        let text = format!("set ns [new Simulator]\n{more}");
        Script::read("a.tcl", &text).expect_err(more).to_string()
    };
    assert!(wrong("set t [new Application/Telnet]\n$t set interval_ 0").contains("tcplib"));
    assert!(wrong("set e [new Application/Traffic/Exponential]\n$e set shape_ 2").contains("shape_"));
    assert!(wrong("[new RNG] seed -4").contains("a seed is"));
    assert!(wrong("[new RNG] poisson 3").contains("use uniform"));
}

/// A script may send a given number of packets, or single ones.
#[test]
fn send_and_producemore_send_single_packets() {
    let flows = flows(
        "set s [make Application/FTP UDP Null]\nset u [$s agent]\n$ns at 1 \"$u send 500\"\n$ns at 1.5 \"$u send 1200 {some text}\"\n\
         set f [make Application/FTP TCP TCPSink]\nset t [$f agent]\n$ns at 1 \"$t send 2048\"\n$ns at 3 \"$f producemore 2\"\n$ns at 4 {exit 0}",
    );
    let datagrams = flows.iter().find(|flow| flow.transport == "udp").unwrap();
    // UDP's agent sends packets of 1000 octets.
    assert_eq!(packets(datagrams), [(1.0, 500), (1.5, 1000), (1.5, 200)]);
    let FlowLoad::Scripted(tcp) = &flows.iter().find(|flow| flow.transport != "udp").unwrap().load else {
        panic!()
    };
    let times: Vec<String> = tcp.iter().map(|(at, size)| format!("{at} {size}")).collect();
    assert_eq!(times, ["0s 1000", "0s 1000", "0s 1000", "2s 1000", "2s 1000"]);
}

/// A source that sends for ever at an enormous rate is refused at once.
#[test]
fn a_source_with_too_many_packets_is_refused() {
    let text = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 10Mb 1ms DropTail\n\
        set u [$ns create-connection UDP $a Null $b 1]\nset s [new Application/Traffic/Exponential]\n$s attach-agent $u\n\
        $s set rate_ 1e14\n$s set idle_time_ 0\n$ns at 0 \"$s start\"\n$ns at 1000 {exit 0}\n$ns run";
    let error = Script::read("a.tcl", text).unwrap_err().to_string();
    assert!(error.contains("more than 100000"), "{error}");
}

/// Tcl's own random numbers, which a script may seed.
#[test]
fn rand_draws_the_numbers_of_tcl() {
    let seeded = flows(
        "expr srand(7)\nset f [make Application/FTP TCP TCPSink]\n$ns at [expr 2 + rand()] \"$f start\"\n$ns at 4 {exit 0}",
    );
    assert!(is_near(seeded[0].start.as_secs_f64(), 2.920_764_517), "{seeded:?}");
    let text = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b [expr 1 + rand()]Mb 1ms DropTail";
    let ignored = Script::read("a.tcl", text).unwrap().ignored;
    assert!(ignored[0].to_string().starts_with("a.tcl:4: rand"), "{ignored:?}");
}

/// FullTcp draws a number before its first packet.
#[test]
fn opening_a_full_tcp_connection_draws_a_random_number() {
    let flows = flows(
        "set e [make Application/Traffic/Exponential UDP Null]\nset f [make Application/FTP TCP/FullTcp TCP/FullTcp]\n\
         $ns at 0.1 \"$e start\"\n$ns at 0.2 \"$f start\"\n$ns at 3 \"$e stop\"\n$ns at 4 {exit 0}",
    );
    let all = packets(&flows[0]);
    let begins = |at: f64| all.iter().any(|(own, _)| is_near(*own, at));
    assert_eq!(all.len(), 41);
    assert!([0.227_629, 1.392_208, 2.531_959, 2.8338].into_iter().all(begins), "{all:?}");
}

/// `$ns cancel` removes a scheduled command.
#[test]
fn cancelled_events_are_not_executed() {
    let flows = flows(
        "set f [make Application/FTP TCP TCPSink]\nset e [$ns at 1 \"$f start\"]\n$ns at 0.5 \"$ns cancel $e\"\n\
         $ns at 0.5 {$ns after 1.5 \"$f start\"}\n$ns at 4 {exit 0}",
    );
    assert_eq!(flows[0].start.to_string(), "2s");
}

/// A source that is stopped before its first packet sends nothing, and one that is started again goes on.
#[test]
fn sources_stop_and_start_again() {
    let make = "set e [make Application/Traffic/Exponential UDP Null]\n";
    assert!(
        flows(&format!("{make}$ns at 0.1 \"$e start\"\n$ns at 0.2 \"$e stop\"\n$ns at 4 {{exit 0}}"))
            .is_empty()
    );
    let again = flows(&format!(
        "{make}$ns at 0.1 \"$e start\"\n$ns at 0.6 \"$e stop\"\n$ns at 2 \"$e start\"\n$ns at 4 {{exit 0}}"
    ));
    let times: Vec<f64> = packets(&again[0]).iter().map(|(at, _)| *at).collect();
    let between = |from: f64, to: f64| times.iter().filter(|at| (from..to).contains(at)).count();
    // From 0.41985 s every 26.25 ms.
    assert_eq!((between(0.0, 0.6), between(0.6, 2.0)), (7, 0), "{times:?}");
    assert!(between(2.0, 4.0) > 0 && times.iter().all(|at| *at < 4.0), "{times:?}");
}

/// The values of a file with a distribution, also between its entries, are those that ns draws.
#[test]
fn an_empirical_distribution_is_read_from_its_file() {
    let read = |name: &str| match name {
        "sizes.cdf" => Ok("1 0 0.1\n2.5 0 0.3\n4 0 0.35\n10 1 0.8\n50 2 1.0\n".to_owned()),
        "odd.cdf" => Ok("1 0 0.5\n2 0\n".to_owned()),
        _ => Err("not found".to_owned()),
    };
    let values = |more: &str| {
        let text = format!(
            "set v [new RandomVariable/Empirical]\n{more}\nforeach i {{1 2 3 4 5}} {{lappend l [$v value]}}\nerror $l"
        );
        Script::read_with("a.tcl", &text, &read, &|_| Ok(())).expect_err("it ends with an error").to_string()
    };
    for (script, expected) in [
        ("$v loadCDF sizes.cdf", "says: 1.000000e+00 1.000000e+01 1.000000e+00 1.000000e+00 1.000000e+01"),
        (
            "$v loadCDF sizes.cdf; $v set interpolation_ 1",
            "says: 1.000000e+00 6.745076e+00 1.000000e+00 1.000000e+00 5.215645e+00",
        ),
        (
            "$v loadCDF sizes.cdf; $v set interpolation_ 2; $v set minCDF_ 0.2; $v set maxCDF_ 0.9",
            "says: 2.000000e+00 8.000000e+00 2.000000e+00 3.000000e+00 7.000000e+00",
        ),
        ("", "says: 0.000000e+00 0.000000e+00"),
        ("$v loadCDF odd.cdf", "loadCDF odd.cdf: each line needs a value"),
        ("catch {$v loadCDF none.cdf}", "loadCDF none.cdf: not found"),
    ] {
        let error = values(script);
        assert!(error.contains(expected), "{script}: {error}");
    }
}
