//! LIME container: a sequence of records. A record has a header of 144 bytes (magic number, version, message flags, length, type) and data
//! that are padded to a multiple of 8 bytes. All integers are big-endian.
//!
//! The reader accepts files of all programs in use. It ignores message flags, which some programs set wrongly. The padding of the last
//! record may be missing, and zeros may follow the record. The writer sets flags and padding as the format requires.
use super::Problem;
use std::io::{Cursor, Read, Seek, SeekFrom};

/// First four bytes of every record's header.
pub const LIME_MAGIC: [u8; 4] = [0x45, 0x67, 0x89, 0xab];
const HEADER: usize = 144;
/// Largest number of records in a file, which no real file reaches. It prevents that a file of empty headers fills the memory.
const MAX_RECORDS: usize = 1 << 16;

/// A record of a LIME file: its type and the position of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimeRecord {
    /// Type of the record, such as `ildg-binary-data`.
    pub kind: String,
    /// Offset of the first byte of the data.
    pub offset: u64,
    /// Length of the data in bytes, without padding.
    pub length: u64,
    /// Whether this is the first record of a message.
    pub begins: bool,
    /// Whether this is the last record of a message.
    pub ends: bool,
}

impl LimeRecord {
    /// Returns the type and the offset of the record, for messages.
    pub fn place(&self) -> String {
        format!("LIME record {:?} at byte {}", self.kind, self.offset - HEADER as u64)
    }
}

/// Parses the headers of all records of a file in memory.
pub fn parse(bytes: &[u8]) -> Result<Vec<LimeRecord>, Problem> {
    records(&mut Cursor::new(bytes))
}

/// Reads the headers of all records of a file. Fails if a record is cut short, so that every returned record lies inside the file.
pub fn records<R: Read + Seek>(reader: &mut R) -> Result<Vec<LimeRecord>, Problem> {
    let end = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    let mut records = Vec::new();
    let mut at = 0;
    while at < end {
        let left = end - at;
        let mut header = [0; HEADER];
        let header = &mut header[..left.min(HEADER as u64) as usize];
        reader.seek(SeekFrom::Start(at)).map_err(Problem::io("seek to a LIME header"))?;
        reader.read_exact(header).map_err(Problem::io("read a LIME header"))?;
        if header.iter().all(|&b| b == 0) && !records.is_empty() {
            break;
        }
        let what = || format!("the header of LIME record {}, counted from 0,", records.len());
        let place = || format!("{} at byte {at}", what());
        if header.len() < HEADER {
            return Err(Problem::Truncated { what: what(), offset: at, needed: HEADER as u64, available: left });
        }
        if header[..4] != LIME_MAGIC {
            let found = header[..4].iter().map(|b| format!("{b:02x}")).collect::<String>();
            let expected = "456789ab; the length of the previous record may be wrong: copy or write the file again";
            return Err(Problem::field(place(), "magic number", found, expected));
        }
        if records.len() == MAX_RECORDS {
            return Err(Problem::field(place(), "number of records", "more", format!("at most {MAX_RECORDS}")));
        }
        let length = u64::from_be_bytes(header[8..16].try_into().expect("eight bytes"));
        let kind = &header[16..];
        let kind = &kind[..kind.iter().position(|&b| b == 0).unwrap_or(kind.len())];
        let kind = String::from_utf8_lossy(kind).into_owned();
        let offset = at + HEADER as u64;
        if length > end - offset {
            let what = format!("LIME record {kind:?}");
            return Err(Problem::Truncated { what, offset, needed: length, available: end - offset });
        }
        let (begins, ends) = (header[6] & 0x80 != 0, header[6] & 0x40 != 0);
        records.push(LimeRecord { kind, offset, length, begins, ends });
        // The sum does not overflow, because the data end inside the file.
        at = (offset + length).next_multiple_of(8);
    }
    Ok(records)
}

