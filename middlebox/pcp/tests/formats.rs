//! The figures of RFC 6887 and RFC 6886, filled in by hand, and invalid datagrams.

use hol_pcp::{DatagramRequest, Filter, Mapping, Operation, Request, ResultCode, nat_pmp, parse, reply};
use proptest::prelude::*;

/// RFC 6887 figures 2 and 9: MAP for UDP port 5004 of 192.0.2.7, any address and port 40000 outside, for an hour.
const MAP: [u8; 60] = [
    2, 1, 0, 0, 0, 0, 0x0e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7, 1, 2, 3, 4, 5, 6,
    7, 8, 9, 10, 11, 12, 17, 0, 0, 0, 0x13, 0x8c, 0x9c, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0,
    0, 0,
];

fn mapping() -> Mapping {
    let nonce = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    Mapping { nonce, protocol: 17, port: 5004, external: "0.0.0.0:40000".parse().unwrap() }
}

fn map(prefer_failure: bool, filters: Vec<Filter>) -> Request {
    let operation = Operation::Map { mapping: mapping(), prefer_failure, filters };
    Request { lifetime: 3600, client: "192.0.2.7".parse().unwrap(), operation }
}

fn parse_pcp(octets: &[u8]) -> Result<Request, ResultCode> {
    match parse(octets)? {
        Some(DatagramRequest::Pcp(request)) => Ok(request),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pcp_datagrams_match_the_figures_of_rfc_6887() {
    assert_eq!(parse_pcp(&MAP), Ok(map(false, Vec::new())));
    assert_eq!(map(false, Vec::new()).to_bytes(), MAP);
    // Figure 10: the answer contains the assigned address instead of the suggested one.
    let assigned = Mapping { external: "203.0.113.9:40001".parse().unwrap(), ..mapping() };
    let operation = Operation::Map { mapping: assigned, prefer_failure: false, filters: Vec::new() };
    let answer = reply::success_response(&operation, 1800, 77);
    assert_eq!(answer[..24], [2, 129, 0, 0, 0, 0, 7, 8, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[24..42], MAP[24..42]);
    assert_eq!(answer[42..44], [0x9c, 0x41]);
    assert_eq!(answer[54..], [0xff, 0xff, 203, 0, 113, 9]);
}

/// RFC 6887 sections 13.2 and 13.3: an IPv4 prefix includes the 96 bits of the mapped address.
#[test]
fn options_are_read_and_written() {
    let filter = [
        3, 0, 0, 20, 0, 120, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 0, //
    ];
    let octets = [&MAP[..], &[2, 0, 0, 0], &filter].concat();
    let filter = Filter { prefix_length: 24, address: "198.51.100.0".parse().unwrap(), port: 80 };
    assert_eq!(parse_pcp(&octets), Ok(map(true, vec![filter])));
    assert_eq!(map(true, vec![filter]).to_bytes(), octets);
    let mut none = octets;
    none[64 + 5] = 0;
    assert_eq!(parse_pcp(&none), Ok(map(true, Vec::new())), "a filter of length zero removes the others");
    let optional = [&MAP[..], &[200, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]].concat();
    assert_eq!(parse_pcp(&optional), Ok(map(false, Vec::new())), "an unknown optional option is ignored");
}

/// RFC 6887 sections 7.3, 7.4 and 8.3.
#[test]
fn invalid_requests_are_refused_with_the_right_code() {
    let with = |option: &[u8]| parse_pcp(&[&MAP[..], option].concat()).unwrap_err();
    let third_party = [&[1, 0, 0, 16][..], &[0; 16]].concat();
    assert_eq!(with(&third_party), ResultCode::UnsupportedOption);
    assert_eq!(with(&[127, 0, 0, 0]), ResultCode::UnsupportedOption);
    assert_eq!(with(&[2, 0, 0, 0, 2, 0, 0, 0]), ResultCode::MalformedOption);
    assert_eq!(with(&[2, 0, 0, 4, 0, 0, 0, 0]), ResultCode::MalformedOption);
    assert_eq!(with(&[3, 0, 0, 4, 0, 0, 0, 0]), ResultCode::MalformedOption);
    assert_eq!(with(&[2, 0, 0xff, 0xff]), ResultCode::MalformedOption);
    let mut few_bits = [&[3, 0, 0, 20, 0, 95, 0, 0][..], &[0; 16]].concat();
    few_bits[18..20].fill(0xff);
    assert_eq!(with(&few_bits), ResultCode::MalformedOption);
    assert_eq!(with(&vec![0x80; 1041]), ResultCode::MalformedRequest);
    assert_eq!(parse_pcp(&MAP[..56]), Err(ResultCode::MalformedRequest));
    assert_eq!(parse_pcp(&MAP[..20]), Err(ResultCode::MalformedRequest));
    let changed = |at: usize, octet: u8| {
        let mut octets = MAP;
        octets[at] = octet;
        parse(&octets)
    };
    assert_eq!(changed(1, 3), Err(ResultCode::UnsupportedOpcode));
    assert_eq!(changed(0, 1), Err(ResultCode::UnsupportedVersion));
    assert_eq!(changed(1, 0x81), Ok(None), "an answer gets no answer");
    assert_eq!(parse(&[2]), Ok(None));
    let mut peer = MAP;
    peer[1] = 2;
    assert_eq!(parse(&peer), Err(ResultCode::MalformedRequest), "PEER is 20 octets longer than MAP");
}

/// RFC 6887 section 7.2: the answer repeats the request, as far as there is room, with our version.
#[test]
fn a_refusal_repeats_the_request() {
    let refused = reply::error_response(&MAP, ResultCode::NoResources, 5);
    assert_eq!(refused[..12], [2, 129, 0, 8, 0, 0, 0, 30, 0, 0, 0, 5]);
    assert_eq!(refused[24..], MAP[24..]);
    assert_eq!(reply::error_response(&[1, 1, 2, 3, 4], ResultCode::UnsupportedVersion, 5).len(), 24);
    assert_eq!(reply::error_response(&[2; 5000], ResultCode::MalformedRequest, 5).len(), 1100);
    assert_eq!(reply::error_response(&[2; 27], ResultCode::MalformedRequest, 5).len(), 28);
}

/// RFC 6886 section 3.
#[test]
fn nat_pmp_datagrams_match_rfc_6886() {
    assert_eq!(parse(&[0, 0]), Ok(Some(DatagramRequest::NatPmp(nat_pmp::Request::Address))));
    let octets = [0, 1, 0, 0, 0x13, 0x8c, 0x9c, 0x40, 0, 0, 0x1c, 0x20];
    let map = nat_pmp::Request::Map { protocol: 17, port: 5004, external: 40000, lifetime: 7200 };
    assert_eq!(parse(&octets), Ok(Some(DatagramRequest::NatPmp(map))));
    assert_eq!(map.to_bytes(), octets);
    assert_eq!(nat_pmp::address_response([192, 0, 2, 1].into(), 9), [0, 128, 0, 0, 0, 0, 0, 9, 192, 0, 2, 1]);
    let mapped = [0, 130, 0, 0, 0, 0, 0, 9, 0, 80, 0, 81, 0, 0, 0, 60];
    assert_eq!(nat_pmp::mapping_response(6, 80, 81, 60, 9), mapped);
    assert_eq!(parse(&octets[..11]), Ok(None));
    assert_eq!(parse(&[0, 7, 0, 0]), Err(ResultCode::UnsupportedOpcode));
    assert_eq!(
        nat_pmp::error_response(&[0, 7, 0, 0], ResultCode::UnsupportedOpcode, 9),
        [0, 135, 0, 5, 0, 0, 0, 9]
    );
}

proptest! {
    /// A parsed datagram is emitted so that it parses to the same value.
    #[test]
    fn parsed_datagrams_survive_emitting_and_parsing(octets in prop::collection::vec(any::<u8>(), 0..120), version in 0_u8..3, operation in 0_u8..4) {
        let mut octets = octets;
        octets.splice(..octets.len().min(2), [version, operation]);
        if let Ok(Some(parsed)) = parse(&octets) {
            let emitted = match &parsed {
                DatagramRequest::Pcp(request) => request.to_bytes(),
                DatagramRequest::NatPmp(request) => request.to_bytes(),
            };
            prop_assert_eq!(parse(&emitted), Ok(Some(parsed)));
        }
    }
}
