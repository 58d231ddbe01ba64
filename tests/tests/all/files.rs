//! Files of other codes, read with the values that those codes gave, and our own files read back.
use ferrite::field::host::{HostGauge, HostSpinor, Spinor};
use ferrite::files::{
    Checksum, Endian, FileFormat, FilePrecision, GaugeFile, ILDG, MILC, NERSC, NERSC_3X3, NPY, OPENQCD, Problem,
    ReadFrom, ReadOptions, SCIDAC, WriteOptions, inspect, read_fermion, read_field, read_gauge, write_fermion,
    write_gauge,
};
use ferrite::lattice::Lattice;
use ferrite_tests::refdata;
use ferrite_tests::testkit::{farthest, farthest_links};
use num_complex::Complex64;
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Configurations of the manifest, and of those in folders beside it, which name files from the same root.
fn manifest(folder: &Path) -> Vec<(PathBuf, Value)> {
    let beside = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("manifest.json"));
    let mut entries: Vec<Value> = Vec::new();
    for manifest in [folder.join("manifest.json")].into_iter().chain(beside).filter(|manifest| manifest.is_file()) {
        let text = fs::read_to_string(&manifest).unwrap();
        entries.append(&mut serde_json::from_str(&text).unwrap_or_else(|why| panic!("{}: {why}", manifest.display())));
    }
    assert!(!entries.is_empty());
    let name = |entry: &Value| folder.join(entry["file"].as_str().unwrap());
    entries.into_iter().map(|entry| (name(&entry), entry["expect"].clone())).collect()
}

/// Returns the options for a file. Two files of the set hold nothing but the links; their names give the lattice.
fn options_for(path: &Path) -> ReadOptions {
    let alone = path.file_name().unwrap().to_string_lossy().contains("L04040404");
    ReadOptions { lattice: alone.then(|| Lattice::new([4; 4]).unwrap()), ..Default::default() }
}

fn check(path: &Path, expect: &Value, file: &GaugeFile) {
    let computed = [
        ("plaq", file.plaquette.mean),
        ("ss", file.plaquette.spatial),
        ("st", file.plaquette.temporal),
        ("link_trace", file.link_trace),
    ];
    for (name, computed) in computed {
        if let (Some(value), Some(tolerance)) = (expect[name]["value"].as_f64(), expect[name]["tol"].as_f64()) {
            let off = (computed - value).abs();
            assert!(off <= tolerance, "{}: {name} = {computed}, expected {value} ± {tolerance}", path.display());
        }
    }
}

#[test]
fn every_reference_configuration_gives_its_values() {
    let Some(folder) = refdata::folder() else { return };
    for (path, expect) in manifest(&folder) {
        let result = read_gauge(&path, &options_for(&path));
        if expect["checksum_ok"] == Value::Bool(false) {
            let error = result.unwrap_err();
            assert!(matches!(error.problem, Problem::Checksum { .. }), "{error}");
            continue;
        }
        let file = result.unwrap();
        match expect["checksum_ok"] {
            Value::Bool(_) => assert!(matches!(file.checksum, Checksum::Verified(_)), "{}", path.display()),
            _ => assert_eq!(file.checksum, Checksum::Absent, "{}", path.display()),
        }
        println!("{:7.1e} off SU(3): {}", file.unitarity.violation, path.display());
        check(&path, &expect, &file);
        // Reunitarised links are in SU(3) and give the same values.
        let options = ReadOptions { reunitarise: true, ..options_for(&path) };
        let mended = read_gauge(&path, &options).unwrap().gauge;
        assert!(ferrite::gauge::measure::unitarity(&mended).violation < 1e-14);
        assert!((ferrite::gauge::measure::plaquette(&mended).mean - file.plaquette.mean).abs() < 1e-6);
    }
}

#[test]
fn the_corrupt_configuration_is_refused_twice() {
    let Some(folder) = refdata::folder() else { return };
    let path = folder.join("configs/lat.sample.5p7");
    let error = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("lat.sample.5p7: MILC checksum of the data is"), "{error}");
    let unverified = ReadOptions { verify: false, ..Default::default() };
    let error = read_gauge(&path, &unverified).unwrap_err().to_string();
    assert!(error.contains("deviates from SU(3) by 3.09e-1"), "{error}");
    let anyway = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
    let file = read_gauge(&path, &anyway).unwrap();
    assert!(matches!(file.checksum, Checksum::Mismatch { .. }));
    assert!((file.plaquette.mean - 0.572689272204).abs() < 1e-9);
}

