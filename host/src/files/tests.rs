use super::*;
use crate::field::host::{HostSpinor, Spinor};
use crate::lattice::Section;
use std::io::Write;

/// Numbers from −1 to 1 that look random, the same every time.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn random_gauge(size: [usize; 4], seed: u64) -> HostGauge {
    let mut gauge = HostGauge::unit(Lattice::new(size).unwrap());
    let mut next = noise(seed);
    for c in gauge.links_mut().iter_mut().flatten().flatten() {
        *c += Complex64::new(next(), next());
    }
    gauge.reunitarise();
    gauge
}

fn random_spinor(size: [usize; 4], seed: u64) -> HostSpinor {
    let mut spinor = HostSpinor::zero(Lattice::new(size).unwrap());
    let mut next = noise(seed);
    for c in spinor.sites_mut().iter_mut().flatten().flatten() {
        *c = Complex64::new(next(), next());
    }
    spinor
}

const SIZE: [usize; 4] = [2, 4, 6, 2];

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

fn written(gauge: &HostGauge, options: &WriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_gauge(WriteTo::Writer(&mut bytes), gauge, options).unwrap();
    bytes
}

fn reread(bytes: &[u8], options: &ReadOptions) -> Result<GaugeFile, Problem> {
    read_gauge(ReadFrom::Memory(bytes), options).map_err(|error| error.problem)
}

fn header_of(bytes: &[u8]) -> Header {
    inspect(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap()
}

fn distance(a: &HostGauge, b: &HostGauge) -> f64 {
    let pairs = a.links().iter().flatten().flatten().zip(b.links().iter().flatten().flatten());
    pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max)
}

#[test]
fn every_form_of_links_round_trips() {
    let gauge = random_gauge(SIZE, 1);
    for options in all_options() {
        let file = reread(&written(&gauge, &options), &ReadOptions::default()).unwrap();
        let (header, expected) = (&file.header, options.format);
        assert_eq!((header.format, header.precision), (expected, options.precision), "{options:?}");
        let limit = match (options.precision, options.format.name) {
            (FilePrecision::Double, "nersc") => 1e-15,
            (FilePrecision::Double, _) => 0.0,
            (FilePrecision::Single, _) => 2e-7,
        };
        assert!(distance(&file.gauge, &gauge) <= limit, "{options:?}");
        assert_eq!(file.checksum == Checksum::Absent, [&NPY, &OPENQCD].contains(&options.format));
        // Once rounded, writing again changes nothing.
        if options.format != &NERSC {
            let again = reread(&written(&file.gauge, &options), &ReadOptions::default()).unwrap();
            assert_eq!(again.gauge, file.gauge, "{options:?}");
        }
    }
}

#[test]
fn spinors_round_trip() {
    let spinor = random_spinor(SIZE, 2);
    for format in [&SCIDAC, &NPY] {
        for endian in [Endian::Big, Endian::Little] {
            for precision in [FilePrecision::Single, FilePrecision::Double] {
                let options = WriteOptions { format, endian, precision, ..Default::default() };
                let mut bytes = Vec::new();
                write_fermion(WriteTo::Writer(&mut bytes), &spinor, &options).unwrap();
                let read = read_fermion::<Spinor>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
                let mut worst = 0.0f64;
                for (a, b) in
                    read.field.sites().iter().flatten().flatten().zip(spinor.sites().iter().flatten().flatten())
                {
                    worst = worst.max((a - b).norm());
                }
                assert!(worst <= if precision == FilePrecision::Double { 0.0 } else { 1e-7 });
            }
        }
    }
    let milc = WriteOptions { format: &MILC, ..Default::default() };
    let links = write_fermion(WriteTo::Writer(&mut Vec::new()), &spinor, &milc);
    assert!(links.unwrap_err().to_string().contains("write fermion fields as SciDAC or npy"));
}

#[test]
fn parts_add_up_to_the_whole() {
    let gauge = random_gauge([4, 2, 2, 10], 3);
    for options in all_options() {
        let bytes = written(&gauge, &options);
        let header = header_of(&bytes);
        let read = |first: usize, count: usize| {
            let local = Lattice::new([4, 2, 2, count]).unwrap();
            let section = Section { global: header.lattice, origin: [0, 0, 0, first], local };
            let mut values = vec![Complex64::ZERO; local.volume() * header.values_per_site()];
            let sum = arrangement::read(&source::Opened::Memory(&bytes), &header, &section, &mut values).unwrap();
            (values, sum)
        };
        let (whole, sum) = read(0, 10);
        let (first, first_sum) = read(0, 4);
        let (second, second_sum) = read(4, 6);
        assert_eq!([first, second].concat(), whole);
        if let Some((kind, stored)) = header.checksum {
            assert_eq!(first_sum.combine(kind, second_sum), sum);
            assert_eq!(sum, stored);
        }
    }
}

