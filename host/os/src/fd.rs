//! File descriptors over a Unix socket (SCM_RIGHTS). Knows nothing of what the descriptor is.
//!
//! # How the pixel memory reaches a worker
//! The host writes the `Attach` frame as any other, then one extra byte, [`FD_MARK`], that carries the descriptor. The worker
//! reads that byte with [`recv_with_fd`] right after the `Attach` frame, before it reads anything else. Two traps: a buffered
//! reader on the worker's side would swallow the byte and lose the descriptor (`focus_wire::read_frame` reads exactly one
//! frame; give it the bare socket), and a plain `read` of that byte drops the descriptor silently.

use crate::OsError;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The byte that carries the descriptor after an `Attach` frame.
pub const FD_MARK: u8 = 0xFD;

/// Send `bytes` (at least one, few enough for one call) with a descriptor attached to the first.
pub fn send_with_fd(socket: &UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> Result<(), OsError> {
    let fds = [fd];
    let sent = loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(
            control.push(SendAncillaryMessage::ScmRights(&fds)),
            "the buffer is sized for one descriptor"
        );
        match sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(OsError::system("sending a descriptor"))?,
        }
    };
    if sent < bytes.len() {
        use std::io::Write;
        (&*socket)
            .write_all(&bytes[sent..])
            .map_err(OsError::system("sending after a descriptor"))?;
    }
    Ok(())
}

/// Receive at most `buffer.len()` bytes and the descriptor that came with them, close-on-exec. `(0, None)`: the other side
/// closed. More than one descriptor, or a cut list of them, is an error, and none is kept.
pub fn recv_with_fd(
    socket: &UnixStream,
    buffer: &mut [u8],
) -> Result<(usize, Option<OwnedFd>), OsError> {
    // Room for several, so that a peer that sends too many is told apart from one that sends one.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        match recvmsg(
            socket,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(OsError::system("receiving a descriptor"))?,
        }
    };
    let mut found: Vec<OwnedFd> = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = part {
            found.extend(fds);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(OsError::Descriptors("a list that was cut".into()));
    }
    if found.len() > 1 {
        return Err(OsError::Descriptors(found.len().to_string()));
    }
    Ok((message.bytes, found.pop()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_arrives_between_frames() {
        let (mut left, mut right) = UnixStream::pair().expect("pair");
        left.write_all(b"frame").expect("writes");
        let file = tempfile::tempfile().expect("file");
        rustix::io::pwrite(&file, b"inside", 0).expect("fills");
        send_with_fd(&left, &[FD_MARK], file.as_fd()).expect("sends");
        left.write_all(b"next").expect("writes");
        let mut frame = [0; 5];
        right.read_exact(&mut frame).expect("reads");
        let mut mark = [0];
        let (bytes, fd) = recv_with_fd(&right, &mut mark).expect("receives");
        assert_eq!((bytes, mark), (1, [FD_MARK]));
        let mut text = [0; 6];
        rustix::io::pread(fd.expect("a descriptor"), &mut text, 0).expect("reads the file");
        assert_eq!(&text, b"inside");
        let mut next = [0; 4];
        right.read_exact(&mut next).expect("reads on");
        assert_eq!(&next, b"next");
    }

    #[test]
    fn no_descriptor_and_a_closed_socket_are_told_apart() {
        let (mut left, right) = UnixStream::pair().expect("pair");
        left.write_all(b"x").expect("writes");
        let mut one = [0];
        assert!(matches!(recv_with_fd(&right, &mut one), Ok((1, None))));
        drop(left);
        assert!(matches!(recv_with_fd(&right, &mut one), Ok((0, None))));
    }

    #[test]
    fn several_descriptors_are_refused() {
        let (left, right) = UnixStream::pair().expect("pair");
        let fds = [left.as_fd(), right.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(
            &left,
            &[IoSlice::new(b"x")],
            &mut control,
            SendFlags::empty(),
        )
        .expect("sends");
        assert!(matches!(
            recv_with_fd(&right, &mut [0]),
            Err(OsError::Descriptors(_))
        ));
    }
}
