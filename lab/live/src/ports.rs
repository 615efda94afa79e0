//! The ports that a host's firewall opens for its servers.

use hol_scenario::Side;
use std::fmt;
use std::str::FromStr;

use hol_sockets::FlowParameters;

/// A range of port numbers for servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// The first port of the range.
    first: u16,
    /// The last port of the range.
    last: u16,
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Self { first, last }),
            _ => Err("use PORT or FIRST-LAST, from 1 to 65535, such as 7641 or 7641-7650".to_owned()),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl Ports {
    /// Assigns a port of the range to each local server. The protocol of a server does not matter.
    pub(crate) fn assign(
        self,
        flow_parameters: &mut [FlowParameters],
        here: &[Option<Side>],
    ) -> Result<(), String> {
        let (has, wanted) =
            (self.last - self.first + 1, here.iter().filter(|end| **end == Some(Side::Server)).count());
        if wanted > usize::from(has) {
            return Err(format!(
                "this host needs {wanted} ports for its servers, and --ports {self} has {has}; start `hol live serve` with a longer range"
            ));
        }
        let servers = flow_parameters.iter_mut().zip(here).filter(|(_, end)| **end == Some(Side::Server));
        servers.zip(self.first..=self.last).for_each(|((parameters, _), port)| parameters.server.port = port);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_one_or_a_range() {
        for (text, first, last) in [("7641", 7641, 7641), ("1-65535", 1, 65535), ("80-80", 80, 80)] {
            assert_eq!(text.parse(), Ok(Ports { first, last }), "{text}");
        }
        assert_eq!("7641-7650".parse::<Ports>().unwrap().to_string(), "7641-7650");
        assert_eq!("7641-7641".parse::<Ports>().unwrap().to_string(), "7641");
        for wrong in ["", "0", "0-7", "9-8", "1-65536", "a", "7641-", "-7641", "1-2-3", "1,2"] {
            assert!(wrong.parse::<Ports>().unwrap_err().contains("FIRST-LAST"), "{wrong}");
        }
    }
}
