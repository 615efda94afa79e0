//! Kernels that were fetched, adopted or built: `kernels/RELEASE/` in the cache, with `vmlinuz` and `modules/`, or for User-Mode Linux with
//! `linux`. Releases for User-Mode Linux end with `-uml`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::cache::cache_directory;
use crate::{KernelError, atomic_replace, modules, scratch};

/// A kernel in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Release of the kernel, as `uname -r` prints it.
    pub release: String,
    /// Directory of the kernel in the cache.
    pub directory: PathBuf,
}

/// The suffix of releases for User-Mode Linux. As a name without a version it means the newest of these releases.
const USER_MODE: &str = "uml";

/// The file that contains the name of the default kernel.
const DEFAULT_FILE: &str = "default";

fn kernels() -> PathBuf {
    cache_directory().join("kernels")
}

impl Image {
    /// Returns the kernel of this release.
    fn of(release: String) -> Self {
        Self { directory: kernels().join(&release), release }
    }

    /// Returns the file of the kernel, which QEMU boots or, for User-Mode Linux, the host executes.
    pub fn file(&self) -> PathBuf {
        self.directory.join(if self.is_user_mode() { "linux" } else { "vmlinuz" })
    }

    /// Returns whether this is a kernel for User-Mode Linux, which is a program of the host.
    pub fn is_user_mode(&self) -> bool {
        split_release(&self.release).1
    }

    /// Returns the release without the suffix for User-Mode Linux.
    pub(crate) fn version(&self) -> &str {
        split_release(&self.release).0
    }

    /// Reads the kernel image, and checks that it is complete.
    pub(crate) fn read_octets(&self) -> Result<Vec<u8>, KernelError> {
        let path = self.file();
        let octets = fs::read(&path).map_err(|e| KernelError::file("read", &path, e))?;
        match read_release(&octets) {
            Ok(_) => Ok(octets),
            Err(problem) => Err(KernelError::image(&path, problem)),
        }
    }

    /// Returns whether the kernel has SCTP, as a module or built in.
    pub fn has_sctp(&self) -> bool {
        self.has_module(modules::SCTP)
    }

    /// Returns whether the kernel has a module, either as a file or built in.
    pub(crate) fn has_module(&self, name: &str) -> bool {
        self.modules().join(modules::file_name(name)).is_file() || modules::is_built_in(&self.directory, name)
    }

