//! Length-prefixed postcard frames.

use serde::{Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};

/// Largest frame either side accepts, in bytes: a batch of 4,096 embeddings of 16,384 values.
pub const MAX_FRAME: usize = 256 << 20;

/// Longest JSON header of a call or its reply, bytes. Both ends look before they send.
pub const MAX_HEADER: usize = 64 << 20;

/// A frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side closed the socket between two frames.
    #[error("The other side closed the connection")]
    Closed,
    /// The socket failed, or closed inside a frame.
    #[error("Connection failed: {0}")]
    Io(#[from] io::Error),
    /// The length is over the cap.
    #[error("Frame too large: expected at most {MAX_FRAME} bytes, found {0}")]
    TooLarge(usize),
    /// The bytes are no message.
    #[error("Frame is not a message: {0}")]
    Malformed(#[from] postcard::Error),
}

/// Write one message; one `write_all`, so frames of two threads need a lock only around this call.
pub fn write_frame<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), FrameError> {
    let mut bytes = postcard::to_extend(message, vec![0u8; 4])?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME {
        return Err(FrameError::TooLarge(length));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    to.write_all(&bytes)?;
    Ok(to.flush()?)
}

/// Read one message. `Closed` only at a frame's border; inside one it is `Io(UnexpectedEof)`.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, FrameError> {
    let mut head = [0u8; 4];
    let mut got = 0;
    while got < 4 {
        match from.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Err(FrameError::Closed),
            Ok(0) => return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(FrameError::Io(e)),
        }
    }
    let length = u32::from_le_bytes(head) as usize;
    if length > MAX_FRAME {
        return Err(FrameError::TooLarge(length));
    }
    // Grow with what arrives: a hostile length must not allocate by itself.
    let mut body = Vec::with_capacity(length.min(1 << 20));
    from.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(FrameError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(postcard::from_bytes(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromWorker, Matrix, Reply, ToWorker};

    #[test]
    fn a_message_survives_the_frame() {
        let message = FromWorker::Answered {
            call: 7,
            reply: Reply {
                header: "{}".into(),
                matrix: Some(Matrix {
                    rows: 1,
                    dim: 2,
                    values: vec![1.5, -0.0],
                }),
            },
        };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &message).expect("memory takes it");
        assert_eq!(
            read_frame::<FromWorker>(&mut bytes.as_slice()).expect("reads back"),
            message
        );
    }

    #[test]
    fn a_cut_frame_and_a_closed_socket_differ() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &ToWorker::Describe).expect("memory takes it");
        write_frame(
            &mut bytes,
            &ToWorker::Open {
                options: "{}".into(),
            },
        )
        .expect("memory takes it");
        let mut whole = bytes.as_slice();
        read_frame::<ToWorker>(&mut whole).expect("first");
        read_frame::<ToWorker>(&mut whole).expect("second");
        assert!(matches!(
            read_frame::<ToWorker>(&mut whole),
            Err(FrameError::Closed)
        ));
        let mut cut = &bytes[..bytes.len() - 1];
        read_frame::<ToWorker>(&mut cut).expect("first");
        assert!(matches!(
            read_frame::<ToWorker>(&mut cut),
            Err(FrameError::Io(_))
        ));
    }

    #[test]
    fn a_hostile_length_is_refused() {
        let mut bytes: &[u8] = &u32::MAX.to_le_bytes();
        assert!(matches!(
            read_frame::<ToWorker>(&mut bytes),
            Err(FrameError::TooLarge(_))
        ));
    }

    #[test]
    fn garbage_is_refused() {
        let mut bytes: &[u8] = &[2, 0, 0, 0, 0xff, 0xff];
        assert!(matches!(
            read_frame::<ToWorker>(&mut bytes),
            Err(FrameError::Malformed(_))
        ));
    }
}
