//! The engines of the kernel world on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use hol_kernel::{Image, Kernel};

use crate::program::BIN;

/// Returns the kernel world in QEMU.
pub fn qemu() -> Kernel {
    world(Image::find(None).unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the kernel world in QEMU, with a kernel of this series.
pub fn qemu_of(series: &str) -> Kernel {
    world(Image::find(Some(series)).unwrap_or_else(|error| panic!("{error}")))
}

/// Returns the kernel world in User-Mode Linux.
pub fn user_mode() -> Kernel {
    world(user_mode_image())
}

fn world(image: Image) -> Kernel {
    Kernel::new(image, Some(PathBuf::from(BIN)))
}

pub fn user_mode_image() -> Image {
    Image::find(Some("uml")).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a distribution's kernel, for QEMU.
pub fn stock() -> Image {
    let stock = Image::list().into_iter().find(|image| !image.is_user_mode());
    stock.expect("there is no kernel for QEMU: `hol kernel fetch`")
}

/// Creates a separate cache in `cache` with the same kernels and without snapshots.
pub fn share_kernels(cache: &Path) {
    let kernels = stock().directory.parent().unwrap().to_owned();
    fs::create_dir_all(cache.join("headofline")).unwrap();
    symlink(kernels, cache.join("headofline/kernels")).unwrap();
}
