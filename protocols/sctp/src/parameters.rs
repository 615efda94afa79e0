//! Selects the parameters of an INIT or INIT ACK that are processed, and the parameters that are reported.
//! RFC 9260 sections 3.2.1 and 3.2.2.

use hol_wire::sctp::Parameter;

/// Returns the parameters to process: all of them, or those before the first unknown one whose type stops the
/// processing.
pub(crate) fn parameters_to_process(parameters: &[Parameter]) -> &[Parameter] {
    let stops =
        |parameter: &Parameter| matches!(parameter, Parameter::Unknown { kind, .. } if kind & 0x8000 == 0);
    let last = parameters.iter().position(stops);
    &parameters[..last.map_or(parameters.len(), |last| last + 1)]
}

/// Returns the unknown parameters that must be reported to the peer.
pub(crate) fn unrecognized(parameters: &[Parameter]) -> Vec<Parameter> {
    let reports =
        |parameter: &&Parameter| matches!(parameter, Parameter::Unknown { kind, .. } if kind & 0x4000 != 0);
    parameters_to_process(parameters).iter().filter(reports).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn unknown(kind: u16) -> Parameter {
        Parameter::Unknown { kind, value: Bytes::from_static(&[1, 2, 3, 4]) }
    }

    #[test]
    fn top_bits_decide_how_unknown_parameters_are_handled() {
        // RFC 9260 section 3.2.1: 0x4000 reports, 0x8000 continues.
        let reported = |kinds: &[u16]| {
            let parameters: Vec<Parameter> = kinds.iter().copied().map(unknown).collect();
            (parameters_to_process(&parameters).len(), unrecognized(&parameters))
        };
        assert_eq!(reported(&[0xc001, 0x8001, 0xc002]), (3, vec![unknown(0xc001), unknown(0xc002)]));
        assert_eq!(reported(&[0x4001, 0xc002]), (1, vec![unknown(0x4001)]));
        assert_eq!(reported(&[0x0001, 0xc002]), (1, vec![]));
    }
}
