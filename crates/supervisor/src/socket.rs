//! The sockets between Sabir, the warden and the keepers: bytes, and open files beside them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most open files that travel with one message: the three standard streams.
pub(crate) const MAX_FILES: usize = 3;

/// Sends some of `bytes`, and all of `files` with the first of them. Returns how many bytes went.
pub(crate) fn send(line: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many open files for one message"));
    }
    Ok(sendmsg(line, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives some bytes into `buffer`, and the files that came with them into `files`.
/// Zero bytes: the other side has closed.
pub(crate) fn receive(
    line: impl AsFd,
    buffer: &mut [u8],
    files: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = rustix::io::retry_on_intr(|| {
        recvmsg(line.as_fd(), &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    for attached in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = attached {
            files.extend(received);
        }
    }
    Ok(message.bytes)
}
