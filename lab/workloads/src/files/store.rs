//! The server, which stores files and answers from them.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::{Digest, Digester, Time};

use super::Files;
use super::frame::{Command, Header};
use crate::ConnectionId;
use crate::receiver::ReplySource;

/// The files of the server, by number.
#[derive(Debug, Default)]
pub(super) struct FileServer {
    pub(super) files: BTreeMap<u32, Vec<u8>>,
}

impl FileServer {
    const UNKNOWN_FILE: &'static str = "no such file";

    fn file(&mut self, file: u32) -> Result<&mut Vec<u8>, &'static str> {
        self.files.get_mut(&file).ok_or(Self::UNKNOWN_FILE)
    }

    /// Creates an empty file. Its whole size is reserved at once, because a file that grows would be in memory twice at
    /// times.
    fn create(&mut self, file: u32, octets: u32) -> Result<(), &'static str> {
        if u64::from(octets) > Files::MAX_STORED {
            return Err("the file is larger than the storage of the server");
        }
        self.files.insert(file, Vec::with_capacity(octets as usize));
        Ok(())
    }

    fn write(&mut self, file: u32, offset: u32, block: &[u8]) -> Result<(), &'static str> {
        let file = self.file(file)?;
        if file.len() != offset as usize || file.len() + block.len() > file.capacity() {
            return Err(
                "the block does not follow the previous one, or exceeds the announced size of the file",
            );
        }
        file.extend_from_slice(block);
        Ok(())
    }

    fn digest(&mut self, file: u32) -> Result<Digest, &'static str> {
        let mut digester = Digester::new();
        digester.add_octets(self.file(file)?);
        Ok(digester.finish())
    }

    fn block(&mut self, file: u32, offset: u32, octets: u32) -> Result<&[u8], &'static str> {
        let (start, length) = (offset as usize, octets as usize);
        let block = self.file(file)?.get(start..).and_then(|rest| rest.get(..length));
        block.ok_or("the block lies beyond the end of the file")
    }

    fn remove(&mut self, file: u32) -> Result<(), &'static str> {
        self.files.remove(&file).map(drop).ok_or(Self::UNKNOWN_FILE)
    }
}

impl ReplySource for FileServer {
    fn number(&self, request: &Bytes) -> Option<u32> {
        Header::read(request).ok().map(|(header, _)| header.number)
    }

    fn answer(&mut self, _: Time, _: ConnectionId, request: Bytes) -> Result<Option<Bytes>, &'static str> {
        let (header, block) = Header::read(&request)?;
        let Header { command, file, offset, octets, .. } = header;
        let mut replied: (Digest, &[u8]) = (Digest(0), &[]);
        match command {
            Command::Create => self.create(file, octets)?,
            Command::Write => self.write(file, offset, block)?,
            Command::Store => replied.0 = self.digest(file)?,
            Command::Read => replied.1 = self.block(file, offset, octets)?,
            Command::Open | Command::Close => drop(self.file(file)?),
            Command::Remove => self.remove(file)?,
        }
        let (digest, block) = replied;
        Ok(Some(Header { digest, ..header }.followed_by(block)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(
        store: &mut FileServer,
        command: Command,
        [file, offset, octets]: [u32; 3],
        block: &[u8],
    ) -> Result<(), &'static str> {
        let header = Header { command, number: 0, file, offset, octets, digest: Digest(0) };
        store.answer(Time::ZERO, ConnectionId(0), header.followed_by(block)).map(drop)
    }

    #[test]
    fn missing_files_and_unannounced_blocks_are_refused() {
        let mut store = FileServer::default();
        for command in [Command::Open, Command::Store, Command::Close, Command::Remove] {
            assert_eq!(ask(&mut store, command, [3, 0, 0], &[]), Err(FileServer::UNKNOWN_FILE));
        }
        assert!(ask(&mut store, Command::Create, [3, 0, u32::MAX], &[]).is_err());
        assert_eq!(ask(&mut store, Command::Create, [3, 0, 8], &[]), Ok(()));
        assert!(ask(&mut store, Command::Write, [3, 1, 4], &[7; 4]).is_err(), "it would leave a hole");
        assert_eq!(ask(&mut store, Command::Write, [3, 0, 4], &[7; 4]), Ok(()));
        assert!(
            ask(&mut store, Command::Write, [3, 4, 5], &[7; 5]).is_err(),
            "it is longer than it was to be"
        );
        assert!(ask(&mut store, Command::Read, [3, 2, 3], &[]).is_err());
        assert!(ask(&mut store, Command::Read, [3, u32::MAX, u32::MAX], &[]).is_err());
        assert_eq!(ask(&mut store, Command::Read, [3, 2, 2], &[]), Ok(()));
        assert_eq!(ask(&mut store, Command::Remove, [3, 0, 0], &[]), Ok(()));
        assert!(store.files.is_empty());
    }
}
