//! Files of multigrid setups: what comes back, by any number of ranks, what is in them byte by byte, and what is
//! refused.
use crate::sections::{FileRoom, field_of, on, sentence};
use comms::Solo;
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::files::setup::{MOST_STORED_VECTORS, SetupHeader, SetupReader, SetupWriter, inspect_setup};
use ferrite::files::{FileError, Problem, ReadFrom, SharedFile, WriteOptions, write_gauge};
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use ferrite_tests::testkit::lattice;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn header(size: [usize; 4], vectors: usize) -> SetupHeader {
    let operator = json!({ "operator": "clover", "mass": -1.0 / 3.0, "csw": 0.1 + 0.2, "boundary": [1, -1] });
    SetupHeader::new(lattice(size), vectors, operator, "suma 12ab34cd, sumb 56ef7890")
}

/// A number that identifies its place and that single precision holds exactly: below 2²⁴ / 2⁵.
fn number(vector: usize, [x, y, z, t]: [usize; 4], component: usize) -> f32 {
    let place = [vector, t, z, y, x].iter().fold(0, |place, coordinate| 8 * place + coordinate);
    (24 * place + component) as f32 / 32.0 - 100.0
}

/// Vectors of these numbers, with what is no number on odd sites.
fn counted(size: [usize; 4], vectors: usize) -> Vec<HostSpinor> {
    let lattice = lattice(size);
    let field = |vector: usize| {
        let mut field = HostSpinor::zero(lattice);
        for (index, site) in field.sites_mut().iter_mut().enumerate() {
            let at = lattice.coordinates(index);
            for (k, value) in site.as_flattened_mut().iter_mut().enumerate() {
                (value.re, value.im) = (number(vector, at, 2 * k).into(), number(vector, at, 2 * k + 1).into());
                if lattice.parity(at) == 1 {
                    value.re = f64::NAN;
                }
            }
        }
        field
    };
    (0..vectors).map(field).collect()
}

/// Returns a field as it comes back: zero on odd sites, rounded on even ones.
fn stored(field: &HostSpinor) -> HostSpinor {
    let (lattice, mut field) = (field.lattice(), field.clone());
    for (index, site) in field.sites_mut().iter_mut().enumerate() {
        let is_odd = lattice.parity(lattice.coordinates(index)) == 1;
        for value in site.as_flattened_mut() {
            let round = |number: f64| if is_odd { 0.0 } else { f64::from(number as f32) };
            (value.re, value.im) = (round(value.re), round(value.im));
        }
    }
    field
}

fn write(
    path: &Path,
    network: &dyn Network,
    section: &Section,
    header: &SetupHeader,
    fields: &[HostSpinor],
) -> Result<(), FileError> {
    let mut writer = SetupWriter::create(SharedFile::new(path, network).part(section), header.clone())?;
    for field in fields {
        writer.write(&field_of(section, field))?;
    }
    writer.finish()
}

/// All vectors, or what is wrong with the file, of any lattice.
fn read(path: &Path) -> Result<(SetupHeader, Vec<HostSpinor>), FileError> {
    let solo = Solo::new();
    let reader = SetupReader::open(SharedFile::new(path, &solo))?;
    let fields: Result<_, _> = (0..reader.header().vectors).map(|number| reader.read(number)).collect();
    Ok((reader.header().clone(), fields?))
}

/// A small file of counted vectors.
fn small(path: &Path, vectors: usize) -> (SetupHeader, Vec<HostSpinor>) {
    let (header, fields) = (header([2; 4], vectors), counted([2; 4], vectors));
    write(path, &Solo::new(), &header.lattice.into(), &header, &fields).unwrap();
    (header, fields.iter().map(stored).collect())
}

