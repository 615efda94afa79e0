//! Why a request is refused. RFC 6887 section 7.4.

/// The result code of a negative answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultCode {
    /// The version of the request is not supported: it is neither 2 (PCP) nor 0 (NAT-PMP).
    UnsupportedVersion = 1,
    /// The host is not authorized.
    NotAuthorized = 2,
    /// The request is malformed.
    MalformedRequest = 3,
    /// The opcode does not exist.
    UnsupportedOpcode = 4,
    /// A mandatory option is unknown or not supported.
    UnsupportedOption = 5,
    /// An option is too short or too long, or occurs too often.
    MalformedOption = 6,
    /// The gateway cannot fulfil the request at the moment.
    NetworkFailure = 7,
    /// No more mappings or ports are available.
    NoResources = 8,
    /// The gateway cannot map this protocol, or cannot map all ports of this protocol.
    UnsupportedProtocol = 9,
    /// The host has reached its quota.
    UserExceedsQuota = 10,
    /// The requested address and port are not available, and the request accepts no others.
    CannotProvideExternal = 11,
    /// The source address differs from the host's address in the request: there is a NAT in between.
    AddressMismatch = 12,
    /// The request has more filters than the gateway supports.
    ExcessiveRemotePeers = 13,
}

impl ResultCode {
    /// Returns the number of this result code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns for how many seconds the gateway would refuse the same request again.
    pub const fn lifetime(self) -> u32 {
        match self {
            Self::NetworkFailure | Self::NoResources | Self::UserExceedsQuota => 30,
            _ => 30 * 60,
        }
    }
}
