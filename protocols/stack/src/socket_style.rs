//! How a program holds its SCTP associations. RFC 6458 sections 3 and 4.

use std::str::FromStr;

/// The style of an SCTP socket; in the model world there are none, and either is the same there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SocketStyle {
    /// A socket an association, as TCP's are: Linux takes nothing to send before the association is up.
    #[default]
    OneToOne,
    /// One that may have many associations, of which a server branches each off: what is to be sent may ride with COOKIE ECHO.
    OneToMany,
    /// None of the kernel's: the endpoint of the model world, in datagrams of UDP (RFC 6951), for machines whose kernel has no SCTP.
    Own,
}

impl FromStr for SocketStyle {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "one-to-one" => Ok(Self::OneToOne),
            "one-to-many" => Ok(Self::OneToMany),
            "own" => Ok(Self::Own),
            _ => Err("it is one-to-one, one-to-many or own"),
        }
    }
}
