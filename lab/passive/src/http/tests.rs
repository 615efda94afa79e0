use super::*;

/// Returns the positions at which each request and each response ends.
fn found(exchange: &HttpExchanges) -> Vec<(Option<u64>, Option<u64>)> {
    exchange
        .transactions()
        .iter()
        .map(|transaction| (transaction.request_end, transaction.reply_end))
        .collect()
}

fn read(requests: &[u8], responses: &[u8]) -> HttpExchanges {
    let mut exchange = HttpExchanges::default();
    exchange.read(0, requests);
    exchange.read(1, responses);
    exchange
}

/// Returns the position at which the response to a request with this method ends.
fn response_ends(method: &str, response: &str) -> Option<u64> {
    let exchange = read(format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes(), response.as_bytes());
    found(&exchange)[0].1
}

/// Tests each item of RFC 9112 section 6.3.
#[test]
fn the_length_of_a_response_follows_from_request_status_and_fields() {
    let end = |method: &str, head: &str, body: &str| {
        let end = response_ends(method, &format!("HTTP/1.1 {head}\r\n\r\n{body}"))?;
        end.checked_sub(9 + head.len() as u64 + 4)
    };
    assert_eq!(end("HEAD", "200 OK\r\nContent-Length: 5", "HTTP/1.1"), Some(0));
    assert_eq!(end("GET", "204 No Content", "HTTP/1.1"), Some(0));
    assert_eq!(end("GET", "304 Not Modified\r\nContent-Length: 5", "HTTP/1.1"), Some(0));
    assert_eq!(end("CONNECT", "200 OK\r\nContent-Length: 5", "12345"), Some(0));
    assert_eq!(
        end("GET", "200 OK\r\nContent-Length: 5\r\ntransfer-encoding: gzip, Chunked", "1\r\na\r\n0\r\n\r\n"),
        Some(11)
    );
    assert_eq!(end("GET", "200 OK\r\nTransfer-Encoding: gzip", "abc"), None);
    assert_eq!(end("GET", "200 OK\r\nContent-Length: five", "12345"), None);
    assert_eq!(end("GET", "200 OK\r\nContent-Length: 5\r\nContent-Length: 6", "123456"), None);
    assert_eq!(end("GET", "200 OK\r\nContent-Length: 5, 5\r\nContent-Length:5", "12345"), Some(5));
    assert_eq!(end("GET", "200 OK\r\nContent-Length: 5", "1234"), None);
    assert_eq!(end("GET", "200\r\nContent-Length: +5", "12345"), None);
    assert_eq!(end("GET", "200", "abc"), None);
}

/// RFC 9112 section 6.3, item 8.
#[test]
fn a_response_without_a_length_ends_with_its_direction() {
    let mut exchange = read(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\nabc");
    exchange.close(0);
    assert_eq!(found(&exchange), [(Some(18), None)]);
    exchange.close(1);
    assert_eq!(found(&exchange), [(Some(18), Some(22))]);
    let mut cut = read(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    cut.close(1);
    assert_eq!(found(&cut), [(Some(18), None)]);
}

/// RFC 9112 section 7.1: extensions, trailers, and the last chunk.
#[test]
fn chunked_body_ends_with_the_empty_chunk_and_trailers() {
    let response =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\nSum: 1\r\n\r\n";
    assert_eq!(response_ends("GET", response), Some(response.len() as u64));
    assert_eq!(response_ends("GET", &response[..response.len() - 1]), None);
    assert_eq!(response_ends("GET", &response.replace("A;x", "Z;x")), None);
    assert_eq!(response_ends("GET", &response.replace("89\r\n", "890\r\n")), None);
}

/// RFC 9112 section 9.3.2: responses are in the order of the requests. RFC 9110 section 15.2: interim responses do not
/// answer a request.
#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let (first, second) =
        ("POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "\r\nHEAD /b HTTP/1.1\r\n\r\n");
    let (go, one) = ("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    let two = "HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\n";
    let exchange = read(format!("{first}{second}").as_bytes(), format!("{go}{one}{two}").as_bytes());
    let ends = [first.len(), first.len() + second.len()].map(|end| Some(end as u64));
    let replies = [go.len() + one.len(), go.len() + one.len() + two.len()].map(|end| Some(end as u64));
    assert_eq!(found(&exchange), [(ends[0], replies[0]), (ends[1], replies[1])]);
    let transactions = exchange.transactions();
    // Section 2.2: the empty line before a request does not belong to it.
    assert_eq!(transactions.iter().map(|t| t.begin).collect::<Vec<_>>(), [0, first.len() as u64 + 2]);
    // RFC 9110 section 15.5.
    assert_eq!(transactions.iter().map(|t| t.refused).collect::<Vec<_>>(), [false, true]);
}

/// RFC 9110 section 15.2.2: after status 101 both directions use another protocol.
#[test]
fn upgrade_is_answered_and_ends_http() {
    let ask = "GET / HTTP/1.1\r\nUpgrade: x\r\n\r\n";
    let mut exchange =
        read(ask.as_bytes(), b"HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    exchange.read(0, ask.as_bytes());
    assert_eq!(found(&exchange), [(Some(ask.len() as u64), Some(36))]);
}

/// RFC 9112 section 2.2: a line may end with LF alone; sections 3 and 4: the syntax of start lines.
#[test]
fn start_lines_are_parsed_strictly_and_line_ends_leniently() {
    assert_eq!(found(&read(b"GET / HTTP/1.1\nHost: a\n\n", b"")), [(Some(24), None)]);
    for line in
        ["GET /", "GET / HTTP/2.0", "GET  HTTP/1.1", " / HTTP/1.1", "GET / HTTP/1.1 x", "GET / HTTP/1.x"]
    {
        assert_eq!(found(&read(format!("{line}\r\n\r\n").as_bytes(), b"")), [], "{line}");
    }
    for line in ["HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/2.0 200 OK", "HTTP/1.1", "HTTP/1.1 099 Low"] {
        assert_eq!(response_ends("HEAD", &format!("{line}\r\n\r\n")), None, "{line}");
    }
    assert_eq!(found(&read(b"GET / HTTP/1.1\r\nno field\r\n\r\n", b"")), []);
}

/// A response that no request precedes is skipped.
#[test]
fn unsolicited_response_is_skipped() {
    let mut exchange = HttpExchanges::default();
    exchange.read(1, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    exchange.read(0, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(found(&exchange), [(Some(18), None)]);
}

/// Servers limit the length of a head (RFC 9112 section 3); this reader does so, too, to bound its memory.
#[test]
fn endless_head_is_no_http() {
    let mut exchange = HttpExchanges::default();
    exchange.read(0, b"GET / HTTP/1.1\r\n");
    (0..5000).for_each(|_| exchange.read(0, b"Field: and its value\r\n"));
    exchange.read(0, b"\r\n");
    assert_eq!(found(&exchange), []);
}

/// The messages do not depend on how the octets are divided into segments.
#[test]
fn segment_boundaries_do_not_affect_parsing() {
    let requests =
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    let responses = b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let whole = read(requests, responses);
    assert!(whole.transactions().iter().all(|t| t.request_end.is_some() && t.reply_end.is_some()));
    let mut cut = HttpExchanges::default();
    requests.chunks(1).for_each(|octet| cut.read(0, octet));
    responses.chunks(1).for_each(|octet| cut.read(1, octet));
    assert_eq!(whole.transactions(), cut.transactions());
}