#[test]
fn written_lime_is_strict() {
    let gauge = random_gauge([2; 4], 4);
    let bytes =
        written(&gauge, &WriteOptions { metadata: vec![("beta".into(), "<6&0>".into())], ..Default::default() });
    assert!(bytes.len().is_multiple_of(8));
    let records = lime::parse(&bytes).unwrap();
    let kinds: Vec<_> = records.iter().map(|r| (r.kind.as_str(), r.begins, r.ends)).collect();
    let expected = [
        ("scidac-private-file-xml", true, false),
        ("scidac-file-xml", false, true),
        ("scidac-private-record-xml", true, false),
        ("scidac-record-xml", false, false),
        ("ildg-format", false, false),
        ("ildg-data-lfn", false, false),
        ("ildg-binary-data", false, false),
        ("scidac-checksum", false, true),
    ];
    assert_eq!(kinds, expected);
    for pair in records.windows(2) {
        let gap = pair[0].offset + pair[0].length;
        assert!(bytes[gap as usize..pair[1].offset as usize - 144].iter().all(|&b| b == 0));
        assert!(pair[1].offset.is_multiple_of(8));
    }
    let header = scidac::parse(&bytes, &ReadOptions::default()).unwrap();
    let info = header.metadata.iter().find(|(kind, _)| kind == "scidac-record-xml").unwrap();
    assert!(info.1.contains("beta = &lt;6&amp;0&gt;"));
}

/// A LIME file of the given records, in one message.
fn lime_file(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, data) in records {
        lime::append(&mut bytes, kind, lime::MessageFlags::Middle, data);
    }
    bytes
}

#[test]
fn lime_without_optional_records_in_any_order() {
    let gauge = random_gauge([2, 2, 2, 4], 5);
    let bytes = written(&gauge, &WriteOptions::default());
    let records = lime::parse(&bytes).unwrap();
    let data = |kind: &str| {
        let record = records.iter().find(|r| r.kind == kind).unwrap();
        &bytes[record.offset as usize..][..record.length as usize]
    };
    let [links, format, private, file, sums] =
        ["ildg-binary-data", "ildg-format", "scidac-private-record-xml", "scidac-private-file-xml", "scidac-checksum"]
            .map(|kind| (kind, data(kind)));
    let read = |records: &[_], options: &ReadOptions| reread(&lime_file(records), options);
    let default = ReadOptions::default();
    let verified = Checksum::Verified(ChecksumKind::Scidac);
    for (records, checksum) in [
        (vec![format, links], Checksum::Absent),
        (vec![links, format], Checksum::Absent),
        (vec![sums, links, format], verified.clone()),
        (vec![("whatever", &b"?"[..]), file, links, ("xlf-info", b"plaquette"), sums], verified.clone()),
        (vec![private, file, ("scidac-binary-data", links.1), sums], verified.clone()),
        (vec![file, links], Checksum::Absent),
    ] {
        let read = read(&records, &default).unwrap();
        assert_eq!((read.gauge, read.checksum), (gauge.clone(), checksum));
    }
    // The data alone does not determine its lattice.
    let alone = read(&[links], &default).unwrap_err().to_string();
    assert!(alone.contains("would be 64 sites in single or 32 in double precision"), "{alone}");
    let given = ReadOptions { lattice: Some(gauge.lattice()), ..default.clone() };
    assert_eq!(read(&[links], &given).unwrap().gauge, gauge);
    let other = ReadOptions { lattice: Some(Lattice::new([4, 2, 2, 2]).unwrap()), ..default.clone() };
    let clash = read(&[format, links], &other).unwrap_err().to_string();
    assert!(clash.contains("[4, 2, 2, 2] according to the request, but [2, 2, 2, 4]"), "{clash}");
    // Two fields: each has its own descriptions and checksum.
    let second = random_gauge([2, 2, 2, 4], 6);
    let single = WriteOptions { precision: FilePrecision::Single, format: &SCIDAC, ..Default::default() };
    let both = [bytes.clone(), written(&second, &single)].concat();
    for (record, field) in [&gauge, &second].into_iter().enumerate() {
        let read = reread(&both, &ReadOptions { record, ..default.clone() }).unwrap();
        assert_eq!((read.checksum, read.header.fields), (verified.clone(), 2));
        assert!(distance(&read.gauge, field) < 1e-7);
    }
    let third = reread(&both, &ReadOptions { record: 2, ..default }).unwrap_err().to_string();
    assert!(third.contains("number of data records is \"2\""), "{third}");
}

