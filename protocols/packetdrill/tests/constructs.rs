//! Tests the constructs of packetdrill's language with small scripts, and the refusal of unsupported ones.

use std::fmt::Write as _;

use hol_packetdrill::{ErrorOrigin, PlayError, PlayRules, play};

const CONNECT: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
    +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>\n+0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 1000\n\
    +0 accept(3, ..., ...) = 4\n";

const ASSOCIATE: &str = "0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+0 listen(3, 1) = 0\n\
    +0 < sctp: INIT[flgs=0, tag=7, a_rwnd=15000, os=4, is=4, tsn=1]\n+0 > sctp: INIT_ACK[flgs=0, tag=1, tsn=1, ...]\n\
    +.1 < sctp: COOKIE_ECHO[flgs=0, len=..., val=...]\n+0 > sctp: COOKIE_ACK[flgs=0]\n+0 accept(3, ..., ...) = 4\n";

fn linux(text: &str) -> Result<(), PlayError> {
    play(text, None, &PlayRules::packetdrill("linux-6.12"))
}

#[track_caller]
fn passes(text: &str) {
    if let Err(mistake) = linux(text) {
        panic!("{mistake}\n{text}");
    }
}

#[track_caller]
fn deviation(text: &str, told: &str) {
    let mistake = linux(text).expect_err(text);
    assert_eq!(mistake.origin(), ErrorOrigin::Endpoint, "{mistake}\n{text}");
    assert!(mistake.to_string().contains(told), "{mistake}\n{text}");
}

#[track_caller]
fn is_not_read(text: &str, told: &str) {
    let mistake = linux(text).expect_err(text);
    assert_eq!(mistake.origin(), ErrorOrigin::Script, "{mistake}\n{text}");
    assert!(mistake.to_string().contains(told), "{mistake}\n{text}");
}

#[test]
fn fcntl_makes_calls_non_blocking() {
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)\n";
    let block = format!("{open}+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 fcntl(3, F_GETFL) = 0x802\n");
    passes(&format!(
        "{block}+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n+0 > S 0:0(0) <...>"
    ));
    deviation(&format!("{open}+0 connect(3, ..., ...) = 0"), "blocks, but the script gives no time");
}

#[test]
fn blocking_call_returns_when_it_can_proceed() {
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    let answer = "+0 > S 0:0(0) <...>\n+.1 < S. 0:0(0) ack 1 win 5000 <mss 1000>\n+0 > . 1:1(0) ack 1\n";
    passes(&format!("{open}+0...0.1 connect(3, ..., ...) = 0\n{answer}"));
    deviation(
        &format!("{open}+0...0.3 connect(3, ..., ...) = 0\n{answer}"),
        "returns at 0.100000, not at the end of",
    );
    deviation(
        &format!("{open}+0...0.1 connect(3, ..., ...) = 0\n+0 > S 0:0(0) <...>"),
        "is still blocked at the end",
    );
    passes(&format!(
        "{CONNECT}+0...0.2 read(4, ..., 1000) = 500\n+.2 < P. 1:501(500) ack 1 win 1000\n+0 > . 1:1(0) ack 501"
    ));
    // Data without room in the send buffer wait for acknowledgments.
    let small = format!("{CONNECT}+0 setsockopt(4, SOL_SOCKET, SO_SNDBUF, [2304], 4) = 0\n");
    let rest =
        "+0 > P. 1:10001(10000) ack 1\n+.1 < . 1:1(0) ack 10001 win 1000\n+0 > P. 10001:30001(20000) ack 1";
    passes(&format!("{small}+0...0.1 write(4, ..., 40000) = 40000\n{rest}"));
}

#[test]
fn consecutive_segments_match_one_expected_segment() {
    let text = format!("{CONNECT}+0 write(4, ..., 5000) = 5000\n+0 > P. 1:5001(5000) ack 1\n");
    passes(&text);
    deviation(&format!("--strict_segments\n{text}"), "but got >");
    deviation(&format!("{CONNECT}+0 write(4, ..., 5000) = 5000\n+0 > P. 1:7001(7000) ack 1\n"), "but got >");
}

