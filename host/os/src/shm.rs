//! Pixel memory: a sealed memfd cut into slots of equal size. The host writes, a worker can only map it for reading.
//!
//! Knows nothing of images or messages.
//!
//! # Who may touch a slot, and when
//! The seals guarantee by kernel that nobody can resize the memory (so no SIGBUS) and that no process but the one that
//! created it can write to it. They cannot stop the host from writing while a worker reads. That is a protocol: a slot
//! belongs to the worker from the moment a `Call` over it is sent until its answer arrives (or the worker is dead), and
//! to the host otherwise. The host must never hand out a slot that is in flight; [`WritableSlots::slot_mut`] takes
//! `&mut self` to keep at least its own threads apart.

use crate::OsError;
use memmap2::{Mmap, MmapMut, MmapOptions};
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Cap on one pixel memory, bytes: 8 GiB.
pub const MAX_BYTES: u64 = 8 << 30;

/// Seals a reader insists on.
const SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::FUTURE_WRITE)
    .union(SealFlags::SEAL);

/// Round up to whole pages, at least one.
pub fn page_align(bytes: u64) -> u64 {
    bytes
        .max(1)
        .next_multiple_of(rustix::param::page_size() as u64)
}

fn total(slots: u32, slot_bytes: u64) -> Result<u64, OsError> {
    u64::from(slots)
        .checked_mul(slot_bytes)
        .filter(|bytes| *bytes > 0 && *bytes <= MAX_BYTES)
        .ok_or(OsError::BadSize {
            slots,
            slot_bytes,
            max: MAX_BYTES,
        })
}

/// The host's side: the only writable mapping there will ever be.
#[derive(Debug)]
pub struct WritableSlots {
    fd: OwnedFd,
    map: MmapMut,
    slots: u32,
    slot_bytes: u64,
}

