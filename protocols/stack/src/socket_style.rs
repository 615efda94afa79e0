//! The socket styles of SCTP. RFC 6458 sections 3 and 4.

use std::str::FromStr;

/// The style of an SCTP socket. The model has no sockets, so the style makes no difference there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SocketStyle {
    /// One association per socket, as with TCP: Linux accepts data only after the association is established.
    #[default]
    OneToOne,
    /// One socket with many associations; a server peels off each association (RFC 6458 section 9.2). Data
    /// may be bundled with COOKIE ECHO.
    OneToMany,
    /// No SCTP socket: this program's own SCTP over UDP (RFC 6951), for machines whose kernel lacks SCTP.
    Own,
}

impl FromStr for SocketStyle {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "one-to-one" => Ok(Self::OneToOne),
            "one-to-many" => Ok(Self::OneToMany),
            "own" => Ok(Self::Own),
            _ => Err("use one-to-one, one-to-many or own"),
        }
    }
}
