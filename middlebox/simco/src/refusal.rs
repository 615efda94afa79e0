//! Why a request is refused. RFC 4540 section 4.2.3.

use std::fmt;

use crate::codes::codes;

codes!(
    /// The sub-type of a negative reply. Only [`VersionMismatch`](crate::Body::VersionMismatch) has a body.
    Refusal {
        /// Wrong basic request message type.
        WrongBasicType = 0x10,
        /// Wrong request message sub-type.
        WrongSubType = 0x11,
        /// Badly formed request.
        BadlyFormed = 0x12,
        /// Reply message too big.
        ReplyTooBig = 0x13,
        /// Request not applicable.
        NotApplicable = 0x20,
        /// Lack of resources.
        LackOfResources = 0x21,
        /// Authentication failed.
        AuthenticationFailed = 0x23,
        /// No authorization.
        NoAuthorization = 0x24,
        /// Transport protocol problem.
        TransportProblem = 0x25,
        /// Security of underlying protocol layers insufficient.
        InsufficientSecurity = 0x26,
        /// Transaction not supported.
        NotSupported = 0x40,
        /// Agent not authorized for this transaction.
        NotAuthorized = 0x41,
        /// No resources available for this transaction.
        NoResources = 0x42,
        /// Specified policy rule does not exist.
        NoSuchRule = 0x43,
        /// Specified policy rule group does not exist.
        NoSuchGroup = 0x44,
        /// Not authorized for accessing this policy.
        RuleNotAuthorized = 0x45,
        /// Not authorized for accessing this group.
        GroupNotAuthorized = 0x46,
        /// Requested address space not available.
        NoAddressSpace = 0x47,
        /// Lack of IP addresses.
        LackOfAddresses = 0x48,
        /// Lack of port numbers.
        LackOfPorts = 0x49,
        /// Middlebox configuration failed.
        ConfigurationFailed = 0x4A,
        /// Inconsistent request.
        Inconsistent = 0x4B,
        /// Requested wildcarding not supported.
        WildcardNotSupported = 0x4C,
        /// Protocol type doesn't match.
        ProtocolMismatch = 0x4D,
        /// NAT mode not supported.
        NatModeNotSupported = 0x4E,
        /// IP version mismatch.
        IpVersionMismatch = 0x4F,
        /// Conflict with existing rule.
        Conflict = 0x50,
        /// Not authorized to change lifetime.
        LifetimeNotAuthorized = 0x51,
        /// Lifetime can't be extended.
        LifetimeNotExtended = 0x52,
        /// Illegal IP address.
        IllegalAddress = 0x53,
        /// Protocol type not supported.
        ProtocolNotSupported = 0x54,
        /// Illegal port number.
        IllegalPort = 0x55,
        /// Illegal number of subsequent ports (NOSP).
        IllegalPortCount = 0x56,
        /// Already enable PID.
        AlreadyEnabled = 0x57,
        /// Parity doesn't match.
        ParityMismatch = 0x58,
    }
);

/// Formats the code of the negative reply and its meaning in the RFC: "0x0343 Specified policy rule does not exist".
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x03{:02X} {}", self.code(), self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_printed_with_number_and_meaning() {
        assert_eq!(Refusal::NoSuchRule.to_string(), "0x0343 Specified policy rule does not exist");
        assert_eq!(Refusal::ConfigurationFailed.to_string(), "0x034A Middlebox configuration failed");
    }
}