#[test]
fn any_grid_reads_what_any_other_wrote() {
    for (size, grids) in [
        // Extents and grids whose parts have even extents.
        ([2, 4, 6, 8], [[1, 1, 1, 1], [1, 1, 1, 2], [1, 2, 3, 1], [1, 2, 1, 4]]),
        ([4, 6, 8, 2], [[1, 1, 1, 1], [2, 1, 2, 1], [1, 3, 1, 1], [2, 3, 4, 1]]),
    ] {
        let (room, header) = (FileRoom::new(), header(size, 3));
        let fields: Vec<HostSpinor> = (0..3).map(|seed| generate::random_source(header.lattice, seed)).collect();
        let expected: Vec<HostSpinor> = fields.iter().map(stored).collect();
        let path = room.path("setup");
        let mut first = None;
        for writers in grids {
            on(writers, header.lattice, |world, section| write(&path, world, section, &header, &fields).unwrap());
            assert_eq!(room.files(), ["setup"]);
            let bytes = fs::read(&path).unwrap();
            assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "the bytes differ on {writers:?}");
            for readers in grids {
                on(readers, header.lattice, |world, section| {
                    assert_eq!(inspect_setup(SharedFile::new(&path, world)).unwrap(), header);
                    let reader = SetupReader::open(SharedFile::new(&path, world).part(section)).unwrap();
                    assert_eq!(*reader.header(), header);
                    // In any order.
                    for number in [2, 0, 1] {
                        let vector = reader.read(number).unwrap();
                        assert!(vector == field_of(section, &expected[number]), "{writers:?}, {readers:?}: {number}");
                    }
                });
            }
        }
    }
}

/// CRC-32 by its polynomial.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb88320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn record(kind: &str, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut record = vec![0x45, 0x67, 0x89, 0xab, 0, 1, flags, 0];
    record.extend((data.len() as u64).to_be_bytes());
    record.extend(kind.as_bytes());
    record.resize(144, 0);
    record.extend(data);
    record.resize(record.len().next_multiple_of(8), 0);
    record
}

/// The first record, as it is in a file.
fn text(header: &SetupHeader) -> Value {
    json!({
        "format": "ferrite.multigrid-setup/1", "lattice": header.lattice.size(), "vectors": header.vectors,
        "operator": header.operator, "links": header.links, "program": header.program,
    })
}

/// A file made by hand, of the first record and of the bytes of vectors.
fn by_hand(header: &Value, vectors: &[Vec<u8>]) -> Vec<u8> {
    let text = header.to_string();
    let sum = |vector: &Vec<u8>| {
        let sites = vector.chunks(96).map(crc32).zip(0..);
        let sums = sites.fold((0, 0), |(a, b), (crc, k)| (a ^ crc.rotate_left(k % 29), b ^ crc.rotate_left(k % 31)));
        format!("{:08x} {:08x}", sums.0, sums.1)
    };
    let sums: Vec<String> = vectors.iter().map(sum).collect();
    let sums = json!({ "setup": format!("{:08x}", crc32(text.as_bytes())), "vectors": sums });
    let mut file = record("ferrite-multigrid-setup", 0x80, text.as_bytes());
    vectors.iter().for_each(|vector| file.extend(record("ferrite-multigrid-vector", 0, vector)));
    file.extend(record("ferrite-multigrid-checksums", 0x40, sums.to_string().as_bytes()));
    file
}

/// The bytes of a counted vector.
fn bytes_of([nx, ny, nz, nt]: [usize; 4], vector: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for t in 0..nt {
        for z in 0..nz {
            for y in 0..ny {
                for x in (0..nx).filter(|x| (x + y + z + t) % 2 == 0) {
                    (0..24).for_each(|k| bytes.extend(number(vector, [x, y, z, t], k).to_be_bytes()));
                }
            }
        }
    }
    bytes
}

#[test]
fn the_bytes_of_a_file_are_those_of_the_formula() {
    let (room, size) = (FileRoom::new(), [4, 4, 6, 8]);
    let (path, header) = (room.path("setup"), header(size, 3));
    let grid = [2, 1, 3, 2];
    on(grid, header.lattice, |world, section| write(&path, world, section, &header, &counted(size, 3)).unwrap());
    let bytes = fs::read(&path).unwrap();
    let vectors: Vec<_> = (0..3).map(|vector| bytes_of(size, vector)).collect();
    assert!(bytes == by_hand(&text(&header), &vectors), "{}", String::from_utf8_lossy(&bytes[..600]));
    // Vector 1, site (x, y, z, t) = (3, 1, 2, 4), which is even site 211, spin 2, colour 1, imaginary part.
    let first = 144 + (text(&header).to_string().len()).next_multiple_of(8);
    let at = first + (144 + 384 * 96) + 144 + 96 * 211 + 4 * 15;
    assert_eq!(f32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()), number(1, [3, 1, 2, 4], 15));
    // The size is that of the vectors and little else.
    assert!(bytes.len() < 3 * 384 * 96 + 1200);
}

