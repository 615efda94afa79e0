//! A daemon whose process has reached its limit of open files. The limit applies to the whole process, so this
//! test has one of its own.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;

use crate::limit::is_own_process;
use hol_base::Time;
use hol_daemon::{Level, LimitSettings, Log, Settings};
use hol_simco::{Message, Request, Tid, Version, length_of};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

fn processor_time() -> Time {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[test]
fn accepting_pauses_while_no_file_can_be_opened() {
    if !is_own_process("open_files::accepting_pauses_while_no_file_can_be_opened") {
        return;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(200), maximum: Some(200) }).unwrap();
    let limits = LimitSettings { connections: 100, ..LimitSettings::default() };
    let many = Settings { listen: vec!["127.0.0.1:0".parse().unwrap()], ..Settings::default() };
    let error = many.open(Log::new(Level::Error, Box::new(std::io::sink()))).unwrap_err().to_string();
    assert!(error.contains("LimitNOFILE=10064") && error.contains("set connections = 136"), "{error}");
    let settings = Settings { limits, listen: vec!["127.0.0.1:0".parse().unwrap()], ..Settings::default() };
    let mut daemon = settings.open(Log::new(Level::Error, Box::new(std::io::sink()))).unwrap();
    let address = daemon.addresses().next().unwrap().address;
    let (stop, stopped) = UnixStream::pair().unwrap();
    let serving = thread::spawn(move || daemon.run(stopped, |_| {}));

    let mut hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    hoard.pop().expect("room for the agent's own socket");
    let mut agent = TcpStream::connect(address).unwrap();
    let se = Message::request(Tid(1), Request::Se { version: Version::SIMCO_3_0, challenge: None });
    agent.write_all(&se.to_bytes()).unwrap();
    agent.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    let (before, mut reply) = (processor_time(), [0; 64]);
    assert_eq!(
        agent.read(&mut reply).unwrap_err().kind(),
        ErrorKind::WouldBlock,
        "no connection is accepted"
    );
    let used = processor_time().since(before);
    assert!(used.as_millis() < 100, "{used} of a processor in 300 ms");

    drop(hoard);
    agent.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let count = agent.read(&mut reply).unwrap();
    assert_eq!(length_of(&reply), Some(count), "the session is open");
    drop(stop);
    drop(agent);
    serving.join().unwrap().unwrap();
}