#[test]
fn contradictions_in_lime_are_named() {
    let gauge = random_gauge([2; 4], 7);
    let bytes = written(&gauge, &WriteOptions::default());
    let with = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        reread(&bytes, &ReadOptions::default()).unwrap_err().to_string()
    };
    for (from, to, says) in [
        ("<lx>2", "<lx>4", "the lattice is [4, 2, 2, 2] according to the ildg-format record, but [2, 2, 2, 2]"),
        ("<lx>2", "<lx>x", "extent is \"x\", expected a number of sites"),
        ("<precision>64", "<precision>32", "the precision is Single according to the ildg-format record, but Double"),
        ("<precision>64", "<precision>16", "precision is \"16\", expected 32 or 64"),
        (
            "su3gauge",
            "su2gauge",
            "ildg-format record: field is \"su2gauge\": links in SU(2), but Ferrite supports SU(3) only",
        ),
        ("su3gauge", "somegaug", "field is \"somegaug\", expected su3gauge; read with verification off"),
        ("<volfmt>0", "<volfmt>1", "volfmt is \"1\""),
        ("<recordtype>0", "<recordtype>1", "recordtype is \"1\""),
        (
            "<typesize>144",
            "<typesize>143",
            "typesize × datacount of the scidac-private-record-xml record is 572 bytes for each of 16",
        ),
        ("<dims>2 2 2 2", "<dims>2 2 2  ", "dims is \"2 2 2\", expected four numbers"),
        ("<suma>", "<sumc>", "suma is \"\", expected hexadecimal digits; read with verification off"),
    ] {
        let error = with(from, to);
        assert!(error.contains(says), "{from} → {to}: {error}");
    }
}

/// The bytes with the first `from` replaced.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
    [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
}

#[test]
fn nersc_variants() {
    let gauge = random_gauge([2, 2, 4, 2], 8);
    for endian in [Endian::Big, Endian::Little] {
        for precision in [FilePrecision::Single, FilePrecision::Double] {
            let options = WriteOptions { format: &NERSC_3X3, endian, precision, ..Default::default() };
            let bytes = written(&gauge, &options);
            // No byte order in the name; extra keys; carriage returns; no optional keys.
            let order = if endian == Endian::Big { "BIG" } else { "LITTLE" };
            let plain = replaced(&bytes, order, "");
            let extra = replaced(&plain, "END_HEADER\n", "MINE = a = b\nno value\nEND_HEADER\r\n");
            let bare = replaced(&replaced(&extra, "CHECKSUM", "CKSUM"), "PLAQUETTE", "PLQ");
            for (bytes, checksum) in [(plain, true), (extra, true), (bare, false)] {
                let read = reread(&bytes, &ReadOptions::default()).unwrap();
                assert_eq!(read.header.endian, endian);
                assert!(distance(&read.gauge, &gauge) < 1e-7);
                assert_eq!(read.checksum != Checksum::Absent, checksum);
            }
        }
    }
}

#[test]
fn lies_in_nersc_headers_are_named() {
    let gauge = random_gauge([2, 2, 4, 2], 9);
    let bytes = written(&gauge, &WriteOptions { format: &NERSC_3X3, ..Default::default() });
    for (from, to, says) in [
        ("DATATYPE = 4D_SU3_GAUGE_3x3", "DATATYPE = 4D_GAUGE", "DATATYPE is \"4D_GAUGE\", expected 4D_SU3_GAUGE or"),
        ("DATATYPE = 4D_SU3_GAUGE_3x3", "DATATYPE = 4D_SU4_GAUGE", "links in SU(4), but Ferrite supports SU(3) only"),
        ("GAUGE_3x3", "GAUGE", "bytes follow the last number"),
        ("IEEE64BIG", "IEEE80BIG", "FLOATING_POINT is \"IEEE80BIG\""),
        ("IEEE64BIG", "IEEE32BIG", "bytes follow the last number"),
        ("DIMENSION_1 = 2", "DIMENSION_1 = 3", "the field on a 3×2×4×2 lattice in double precision needs"),
        (
            "DIMENSION_1 = 2",
            "DIMENSION_1 = 0",
            "extent x of lattice [0, 2, 4, 2] is 0: every extent must be at least 1",
        ),
        ("DIMENSION_1 = 2", "DIMENSION_1 = -2", "DIMENSION_1 is \"-2\", expected a number of sites"),
        ("DIMENSION_1 = 2", "DIMENSION_1 = 2000", "the file is cut short or its header is wrong"),
        ("DIMENSION_1 = 2", "DIMENSION_1 = 18446744073709551614", "extents must be below 2³¹"),
        ("DIMENSION_1 = 2", "DIMENSION_9 = 2", "DIMENSION_1 is missing"),
        ("CHECKSUM = ", "CHECKSUM = x", "CHECKSUM is \"x"),
        ("CHECKSUM = ", "CHECKSUM = 123456789", "CHECKSUM is \"1"),
        ("PLAQUETTE = ", "PLAQUETTE = 1", "plaquette of the links is"),
        ("PLAQUETTE = ", "PLAQUETTE = p", "expected a number"),
        ("LINK_TRACE = ", "LINK_TRACE = nan # ", "expected a number"),
        ("END_HEADER", "END_HEADING", "END_HEADER is missing"),
    ] {
        let error = reread(&replaced(&bytes, from, to), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains(says), "{from} → {to}: {error}");
    }
    let nan = replaced(&bytes, "PLAQUETTE = 0", "PLAQUETTE = nan\nX = ");
    assert!(reread(&nan, &ReadOptions::default()).is_err());
}

