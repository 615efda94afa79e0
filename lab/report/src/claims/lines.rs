//! "The SCTP-specific parts of the source code are shorter than the TCP-specific parts", counted on our own.

use serde::Deserialize;

use super::Finding;

/// Every part of our own code that does the same over SCTP and over TCP has fewer lines over SCTP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {}

/// A part, over SCTP and over TCP.
type Part = (&'static str, &'static str, &'static str);

const PARTS: [Part; 2] = [
    (
        "the middlebox",
        include_str!("../../../../middlebox/daemon/src/sctp.rs"),
        include_str!("../../../../middlebox/daemon/src/tcp.rs"),
    ),
    (
        "the workloads' sockets",
        include_str!("../../../sockets/src/sctp.rs"),
        include_str!("../../../sockets/src/tcp.rs"),
    ),
];

impl Lines {
    #[expect(clippy::unused_self, reason = "as every check")]
    pub(super) fn evaluate(&self) -> Finding {
        judge(&PARTS)
    }
}

fn judge(parts: &[Part]) -> Finding {
    let counted = |(part, sctp, tcp): &Part| (*part, lines(sctp), lines(tcp));
    let counts: Vec<(&str, usize, usize)> = parts.iter().map(counted).collect();
    let told =
        |(part, sctp, tcp): &(&str, usize, usize)| format!("{part}: {sctp} lines for SCTP, {tcp} for TCP");
    let text = counts.iter().map(told).collect::<Vec<_>>().join("; ");
    Finding::new(counts.iter().all(|(_, sctp, tcp)| sctp < tcp), text)
}

/// Lines of code: no blank ones, no comments, no tests.
fn lines(source: &str) -> usize {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_code_are_counted_and_the_shorter_part_wins() {
        let (long, short) =
            ("//! About.\n\nfn a() {\n    // Why.\n    b();\n}\n", "fn a() {}\n#[cfg(test)]\nmod tests {}\n");
        assert_eq!((lines(long), lines(short)), (3, 1));
        assert_eq!(judge(&[("a", short, long)]).holds, Some(true));
        assert_eq!(judge(&[("a", short, long), ("b", long, short)]).holds, Some(false));
        assert_eq!(judge(&[("a", short, short)]).holds, Some(false));
    }
}
