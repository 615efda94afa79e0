//! Tests commands and expressions against the results that tclsh 8.6 prints for them.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::interpreter::{Interpreter, Outcome, Stop};
use super::number::Number;
use super::*;

/// A host that has no commands.
struct Nobody;

impl ScriptHost for Nobody {
    fn command(&mut self, _: &[Word]) -> Option<Result<String, WordError>> {
        None
    }
    fn name_after_variable(&mut self, _: &str, _: &str) {}
    fn report_unknown(&mut self, complaint: WordError) -> Result<String, WordError> {
        Err(complaint)
    }
    fn has_attribute(&self, _: &str, _: &str) -> bool {
        false
    }
    fn class_of(&self, _: &str) -> Option<String> {
        None
    }
    fn note_script_variable(&mut self, _: &[Word]) {}
    fn note_unseeded(&mut self, _: usize) {}
    fn check_method(&mut self, _: &Word, _: &Word, _: bool) {}
    fn has_file(&self, _: &str) -> bool {
        false
    }
    fn names(&self) -> Vec<&'static str> {
        Vec::new()
    }
    fn file(&mut self, _: &[Word]) -> Result<Option<(String, usize)>, WordError> {
        Ok(None)
    }
    fn is_over(&self) -> bool {
        false
    }
}

/// Expressions whose results are compared with tclsh, in order: the random numbers of `rand` follow each other.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("-2 ** 2", "4"),
    ("2 ** 3 ** 2", "512"),
    ("1 + 2 == 3 && 4 < 5", "1"),
    ("7 / -2", "-4"),
    ("-7 % 3", "2"),
    ("5 % -3", "-1"),
    ("int(-2.7)", "-2"),
    ("round(2.5)", "3"),
    ("round(-2.5)", "-3"),
    ("1 ? 2 : 3 / 0", "2"),
    ("0 && 1 / 0", "0"),
    ("\"b\" eq \"b\"", "1"),
    ("1e3 + 1", "1001.0"),
    ("!0 + 1", "2"),
    ("$a > 3 ? \"x\" : \"y\"", "x"),
    ("7 / 2.0", "3.5"),
    ("abs(-3)", "3"),
    ("sqrt(16)", "4.0"),
    ("1 || [error no]", "1"),
    ("\"10\" == \"10.0\"", "1"),
    ("\"abc\" < \"abd\"", "1"),
    ("10 - 2 - 3", "5"),
    ("2 + 3 * 4 % 5", "4"),
    ("ceil(1.2)", "2.0"),
    ("1 < 2 == 1", "1"),
    ("\"1\" ne \"1.0\"", "1"),
    ("- 3 + 5", "2"),
    ("pow(2, 3)", "8.0"),
    ("log10(1000)", "3.0"),
    ("srand(7)", "5.4784584815979276e-5"),
    ("rand()", "0.9207645170021637"),
    ("srand(0)", "0.24257829889775176"),
    ("$argc > 0", "0"),
    ("010 + 1", "9"),
    ("0x1F + 0b11 + 0o17", "49"),
    ("0x1e+5", "35"),
    ("08.5", "8.5"),
    ("\"08\" == 8", "0"),
    ("\"010\"", "8"),
    ("\" 5 \"", "5"),
    ("1 ? \"1.50\" : 2", "1.5"),
    ("0 * -1.0 == 0", "1"),
    ("0 * -1.0", "-0.0"),
    ("-0.0", "-0.0"),
    ("- \"5\"", "-5"),
    ("+ \"010\"", "8"),
    ("int(9007199254740993)", "9007199254740993"),
    ("round(9007199254740993)", "9007199254740993"),
    ("abs(-9007199254740993)", "9007199254740993"),
    ("int(\"0x10\")", "16"),
    ("double(010)", "8.0"),
    ("abs(-0.0)", "0.0"),
    ("2 ** -1", "0"),
    ("1 ** -5", "1"),
    ("(-1) ** -3", "-1"),
    ("(-1) ** -2", "1"),
    ("0 ** 0", "1"),
    ("2 ** 62", "4611686018427387904"),
    ("2 ** 0.5", "1.4142135623730951"),
    ("true", "true"),
    ("!yes", "0"),
    ("true && on", "1"),
    ("\"yes\" == \"yes\"", "1"),
    ("\"true\" == 1", "0"),
    ("3 > \"abc\"", "0"),
    ("1e16", "10000000000000000.0"),
    ("1e17", "1e+17"),
    ("123456789012345678.0", "1.2345678901234568e+17"),
    ("0.0001", "0.0001"),
    ("0.00001", "1e-5"),
    ("1e100", "1e+100"),
    ("1.0 / 3", "0.3333333333333333"),
    ("1.0e5", "100000.0"),
    ("3.10", "3.1"),
    ("1e22", "1e+22"),
    ("01 eq 1", "0"),
    ("7.81 ne 1e10 == -613", "0"),
    ("3.594677943969137e16", "35946779439691370.0"),
    ("fmod(-7, 3)", "-1.0"),
    ("hypot(3, 4)", "5.0"),
    ("9223372036854775807", "9223372036854775807"),
    ("9007199254740993 == 9007199254740992.0", "0"),
    ("9007199254740993 < 9007199254740994.0", "1"),
    ("-9007199254740993 > -9007199254740992.0", "0"),
    ("1 < 1.5 && 1.5 > 1 && -1.5 < -1", "1"),
    ("(-9223372036854775807 - 1) % -1", "0"),
    ("1eq1", "1"),
    ("0X1e+1", "31"),
    ("0b101 + 0o17", "20"),
    (".5 + 5. + 1.e2", "105.5"),
    ("08.5", "8.5"),
    ("5 & 3 | 8 ^ 1", "9"),
    ("~5", "-6"),
    ("1 << 3 + 1", "16"),
    ("-1 >> 70", "-1"),
    ("1 in {1 2} && 3 ni {1 2}", "1"),
    ("!of", "1"),
    ("TRUE && t", "1"),
    ("max(1, 2.0, -3)", "2.0"),
    ("min(3)", "3"),
    ("isqrt(17)", "4"),
    ("bool(0.5)", "1"),
    ("wide(3.7) + entier(-3.7)", "0"),
    ("atan2(1, 2)", "0.4636476090008061"),
    ("pow(2, 3)", "8.0"),
];

