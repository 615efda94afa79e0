//! Why a request is refused. RFC 6887 section 7.4.

/// The result code of an answer that grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Neither 2 nor, for NAT-PMP, 0.
    UnsupportedVersion = 1,
    /// This host may not have it.
    NotAuthorized = 2,
    /// The request is no request.
    MalformedRequest = 3,
    /// There is no such opcode.
    UnsupportedOpcode = 4,
    /// An option that has to be heeded is not known, or not here.
    UnsupportedOption = 5,
    /// An option is too short, too long, or there twice.
    MalformedOption = 6,
    /// The gateway cannot do it at the moment.
    NetworkFailure = 7,
    /// There are no more mappings or ports.
    NoResources = 8,
    /// The gateway does not map this protocol, or not all of its ports.
    UnsupportedProtocol = 9,
    /// This host has as many mappings as it may have.
    UserExceedsQuota = 10,
    /// The wanted address and port are not to be had, and no others are wanted.
    CannotProvideExternal = 11,
    /// The request comes from another address than it says: there is a NAT in between.
    AddressMismatch = 12,
    /// More filters than the gateway can have.
    ExcessiveRemotePeers = 13,
}

impl Refusal {
    /// The code.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Seconds for which the same request would be refused again.
    pub const fn lifetime(self) -> u32 {
        match self {
            Self::NetworkFailure | Self::NoResources | Self::UserExceedsQuota => 30,
            _ => 30 * 60,
        }
    }
}