/// Optional entries of headers in the spellings of several programs: parsed, or ignored without verification.
#[test]
fn optional_keys_are_parsed_or_ignored() {
    let gauge = random_gauge([2, 2, 4, 2], 16);
    let nersc = written(&gauge, &WriteOptions { format: &NERSC_3X3, ..Default::default() });
    let header = header_of(&nersc);
    let lenient = ReadOptions { verify: false, ..Default::default() };
    let value = |key: &str| header.metadata.iter().find(|(k, _)| k == key).unwrap().1.clone();
    let with = |key: &str, to: &str| replaced(&nersc, &format!("{key} = {}", value(key)), &format!("{key} = {to}"));
    let sum = u32::from_str_radix(&value("CHECKSUM"), 16).unwrap();
    let verified = Checksum::Verified(ChecksumKind::Nersc);
    for spelled in [format!("0X{sum:X}"), format!("0x{sum:08x}"), format!("ffffffff{sum:08x}"), format!("{sum:016x}")] {
        let read = reread(&with("CHECKSUM", &spelled), &ReadOptions::default()).unwrap();
        assert_eq!((read.checksum, read.gauge), (verified.clone(), gauge.clone()), "{spelled}");
    }
    assert_eq!([checksum_from("4294967295"), checksum_from("-1"), checksum_from("ffffffff")], [Some(u32::MAX); 3]);
    assert_eq!([checksum_from(""), checksum_from("-"), checksum_from("0x"), checksum_from("12 34")], [None; 4]);
    // Empty is absent.
    let empty = reread(&with("CHECKSUM", ""), &ReadOptions::default()).unwrap();
    assert_eq!((empty.checksum, empty.header.notes), (Checksum::Absent, vec![]));
    let (plaquette, trace) = (value("PLAQUETTE"), value("LINK_TRACE"));
    assert_eq!(reread(&with("PLAQUETTE", ""), &ReadOptions::default()).unwrap().header.plaquette, None);
    for key in ["PLAQUETTE", "LINK_TRACE"] {
        let number: f64 = value(key).parse().unwrap();
        let read = reread(&with(key, &format!("{:.12}D-01", 10.0 * number)), &ReadOptions::default()).unwrap().header;
        assert!((read.plaquette.unwrap().value - plaquette.parse::<f64>().unwrap()).abs() < 1e-12);
        assert!((read.link_trace.unwrap().value - trace.parse::<f64>().unwrap()).abs() < 1e-12);
    }
    for key in ["CHECKSUM", "PLAQUETTE", "LINK_TRACE"] {
        let bytes = with(key, "unknown");
        let refused = reread(&bytes, &ReadOptions::default()).unwrap_err().to_string();
        assert!(refused.contains(&format!("{key} is \"unknown\", expected ")), "{refused}");
        let read = reread(&bytes, &lenient).unwrap();
        assert_eq!(read.gauge, gauge);
        assert!(read.header.notes[0].contains(&format!("{key} is \"unknown\"")), "{:?}", read.header.notes);
    }
    for spelled in ["IEEE64 BIG", "ieee64big", "IEEE_64_BIG_ENDIAN", "IEEE64"] {
        assert_eq!(
            reread(&with("FLOATING_POINT", spelled), &ReadOptions::default()).unwrap().gauge,
            gauge,
            "{spelled}"
        );
    }
    // The same in LIME.
    let ildg = written(&gauge, &WriteOptions::default());
    let records = lime::parse(&ildg).unwrap();
    let data = |kind: &str| {
        let record = records.iter().find(|r| r.kind == kind).unwrap();
        String::from_utf8_lossy(&ildg[record.offset as usize..][..record.length as usize]).into_owned()
    };
    let links = records.iter().find(|r| r.kind == "ildg-binary-data").unwrap();
    let links = &ildg[links.offset as usize..][..links.length as usize];
    let (format, private, sums) = (data("ildg-format"), data("scidac-private-record-xml"), data("scidac-checksum"));
    let file = |from: &str, to: &str| {
        let all = [&format, &private, &sums].map(|text| text.replacen(from, to, 1).into_bytes());
        let [format, private, sums] = &all;
        lime_file(&[
            ("scidac-private-record-xml", private),
            ("ildg-format", format),
            ("ildg-binary-data", links),
            ("scidac-checksum", sums),
        ])
    };
    for (from, to) in [
        ("su3gauge", "SU3_gauge"),
        ("su3gauge", "SU(3) gauge"),
        ("<precision>64", "<precision>double"),
        ("<precision>64", "<precision>64 bit"),
        ("<precision>D", "<precision>d"),
        ("<suma>", "<suma>0X"),
        ("<field>", "<!-- <lx>8</lx> --><field>"),
    ] {
        let read = reread(&file(from, to), &ReadOptions::default()).unwrap();
        assert_eq!((read.gauge, read.checksum), (gauge.clone(), Checksum::Verified(ChecksumKind::Scidac)), "{to}");
    }
    for (from, to, says) in [
        ("su3gauge", "links", "field is \"links\", expected su3gauge"),
        ("<precision>64", "<precision>quad", "precision is \"quad\", expected 32 or 64"),
        ("<precision>D", "<precision>Q", "precision is \"Q\", expected F or D"),
        ("<typesize>", "<typesize>about ", "typesize is \"about 144\""),
        ("<recordtype>0", "<recordtype>field", "recordtype is \"field\", expected 0"),
        ("<suma>", "<suma>#", "suma is \"#"),
        ("<precision>64", "<precision>32", "the precision is Single according to the ildg-format record, but Double"),
    ] {
        let refused = reread(&file(from, to), &ReadOptions::default()).unwrap_err().to_string();
        assert!(refused.contains(says), "{to}: {refused}");
        let read = reread(&file(from, to), &lenient).unwrap();
        assert_eq!(read.gauge, gauge, "{to}");
        assert!(read.header.notes[0].contains(says), "{to}: {:?}", read.header.notes);
    }
}

