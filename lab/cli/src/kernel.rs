//! `hol kernel`: fetches, builds, selects and lists the Linux kernels that `--world kernel` boots.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hol_kernel::{DEFAULT_SERIES, Image, KernelError, PackageSource};

use crate::failure::Failure;
use crate::point_row::json;
use crate::terminal::{note, print};

/// Fetch, build, select and list kernels for the kernel world.
#[derive(Debug, Args)]
pub struct Kernel {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Download a kernel package of Debian without installing it
    Fetch {
        /// First part of the version, such as 7.3, 6.12 or 6.1
        #[arg(default_value = DEFAULT_SERIES)]
        version: String,
        /// Also compile the queueing discipline DualPI2 (Linux 6.17 and later), which Debian's kernels lack; needs gcc and make
        #[arg(long)]
        dualpi2: bool,
        #[command(flatten)]
        from: PackageArgs,
    },
    /// Build a User-Mode Linux kernel, which runs as a program of this host, for --world kernel:uml; needed once, takes
    /// minutes
    Build {
        /// Series of the kernel, such as 6.12
        #[arg(default_value = DEFAULT_SERIES)]
        series: String,
        #[command(flatten)]
        from: PackageArgs,
    },
    /// Make an existing kernel the default
    Use {
        /// A bzImage such as /boot/vmlinuz-6.12.0-amd64, or a release that `hol kernel list` shows
        image: PathBuf,
        /// Directory of the kernel's modules [default: lib/modules/RELEASE beside the kernel's directory, in / or in /usr]
        #[arg(long, value_name = "DIR")]
        modules: Option<PathBuf>,
    },
    /// List the available kernels
    List {
        /// Print a JSON object for each kernel, one per line
        #[arg(long)]
        json: bool,
    },
}

/// The repository from which a kernel package comes.
#[derive(Debug, Args)]
struct PackageArgs {
    /// Search only this suite, such as trixie-backports [default: the package sources of this machine, then Debian's backports and
    /// releases]
    #[arg(long)]
    suite: Option<String>,
    /// Mirror of Debian [default: this machine's mirror, or http://deb.debian.org/debian]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Keyring with Debian's keys [default: the keyring of the package debian-archive-keyring]
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
}

impl PackageArgs {
    fn packages(&self) -> PackageSource {
        let Self { suite, mirror, keyring } = self;
        PackageSource { suite: suite.clone(), mirror: mirror.clone(), keyring: keyring.clone() }
    }
}

impl Kernel {
    /// Fetches, builds, selects or lists kernels.
    pub fn run(&self) -> Result<(), Failure> {
        match &self.action {
            Action::Fetch { version, dualpi2, from } => {
                let image = hol_kernel::fetch(version, &from.packages(), |step| note!("{step} ..."))?;
                if *dualpi2 {
                    hol_kernel::add_dualpi2(&image, &from.packages(), |step| note!("{step} ..."))?;
                }
                report_ready(&image);
            }
            Action::Build { series, from } => {
                report_ready(&hol_kernel::build(series, &from.packages(), |step| note!("{step} ..."))?);
            }
            Action::Use { image, modules } => {
                let known = image.to_str().filter(|_| modules.is_none() && !image.exists());
                let known = known.and_then(|release| Image::find(Some(release)).ok());
                match known {
                    Some(image) => {
                        image.make_default()?;
                        report_ready(&image);
                    }
                    None => report_ready(&Image::import(image, modules.as_deref())?),
                }
            }
            Action::List { json: true } => {
                let (images, chosen) = list_images()?;
                for image in images {
                    let Image { release, directory, .. } = &image;
                    let default = Some(&image) == chosen.as_ref();
                    print(&json(
                        &serde_json::json!({ "release": release, "directory": directory, "default": default }),
                    ));
                }
            }
            Action::List { json: false } => {
                let (images, chosen) = list_images()?;
                for image in images {
                    let mark = if Some(&image) == chosen.as_ref() { '*' } else { ' ' };
                    print(&format!("{mark} {:<32} {}\n", image.release, image.directory.display()));
                }
                chosen.iter().for_each(print_engine);
            }
        }
        Ok(())
    }
}

/// Returns all kernels and the default one, which is `None` if all kernels are for User-Mode Linux.
fn list_images() -> Result<(Vec<Image>, Option<Image>), KernelError> {
    let images = Image::list();
    match Image::find(None) {
        Err(problem) if images.is_empty() => Err(problem),
        chosen => Ok((images, chosen.ok())),
    }
}

fn report_ready(image: &Image) {
    print(&format!("{} is ready: {}\n", image.release, image.directory.display()));
    if !image.has_sctp() {
        note!(
            "warning: this kernel has no SCTP; use a distribution's standard kernel, which `hol kernel fetch` downloads"
        );
    }
    print_engine(image);
}

/// Prints the engine that will run the kernel.
fn print_engine(image: &Image) {
    match hol_kernel::provenance_of(image) {
        Ok(provenance) => {
            print(&format!("the kernel runs in {provenance}\n"));
            provenance.warning().iter().for_each(|warning| note!("warning: {warning}"));
        }
        Err(problem) => note!("warning: {problem}"),
    }
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        if error.is_usage_error() { Self::Usage(error.to_string()) } else { Self::failed(error) }
    }
}
