//! Measures the processor time per message of a bulk transfer with our SCTP, usrsctp and dcsctp. Both ends run in one
//! process and in virtual time, with a one-way delay of 1 ms between them. The stacks take turns, so that other load
//! on the machine affects all of them.

mod dcsctp;
mod ours;
mod usrsctp;
mod wire;

/// Parameters of the transfer, which are the same for all stacks.
#[derive(Clone, Copy)]
struct Bulk {
    messages: u64,
    octets: usize,
}

impl Bulk {
    /// Maximum length of a packet in octets, without the IP header.
    const MTU: usize = 1400;
    const DELAY: hol_base::Duration = hol_base::Duration::from_millis(1);
    /// Size of the send and receive buffers in octets, as in Linux.
    const BUFFER: usize = 212_992;
}

/// Returns the processor time of this thread in ns. proc(5), schedstat.
fn used() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first argument is a number")
}

fn timed(transfer: impl FnOnce()) -> u64 {
    let before = used();
    transfer();
    used() - before
}

fn main() {
    let is_a_test = std::env::args().any(|word| word == "--test");
    let (rounds, octets_in_all) = if is_a_test { (1, 1_000_000) } else { (5, 30_000_000) };
    let usrsctp = usrsctp::Program::compile();
    println!("| octets a message | ours: ns a message | dcsctp | usrsctp |\n| --- | --- | --- | --- |");
    for octets in [128, 1024, 16_384] {
        let bulk = Bulk { messages: octets_in_all / octets as u64, octets };
        let mut min = [None::<u64>; 3];
        for _ in 0..rounds {
            let took = [
                Some(timed(|| ours::transfer(bulk))),
                Some(timed(|| dcsctp::transfer(bulk))),
                usrsctp.as_ref().map(|program| program.transfer(bulk)),
            ];
            for (min, took) in min.iter_mut().zip(took) {
                *min = (*min).into_iter().chain(took).min();
            }
        }
        let [ours, dcsctp, usrsctp] =
            min.map(|ns| ns.map_or("-".to_owned(), |ns| (ns / bulk.messages).to_string()));
        println!("| {octets} | {ours} | {dcsctp} | {usrsctp} |");
    }
}