const COMMANDS: &[(&str, &str)] = &[
    ("array set a {x 1 y 2}; lsort [array names a]", "x y"),
    ("array set a {x 1 y 2}; array size a", "2"),
    ("array set a {a1 1 b1 2}; array names a {[a]*}", "a1"),
    (
        "set a(x) 1; list [info exists a(x)] [info exists a] [info exists b] [array exists a] [array exists b]",
        "1 1 0 1 0",
    ),
    ("set a(x) 1; array get a", "x 1"),
    ("array set a {x 1 y 2}; unset a(x); array names a", "y"),
    ("foreach i {n3 n1 n2 n4} {set a($i) 1}; array names a", "n2 n3 n4 n1"),
    (
        "for {set i 0} {$i < 20} {incr i} {set a($i) 1}; array names a",
        "17 0 18 1 19 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
    ),
    (
        "foreach i {sink src router a b c} {set a($i) $i}; array get a",
        "src src a a router router sink sink b b c c",
    ),
    ("array set a {x 1}; unset a; info exists a", "0"),
    ("switch b { a {set r 1} b - c {set r 2} default {set r 3} }", "2"),
    ("switch -glob -- abc a* {set r 1} default {set r 3}", "1"),
    ("switch -glob {[a]} {{[a]} {set r 1} default {set r 2}}", "2"),
    ("eval set x 5", "5"),
    ("eval {set x 6}", "6"),
    ("string length abc", "3"),
    ("string range abcdef 1 end-1", "bcde"),
    ("string range abc -5 1", "ab"),
    ("string compare a b", "-1"),
    ("string equal a a", "1"),
    ("string match {a*c} abbc", "1"),
    ("string match {[ab]*} abc", "1"),
    ("string match {[a-c]x} bx", "1"),
    ("string match {[^a]} b", "0"),
    ("string match {\\*a} *a", "1"),
    ("string match {a\\*} ab", "0"),
    ("string match {[a\\-c]} b", "1"),
    ("string match {[]a]} a", "0"),
    ("string match {[a} a", "1"),
    ("string match {[abc} d", "0"),
    ("string match {[--/]} .", "1"),
    ("string match *a*b*c xaybzc", "1"),
    ("string match *a*b*c xaybz", "0"),
    ("string match \"a\\\\\" \"a\\\\\"", "0"),
    ("string toupper abc", "ABC"),
    ("string first b abc", "1"),
    ("string first {} abc", "-1"),
    ("string trimright abcb b", "abc"),
    ("string trimleft {  a }", "a "),
    ("string trim xxaxx x", "a"),
    ("string index abc end", "c"),
    ("string index abc 1+1", "c"),
    ("format %05.2f|%d|%-4s|%x 3.14159 7 ab 255", "03.14|7|ab  |ff"),
    ("format %d%% 5", "5%"),
    ("format %.2g|%g|%.3s 1.2345 0.123456789 abcdef", "1.2|0.123457|abc"),
    ("format %+d|%*d|%-*d|%.*f 3 5 3 5 3 2 3.14159", "+3|    3|3    |3.14"),
    ("format \"%+5d|%-5d|% d|%+05d|%05d\" 3 4 5 3 -3", "   +3|4    | 5|+0003|-0003"),
    ("format %g|%g|%g|%g|%g 100000 1000000 1e-5 0.0001 12345.6789", "100000|1e+06|1e-05|0.0001|12345.7"),
    ("format %g|%g|%g 0 -0.0 1e100", "0|-0|1e+100"),
    ("format %e|%.3e|%E 12345.678 0 1.5", "1.234568e+04|0.000e+00|1.500000E+00"),
    ("format %G|%.10g|%.17g|%10.3g 1e-10 0.1 0.1 1234567", "1E-10|0.1|0.10000000000000001|  1.23e+06"),
    ("format %05s|%5s|%-5.2s| abc a abc", "00abc|    a|ab   |"),
    ("format %x|%X|%o|%u -1 255 8 -1", "ffffffffffffffff|FF|10|18446744073709551615"),
    ("format %.3d|%c|%5c 5 65 65", "005|A|    A"),
    ("format %d|%d|%i 0x10 010 { 5 }", "16|8|5"),
    ("format %.0f|%.0e 2.5 12345", "2|1e+04"),
    ("format %05.1f -2.55", "-02.5"),
    ("format %ld 3000000000", "3000000000"),
    ("lsearch {a b c} b", "1"),
    ("lsearch {n0 n1} n*", "0"),
    ("lsearch -exact {n0 n1} n*", "-1"),
    ("lsearch -regexp {n0 n1} {1$}", "1"),
    ("lsearch -all {a b a} a", "0 2"),
    ("lsearch -all {a b} c", ""),
    ("lsearch {{a b} c} {a b}", "0"),
    ("linsert {a c} 1 b", "a b c"),
    ("linsert {a b} end x", "a b x"),
    ("linsert {a b} end-1 x", "a x b"),
    ("lreplace {a b c} 1 1 x y", "a x y c"),
    ("lreplace {a b c} 1 0 x", "a x b c"),
    ("lsort -integer {10 9 8}", "8 9 10"),
    ("lsort -integer {10 9 010}", "010 9 10"),
    ("lsort -real {1.5 1e0}", "1e0 1.5"),
    ("lsort -decreasing -integer {1 01 2}", "2 1 01"),
    ("lsort -integer -unique {1 01 2}", "01 2"),
    ("lsort -unique -decreasing {a b a}", "b a"),
    ("lreverse {a b}", "b a"),
    ("lindex {a\\nb c} 0", "a\nb"),
    ("lindex {\"a\\tb\" c} 0", "a\tb"),
    ("lindex {{a\\nb} c} 0", "a\\nb"),
    ("lindex {a b c} 1+1", "c"),
    ("lindex {a b c} end+1", ""),
    ("lindex {a b c} end-01", "b"),
    ("lappend l {a b} c; lappend l d\\;", "{a b} c {d;}"),
    ("set l { a  b}; lappend l #c", "a b #c"),
    ("lappend l #c", "{#c}"),
    ("list {} a\\{ {a b} \\$x {a\"b} #a b#", "{} a\\{ {a b} {$x} a\\\"b #a b#"),
    ("list #a {a\\}b} a{b}c {]} {a b]} {\"a} a\\\\nb", "{#a} {a\\}b} a{b}c \\] {a b]} {\"a} {a\\nb}"),
    ("list \"a b\\\\\" \"a\\nb\\}\"", "a\\ b\\\\ a\\nb\\}"),
    ("split abc {}", "a b c"),
    ("split {a  b}", "a {} b"),
    ("split {} ,", ""),
    ("split ,a,b, ,", "{} a b {}"),
    ("join {a {b c}} -", "a-b c"),
    ("lindex {a b}", "a b"),
    ("concat { a  b } {} c", "a  b c"),
    ("set i 1; set j 2; list $i:$j ${i}::x", "1:2 1::x"),
    ("set ::m 4; list $::m", "4"),
    ("set x a\\x41\\u0041\\101\\x4142\\1011\\u00e9", "aAAAA42A1é"),
    ("set x \\xzz", "xzz"),
    ("list [catch {append x}] [append x a b] [append x]", "1 ab ab"),
    ("lindex {a {b c}} {1 0}", "b"),
    ("list [lindex {a {b c}} 1 0] [lindex {a b} {}] [lindex {a b} { 1 }]", "b {a b} b"),
    ("list [catch {expr {1 ? 2 : nosuch(3)}}] [catch {expr {nosuch(3)}}]", "0 1"),
    ("set x \"a\\tb\\\n     c\"", "a\tb c"),
    ("regsub {b+} abbbc {-&-}", "a-bbb-c"),
    ("regexp -nocase -- B abc", "1"),
    ("regexp {a|ab} ab m; set m", "ab"),
    ("regexp {(a?)(ab)?} ab m; set m", "ab"),
    ("regexp {(ab|a)(bc)?} abc m; set m", "abc"),
    ("regexp {(a|ab)(c|bcd)(d*)} abcd all b c d; list $all $b $c $d", "abcd ab c d"),
    ("regexp {(a|b)*} ab all g; list $all $g", "ab b"),
    ("regexp {((a)|b)*} ab all x y; list $all $x $y", "ab b {}"),
    ("regexp {(a+|b+)*} aabb all x; list $all $x", "aabb bb"),
    ("regexp {(a|ab)*c} abac all x; list $all $x", "abac a"),
    ("regexp {(a*?)(a*)} aa all g h; list $all $g $h", "{} {} {}"),
    ("regexp {(a*)(a*?)} aa all g h; list $all $g $h", "aa aa {}"),
    ("regexp {x(.*?)b(.*)} xaabcb all x y; list $all $x $y", "xaab aa {}"),
    ("regexp {a?(.*?)b(.*)} xaabcb all x y; list $all $x $y", "xaabcb xaa cb"),
    ("regexp {(a|b|cd|e)+?f} acdf m; set m", "acdf"),
    ("regexp {(a)(b)?} a all x y; list $all $x $y", "a a {}"),
    ("regexp {a{1,2}?} aa m; set m", "a"),
    ("regexp {a{2}} aa", "1"),
    ("regexp {a.c} \"a\\nc\"", "1"),
    ("regexp {^b} \"a\\nb\"", "0"),
    ("regexp {a$} \"a\\n\"", "0"),
    ("regexp {\\mfoo\\M} {a foo}", "1"),
    ("regexp {a\\yb} ab", "0"),
    ("regexp {[]a]+} {a]b} m; set m", "a]"),
    ("regexp {[a-]+} a-a m; set m", "a-a"),
    ("regexp {[[:alpha:][:digit:]_]+} a1_ m; set m", "a1_"),
    ("regexp {\\w+\\s+\\S+} {ab  cd} m; set m", "ab  cd"),
    ("regexp {\\d+\\.\\d+} v12.5 m; set m", "12.5"),
    ("regexp -nocase {[a-c]+} ABC m; set m", "ABC"),
    ("regsub -all -nocase {[^a]} #aA -", "-aA"),
    ("regexp {\\x41\\u0042} AB", "1"),
    ("regsub -all . \"a\\nb\" x", "xxx"),
    ("regsub -all {a} banana {[&]}", "b[a]n[a]n[a]"),
    ("regsub -all {x*} abc -", "-a-b-c-"),
    ("regsub -all {b*} abc x", "xaxxcx"),
    ("regexp {(a*)+} aa all x; list $all $x", "aa {}"),
    (r"regexp {(a*?){1,2}\y} ba all x; list $all $x", "{} {}"),
    (r"regsub -all {\y} ab {<&>}", "<>a<>b"),
    ("regsub -all {} abc -", "-a-b-c"),
    ("regsub -all {} abc <&>", "<>a<>b<>c<>"),
    ("regsub -all {} {} -", ""),
    ("regsub {} abc -", "-abc"),
    ("regsub -all {^} abc x", "xabc"),
    ("regsub -all {$} abc x", "abcx"),
    ("regsub -all {(a)|b} aXb {<\\1>}", "<a>X<>"),
    ("regsub {(\\w+) (\\w+)} {a b} {\\2 \\1}", "b a"),
    ("regsub -all {\\d} a1b2 {\\\\&\\&\\q}", "a\\1&\\qb\\2&\\q"),
    ("file dirname a/b/c.tcl", "a/b"),
    ("file rootname c.tcl", "c"),
    ("file tail a/b/c.tcl", "c.tcl"),
    ("file join a// b/ c", "a/b/c"),
    ("list [file join a /b c] [file join /] [file join / a] [file join {} a {}]", "/b/c / /a a"),
    ("list [file join ~a b] [file join a ~b] [file join a ./~b] [file join a ./b]", "~a/b ~b a/~b a/./b"),
    (
        "list [file dirname a/] [file tail a/] [file dirname a//b] [file dirname /a] [file dirname /]",
        ". a a / /",
    ),
    ("expr {1 + \\\n 2}", "3"),
    ("foreach a {1 2 3} {b c} {x y z} {append r $a$b$c.}; set r", "1xy.2z.3."),
    ("catch {expr 1 / 0}", "1"),
    ("catch {expr 4 / 2} v; set v", "2"),
    ("catch {error boom} v; set v", "boom"),
    ("list [catch {return 5} v] $v [catch break] [catch continue]", "2 5 3 4"),
    ("lassign {1 2 3} a b; list $a $b", "1 2"),
    ("incr i 010", "8"),
    ("proc lreverse {l} {return mine}; lreverse {a b}", "mine"),
    (
        "proc xa {} {}; proc xb {} {}; list [info procs x*] [info procs xb] [info procs ::xa]",
        "{xa xb} xb ::xa",
    ),
    ("proc ::xf {} {return 1}; list [xf] [::xf] [info procs xf]", "1 1 xf"),
    ("proc f {} break; list [catch {while 1 f}] [catch {foreach x {1 2} {f}}]", "1 1"),
    ("proc f {} {foreach x {1 2} {if {$x == 1} continue; return $x}}; f", "2"),
    ("proc f {a {b 2} args} {list $a $b $args}; list [f 1] [f 1 2 3 4]", "{1 2 {}} {1 2 {3 4}}"),
];

