//! The claim "The SCTP-specific parts of the source code are shorter than the TCP-specific parts", by line
//! counts given in the study.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Finding;

/// The claim that every part of a program that does the same over SCTP and over TCP has fewer lines over
/// SCTP.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FewerCodeLines {
    /// The numbers of lines of each part of the program.
    parts: BTreeMap<String, Part>,
}

/// The number of lines of a part of the program over each transport.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    sctp: u64,
    tcp: u64,
}

impl FewerCodeLines {
    /// Judges the claim by the line counts of the parts.
    pub(super) fn evaluate(&self) -> Finding {
        let told = |(name, Part { sctp, tcp }): (&String, &Part)| {
            format!("{name}: {sctp} lines for SCTP, {tcp} for TCP")
        };
        let text = self.parts.iter().map(told).collect::<Vec<_>>().join("; ");
        Finding::new(self.parts.values().all(|part| part.sctp < part.tcp), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_to_be_shorter() {
        let holds = |text: &str| toml::from_str::<FewerCodeLines>(text).unwrap().evaluate().holds;
        assert_eq!(holds("parts.a = { sctp = 1, tcp = 3 }"), Some(true));
        assert_eq!(holds("parts.a = { sctp = 1, tcp = 3 }\nparts.b = { sctp = 3, tcp = 1 }"), Some(false));
        assert_eq!(holds("parts.a = { sctp = 1, tcp = 1 }"), Some(false));
    }
}
