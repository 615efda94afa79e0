//! The traffic of scripts, such as the examples of Marc Greis' tutorial for ns (isi.edu/nsnam/ns/tutorial).

use hol_testbed::{Flow, FlowLoad, Script};

/// Example 1b: two nodes, CBR over UDP.
const TWO_NODES: &str = r#"
#Create a simulator object
set ns [new Simulator]

#Open the nam trace file
set nf [open out.nam w]
$ns namtrace-all $nf

#Define a 'finish' procedure
proc finish {} {
        global ns nf
        $ns flush-trace
	#Close the trace file
        close $nf
	#Execute nam on the trace file
        exec nam out.nam &
        exit 0
}

#Create two nodes
set n0 [$ns node]
set n1 [$ns node]

#Create a duplex link between the nodes
$ns duplex-link $n0 $n1 1Mb 10ms DropTail

#Create a UDP agent and attach it to node n0
set udp0 [new Agent/UDP]
$ns attach-agent $n0 $udp0

# Create a CBR traffic source and attach it to udp0
set cbr0 [new Application/Traffic/CBR]
$cbr0 set packetSize_ 500
$cbr0 set interval_ 0.005
$cbr0 attach-agent $udp0

#Create a Null agent (a traffic sink) and attach it to node n1
set null0 [new Agent/Null]
$ns attach-agent $n1 $null0

#Connect the traffic source with the traffic sink
$ns connect $udp0 $null0

#Schedule events for the CBR agent
$ns at 0.5 "$cbr0 start"
$ns at 4.5 "$cbr0 stop"
#Call the finish procedure after 5 seconds of simulation time
$ns at 5.0 "finish"

#Run the simulation
$ns run
"#;

/// The simple example of the ns by Example pages: TCP with FTP beside UDP with CBR, over one bottleneck.
const BOTTLENECK: &str = r#"
set ns [new Simulator]
$ns color 1 Blue
$ns color 2 Red
set nf [open out.nam w]
$ns namtrace-all $nf
proc finish {} {
    global ns nf
    $ns flush-trace
    close $nf
    exec nam out.nam &
    exit 0
}
set n0 [$ns node]
set n1 [$ns node]
set n2 [$ns node]
set n3 [$ns node]
$ns duplex-link $n0 $n2 2Mb 10ms DropTail
$ns duplex-link $n1 $n2 2Mb 10ms DropTail
$ns duplex-link $n2 $n3 1.7Mb 20ms DropTail
$ns queue-limit $n2 $n3 10
$ns duplex-link-op $n0 $n2 orient right-down
$ns duplex-link-op $n2 $n3 queuePos 0.5
set tcp [new Agent/TCP]
$tcp set class_ 2
$ns attach-agent $n0 $tcp
set sink [new Agent/TCPSink]
$ns attach-agent $n3 $sink
$ns connect $tcp $sink
$tcp set fid_ 1
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ftp set type_ FTP
set udp [new Agent/UDP]
$ns attach-agent $n1 $udp
set null [new Agent/Null]
$ns attach-agent $n3 $null
$ns connect $udp $null
$udp set fid_ 2
set cbr [new Application/Traffic/CBR]
$cbr attach-agent $udp
$cbr set type_ CBR
$cbr set packet_size_ 1000
$cbr set rate_ 1mb
$cbr set random_ false
$ns at 0.1 "$cbr start"
$ns at 1.0 "$ftp start"
$ns at 4.0 "$ftp stop"
$ns at 4.5 "$cbr stop"
$ns at 4.5 "$ns detach-agent $n0 $tcp ; $ns detach-agent $n3 $sink"
$ns at 5.0 "finish"
puts "CBR packet size = [$cbr set packet_size_]"
puts "CBR interval = [$cbr set interval_]"
$ns run
"#;

fn flows(text: &str) -> Vec<Flow> {
    Script::read("a.ns", text).unwrap_or_else(|error| panic!("{error}")).flows
}

fn ms(time: hol_base::Duration) -> f64 {
    time.as_millis_f64()
}

/// Returns the octets of a packet's data, the ms between packets, and the number of packets at once.
fn every(flow: &Flow) -> (u64, f64, u16) {
    let FlowLoad::Every { size, interval, at_once, .. } = flow.load else { panic!("{flow:?}") };
    (size, ms(interval), at_once)
}

#[test]
fn cbr_over_udp_becomes_a_flow() {
    let [flow] = &flows(TWO_NODES)[..] else { panic!("one flow") };
    assert_eq!((&*flow.transport, &*flow.from, &*flow.to, &*flow.place), ("udp", "n0", "n1", "a.ns:32"));
    assert_eq!((ms(flow.start), ms(flow.stop)), (500.0, 4500.0));
    assert_eq!(every(flow), (500 - 28, 5.0, 1));
}

#[test]
fn a_greedy_flow_and_one_at_a_rate_share_a_bottleneck() {
    let [ftp, cbr] = &flows(BOTTLENECK)[..] else { panic!("two flows") };
    assert_eq!((ftp.label, &*ftp.from, &*ftp.to), (Some("Agent/TCP"), "n0", "n3"));
    assert_eq!(ftp.load, FlowLoad::Greedy { size: 1000, packets: None });
    assert_eq!((&*cbr.transport, every(cbr)), ("udp", (972, 8.0, 1)));
}

#[test]
fn commands_on_files_and_processes_are_listed_but_not_executed() {
    let ignored = Script::read("a.ns", TWO_NODES).unwrap().ignored;
    let lines: Vec<String> = ignored.iter().map(ToString::to_string).collect();
    assert!(lines[0].starts_with("a.ns:6: open out.nam w: scripts cannot open files"), "{lines:?}");
    let dangerous =
        format!("{TWO_NODES}\nexec touch /tmp/hol-was-here\nset f [open /tmp/hol-was-here w]\nclose $f\n");
    assert!(Script::read("a.ns", &dangerous).is_ok());
    assert!(!std::path::Path::new("/tmp/hol-was-here").exists());
}

/// The handle of a file is a word, which a script may pass on within a text.
#[test]
fn open_returns_a_handle_without_opening_a_file() {
    let record = "set window [open window w]\nproc record {agent file} { global ns\n puts $file \"[$ns now] [$agent set cwnd_]\"\n\
        $ns at [expr [$ns now] + 0.5] \"record $agent $file\" }\n$ns at 0.1 \"record $tcp $window\"\n$ns run";
    assert_eq!(flows(&BOTTLENECK.replace("$ns run", record)).len(), 2);
}

#[test]
fn all_unsupported_commands_are_reported_together() {
    let text = TWO_NODES.replace("Agent/UDP", "Agent/DCCP").replace(
        "$ns run",
        "$ns rtmodel-off 1.0 $n0 $n1\nset w [new RandomVariable/Pareto]\n$w median\nwobble\n$ns run",
    );
    let error = Script::read("a.ns", &text).unwrap_err().to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines.len() == 4, "{error}");
    for (line, what) in
        lines.iter().zip(["28:15: \"Agent/DCCP\"", "51:5: unknown command \"rtmodel-off\"", "53:4:", "54:1:"])
    {
        assert!(line.contains(what), "{what}: {error}");
    }
}
