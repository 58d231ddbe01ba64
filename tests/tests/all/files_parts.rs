//! Files written and read by many ranks, here threads, each its own section: what one process writes and reads.
use crate::sections::{FileRoom, field_of, on, sections, sentence};
use ferrite::field::host::{ColourVector, Fermion, HostGauge, Spinor};
use ferrite::files::{
    Checksum, Endian, FileFormat, FilePrecision, GaugeFile, ILDG, MILC, MILC_V1, NERSC, NERSC_3X3, NPY, OPENQCD,
    Problem, ReadOptions, SCIDAC, SharedFile, WriteOptions, inspect, inspect_block, read_block, read_fermion,
    read_gauge, write_block, write_fermion, write_gauge,
};
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use ferrite_tests::cut::links_of;
use ferrite_tests::refdata;
use num_complex::Complex64;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

const SIZE: [usize; 4] = [4, 6, 4, 12];
/// Every direction cut alone, also into three parts; x cut with others; all of them; six parts of the slowest direction.
const GRIDS: [[usize; 4]; 8] =
    [[2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 2, 1], [1, 1, 1, 3], [1, 1, 1, 6], [2, 3, 1, 1], [1, 3, 1, 2], [2, 3, 2, 2]];

fn lattice() -> Lattice {
    Lattice::new(SIZE).unwrap()
}

fn gauge() -> HostGauge {
    generate::weak_field(lattice(), 3, 0.3)
}

fn all_options() -> Vec<WriteOptions> {
    let mut all = Vec::new();
    for format in [&NERSC, &NERSC_3X3, &ILDG, &SCIDAC, &MILC, &NPY, &OPENQCD] {
        for precision in [FilePrecision::Single, FilePrecision::Double] {
            for endian in [Endian::Big, Endian::Little] {
                // The forms that have only one.
                let fits = match format.name {
                    "milc" => precision == FilePrecision::Single,
                    "openqcd" => precision == FilePrecision::Double && endian == Endian::Little,
                    _ => true,
                };
                if fits {
                    all.push(WriteOptions { format, precision, endian, ..Default::default() });
                }
            }
        }
    }
    all
}

/// A file without the times at which it was written.
fn timeless(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let end = b" UTC";
    let places: Vec<usize> = (19..bytes.len()).filter(|&at| bytes[at..].starts_with(end)).collect();
    for at in places.into_iter().filter(|at| at + end.len() < 4000) {
        bytes[at - 19..at].fill(b'?');
    }
    bytes
}

/// Each rank has its section of what one process read, and everything else is the same to the last bit.
fn compare(path: &Path, grid: [usize; 4], options: &ReadOptions) -> GaugeFile {
    let whole = read_gauge(path, options).unwrap();
    let parts = on(grid, whole.header.lattice, |world, section| {
        assert_eq!(inspect(SharedFile::new(path, world), options).unwrap(), whole.header);
        (*section, read_gauge(SharedFile::new(path, world).part(section), options).unwrap())
    });
    for (section, part) in parts {
        assert!(part.gauge == links_of(&section, &whole.gauge), "{} on {grid:?}: {section:?}", path.display());
        let said = (part.plaquette, part.link_trace, part.unitarity, part.checksum);
        assert_eq!(said, (whole.plaquette, whole.link_trace, whole.unitarity, whole.checksum.clone()), "{grid:?}");
        assert_eq!(part.header, whole.header);
    }
    whole
}

