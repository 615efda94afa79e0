//! The ECN field before a packet: `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`. Without this field an inbound packet is
//! Not-ECT, and an outbound packet may have any codepoint.

use hol_wire::Ecn;

const CODEPOINT_NAMES: [(&str, Ecn); 4] = [
    ("[noecn]", Ecn::NotCapable),
    ("[ect0]", Ecn::Capable),
    ("[ect1]", Ecn::Capable1),
    ("[ce]", Ecn::Congested),
];

/// Splits a line into the ECN field, if it has one, and the packet.
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

/// Returns the codepoint as scripts write it.
pub(crate) fn name(ecn: Ecn) -> &'static str {
    CODEPOINT_NAMES.iter().find(|(_, named)| *named == ecn).map_or("", |(name, _)| name)
}
