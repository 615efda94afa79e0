//! The ECN field before a packet: `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`. Without this field an inbound packet is
//! Not-ECT, and an outbound packet may have any codepoint.

use hol_wire::Ecn;

const CODEPOINT_NAMES: [(&str, Ecn); 4] = [
    ("[noecn]", Ecn::NotCapable),
    ("[ect0]", Ecn::Capable),
    ("[ect1]", Ecn::Capable1),
    ("[ce]", Ecn::Congested),
];

/// Splits a line of a script into the ECN field, if there is one, and the packet.
pub(crate) fn split_ecn_field(line: &str) -> Result<(Option<Ecn>, &str), String> {
    if !line.starts_with('[') {
        return Ok((None, line));
    }
    let named = CODEPOINT_NAMES
        .iter()
        .find_map(|(name, ecn)| Some((Some(*ecn), line.strip_prefix(name)?.trim_start())));
    named.ok_or_else(|| {
        format!("{line:?} does not start with a codepoint; write [noecn], [ect0], [ect1] or [ce]")
    })
}

/// Returns the name of the ECN codepoint in the syntax of scripts.
pub(crate) fn name(ecn: Ecn) -> &'static str {
    CODEPOINT_NAMES.iter().find(|(_, named)| *named == ecn).map_or("", |(name, _)| name)
}
