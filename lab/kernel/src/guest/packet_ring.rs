//! A memory-mapped ring into which the kernel copies the packets of an interface, without waking a process. packet(7), PACKET_RX_RING.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::libc::{self, c_int, sockaddr_ll, socklen_t, tpacket_req, tpacket2_hdr};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// A ring of frames in memory shared with the kernel; a frame contains one packet.
#[derive(Debug)]
pub(super) struct Ring {
    /// The packet socket, which has to stay open as long as the ring is used.
    _socket: OwnedFd,
    memory: NonNull<u8>,
    shape: Shape,
}

/// A captured packet in the memory of the ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'r> {
    /// Wall-clock time of the capture, in ns since 1970.
    pub(super) wall: u64,
    /// Whether the interface received the packet; otherwise it sent it.
    pub(super) received: bool,
    /// The packet, from the IP header on.
    pub(super) octets: &'r [u8],
}

/// The layout of frames in blocks of consecutive memory; no frame spans two blocks.
#[derive(Debug, Clone, Copy)]
struct Shape {
    frame: usize,
    block: usize,
    blocks: usize,
}

impl Shape {
    /// The smallest size of a block, in octets.
    const MIN_BLOCK_SIZE: usize = 64 << 10;

    /// Returns the layout of at least `frames` frames for packets of up to `octets` octets.
    fn new(frames: usize, octets: usize) -> Self {
        let head = libc::TPACKET2_HDRLEN.next_multiple_of(libc::TPACKET_ALIGNMENT) + 16;
        let frame = (head + octets).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let block = Self::MIN_BLOCK_SIZE.max(frame.next_power_of_two());
        Self { frame, block, blocks: frames.div_ceil(block / frame) }
    }

    fn frames(self) -> usize {
        self.block / self.frame * self.blocks
    }

    /// Returns the offset of a frame in the memory of the ring.
    fn offset(self, frame: usize) -> usize {
        let in_block = self.block / self.frame;
        frame / in_block * self.block + frame % in_block * self.frame
    }
}

impl Ring {
    /// Opens a ring with at least `frames` frames. From now on it captures the packets that `interface` sends and
    /// receives, each up to `octets` long.
    pub(super) fn open(interface: u32, frames: usize, octets: usize) -> nix::Result<Self> {
        // Without a protocol the socket receives nothing until it is bound to the interface.
        let socket = socket(AddressFamily::Packet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let shape = Shape::new(frames, octets);
        let request = tpacket_req {
            tp_block_size: shape.block as u32,
            tp_block_nr: shape.blocks as u32,
            tp_frame_size: shape.frame as u32,
            tp_frame_nr: shape.frames() as u32,
        };
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        set(&socket, libc::PACKET_VERSION, &version)?;
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let memory = map(&socket, shape.block * shape.blocks)?;
        bind(&socket, interface, libc::ETH_P_ALL as u16)?;
        Ok(Self { _socket: socket, memory, shape })
    }

    /// Returns the number of frames in the ring.
    pub(super) fn frame_count(&self) -> usize {
        self.shape.frames()
    }

    /// Returns whether all frames are filled, so that further packets may have been lost.
    pub(super) fn is_full(&self) -> bool {
        self.frame(self.frame_count() - 1).is_some()
    }

    /// Returns the packets captured so far, in order.
    pub(super) fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.frame_count()).map_while(|index| Frame::read(self.frame(index)?))
    }

    /// Returns the frame with this index; `None` if the kernel has not filled it yet.
    fn frame(&self, index: usize) -> Option<&[u8]> {
        #[expect(unsafe_code, reason = "the kernel writes into this memory too")]
        // SAFETY: the frame is within the mapping and aligned. The first field contains whether the frame belongs to this process; if so,
        // the kernel does not write to it until it is returned, which never happens.
        unsafe {
            let start = self.memory.add(self.shape.offset(index));
            let status = start.cast::<u32>().read_volatile();
            let is_ours = status & libc::TP_STATUS_USER != 0;
            is_ours.then(|| std::slice::from_raw_parts(start.as_ptr(), self.shape.frame))
        }
    }
}

impl<'r> Frame<'r> {
    /// Parses a frame as in linux/if_packet.h: a `tpacket2_hdr`, a `sockaddr_ll`, and the packet at the offset that
    /// the header gives.
    fn read(octets: &'r [u8]) -> Option<Self> {
        const LENGTH_OFFSET: usize = 8;
        const NETWORK_OFFSET: usize = 14;
        const SECONDS_OFFSET: usize = 16;
        const NANOSECONDS_OFFSET: usize = 20;
        const PACKET_TYPE_OFFSET: usize = 10;
        let address = size_of::<tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        let number = |at: usize| Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?));
        let start =
            usize::from(u16::from_ne_bytes(octets.get(NETWORK_OFFSET..NETWORK_OFFSET + 2)?.try_into().ok()?));
        let length = number(LENGTH_OFFSET)? as usize;
        Some(Self {
            wall: u64::from(number(SECONDS_OFFSET)?) * 1_000_000_000 + u64::from(number(NANOSECONDS_OFFSET)?),
            received: *octets.get(address + PACKET_TYPE_OFFSET)? != libc::PACKET_OUTGOING,
            octets: octets.get(start..start + length)?,
        })
    }
}

fn set<T>(socket: &OwnedFd, option: c_int, value: &T) -> nix::Result<()> {
    #[expect(unsafe_code, reason = "the options of packet sockets have no safe wrapper")]
    // SAFETY: the kernel reads only the value, whose length is correct.
    let result = unsafe {
        let length = size_of::<T>() as socklen_t;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const *value).cast(), length)
    };
    nix::Error::result(result).map(drop)
}

fn map(socket: &OwnedFd, length: usize) -> nix::Result<NonNull<u8>> {
    #[expect(unsafe_code, reason = "mmap of a socket has no safe wrapper")]
    // SAFETY: it creates a new mapping at an address that the kernel chooses, and changes no other memory.
    let memory = unsafe {
        libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, socket.as_raw_fd(), 0)
    };
    let memory = if memory == libc::MAP_FAILED { None } else { NonNull::new(memory.cast()) };
    let memory: NonNull<u8> = memory.ok_or_else(nix::Error::last)?;
    #[expect(unsafe_code, reason = "madvise has no safe wrapper")]
    // SAFETY: it affects only the mapping that was just made. Programs that this process starts do not use the ring.
    let advised = unsafe { libc::madvise(memory.as_ptr().cast(), length, libc::MADV_DONTFORK) };
    nix::Error::result(advised)?;
    Ok(memory)
}

/// Binds a packet socket to an interface; `protocol` selects the packets that the socket receives, and 0 selects none.
pub(super) fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> nix::Result<()> {
    let address = sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: interface.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    #[expect(unsafe_code, reason = "bind with an address of a packet socket has no safe wrapper")]
    // SAFETY: the kernel reads only the address, whose length is correct.
    let result = unsafe {
        let length = size_of::<sockaddr_ll>() as socklen_t;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    nix::Error::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_lies_across_two_blocks() {
        for (frames, octets) in [(1, 1500), (1000, 1500), (77, 65_535)] {
            let shape = Shape::new(frames, octets);
            assert!(shape.frames() >= frames);
            for frame in 0..shape.frames() {
                let start = shape.offset(frame);
                assert_eq!(start / shape.block, (start + shape.frame - 1) / shape.block, "frame {frame}");
            }
            assert!(shape.offset(shape.frames() - 1) < shape.block * shape.blocks);
        }
    }
}
