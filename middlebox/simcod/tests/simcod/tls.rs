//! The middlebox and its agent over TLS, as users start them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::certificates::Authority;
use crate::program::BIN;

/// A middlebox, which is killed when the test ends, and its address for TLS.
struct Middlebox(Child, String);

impl Middlebox {
    fn start(directory: &Path) -> Self {
        let files =
            "--certificate localhost.pem --key localhost.key --agents authority.pem --policy policy.toml";
        let mut serve = Command::new(BIN);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--listen-tls", "127.0.0.1:0"]);
        serve.args(files.split(' ')).current_dir(directory);
        let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port = lines
            .into_iter()
            .find_map(|line| Some(line.strip_prefix("listening on tls 127.0.0.1:")?.to_owned()));
        Self(child, format!("localhost:{}", port.unwrap()))
    }

    /// Returns the exit code and the error output of an agent's command.
    fn list(&self, directory: &Path, arguments: &str) -> (Option<i32>, String) {
        let mut list = Command::new(BIN);
        list.args(["list", "--server", &self.1]).args(arguments.split(' ')).current_dir(directory);
        let output = list.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn certificates_identify_agents_and_are_reloaded_by_a_hangup() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let authority = Authority::new(path, "authority");
    authority.certify("localhost");
    authority.certify("call-server");
    fs::write(path.join("policy.toml"), "secure-only = true\n[agents.call-server]").unwrap();
    let mut middlebox = Middlebox::start(path);
    let as_agent = "--certificate call-server.pem --key call-server.key --tls";
    assert_eq!(middlebox.list(path, &format!("{as_agent} authority.pem")), (Some(0), String::new()));
    let (code, complaint) = middlebox.list(path, "--tls authority.pem");
    assert!(code == Some(3) && complaint.contains("check whether it requires a certificate"), "{complaint}");
    let (code, complaint) = middlebox.list(path, "--tls policy.toml");
    assert!(code == Some(3) && complaint.contains("policy.toml: contains no certificate"), "{complaint}");
    let (code, complaint) = middlebox.list(path, "--tls authority.pem --over sctp");
    assert!(code == Some(2) && complaint.contains("WireGuard"), "{complaint}");

    Authority::new(path, "successor").certify("localhost");
    let pid = middlebox.0.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let log = BufReader::new(middlebox.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    log.into_iter().find(|line| line.contains("event=reloaded")).unwrap();
    assert_eq!(middlebox.list(path, &format!("{as_agent} successor.pem")), (Some(0), String::new()));
    let (code, complaint) = middlebox.list(path, &format!("{as_agent} authority.pem"));
    assert!(
        code == Some(3) && complaint.contains("check that the certificate names this middlebox"),
        "{complaint}"
    );
}
