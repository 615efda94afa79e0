//! Sends mail on a thread of its own, so that requests do not wait for a mail server.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::{Message, SmtpTransport, Transport};

use super::content::{MailContent, mail_content};
use crate::computation::Computation;
use crate::experiment::{Experiment, State};
use crate::worker::{Worker, read_answer};

/// Maximum number of pending mails; further mails are dropped with an error message.
const MAX_PENDING: usize = 1000;
/// Sender address of mails that are written to a directory.
const LOCAL_SENDER: &str = "headofline <headofline@localhost>";
const SMTP_TIMEOUT: Duration = Duration::from_secs(20);

/// Where mail goes.
#[derive(Debug, Clone, Default)]
pub enum MailDestination {
    /// No mail is sent.
    #[default]
    None,
    /// Mail is written into this directory, one file per mail.
    Directory(PathBuf),
    /// Mail is sent by a mail server: its URL, `smtp://HOST:PORT` or `smtps://USER:PASSWORD@HOST`, and the sender address.
    Smtp(String, String),
}

/// Why mail cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The URL of the mail server is invalid.
    #[error("{0}: {1}; write smtp://HOST:PORT or smtps://USER:PASSWORD@HOST")]
    Url(String, lettre::transport::smtp::Error),
    /// The sender address is invalid.
    #[error("{0}: {1}; write NAME@HOST")]
    Address(String, lettre::address::AddressError),
    /// The directory cannot be created.
    #[error("{0}: {1}; choose another directory for mail")]
    Directory(PathBuf, io::Error),
}

/// A queue of mail to send; `None` if no mail is sent.
#[derive(Debug)]
pub struct Mailer(Option<Mutex<SyncSender<StateChangeMail>>>);

/// A change of an experiment's state, to be reported by mail.
#[derive(Debug)]
pub struct StateChangeMail {
    /// Mail address of the owner; empty if there is none.
    pub to: String,
    /// URL of the server, without a final `/`.
    pub url: String,
    /// The previous state.
    pub from: State,
    /// The experiment after the change.
    pub experiment: Experiment,
    /// The computation of the tables of nodes and links, if the mail includes them, and the worker that runs it.
    pub tables: Option<(Computation, Arc<Worker>)>,
}

/// How mail is sent.
enum MailTransport {
    Directory(PathBuf, u64),
    Smtp(Box<SmtpTransport>, Mailbox),
}

impl Mailer {
    /// Starts the thread, which ends when the mailer is dropped.
    pub fn open(destination: &MailDestination) -> Result<Self, MailError> {
        let transport = match destination {
            MailDestination::None => return Ok(Self(None)),
            MailDestination::Directory(dir) => {
                std::fs::create_dir_all(dir).map_err(|e| MailError::Directory(dir.clone(), e))?;
                MailTransport::Directory(dir.clone(), 0)
            }
            MailDestination::Smtp(url, sender) => {
                let transport = SmtpTransport::from_url(url).map_err(|e| MailError::Url(url.clone(), e))?;
                let sender = sender.parse().map_err(|e| MailError::Address(sender.clone(), e))?;
                MailTransport::Smtp(Box::new(transport.timeout(Some(SMTP_TIMEOUT)).build()), sender)
            }
        };
        let (sender, inbox) = sync_channel(MAX_PENDING);
        std::thread::spawn(move || deliver(transport, &inbox));
        Ok(Self(Some(Mutex::new(sender))))
    }

    /// Returns whether mail is sent anywhere.
    pub const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Queues a mail about a change. In a directory, users without a mail address get mail, too.
    pub fn queue(&self, change: StateChangeMail) {
        let Some(sender) = &self.0 else { return };
        let sender = sender.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if sender.try_send(change).is_err() {
            log_error("too many mails are waiting to be sent; one was dropped");
        }
    }
}

fn deliver(mut transport: MailTransport, inbox: &Receiver<StateChangeMail>) {
    for StateChangeMail { to, url, from, experiment, tables } in inbox {
        let tables = tables.and_then(|(tables, worker)| read_answer(worker.run_now(&tables).ok()?).ok());
        let letter = mail_content(from, &experiment, &tables.unwrap_or(String::new()), &url);
        // In a directory, users without a mail address get mail at localhost.
        let to = match transport {
            MailTransport::Directory(..) if to.is_empty() => format!("{}@localhost", experiment.owner),
            _ => to,
        };
        if let Err(problem) = transport.send_mail(&to, &letter) {
            log_error(&problem);
        }
    }
}

