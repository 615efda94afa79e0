//! The transitions between states of a connection. RFC 9293 section 3.3.2, figure 5.

use crate::State;

/// The state of a connection. It changes only along the arrows of RFC 9293, figure 5.
#[derive(Debug)]
pub(crate) struct StateMachine {
    state: State,
    /// Whether the connection started in LISTEN.
    passive: bool,
}

impl StateMachine {
    /// Creates a machine in CLOSED, or in LISTEN.
    pub(crate) fn new(state: State) -> Self {
        Self { state, passive: state == State::Listen }
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Enters SYN-SENT, because our SYN has been sent.
    pub(crate) fn open(&mut self) {
        self.transition(&[State::Closed], State::SynSent);
    }

    /// Enters SYN-RECEIVED: the peer's SYN has arrived, and ours is not acknowledged.
    pub(crate) fn on_syn_received(&mut self) {
        self.transition(&[State::Listen, State::SynSent], State::SynReceived);
    }

    /// Returns whether the connection started in LISTEN, as a server's does.
    pub(crate) fn is_passive(&self) -> bool {
        self.passive
    }

    /// Returns to LISTEN, because the handshake of the peer has failed.
    pub(crate) fn listen_again(&mut self) {
        self.transition(&[State::SynReceived], State::Listen);
    }

    /// Enters ESTABLISHED, because both SYNs are acknowledged.
    pub(crate) fn establish(&mut self) {
        self.transition(&[State::SynSent, State::SynReceived], State::Established);
    }

    /// Changes the state because the application closes the connection: our FIN follows the queued
    /// data.
    pub(crate) fn on_fin_queued(&mut self) {
        let next = if self.state == State::CloseWait { State::LastAck } else { State::FinWait1 };
        self.transition(&[State::Established, State::CloseWait], next);
    }

    /// Changes the state because our FIN is acknowledged, while the peer may continue to send.
    pub(crate) fn on_fin_acknowledged(&mut self) {
        self.transition(&[State::FinWait1], State::FinWait2);
    }

    /// Changes the state because the peer's FIN has arrived, while ours is unsent or
    /// unacknowledged.
    pub(crate) fn on_fin_received(&mut self) {
        let next = if self.state == State::FinWait1 { State::Closing } else { State::CloseWait };
        self.transition(&[State::Established, State::FinWait1], next);
    }

    /// Enters TIME-WAIT: both FINs are acknowledged, and ours was sent first. RFC 9293 section
    /// 3.6.1.
    pub(crate) fn enter_time_wait(&mut self) {
        self.transition(&[State::FinWait2, State::Closing], State::TimeWait);
    }

    /// Enters CLOSED from any state.
    pub(crate) fn end(&mut self) {
        self.state = State::Closed;
    }

    fn transition(&mut self, from: &[State], to: State) {
        assert!(from.contains(&self.state), "{} becomes {}", self.state.name(), to.name());
        self.state = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begin: State, events: &[fn(&mut StateMachine)]) -> State {
        let mut machine = StateMachine::new(begin);
        events.iter().for_each(|event| event(&mut machine));
        machine.state()
    }

    #[test]
    fn every_transition_of_the_state_diagram_is_made() {
        // RFC 9293 section 3.3.2, figure 5.
        use StateMachine as M;
        assert_eq!(after(State::Closed, &[M::open]), State::SynSent);
        assert_eq!(after(State::Listen, &[M::on_syn_received, M::listen_again]), State::Listen);
        assert_eq!(after(State::Listen, &[M::on_syn_received]), State::SynReceived);
        assert_eq!(after(State::Closed, &[M::open, M::on_syn_received]), State::SynReceived);
        let open: [fn(&mut M); 2] = [M::open, M::establish];
        let then = |more: &[fn(&mut M)]| after(State::Closed, &[&open[..], more].concat());
        assert_eq!(then(&[M::on_fin_queued]), State::FinWait1);
        assert_eq!(then(&[M::on_fin_queued, M::on_fin_acknowledged]), State::FinWait2);
        assert_eq!(then(&[M::on_fin_queued, M::on_fin_acknowledged, M::enter_time_wait]), State::TimeWait);
        assert_eq!(then(&[M::on_fin_queued, M::on_fin_received]), State::Closing);
        assert_eq!(then(&[M::on_fin_queued, M::on_fin_received, M::enter_time_wait]), State::TimeWait);
        assert_eq!(then(&[M::on_fin_received]), State::CloseWait);
        assert_eq!(then(&[M::on_fin_received, M::on_fin_queued]), State::LastAck);
        assert_eq!(then(&[M::on_fin_received, M::on_fin_queued, M::end]), State::Closed);
    }

    #[test]
    #[should_panic(expected = "CLOSE-WAIT becomes TIME-WAIT")]
    fn other_state_transitions_panic() {
        after(
            State::Listen,
            &[
                StateMachine::on_syn_received,
                StateMachine::establish,
                StateMachine::on_fin_received,
                StateMachine::enter_time_wait,
            ],
        );
    }
}
