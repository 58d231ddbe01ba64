//! Recognition of files in unsupported formats, so that errors can name the format.
use super::Problem;
use super::formats::{START, signatures};
use super::image::{Image, some};
use std::io::{Seek, SeekFrom};

const UNPACK: &str = "unpack it first";
const NO_READER: &str = "convert the file to ILDG or NERSC with the program that wrote it";

/// First bytes of files that users often give instead of a configuration, each with a description of the file and advice.
const STARTS: [(&[u8], &str, &str); 10] = [
    (b"\x1f\x8b", "packed with gzip", UNPACK),
    (b"BZh", "packed with bzip2", UNPACK),
    (b"\xfd7zXZ\0", "packed with xz", UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", UNPACK),
    (
        b"PK\x03\x04",
        "a zip archive, such as an .npz file of numpy.savez",
        "save one array with numpy.save, or unpack the archive",
    ),
    (b"version https://git-lfs", "a pointer of Git LFS, not the file itself", "fetch the file with `git lfs pull`"),
    (b"<!DOCTYPE", "an HTML page, probably a server error message", "download the file again"),
    (b"<html", "an HTML page, probably a server error message", "download the file again"),
    (b"CDF", "a NetCDF file", NO_READER),
    (b"<?xml", "an XML file, perhaps the metadata of a configuration", "give the configuration itself"),
];

/// Returns the problem for a file that is in no supported format.
pub(super) fn recognise(reader: &mut Image) -> Result<Problem, Problem> {
    let length = reader.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    if length == 0 {
        return Ok(Problem::Empty);
    }
    reader.rewind().map_err(Problem::io("seek to the start"))?;
    let more = some(reader, 512)?;
    if let Some((_, what, hint)) = STARTS.iter().find(|(magic, ..)| more.starts_with(magic)) {
        return Ok(Problem::OtherFormat { what, hint });
    }
    if more.get(257..262) == Some(b"ustar") {
        return Ok(Problem::OtherFormat { what: "a tar archive", hint: UNPACK });
    }
    let start = more[..more.len().min(START as usize)].iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
    Ok(Problem::UnknownFormat { start, known: signatures() })
}
