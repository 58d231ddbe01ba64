//! Parts of a file that one process has read, from which the others parse the same.
use super::Problem;
use super::source::Opened;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Marker in place of an offset for content that was found by other means.
#[cfg(feature = "hdf5")]
const FOUND: u64 = u64::MAX;

/// A file whose parts are recorded when they are read; on other processes, the recorded parts. A parser gives the same results on both.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    opened: Option<Opened<'a>>,
    /// Name of the file for the HDF5 library, if it exists under a name.
    #[cfg_attr(not(feature = "hdf5"), allow(dead_code))]
    path: Option<PathBuf>,
    /// Length of the file, set once the parser needs it.
    length: u64,
    /// Offset of the next byte.
    at: u64,
    /// Parts that were read, with their offsets.
    pieces: Vec<(u64, Vec<u8>)>,
}

impl<'a> Image<'a> {
    pub fn new(opened: Opened<'a>) -> Self {
        Self { opened: Some(opened), path: None, length: 0, at: 0, pieces: Vec::new() }
    }
    /// Makes the image of a file of this name.
    pub fn of_file(opened: Opened<'a>, path: &Path) -> Self {
        Self { path: matches!(opened, Opened::File(_)).then(|| path.to_owned()), ..Self::new(opened) }
    }
    /// Returns the result of `look` on the file of this name, which is recorded for other processes; `None` for bytes in memory.
    #[cfg(feature = "hdf5")]
    pub fn found(&mut self, look: impl FnOnce(&Path) -> Vec<u8>) -> Option<Vec<u8>> {
        if let Some((_, found)) = self.pieces.iter().find(|(start, _)| *start == FOUND) {
            return Some(found.clone());
        }
        let found = look(self.path.as_ref()?);
        // Not the last piece, which grows while the file is read.
        self.pieces.insert(0, (FOUND, found.clone()));
        Some(found)
    }
    /// Returns the file, if it was opened.
    pub fn into_opened(self) -> Option<Opened<'a>> {
        self.opened
    }
    /// Encodes the parts that were read so far, for [`from_bytes`](Self::from_bytes).
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

/// Reads `count` bytes, or fewer at the end of the file.
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
                // Bytes that were not read are outside the file.
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