fn value(outcome: Outcome, what: &str) -> String {
    outcome.unwrap_or_else(|stop| panic!("{what}: {stop:?}"))
}

#[test]
fn expressions_have_the_values_of_tclsh_8_6() {
    let mut interpreter = Interpreter::new(Nobody, "a.tcl");
    interpreter.run("set a 7").unwrap();
    for (expression, expected) in EXPRESSIONS {
        let result = interpreter.expression(Text::whole(expression));
        assert_eq!(value(result, expression), *expected, "{expression}");
    }
}

#[test]
fn commands_have_the_results_of_tclsh_8_6() {
    for (command, expected) in COMMANDS {
        let result = Interpreter::new(Nobody, "a.tcl").evaluate(Text::whole(command));
        assert_eq!(value(result, command), *expected, "{command}");
    }
}

/// Commands are refused that tclsh refuses, too, or that hol lacks.
#[test]
fn unsupported_commands_and_numbers_are_refused() {
    for (command, problem) in [
        ("expr {99999999999999999999 + 1}", "has more than 64 bits"),
        ("expr {99999999999999999999 == 1e20}", "has more than 64 bits"),
        ("expr {{0xffffffffffffffffff}}", "has more than 64 bits"),
        ("expr {Inf}", "not a finite number"),
        ("expr {{-inf} < -5}", "not a finite number"),
        ("expr {1e999}", "not a finite number"),
        ("expr {1 / 0.0}", "not a finite number"),
        ("expr {1 << 64}", "too large for a whole number"),
        ("while 1 {proc f {} break; f}", "outside of any loop"),
        ("expr {int(1e30)}", "too large for a whole number"),
        ("expr {2 ** 63}", "too large for a whole number"),
        ("expr {0 ** -1}", "zero has no negative power"),
        ("expr {08 + 1}", "\"08\" is not a number"),
        ("lsort -integer {a 1}", "\"a\" is not a number, which lsort -integer needs"),
        ("lsort -dictionary {a 1}", "the syntax is lsort"),
        ("lsearch -sorted {a b} a", "the syntax is lsearch"),
        ("lindex {a b} x", "\"x\" is not an index"),
        ("format %d 3.5", "\"3.5\" is not a whole number"),
        ("format %#x 5", "is not supported"),
        ("format %2000d 5", "is not supported"),
        (r"regexp {(a)\1} aa", "\\1 is not supported"),
        ("regexp {a(?=b)} ab", "(? is supported only as"),
        ("regexp {a(b} ab", "a parenthesis is never closed"),
        ("regexp {a{2,1}} aa", "repetitions are written"),
        ("switch -regexp a {a {}}", "the syntax is switch"),
    ] {
        match Interpreter::new(Nobody, "a.tcl").run(command) {
            Err(error) => assert!(error.problem.contains(problem), "{command}: {}", error.problem),
            Ok(()) => panic!("{command} is accepted"),
        }
    }
}