#[test]
fn the_same_field_in_several_formats_is_the_same() {
    let Some(folder) = refdata::folder() else { return };
    let read = |name: &str| read_gauge(&folder.join("configs").join(name), &ReadOptions::default()).unwrap();
    let milc = read("lat.sample.l4444").gauge;
    assert_eq!(milc, read("lat.sample.l4444.ildg").gauge);
    assert_eq!(milc, read("lat.sample.l4444.scidac").gauge);
    let milc = read("lat.sample.l4448").gauge;
    assert_eq!(milc, read("lat.sample.l4448.scidac").gauge);
    assert_eq!(milc, read("lat.sample.l4448.foreign").gauge);
    // Two rows in single precision, and three in double, of one field.
    let (two_rows, double) = (read("chroma_t_nersc.cfg").gauge, read("qdpxx_t_dprec_ildg.lime").gauge);
    assert!(farthest_links(&two_rows, &double) < 2e-7);
}

#[test]
fn fields_of_other_codes() {
    let Some(folder) = refdata::folder() else { return };
    let path = |name: &str| folder.join("fields").join(name);
    for name in ["fat.l8", "long.l8", "colormatrix.mom.sample.l8"] {
        let error = read_gauge(&path(name), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error.problem, Problem::NotUnitary { .. }), "{error}");
        let allowed = ReadOptions { allow_non_unitary: true, ..Default::default() };
        assert!(matches!(read_gauge(&path(name), &allowed).unwrap().checksum, Checksum::Verified(_)));
    }
    for name in ["ksvector.src.sample.l8", "ksvector.ans.MdaggerMinv.sample.l8"] {
        let field = read_field(&path(name), &ReadOptions::default()).unwrap();
        assert!(matches!(field.checksum, Checksum::Verified(_)));
        assert_eq!((field.header.components, field.values.len()), (3, 3 * 4096));
        let error = read_fermion::<Spinor>(&path(name), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("holds 3 complex numbers per site, but a spinor field has 12"), "{error}");
    }
}

/// Every reference file cut at many places: a sentence with the name each time.
#[test]
fn truncated_reference_files_are_refused() {
    let Some(folder) = refdata::folder() else { return };
    for (path, _) in manifest(&folder) {
        let whole = fs::read(&path).unwrap();
        let options = options_for(&path);
        let cuts = (0..2000).step_by(13).chain((2000..whole.len()).step_by(9973)).chain([whole.len() - 9]);
        for cut in cuts.filter(|&cut| cut < whole.len()) {
            let Err(error) = read_gauge(ReadFrom::Memory(&whole[..cut]), &options) else {
                // Cut exactly between data and checksum, a LIME file is whole but for the optional record.
                assert!(whole.starts_with(b"\x45\x67\x89\xab"), "{} cut at {cut}", path.display());
                continue;
            };
            assert!(error.to_string().len() > 30, "{error}");
        }
    }
}

#[test]
fn flipped_bits_of_reference_files_are_found() {
    flipped_bits_are_found(13);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn more_flipped_bits_of_reference_files_are_found() {
    flipped_bits_are_found(60);
}

/// Every bit counts: flip one anywhere in the data and the file is refused, if it has a checksum. So many places are tried.
fn flipped_bits_are_found(places: usize) {
    let Some(folder) = refdata::folder() else { return };
    for (path, expect) in manifest(&folder) {
        let whole = fs::read(&path).unwrap();
        let header = inspect(&path, &options_for(&path)).unwrap();
        let data = header.lattice.volume() * header.site_bytes();
        for flip in (0..8 * data).step_by(8 * data / places + 1) {
            let mut bytes = whole.clone();
            bytes[header.offset as usize + flip / 8] ^= 1 << (flip % 8);
            let result = read_gauge(ReadFrom::Memory(&bytes), &options_for(&path));
            assert!(result.is_err() || expect["checksum_ok"].is_null(), "{} bit {flip}", path.display());
        }
    }
}

#[test]
fn wrong_files_give_a_sentence_with_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let sentence = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let error = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        error
    };
    assert!(sentence("empty", b"").contains("is empty; copy or write it again"));
    assert!(sentence("text", b"Dear Sir").contains("starts with the bytes 44 65 61 72 20 53 69 72"));
    assert!(sentence("nersc", b"BEGIN_HEADER\n").contains("END_HEADER is missing"));
    let cut = sentence("lime", b"\x45\x67\x89\xab");
    assert!(cut.contains("the header of LIME record 0, counted from 0, needs 144 bytes"), "{cut}");
    assert!(sentence("milc", &20103u32.to_le_bytes()).contains("the MILC header needs 96 bytes"));
    assert!(sentence("npy", b"\x93NUMPY\x01\x00").contains("npy header needs 12 bytes"));
    let missing = folder.path().join("missing");
    assert!(read_gauge(&missing, &ReadOptions::default()).unwrap_err().to_string().contains("missing: cannot open"));
    let error = read_gauge(folder.path(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("cannot"), "{error}");
}

