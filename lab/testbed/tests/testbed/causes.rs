//! Why a script is refused: one sentence names the missing feature instead of the first unknown word.

use hol_testbed::Script;

/// Two nodes with a link, and then `more`.
fn with(more: &str) -> String {
    format!(
        "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 10ms DropTail\n{more}\n$ns run\n"
    )
}

fn read(more: &str) -> Script {
    Script::read("a.tcl", &with(more)).unwrap_or_else(|error| panic!("{more}: {error}"))
}

fn refusal(text: &str) -> String {
    Script::read("a.tcl", text).expect_err(text).to_string()
}

#[test]
fn the_most_serious_cause_is_reported_wherever_it_is() {
    for (script, cause) in [
        // A script may define classes.
        (
            "Class Scene\nScene instproc init {} { global ns; set ns [new Simulator]; $ns node-config -adhocRouting AODV }\nnew Scene",
            "wireless",
        ),
        // A method that ns calls is a less serious cause.
        ("Agent/TCP instproc done {} {}\nset ns [new Simulator]\nset g [Node allocaddr]", "multicast"),
        // Commands that the script would execute with arguments count.
        (
            "if {$argc == 0} { puts usage; exit 1 }\nset ns [new Simulator]\nset opt(mac) Mac/802_11",
            "wireless",
        ),
        (
            "if {$argc == 0} { exit 1 }\nset ns [new Simulator]\n$ns node-config -satNodeType polar",
            "satellite",
        ),
        // An earlier error does not hide the cause.
        ("set ns [new Simulator]\nwobble\nset q Queue/dsRED/edge", "DiffServ"),
        ("set ns [new Simulator]\n$ns node-config -PGM ON", "multicast"),
        ("set ns [new Simulator -multicast on]\n$ns rtproto DV", "static routes"),
        ("set ns [new Simulator]\n$ns rtmodel Deterministic {} [$ns node]", "rtmodel-at"),
        ("Class Q -superclass Queue/XCP\nset ns [new Simulator]\nset q [new Queue/XCP]", "XCP"),
        ("set ns [new Simulator]\nset pool [new PagePool/WebTraf]", "web traffic"),
    ] {
        let error = refusal(script);
        assert!(error.lines().count() == 1 && error.contains(cause), "{script}: {error}");
    }
}

/// A fragment is distinguished from a script that needs arguments.
#[test]
fn a_fragment_of_another_script_is_recognised() {
    for part in
        ["$ns duplex-link $a $b 1Mb 1ms DropTail", "proc topology {} { global ns; $ns node }", "set x 1"]
    {
        let error = refusal(part);
        assert!(error.contains("run the one that reads it with source"), "{part}: {error}");
    }
    let error = refusal("if {$argc < 1} { exit 1 }\nset ns [new Simulator]");
    assert!(error.contains("if it needs arguments"), "{error}");
}

#[test]
fn unexecuted_words_alone_do_not_refuse_a_script() {
    assert_eq!(read("if {0} { set mac Mac/802_11 }\n# Agent/AODV\nset note satnode").network.nodes.len(), 2);
    assert!(refusal(&with("# Mac/802_11\nwobble")).contains("unknown command \"wobble\""));
    assert_eq!(read("puts XCP\nputs \"[expr 1 + 2] XCP\"").ignored.len(), 2);
    // Multicast has no effect without groups.
    let text = with("").replace("new Simulator", "new Simulator -multicast on");
    assert!(Script::read("a.tcl", &text).is_ok());
}

/// Commands that add a second route between the two nodes, over a third node.
const AROUND: &str =
    "set c [$ns node]\n$ns duplex-link $a $c 1Mb 1ms DropTail\n$ns duplex-link $c $b 1Mb 1ms DropTail\n";