/// Reads a record of text, without NUL bytes at its end. Returns `None` if the record is longer than 64 KiB or not UTF-8.
pub fn text<R: Read + Seek>(reader: &mut R, record: &LimeRecord) -> Result<Option<String>, Problem> {
    if record.length > 1 << 16 {
        return Ok(None);
    }
    let mut bytes = vec![0; record.length as usize];
    reader.seek(SeekFrom::Start(record.offset)).map_err(Problem::io("seek to a LIME record"))?;
    reader.read_exact(&mut bytes).map_err(Problem::io("read a LIME record"))?;
    Ok(String::from_utf8(bytes).ok().map(|text| text.trim_end_matches('\0').to_owned()))
}

/// Appends a record with its header and padding.
pub(crate) fn append(file: &mut Vec<u8>, kind: &str, flags: MessageFlags, data: &[u8]) {
    append_header(file, kind, flags, data.len() as u64);
    file.extend(data);
    append_padding(file, data.len() as u64);
}

/// Position of a record in its message.
#[derive(Clone, Copy)]
pub(crate) enum MessageFlags {
    Begin,
    Middle,
    End,
    /// The only record of a message.
    Alone,
}

/// Appends the header of a record whose data have `length` bytes. Append the data and the padding afterwards.
pub(crate) fn append_header(file: &mut Vec<u8>, kind: &str, flags: MessageFlags, length: u64) {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&LIME_MAGIC);
    header[4..6].copy_from_slice(&1u16.to_be_bytes());
    header[6] = match flags {
        MessageFlags::Begin => 0x80,
        MessageFlags::Middle => 0,
        MessageFlags::End => 0x40,
        MessageFlags::Alone => 0xc0,
    };
    header[8..16].copy_from_slice(&length.to_be_bytes());
    // A header reserves 128 bytes for the type, the last of which is always 0.
    let kind = &kind.as_bytes()[..kind.len().min(127)];
    header[16..16 + kind.len()].copy_from_slice(kind);
    file.extend(header);
}

/// Appends zeros after `length` bytes of data, up to the next multiple of 8.
pub(crate) fn append_padding(file: &mut Vec<u8>, length: u64) {
    let padding = (length.next_multiple_of(8) - length) as usize;
    file.extend(&[0; 8][..padding]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_records() -> Vec<u8> {
        let mut file = Vec::new();
        append(&mut file, "first", MessageFlags::Begin, b"hello");
        append(&mut file, "second", MessageFlags::End, b"world, world");
        file
    }

    #[test]
    fn round_trip() {
        let file = two_records();
        assert_eq!(file.len(), 144 + 8 + 144 + 16);
        let records = parse(&file).unwrap();
        let kinds: Vec<_> = records.iter().map(|r| (r.kind.as_str(), r.begins, r.ends)).collect();
        assert_eq!(kinds, [("first", true, false), ("second", false, true)]);
        assert_eq!(text(&mut Cursor::new(&file), &records[1]).unwrap().unwrap(), "world, world");
    }

    #[test]
    fn tolerates_missing_padding_and_zeros_at_the_end() {
        let file = two_records();
        assert_eq!(parse(&file[..file.len() - 4]).unwrap().len(), 2);
        assert_eq!(parse(&[file, vec![0; 300]].concat()).unwrap().len(), 2);
    }

    #[test]
    fn lies_are_sentences() {
        let mut file = two_records();
        let cut = parse(&file[..file.len() - 5]).unwrap_err().to_string();
        assert!(cut.contains("\"second\" needs 12 bytes from byte 296, but only 11 are present"), "{cut}");
        file[8] = 0xff;
        let lie = parse(&file).unwrap_err().to_string();
        assert!(lie.contains("\"first\" needs 18374686479671623685 bytes"), "{lie}");
        file[8] = 0;
        file[15] = 13;
        let shifted = parse(&file).unwrap_err().to_string();
        assert!(shifted.contains("record 1, counted from 0, at byte 160: magic number"), "{shifted}");
    }
}
