//! Forward error correction of a medium: `"5/7"`, `"ulpfec:6/7"`.

use std::fmt;
use std::str::FromStr;

use hol_rtp::parity::{self, ParityCode};
use hol_rtp::ulpfec;
use serde::{Deserialize, Serialize};

/// A code for forward error correction over the packets of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Fec {
    /// Reed-Solomon: any k of the n packets of a group restore all n; written `"5/7"`.
    ReedSolomon(ParityCode),
    /// RFC 5109: the XOR of a group restores one lost packet; written `"ulpfec:6/7"`, after the media type.
    Ulp {
        /// Number of media packets per group.
        k: u8,
    },
}

const ULPFEC_PREFIX: &str = "ulpfec:";

impl Fec {
    /// Returns the number of media packets per group.
    pub(super) fn group_size(self) -> u8 {
        match self {
            Self::ReedSolomon(code) => code.k(),
            Self::Ulp { k } => k,
        }
    }

    fn n(self) -> u8 {
        match self {
            Self::ReedSolomon(code) => code.n(),
            Self::Ulp { k } => k + 1,
        }
    }

    /// Returns by how many octets a parity packet is longer than the longest packet of its group.
    pub(super) fn overhead(self) -> usize {
        match self {
            Self::ReedSolomon(_) => hol_rtp::Header::OCTETS + parity::OVERHEAD,
            Self::Ulp { k } => ulpfec::overhead(k),
        }
    }

    /// Returns the parity payloads of a group of at most k packets; `first` is the sequence number of its first packet.
    pub(super) fn parity_payloads(self, first: u16, group: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match self {
            Self::ReedSolomon(code) => parity::build_payloads(first, group, code).collect(),
            Self::Ulp { .. } => vec![ulpfec::payload(first, group)],
        }
    }

    fn reed_solomon(k: u8, n: u8) -> Option<Self> {
        ParityCode::new(k, n).map(Self::ReedSolomon)
    }

    fn ulp(k: u8, n: u8) -> Option<Self> {
        ((1..=ulpfec::MAX_GROUP).contains(&k) && n == k + 1).then_some(Self::Ulp { k })
    }
}

impl FromStr for Fec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (fraction, code): (_, fn(u8, u8) -> Option<Self>) = match text.strip_prefix(ULPFEC_PREFIX) {
            Some(fraction) => (fraction, Self::ulp),
            None => (text, Self::reed_solomon),
        };
        let number = |text: &str| text.trim().parse().ok();
        let numbers = fraction.split_once('/').and_then(|(k, n)| number(k).zip(number(n)));
        numbers.and_then(|(k, n)| code(k, n)).ok_or_else(|| {
            format!(
                "`fec` is {text:?}; write the packets of a group without and with parity, at most {}, as in \"5/7\"; or for RFC 5109 the \
                packets of a group, at most {}, and one more, as in \"{ULPFEC_PREFIX}6/7\"",
                ParityCode::MAX_PACKETS,
                ulpfec::MAX_GROUP
            )
        })
    }
}

impl TryFrom<String> for Fec {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Fec> for String {
    fn from(fec: Fec) -> Self {
        fec.to_string()
    }
}

impl fmt::Display for Fec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if matches!(self, Self::Ulp { .. }) { ULPFEC_PREFIX } else { "" };
        write!(f, "{name}{}/{}", self.group_size(), self.n())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fec_is_written_as_a_fraction_or_with_the_name_ulpfec() {
        assert_eq!("5/7".parse(), Ok(Fec::ReedSolomon(ParityCode::new(5, 7).unwrap())));
        assert_eq!("ulpfec:6/7".parse(), Ok(Fec::Ulp { k: 6 }));
        for text in ["5/7", "ulpfec:6/7", "ulpfec:48/49", "ulpfec:1/2"] {
            assert_eq!(text.parse::<Fec>().map(|fec| fec.to_string()), Ok(text.to_owned()));
        }
        let reed_solomon = ["7/5", "5/5", "0/2", "5", "5/", "200/300", "-1/2"];
        let ulp = ["ulpfec:5/7", "ulpfec:49/50", "ulpfec:0/1", "ulpfec:255/0", "ulpfec:", "ulpfec6/7"];
        for text in reed_solomon.into_iter().chain(ulp) {
            let problem = text.parse::<Fec>().unwrap_err();
            assert!(problem.contains("as in \"ulpfec:6/7\"") && problem.contains(text), "{problem}");
        }
    }
}
