//! HDF5 files, against what the HDF5 library itself reads and writes.
use crate::program::Room;
use crate::sections::{field_of, on, sentence};
use ferrite::field::host::{ColourVector, Fermion, HostField, Spinor};
use ferrite::files::{
    Checksum, FilePrecision, HDF5, ReadFrom, ReadOptions, SharedFile, WriteOptions, WriteTo, inspect, read_block,
    read_fermion, read_fermions, read_gauge, write_block, write_fermion, write_gauge,
};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::cut::links_of;
use ferrite_tests::testkit::farthest;
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File};
use num_complex::{Complex32, Complex64};
use std::fs;

const SIZE: [usize; 4] = [4, 6, 2, 8];

fn lattice() -> Lattice {
    Lattice::new(SIZE).unwrap()
}

fn options(precision: FilePrecision) -> WriteOptions {
    let metadata = vec![("beta".into(), "6.0".into()), ("note".into(), "two\nlines".into())];
    WriteOptions { format: &HDF5, precision, title: "a field".into(), metadata, ..Default::default() }
}

/// Extents and numbers of a dataset, as the HDF5 library reads them.
fn numbers(path: &std::path::Path, name: &str) -> (Vec<usize>, Vec<Complex64>) {
    let file = File::open(path).unwrap();
    let dataset: Dataset = file.dataset(name).unwrap();
    (dataset.shape(), dataset.read_raw::<Complex64>().unwrap())
}

#[test]
fn the_library_reads_the_same_links() {
    let (room, gauge) = (Room::new(), generate::weak_field(lattice(), 4, 0.3));
    let (one, many) = (room.path("one.h5"), room.path("many.h5"));
    for (precision, limit) in [(FilePrecision::Single, 1e-7), (FilePrecision::Double, 0.0)] {
        write_gauge(&one, &gauge, &options(precision)).unwrap();
        let (shape, found) = numbers(&one, "links");
        assert_eq!(shape, [8, 2, 6, 4, 4, 3, 3]);
        assert!(farthest(&found, gauge.numbers()) <= limit);
        let file = read_gauge(&one, &ReadOptions::default()).unwrap();
        assert!(farthest(file.gauge.numbers(), &found) == 0.0);
        assert!(matches!(file.checksum, Checksum::Verified(_)));
        assert_eq!((file.header.precision, file.header.lattice), (precision, lattice()));
        assert_eq!(file.header.metadata, [("beta".into(), "6.0".into()), ("note".into(), "two lines".to_string())]);
        let opened = File::open(&one).unwrap();
        let said = |name: &str| opened.attr(name).unwrap().read_scalar::<VarLenUnicode>().unwrap().as_str().to_owned();
        assert_eq!((said("format"), said("title")), ("ferrite.hdf5/1".into(), "a field".into()));
        let plaquette = opened.dataset("links").unwrap().attr("plaquette").unwrap().read_scalar::<f64>().unwrap();
        assert!((plaquette - file.plaquette.mean).abs() < 1e-7);
        drop(opened);
        // Any number of processes, and a stream.
        for grid in [[2, 1, 1, 4], [1, 3, 1, 2]] {
            on(grid, lattice(), |world, section| {
                let part = links_of(section, &gauge);
                write_gauge(SharedFile::new(&many, world).part(section), &part, &options(precision)).unwrap();
            });
            assert!(fs::read(&one).unwrap() == fs::read(&many).unwrap(), "{grid:?}");
            on(grid, lattice(), |world, section| {
                let part = read_gauge(SharedFile::new(&many, world).part(section), &ReadOptions::default()).unwrap();
                assert!(part.gauge == links_of(section, &file.gauge) && part.checksum == file.checksum);
                assert_eq!(part.header, file.header);
            });
        }
        let mut stream = Vec::new();
        write_gauge(WriteTo::Writer(&mut stream), &gauge, &options(precision)).unwrap();
        assert!(stream == fs::read(&one).unwrap());
    }
    assert_eq!(room.files(), ["many.h5", "one.h5"]);
}

fn fermions<T: Fermion + PartialEq>(name: &str) {
    let room = Room::new();
    let fields: Vec<HostField<T>> = (0..3).map(|seed| generate::random_source(lattice(), seed)).collect();
    let (one, three) = (room.path("one.h5"), room.path("three.h5"));
    write_fermion(&one, &fields[0], &options(FilePrecision::Double)).unwrap();
    write_block(&three, &fields.iter().collect::<Vec<_>>(), &[3], &options(FilePrecision::Double)).unwrap();
    let (shape, found) = numbers(&three, name);
    assert_eq!(shape, [&[3, 8, 2, 6, 4], T::SHAPE].concat());
    let all: Vec<_> = fields.iter().flat_map(|field| field.numbers().iter().copied()).collect();
    assert!(farthest(&found, &all) == 0.0);
    assert!(farthest(&numbers(&one, name).1, fields[0].numbers()) == 0.0);
    assert!(read_fermion::<T>(&one, &ReadOptions::default()).unwrap().field == fields[0]);
    assert!(read_fermions::<T>(&three, &ReadOptions::default()).unwrap().fields == fields);
    assert!(read_block::<T>(&three, 1).unwrap().field == fields[1]);
    on([2, 1, 1, 2], lattice(), |world, section| {
        let part = read_fermions::<T>(SharedFile::new(&three, world).part(section), &ReadOptions::default()).unwrap();
        let parts: Vec<_> = fields.iter().map(|field| field_of(section, field)).collect();
        assert!(part.fields == parts);
    });
}

