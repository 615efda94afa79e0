//! Recognises files of other tools by their contents, and describes what this program can do with them.

use std::borrow::Cow;

/// A kind of file. A file is of this kind if it contains at least one text of each group in `all`. `sentence` describes
/// the file and says what to do with it.
struct Kind {
    all: &'static [&'static [&'static str]],
    sentence: &'static str,
}

/// For each compression format: the first octets of a file, the name of the program, and the end of a sentence
/// about the file.
const COMPRESSED_FORMATS: [(&[u8], &str, &str); 4] = [
    (b"\x1f\x8b", "gzip", "is compressed by gzip; decompress it with `gunzip`"),
    (b"\x28\xb5\x2f\xfd", "zstd", "is compressed by zstd; decompress it with `zstd -d`"),
    (b"\xfd7zXZ\0", "xz", "is compressed by xz; decompress it with `xz -d`"),
    (b"BZh", "bzip2", "is compressed by bzip2; decompress it with `bzip2 -d`"),
];

/// For each binary format: the first octets of a file, and the end of a sentence about the file.
const BINARY_FORMATS: [(&[u8], &str); 7] = [
    (b"PK\x03\x04", "is a zip archive; unpack it with `unzip`"),
    (b"\xd4\xc3\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\xc3\xd4", CAPTURE),
    (b"\x4d\x3c\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\x3c\x4d", CAPTURE),
    (b"\x0a\x0d\x0d\x0a", CAPTURE),
    (b"PAR1", "is a Parquet file, such as `hol run --records` writes; DuckDB, pandas and Polars read it"),
];

const CAPTURE: &str = "is a capture of packets; `hol path learn FILE` derives a [network] from it, and `hol replay FILE` a workload";

const TEXT_FORMATS: [Kind; 9] = [
    Kind {
        all: &[&["\"qlog_version\"", "\"qlog_format\""]],
        sentence: "is a qlog of QUIC, which qvis displays; to derive a [network], use a capture of the same connection with `hol path \
            learn`",
    },
    Kind {
        all: &[&["\"test_start\""], &["\"intervals\""]],
        sentence: "is a result of iperf3; describe its path in [network], run the workload bulk, and compare the two with `hol report DIR \
            --beside FILE`",
    },
    Kind {
        all: &[&["\"x_values\""], &["\"metadata\""]],
        sentence: "is a result of flent; describe its path in [network] and its load in [[background]], and compare it with a run by `hol \
            report DIR --beside FILE`",
    },
    Kind {
        all: &[&["\"entries\""], &["\"creator\""], &["\"startedDateTime\""]],
        sentence: "is a HAR file of a browser; hol does not read it, but `hol compare --workload page` loads a page with a given number \
            and size of files",
    },
    Kind {
        all: &[&["topology:"], &["nodes:"], &["kind:", "endpoints:"]],
        sentence: "is a topology of containerlab; write its links as [[network.links]] (`hol help links`)",
    },
    Kind {
        all: &[&["from mininet", "import mininet"]],
        sentence: "is a script of Mininet; write its links as [[network.links]], and its programs as [[program]] (`hol help links`)",
    },
    Kind {
        all: &[&["ns3::", "ns3/", "import ns.", "from ns import"]],
        sentence: "is a program of ns-3; hol reads scripts of ns-2 and Emulab. Write its links as [[network.links]] (`hol help links`)",
    },
    Kind {
        all: &[&["**.", "[General]"], &["network ="], &["sim-time-limit", "inet."]],
        sentence: "is a configuration of OMNeT++; write its network as [[network.links]] (`hol help links`)",
    },
    Kind {
        all: &[&["tc qdisc ", "qdisc add dev"]],
        sentence: "contains lines of tc; `hol path tc \"LINE\"` converts them to a [network]",
    },
];

/// The number of octets at the start of a file that are searched for texts.
const SEARCHED_OCTETS: usize = 64 << 10;

/// Returns the name of the program that decompresses a file that begins with `octets`; `None` if the file is not
/// compressed.
pub fn decompression_program(octets: &[u8]) -> Option<&'static str> {
    COMPRESSED_FORMATS.iter().find(|(magic, ..)| octets.starts_with(magic)).map(|(_, program, _)| *program)
}

/// Describes a file of another tool, and what to do with it; `None` if the tool is unknown. The text is the end of
/// a sentence that begins with the file's name.
pub fn describe_other_tool(octets: &[u8]) -> Option<&'static str> {
    let compressed = COMPRESSED_FORMATS.iter().map(|(magic, _, sentence)| (magic, sentence));
    let mut binary = compressed.chain(BINARY_FORMATS.iter().map(|(magic, sentence)| (magic, sentence)));
    if let Some((_, sentence)) = binary.find(|(magic, _)| octets.starts_with(magic)) {
        return Some(sentence);
    }
    let text: Cow<'_, str> = String::from_utf8_lossy(&octets[..octets.len().min(SEARCHED_OCTETS)]);
    let has_one = |texts: &&[&str]| texts.iter().any(|wanted| text.contains(wanted));
    TEXT_FORMATS.iter().find(|kind| kind.all.iter().all(has_one)).map(|kind| kind.sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_named() {
        for (text, tool) in [
            ("\x1f\u{8b}", ""),
            ("{\"qlog_version\": \"0.3\", \"traces\": []}", "qlog"),
            ("{\"start\": {\"test_start\": {}}, \"intervals\": [], \"end\": {}}", "iperf3"),
            ("{\"metadata\": {}, \"results\": {}, \"x_values\": []}", "flent"),
            ("{\"log\": {\"creator\": {}, \"entries\": [{\"startedDateTime\": \"\"}]}}", "HAR"),
            ("name: a\ntopology:\n  nodes:\n    r1:\n      kind: linux\n", "containerlab"),
            ("#!/usr/bin/python\nfrom mininet.net import Mininet\n", "Mininet"),
            ("#include \"ns3/core-module.h\"\nusing namespace ns3;", "ns-3"),
            ("[General]\nnetwork = A\nsim-time-limit = 1s\n**.x = 1", "OMNeT++"),
            ("#!/bin/sh\ntc qdisc add dev eth0 root netem delay 5ms\n", "tc"),
        ] {
            match tool {
                "" => assert_eq!(describe_other_tool(text.as_bytes()), None),
                tool => assert!(describe_other_tool(text.as_bytes()).unwrap().contains(tool), "{text}"),
            }
        }
        assert!(describe_other_tool(b"\x1f\x8b\x08").unwrap().contains("gunzip"));
        assert!(describe_other_tool(b"BZh91AY&SY").unwrap().contains("bzip2 -d"));
        assert!(describe_other_tool(b"\x0a\x0d\x0d\x0a\x1c").unwrap().contains("hol path learn"));
    }
}
