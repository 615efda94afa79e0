//! Reads HTTP/1 from one stream: requests in one direction, responses in the other. RFC 9112.

mod head;
mod reader;

use std::collections::VecDeque;

use head::BodyLength;
use reader::{Event, Reader};

/// The requests of a stream and their responses.
#[derive(Debug, Default)]
pub(crate) struct HttpExchanges {
    requests: Reader,
    responses: Reader,
    transactions: Vec<Transaction>,
    /// Requests for which no head of a response has been read; responses are in the order of the requests. RFC 9112
    /// section 9.3.2.
    unanswered: VecDeque<UnansweredRequest>,
    /// The transaction whose response is in progress.
    answered: Option<usize>,
}

/// A request and its response, by positions in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transaction {
    /// Position of the start of the request.
    pub begin: u64,
    /// Position of the end of the request, if it was sent completely.
    pub request_end: Option<u64>,
    /// Position of the end of the response, if it was sent completely.
    pub reply_end: Option<u64>,
    /// Whether the response is an error. RFC 9110 sections 15.5 and 15.6.
    pub refused: bool,
}

/// The properties of a request that affect the length of its response.
#[derive(Debug)]
struct UnansweredRequest {
    transaction: usize,
    method: Method,
}

/// The methods that affect the length of a response. RFC 9112 section 6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Head,
    Connect,
    Other,
}

impl HttpExchanges {
    /// Reads octets of a direction: direction 0 carries the requests, direction 1 the responses.
    pub fn read(&mut self, direction: usize, octets: &[u8]) {
        if direction == 0 { self.read_requests(octets) } else { self.read_responses(octets) }
    }

    /// Ends a direction, and a response that ends with its connection. RFC 9112 section 6.3, item 8.
    pub fn close(&mut self, direction: usize) {
        if direction == 1
            && let Some(end) = self.responses.close()
        {
            self.end_response(end);
        }
    }

    /// Returns the transactions so far.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    fn read_requests(&mut self, mut octets: &[u8]) {
        while let Some(event) = self.requests.next(&mut octets) {
            match event {
                Event::Head { begin, head } => match head.request() {
                    Some((method, framing)) => self.begin_request(begin, method, framing),
                    None => self.requests.set_body_length(BodyLength::Opaque),
                },
                Event::End(end) => {
                    self.transactions
                        .last_mut()
                        .into_iter()
                        .for_each(|request| request.request_end = Some(end));
                }
            }
        }
    }

    fn begin_request(&mut self, begin: u64, method: Method, framing: BodyLength) {
        self.unanswered.push_back(UnansweredRequest { transaction: self.transactions.len(), method });
        self.transactions.push(Transaction { begin, request_end: None, reply_end: None, refused: false });
        self.requests.set_body_length(framing);
    }

    fn read_responses(&mut self, mut octets: &[u8]) {
        while let Some(event) = self.responses.next(&mut octets) {
            match event {
                Event::Head { head, .. } => match head.status() {
                    Some(status) => self.begin_response(status, &head),
                    None => self.responses.set_body_length(BodyLength::Opaque),
                },
                Event::End(end) => self.end_response(end),
            }
        }
    }

    fn begin_response(&mut self, status: u16, head: &head::Head) {
        // RFC 9110 section 15.2: an interim response precedes the final one.
        let is_interim = (100..200).contains(&status) && status != SWITCHING_PROTOCOLS;
        let request = if is_interim { None } else { self.unanswered.pop_front() };
        let method = request.as_ref().map_or(Method::Other, |request| request.method);
        self.answered = request.map(|request| request.transaction);
        if let Some(at) = self.answered {
            self.transactions[at].refused = status >= 400;
        }
        let framing = head.response(method, status);
        if framing == BodyLength::Tunnel {
            self.requests.set_body_length(BodyLength::Opaque);
        }
        self.responses.set_body_length(framing);
    }

    fn end_response(&mut self, end: u64) {
        if let Some(at) = self.answered.take() {
            self.transactions[at].reply_end = Some(end);
        }
    }
}

/// The status code after which the connection uses another protocol. RFC 9110 section 15.2.2.
const SWITCHING_PROTOCOLS: u16 = 101;

#[cfg(test)]
mod tests;
