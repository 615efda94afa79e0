//! Reads the captures that the user names on the command line, and reports problems.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::path::Path;

use hol_lab::{LabError, decompress};
use hol_passive::CapturedIp;
use hol_wire::capture::{CaptureError, CaptureInterface, CaptureReader};

use crate::decompressor::{self, MAX_DECOMPRESSED};
use crate::failure::Failure;

/// The result of reading a capture, with notes.
pub struct CaptureResult<T> {
    /// The result of processing the packets of one interface.
    pub computed: T,
    /// Notes on the capture for the reader of the result.
    pub notes: Vec<String>,
}

/// Reads the capture in a file (`-`: standard input), and passes the IP packets of each interface to a `T` of its own.
/// Returns the `T` of the interface `wanted` or, if that is `None`, of the interface with the most packets.
pub fn read<T: Default>(
    path: &Path,
    wanted: Option<&str>,
    mut take: impl FnMut(&mut T, u64, CapturedIp<'_>),
) -> Result<CaptureResult<T>, Failure> {
    let is_standard = path == Path::new("-");
    let name = if is_standard { "standard input".to_owned() } else { path.display().to_string() };
    let input = match is_standard {
        true => decompress(io::stdin(), MAX_DECOMPRESSED),
        false => decompressor::open(path),
    };
    let input = input.map_err(|error| LabError::file("read", path, error))?;
    let refuse = |problem: &dyn std::fmt::Display| Failure::failed(format!("{name}: {problem}"));
    let mut reader = CaptureReader::new(BufReader::new(input)).map_err(|error| {
        let is_another_file = matches!(error, CaptureError::NotACapture(_));
        match is_another_file.then(|| other_tool(path)).flatten() {
            Some(sentence) => refuse(&sentence),
            None => refuse(&error),
        }
    })?;
    let (mut seen, mut notes) = (BTreeMap::<usize, (u64, T)>::new(), Vec::new());
    let (mut others, mut link) = (0u64, None);
    for packet in reader.by_ref() {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error @ CaptureError::Read(_)) => return Err(refuse(&error)),
            Err(error) => {
                notes.push(format!(
                    "the capture {error}; the result covers only the packets before that position"
                ));
                break;
            }
        };
        match packet.link.ip_packet(&packet.octets) {
            Ok(Some(ip)) => {
                let (count, of) = seen.entry(packet.interface).or_default();
                *count += 1;
                take(of, packet.time, CapturedIp { octets: ip, cut: packet.cut });
            }
            Ok(None) => others += 1,
            Err(unknown) => link = Some(unknown),
        }
    }
    notes.extend(link.map(|link| format!("some packets are ignored: {link}")));
    if others > 0 {
        notes.push(format!("{others} packets that are not IP are ignored"));
    }
    if let (true, Some(problem)) = (seen.is_empty(), notes.first()) {
        return Err(refuse(&format!("no IP packet can be read: {problem}")));
    }
    let chosen = choose_interface(&seen, reader.interfaces(), wanted, &mut notes)
        .map_err(|problem| refuse(&problem))?;
    let (_, of) = seen.remove(&chosen).expect("the chosen interface has packets");
    Ok(CaptureResult { computed: of, notes })
}

/// Returns what a file is that is not a capture, such as the output of iperf3; `None` if its format is unknown.
fn other_tool(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    decompressor::open(path).ok()?.take(64 << 10).read_to_end(&mut head).ok()?;
    hol_lab::describe_other_tool(&head)
}

/// Escapes the control characters of a text, so that it fits in one line of a comment. A line feed becomes
/// `\n`.
pub fn escape_control_characters(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Returns the index of the interface `wanted` or, if that is `None`, of the interface with the most packets.
fn choose_interface<T>(
    seen: &BTreeMap<usize, (u64, T)>,
    interfaces: &[CaptureInterface],
    wanted: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<usize, String> {
    let name = |index: &usize| {
        let known = interfaces.get(*index).and_then(|interface| interface.name.as_deref());
        known.map_or_else(|| index.to_string(), escape_control_characters)
    };
    let names = || seen.keys().map(name).collect::<Vec<_>>().join(", ");
    if seen.is_empty() {
        return Err("the capture contains no IP packet".to_owned());
    }
    let chosen = match wanted {
        Some(wanted) => seen.keys().find(|index| name(index) == wanted).ok_or_else(|| {
            format!("no packets of interface {wanted:?}; the capture has packets of {}", names())
        })?,
        None => {
            let max = seen.iter().rev().max_by_key(|(_, (count, _))| *count);
            max.map(|(index, _)| index).expect("at least one interface has packets")
        }
    };
    if seen.len() > 1 {
        notes.push(format!(
            "only packets of interface {} are used; select another interface with --interface NAME: {}",
            name(chosen),
            names()
        ));
    }
    Ok(*chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_capture_is_reported_before_a_missing_interface() {
        for wanted in [None, Some("eth0")] {
            let chosen = choose_interface::<()>(&BTreeMap::new(), &[], wanted, &mut Vec::new());
            assert_eq!(chosen, Err("the capture contains no IP packet".to_owned()));
        }
    }
}
