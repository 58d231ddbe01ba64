//! Record of the parts of a file that one process reads, so that other processes can parse them without the file.
use super::Problem;
use super::source::Opened;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Marker that replaces an offset; it indicates content that did not come from reading the file.
#[cfg(feature = "hdf5")]
const FOUND: u64 = u64::MAX;

/// A file whose parts are recorded when they are read. On other processes it contains the recorded parts only. A parser gives the same
/// results for both.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    opened: Option<Opened<'a>>,
    /// Path of the file for the HDF5 library; `None` if the bytes are in memory.
    #[cfg_attr(not(feature = "hdf5"), allow(dead_code))]
    path: Option<PathBuf>,
    /// Length of the file in bytes, as soon as a parser has requested it.
    length: u64,
    /// Offset of the next byte to read.
    at: u64,
    /// Parts that were read, each with its offset.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl<'a> Image<'a> {
    pub fn new(opened: Opened<'a>) -> Self {
        Self { opened: Some(opened), path: None, length: 0, at: 0, pieces: Vec::new() }
    }
    /// Makes the image of an opened file and records the path, which the HDF5 library needs.
    pub fn of_file(opened: Opened<'a>, path: &Path) -> Self {
        Self { path: matches!(opened, Opened::File(_)).then(|| path.to_owned()), ..Self::new(opened) }
    }
    /// Returns the result of `look` for the path of the file, and records it for other processes. Returns `None` for bytes in memory.
    #[cfg(feature = "hdf5")]
    pub fn found(&mut self, look: impl FnOnce(&Path) -> Vec<u8>) -> Option<Vec<u8>> {
        if let Some((_, found)) = self.pieces.iter().find(|(start, _)| *start == FOUND) {
            return Some(found.clone());
        }
        let found = look(self.path.as_ref()?);
        // The piece is inserted at the beginning, because the last piece grows while the file is read.
        self.pieces.insert(0, (FOUND, found.clone()));
        Some(found)
    }
    /// Returns the opened file; `None` on processes that have not opened it.
    pub fn into_opened(self) -> Option<Opened<'a>> {
        self.opened
    }
    /// Encodes the parts that were read so far; [`from_bytes`](Self::from_bytes) decodes them.
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

/// Reads `count` bytes, or fewer if the file ends before.
pub(super) fn some(reader: &mut Image, count: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    reader.by_ref().take(count).read_to_end(&mut bytes).map_err(Problem::io("read"))?;
    Ok(bytes)
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
                // A position that was not recorded is beyond the end of the file.
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