/// A header that claims a huge lattice must be refused before memory is asked for.
#[test]
fn huge_lattices_in_small_files() {
    let mut milc = vec![0; 200];
    for (at, word) in [(0, 20103u32), (4, 1 << 10), (8, 1 << 10), (12, 1 << 8), (16, 4)] {
        milc[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    let error = read_gauge(ReadFrom::Memory(&milc), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("needs 309237645312 bytes from byte 96, but only 104 are present"), "{error}");
}

fn random_links(lattice: Lattice, seed: u64) -> HostGauge {
    let mut gauge = HostGauge::unit(lattice);
    let mut next = noise(seed);
    for c in gauge.numbers_mut() {
        *c += Complex64::new(next(), next());
    }
    gauge.reunitarise();
    gauge
}

/// Numbers from −1 to 1, the same for the same seed.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn lattices() -> impl Strategy<Value = Lattice> {
    [1..4usize, 1..4, 1..4, 1..5].prop_map(|half| Lattice::new(half.map(|h| 2 * h)).unwrap())
}

fn precisions() -> impl Strategy<Value = FilePrecision> {
    prop_oneof![Just(FilePrecision::Single), Just(FilePrecision::Double)]
}

fn orders() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Big), Just(Endian::Little)]
}

fn link_formats() -> impl Strategy<Value = &'static FileFormat> {
    prop_oneof![Just(&NERSC), Just(&NERSC_3X3), Just(&ILDG), Just(&SCIDAC), Just(&MILC), Just(&NPY), Just(&OPENQCD)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn links_survive_writing(
        lattice in lattices(), precision in precisions(), endian in orders(), format in link_formats(), seed: u64,
        title in ".{0,40}", value in "\\PC{0,40}",
    ) {
        let precision = match format.name {
            "milc" => FilePrecision::Single,
            "openqcd" => FilePrecision::Double,
            _ => precision,
        };
        let metadata = vec![("SOME_KEY".into(), value)];
        let options = WriteOptions { format, precision, endian, title, metadata, ..Default::default() };
        let gauge = random_links(lattice, seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links");
        write_gauge(&path, &gauge, &options).unwrap();
        let file = read_gauge(&path, &ReadOptions::default()).unwrap();
        let limit = if precision == FilePrecision::Single { 2e-7 } else { 1e-14 };
        let (read, written) = (file.gauge.links().as_flattened(), gauge.links().as_flattened());
        prop_assert!(farthest(read.as_flattened(), written.as_flattened()) < limit);
        prop_assert_eq!(file.checksum == Checksum::Absent, [&NPY, &OPENQCD].contains(&format));
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn spinors_survive_writing(
        lattice in lattices(), precision in precisions(), endian in orders(), npy: bool, seed: u64,
    ) {
        let format = if npy { &NPY } else { &SCIDAC };
        let options = WriteOptions { format, precision, endian, ..Default::default() };
        let mut spinor = HostSpinor::zero(lattice);
        let mut next = noise(seed);
        for c in spinor.sites_mut().as_flattened_mut().as_flattened_mut() {
            *c = Complex64::new(next(), next());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spinor");
        write_fermion(&path, &spinor, &options).unwrap();
        let read = read_fermion(&path, &ReadOptions::default()).unwrap().field;
        let limit = if precision == FilePrecision::Single { 1e-7 } else { 0.0 };
        prop_assert_eq!(read.lattice(), lattice);
        let (read, written) = (read.sites().as_flattened(), spinor.sites().as_flattened());
        prop_assert!(farthest(read.as_flattened(), written.as_flattened()) <= limit);
    }
}
