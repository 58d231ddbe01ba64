//! What one process read of a file, for the others to read again.
use super::source::Opened;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// In place of an offset: what was found by other means.
#[cfg(feature = "hdf5")]
const FOUND: u64 = u64::MAX;

/// A file of which all that is read is remembered; or, on other processes, what was remembered of it. The same parser
/// finds the same in both.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    opened: Option<Opened<'a>>,
    /// Its name, if it has one and is there: for the HDF5 library.
    #[cfg_attr(not(feature = "hdf5"), allow(dead_code))]
    path: Option<PathBuf>,
    /// Known once the parser asks for it.
    length: u64,
    /// Place of the next byte.
    at: u64,
    /// What was read, and where.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl<'a> Image<'a> {
    pub fn new(opened: Opened<'a>) -> Self {
        Self { opened: Some(opened), path: None, length: 0, at: 0, pieces: Vec::new() }
    }
    /// A file of this name.
    pub fn of_file(opened: Opened<'a>, path: &Path) -> Self {
        Self { path: matches!(opened, Opened::File(_)).then(|| path.to_owned()), ..Self::new(opened) }
    }
    /// What `look` finds in the file of this name, which other processes are told; `None` for bytes in memory.
    #[cfg(feature = "hdf5")]
    pub fn found(&mut self, look: impl FnOnce(&Path) -> Vec<u8>) -> Option<Vec<u8>> {
        if let Some((_, found)) = self.pieces.iter().find(|(start, _)| *start == FOUND) {
            return Some(found.clone());
        }
        let found = look(self.path.as_ref()?);
        // Not the last one, which grows while the file is read.
        self.pieces.insert(0, (FOUND, found.clone()));
        Some(found)
    }
    /// The file, where it was opened.
    pub fn into_opened(self) -> Option<Opened<'a>> {
        self.opened
    }
    /// What was read so far, for [`from_bytes`](Self::from_bytes).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.length.to_le_bytes().to_vec();
        for (offset, piece) in &self.pieces {
            bytes.extend(offset.to_le_bytes());
            bytes.extend((piece.len() as u64).to_le_bytes());
            bytes.extend(piece);
        }
        bytes
    }
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (length, mut rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let mut pieces = Vec::new();
        while let Some((offset, behind)) = rest.split_first_chunk()
            && let Some((count, behind)) = behind.split_first_chunk()
            && let Some((piece, behind)) = behind.split_at_checked(u64::from_le_bytes(*count) as usize)
        {
            pieces.push((u64::from_le_bytes(*offset), piece.to_vec()));
            rest = behind;
        }
        Self { opened: None, path: None, length: u64::from_le_bytes(*length), at: 0, pieces }
    }
}

impl Read for Image<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        let count = match &self.opened {
            Some(opened) => {
                let count = opened.read_at(bytes, at)?;
                match self.pieces.last_mut() {
                    Some((start, piece)) if *start + piece.len() as u64 == at => piece.extend(&bytes[..count]),
                    _ => self.pieces.push((at, bytes[..count].to_vec())),
                }
                count
            }
            None => {
                let known = self.pieces.iter().find_map(|(start, piece)| {
                    let from = usize::try_from(at.checked_sub(*start)?).ok()?;
                    piece.get(from..).filter(|piece| !piece.is_empty())
                });
                // What nobody read was behind the end.
                let known = known.unwrap_or_default();
                let count = known.len().min(bytes.len());
                bytes[..count].copy_from_slice(&known[..count]);
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Image<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if let (SeekFrom::End(_), Some(opened)) = (to, &self.opened) {
            self.length = opened.length()?;
        }
        let place = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_again_what_was_read() {
        let path = std::env::temp_dir().join(format!("ferrite-image-{}", std::process::id()));
        let content: Vec<u8> = (0..=255).cycle().take(5000).collect();
        std::fs::write(&path, &content).unwrap();
        let parse = |image: &mut Image| {
            let length = image.seek(SeekFrom::End(0)).unwrap();
            let (mut start, mut middle, mut end) = (Vec::new(), [0; 100], Vec::new());
            image.rewind().unwrap();
            image.by_ref().take(900).read_to_end(&mut start).unwrap();
            image.seek(SeekFrom::Start(850)).unwrap();
            image.read_exact(&mut middle).unwrap();
            image.seek(SeekFrom::Start(4990)).unwrap();
            image.seek_relative(-2).unwrap();
            image.read_to_end(&mut end).unwrap();
            (length, start, middle, end)
        };
        let mut first = Image::new(Opened::File(std::fs::File::open(&path).unwrap()));
        let read = parse(&mut first);
        assert_eq!((read.0, &read.3[..]), (5000, &content[4988..]));
        assert_eq!(read.2, content[850..950]);
        let bytes = first.to_bytes();
        assert!(bytes.len() < 1200, "{} bytes for 1062 that were read", bytes.len());
        assert_eq!(parse(&mut Image::from_bytes(&bytes)), read);
        assert_eq!(parse(&mut Image::new(Opened::Memory(&content))), read);
        // Bytes that are none of ours are no reason to panic.
        for cut in [0, 5, 12, 30] {
            let mut rest = Vec::new();
            Image::from_bytes(&bytes[..cut]).read_to_end(&mut rest).unwrap();
            assert!(rest.is_empty());
        }
        std::fs::remove_file(path).unwrap();
    }
}
