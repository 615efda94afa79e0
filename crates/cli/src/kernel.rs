//! `hol kernel`: the kernels of the kernel world.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hol_kernel::{DEFAULT_SERIES, Image, KernelError};

use crate::failure::Failure;
use crate::row::json;
use crate::terminal::{note, say};

/// Get, choose and list the kernels of the kernel world.
#[derive(Debug, Args)]
pub struct Kernel {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Get a kernel package of the distribution; nothing is installed
    Fetch {
        /// How its version begins, as in 6.12 or 6.1
        #[arg(default_value = DEFAULT_SERIES)]
        version: String,
    },
    /// Take a kernel that is there, and use it from now on
    Use {
        /// A bzImage such as /boot/vmlinuz-6.12.0-amd64, or the release of a kernel of the list
        image: PathBuf,
        /// The directory of its modules [default: lib/modules/RELEASE beside boot]
        #[arg(long, value_name = "DIR")]
        modules: Option<PathBuf>,
    },
    /// List the kernels that are there
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
}

impl Kernel {
    /// Does it.
    pub fn run(&self) -> Result<(), Failure> {
        match &self.what {
            What::Fetch { version } => ready(&hol_kernel::fetch(version)?),
            What::Use { image, modules } => {
                let known = image.to_str().filter(|_| modules.is_none() && !image.exists());
                let known = known.and_then(|release| Image::find(Some(release)).ok());
                match known {
                    Some(image) => image.make_default().map(|()| ready(&image))?,
                    None => ready(&Image::adopt(image, modules.as_deref())?),
                }
            }
            What::List { json: true } => {
                let chosen = Image::find(None)?;
                for image in Image::list() {
                    let Image { release, directory, .. } = &image;
                    say(&json(
                        &serde_json::json!({ "release": release, "directory": directory, "default": image == chosen }),
                    ));
                }
                return Ok(());
            }
            What::List { json: false } => {
                let chosen = Image::find(None)?;
                for image in Image::list() {
                    let mark = if image == chosen { '*' } else { ' ' };
                    say(&format!("{mark} {:<32} {}\n", image.release, image.directory.display()));
                }
            }
        }
        say_engine();
        Ok(())
    }
}

fn ready(image: &Image) {
    say(&format!("{} is ready: {}\n", image.release, image.directory.display()));
}

/// What will run it, for a kernel alone runs nothing.
fn say_engine() {
    match hol_kernel::provenance() {
        Ok(provenance) => {
            say(&format!("runs in {provenance}\n"));
            provenance.warning().iter().for_each(|warning| note!("warning: {warning}"));
        }
        Err(problem) => note!("warning: {problem}"),
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        if error.is_usage() { Self::Usage(error.to_string()) } else { Self::failed(error) }
    }
}
