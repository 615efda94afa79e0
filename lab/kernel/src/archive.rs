//! Archives in the kernel's initramfs format: cpio, "newc". Documentation/driver-api/early-userspace/buffer-format.

/// A cpio archive to which files are being added.
#[derive(Debug, Default)]
pub(crate) struct CpioArchive {
    octets: Vec<u8>,
    inode: u32,
}

/// File types and permissions of the entries, as in `st_mode` of POSIX.
mod mode {
    pub(super) const DIRECTORY: u32 = 0o040_755;
    pub(super) const PROGRAM: u32 = 0o100_755;
    pub(super) const CHARACTER_DEVICE: u32 = 0o020_600;
}

impl CpioArchive {
    /// Adds a directory, after the missing directories above it.
    pub(crate) fn add_directory(&mut self, path: &str) {
        for (end, _) in path.match_indices('/').chain([(path.len(), "")]) {
            self.entry(&path[..end], mode::DIRECTORY, (0, 0), &[]);
        }
    }

    /// Adds a file that everybody may read and execute.
    pub(crate) fn add_file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, mode::PROGRAM, (0, 0), content);
    }

    /// Adds a character device.
    pub(crate) fn add_device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, mode::CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// Appends the trailer, and returns the archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.octets
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        let (owner, group, links, time, check) = (0, 0, 1, 0, 0);
        let size = u32::try_from(content.len()).expect("a file of an initramfs is below 4 GiB");
        let name = path.len() as u32 + 1;
        let fields =
            [self.inode, mode, owner, group, links, time, size, 0, 0, device.0, device.1, name, check];
        self.octets.extend_from_slice(b"070701");
        for field in fields {
            self.octets.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.octets.extend_from_slice(path.as_bytes());
        self.octets.push(0);
        self.pad();
        self.octets.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_the_trailer_ends_them() {
        let mut archive = CpioArchive::default();
        archive.add_directory("lib/modules");
        archive.add_file("init", b"12345");
        let octets = archive.finish();
        let text = String::from_utf8_lossy(&octets);
        assert_eq!(octets.len() % 4, 0);
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.find("lib\0").unwrap() < text.find("lib/modules\0").unwrap());
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn a_header_names_mode_size_and_name_length() {
        let mut archive = CpioArchive::default();
        archive.add_file("init", b"12345");
        let octets = archive.finish();
        assert_eq!(&octets[14..22], b"000081ed");
        assert_eq!(&octets[54..62], b"00000005");
        assert_eq!(&octets[94..102], b"00000005");
        assert_eq!(&octets[110..116], b"init\0\0", "110 octets of header, then the name, aligned");
        assert_eq!(&octets[116..121], b"12345");
    }
}
