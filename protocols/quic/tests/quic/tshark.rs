//! Tests how Wireshark dissects packets that are protected for a capture.

use std::process::Command as Program;

use crate::pipe::{Path, Pipe, config};
use hol_base::{Duration, Seed};
use hol_quic::MessageMapping;
use hol_transport::{Command, Endpoint as _};
use hol_wire::PcapngWriter;

/// Runs a connection with losses, its end, and enough messages for key updates, which a capture does not show.
fn conversation() -> Pipe {
    let path = Path { loss: 0.05, ..Path::clean(10) };
    let mut pipe =
        Pipe::connected(&config("quinn-0.11", "streams = 4"), MessageMapping::Streams, path, Seed(7));
    for number in 0..1500 {
        pipe.send(number % 2, number as u16 % 4, vec![number as u8; 100]);
        pipe.run(Duration::from_millis(5));
    }
    pipe.command(0, Command::Close);
    pipe.command(1, Command::Close);
    pipe.run(Duration::from_secs(10));
    pipe
}

/// Returns the capture of the packets that both sides sent, in order.
fn capture(pipe: &Pipe) -> Vec<u8> {
    let mut sent: Vec<_> = pipe
        .sides
        .iter()
        .enumerate()
        .flat_map(|(side, end)| end.sent.iter().map(move |sent| (side, sent)))
        .collect();
    sent.sort_by_key(|(_, (at, _))| *at);
    let mut writer = PcapngWriter::new(Vec::new(), "a conversation", &["client", "server"]).unwrap();
    writer.key_log(&sent[0].1.1.secrets().unwrap().key_log()).unwrap();
    for (side, (at, packet)) in sent {
        writer.packet(side as u32, *at, &packet.to_bytes(), None).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_decrypts_and_dissects_every_packet() {
    let pipe = conversation();
    let directory = std::env::temp_dir().join(format!("hol-quic-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("run.pcapng");
    std::fs::write(&file, capture(&pipe)).unwrap();
    let mut tshark = Program::new("tshark");
    tshark.arg("-n").arg("-r").arg(&file).args([
        "-o",
        "udp.check_checksum:TRUE",
        "-T",
        "fields",
        "-E",
        "occurrence=a",
    ]);
    for field in [
        "frame.protocols",
        "_ws.malformed",
        "quic.decryption_failed",
        "udp.checksum.status",
        "quic.frame_type",
        "quic.key_phase",
    ] {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("tshark is installed");
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), pipe.sides.iter().map(|side| side.sent.len()).sum::<usize>());
    let mut streams = 0;
    for (number, line) in lines.iter().enumerate() {
        let [protocols, malformed, failed, checksum, frames, _] = line[..] else { panic!("{line:?}") };
        assert!(protocols.contains("quic") && malformed.is_empty(), "packet {number}: {line:?}");
        assert!(failed.is_empty() && checksum == "1" && !frames.is_empty(), "packet {number}: {line:?}");
        let types = frames.split(',').map(|kind| kind.parse::<u64>().unwrap());
        streams += types.filter(|kind| (0x08..=0x0f).contains(kind)).count() as u64;
    }
    assert!(lines.iter().all(|line| !line[5].contains('1')), "a capture has the first keys alone");
    let sent = pipe.sides.iter().map(|side| side.endpoint.statistics());
    let sent: u64 = sent.map(|s| s.data_sent + s.fast_retransmissions + s.timeout_retransmissions).sum();
    assert_eq!(streams, sent, "STREAM frames, as Wireshark and as the endpoints count them");
}
