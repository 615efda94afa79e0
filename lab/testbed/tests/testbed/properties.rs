//! Any script is read or refused, and a written network is read back unchanged.

use hol_network::Topology;
use hol_testbed::{Script, write};
use proptest::prelude::*;

/// Pieces of which almost valid scripts are composed.
const PIECES: [&str; 95] = [
    "set ",
    "ns",
    " [new Simulator]",
    "\n",
    "a",
    "b",
    "c",
    " [$ns node]",
    "$a",
    "$b",
    "$ns",
    " ",
    " ",
    "\n",
    "duplex-link ",
    "[$ns duplex-link $a $b 1Mb 5ms DropTail]",
    "[$ns make-lan \"$a $b\" 1Mb 0ms]",
    "queue-limit ",
    "0.4Mb",
    "25ms",
    "RED",
    "tb-set-link-loss ",
    "tb-set-ip ",
    "10.1.1.2",
    "0.01",
    "for ",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "\\",
    "\\\n",
    ";",
    "#",
    "while ",
    "foreach ",
    "if ",
    "else ",
    "expr ",
    "incr ",
    "proc ",
    "return ",
    "1",
    "-9223372036854775808",
    " + ",
    " % ",
    "-1",
    "**",
    "?",
    ":",
    "&&",
    "lappend ",
    "lrange ",
    "end-",
    "é",
    "$",
    "llength ",
    "Class ",
    "Class A -superclass {B Agent/TCP}\n",
    "A instproc f {x} {$self next; $self instvar x}\n",
    "$a proc f {} {$self f}\n",
    "[new A 1]",
    "[new B]",
    " instproc ",
    "instvar ",
    "$self ",
    "next ",
    "f ",
    "set x(1) ",
    "upvar #0 a b",
    "uplevel ",
    "uplevel 3 {",
    "regsub -all {(.)*} ",
    "regexp ",
    "regexp {(a|b?)*?[^]x]{1,2}$} ",
    "regsub -all {\\y} abc {\\1&} x",
    "string match {*[a-",
    "lsearch -all -regexp ",
    "lsort -unique -integer ",
    "split abc {}",
    "format %*.3g|%-5d ",
    "\\x4",
    "\\101",
    "catch {",
    "delete $a",
    "0x1f ** ",
    "foreach {a b} ",
    "[$defaultRNG uniform 0 ",
    "[new RandomVariable/Pareto]",
    "set e [new Application/Traffic/Pareto]\n$e set shape_ 0.01\n$e start\n",
    "$ns after 1 {$e stop}\n",
    "$ns run\n",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..60).prop_map(|pieces| pieces.concat())
}

/// Generates a script with a few nodes in a row, a LAN, and settings that may differ by direction.
fn networks() -> impl Strategy<Value = String> {
    let link = (1..2_000_000_u32, 0..100_000_u32, 0..100_u32, 1..200_u32, 0..3_usize, 1..100_u32);
    prop::collection::vec(link, 1..6).prop_map(|links| {
        let mut script = "set ns [new Simulator]\nset n(0) [$ns node]\n".to_owned();
        for (index, (rate, delay, loss, limit, kind, back)) in links.iter().enumerate() {
            let (next, kind) = (index + 1, ["DropTail", "RED", "GRED"][*kind]);
            script += &format!(
                "set n({next}) [$ns node]\nset l [$ns duplex-link $n({index}) $n({next}) {rate}kb {delay}us {kind}]\n\
                 tb-set-link-loss $l 0.{loss:02}\n$ns queue-limit $n({next}) $n({index}) {limit}\n\
                 tb-set-link-simplex-params $l $n({next}) {back}ms {back}Mb 0.{back}\n"
            );
        }
        script + "set all [$ns make-lan \"$n(0) $n(1)\" 10Mb 1ms]\ntb-set-lan-loss $all 0.1\n"
    })
}

proptest! {
    #[test]
    fn any_script_is_read_or_refused_with_a_position(soup in soup()) {
        let script = format!("set ns [new Simulator]\nset a [$ns node]\nset b [$ns node]\n$ns duplex-link $a $b 1Mb 5ms RED\n{soup}");
        match Script::read("soup.ns", &script) {
            Ok(script) => {
                let written = write(&Topology::new(&script.network).unwrap());
                let again = Script::read("again.ns", &written).unwrap().network;
                prop_assert_eq!(again, script.network, "{}", written);
            }
            Err(error) => prop_assert!(error.place.starts_with("soup.ns"), "{error}"),
        }
    }

    #[test]
    fn a_written_network_is_read_back_unchanged(script in networks()) {
        let network = Script::read("first.ns", &script).unwrap().network;
        let written = write(&Topology::new(&network).unwrap());
        let again = Script::read("again.ns", &written).unwrap().network;
        prop_assert_eq!(again, network, "{}", written);
    }
}
