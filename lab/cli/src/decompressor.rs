//! Reads files that may be compressed.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use hol_lab::{SizeLimit, decompress, decompression_program};

/// Maximum size of a decompressed file, in octets.
pub const MAX_DECOMPRESSED: u64 = 16 << 30;

/// Opens a file. A compressed file is decompressed while it is read; the programs `xz` and `bzip2` decompress
/// these two formats.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head)?;
    match decompression_program(&head) {
        Some(program @ ("xz" | "bzip2")) => {
            file.rewind()?;
            Ok(Box::new(SizeLimit::new(Decompressor::start(program, file)?, MAX_DECOMPRESSED)))
        }
        // A pipe cannot be rewound.
        _ => decompress(io::Cursor::new(head).chain(file), MAX_DECOMPRESSED),
    }
}

/// A running program that decompresses a file.
struct Decompressor {
    program: &'static str,
    child: Child,
    output: ChildStdout,
}

impl Decompressor {
    fn start(program: &'static str, file: File) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(["-d", "-c"]).stdin(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|problem| {
            io::Error::new(
                problem.kind(),
                format!("the file is compressed, and {program} cannot be started: {problem}; install {program}, or decompress the file"),
            )
        })?;
        let output = child.stdout.take().expect("standard output is piped");
        Ok(Self { program, child, output })
    }

    /// Waits until the decompressing program has ended. Returns 0 (the end of the data), or the program's error if
    /// it failed.
    fn finish(&mut self) -> io::Result<usize> {
        if self.child.wait()?.success() {
            return Ok(0);
        }
        let mut complaint = String::new();
        if let Some(errors) = &mut self.child.stderr {
            errors.read_to_string(&mut complaint)?;
        }
        let complaint = complaint.trim().lines().next().unwrap_or("the program failed without a message");
        let complaint = complaint.trim_start_matches(self.program).trim_start_matches([':', ' ']);
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("{}: {complaint}", self.program)))
    }
}

impl Read for Decompressor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.output.read(buffer)? {
            0 if !buffer.is_empty() => self.finish(),
            count => Ok(count),
        }
    }
}

/// Ends the decompressor if the reader stops early.
impl Drop for Decompressor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