#[test]
fn every_flipped_bit_that_matters_is_found() {
    let room = FileRoom::new();
    let path = room.path("setup");
    let (header, fields) = small(&path, 2);
    let good = fs::read(&path).unwrap();
    // Of the headers of records: version and flags, and the names behind their end; and padding.
    let mut harmless = vec![false; good.len()];
    let (mut at, mut vectors) = (0, Vec::new());
    while at < good.len() {
        let length = u64::from_be_bytes(good[at + 8..at + 16].try_into().unwrap()) as usize;
        let name = at + 16 + good[at + 16..].iter().position(|b| *b == 0).unwrap();
        harmless[at + 4..at + 8].fill(true);
        harmless[name + 1..at + 144].fill(true);
        let end = (at + 144 + length).next_multiple_of(8);
        harmless[at + 144 + length..end].fill(true);
        if good[at + 16..name].ends_with(b"vector") {
            vectors.push(at + 144..end);
        }
        at = end;
    }
    for byte in 0..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 1 << (byte * 7 % 8);
        fs::write(&path, &bad).unwrap();
        match read(&path) {
            Ok(found) => assert!(harmless[byte] && found == (header.clone(), fields.clone()), "byte {byte}"),
            Err(error) => {
                assert!(!harmless[byte], "byte {byte}: {error}");
                assert!(error.to_string().contains("setup: "), "{error}");
                if let Some(vector) = vectors.iter().position(|vector| vector.contains(&byte)) {
                    let said = format!("field {vector}, counted from 0: the checksum of the vector is ");
                    assert!(error.to_string().contains(&said), "byte {byte}: {error}");
                    // The other one can be read.
                    let solo = Solo::new();
                    let reader = SetupReader::open(SharedFile::new(&path, &solo)).unwrap();
                    assert_eq!(reader.read(1 - vector).unwrap(), fields[1 - vector]);
                }
            }
        }
    }
}

#[test]
fn truncated_files_are_refused() {
    let room = FileRoom::new();
    let path = room.path("setup");
    small(&path, 2);
    let good = fs::read(&path).unwrap();
    // The last record may lack its padding.
    let end = good.iter().rposition(|b| *b == b'}').unwrap() + 1;
    for length in 0..end {
        fs::write(&path, &good[..length]).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(said.contains("setup: "), "{said}");
        assert!(length < 4 || said.contains("copy it again"), "{length} bytes: {said}");
    }
    for length in end..=good.len() {
        fs::write(&path, &good[..length]).unwrap();
        read(&path).unwrap();
    }
}

