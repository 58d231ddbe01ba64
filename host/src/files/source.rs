//! Sources of the bytes of a field: an open file, or memory.
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Bytes that several threads can read at once, at any offset.
pub(crate) trait ReadAt: Sync {
    /// Fills `bytes` with the content that starts at `offset`.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

/// An open file, or bytes in memory.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    File(File),
    Memory(&'a [u8]),
}

impl Opened<'_> {
    /// Returns the length of the file or memory in bytes.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => (&*file).seek(SeekFrom::End(0)),
            Self::Memory(memory) => Ok(memory.len() as u64),
        }
    }
    /// Reads bytes that start at `offset` into `bytes`, and returns their number; it is 0 at the end of the file or memory.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(bytes, offset),
            Self::Memory(memory) => behind(memory, offset).read(bytes),
        }
    }
}

impl ReadAt for Opened<'_> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::File(file) => FileExt::read_exact_at(file, bytes, offset),
            Self::Memory(memory) => behind(memory, offset).read_exact(bytes),
        }
    }
}

/// Returns the bytes that start at `offset`; empty beyond the end.
fn behind(memory: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| memory.get(offset..)).unwrap_or_default()
}