    /// Returns the first missing module that the packet filter (nftables) needs.
    pub(crate) fn missing_nftables_module(&self) -> Option<&'static str> {
        modules::missing_nftables_module(&self.directory, &self.modules())
    }

    /// Returns the first missing module that the user's programs need.
    pub(crate) fn missing_root_module(&self) -> Option<&'static str> {
        modules::missing_root_module(&self.directory, &self.modules())
    }

    /// Returns the directory of the kernel's modules.
    pub(crate) fn modules(&self) -> PathBuf {
        self.directory.join("modules")
    }

    /// Returns all kernels, the oldest version first.
    pub fn list() -> Vec<Self> {
        let entries = fs::read_dir(kernels()).into_iter().flatten().flatten();
        // Names that begin with a dot are incomplete.
        let named = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let whole = named.filter(|name| !name.starts_with('.')).map(Self::of);
        let mut images: Vec<Self> = whole.filter(|image| image.file().is_file()).collect();
        images.sort_by_key(|image| version_key(&image.release));
        images
    }

    /// Returns the kernel that `wanted` names, such as `6.12`, `uml` or `6.12-uml`. If `wanted` is `None`, returns the
    /// default kernel or, if none is set, the newest kernel of a distribution.
    pub fn find(wanted: Option<&str>) -> Result<Self, KernelError> {
        let images = Self::list();
        let named = fs::read_to_string(kernels().join(DEFAULT_FILE)).ok();
        let release = wanted.map(str::to_owned).or(named).map(|text| text.trim().to_owned());
        let found = match &release {
            Some(wanted) => images.iter().rev().find(|image| is_named(&image.release, wanted)),
            None => images.iter().rev().find(|image| !image.is_user_mode()),
        };
        match (found, wanted) {
            (Some(image), _) => Ok(image.clone()),
            (None, Some(wanted)) if split_release(wanted).1 => {
                Err(KernelError::NotBuilt { wanted: wanted.to_owned() })
            }
            (None, Some(wanted)) if !images.is_empty() => {
                let known: Vec<_> = images.into_iter().map(|image| image.release).collect();
                Err(KernelError::UnknownKernel { wanted: wanted.to_owned(), known: known.join(", ") })
            }
            _ => match fs::read_dir(kernels()) {
                Err(problem) if problem.kind() != ErrorKind::NotFound => {
                    Err(KernelError::file("read", &kernels(), problem))
                }
                _ => Err(KernelError::NoKernel),
            },
        }
    }

    /// Copies the kernel at `path`, and the modules that it needs from `directory`, into the cache, and makes it the
    /// default. If `directory` is `None`, searches for the modules where packages install them.
    pub fn import(path: &Path, directory: Option<&Path>) -> Result<Self, KernelError> {
        let octets = fs::read(path).map_err(|e| KernelError::file("read", path, e))?;
        let release = read_release(&octets).map_err(|problem| KernelError::image(path, problem))?;
        let directory = match directory {
            Some(directory) => directory.to_owned(),
            None => find_modules(path, &release).ok_or_else(|| {
                KernelError::image(
                    path,
                    format!("the modules of {release} were not found; give their directory with --modules"),
                )
            })?,
        };
        if lacks_namespaces(&directory, path, &release) {
            let problem = "this kernel has no network namespaces (CONFIG_NET_NS), which hol needs for the hosts of a network; use a distribution's standard kernel, as `hol kernel fetch` downloads";
            return Err(KernelError::image(path, problem));
        }
        let image = Self::of(release);
        let work = scratch::create_directory(&kernels(), ".fresh")?;
        image.store(&octets, &directory, &work.path().join("kernel"))?;
        Ok(image)
    }

    /// Stores the program `linux`, a kernel for User-Mode Linux, and `built_in`, the list of its built-in modules.
    pub(crate) fn store_program(release: &str, linux: &Path, built_in: &Path) -> Result<Self, KernelError> {
        let image = Self::of(release.to_owned());
        let work = scratch::create_directory(&kernels(), ".fresh")?;
        let fresh = work.path().join("kernel");
        fs::create_dir(&fresh).map_err(|e| KernelError::file("create", &fresh, e))?;
        for (from, to) in [(linux, "linux"), (built_in, modules::BUILT_IN)] {
            fs::copy(from, fresh.join(to)).map_err(|e| KernelError::file("copy", from, e))?;
        }
        atomic_replace::replace_directory(&fresh, &image.directory)?;
        Ok(image)
    }

    /// Writes the files of this kernel to the directory `fresh`, and moves the directory to its place in the
    /// cache.
    fn store(&self, octets: &[u8], directory: &Path, fresh: &Path) -> Result<(), KernelError> {
        let store = |path: &Path, octets: &[u8]| {
            fs::write(path, octets).map_err(|e| KernelError::file("write", path, e))
        };
        let into = fresh.join("modules");
        fs::create_dir_all(&into).map_err(|e| KernelError::file("create", &into, e))?;
        store(&fresh.join("vmlinuz"), octets)?;
        for (name, octets) in modules::collect(directory)? {
            store(&into.join(name), &octets)?;
        }
        // A kernel may have no built-in modules.
        let _ = fs::copy(directory.join(modules::BUILT_IN), fresh.join(modules::BUILT_IN));
        atomic_replace::replace_directory(fresh, &self.directory)?;
        self.make_default()
    }

    /// Makes this kernel the default.
    pub fn make_default(&self) -> Result<(), KernelError> {
        let path = kernels().join(DEFAULT_FILE);
        atomic_replace::write_file(&path, self.release.as_bytes())
    }
}

/// Splits the name of a release into its version, and whether it is for User-Mode Linux.
fn split_release(name: &str) -> (&str, bool) {
    name.strip_suffix(USER_MODE).map_or((name, false), |version| (version.trim_end_matches('-'), true))
}

/// Returns whether `wanted` is this release or the first parts of its version. For example, 6.1 names neither 6.12
/// nor 6.1-uml.
fn is_named(release: &str, wanted: &str) -> bool {
    let ((release, is_user_mode), (wanted, wants_user_mode)) =
        (split_release(release), split_release(wanted));
    let rest = release.strip_prefix(wanted);
    let begins =
        rest.is_some_and(|rest| wanted.is_empty() || !rest.starts_with(|c: char| c.is_ascii_digit()));
    begins && is_user_mode == wants_user_mode
}

/// Returns the directory with the modules of the kernel at `path`. The layout is that of packages: `boot/` is next to
/// `lib/modules`, or the kernel is next to its modules.
fn find_modules(path: &Path, release: &str) -> Option<PathBuf> {
    let place = path.parent()?;
    if place.file_name()? == release && place.join("kernel").is_dir() {
        return Some(place.to_owned());
    }
    let root = place.parent()?;
    let roots = [root.to_owned(), root.join("usr"), PathBuf::from("/"), PathBuf::from("/usr")];
    roots.into_iter().map(|root| root.join("lib/modules").join(release)).find(|path| path.is_dir())
}

/// Returns whether a kernel has no network namespaces, according to its configuration file. This file is next to the
/// modules or the image; without it, returns false.
fn lacks_namespaces(modules: &Path, image: &Path, release: &str) -> bool {
    let places = [modules.join("config"), image.with_file_name(format!("config-{release}"))];
    let configuration = places.iter().find_map(|path| fs::read_to_string(path).ok());
    configuration.is_some_and(|text| !text.lines().any(|line| line == "CONFIG_NET_NS=y"))
}

