//! Advice on refusals.

use hol_simco::Refusal;

/// Returns the refusal with advice, if there is any.
pub fn with_cure(what: &str, refusal: Refusal) -> String {
    match cure(refusal) {
        "" => format!("{what}: {refusal}"),
        cure => format!("{what}: {refusal}; {cure}"),
    }
}

fn cure(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::AuthenticationFailed => "give --secret FILE and --name AGENT, as the middlebox knows them",
        Refusal::NoAuthorization => "add the agent to the policy file of the middlebox",
        Refusal::InsufficientSecurity => {
            "its policy demands TLS, or WireGuard or IPsec below: give --tls FILE if it listens for TLS"
        }
        Refusal::LackOfResources => "it has as many sessions as it may have; try again later",
        Refusal::NotAuthorized => "`may` of this agent in the policy file of the middlebox does not have it",
        Refusal::RuleNotAuthorized | Refusal::GroupNotAuthorized => {
            "it is another agent's; `access` in the policy file of the middlebox says who may"
        }
        Refusal::NoSuchRule => "it may have ended; `simcod list` shows those that there are",
        Refusal::NoSuchGroup => "a group ends with its last rule; leave --group out to begin one",
        Refusal::ReplyTooBig => {
            "a list has 8,191 rules at most; on its host `simcod rules DIR` shows all that it has recorded, DIR being `state` of its settings"
        }
        Refusal::NoResources => {
            "the middlebox or this agent has as many rules, elements or prefix lengths as it may have; end some by `simcod disallow`, or raise the agent's quota in its policy"
        }
        Refusal::ConfigurationFailed => {
            "`internal` or `external` of this agent in its policy file may not have these hosts; else its packet filter or its disk cannot do it, and its log tells why at log = \"debug\""
        }
        Refusal::Inconsistent => {
            "--both-ways takes single hosts and ports, --reservation a rule that is reserved"
        }
        Refusal::WildcardNotSupported => "name single hosts and ports",
        Refusal::Conflict => "a rule that blocks overlaps it; `simcod list` shows it as disabled",
        Refusal::NatModeNotSupported => "leave out --twice: it is no twice NAT",
        Refusal::NotSupported => {
            "it does not block flows (PDR); end what lets them pass by `simcod disallow`"
        }
        Refusal::LackOfAddresses => {
            "its NAT has none of this IP version that is free; end rules by `simcod disallow`"
        }
        Refusal::LackOfPorts => {
            "those of its NAT are in use; end rules by `simcod disallow`, or take fewer ports"
        }
        Refusal::ProtocolMismatch => "name the protocol that the rule has reserved; see `simcod status PID`",
        Refusal::IllegalPortCount => "take no more ports than the rule has reserved; see `simcod status PID`",
        Refusal::ParityMismatch => {
            "begin with a port as even or odd as the reserved one, or leave out --same-parity"
        }
        Refusal::IllegalAddress => {
            "name a host, a prefix, or any; not the unspecified or the broadcast address"
        }
        Refusal::IpVersionMismatch => {
            "it does not serve this IP version, or does not translate between the two"
        }
        _ => "",
    }
}
