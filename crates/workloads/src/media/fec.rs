//! How many packets of parity there are: `"5/7"`.

use std::fmt;
use std::str::FromStr;

use hol_rtp::parity::Code;
use serde::{Deserialize, Serialize};

/// k of n packets restore all n.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fec(pub Code);

impl FromStr for Fec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || {
            format!(
                "`fec` is {text:?}, but needs the packets of a group and, more, those with its parity, at most {}, as in \"5/7\"",
                Code::MOST
            )
        };
        let (k, n) = text.split_once('/').ok_or_else(problem)?;
        let number = |text: &str| text.trim().parse().ok();
        number(k).zip(number(n)).and_then(|(k, n)| Code::new(k, n)).map(Self).ok_or_else(problem)
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
        write!(f, "{}/{}", self.0.k(), self.0.n())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_written_as_a_fraction() {
        let fec: Fec = "5/7".parse().unwrap();
        assert_eq!((fec.0.k(), fec.0.n(), fec.to_string()), (5, 7, "5/7".to_owned()));
        for text in ["7/5", "5/5", "0/2", "5", "5/", "200/300", "-1/2"] {
            let problem = text.parse::<Fec>().unwrap_err();
            assert!(problem.contains("as in \"5/7\"") && problem.contains(text), "{problem}");
        }
    }
}
