//! A middlebox behind a TCP port of this machine, whose time is controlled by the test.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use hol_base::{Duration, Time};
use hol_simco::{
    Authentication, Batch, Config, ConnectionInfo, Framing, Middlebox, Output, Policy, SessionId,
};

/// A middlebox that serves connections until the test ends.
#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    now: Time,
    middlebox: Middlebox,
    connections: BTreeMap<SessionId, TcpStream>,
}

impl Server {
    pub fn start(config: Config, policy: Policy, authentication: Box<dyn Authentication>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let middlebox = Middlebox::new(config, policy, authentication).unwrap();
        let state = State { now: Time::ZERO, middlebox, connections: BTreeMap::new() };
        let server = Self { address, state: Arc::new(Mutex::new(state)) };
        let accepting = server.clone();
        thread::spawn(move || listener.incoming().for_each(|stream| accepting.accept(stream.unwrap())));
        server
    }

    /// Advances the middlebox's clock.
    pub fn advance(&self, time: Duration) {
        let mut state = self.state.lock().unwrap();
        state.now += time;
        let now = state.now;
        state.change(|middlebox, batch| middlebox.advance(now, batch));
    }

    /// Ends all sessions as before a shutdown.
    pub fn end_sessions(&self) {
        self.state.lock().unwrap().change(|middlebox, batch| middlebox.end_sessions(batch));
    }

    fn accept(&self, mut stream: TcpStream) {
        let server = self.clone();
        let mut state = self.state.lock().unwrap();
        let now = state.now;
        let id = state.middlebox.connect(now, ConnectionInfo::plain(Framing::Stream));
        state.connections.insert(id, stream.try_clone().unwrap());
        thread::spawn(move || {
            // Small pieces split messages at any octet.
            let mut piece = [0; 37];
            while let Ok(length @ 1..) = stream.read(&mut piece) {
                let mut state = server.state.lock().unwrap();
                let now = state.now;
                let octets = piece[..length].to_vec().into();
                state.change(|middlebox, batch| middlebox.receive(now, id, octets, batch));
            }
            server.state.lock().unwrap().middlebox.disconnect(id);
        });
    }
}

impl State {
    fn change(&mut self, change: impl FnOnce(&mut Middlebox, &mut Batch)) {
        let mut batch = Batch::default();
        change(&mut self.middlebox, &mut batch);
        for output in batch.release() {
            match output {
                Output::Send(id, message) => {
                    // An agent that is gone reads no message.
                    (&self.connections[&id]).write_all(&message.to_bytes()).unwrap_or_default();
                }
                Output::Close(id) => {
                    if let Some(stream) = self.connections.remove(&id) {
                        stream.shutdown(Shutdown::Both).unwrap_or_default();
                    }
                }
            }
        }
    }
}