#[test]
fn what_is_no_setup_of_this_version_is_refused() {
    let (room, solo) = (FileRoom::new(), Solo::new());
    let path = room.path("setup");
    let header = header([2; 4], 2);
    let vectors = [0, 1].map(|vector| bytes_of([2; 4], vector));
    let check = |bytes: &[u8], says: &str| {
        fs::write(&path, bytes).unwrap();
        let said = read(&path).unwrap_err().to_string();
        assert!(said.starts_with(&path.display().to_string()) && said.contains(says), "{said}");
        let inspected = inspect_setup(&path).map_err(|error| error.to_string());
        // Only the numbers are not looked at.
        assert!(inspected == Err(said.clone()) || said.contains("field "), "{inspected:?}");
        assert!(inspected.is_err() == inspect_setup(ReadFrom::Memory(bytes)).is_err());
    };
    let good = text(&header);
    fs::write(&path, by_hand(&good, &vectors)).unwrap();
    assert_eq!(read(&path).unwrap().0, header);
    let with = |key: &str, value: Value| {
        let mut changed = good.clone();
        changed[key] = value;
        by_hand(&changed, &vectors)
    };
    check(b"", "is empty");
    check(b"Dear Sir", "is not a multigrid setup: the file starts with the bytes 44 65 61 72");
    write_gauge(&path, &HostGauge::unit(lattice([2; 4])), &WriteOptions::default()).unwrap();
    check(&fs::read(&path).unwrap(), "is not a multigrid setup: the first LIME record is \"scidac-private-file-xml\"");
    let version = with("format", "ferrite.multigrid-setup/2".into());
    check(&version, "format is \"ferrite.multigrid-setup/2\", expected \"ferrite.multigrid-setup/1\"; another version");
    check(&with("format", Value::Null), "format is \"null\"");
    check(&with("lattice", json!([2, 2, 2])), "lattice is \"[2,2,2]\", expected four extents");
    check(&with("lattice", json!([2, 2, 2, 3])), "extent t = 3");
    check(
        &with("lattice", json!([2, 2, 2, 4])),
        "has 768 bytes, but a vector on the even sites of the 2×2×2×4 lattice",
    );
    check(&with("lattice", json!([1 << 20, 1 << 20, 1 << 20, 2])), "too large");
    check(
        &with("vectors", json!(3)),
        "number of ferrite-multigrid-vector records is \"2\", expected 3, as in the header",
    );
    check(&with("vectors", json!(-2)), "vectors is \"-2\", expected a number from 1 to 1024");
    check(&with("vectors", json!(MOST_STORED_VECTORS + 1)), "vectors is \"1025\"");
    check(&with("operator", json!("wilson")), "operator is \"\\\"wilson\\\"\", expected an object");
    check(&with("links", json!(7)), "links is \"7\", expected text");
    check(&with("program", Value::Null), "program is \"null\", expected text");
    check(&by_hand(&good, &vectors[..1]), "number of ferrite-multigrid-vector records is \"1\"");
    // Numbers that are none, with the right checksum.
    let mut bad = vectors.clone();
    // Even sites of row (y, z, t) = (1, 0, 1) are those with x = 0: number 5.
    bad[1][96 * 5 + 4 * 7..][..4].copy_from_slice(&f32::NAN.to_be_bytes());
    check(&by_hand(&good, &bad), "field 1, counted from 0: spinor at site (x, y, z, t) = [0, 1, 0, 1] is not finite");
    // Checksums that are missing, too few, or no JSON.
    let file = by_hand(&good, &vectors);
    let kind = b"ferrite-multigrid-checksums";
    let last = file.windows(kind.len()).rposition(|bytes| bytes == kind).unwrap() - 16;
    check(&file[..last], "ferrite-multigrid-checksums is missing; the file is cut short");
    let with_sums =
        |text: &str| [&file[..last], &record("ferrite-multigrid-checksums", 0x40, text.as_bytes())].concat();
    let crc = format!("{:08x}", crc32(good.to_string().as_bytes()));
    check(&with_sums(&json!({ "setup": crc, "vectors": ["a"] }).to_string()), "expected one checksum for each vector");
    check(
        &with_sums(&json!({ "setup": crc }).to_string()),
        "vectors is \"null\", expected one checksum for each vector",
    );
    check(&with_sums("{}"), "setup is \"null\", expected eight hexadecimal digits");
    check(&with_sums("all right"), "content is \"all right\", expected JSON");
    let missing = room.path("missing");
    let said = read(&missing).unwrap_err().to_string();
    assert!(said.contains("missing: cannot open: No such file"), "{said}");
    // No such vector.
    fs::write(&path, by_hand(&good, &vectors)).unwrap();
    let said = SetupReader::open(SharedFile::new(&path, &solo)).unwrap().read(2).unwrap_err().to_string();
    assert!(said.contains("vectors is \"2\", expected more than 2, because vector 2"), "{said}");
}