/// Checks that errors about wrong headers describe the data.
#[test]
fn errors_say_what_the_data_would_be() {
    let gauge = random_gauge([2, 2, 2, 4], 17);
    let lenient = ReadOptions { verify: false, ..Default::default() };
    let bytes = |options: &WriteOptions| written(&gauge, options);
    let data = |bytes: &[u8]| bytes[header_of(bytes).offset as usize..][..header_of(bytes).needed() as usize].to_vec();
    let [double, single] = [FilePrecision::Double, FilePrecision::Single]
        .map(|precision| data(&bytes(&WriteOptions { precision, format: &NPY, ..Default::default() })));
    let format = |size: [usize; 4], precision| ildg::print(Lattice::new(size).unwrap(), precision).into_bytes();
    let ildg = |format: &[u8], links: &[u8]| lime_file(&[("ildg-format", format), ("ildg-binary-data", links)]);
    let refused = |bytes: &[u8]| reread(bytes, &ReadOptions::default()).unwrap_err().to_string();
    // Precision.
    for (stated, links, right, is) in [
        (FilePrecision::Single, &double, "double", "the data have the length of links in double precision"),
        (FilePrecision::Double, &single, "single", "the data have the length of links in single precision"),
    ] {
        let file = ildg(&format([2, 2, 2, 4], stated), links);
        let error = refused(&file);
        assert!(error.contains(is) && error.contains("precision (ildg-format record) have"), "{error}");
        let read = reread(&file, &lenient).unwrap();
        assert!(
            distance(&read.gauge, &gauge) < 1e-7
                && read.header.notes[0].ends_with(&format!("; the data are read in {right} precision"))
        );
    }
    // Extents.
    for size in [[2, 2, 2, 2], [4, 4, 4, 4]] {
        let file = ildg(&format(size, FilePrecision::Double), &double);
        let error = refused(&file);
        assert!(
            error.contains("the data have the length of links on 64 sites in single precision or 32 sites in double"),
            "{error}"
        );
        assert!(reread(&file, &lenient).is_err());
        let given = ReadOptions { lattice: Some(gauge.lattice()), ..lenient.clone() };
        let read = reread(&file, &given).unwrap();
        assert_eq!(read.gauge, gauge);
        assert!(read.header.notes[0].contains("[2, 2, 2, 4] is used, as requested"), "{:?}", read.header.notes);
    }
    // Other groups.
    for (colours, bytes) in [(2, 4 * 4 * 16), (4, 4 * 16 * 16)] {
        let error = refused(&ildg(&format([2, 2, 2, 4], FilePrecision::Double), &vec![0; 32 * bytes]));
        assert!(error.contains(&format!("the length of links in SU({colours}) in double precision")), "{error}");
    }
    let npy = replaced(&bytes(&WriteOptions { format: &NPY, ..Default::default() }), "4, 3, 3)", "4, 2, 2)");
    assert!(refused(&npy).contains("links in SU(2), but Ferrite supports SU(3) only"), "{}", refused(&npy));
    // Two rows of each link.
    let rows: Vec<u8> = double.chunks(144).flat_map(|link| link[..96].to_vec()).collect();
    for file in [
        ildg(&format([2, 2, 2, 4], FilePrecision::Double), &rows),
        lime_file(&[("ildg-binary-data", &rows)]),
        lime_file(&[("scidac-binary-data", &rows)]),
    ] {
        let given = ReadOptions { lattice: Some(gauge.lattice()), ..Default::default() };
        assert!(distance(&reread(&file, &given).unwrap().gauge, &gauge) < 1e-15);
    }
    // Bytes in the other order, which no checksum of bytes finds.
    let swapped: Vec<u8> =
        double.chunks(8).flat_map(|number| number.iter().rev().copied().collect::<Vec<_>>()).collect();
    let file = ildg(&format([2, 2, 2, 4], FilePrecision::Double), &swapped);
    assert!(refused(&file).contains("in SU(3) if they are read as little-endian, but the LIME format specifies big"));
    let read = reread(&file, &lenient).unwrap();
    assert_eq!((read.gauge, read.header.endian), (gauge.clone(), Endian::Little));
    // A second configuration.
    let twice = |options: &WriteOptions| [bytes(options), bytes(options)].concat();
    for format in [&NERSC, &NPY] {
        let file = twice(&WriteOptions { format, ..Default::default() });
        assert!(refused(&file).contains("begin like another file"), "{}", refused(&file));
        assert!(reread(&file, &lenient).unwrap().header.notes[0].contains("bytes after the data are ignored"));
    }
    let both = twice(&WriteOptions::default());
    assert_eq!((header_of(&both).fields, header_of(&both).notes), (2, vec![]));
    // A checksum by another rule, and the right plaquette.
    let nersc = bytes(&WriteOptions { format: &NERSC_3X3, ..Default::default() });
    let error = refused(&replaced(&nersc, "CHECKSUM = ", "CHECKSUM = 1234abcd\nOTHER = "));
    assert!(
        error.contains("since the plaquette agrees with the header, the checksum was computed by another rule"),
        "{error}"
    );
    let wrong = replaced(
        &replaced(&nersc, "CHECKSUM = ", "CHECKSUM = 1234abcd\nOTHER = "),
        "PLAQUETTE = ",
        "PLAQUETTE = 0.5\nP = ",
    );
    assert!(refused(&wrong).contains("the data is corrupt; copy the file again"), "{}", refused(&wrong));
}

