//! Classes and objects of OTcl in scripts. The expected values are what ns 2.35 prints for the same commands.

use hol_testbed::{FlowLoad, Script};

/// Runs commands that set `name` to a text, and returns the text, which is the name of a node.
fn value(commands: &str) -> String {
    let text = format!(
        "{commands}\nset ns [new Simulator]\nset [set name] [$ns node]\nset other [$ns node]\n\
         $ns duplex-link [set [set name]] $other 1Mb 1ms DropTail\n"
    );
    let script = Script::read("a.tcl", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    script.network.nodes[0].clone()
}

fn refusal(text: &str) -> String {
    Script::read("a.tcl", text).expect_err(text).to_string()
}

const BASE: &str = "Class Base\n\
    Base instproc init {name} { $self instvar name_; set name_ $name; $self set count 0 }\n\
    Base instproc hello {x {y 2}} { $self instvar name_ count; incr count; return \"$name_/$x/$y/$count/[$self info class]\" }\n";

#[test]
fn methods_access_the_variables_of_their_object() {
    for (commands, expected) in [
        ("set o [new Base me]; $o hello q; set name [$o hello w 5]", "me/w/5/2/Base"),
        ("set o [new Base me]; set p [new Base you]; $o hello q; set name [$p hello w]", "you/w/2/1/Base"),
        ("set o [new Base me]; $o set list {a b}; set name [lindex [$o set list] 1]", "b"),
        ("set o [new Base me]; $o set at(3) x; set name [$o array names at]", "3"),
        (
            "set o [new Base me]; $o proc own {} { $self instvar count; return own/$count }; set name [$o own]",
            "own/0",
        ),
        ("Base set limit 5; set name [Base set limit]", "5"),
        ("Base proc make {} { return [new $self made] }; set name [[Base make] hello 1]", "made/1/2/1/Base"),
        ("Base fred bob; set name [fred hello 1]", "bob/1/2/1/Base"),
        (
            "Base instproc rename {{name_ own}} { $self instvar {name_ own}; return $own }; set name [[new Base me] rename x]",
            "me",
        ),
    ] {
        assert_eq!(value(&format!("{BASE}{commands}")), expected, "{commands}");
    }
}

#[test]
fn next_calls_the_overridden_method() {
    let derived = "Class Derived -superclass Base\n\
        Derived instproc init {a b} { $self next $a; $self set list_ $b }\n\
        Derived instproc hello {x} { set r [$self next $x 7]; return derived/$r }\n\
        Class Mid -superclass Base\nMid instproc hello {args} { return \"mid/[eval $self next $args]\" }\n\
        Class Two -superclass {Mid Derived}\n";
    for (commands, expected) in [
        ("set name [[new Derived me {1 2}] hello q]", "derived/me/q/7/1/Derived"),
        ("set name [[new Two a b] hello z]", "mid/derived/a/z/7/1/Two"),
        ("set name [Base info subclass Mid]", "1"),
    ] {
        assert_eq!(value(&format!("{BASE}{derived}{commands}")), expected, "{commands}");
    }
    assert!(
        refusal(&format!("{BASE}[new Base me] nothing"))
            .contains("\"nothing\" is not a method of class Base")
    );
    assert!(refusal("Class A -superclass B\nClass B -superclass A").contains("its own superclass"));
}

/// A subclass of a class of ns creates ns's object, with its attributes.
#[test]
fn a_class_may_extend_a_class_of_ns() {
    let text = "set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 1ms DropTail\n\
        Class Small -superclass Agent/TCP/Reno\nSmall set window_ 7\n\
        Small instproc half {} { $self instvar window_ half_ packetSize_; set half_ [expr $window_ / 2]; set packetSize_ 500 }\n\
        Application/FTP instproc more {n} { $self instvar sent_; set sent_ [expr $sent_ + $n]; $self produce $sent_ }\n\
        Class Late -superclass Application/FTP\nLate instproc start {} { global ns; $ns after 2 \"$self begin\" }\n\
        Late instproc begin {} { $self instvar begun_; set begun_ 1; $self produce 3 }\n\
        Simulator instproc pair {from to} { $self instvar pairs_; set pairs_ 1; set t [new Small]; $t half; set s [new Agent/TCPSink]\n\
          $self attach-agent $from $t; $self attach-agent $to $s; $self connect $t $s; return $t }\n\
        set ftp [new Application/FTP]\n$ftp attach-agent [$ns pair $a $b]\n$ftp set sent_ 0\n\
        set late [new Late]\n$late attach-agent [$ns pair $b $a]\n\
        $ns at 1 \"$ftp more 10\"\n$ns at 2 \"$ftp more 5\"\n$ns at 1.5 \"$late start\"\n$ns at 9 {exit 0}\n$ns run\n";
    let flows = Script::read("a.tcl", text).unwrap_or_else(|error| panic!("{error}")).flows;
    assert!(
        flows[0].transport.contains("mss=500") && flows[0].transport.contains("receive_buffer=3500B"),
        "{flows:?}"
    );
    let FlowLoad::Scripted(packets) = &flows[0].load else { panic!("{flows:?}") };
    let last = packets.iter().filter(|(at, _)| at.to_string() == "1s").count();
    // The SYN counts as a packet.
    assert_eq!((packets.len(), last), (14, 4));
    assert_eq!(
        (&flows[1].load, flows[1].start.to_string()),
        (&FlowLoad::Greedy { size: 500, packets: Some(3) }, "3500ms".into())
    );
}

#[test]
fn methods_that_ns_would_call_are_refused_by_name() {
    for (commands, what) in [
        (
            "Agent/Ping instproc recv {from rtt} { puts $rtt }",
            "\"recv of Agent/Ping\": ns calls this method during the run",
        ),
        ("set t [new Agent/TCP]\n$t proc done {} { puts done }", "\"done of Agent/TCP\""),
        (
            "Class Mine -superclass Agent/UDP\nMine instproc process_data {size data} { $self send 10 }",
            "\"process_data of Agent/UDP\"",
        ),
        (
            "Simulator instproc simplex-link {a b c d e} {}",
            "\"simplex-link of Simulator\": this replaces a method that hol has built in",
        ),
        ("Application/FTP instproc start {} {}", "\"start of Application/FTP\""),
        ("set ns [new Simulator]\n$ns proc node {} {}", "\"node of Simulator\""),
    ] {
        let error = refusal(commands);
        assert!(error.lines().count() == 1 && error.contains(what), "{commands}: {error}");
    }
}

#[test]
fn upvar_and_uplevel_access_variables_of_callers() {
    assert_eq!(
        value("proc p {n} { upvar $n v; set v 3; uplevel {set w 9} }\nset z 1\np z\nset name $z/$w"),
        "3/9"
    );
    assert_eq!(value("proc q {} { upvar #0 g own; return $own }\nset g 4\nset name [q]"), "4");
    assert_eq!(value("regexp {(a+)b} xaaab all one\nset name $all/$one"), "aaab/aaa");
    assert_eq!(value("regsub -all {a(.)} abacad {<\\1&>} r\nset name $r"), "<bab><cac><dad>");
}

/// Limits keep a script from taking all memory or time.
#[test]
fn texts_and_class_hierarchies_are_limited() {
    let growth = "set x [regsub -all . [regsub -all . [regsub -all . [string range abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz 0 end] abcdefghijklmnopqrstuvwxyz&&&&&&&&&&&&&&] abcdefghijklmnopqrstuvwxyz&&&&&&&&&&&] abcdefghijklmnopqrstuvwxyz&&&&&&&&&&]";
    assert!(refusal(growth).contains("grows beyond"), "{}", refusal(growth));
    let chains = "foreach c {0 1} {\nClass C$c.0\nfor {set i 1} {$i < 90} {incr i} { Class C$c.$i -superclass C$c.[expr $i - 1] }\n}\n\
        catch {Class C0.0 -superclass C1.89}";
    assert!(refusal(chains).contains("class \"C0.0\" already has subclasses"), "{}", refusal(chains));
    let classes = "Class C0\nfor {set i 0} {$i < 300} {incr i} { Class C[expr $i + 1] -superclass C$i }";
    assert!(refusal(classes).contains("this class has more than 100 superclasses"), "{}", refusal(classes));
}