#[test]
fn links_written_and_read_in_parts() {
    links_in_parts(3);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn links_written_and_read_in_parts_on_every_grid() {
    links_in_parts(1);
}

/// Each kind of file on one of so many grids, the next kind on the next ones.
fn links_in_parts(one_of: usize) {
    let (gauge, room) = (gauge(), FileRoom::new());
    let (one, many) = (room.path("one"), room.path("many"));
    for (kind, options) in all_options().into_iter().enumerate() {
        write_gauge(&one, &gauge, &options).unwrap();
        for (number, grid) in GRIDS.into_iter().enumerate().skip(kind % one_of).step_by(one_of) {
            on(grid, gauge.lattice(), |world, section| {
                write_gauge(SharedFile::new(&many, world).part(section), &links_of(section, &gauge), &options).unwrap();
            });
            assert!(timeless(&one) == timeless(&many), "{options:?} on {grid:?}");
            assert_eq!(room.files(), ["many", "one"]);
            // Read by another grid than wrote it.
            let file = compare(&many, GRIDS[(number + 3) % GRIDS.len()], &ReadOptions::default());
            assert_eq!(file.checksum == Checksum::Absent, [&NPY, &OPENQCD].contains(&options.format));
        }
    }
}

fn fermions<T: Fermion + PartialEq>() {
    let (room, field) = (FileRoom::new(), generate::random_source::<T>(lattice(), 5));
    let (one, many) = (room.path("one"), room.path("many"));
    for options in all_options().into_iter().filter(|o| [&SCIDAC, &NPY].contains(&o.format)) {
        write_fermion(&one, &field, &options).unwrap();
        let whole = read_fermion::<T>(&one, &ReadOptions::default()).unwrap();
        for (number, grid) in GRIDS.into_iter().enumerate() {
            on(grid, field.lattice(), |world, section| {
                write_fermion(SharedFile::new(&many, world).part(section), &field_of(section, &field), &options)
                    .unwrap();
            });
            assert!(timeless(&one) == timeless(&many), "{options:?} on {grid:?}");
            let other = GRIDS[(number + 3) % GRIDS.len()];
            on(other, field.lattice(), |world, section| {
                let part =
                    read_fermion::<T>(SharedFile::new(&many, world).part(section), &ReadOptions::default()).unwrap();
                assert!(part.field == field_of(section, &whole.field), "{options:?} on {other:?}");
                assert_eq!(part.checksum, whole.checksum);
            });
        }
    }
    assert_eq!(room.files(), ["many", "one"]);
}

#[test]
fn fermions_written_and_read_in_parts() {
    fermions::<Spinor>();
    fermions::<ColourVector>();
}

fn blocks<T: Fermion + PartialEq>() {
    let room = FileRoom::new();
    let fields: Vec<_> = (0..4).map(|seed| generate::random_source::<T>(lattice(), seed)).collect();
    let all: Vec<_> = fields.iter().collect();
    for (number, grid) in GRIDS.into_iter().enumerate() {
        for (axes, count) in [(&[4][..], 4), (&[3], 3), (&[2, 2], 4)] {
            for (precision, endian) in [(FilePrecision::Double, Endian::Little), (FilePrecision::Single, Endian::Big)] {
                let options = WriteOptions { format: &NPY, precision, endian, ..Default::default() };
                write_block(&room.path("one"), &all[..count], axes, &options).unwrap();
                on(grid, lattice(), |world, section| {
                    let parts: Vec<_> = fields[..count].iter().map(|field| field_of(section, field)).collect();
                    let parts: Vec<_> = parts.iter().collect();
                    write_block(SharedFile::new(&room.path("many"), world).part(section), &parts, axes, &options)
                        .unwrap();
                });
                assert!(fs::read(room.path("one")).unwrap() == fs::read(room.path("many")).unwrap());
                if axes.len() > 1 {
                    continue;
                }
                on(GRIDS[(number + 5) % GRIDS.len()], lattice(), |world, section| {
                    let header =
                        inspect_block::<T>(SharedFile::new(&room.path("many"), world), &ReadOptions::default())
                            .unwrap()
                            .unwrap();
                    assert_eq!((header.fields, header.lattice), (count, lattice()));
                    for (number, field) in fields[..count].iter().enumerate() {
                        let path = room.path("many");
                        let part = read_block::<T>(SharedFile::new(&path, world).part(section), number).unwrap().field;
                        assert!(part == field_of(section, &read_block::<T>(&path, number).unwrap().field));
                        if precision == FilePrecision::Double {
                            assert!(part == field_of(section, field), "{grid:?}, field {number}");
                        }
                    }
                });
            }
        }
    }
    assert_eq!(room.files(), ["many", "one"]);
}

#[test]
fn blocks_written_and_read_in_parts() {
    blocks::<Spinor>();
    blocks::<ColourVector>();
}

/// Parts larger than what is read at once, whose runs do not end where that does.
#[test]
fn parts_of_several_pieces() {
    let lattice = Lattice::new([12, 8, 8, 24]).unwrap();
    let (room, gauge) = (FileRoom::new(), generate::weak_field(lattice, 8, 0.2));
    let (one, many) = (room.path("one"), room.path("many"));
    let options = WriteOptions::default();
    write_gauge(&one, &gauge, &options).unwrap();
    // 18432 sites of 576 bytes: more than 5 MB for each of two ranks, and a row of 6 sites does not fit 4 MiB evenly.
    for grid in [[2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 1, 2]] {
        on(grid, lattice, |world, section| {
            write_gauge(SharedFile::new(&many, world).part(section), &links_of(section, &gauge), &options).unwrap();
        });
        assert!(timeless(&one) == timeless(&many), "{grid:?}");
        assert_eq!(compare(&many, grid, &ReadOptions::default()).gauge, gauge);
    }
}

#[test]
fn the_second_field_of_a_lime_file() {
    let (room, gauge) = (FileRoom::new(), gauge());
    let (first, both) = (room.path("first"), room.path("both"));
    write_gauge(&first, &HostGauge::unit(lattice()), &WriteOptions::default()).unwrap();
    write_gauge(&both, &gauge, &WriteOptions { precision: FilePrecision::Single, ..Default::default() }).unwrap();
    fs::write(&both, [fs::read(&first).unwrap(), fs::read(&both).unwrap()].concat()).unwrap();
    for record in [0, 1] {
        let read = compare(&both, [2, 1, 1, 3], &ReadOptions { record, ..Default::default() });
        assert_eq!((read.plaquette.mean == 1.0, read.header.fields), (record == 0, 2));
    }
    let options = ReadOptions { record: 2, ..Default::default() };
    let said = sentence(on([2, 1, 1, 3], lattice(), |world, section| {
        read_gauge(SharedFile::new(&both, world).part(section), &options)
    }));
    assert_eq!(said, read_gauge(&both, &options).unwrap_err().to_string());
    // Reunitarised links stay each rank's own.
    compare(&both, [1, 3, 2, 1], &ReadOptions { record: 1, reunitarise: true, ..Default::default() });
}

#[test]
fn reference_files_in_parts() {
    let Some(folder) = refdata::folder() else { return };
    let mut read = 0;
    for file in fs::read_dir(folder.join("configs")).unwrap() {
        let path = file.unwrap().path();
        let alone = path.to_string_lossy().contains("L04040404");
        let lattice = alone.then(|| Lattice::new([4; 4]).unwrap());
        let options = ReadOptions { lattice, ..Default::default() };
        let lattice = inspect(&path, &options).unwrap().lattice;
        let three = lattice.size()[2] == 6;
        for grid in [[2, 1, 1, 1], [1, 2, 1, 2], [1, 1, if three { 3 } else { 2 }, 1]] {
            if three && grid[0] * grid[1] > 1 {
                // Halves of 6 are odd.
                continue;
            }
            if read_gauge(&path, &options).is_ok() {
                compare(&path, grid, &options);
            } else {
                let parts = on(grid, lattice, |world, section| {
                    read_gauge(SharedFile::new(&path, world).part(section), &options)
                });
                assert_eq!(sentence(parts), read_gauge(&path, &options).unwrap_err().to_string());
                compare(&path, grid, &ReadOptions { verify: false, allow_non_unitary: true, ..options.clone() });
            }
            read += 1;
        }
    }
    assert!(read > 50, "{read}");
}

fn lattices_and_grids() -> impl Strategy<Value = ([usize; 4], [usize; 4], [usize; 4])> {
    let half = [1..4usize, 1..5, 1..4, 1..7];
    half.prop_flat_map(|half| {
        let divisors = |n: usize| (1..=n).filter(|d| n.is_multiple_of(*d)).collect::<Vec<_>>();
        let grid = || half.map(|h| prop::sample::select(divisors(h)));
        (Just(half.map(|h| 2 * h)), grid(), grid())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_grid_writes_and_any_other_reads(
        (size, writers, readers) in lattices_and_grids(), option in 0..23usize, seed: u64,
    ) {
        let options = all_options()[option].clone();
        let lattice = Lattice::new(size).unwrap();
        let (room, gauge) = (FileRoom::new(), generate::weak_field(lattice, seed, 0.5));
        let (one, many) = (room.path("one"), room.path("many"));
        write_gauge(&one, &gauge, &options).unwrap();
        on(writers, lattice, |world, section| {
            write_gauge(SharedFile::new(&many, world).part(section), &links_of(section, &gauge), &options).unwrap();
        });
        prop_assert!(timeless(&one) == timeless(&many));
        compare(&many, readers, &ReadOptions::default());
    }
}

/// Offset of the data of a file, and its bytes per site.
fn data(path: &Path) -> (usize, usize) {
    let header = inspect(path, &ReadOptions { verify: false, ..Default::default() }).unwrap();
    (header.offset as usize, header.site_bytes())
}

#[test]
fn bad_files_give_all_ranks_the_sentence_of_one_process() {
    let (gauge, room) = (gauge(), FileRoom::new());
    let (good, bad) = (room.path("good"), room.path("bad"));
    let grids = [[2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 1, 3], [2, 3, 2, 2]];
    let check = |bytes: Vec<u8>, options: &ReadOptions, says: &str| {
        fs::write(&bad, bytes).unwrap();
        let alone = read_gauge(&bad, options).unwrap_err().to_string();
        assert!(alone.contains("bad: ") && alone.contains(says), "{alone}");
        for grid in grids {
            let parts =
                on(grid, lattice(), |world, section| read_gauge(SharedFile::new(&bad, world).part(section), options));
            assert_eq!(sentence(parts), alone, "{grid:?}");
        }
    };
    let verified = ReadOptions::default();
    let anyway = ReadOptions { verify: false, ..Default::default() };
    // Sites of openQCD's are elsewhere: `openqcd.rs`.
    for options in all_options().into_iter().filter(|options| options.format != &OPENQCD) {
        write_gauge(&good, &gauge, &options).unwrap();
        let bytes = fs::read(&good).unwrap();
        let (offset, site_bytes) = data(&good);
        let site = |site: [usize; 4]| offset + lattice().index(site) * site_bytes;
        // Cut in the header, in the data, in the last number.
        let end = offset + lattice().volume() * site_bytes;
        for length in [0, 3, offset - 1, site([1, 2, 3, 4]) + 5, end - 1] {
            check(bytes[..length].to_vec(), &verified, "");
        }
        // One bit low in a mantissa, in one part.
        let (number, low) = match (options.precision, options.endian, options.format.name) {
            (precision, _, "ildg" | "scidac") | (precision, Endian::Big, _) => {
                (precision.bytes(), precision.bytes() - 1)
            }
            (precision, ..) => (precision.bytes(), 0),
        };
        let mut flipped = bytes.clone();
        flipped[site([3, 1, 2, 7]) + 5 * number + low] ^= 1;
        if options.format != &NPY {
            check(flipped, &verified, "checksum of the data is");
        }
        // The largest power of two in the first number of a link of two parts: the farther one is named; then not a
        // number in three, of which the first is.
        let exponent = |bytes: &mut Vec<u8>, at: usize, top: [u8; 2]| {
            let (first, second) = if low == 0 { (number - 1, number - 2) } else { (0, 1) };
            (bytes[at + first], bytes[at + second]) = (top[0], top[1]);
        };
        let link = site_bytes / 4;
        let mut off = bytes.clone();
        exponent(&mut off, site([0, 1, 0, 1]) + link, [0x40, 0]);
        exponent(&mut off, site([3, 4, 2, 10]) + 2 * link, [0x41, 0]);
        check(off, &anyway, "link U_z at site (x, y, z, t) = [3, 4, 2, 10] deviates from SU(3)");
        let mut nan = bytes.clone();
        for place in [[1, 5, 3, 11], [2, 2, 1, 3], [0, 3, 1, 3]] {
            exponent(&mut nan, site(place) + 3 * link, [0x7f, 0xff]);
        }
        check(nan, &anyway, "link U_t at site (x, y, z, t) = [2, 2, 1, 3] is not finite");
        // More than the header says.
        if ![&ILDG, &SCIDAC].contains(&options.format) {
            check([&bytes[..], b"more"].concat(), &verified, "4 bytes follow the last number");
        }
    }
    check(b"Dear Sir".to_vec(), &verified, "44 65 61 72");
    let other = Lattice::new([4, 4, 4, 4]).unwrap();
    write_gauge(&good, &HostGauge::unit(other), &WriteOptions::default()).unwrap();
    let wrong =
        |world: &dyn Network, section: &Section| read_gauge(SharedFile::new(&good, world).part(section), &verified);
    let said = sentence(on([1, 3, 1, 2], lattice(), wrong));
    assert!(said.contains("the lattice is [4, 6, 4, 12] according to the request, but [4, 4, 4, 4]"), "{said}");
    let missing = room.path("missing");
    let said = sentence(on([1, 3, 1, 2], lattice(), |world, section| {
        read_gauge(SharedFile::new(&missing, world).part(section), &verified)
    }));
    assert_eq!(said, read_gauge(&missing, &verified).unwrap_err().to_string());
    let said = sentence(on([1, 3, 1, 2], lattice(), |world, _| inspect(SharedFile::new(&missing, world), &verified)));
    assert_eq!(said, inspect(&missing, &verified).unwrap_err().to_string());
    let spinors = sentence(on([1, 1, 1, 2], other, |world, section| {
        read_fermion::<Spinor>(SharedFile::new(&good, world).part(section), &verified)
    }));
    assert!(spinors.contains("holds 36 complex numbers per site, but a spinor field has 12"), "{spinors}");
}

#[test]
fn a_wrong_header_of_a_nersc_file() {
    let (gauge, room) = (gauge(), FileRoom::new());
    let path = room.path("links");
    write_gauge(&path, &gauge, &WriteOptions { format: &NERSC_3X3, ..Default::default() }).unwrap();
    let bytes = fs::read(&path).unwrap();
    for (key, name) in [("PLAQUETTE = 0.", "plaquette"), ("LINK_TRACE = 0.", "link trace")] {
        let at = bytes.windows(key.len()).position(|w| w == key.as_bytes()).unwrap() + key.len();
        let mut bytes = bytes.clone();
        bytes[at] = if bytes[at] == b'1' { b'2' } else { b'1' };
        fs::write(&path, bytes).unwrap();
        let options = ReadOptions::default();
        let alone = read_gauge(&path, &options).unwrap_err().to_string();
        assert!(alone.contains(&format!("{name} of the links is")), "{alone}");
        for grid in GRIDS {
            let parts =
                on(grid, lattice(), |world, section| read_gauge(SharedFile::new(&path, world).part(section), &options));
            assert_eq!(sentence(parts), alone);
        }
    }
}

#[test]
fn bad_blocks() {
    let room = FileRoom::new();
    let path = room.path("block.npy");
    let options = WriteOptions { format: &NPY, endian: Endian::Little, ..Default::default() };
    let fields: Vec<_> = (0..3).map(|seed| generate::random_source::<Spinor>(lattice(), seed)).collect();
    write_block(&path, &fields.iter().collect::<Vec<_>>(), &[3], &options).unwrap();
    let good = fs::read(&path).unwrap();
    let read = |number: usize| {
        let parts = on([2, 1, 1, 3], lattice(), |world, section| {
            read_block::<Spinor>(SharedFile::new(&path, world).part(section), number)
        });
        let said = sentence(parts);
        assert_eq!(said, read_block::<Spinor>(&path, number).unwrap_err().to_string());
        said
    };
    assert!(read(3).contains(
        "block.npy: file: number of fields is \"3\", expected more than 3, because field 3, counted from 0, is \
         requested; choose a number from 0 to 2"
    ));
    let mut nan = good.clone();
    let site = lattice().index([3, 1, 2, 9]);
    nan[128 + (lattice().volume() + site) * 192 + 6..][..2].copy_from_slice(&[0xf8, 0x7f]);
    fs::write(&path, &nan).unwrap();
    let second = "block.npy: field 1, counted from 0: spinor at site (x, y, z, t) = [3, 1, 2, 9] is not finite";
    assert!(read(1).contains(second));
    assert_eq!(read_block::<Spinor>(&path, 2).unwrap().field, fields[2]);
    fs::write(&path, &good[..good.len() - 1]).unwrap();
    assert!(read(0).contains("the file is cut short"));
    fs::write(&path, [&good[..], b"?"].concat()).unwrap();
    assert!(read(0).contains("1 bytes follow"));
    write_fermion(&path, &fields[0], &options).unwrap();
    assert!(read(0).contains("expected several fields of type spinor"), "{}", read(0));
    // Refused, and the old file stays.
    let before = fs::read(&path).unwrap();
    let mut bad = fields.clone();
    bad[2].sites_mut()[site][1][2].im = f64::NAN;
    let write = |count: usize, format: &'static FileFormat| {
        sentence(on([1, 3, 2, 1], lattice(), |world, section| {
            let parts: Vec<_> = bad[..count].iter().map(|field| field_of(section, field)).collect();
            let options = WriteOptions { format, ..options.clone() };
            write_block(SharedFile::new(&path, world).part(section), &parts.iter().collect::<Vec<_>>(), &[3], &options)
        }))
    };
    let third = "field 2, counted from 0: spinor at site (x, y, z, t) = [3, 1, 2, 9] is not finite";
    assert!(write(3, &NPY).contains(third));
    assert!(write(2, &NPY).contains("the number of fields differs from the product of the axis lengths"));
    assert!(write(0, &NPY).contains("no field is given"));
    assert!(write(3, &SCIDAC).contains("a SciDAC file holds one field or a propagator"));
    assert_eq!((room.files(), fs::read(&path).unwrap()), (vec!["block.npy".to_owned()], before));
}

#[test]
fn what_cannot_be_written_leaves_no_file() {
    let (gauge, room) = (gauge(), FileRoom::new());
    let old = room.path("old");
    fs::write(&old, "old").unwrap();
    fs::create_dir_all(room.path("taken").join("inside")).unwrap();
    let write = |name: &str, gauge: &HostGauge, format: &'static FileFormat, precision: FilePrecision| {
        let (path, options) = (room.path(name), WriteOptions { format, precision, ..Default::default() });
        let alone = write_gauge(&path, gauge, &options).unwrap_err();
        for grid in [[2, 1, 1, 1], [1, 3, 2, 2]] {
            let parts = on(grid, lattice(), |world, section| {
                let result =
                    write_gauge(SharedFile::new(&path, world).part(section), &links_of(section, gauge), &options);
                // When the call returns, everything is as it was, on every rank.
                assert_eq!(room.files(), ["old", "taken"]);
                result
            });
            assert_eq!(sentence(parts), alone.to_string(), "{grid:?}");
        }
        assert_eq!(fs::read(&old).unwrap(), b"old");
        alone
    };
    let (double, single) = (FilePrecision::Double, FilePrecision::Single);
    let mut bad = gauge.clone();
    let site = lattice().index([2, 5, 1, 8]);
    bad.links_mut()[4 * site + 1][2][0] += 0.1;
    let said = write("old", &bad, &NERSC, double).to_string();
    assert!(said.contains("old: link U_y at site (x, y, z, t) = [2, 5, 1, 8] deviates from SU(3) by"), "{said}");
    bad.links_mut()[4 * site + 2][0][0].re = f64::INFINITY;
    for options in all_options() {
        let said = write("new", &bad, options.format, options.precision).to_string();
        assert!(said.contains("new: link U_z at site (x, y, z, t) = [2, 5, 1, 8] is not finite"), "{said}");
    }
    assert!(write("new", &gauge, &MILC, double).to_string().contains("single precision only"));
    assert!(write("old", &gauge, &MILC_V1, single).to_string().contains("use version 5"));
    for format in [&NERSC, &ILDG] {
        let missing = write("nowhere/new", &gauge, format, double);
        assert!(matches!(missing.problem, Problem::Io { .. }), "{missing}");
        assert!(missing.to_string().contains("cannot create a temporary file in the same folder"), "{missing}");
        let taken = write("taken", &gauge, format, double).to_string();
        assert!(taken.contains("cannot rename the finished file"), "{taken}");
    }
    assert!(write("..", &gauge, &ILDG, double).to_string().contains("the path does not name a file"));
}

#[test]
fn parts_that_do_not_make_up_the_lattice() {
    let (gauge, room) = (gauge(), FileRoom::new());
    let path = room.path("links");
    write_gauge(&path, &gauge, &WriteOptions::default()).unwrap();
    let halves = sections([1, 1, 1, 2], lattice());
    let quarter = Section { local: Lattice::new([4, 6, 2, 6]).unwrap(), ..halves[1] };
    let outside = Section { origin: [0, 0, 0, 8], ..halves[1] };
    let elsewhere = Section { global: Lattice::new([4, 6, 4, 24]).unwrap(), ..halves[1] };
    for (second, says) in [
        (halves[0], "the parts of rank 0 and rank 1 overlap"),
        (quarter, "some sites of the 4×6×4×12 lattice belong to no process"),
        (outside, "the part of rank 1 extends outside the 4×6×4×12 lattice"),
        (elsewhere, "rank 0 has a part of a 4×6×4×12 lattice, but rank 1 has a part of a 4×6×4×24 lattice"),
    ] {
        let said = sentence(on([1, 1, 1, 2], lattice(), |world, section| {
            let section = if world.rank() == 0 { section } else { &second };
            let field = HostGauge::unit(section.local);
            write_gauge(SharedFile::new(&room.path("new"), world).part(section), &field, &WriteOptions::default())
        }));
        assert!(said.contains(says), "{said}");
    }
    let said = sentence(on([1, 1, 1, 2], lattice(), |world, section| {
        let section = if world.rank() == 0 { section } else { &halves[0] };
        read_gauge(SharedFile::new(&path, world).part(section), &ReadOptions::default())
    }));
    assert!(said.contains("overlap"), "{said}");
    let said = sentence(on([1, 1, 1, 2], lattice(), |world, section| {
        let lattice = if world.rank() == 0 { section.local } else { Lattice::new([2; 4]).unwrap() };
        let file = room.path("new");
        let file = SharedFile::new(&file, world).part(section);
        write_gauge(file, &HostGauge::unit(lattice), &WriteOptions::default())
    }));
    assert!(said.contains("the extents of the field of rank 1 differ from those of its part"), "{said}");
    assert_eq!(room.files(), ["links"]);
}

/// Plaquettes are printed with twelve digits; here all bits are compared, of links with elements from 10⁻³ to 10.
#[test]
fn sums_do_not_depend_on_the_grid() {
    let (room, mut gauge) = (FileRoom::new(), gauge());
    for (number, c) in gauge.numbers_mut().iter_mut().enumerate() {
        *c *= Complex64::from(10f64.powi((number % 5) as i32 - 3));
    }
    let path = room.path("links");
    write_gauge(&path, &gauge, &WriteOptions { format: &NPY, ..Default::default() }).unwrap();
    let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
    for grid in GRIDS {
        let read = compare(&path, grid, &options);
        assert_eq!(read.plaquette, ferrite::gauge::measure::plaquette(&gauge));
        assert_eq!(read.unitarity, ferrite::gauge::measure::unitarity(&gauge));
    }
}
