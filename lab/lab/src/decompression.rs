//! Decompresses files of gzip and zstd while they are read, up to a maximum size.

use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::other_tool::decompression_program;

/// The largest window of zstd that is accepted, in octets, because the decoder keeps as much of its output in memory.
/// `zstd -d` accepts the same size without an option.
const LARGEST_WINDOW: u64 = 128 << 20;

/// Returns the content of a file. If its first octets show that gzip or zstd compressed it, it is decompressed while
/// it is read, and it is an error to read more than `limit` octets. Other files are returned as they are.
pub fn decompress(mut input: impl Read + 'static, limit: u64) -> io::Result<Box<dyn Read>> {
    let mut head = Vec::new();
    input.by_ref().take(4).read_to_end(&mut head)?;
    let program = decompression_program(&head);
    let whole = BufReader::new(io::Cursor::new(head).chain(input));
    Ok(match program {
        Some("gzip") => Box::new(SizeLimit::new(Gzip(flate2::bufread::MultiGzDecoder::new(whole)), limit)),
        Some("zstd") => Box::new(SizeLimit::new(Zstd::new(whole), limit)),
        _ => Box::new(whole),
    })
}

/// Passes on at most a given number of octets of a reader. More octets are an error, so that a small compressed
/// file cannot fill the memory.
pub struct SizeLimit<R> {
    input: R,
    /// The maximum number of octets.
    limit: u64,
    /// The number of octets that may still be read.
    left: u64,
}

impl<R> SizeLimit<R> {
    /// Limits `input` to `limit` octets.
    pub const fn new(input: R, limit: u64) -> Self {
        Self { input, limit, left: limit }
    }
}

impl<R: Read> Read for SizeLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            let limit = self.limit >> 20;
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the decompressed file is longer than {limit} MiB; decompress it, and shorten it"),
            )
        })?;
        Ok(count)
    }
}

/// Returns the error of a decoder, with the information whether the file is incomplete or damaged.
fn damaged(problem: &(dyn std::error::Error + 'static)) -> io::Error {
    let causes = std::iter::successors(Some(problem), |cause| cause.source());
    let kinds = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kinds.last() {
        Some(kind @ io::ErrorKind::UnexpectedEof) => {
            io::Error::new(kind, "the compressed file ends too early; copy or download it again")
        }
        _ => io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the compressed file is damaged ({problem}); copy or download it again"),
        ),
    }
}

/// A reader of a gzip file, which may have several members (RFC 1952 section 2.2).
struct Gzip<R>(flate2::bufread::MultiGzDecoder<R>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|problem| damaged(&problem))
    }
}

/// A reader of a zstd file: one frame after another, some of which are skipped (RFC 8878 section 3.1).
struct Zstd<R> {
    input: R,
    frame: FrameDecoder,
    /// Whether the reader is within a frame: it has read the frame's header, but not yet all of its data.
    is_within_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(LARGEST_WINDOW);
        Self { input, frame, is_within_frame: false }
    }

    /// Reads headers until the next frame that contains data. Returns false at the end of the file.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(length.into())?,
                Err(problem) => return Err(damaged(&problem)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        match io::copy(&mut self.input.by_ref().take(length), &mut io::sink())? {
            count if count == length => Ok(()),
            _ => Err(damaged(&io::Error::from(io::ErrorKind::UnexpectedEof))),
        }
    }

    /// Verifies the checksum at the end of a frame, if there is one (RFC 8878 section 3.1.1).
    fn check_frame(&mut self) -> io::Result<()> {
        match self.frame.get_checksum_from_data() {
            Some(stored) if self.frame.get_calculated_checksum() != Some(stored) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the compressed file is damaged (wrong checksum); copy or download it again",
            )),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_within_frame && !self.start_frame()? {
                return Ok(0);
            }
            self.is_within_frame = true;
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                let decoded = self.frame.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(|problem| damaged(&problem))?;
            }
            match self.frame.read(buffer)? {
                0 => {
                    self.check_frame()?;
                    self.is_within_frame = false;
                }
                count => return Ok(count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const LIMIT: u64 = 1 << 20;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    fn read(octets: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        decompress(io::Cursor::new(octets.to_vec()), LIMIT)?.read_to_end(&mut content).map(|_| content)
    }

    fn error(octets: &[u8]) -> String {
        read(octets).unwrap_err().to_string()
    }

    /// Content that compresses badly, so that it fills several blocks.
    fn content() -> Vec<u8> {
        (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn compressed_and_plain_files_have_the_same_content() {
        let content = content();
        for octets in [content.clone(), gzip(&content), zstd(&content)] {
            assert!(read(&octets).unwrap() == content);
        }
        for short in [&b""[..], b"1", b"1.0,2.0\n"] {
            assert_eq!(read(short).unwrap(), short);
            assert_eq!(read(&gzip(short)).unwrap(), short);
            assert_eq!(read(&zstd(short)).unwrap(), short);
        }
    }

    /// RFC 1952 section 2.2 (members), RFC 8878 sections 3.1.1 and 3.1.2 (frames, skippable frames).
    #[test]
    fn parts_follow_each_other() {
        assert_eq!(read(&[gzip(b"ab"), gzip(b""), gzip(b"c")].concat()).unwrap(), b"abc");
        let skipped = [&0x184d_2a50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"xyz"].concat();
        let frames = [zstd(b"ab"), skipped.clone(), zstd(b""), zstd(b"c"), skipped].concat();
        assert_eq!(read(&frames).unwrap(), b"abc");
        assert!(error(&frames[..frames.len() - 1]).contains("ends too early"));
    }

    #[test]
    fn each_truncation_is_an_error() {
        let content = &content()[..3000];
        for octets in [gzip(content), zstd(content)] {
            for length in 4..octets.len() {
                assert_eq!(
                    error(&octets[..length]),
                    "the compressed file ends too early; copy or download it again",
                    "{length}"
                );
            }
        }
    }

    #[test]
    fn damage_is_an_error() {
        for mut octets in [gzip(&content()), zstd(&content())] {
            let end = octets.len();
            octets[end - 6] ^= 1;
            assert!(error(&octets).contains("damaged"));
        }
    }

    #[test]
    fn more_than_the_limit_is_an_error() {
        let limit = LIMIT as usize;
        for compress in [gzip, zstd] {
            assert_eq!(read(&compress(&vec![0; limit])).unwrap().len(), limit);
            let bomb = compress(&vec![0; 64 * limit]);
            assert!(bomb.len() < limit / 8);
            assert!(error(&bomb).contains("longer than 1 MiB"));
        }
    }

    /// A frame header may ask for a window of terabytes (RFC 8878 section 3.1.1.1.2).
    #[test]
    fn huge_windows_of_zstd_are_refused() {
        let header = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xff, 0x01, 0x00, 0x00, 0x00];
        assert!(error(&header).contains("WindowTooBig"), "{}", error(&header));
    }
}
