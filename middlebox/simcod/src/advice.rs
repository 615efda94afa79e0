//! Advice on refusals.

use hol_simco::Refusal;

/// Formats a refusal, followed by advice on what to do if there is any.
pub fn with_advice(label: &str, refusal: Refusal) -> String {
    match advice(refusal) {
        "" => format!("{label}: {refusal}"),
        advice => format!("{label}: {refusal}; {advice}"),
    }
}

fn advice(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::AuthenticationFailed => {
            "give --secret FILE and --name AGENT; both must match the secrets of the middlebox"
        }
        Refusal::NoAuthorization => "add the agent to the policy file of the middlebox",
        Refusal::InsufficientSecurity => {
            "the policy of the middlebox requires TLS, WireGuard or IPsec; use --tls FILE if the middlebox listens for TLS"
        }
        Refusal::LackOfResources => "the middlebox has its maximum number of sessions; try again later",
        Refusal::NotAuthorized => "`may` of this agent in the policy file of the middlebox lacks this right",
        Refusal::RuleNotAuthorized | Refusal::GroupNotAuthorized => {
            "the rule or group belongs to another agent; `access` in the policy file of the middlebox can permit access"
        }
        Refusal::NoSuchRule => "the rule may have ended; `simcod list` shows the existing rules",
        Refusal::NoSuchGroup => "a group ends with its last rule; omit --group to begin one",
        Refusal::ReplyTooBig => {
            "a list has at most 8,191 rules; `simcod rules DIR` on the host of the middlebox shows all recorded rules (DIR: `state` in \
            its settings)"
        }
        Refusal::NoResources => {
            "the middlebox or this agent has reached its maximum of rules, elements or prefix lengths; end rules with `simcod disallow`, \
            or raise the agent's quota in the policy file of the middlebox"
        }
        Refusal::ConfigurationFailed => {
            "`internal` or `external` of this agent in the policy file of the middlebox may exclude these hosts; otherwise the packet \
            filter or the disk of the middlebox failed, and its log shows why (log = \"debug\")"
        }
        Refusal::Inconsistent => {
            "--both-ways needs single hosts and ports; --reservation needs a reserved rule"
        }
        Refusal::WildcardNotSupported => "use single hosts and ports",
        Refusal::Conflict => "a blocking rule overlaps this one; `simcod list` shows it as disabled",
        Refusal::NatModeNotSupported => "omit --twice: the middlebox is not a twice NAT",
        Refusal::NotSupported => {
            "the middlebox does not block flows (PDR); end the rules that allow them with `simcod disallow`"
        }
        Refusal::LackOfAddresses => "no address of this IP version is free; end rules with `simcod disallow`",
        Refusal::LackOfPorts => {
            "the ports of the middlebox are in use; end rules with `simcod disallow`, or use fewer ports"
        }
        Refusal::ProtocolMismatch => "use the protocol of the reservation, which `simcod status PID` shows",
        Refusal::IllegalPortCount => {
            "use at most as many ports as the reservation has, which `simcod status PID` shows"
        }
        Refusal::ParityMismatch => {
            "start at an odd port if the reserved one is odd, otherwise at an even port; or omit --same-parity"
        }
        Refusal::IllegalAddress => {
            "use a host, a prefix or any, but not the unspecified or the broadcast address"
        }
        Refusal::IpVersionMismatch => {
            "the middlebox does not support this IP version, or does not translate between the two versions"
        }
        _ => "",
    }
}