#[test]
fn ranks_fail_together() {
    let (room, size) = (FileRoom::new(), [2, 4, 6, 8]);
    let (path, header, fields) = (room.path("setup"), header(size, 2), counted(size, 2));
    let (grid, lattice) = ([1, 2, 1, 2], lattice(size));
    on(grid, lattice, |world, section| write(&path, world, section, &header, &fields).unwrap());
    let good = fs::read(&path).unwrap();
    // Another lattice than that of the caller.
    let longer = Lattice::new([2, 4, 6, 16]).unwrap();
    let said = sentence(on(grid, longer, |world, section| {
        SetupReader::open(SharedFile::new(&path, world).part(section)).map(|_| ())
    }));
    assert!(said.contains("the lattice is 2×4×6×16 according to the request, but 2×4×6×8"), "{said}");
    // A bit in the part of one rank.
    let mut bad = good.clone();
    let place = bad.len() - 1000;
    bad[place] ^= 4;
    fs::write(&path, bad).unwrap();
    let said = sentence(on(grid, lattice, |world, section| {
        let reader = SetupReader::open(SharedFile::new(&path, world).part(section)).unwrap();
        assert_eq!(reader.read(0).unwrap(), field_of(section, &stored(&fields[0])));
        reader.read(1)
    }));
    assert_eq!(said, read(&path).unwrap_err().to_string());
    fs::write(&path, &good).unwrap();
    // What cannot be written: on every rank nothing new is left when the call returns.
    let refused = |header: &(dyn Fn(usize) -> SetupHeader + Sync), fields: &[HostSpinor], says: &str| {
        let said = sentence(on(grid, lattice, |world, section| {
            let result = write(&path, world, section, &header(world.rank()), fields);
            assert_eq!(room.files(), ["setup"]);
            result
        }));
        assert!(said.contains(says), "{said}");
        assert!(fs::read(&path).unwrap() == good);
    };
    let same = |_| header.clone();
    let site = lattice.index([1, 3, 2, 6]);
    for value in [f64::NAN, f64::NEG_INFINITY, 1e39] {
        let mut bad = fields.clone();
        bad[1].sites_mut()[site][3][2].im = value;
        let says = "field 1, counted from 0: spinor, in single precision, at site (x, y, z, t) = [1, 3, 2, 6] is not \
                    finite";
        refused(&same, &bad, says);
    }
    refused(&same, &fields[..1], "1 of 2 vectors are present; write all of them");
    let too_many = [&fields[..], &fields[..1]].concat();
    refused(&same, &too_many, "the file already has as many vectors as its header declares; write no more");
    let differs = |rank| SetupHeader { links: format!("{}", rank / 3), ..header.clone() };
    refused(&differs, &fields, "the headers of rank 3 and rank 0 differ; give the same header on all ranks");
    refused(&|_| SetupHeader { vectors: 0, ..header.clone() }, &[], "1 to 1024 vectors");
    refused(&|_| SetupHeader { operator: json!([1]), ..header.clone() }, &[], "must be a JSON object");
    refused(&|_| SetupHeader { links: "x".repeat(1 << 16), ..header.clone() }, &[], "longer than 64 KiB");
    refused(
        &|_| SetupHeader { lattice: longer, ..header.clone() },
        &fields,
        "2×4×6×8 according to the request, but 2×4×6×16",
    );
    let said = sentence(on(grid, lattice, |world, section| {
        let to = SharedFile::new(&path, world).part(section);
        let mut writer = SetupWriter::create(to, header.clone()).unwrap();
        let part = if world.rank() == 2 { longer } else { section.local };
        let failed = writer.write(&HostSpinor::zero(part));
        assert_eq!(room.files(), ["setup"]);
        // Nothing succeeds after that.
        assert!(
            writer.write(&HostSpinor::zero(section.local)).unwrap_err().to_string().contains("start the file again")
        );
        assert!(matches!(writer.finish().unwrap_err().problem, Problem::Unwritable { .. }));
        failed
    }));
    assert!(said.contains("the extents of the vector of rank 2 differ from those of its part"), "{said}");
    // A folder that is not there, and a place that cannot be replaced.
    let nowhere = room.path("nowhere").join("setup");
    let said = sentence(on(grid, lattice, |world, section| write(&nowhere, world, section, &header, &fields)));
    assert!(said.contains("cannot create a temporary file in the same folder"), "{said}");
    let device = Path::new("/dev/null");
    let said = write(device, &Solo::new(), &lattice.into(), &header, &fields).unwrap_err().to_string();
    assert!(
        said.contains("/dev/null: cannot write: the output is a pipe or a device, which cannot be written in parts"),
        "{said}"
    );
}

#[test]
fn a_file_appears_when_it_is_finished() {
    let (room, size) = (FileRoom::new(), [2, 4, 6, 8]);
    let (path, header, fields) = (room.path("setup"), header(size, 2), counted(size, 2));
    let part_of = |section: &Section, number: usize| field_of(section, &fields[number]);
    for old in [None, Some(&b"the old one"[..])] {
        if let Some(old) = old {
            fs::write(&path, old).unwrap();
        }
        let before = room.files();
        for grid in [[1, 1, 1, 1], [1, 1, 1, 2], [1, 2, 3, 1]] {
            for written in 0..=2 {
                on(grid, header.lattice, |world, section| {
                    let to = SharedFile::new(&path, world).part(section);
                    let mut writer = SetupWriter::create(to, header.clone()).unwrap();
                    (0..written).for_each(|number| writer.write(&part_of(section, number)).unwrap());
                    assert_eq!(fs::read(&path).ok().as_deref(), old);
                    // Dropped.
                });
                assert_eq!(room.files(), before, "{written} vectors were written");
                assert_eq!(fs::read(&path).ok().as_deref(), old);
            }
        }
    }
    let section = header.lattice.into();
    write(&path, &Solo::new(), &section, &header, &fields).unwrap();
    assert_eq!(read(&path).unwrap(), (header, fields.iter().map(stored).collect()));
    assert_eq!(room.files(), ["setup"]);
}
