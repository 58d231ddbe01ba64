//! Where bytes of fields come from.
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

/// Bytes that can be read at any place, by several threads at once.
pub(crate) trait ReadAt: Sync {
    /// Fills `bytes` with what stands from `offset` on.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }
}

/// Anything that can be read and sought, by one thread after the other.
pub(crate) struct Seeking<'a, R>(Mutex<&'a mut R>);

impl<'a, R> Seeking<'a, R> {
    pub fn new(reader: &'a mut R) -> Self {
        Self(Mutex::new(reader))
    }
}

impl<R: Read + Seek + Send> ReadAt for Seeking<'_, R> {
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read_exact(bytes)
    }
}
