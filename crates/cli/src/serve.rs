//! `hol serve`: the lab in the browser.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use hol_serve::{Options, Post, Registration, Tls};

use crate::failure::Failure;
use crate::fill::threads;
use crate::number::positive;
use crate::terminal::{note, say};

/// The lab in the browser: experiments that wait for free cores, run, and are looked at while they do.
///
/// On 127.0.0.1 nobody logs in: whoever can reach it, other users of this machine too, runs programs as you do. Elsewhere people have
/// accounts.
#[derive(Debug, Args)]
pub struct Serve {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4540")]
    listen: SocketAddr,
    /// Where experiments, their results and the database are kept [default: $XDG_STATE_HOME/headofline, or
    /// ~/.local/state/headofline]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Cores that experiments may have together [default: all]
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    cores: Option<usize>,
    /// A name by which browsers may call it, beside localhost and addresses; may be repeated
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
    /// Encrypt connections: certificates and key, in PEM. People log in
    #[arg(long, num_args = 2, value_names = ["CERTIFICATES", "KEY"], conflicts_with = "proxy")]
    tls: Option<Vec<PathBuf>>,
    /// A proxy in front encrypts connections. People log in
    #[arg(long)]
    proxy: bool,
    /// Let experiments run programs even where people log in: those read what this user can read
    #[arg(long)]
    programs: bool,
    /// Write mail about each change into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "smtp")]
    mail: Option<PathBuf>,
    /// Send mail about each change by this server: smtp://HOST:PORT or smtps://USER:PASSWORD@HOST
    #[arg(long, value_name = "URL", requires = "from")]
    smtp: Option<String>,
    /// The address that mail is from
    #[arg(long, value_name = "NAME@HOST")]
    from: Option<String>,
    /// Make an account that approves projects, with the password on standard input, and end
    #[arg(long, value_name = "NAME")]
    administrator: Option<String>,
}

impl Serve {
    /// Serves until Ctrl-C.
    pub fn run(&self) -> Result<(), Failure> {
        let options = self.options()?;
        if let Some(name) = &self.administrator {
            return add_administrator(&options, name);
        }
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let ready = |address| say(&format!("{scheme}://{address}/\n"));
        hol_serve::serve(&options, ready).map_err(Failure::failed)
    }

    fn options(&self) -> Result<Options, Failure> {
        let tls = match (self.tls.as_deref(), self.proxy) {
            (Some([certificates, key]), _) => Tls::Files(certificates.clone(), key.clone()),
            (_, true) => Tls::Proxy,
            (_, false) => Tls::None,
        };
        let post = match (&self.mail, &self.smtp, &self.from) {
            (Some(dir), ..) => Post::Directory(dir.clone()),
            (None, Some(url), Some(from)) => Post::Smtp(url.clone(), from.clone()),
            (None, ..) => Post::None,
        };
        Ok(Options {
            listen: self.listen,
            state: self.state.clone().or_else(state_home).ok_or_else(no_home)?,
            program: std::env::current_exe().map_err(Failure::failed)?,
            cores: u32::try_from(threads(self.cores)).unwrap_or(u32::MAX),
            names: self.names.clone(),
            tls,
            programs: self.programs,
            post,
        })
    }
}

fn add_administrator(options: &Options, name: &str) -> Result<(), Failure> {
    note!("password of {name}:");
    let mut password = String::new();
    std::io::stdin().read_line(&mut password).map_err(Failure::failed)?;
    let password = password.trim_end_matches(['\r', '\n']).to_owned();
    let registration = Registration { name: name.to_owned(), mail: String::new(), password, project: None };
    hol_serve::add_administrator(options, &registration).map_err(Failure::failed)
}

/// <https://specifications.freedesktop.org/basedir-spec/latest/>
fn state_home() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("headofline"))
}

fn no_home() -> Failure {
    Failure::Usage(
        "neither XDG_STATE_HOME nor HOME says where to keep experiments; name a place with --state DIR"
            .to_owned(),
    )
}
