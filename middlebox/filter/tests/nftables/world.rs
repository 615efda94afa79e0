//! Three network namespaces: an internal host, the middlebox, an external host.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hol_filter::{Config, FilterError, Nftables};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The namespaces, which are removed with this value.
pub struct World {
    names: [String; 3],
}

/// One of the namespaces.
#[derive(Clone, Copy)]
pub enum Node {
    Inside,
    Middlebox,
    Outside,
}

use Node::{Inside, Middlebox, Outside};

/// Maximum transit time of a packet.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(250);

impl World {
    /// Creates the world: 10.1.0.0/24 and fd01::/64 are inside, 10.2.0.0/24 and fd02::/64 outside; the middlebox is
    /// .1, the hosts are .2 and .3. To all other addresses hosts have a route to the middlebox, so it may assign any
    /// of them.
    ///
    /// # Panics
    ///
    /// Without root, `ip` or `nft`.
    pub fn new() -> Self {
        Self::make().unwrap_or_else(|error| panic!("needs root, iproute2 and nftables: {error}"))
    }

    fn make() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |node: &str| format!("hol-filter-{}-{number}-{node}", std::process::id());
        let world = Self { names: ["in", "mid", "out"].map(name) };
        for (node, name) in [Inside, Middlebox, Outside].into_iter().zip(&world.names) {
            run("ip", &["netns", "add", name], "")?;
            // IPv6 addresses are usable without a delay.
            world.run(node, "sysctl", &["-qw", "net.ipv6.conf.default.accept_dad=0"])?;
        }
        let [inside, middlebox, outside] = &world.names;
        let links = format!(
            "link add in0 netns {middlebox} type veth peer name eth0 netns {inside}\n\
             link add out0 netns {middlebox} type veth peer name eth0 netns {outside}\n"
        );
        run("ip", &["-batch", "-"], &links)?;
        world.configure(Inside, "eth0", 1, true)?;
        world.configure(Outside, "eth0", 2, true)?;
        world.configure(Middlebox, "in0", 1, false)?;
        world.configure(Middlebox, "out0", 2, false)?;
        world.run(
            Middlebox,
            "sysctl",
            &["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"],
        )?;
        // One process opens both sockets: a child that another test is starting might still own the address.
        let inside = world.udp(Inside, "10.1.0.2:1");
        for host in ["10.2.0.2:1", "10.2.0.3:1"] {
            await_links(&world.udp(Outside, host), "10.1.0.2:1", &inside);
        }
        Ok(world)
    }

    fn configure(&self, node: Node, interface: &str, net: u8, is_host: bool) -> io::Result<()> {
        let hosts = if is_host { 2..=3 } else { 1..=1 };
        let mut batch = String::from("link set lo up\n");
        for host in hosts {
            batch += &format!("address add 10.{net}.0.{host}/24 dev {interface}\n");
            batch += &format!("address add fd0{net}::{host}/64 dev {interface} nodad\n");
        }
        batch += &format!("link set {interface} up\n");
        if is_host {
            batch += &format!("route add default via 10.{net}.0.1\nroute add default via fd0{net}::1\n");
        }
        self.feed(node, "ip", &["-batch", "-"], &batch).map(drop)
    }

    /// Runs a script with `nft` at the middlebox, and returns its output.
    pub fn nft(&self, script: &str) -> String {
        self.feed(Middlebox, "nft", &["-f", "-"], script).unwrap()
    }

    /// Returns all rules at the middlebox as `nft` shows them, which is independent of our code.
    pub fn listing(&self) -> String {
        self.nft("list ruleset")
    }

    /// Returns the listing without values that change with time.
    pub fn stateless_listing(&self) -> String {
        self.run(Middlebox, "nft", &["-s", "list", "ruleset"]).unwrap()
    }

    pub fn filter(&self, config: Config) -> Nftables {
        self.open(config).unwrap()
    }

    pub fn open(&self, config: Config) -> Result<Nftables, FilterError> {
        self.call_in(Middlebox, || Nftables::open(config))
    }

    pub fn udp(&self, node: Node, address: &str) -> UdpSocket {
        let socket = self.call_in(node, || UdpSocket::bind(address)).unwrap();
        socket.set_read_timeout(Some(RECEIVE_TIMEOUT)).unwrap();
        socket
    }

    pub fn listen(&self, node: Node, address: &str) -> TcpListener {
        self.call_in(node, || TcpListener::bind(address)).unwrap()
    }

    pub fn connect(&self, node: Node, address: &str) -> io::Result<TcpStream> {
        let address: SocketAddr = address.parse().unwrap();
        let stream = self.call_in(node, move || TcpStream::connect_timeout(&address, RECEIVE_TIMEOUT))?;
        stream.set_read_timeout(Some(RECEIVE_TIMEOUT))?;
        Ok(stream)
    }

    /// Runs a program in a namespace.
    pub fn run(&self, node: Node, program: &str, arguments: &[&str]) -> io::Result<String> {
        self.feed(node, program, arguments, "")
    }

    /// Returns a command that runs a program in a namespace.
    pub fn command(&self, node: Node, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[node as usize], program]);
        command
    }

    fn feed(&self, node: Node, program: &str, arguments: &[&str], input: &str) -> io::Result<String> {
        complete(self.command(node, program).args(arguments), input)
    }

    /// Calls `what` on a thread in a namespace: a socket stays in the namespace where it was opened.
    pub fn call_in<T: Send>(&self, node: Node, what: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.names[node as usize])).unwrap();
        let there = || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            what()
        };
        std::thread::scope(|scope| scope.spawn(there).join().unwrap())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for name in &self.names {
            drop(run("ip", &["netns", "delete", name], ""));
        }
    }
}

/// Returns the address from which a datagram arrives; `None` if it is lost.
pub fn arrives(from: &UdpSocket, address: &str, to: &UdpSocket) -> Option<String> {
    let mut octets = [0; 16];
    to.set_nonblocking(true).unwrap();
    while to.recv(&mut octets).is_ok() {}
    to.set_nonblocking(false).unwrap();
    // Errors of earlier datagrams, such as ICMP, are ignored.
    let _ = from.take_error();
    from.send_to(b"RTP", address).ok()?;
    let (_, source) = to.recv_from(&mut octets).ok()?;
    Some(source.to_string())
}

/// Waits until a datagram arrives: links take time to come up, and IPv6 discovers neighbours once a second.
pub fn await_links(from: &UdpSocket, address: &str, to: &UdpSocket) {
    assert!((0..40).any(|_| arrives(from, address, to).is_some()), "nothing arrives at {address}");
}

/// Lets time pass.
pub fn wait(time: Duration) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(time)).unwrap();
    assert!(socket.recv(&mut [0]).is_err());
}

fn run(program: &str, arguments: &[&str], input: &str) -> io::Result<String> {
    complete(Command::new(program).args(arguments), input)
}

/// Returns the output of a program; its error output is an error.
fn complete(command: &mut Command, input: &str) -> io::Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().expect("a pipe").write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{command:?}: {}", complaint.trim())))
}