/// Features of Tcl that hol lacks are refused even inside of `catch`, whereas `catch` catches errors of Tcl.
#[test]
fn catch_does_not_hide_unsupported_commands() {
    for command in [
        "string map {a b} abc",
        "string repeat a 3",
        "lsort -dictionary {a 1}",
        "lsearch -sorted {a b} a",
        "info level",
        "switch -regexp a {a {}}",
        "file size a.tcl",
        "regexp {(a)\\1} aa",
        "format %#x 5",
        "format %d 99999999999999999999",
        "expr 2 ** 63",
        "expr 1 / 0.0",
        "expr 99999999999999999999",
        "expr 0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "expr {\"inf\" > 5}",
        "incr i 9223372036854775807; incr i",
        "if {[clock seconds] > 5} {}",
        "lindex {a b} [clock seconds]",
        "return -code error",
        "set x [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[set y]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    ] {
        let result = Interpreter::new(Nobody, "a.tcl").run(&format!("catch {{{command}}}"));
        assert!(result.is_err(), "{command} is caught");
    }
    for command in [
        "set nosuch",
        "expr 1 / 0",
        "expr 1 +",
        "expr abc + 1",
        "expr 12abc",
        "expr log(-1)",
        "incr i a",
        "lindex {a b} x",
        "format %d 3.5",
        "lsort -integer {a b}",
        "error boom",
        "proc f {a} {}; f",
        "proc f {} break; f",
    ] {
        let result = Interpreter::new(Nobody, "a.tcl").evaluate(Text::whole(&format!("catch {{{command}}}")));
        assert_eq!(value(result, command), "1", "{command}");
    }
}

/// A procedure that creates a text of 1 MiB of this letter.
const LONG: &str = "proc long {letter} {append x $letter; for {set i 0} {$i < 20} {incr i} {append x $x}; return $x}; set x [long a];";

/// Whatever a script does, it ends before it uses too much time or memory, and `catch` does not hide the error.
#[test]
fn scripts_end_at_the_limits() {
    let (turns, commands, octets) = ("after 100000 iterations and calls", "after 2000000 commands", "octets");
    for (script, limit) in [
        ("while 1 {}".to_owned(), turns),
        ("proc f {} {}; set i 0; while {[incr i] < 99999} {f}".to_owned(), turns),
        (format!("for {{set i 0}} {{$i < 99999}} {{incr i}} {{{}}}", "set a 1;".repeat(30)), commands),
        ("set x {catch $x; catch $x}; eval $x".to_owned(), "nested more than"),
        ("proc f {} { catch f; catch f }; f".to_owned(), "nested more than"),
        (format!("set x {{{}eval $x{}}}; eval $x", "eval [".repeat(49), "]".repeat(49)), "nested more than"),
        ("set x {expr {1 + [eval $x]}}; eval $x".to_owned(), "nested more than"),
        (format!("{LONG} set y [long &]; regsub {{.*}} $x $y z"), "grows beyond"),
        (format!("{LONG} list {}", "$x".repeat(20_000)), octets),
        (format!("{LONG} list {}", "$x ".repeat(20_000)), octets),
        (format!("{LONG} for {{set i 0}} {{$i < 20000}} {{incr i}} {{set m($i) $x}}"), octets),
        (format!("{LONG} for {{set i 0}} {{$i < 90000}} {{incr i}} {{string length $x}}"), octets),
        (format!("{LONG} for {{set i 0}} {{$i < 90000}} {{incr i}} {{proc p$i {{}} $x}}"), octets),
        (
            format!(
                "{LONG} string match *a*a*a*a*b $x$x$x; string match [regsub -all a [string range $x 0 9999] *a]b $x"
            ),
            octets,
        ),
        (format!("{LONG} string trim $x $x"), octets),
        (format!("{LONG} lindex $x [regsub -all a [string range $x 0 99999] {{0 }}]"), octets),
        (format!("{LONG} string length [join [split $x {{}}] $x]"), "grows beyond"),
        (format!("{LONG} split $x $x"), octets),
        (format!("{LONG} regexp {{(a*)*b}} $x"), octets),
        (format!("{LONG} regexp {{[{}]*b}} $x", "b-c".repeat(1000)), octets),
        (format!("{LONG} regexp {{(?:[{}a])*b}} $x", "b-c".repeat(1000)), octets),
        (
            format!(
                "set p [string range [{}] 0 4000]; for {{set i 0}} {{$i < 90000}} {{incr i}} {{regexp $p b}}",
                "proc long {} {append x a; for {set i 0} {$i < 12} {incr i} {append x $x}; return $x}; long"
            ),
            octets,
        ),
        (format!("{LONG} for {{set i 0}} {{$i < 90000}} {{incr i}} {{lsearch -regexp {{}} $x}}"), octets),
        (
            format!("{LONG} set l [split $x {{}}]; for {{set i 0}} {{$i < 99}} {{incr i}} {{lsort $l}}"),
            octets,
        ),
        (
            format!(
                "{LONG} set l [split [string range $x 0 500000] {{}}]; {} {}",
                "foreach a $l {".repeat(50),
                "}".repeat(50)
            ),
            octets,
        ),
        ("for {set i 0} {$i < 90000} {incr i} {catch {set nosuch}}".to_owned(), octets),
        (format!(r#"{LONG} set y "eval \$y; #[string range $x 0 900000]"; eval $y"#), "are nested"),
        (
            format!("{LONG} format [regsub -all a [string range $x 0 9999] %999s] {}", "{} ".repeat(9999)),
            "grows beyond",
        ),
    ] {
        let start = &script[..script.len().min(200)];
        let mut interpreter = Interpreter::new(Nobody, "a.tcl");
        // Three quarters of the limits, so that the test is quick.
        interpreter.budget.charge_commands(0, 1_500_000).unwrap();
        interpreter.budget.charge_octets(0, 3 << 27).unwrap();
        let result = interpreter.run(&format!("catch {{{script}}}"));
        let problem = result.expect_err(start).problem;
        assert!(problem.contains(limit), "{start}: {problem}");
    }
}

/// Returns the results that tclsh prints for a script, which are separated by `\u1\u2`.
fn tclsh(script: &str) -> Vec<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("hol-tclsh-{}-{number}.tcl", std::process::id()));
    std::fs::write(&file, format!("fconfigure stdout -encoding utf-8 -translation lf\nset a 7\n{script}"))
        .unwrap();
    let output = Command::new("tclsh").arg(&file).output().expect("tclsh is installed");
    std::fs::remove_file(&file).unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().split("\u{1}\u{2}").map(str::to_owned).collect()
}

/// Returns a Tcl command whose value is this text.
fn literal(text: &str) -> String {
    let hex: String = text.bytes().map(|octet| format!("{octet:02x}")).collect();
    format!("[encoding convertfrom utf-8 [binary format H* \"{hex}\"]]")
}

#[test]
#[ignore = "needs tclsh 8.6 (package tcl8.6)"]
fn tclsh_prints_the_tables() {
    let mut script = String::new();
    for (expression, _) in EXPRESSIONS {
        script += &format!("puts -nonewline [expr {}]\\u1\\u2\n", literal(expression));
    }
    for (command, _) in COMMANDS {
        let command = literal(command);
        script +=
            &format!("interp create own\nputs -nonewline [own eval {command}]\\u1\\u2\ninterp delete own\n");
    }
    for ((what, expected), printed) in EXPRESSIONS.iter().chain(COMMANDS).zip(tclsh(&script)) {
        assert_eq!(printed, *expected, "{what}");
    }
}

/// Operands and operators of random expressions.
const OPERANDS: &str = "0 1 2 3 5 7 8 63 010 08 0x1F 0X1e 0b11 0o17 1.5 .5 5. 1e3 1e-7 0.0 2.5 1e300 1e16 123456.789 9007199254740993 9007199254740994.0 \
    9223372036854775807 4611686018427387904 99999999999999999999 $a \"b\" \"\" {x} {ab c} \" 5 \" \"0x10\" \"-3\" \"Inf\" true off t o 12abc";
const OPERATORS: &str =
    "+ - * / % ** + - * / % ** < > <= >= == != eq ne in ni && || & | ^ << >> + - * / - + - ~ ! ( ) ?";
const FUNCTIONS: &str = "int round abs floor ceil sqrt pow fmod max min isqrt bool wide entier double log log10 hypot exp sin atan2 acos nosuch";

/// Words that random commands have as arguments.
const WORDS: &str = "{} a b ab abc {a b} {a {b c}} {{} x} \\{ \\} {a\\} \" \\\" # #a $a \\$ [list\\ a] ; -1 0 1 2 end end-1 1+1 010 08 1.5 1e2 { 5 } 0x1f * ? a* {[a-c]} {[^a]} . .* (a)b (a|b)* a+ a{2} ^a b$ \\\\y {\\m} {[[:alpha:]]+} & -all -nocase -- \
    -integer -real -unique -decreasing -exact -glob -regexp %d %s %5.2f %-4s|%x %g %e %c /a a/b ./a é \\u00e9 x\\ny";

/// The beginnings of random commands, to which words are added as arguments.
const HEADS: [&str; 44] = [
    "list",
    "llength",
    "lindex",
    "lrange",
    "lreverse",
    "linsert",
    "lreplace",
    "lsearch",
    "lsort",
    "join",
    "split",
    "concat",
    "string length",
    "string equal",
    "string compare",
    "string match",
    "string first",
    "string index",
    "string range",
    "string tolower",
    "string toupper",
    "string trim",
    "string trimleft",
    "string trimright",
    "format",
    "format",
    "regexp",
    "regexp",
    "regsub",
    "regsub -all",
    "file join",
    "file dirname",
    "file tail",
    "file rootname",
    "file extension",
    "lappend x",
    "append x",
    "set x",
    "incr x",
    "switch -glob --",
    "lassign",
    "foreach x",
    "array set y",
    "expr",
];

/// Random expressions and commands give the same results as in tclsh, or are refused; those that fail in tclsh fail
/// here, too.
#[test]
#[ignore = "needs tclsh 8.6 (package tcl8.6)"]
fn random_commands_have_the_results_of_tclsh() {
    let mut state = std::env::var("HOL_SEED").map_or(1_u64, |seed| seed.parse().unwrap());
    let mut below = |count: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % count
    };
    let tables = [OPERANDS, OPERATORS, FUNCTIONS].map(split_pieces);
    let words = split_pieces(WORDS);
    let mut commands = Vec::new();
    for _ in 0..10_000 {
        let depth = below(5);
        commands.push(format!("expr {{{}}}", random_expression(&mut below, &tables, depth)));
        let array: Vec<String> = (0..below(60))
            .map(|_| format!("{}{}", ["n", "src", "é", "a:", ""][below(5)], below(50)))
            .collect();
        commands.push(format!("foreach x [list {}] {{set y($x) 1}}; array names y", array.join(" ")));
        let command: Vec<&str> = (0..1 + below(5)).map(|_| words[below(words.len())]).collect();
        commands.push(format!("{} {}", HEADS[below(HEADS.len())], command.join(" ")));
    }
    let count = commands.len();
    let own = |command: &String| {
        let mut interpreter = Interpreter::new(Nobody, "a.tcl");
        interpreter.run("set a 7").unwrap();
        match interpreter.evaluate(Text::whole(command)) {
            Ok(value) => Some(format!("0 {value}")),
            // Tcl continues to compute with NaN: 1 < sqrt(-1).
            Err(Stop::Wrong(error)) if error.problem.contains("finite") => None,
            Err(Stop::Wrong(error)) => Some(format!("1 {}", error.problem)),
            _ => None,
        }
    };
    // Refused commands are not run in tclsh, where they may take hours, such as 7 ** 99999999.
    let values: Vec<(String, String)> =
        commands.into_iter().filter_map(|command| Some((own(&command)?, command))).collect();
    assert!(values.len() > count / 2, "{} of {count} commands are refused", count - values.len());
    let mut script = String::new();
    for (_, command) in &values {
        script += &format!(
            "proc own {{run}} {{set a 7; list [catch $run result] $result}}; lassign [own {}] code result\n\
             puts -nonewline \"$code $result\\u1\\u2\"\n",
            literal(command)
        );
    }
    let mut differing = String::new();
    let printed = tclsh(&script);
    assert_eq!(printed.len(), values.len() + 1);
    for ((own, command), printed) in values.iter().zip(printed) {
        // Tcl leaves some numbers as they are written, such as (1e3), and rounds 2**64 down when it prints it.
        let numbers = Number::parse(&printed[2..]).zip(Number::parse(&own[2..]));
        let is_near = |(a, b): (Number, Number)| (a.to_f64() - b.to_f64()).abs() <= 1e-15 * a.to_f64().abs();
        let is_same = *own == printed || command.starts_with("expr") && numbers.is_some_and(is_near);
        if !(is_same || own.starts_with('1') && printed.starts_with('1')) {
            differing += &format!("{command}\n    tclsh: {printed}\n    hol:   {own}\n");
        }
    }
    assert!(differing.is_empty(), "{differing}");
}

