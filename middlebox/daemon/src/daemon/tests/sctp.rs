//! Agents over SCTP.

use hol_base::Duration;
use hol_simco::{Body, Lifetime, Message, Notification, PAYLOAD_PROTOCOL, Pid, Reply, Request, Tid, Version};
use hol_system::Association;
use socket2::{Domain, Protocol, Socket, Type};

use super::world::{Plan, World, per};
use crate::Transport;

/// Returns a daemon that listens for SCTP associations.
fn world() -> World {
    Plan { transport: Transport::Sctp, ..Plan::default() }.open()
}

fn connect(world: &mut World) -> Association {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::SCTP)).unwrap();
    socket.connect(&world.address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    world.turn();
    let mut association = Association::new(socket).unwrap();
    send_octets(&association, 0, Request::Se { version: Version::SIMCO_3_0, challenge: None });
    assert!(matches!(receive(world, &mut association).unwrap().body, Body::Reply(Reply::Se { .. })));
    association
}

fn send_octets(association: &Association, tid: u32, request: Request) {
    let streams = u32::from(association.streams().unwrap());
    let octets = Message::request(Tid(tid), request).to_bytes();
    association.send(&octets, (tid % streams) as u16, PAYLOAD_PROTOCOL).unwrap();
}

/// Returns the next message; `None` if the association has ended.
fn receive(world: &mut World, association: &mut Association) -> Option<Message> {
    let mut buffer = [0; 1 << 16];
    for _ in 0..1000 {
        match association.receive(&mut buffer) {
            Ok(Some(octets)) => return Some(Message::parse(&octets).unwrap()),
            Ok(None) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => drop(world.turn()),
            Err(_) => return None,
        }
    }
    panic!("the daemon says nothing")
}

#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn sctp_answers_use_the_stream_of_their_tid() {
    let world = &mut world();
    let mut agent = connect(world);
    let mut answered: Vec<u32> = Vec::new();
    for fifty in 0..20 {
        (1..=50).for_each(|tid| send_octets(&agent, fifty * 50 + tid, per(5004, 3600)));
        for _ in 0..50 {
            let Message { tid, body } = receive(world, &mut agent).unwrap();
            assert!(matches!(body, Body::Reply(Reply::Per(_))));
            answered.push(tid.0);
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=1000).collect::<Vec<_>>(), "streams do not wait for one another");
    send_octets(&agent, 2000, Request::Plc { pid: Pid(7), lifetime: Lifetime(0) });
    assert_eq!(receive(world, &mut agent).unwrap(), Message::reply(Tid(2000), Reply::Prd));
    send_octets(&agent, 2001, Request::St);
    assert_eq!(receive(world, &mut agent).unwrap(), Message::reply(Tid(2001), Reply::St));
    assert_eq!(receive(world, &mut agent), None);
    drop(agent);
    // The three messages of a shutdown take time, which has a limit.
    world.skip(Duration::from_secs(3));
    assert_eq!(world.daemon.connections.len(), 0);
}

/// RFC 4540 section 6, step 1.
#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn a_user_message_that_is_longer_than_any_request_ends_the_session() {
    let world = &mut world();
    for length in [4109, 60_000] {
        let mut agent = connect(world);
        agent.send(&vec![1; length], 0, PAYLOAD_PROTOCOL).unwrap();
        let received =
            [receive(world, &mut agent), receive(world, &mut agent)].map(|message| message.unwrap().body);
        assert_eq!(
            received,
            [Notification::Bfm, Notification::Ast].map(Body::Notification),
            "{length} octets"
        );
        assert_eq!(receive(world, &mut agent), None);
    }
}

#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn an_agent_over_sctp_that_never_reads_is_not_read_from() {
    let world = &mut world();
    let agent = connect(world);
    let request = Message::request(Tid(1), Request::Prs { pid: Pid(0) }).to_bytes();
    let mut attempts = 0;
    while world.daemon.connections.queued_octets() == 0 {
        if agent.send(&request, 0, PAYLOAD_PROTOCOL).is_err() {
            world.turn();
            attempts += 1;
            assert!(attempts < 10_000, "the kernel's buffers are finite");
        }
    }
    world.settle();
    assert!(world.daemon.connections.queued_octets() < 1 << 20);
    world.skip(crate::Limits::default().patience);
    assert_eq!(world.daemon.connections.len(), 0);
}
