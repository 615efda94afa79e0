//! The first checks of every message, in the order of RFC 4540 section 6.

use hol_base::Time;

use super::Middlebox;
use crate::batch::{SessionRequest, StepCause};
use crate::header::{basic_type, sub_type};
use crate::{Batch, Header, Message, ParseError, Refusal, Request, SessionId};

impl Middlebox {
    pub(super) fn process_message(&mut self, now: Time, id: SessionId, octets: &[u8], batch: &mut Batch) {
        let is_whole = |header: &Header| header.message_length() == octets.len() && header.may_be_request();
        let Some(header) = Header::parse(octets).filter(is_whole) else {
            return self.report_malformed(id, batch);
        };
        let session = &self.sessions[&id];
        let agent = session.agent();
        let tid = header.tid;
        match (check(header, &octets[Header::LENGTH..], session.is_established()), agent) {
            (Ok(request), Some(agent)) if !is_session_control(header.sub_type) => {
                self.transact(now, SessionRequest { session: id, agent, tid, request, mapping: None }, batch);
            }
            (outcome, agent) => {
                batch.begin_step(StepCause::Session);
                match outcome {
                    Ok(request) => self.handle_session_control(id, header, request, batch),
                    Err(refusal) if agent.is_some() => batch.send(id, Message::refusal(tid, refusal)),
                    Err(refusal) => self.refuse_session(id, tid, refusal, batch),
                }
            }
        }
    }

    /// Handles requests of session control. Requests about rules arrive here only if the session is not open. RFC 4540
    /// section 7.1.
    fn handle_session_control(&mut self, id: SessionId, header: Header, request: Request, batch: &mut Batch) {
        match request {
            Request::Se { version, challenge } => self.establish(id, header.tid, version, challenge, batch),
            Request::Sa { token } => self.finish_authentication(id, header.tid, token, batch),
            Request::St => self.terminate(id, header.tid, batch),
            _ => batch.send(id, Message::refusal(header.tid, Refusal::NotApplicable)),
        }
    }
}

/// Checks a message with steps 3 to 5 of RFC 4540 section 6. In step 4, only SE passes without a session, and every
/// request with a session.
fn check(header: Header, body: &[u8], is_established: bool) -> Result<Request, Refusal> {
    if header.basic_type != basic_type::REQUEST {
        return Err(Refusal::WrongBasicType);
    }
    if !is_established && header.sub_type != sub_type::SE {
        return Err(Refusal::WrongSubType);
    }
    Request::parse(header.sub_type, body).map_err(|error| match error {
        ParseError::SubType(_) => Refusal::WrongSubType,
        _ => Refusal::BadlyFormed,
    })
}

fn is_session_control(sub_type: u8) -> bool {
    matches!(sub_type, sub_type::SE | sub_type::SA | sub_type::ST)
}