/// Returns a random expression of these operands, operators and functions.
fn random_expression(
    below: &mut impl FnMut(usize) -> usize,
    tables: &[Vec<&str>; 3],
    depth: usize,
) -> String {
    let operand = tables[0][below(tables[0].len())].to_owned();
    if depth == 0 {
        return operand;
    }
    let operator = tables[1][below(tables[1].len())];
    let function = tables[2][below(tables[2].len())];
    let mut part = || random_expression(below, tables, depth - 1);
    let parts = [part(), part(), part()];
    let blank = if operator.starts_with(char::is_alphabetic) || below(3) > 0 { " " } else { "" };
    let [one, other, third] = parts;
    match below(12) {
        0 => operand,
        1 => format!("{}{one}", ["-", "+", "!", "~"][below(4)]),
        2 => format!("({one})"),
        3 => format!("{function}({one})"),
        4 => format!("{function}({one},{blank}{other})"),
        5 => format!("{one} ? {other} : {third}"),
        _ => format!("{one}{blank}{operator}{blank}{other}"),
    }
}

/// Splits a text into its words; text in braces or quotes is one word and stays unchanged.
fn split_pieces(table: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut depth, mut is_quoted) = (0, 0, false);
    for (at, c) in table.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '"' => is_quoted = !is_quoted,
            ' ' if depth <= 0 && !is_quoted => {
                pieces.extend(Some(&table[start..at]).filter(|piece| !piece.is_empty()));
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&table[start..]);
    pieces
}