#[test]
fn unsupported_formats_are_named() {
    let mut tar = vec![b'x'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, says) in [
        (&b""[..], "is empty"),
        (b"\x89HDF\r\n\x1a\n and more", "is an HDF5 file"),
        (b"\x1f\x8b\x08\0", "is packed with gzip; unpack it"),
        (b"PK\x03\x04", "is a zip archive, such as an .npz file"),
        (&tar, "is a tar archive"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        (b"something else", "starts with the bytes 73 6f 6d 65"),
    ] {
        let error = reread(bytes, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn one_flipped_bit_is_found_by_every_checksum() {
    let gauge = random_gauge([2; 4], 10);
    for options in all_options().into_iter().filter(|o| ![&NPY, &OPENQCD].contains(&o.format)) {
        let mut bytes = written(&gauge, &options);
        let header = header_of(&bytes);
        // A bit low in the mantissa, which nothing but the checksum sees.
        let last = if header.endian == Endian::Big { header.precision.bytes() - 1 } else { 0 };
        bytes[header.offset as usize + 5 * header.site_bytes() + last] ^= 1;
        let error = reread(&bytes, &ReadOptions::default()).unwrap_err();
        // The plaquette in a NERSC header agrees in spite of one bit.
        let found = match options.format.name {
            "nersc" | "nersc3x3" => matches!(error, Problem::ChecksumRule { .. }),
            _ => matches!(error, Problem::Checksum { .. }),
        };
        assert!(found, "{options:?}: {error}");
        let lenient = ReadOptions { verify: false, ..Default::default() };
        assert!(matches!(reread(&bytes, &lenient).unwrap().checksum, Checksum::Mismatch { .. }));
    }
}

#[test]
fn links_that_are_none_are_refused_by_name() {
    let lattice = Lattice::new([2, 2, 4, 2]).unwrap();
    let mut gauge = random_gauge([2, 2, 4, 2], 11);
    let site = lattice.index([1, 0, 3, 1]);
    gauge.links_mut()[4 * site + 2][1][0] += 0.1;
    let bytes = written(&gauge, &WriteOptions::default());
    let error = reread(&bytes, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("link U_z at site (x, y, z, t) = [1, 0, 3, 1] deviates from SU(3) by"), "{error}");
    assert!(reread(&bytes, &ReadOptions { allow_non_unitary: true, ..Default::default() }).is_ok());
    let two_rows = WriteOptions { format: &NERSC, ..Default::default() };
    let refused = write_gauge(WriteTo::Writer(&mut Vec::new()), &gauge, &two_rows).unwrap_err();
    assert!(matches!(refused.problem, Problem::NotUnitary { .. }));

    gauge.links_mut()[4 * site + 1][0][0].im = f64::INFINITY;
    let written = write_gauge(WriteTo::Writer(&mut Vec::new()), &gauge, &WriteOptions::default());
    let written = written.unwrap_err().to_string();
    assert!(written.contains("link U_y at site (x, y, z, t) = [1, 0, 3, 1] is not finite"), "{written}");
    // A file that holds NaN is refused with any options.
    let mut bytes = bytes;
    let header = header_of(&bytes);
    bytes[header.offset as usize..][..8].copy_from_slice(&f64::NAN.to_be_bytes());
    let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
    let error = reread(&bytes, &lenient).unwrap_err().to_string();
    assert!(error.contains("link U_x at site (x, y, z, t) = [0, 0, 0, 0] is not finite"), "{error}");
}

#[test]
fn npy_headers_are_those_of_numpy() {
    let mut bytes = Vec::new();
    let options = WriteOptions { format: &NPY, endian: Endian::Little, ..Default::default() };
    write_fermion(WriteTo::Writer(&mut bytes), &random_spinor([2, 4, 6, 8], 12), &options).unwrap();
    let text = "{'descr': '<c16', 'fortran_order': False, 'shape': (8, 6, 4, 2, 4, 3), }";
    assert_eq!(&bytes[10..10 + text.len()], text.as_bytes());
    assert_eq!((bytes[127], bytes.len()), (b'\n', 128 + 384 * 192));
    for (from, to, says) in [
        ("False", "True ", "fortran_order is \"True \", expected False"),
        ("<c16", "<f16", "descr is \"<f16\""),
        ("(8, 6", "(9, 6", "the field on a 2×4×6×9 lattice"),
        ("(8, 6", "(6, 8", ""),
        ("4, 3)", "3, 4)", "shape is"),
        ("(8, 6", "(99999999999999999999999998, 6", "shape is"),
        ("'shape'", "'shave'", "shape is missing"),
    ] {
        let result = read_fermion::<Spinor>(ReadFrom::Memory(&replaced(&bytes, from, to)), &ReadOptions::default());
        match result {
            Ok(_) => assert!(says.is_empty()),
            Err(error) => assert!(error.to_string().contains(says) && !says.is_empty(), "{from} → {to}: {error}"),
        }
    }
    let gauge = reread(&bytes, &ReadOptions::default()).unwrap_err().to_string();
    assert!(gauge.contains("holds 12 complex numbers per site, but a gauge field has 36"), "{gauge}");
}

/// What CI runs of fuzzing: each parser on thousands of damaged files. Only panics and huge allocations count.
#[test]
fn damaged_files_never_panic() {
    let gauge = random_gauge([2; 4], 13);
    let mut random = noise(14);
    let mut below = |n: usize| ((random() + 1.0) / 2.0 * n as f64) as usize % n;
    let lenient = ReadOptions { verify: false, allow_non_unitary: true, ..Default::default() };
    for options in all_options() {
        let good = written(&gauge, &options);
        let header = inspect(ReadFrom::Memory(&good), &lenient).unwrap().offset as usize;
        for round in 0..400 {
            let mut bytes = good.clone();
            // Headers are where parsers go wrong: most damage is done there.
            for _ in 0..1 + below(4) {
                let at = if below(4) == 0 { below(bytes.len()) } else { below(header) };
                match below(4) {
                    0 => bytes[at] ^= 1 << below(8),
                    1 => bytes[at] = [0, 0xff, b'9', b'<'][below(4)],
                    2 => drop(bytes.drain(at..bytes.len().min(at + 1 + below(20)))),
                    _ => bytes.insert(at, below(256) as u8),
                }
            }
            if round % 3 == 0 {
                bytes.truncate(below(bytes.len()));
            }
            for options in [&lenient, &ReadOptions::default()] {
                let _ = reread(&bytes, options);
                let _ = read_field(ReadFrom::Memory(&bytes), options);
            }
            let _ = (nersc::parse(&bytes), milc::parse(&bytes), npy::parse(&bytes), lime::parse(&bytes));
            let _ = openqcd::parse(&bytes);
        }
    }
}

/// Takes some bytes, then is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_wherever_it_happens() {
    let gauge = random_gauge([2; 4], 15);
    for options in all_options() {
        let length = written(&gauge, &options).len();
        for room in (0..length).step_by(97).chain([length - 1]) {
            let error = write_gauge(WriteTo::Writer(&mut Full(room)), &gauge, &options).unwrap_err().to_string();
            assert!(error.starts_with("<writer>: cannot write: "), "{error}");
        }
    }
}

#[test]
fn printed_numbers_know_their_digits() {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
    let resolution = |text| Printed::parse(text).unwrap().resolution;
    assert!(near(resolution("0.571077"), 1e-6) && near(resolution("-5.7e-3"), 1e-4) && near(resolution("1"), 1.0));
    assert_eq!(Printed::parse("1.0x"), None);
}

#[test]
fn headers_of_lattices_beyond_32_bits_are_read() {
    let lattice = Lattice::new([192, 192, 192, 384]).unwrap();
    let size = lattice.volume() as u64;
    let milc = WriteOptions { format: &MILC, precision: FilePrecision::Single, ..Default::default() };
    let npy = WriteOptions { format: &NPY, ..Default::default() };
    let heads = [
        ((milc::frame(lattice, &milc).unwrap().head)(PartialChecksum::default()), 288),
        ((npy::frame(lattice, &[], &[4, 3, 3], &npy).head)(PartialChecksum::default()), 576),
    ];
    for (head, site_bytes) in heads {
        match inspect(ReadFrom::Memory(&head), &ReadOptions::default()).unwrap_err().problem {
            Problem::Truncated { needed, .. } => assert_eq!(needed, size * site_bytes),
            other => panic!("{other}"),
        }
    }
}

/// Copies have the metadata of the original where there is a place for it; the rest is listed.
#[test]
fn copies_have_the_metadata_of_the_original() {
    let gauge = random_gauge([2, 2, 2, 4], 18);
    let plaquette = crate::gauge::measure::plaquette(&gauge).mean;
    // A copy of a file: its bytes, and what was left out.
    let copy = |bytes: &[u8], format: &'static FileFormat, precision: FilePrecision| {
        let header = inspect(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap();
        let mut options = WriteOptions { format, precision, title: "new".into(), ..Default::default() };
        let same_numbers = precision == header.precision;
        let copy = MetadataCopy { header: &header, from: "the original", same_numbers, same_plaquette: true };
        let left = copy.copy_to(&mut options);
        (written(&reread(bytes, &ReadOptions::default()).unwrap().gauge, &options), left)
    };
    let value = |bytes: &[u8], key: &str| {
        let metadata = header_of(bytes).metadata;
        let found: Vec<_> = metadata.iter().filter(|(its, _)| its == key).map(|(_, value)| value.clone()).collect();
        assert!(found.len() < 2, "{key}: {found:?}");
        found.into_iter().next().unwrap_or_default()
    };
    let (single, double) = (FilePrecision::Single, FilePrecision::Double);
    let pair = |key: &str, value: &str| (String::from(key), String::from(value));
    // NERSC, there and back through LIME.
    let keys = [
        ("ENSEMBLE_ID", "b600"),
        ("ENSEMBLE_LABEL", "quenched <6>"),
        ("SEQUENCE_NUMBER", "1230"),
        ("CREATOR", "RBC"),
        ("CREATION_DATE", "Mon Feb 14 2005"),
        ("ARCHIVE_DATE", "Tue Feb 15 2005"),
        ("BOUNDARY_4", "ANTIPERIODIC"),
        ("BETA", "6.0"),
    ];
    let metadata = keys.map(|(key, value)| pair(key, value)).to_vec();
    let nersc = written(&gauge, &WriteOptions { format: &NERSC_3X3, metadata, ..Default::default() });
    let mut file = nersc.clone();
    for format in [&NERSC, &NERSC_3X3, &ILDG, &SCIDAC, &NERSC_3X3] {
        let (next, left) = copy(&file, format, single);
        assert_eq!(left, Vec::<String>::new(), "{format}");
        file = next;
    }
    for (key, said) in keys {
        assert_eq!(value(&file, key), said);
    }
    assert_eq!(value(&file, "COPIED").matches("from the original").count(), 5, "{}", value(&file, "COPIED"));
    assert_eq!((value(&file, "FLOATING_POINT"), value(&file, "DIMENSION_4")), ("IEEE32BIG".into(), "4".into()));
    // LIME.
    let xlf = format!("plaquette = {plaquette:.12}\n trajectory nr = 230\n beta = 6.0, kappa = 0.177\n");
    let records = [
        ("scidac-file-xml", "<title>MILC archival</title>"),
        ("scidac-record-xml", "gauge.nloops 3"),
        ("xlf-info", &xlf),
        ("a-record-of-ours", "anything"),
    ];
    let options = WriteOptions {
        records: records.map(|(kind, text)| pair(kind, text)).to_vec(),
        lfn: "lfn://USQCD/test".into(),
        ..Default::default()
    };
    let lime = written(&gauge, &options);
    assert_eq!(header_of(&lime).plaquette.map(|stored| (stored.value - plaquette).abs() < 1e-11), Some(true));
    let (same, left) = copy(&lime, &ILDG, double);
    let (again, _) = copy(&same, &ILDG, double);
    assert_eq!((left, value(&again, "ildg-data-lfn")), (vec![], "lfn://USQCD/test".into()));
    let (rounded, left) = copy(&lime, &ILDG, single);
    assert_eq!(left, ["the logical file name lfn://USQCD/test, because the copy has other numbers"]);
    assert_eq!(value(&rounded, "ildg-data-lfn"), NO_LFN);
    let (scidac, left) = copy(&lime, &SCIDAC, double);
    assert_eq!(left, ["the record ildg-data-lfn"]);
    for file in [&again, &rounded, &scidac] {
        for (kind, text) in records {
            assert_eq!(value(file, kind), text);
        }
        assert_eq!(value(file, "ferrite-copies").lines().count(), if *file == again { 2 } else { 1 });
    }
    let (nersc, left) = copy(&lime, &NERSC_3X3, double);
    assert_eq!(value(&nersc, "ENSEMBLE_LABEL"), "MILC archival");
    assert_eq!(
        left,
        ["scidac-record-xml", "ildg-data-lfn", "xlf-info", "a-record-of-ours"].map(|r| format!("the record {r}"))
    );
    // The time stamp of MILC.
    let (milc, left) = copy(&file, &MILC, single);
    assert_eq!(value(&milc, "time stamp"), "Mon Feb 14 2005");
    assert!(left.contains(&"ENSEMBLE_ID".into()) && !left.contains(&"CREATION_DATE".into()), "{left:?}");
    assert_eq!(copy(&milc, &MILC, single).0, milc);
    let (nersc, left) = copy(&copy(&milc, &ILDG, single).0, &NERSC, single);
    assert_eq!((value(&nersc, "CREATION_DATE"), left), ("Mon Feb 14 2005".into(), vec![]));
    assert_eq!(copy(&milc, &NPY, single).1, ["time stamp"]);
    // Each of several fields has its own.
    let both = [&lime[..], &again].concat();
    for (record, alone) in [&lime, &again].into_iter().enumerate() {
        let header = inspect(ReadFrom::Memory(&both), &ReadOptions { record, ..Default::default() }).unwrap();
        let sorted = |mut all: Vec<(String, String)>| {
            all.sort();
            all
        };
        assert_eq!(sorted(header.metadata), sorted(header_of(alone).metadata));
    }
}