/// Returns the release in a bzImage, and checks that it is complete. Documentation/arch/x86/boot.rst.
fn read_release(octets: &[u8]) -> Result<String, String> {
    const SETUP_SECTS: usize = 0x1f1;
    const SYSSIZE_OFFSET: usize = 0x1f4;
    const MAGIC_OFFSET: usize = 0x202;
    const KERNEL_VERSION: usize = 0x20e;
    if octets.get(MAGIC_OFFSET..MAGIC_OFFSET + 4) != Some(b"HdrS") {
        return Err("the file is not a kernel for x86; give a bzImage, such as /boot/vmlinuz-*".to_owned());
    }
    let number = |at: usize, length: usize| {
        octets[at..at + length].iter().rev().fold(0_usize, |value, octet| value << 8 | usize::from(*octet))
    };
    // 0 means 4; syssize counts 16 octets and may be rounded up.
    let sectors = if octets[SETUP_SECTS] == 0 { 4 } else { usize::from(octets[SETUP_SECTS]) };
    let whole = (sectors + 1) * 512 + number(SYSSIZE_OFFSET, 4) * 16;
    if octets.len() + 16 < whole {
        return Err(format!(
            "the image is truncated: {} of {whole} octets; fetch or add it again with `hol kernel fetch` or `use`",
            octets.len()
        ));
    }
    let text = &octets[(number(KERNEL_VERSION, 2) + 0x200).min(octets.len())..];
    let word = text.split(|octet| matches!(octet, 0 | b' ')).next().unwrap_or_default();
    let release = String::from_utf8_lossy(word).into_owned();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '~');
    if release.is_empty() || release.starts_with('.') || !release.chars().all(plain) {
        return Err("the image contains no kernel version; use another kernel".to_owned());
    }
    Ok(release)
}

/// Returns a key that sorts versions numerically.
pub(crate) fn version_key(release: &str) -> Vec<u64> {
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_named_by_the_first_parts_of_its_version() {
        let named = |wanted| is_named("6.12.117+deb12-amd64", wanted);
        assert!(named("6") && named("6.12") && named("6.12.117") && named("6.12.117+deb12-amd64"));
        assert!(!named("6.1") && !named("6.12.11") && !named("5"));
    }

    #[test]
    fn kernels_for_user_mode_linux_have_names_of_their_own() {
        let named = |wanted| is_named("6.12.117-uml", wanted);
        assert!(named("uml") && named("6.12-uml") && named("6.12.117-uml"));
        assert!(!named("6.12") && !named("6.1-uml") && !is_named("6.12.117+deb12-amd64", "uml"));
        let image = Image::of("6.12.117-uml".to_owned());
        assert_eq!((image.version(), image.is_user_mode()), ("6.12.117", true));
        assert!(image.file().ends_with("6.12.117-uml/linux"));
    }

    fn image(sectors: u8, paragraphs: u32, length: usize) -> Vec<u8> {
        let mut octets = vec![0; length];
        octets[0x1f1] = sectors;
        octets[0x1f4..0x1f8].copy_from_slice(&paragraphs.to_le_bytes());
        octets[0x202..0x206].copy_from_slice(b"HdrS");
        octets[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        octets[0x300..0x30e].copy_from_slice(b"6.12.0 (us) #1");
        octets
    }

    #[test]
    fn an_image_names_its_release() {
        assert_eq!(read_release(&image(4, 64, 5 * 512 + 1024)), Ok("6.12.0".to_owned()));
    }

    #[test]
    fn modules_next_to_their_kernel_are_found() {
        let place = tempfile::tempdir().unwrap();
        let modules = place.path().join("usr/lib/modules/7.3.4+deb13-amd64");
        fs::create_dir_all(modules.join("kernel/net")).unwrap();
        assert_eq!(find_modules(&modules.join("vmlinuz"), "7.3.4+deb13-amd64"), Some(modules.clone()));
        assert_eq!(find_modules(&place.path().join("usr/boot/vmlinuz"), "7.3.4+deb13-amd64"), Some(modules));
    }

    #[test]
    fn missing_network_namespaces_are_found_in_the_kernel_configuration() {
        let place = tempfile::tempdir().unwrap();
        let (modules, image) = (place.path().join("modules"), place.path().join("vmlinuz"));
        fs::create_dir(&modules).unwrap();
        let lacks = || lacks_namespaces(&modules, &image, "7.3");
        assert!(!lacks(), "nothing is known");
        fs::write(place.path().join("config-7.3"), "# CONFIG_NET_NS is not set\n").unwrap();
        assert!(lacks());
        fs::write(modules.join("config"), "CONFIG_NET_NS=y\n").unwrap();
        assert!(!lacks());
    }

    #[test]
    fn a_truncated_image_is_refused() {
        let problem = read_release(&image(4, 64_000, 5 * 512 + 1024)).unwrap_err();
        assert!(problem.contains("truncated"), "{problem}");
    }

    #[test]
    fn a_text_is_no_kernel() {
        assert!(read_release(b"hello").unwrap_err().contains("bzImage"));
    }

    #[test]
    fn versions_sort_numerically() {
        assert!(version_key("6.12.9+deb12") < version_key("6.12.41+deb12"));
        assert!(version_key("6.1.0-54-amd64") < version_key("6.12.9"));
    }
}