#[test]
fn step_may_span_several_lines() {
    passes(&format!(
        "{ASSOCIATE}+0 sctp_sendv(4, [{{..., 100}}], 1, ..., 1,\n  {{sendv_flags=SCTP_SEND_SNDINFO_VALID, // why\n   \
        sendv_sndinfo={{snd_sid=1, snd_flags=0,\n  snd_ppid=htonl(5), snd_context=0, snd_assoc_id=0}}}}, 32,\n SCTP_SENDV_SPA, 0) = 100\n\
        +0 > sctp: DATA[flgs=BE, len=116,\n  tsn=1, sid=1, ssn=0, ppid=5]"
    ));
}

#[test]
fn commands_and_ifdef_configure_the_endpoint() {
    let syn = |options: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <{options}>"
        )
    };
    passes(&format!(
        "`sysctl -q net.ipv4.tcp_timestamps=0 \\\n net.ipv4.tcp_sack=0`\n{}",
        syn("mss 1460,nop,wscale 7")
    ));
    passes(&format!(
        "`sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"`\n{}",
        syn("mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 8")
    ));
    passes(&format!(
        "#ifdef FreeBSD\n`sysctl frob=1`\n#endif\n#ifdef Linux\n`sysctl net.ipv4.tcp_sack=0`\n#endif\n{}",
        syn("mss 1460,TS val 5 ecr 0,wscale 7")
    ));
    is_not_read(
        &format!("\n`sysctl net.ipv4.tcp_frob=1`\n{}", syn("...")),
        ":2: sysctl net.ipv4.tcp_frob is not supported",
    );
    is_not_read("0 `rm -rf /`", "is not supported");
}

#[test]
fn command_files_are_read_from_the_script_folder() {
    let folder = std::env::temp_dir().join(format!("hol-packetdrill-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("tests")).unwrap();
    std::fs::write(folder.join("defaults.sh"), "#!/bin/sh\n# none\nsysctl -q net.ipv4.tcp_sack=0\n").unwrap();
    std::fs::write(folder.join("tests/again.sh"), "./again.sh\n").unwrap();
    let rules = PlayRules::packetdrill("linux-6.12");
    let text = |file: &str| {
        format!(
            "`{file}`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <mss 1460,TS val 5 ecr 0,wscale 7>"
        )
    };
    let tests = folder.join("tests");
    for file in ["../defaults.sh", "./defaults.sh"] {
        assert_eq!(play(&text(file), Some(&tests), &rules), Ok(()), "{file}");
    }
    let endless = play(&text("./again.sh"), Some(&tests), &rules).unwrap_err();
    assert!(endless.to_string().contains("4 deep"), "{endless}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn python_assertions_read_the_state_of_the_endpoint() {
    let sent = format!("{CONNECT}+0 write(4, ..., 2000) = 2000\n+0 > P. 1:2001(2000) ack 1\n");
    passes(&format!(
        "{sent}+0 %{{\nassert tcpi_unacked == 2, tcpi_unacked\nassert tcpi_lost == 0 and tcpi_ca_state == TCP_CA_Open\n\
        cwnd = tcpi_snd_cwnd; assert 10 <= cwnd < 11\n}}%\n"
    ));
    deviation(
        &format!("{sent}%{{ assert tcpi_unacked == 3, tcpi_unacked }}%"),
        "expected tcpi_unacked == 3, but tcpi_unacked is 2",
    );
    is_not_read(&format!("{sent}%{{ assert tcpi_frob == 3 }}%"), "unknown variable \"tcpi_frob\"");
    is_not_read(&format!("{sent}%{{ import os }}%"), "import starts an unsupported");
}

#[test]
fn socket_options_apply_from_then_on() {
    // Nagle's algorithm, until it is disabled.
    let small = format!(
        "{CONNECT}+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n+0 write(4, ..., 100) = 100\n"
    );
    deviation(&format!("{small}+0 > P. 101:201(100) ack 1"), "no packet was sent");
    passes(&format!(
        "{CONNECT}+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0\n{}+0 > P. 101:201(100) ack 1",
        &small[CONNECT.len()..]
    ));
    passes(&format!(
        "{CONNECT}+0 getsockopt(4, SOL_TCP, TCP_MAXSEG, [1000], [4]) = 0\n+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [0], [4]) = 0"
    ));
    let init = "+0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n+0 connect(3, ..., ...) = -1 EINPROGRESS\n\
        +0 > sctp: INIT[flgs=0, tag=1, os=3, tsn=1, ...]\n+.2 > sctp: INIT[flgs=0, tag=1, tsn=1, ...]";
    passes(&format!(
        "--tolerance_usecs=30000\n0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n\
        +0 setsockopt(3, IPPROTO_SCTP, SCTP_RTOINFO, {{srto_initial=200, srto_max=400, srto_min=100}}, 16) = 0\n\
        +0 setsockopt(3, IPPROTO_SCTP, SCTP_INITMSG, {{sinit_num_ostreams=3, sinit_max_instreams=0, sinit_max_attempts=0, sinit_max_init_timeo=0}}, 8) = 0\n{init}"
    ));
    is_not_read(
        &format!("{CONNECT}+0 setsockopt(4, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0"),
        ":8: setsockopt() with SO_ZEROCOPY is not supported",
    );
    is_not_read(
        &format!("{CONNECT}+0 setsockopt(4, IPPROTO_SCTP, SCTP_EVENTS, {{sctp_association_event=1}}, 8) = 0"),
        "notifications are not read",
    );
}

#[test]
fn listener_and_connection_are_closed_separately() {
    passes(&format!("{CONNECT}+0 close(3) = 0\n+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1"));
    let listens = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 0\n+0 close(3) = 0\n";
    passes(&format!("{listens}+0 < S 0:0(0) win 100 <mss 1000>\n+0 > R. 0:0(0) ack 1"));
    // A connection that was not accepted is reset, and so is one with unread data.
    let (accepted, _) = CONNECT.split_once("+0 accept").unwrap();
    passes(&format!("{accepted}+0 close(3) = 0\n+0 > R. 1:1(0) ack 1"));
    passes(&format!(
        "{CONNECT}+0 < P. 1:101(100) ack 1 win 1000\n+0 > . 1:1(0) ack 101\n+0 close(4) = 0\n+0 > R. 1:1(0) ack 101"
    ));
    deviation(&format!("{CONNECT}+0 close(5) = 0"), "expected close() = 0, but got -1 EBADF");
}

#[test]
fn read_calls_return_the_received_data() {
    passes(&format!(
        "{CONNECT}+0 < P. 1:101(100) ack 1 win 1000\n+0 > . 1:1(0) ack 101\n+0 recv(4, ..., 40, MSG_PEEK) = 40\n\
        +0 recvmsg(4, {{msg_name(...)=..., msg_iov(2)=[{{..., 30}}, {{iov_base=..., iov_len=20}}], msg_flags=0}}, 0) = 50\n+0 read(4, ..., 1000) = 50\n\
        +0 shutdown(4, SHUT_RD) = 0\n+0 read(4, ..., 1000) = 0"
    ));
    let message = "+0 < sctp: DATA[flgs=B, len=116, tsn=1, sid=2, ssn=0, ppid=9]\n+0 > sctp: SACK[flgs=0, cum_tsn=1, ...]\n\
        +0 < sctp: DATA[flgs=E, len=36, tsn=2, sid=2, ssn=0, ppid=9]\n";
    let read = |info: &str| {
        format!("{ASSOCIATE}{message}+0 sctp_recvmsg(4, ..., 500, ..., ..., {info}, MSG_EOR) = 120")
    };
    passes(&read(
        "{sinfo_stream=2, sinfo_ssn=0, sinfo_flags=0, sinfo_ppid=htonl(9), sinfo_context=0, sinfo_tsn=1, sinfo_cumtsn=...}",
    ));
    deviation(&read("{sinfo_stream=3}"), "expected sinfo_stream=3, but got 2");
    deviation(&read("{sinfo_flags=SCTP_UNORDERED}"), "but got 0");
    is_not_read(&read("{sinfo_cumtsn=7}"), "cannot check sinfo_cumtsn");
    passes(&format!(
        "{ASSOCIATE}{message}+0 sctp_recvmsg(4, ..., 100, ..., ..., ..., 0) = 100\n+0 sctp_recvmsg(4, ..., 100, ..., ..., ..., MSG_EOR) = 20"
    ));
}

#[test]
fn timestamps_are_checked_only_if_their_clock_is_named() {
    let text = |value: u32| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n\
        +0 connect(3, ..., ...) = -1 EINPROGRESS\n+0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 7>\n\
        +.1 < S. 0:0(0) ack 1 win 5000 <mss 1000,sackOK,TS val 700 ecr 100>\n+0 > . 1:1(0) ack 1 <nop,nop,TS val {value} ecr 700>\n"
        )
    };
    passes(&text(100));
    passes(&format!("--tcp_ts_tick_usecs=1000\n{}", text(200)));
    deviation(&format!("--tcp_ts_tick_usecs=1000\n{}", text(300)), "TS val 200 ecr 700");
}

/// Arbitrary input gives a result, and soon.
#[test]
fn bad_input_is_refused() {
    is_not_read("", "has no steps");
    is_not_read("// nothing", "has no steps");
    is_not_read("\u{0}\u{1}\u{7f}", "is not a time");
    is_not_read("+0 frob(3) = 0", "frob() is not supported");
    is_not_read("+0 write(3, ..., 5) = 5", "the script has no socket");
    is_not_read(&format!("{CONNECT}+0 < . 1:4000000001(4000000000) ack 1 win 5"), "the maximum in IP is");
    is_not_read(&format!("{CONNECT}+0 write(4, ..., 99999999999) = 5"), "the maximum is");
    is_not_read(&format!("{CONNECT}+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5"), "a second socket");
    is_not_read(
        &format!("{ASSOCIATE}+0 < sctp: DATA[flgs=BE, len=4000000000, tsn=1, sid=0, ssn=0, ppid=0]"),
        "the maximum is 65535",
    );
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n";
    is_not_read(&format!("{open}+0 < sctp: {}{}", "A[".repeat(200_000), "]".repeat(200_000)), "16 deep");
    is_not_read(
        &format!("{open}%{{ assert {}1{} }}%", "(".repeat(200_000), ")".repeat(200_000)),
        "64 levels deep",
    );
    is_not_read(&format!("{open}+0 f{}", "(".repeat(200_000)), "is not closed");
    is_not_read(&format!("{open}+0 < sctp: {}", "x".repeat(10_000_000)), "is not a chunk");
    is_not_read(&format!("{open}{}", "+900000000\n".repeat(40)), "lasts longer than 1e9 seconds");
    is_not_read("--tolerance_usecs=18446744073709551615\n+0", "is too long");
    let mut many = String::from(CONNECT);
    (0..10_000).for_each(|_| writeln!(many, "+0 frob").unwrap());
    is_not_read(&many, ":8: ");
}

#[test]
fn endless_script_is_stopped() {
    let heartbeats = format!("{ASSOCIATE}+900000000 < sctp: SHUTDOWN[flgs=0, cum_tsn=0]\n");
    let told = linux(&format!(
        "--hb_interval=1ms\n--path_max_retrans=4000000000\n--association_max_retrans=4000000000\n{heartbeats}"
    ));
    assert!(told.unwrap_err().to_string().contains("does not end: 1000000 timers"));
}