impl MailTransport {
    fn send_mail(&mut self, to: &str, letter: &MailContent) -> Result<(), String> {
        match self {
            Self::Directory(dir, count) => {
                *count += 1;
                let message = message(&LOCAL_SENDER.parse().map_err(|e| format!("{e}"))?, to, letter)?;
                // The time in the name prevents a restarted server from overwriting earlier mail.
                let path = dir.join(format!("{}-{:06}.eml", crate::clock::now(), count));
                std::fs::write(&path, message.formatted()).map_err(|e| format!("{}: {e}", path.display()))
            }
            Self::Smtp(..) if to.is_empty() => Ok(()),
            Self::Smtp(transport, sender) => {
                transport.send(&message(sender, to, letter)?).map(drop).map_err(|e| e.to_string())
            }
        }
    }
}

/// Returns a mail with its header fields. RFC 5322, section 3.6; RFC 2045, section 3; RFC 3834, section 5
fn message(sender: &Mailbox, to: &str, letter: &MailContent) -> Result<Message, String> {
    let id = crate::accounts::key::generate().map_err(|e| e.to_string())?;
    Message::builder()
        .from(sender.clone())
        .to(to.parse().map_err(|e| format!("{to}: {e}"))?)
        .date_now()
        .message_id(Some(format!("<{id}@{}>", sender.email.domain())))
        .subject(&letter.subject)
        .header(AutoSubmitted)
        .singlepart(SinglePart::plain(letter.body.clone()))
        .map_err(|e| e.to_string())
}

/// Marks a mail as generated by a program, so that other programs do not reply automatically. RFC 3834, section 5.1
#[derive(Debug, Clone, Copy)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

fn log_error(problem: &str) {
    let _ = writeln!(io::stderr(), "error: mail: {problem}");
}

#[cfg(test)]
mod tests {
    use super::super::content::tests::experiment;
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    /// RFC 5321, as far as one mail needs it.
    #[test]
    fn mail_is_sent_by_smtp() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            let mut got = Vec::new();
            stream.write_all(b"220 test\r\n").unwrap();
            while let Some(line) = lines.next() {
                let answer: &[u8] = match line.as_str() {
                    "DATA" => b"354 go on\r\n",
                    "QUIT" => b"221 bye\r\n",
                    _ => b"250 ok\r\n",
                };
                stream.write_all(answer).unwrap();
                if line == "DATA" {
                    got.extend(lines.by_ref().take_while(|line| line != "."));
                    stream.write_all(b"250 taken\r\n").unwrap();
                    return got;
                }
                got.push(line);
            }
            got
        });
        let destination = MailDestination::Smtp(format!("smtp://{address}"), "lab@example.org".to_owned());
        let mailer = Mailer::open(&destination).unwrap();
        let to = "ann@example.org".to_owned();
        mailer.queue(StateChangeMail {
            to,
            url: "https://lab.example.org".to_owned(),
            from: State::Active,
            experiment: experiment(),
            tables: None,
        });
        let got = server.join().unwrap();
        assert!(got.contains(&"RCPT TO:<ann@example.org>".to_owned()), "{got:?}");
        assert!(got.contains(&"Subject: [transport] loss is swapped out".to_owned()), "{got:?}");
        assert!(got.contains(&"https://lab.example.org/experiments/7".to_owned()), "{got:?}");
        for field in ["From", "To", "Date", "Message-ID", "MIME-Version", "Content-Type", "Auto-Submitted"] {
            let is_field = |line: &&String| line.starts_with(&format!("{field}: "));
            assert_eq!(got.iter().filter(is_field).count(), 1, "{field}: {got:?}");
        }
    }

    #[test]
    fn invalid_mail_server_is_an_error() {
        let open =
            |url: &str, sender: &str| Mailer::open(&MailDestination::Smtp(url.to_owned(), sender.to_owned()));
        assert!(open("gopher://x", "a@b").unwrap_err().to_string().contains("write smtp://"));
        assert!(open("smtp://localhost", "nobody").unwrap_err().to_string().contains("write NAME@HOST"));
    }
}