impl WritableSlots {
    /// Create `slots` zeroed areas of `slot_bytes` (rounded up to whole pages, see [`Self::slot_bytes`]), map them, seal them.
    pub fn create(slots: u32, slot_bytes: u64) -> Result<Self, OsError> {
        // Checked before rounding too: rounding `u64::MAX` would overflow.
        total(slots, slot_bytes)?;
        let slot_bytes = page_align(slot_bytes);
        let bytes = total(slots, slot_bytes)?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create(c"focus-pixels", flags | MemfdFlags::NOEXEC_SEAL)
            // Kernels before 6.3 do not know the flag.
            .or_else(|error| {
                if error == rustix::io::Errno::INVAL {
                    memfd_create(c"focus-pixels", flags)
                } else {
                    Err(error)
                }
            })
            .map_err(OsError::system("creating the pixel memory"))?;
        ftruncate(&fd, bytes).map_err(OsError::system("sizing the pixel memory"))?;
        // SAFETY: the memfd is ours alone until it is sent away, its size is fixed by the seals set below before anyone else
        // can have it, and FUTURE_WRITE bars every other writable mapping.
        let map = unsafe { MmapOptions::new().len(bytes as usize).map_mut(&fd) }
            .map_err(OsError::system("mapping the pixel memory"))?;
        // After the mapping: FUTURE_WRITE leaves existing writable mappings alone and forbids new ones.
        fcntl_add_seals(&fd, SEALS).map_err(OsError::system("sealing the pixel memory"))?;
        Ok(Self {
            fd,
            map,
            slots,
            slot_bytes,
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes in each slot: what was asked for, rounded up to whole pages.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// One slot for writing. The caller makes sure that no worker is reading it (see the module's protocol).
    ///
    /// # Panics
    /// `index` is not below [`Self::slots`].
    pub fn slot_mut(&mut self, index: u32) -> &mut [u8] {
        assert!(index < self.slots, "slot {index} of {}", self.slots);
        let size = self.slot_bytes as usize;
        &mut self.map[index as usize * size..][..size]
    }

    /// The descriptor to send to a worker.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The worker's side. `Send + Sync`; put it in an `Arc` to let an Arrow buffer keep it alive.
#[derive(Debug)]
pub struct ReadOnlySlots {
    map: Mmap,
    slots: u32,
    slot_bytes: u64,
}

impl ReadOnlySlots {
    /// Map what the host sent, after checking that it has the announced size and that its seals hold.
    pub fn map(fd: OwnedFd, slots: u32, slot_bytes: u64) -> Result<Self, OsError> {
        let expected = total(slots, slot_bytes)?;
        let seals = fcntl_get_seals(&fd)
            .map_err(OsError::system("reading the seals of the pixel memory"))?;
        if !seals.contains(SEALS) {
            return Err(OsError::NotSealed {
                expected: SEALS.bits(),
                found: seals.bits(),
            });
        }
        let found = fstat(&fd)
            .map_err(OsError::system("measuring the pixel memory"))?
            .st_size as u64;
        if found != expected {
            return Err(OsError::WrongSize { expected, found });
        }
        // SAFETY: the size is sealed, so no access can fault; the mapping is read-only and the host writes only to slots that
        // this process has answered for (module protocol).
        let map = unsafe { MmapOptions::new().len(expected as usize).map(&fd) }
            .map_err(OsError::system("mapping the pixel memory"))?;
        Ok(Self {
            map,
            slots,
            slot_bytes,
        })
    }

    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes in each slot.
    pub fn slot_bytes(&self) -> u64 {
        self.slot_bytes
    }

    /// One slot; `None` past the last. Valid to read between the host's `Call` and the answer to it.
    pub fn slot(&self, index: u32) -> Option<&[u8]> {
        if index >= self.slots {
            return None;
        }
        let size = self.slot_bytes as usize;
        self.map.get(index as usize * size..)?.get(..size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_writes_the_worker_reads() {
        let mut host = WritableSlots::create(2, 5000).expect("creates");
        assert_eq!(host.slot_bytes() % 4096, 0);
        let worker = ReadOnlySlots::map(
            host.as_fd().try_clone_to_owned().expect("dup"),
            2,
            host.slot_bytes(),
        )
        .expect("maps");
        host.slot_mut(1)[..3].copy_from_slice(b"abc");
        assert_eq!(&worker.slot(1).expect("there")[..4], b"abc\0");
        assert_eq!(&worker.slot(0).expect("there")[..4], &[0; 4]);
        assert!(worker.slot(2).is_none());
    }

    #[test]
    fn the_memory_can_be_neither_resized_nor_written_nor_mapped_writable() {
        let host = WritableSlots::create(1, 4096).expect("creates");
        assert!(ftruncate(host.as_fd(), 0).is_err(), "shrinks");
        assert!(ftruncate(host.as_fd(), 8192).is_err(), "grows");
        assert!(
            rustix::io::pwrite(host.as_fd(), b"x", 0).is_err(),
            "takes a write"
        );
        // SAFETY: the mapping is never touched; it must be refused.
        let again = unsafe { MmapOptions::new().len(4096).map_mut(&host.as_fd()) };
        assert!(again.is_err(), "maps writable");
        assert!(
            fcntl_add_seals(host.as_fd(), SealFlags::WRITE).is_err(),
            "takes more seals"
        );
    }

    #[test]
    fn unsealed_or_wrongly_sized_memory_is_refused() {
        let open = memfd_create(c"test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .expect("creates");
        ftruncate(&open, 4096).expect("sizes");
        assert!(matches!(
            ReadOnlySlots::map(open, 1, 4096),
            Err(OsError::NotSealed { .. })
        ));
        let host = WritableSlots::create(1, 4096).expect("creates");
        let fd = || host.as_fd().try_clone_to_owned().expect("dup");
        assert!(matches!(
            ReadOnlySlots::map(fd(), 2, 4096),
            Err(OsError::WrongSize {
                expected: 8192,
                found: 4096
            })
        ));
        assert!(matches!(
            ReadOnlySlots::map(fd(), 0, 4096),
            Err(OsError::BadSize { .. })
        ));
        let file = tempfile::tempfile().expect("file");
        assert!(
            ReadOnlySlots::map(file.into(), 1, 4096).is_err(),
            "a plain file is no sealed memory"
        );
    }

    #[test]
    fn senseless_sizes_are_refused() {
        for (slots, bytes) in [
            (0, 1),
            (1, 0),
            (1, u64::MAX),
            (u32::MAX, u64::MAX / 2),
            (3, MAX_BYTES),
        ] {
            assert!(
                matches!(
                    WritableSlots::create(slots, bytes),
                    Err(OsError::BadSize { .. })
                ),
                "{slots} x {bytes}"
            );
        }
    }
}
