//! Parses arbitrary octets as a PCP or NAT-PMP datagram. A parsed request must survive emitting and parsing
//! again, and the reply to an invalid one must have a valid length.
#![no_main]

use hol_pcp::{DatagramRequest, parse, nat_pmp, reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| match parse(octets) {
    Ok(None) => {}
    Ok(Some(heard)) => {
        let said = match &heard {
            DatagramRequest::Pcp(request) => request.to_bytes(),
            DatagramRequest::NatPmp(request) => request.to_bytes(),
        };
        assert_eq!(parse(&said), Ok(Some(heard)));
    }
    Err(refusal) => {
        let refused = reply::error_response(octets, refusal, 7);
        assert!((24..=1100).contains(&refused.len()) && refused.len().is_multiple_of(4));
        assert!(nat_pmp::error_response(octets, refusal, 7).len() <= 16);
    }
});