#[test]
fn the_library_reads_the_same_fermions() {
    fermions::<Spinor>("spinors");
    fermions::<ColourVector>("colour_vectors");
}

/// Files of other programs: any name, any type of floating-point number, in one piece.
#[test]
fn files_of_other_programs() {
    let (room, gauge) = (Room::new(), generate::weak_field(lattice(), 4, 0.3));
    let path = room.path("other.h5");
    let shape = [8, 2, 6, 4, 4, 3, 3];
    let single: Vec<_> = gauge.numbers().iter().map(|z| Complex32::new(z.re as f32, z.im as f32)).collect();
    let file = File::create(&path).unwrap();
    file.new_dataset::<Complex32>().shape(shape).create("U").unwrap().write_raw(&single).unwrap();
    drop(file);
    let read = read_gauge(&path, &ReadOptions::default()).unwrap();
    assert!(farthest(read.gauge.numbers(), gauge.numbers()) < 1e-7);
    assert_eq!(read.checksum, Checksum::Absent);
    let refused = |build: &dyn Fn(&File)| {
        let file = File::create(&path).unwrap();
        build(&file);
        drop(file);
        let alone = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
        let parts = on([1, 1, 1, 2], lattice(), |world, section| {
            read_gauge(SharedFile::new(&path, world).part(section), &ReadOptions::default())
        });
        assert_eq!(sentence(parts), alone);
        alone
    };
    let said = refused(&|file| {
        let dataset =
            file.new_dataset::<Complex32>().chunk([1, 2, 6, 4, 4, 3, 3]).shape(shape).create("links").unwrap();
        dataset.write_raw(&single).unwrap();
    });
    assert!(said.contains("layout is") && said.contains("h5repack -l CONTI"), "{said}");
    let said = refused(&|file| drop(file.new_dataset::<f64>().shape(shape).create("links").unwrap()));
    assert!(said.contains("type is") && said.contains("a compound of r and i"), "{said}");
    let said = refused(&|file| drop(file.new_dataset::<Complex64>().shape([8, 2, 6, 4]).create("links").unwrap()));
    assert!(said.contains("shape is \"[8, 2, 6, 4] of links\""), "{said}");
    let said = refused(&|file| {
        ["a", "b"].iter().for_each(|name| drop(file.new_dataset::<f64>().shape([2]).create(*name).unwrap()));
    });
    assert!(said.contains("datasets is") && said.contains("links, spinors or colour_vectors"), "{said}");
    fs::write(&path, b"\x89HDF\r\n\x1a\n and no more than this, which is no file").unwrap();
    let said = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("HDF5 file: error of the HDF5 library is"), "{said}");
    let bytes = fs::read(&path).unwrap();
    let said = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("is an HDF5 file; give the path"), "{said}");
}

#[test]
fn damage_is_found() {
    let (room, gauge) = (Room::new(), generate::weak_field(lattice(), 4, 0.3));
    let path = room.path("links.h5");
    write_gauge(&path, &gauge, &options(FilePrecision::Double)).unwrap();
    let good = fs::read(&path).unwrap();
    let begin = inspect(&path, &ReadOptions::default()).unwrap().offset as usize;
    let mut flipped = good.clone();
    flipped[begin + 1000] ^= 1;
    fs::write(&path, &flipped).unwrap();
    let said = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("SciDAC checksum of the data is"), "{said}");
    for cut in [20, 100, begin + 1, good.len() / 2, good.len() - 1] {
        fs::write(&path, &good[..cut]).unwrap();
        let said = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(said.contains("links.h5: ") && said.len() > 40, "{said}");
    }
}

#[test]
fn the_program_has_them() {
    let room = Room::with_weak_field();
    let features = room.json("info")["features"].to_string();
    assert!(features.contains("hdf5"), "{features}");
    assert_eq!(room.json("convert weak.ildg weak.h5")["format"], "hdf5");
    room.json("convert weak.h5 back.npy");
    room.json("convert weak.ildg there.npy");
    assert!(fs::read(room.path("back.npy")).unwrap() == fs::read(room.path("there.npy")).unwrap());
    assert_eq!(room.json("verify weak.h5")["checksum"]["status"], "verified");
    room.json("solve --gauge weak.h5 --mass 0.3 --source point:0,0,0,0 --sources 12 --tol 1e-6 -o x.h5");
    assert_eq!(room.json("verify x.h5")["fields"], 12);
    room.json("convert x.h5 x.lime");
    room.json("convert x.lime y.hdf5");
    assert!(numbers(&room.path("x.h5"), "spinors") == numbers(&room.path("y.hdf5"), "spinors"));
    room.json("apply --gauge weak.h5 --mass 0.3 --source file:x.h5 -o b.npy");
    fs::write(
        room.path("pion.toml"),
        "configurations = [\"weak.h5\"]\n[solve]\noperator = \"wilson\"\nmass = 0.5\ntol = 1e-6\n",
    )
    .unwrap();
    room.json("spectrum pion.toml --out pion");
    let (shape, found) = numbers(&room.path("pion/correlators.h5"), "correlators");
    assert_eq!((shape[0], shape[2], found.len()), (1, 8, shape.iter().product::<usize>()));
    let npy = fs::read(room.path("pion/correlators.npy")).unwrap();
    let bytes: Vec<u8> = found.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect();
    assert!(npy.ends_with(&bytes));
}