#[test]
fn link_costs_are_refused_only_if_there_are_several_routes() {
    for (commands, problem) in [
        ("[$ns link $a $b] cost 2", "costs of links"),
        ("$ns cost $a $b 2", "costs of links"),
        ("$a set multiPath_ 1", "one route"),
        ("Node set multiPath_ 1", "one route"),
    ] {
        assert!(refusal(&with(&format!("{AROUND}{commands}"))).contains(problem), "{commands}");
        assert!(Script::read("a.tcl", &with(commands)).is_ok(), "{commands}");
    }
    let none = "Node set multiPath_ 0\n[$ns link $a $b] cost 1\n$ns cost $a $b 1";
    assert!(Script::read("a.tcl", &with(&format!("{AROUND}{none}"))).is_ok());
}

/// A variable of a node belongs either to ns or to the script.
#[test]
fn node_variables_of_ns_are_refused_and_those_of_scripts_kept() {
    assert!(refusal(&with("$a set rtsize_ 3")).contains("\"rtsize_\" of a node"));
    assert!(refusal(&with("$a set dmux_ x")).contains("\"dmux_\" of a node"));
    let script = read(
        "$a set X_ 30\n$a set speed 4Mb\nset c [$ns node]\n$ns duplex-link $a $c [$a set speed] 1ms DropTail",
    );
    assert_eq!(script.network.links[1].rate.unwrap().to_string(), "4Mbit");
    assert_eq!(script.ignored.len(), 1, "{:?}", script.ignored);
    let script = read(
        "set c [$ns node]\n$ns duplex-link $a $c [expr [$b set id_] + 1]Mb 1ms DropTail\nset l [$ns set link_(0:2)]\n[$l queue] set limit_ 9",
    );
    assert_eq!(script.network.links[1].rate.unwrap().to_string(), "2Mbit");
    assert_eq!(script.network.links[1].queue.unwrap().to_string(), "9p");
}

#[test]
fn attributes_equal_to_the_default_of_ns_are_accepted() {
    let tcp = "set t [new Agent/TCP/Reno]\n$ns attach-agent $a $t\n";
    assert!(
        Script::read(
            "a.tcl",
            &with(&format!("{tcp}$t set syn_ true\n$t set maxrto_ 60\n$t set tcpTick_ 0.01\n$t set mine 3"))
        )
        .is_ok()
    );
    let mistyped = read(&format!("{tcp}$t set windw_ 3")).ignored;
    assert!(mistyped[0].to_string().contains("$t set windw_ 3: ns has no such attribute"), "{mistyped:?}");
    assert!(refusal(&with(&format!("{tcp}$t set tcpTick_ 0.5"))).contains("hol supports only 0.01"));
    let bare = read("set c [$ns node]\n$ns duplex-link $a $c [expr 2 * 1000000] [expr 30 / 1000.0] DropTail");
    let link = &bare.network.links[1];
    assert_eq!(
        (link.rate.unwrap().to_string(), link.delay.unwrap().to_string()),
        ("2Mbit".into(), "30ms".into())
    );
}

/// A script may print the output of programs, the time of day and the environment, but not test them.
#[test]
fn a_script_cannot_depend_on_the_machine() {
    assert!(
        Script::read(
            "a.tcl",
            &with("puts \"[exec date] [clock seconds] $env(HOME)\"\nset seed [expr int([exec rand])]")
        )
        .is_ok()
    );
    for value in ["[exec date]", "[clock seconds]", "$env(HOME)"] {
        let error = refusal(&with(&format!("if {{{value} > 3}} {{ set x 1 }}")));
        assert!(error.contains("depends on results of the run"), "{error}");
    }
}

#[test]
fn files_of_ns_itself_are_built_in() {
    let script = read("source ../lan/vlan.tcl");
    assert!(
        script.ignored[0].to_string().contains("the file is a part of ns itself"),
        "{:?}",
        script.ignored
    );
}

/// ns loses a packet if the random variable is below the rate.
#[test]
fn an_error_model_may_draw_from_any_uniform_interval() {
    let model = "set v [new RandomVariable/Uniform]\n$v set min_ 0\n$v set max_ 100\nset em [new ErrorModel]\n$em set rate_ 10\n$em ranvar $v\n$ns lossmodel $em $a $b";
    assert_eq!(format!("{:?}", read(model).network.links[0].loss), "Some(Independent(Ratio(0.1)))");
}
