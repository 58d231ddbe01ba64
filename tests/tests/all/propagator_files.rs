//! Propagators as QDP++, QDP/C, QUDA, MILC and tmLQCD write them, links with a record for each direction, and MILC's older
//! formats: files made here number by number, and real ones.
use crate::program::Room;
use crate::sections::{field_of, on, sentence};
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::files::{
    Arrangement, Checksum, ColumnOrder, Endian, FilePrecision, MILC_PROPAGATOR, MILC_V1, NPY, ReadFrom, ReadOptions,
    SCIDAC, SCIDAC_DIRECTIONS, SharedFile, WriteOptions, WriteTo, inspect, inspect_block, read_block, read_fermion,
    read_fermions, read_gauge, write_block, write_fermion, write_gauge,
};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::refdata;
use ferrite_tests::testkit;
use num_complex::Complex64;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];
const PRECISIONS: [FilePrecision; 2] = [FilePrecision::Single, FilePrecision::Double];

fn lattice() -> Lattice {
    Lattice::new(SIZE).unwrap()
}

/// Columns of a propagator, each different.
fn columns<T: Fermion>(lattice: Lattice) -> Vec<HostField<T>> {
    (0..T::COMPONENTS).map(|column| generate::random_source(lattice, 40 + column as u64)).collect()
}

/// A LIME file of these records.
fn lime(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    for (kind, data) in records {
        let mut header = vec![0; 144];
        header[..6].copy_from_slice(&[0x45, 0x67, 0x89, 0xab, 0, 1]);
        header[8..16].copy_from_slice(&(data.len() as u64).to_be_bytes());
        header[16..16 + kind.len()].copy_from_slice(kind.as_bytes());
        file.extend(header);
        file.extend(*data);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    file
}

fn file_xml(lattice: Lattice) -> String {
    let [x, y, z, t] = lattice.size();
    format!(
        "<scidacFile><version>1.1</version><spacetime>4</spacetime><dims>{x} {y} {z} {t} </dims><volfmt>0</volfmt></scidacFile>"
    )
}

fn record_xml(datatype: &str, precision: FilePrecision, size: usize, count: usize) -> String {
    let letter = if precision == FilePrecision::Single { 'F' } else { 'D' };
    format!(
        "<scidacRecord><version>1.1</version><recordtype>0</recordtype><datatype>{datatype}</datatype>\
         <precision>{letter}</precision><colors>3</colors><spins>4</spins><typesize>{size}</typesize>\
         <datacount>{count}</datacount></scidacRecord>"
    )
}

fn big_endian(numbers: &[Complex64], precision: FilePrecision) -> Vec<u8> {
    let real = |x: f64| match precision {
        FilePrecision::Single => (x as f32).to_be_bytes().to_vec(),
        FilePrecision::Double => x.to_be_bytes().to_vec(),
    };
    numbers.iter().flat_map(|z| [real(z.re), real(z.im)].concat()).collect()
}

/// SciDAC's checksum, from its definition: CRC-32 of each site, bit by bit, rotated by its number.
fn checksum_xml(bytes: &[u8], sites: usize) -> String {
    let (mut a, mut b) = (0u32, 0u32);
    for (number, site) in bytes.chunks(bytes.len() / sites).enumerate() {
        let mut crc = !0u32;
        for byte in site {
            crc ^= u32::from(*byte);
            (0..8).for_each(|_| crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 });
        }
        a ^= (!crc).rotate_left((number % 29) as u32);
        b ^= (!crc).rotate_left((number % 31) as u32);
    }
    format!("<scidacChecksum><version>1.0</version><suma>{a:x}</suma><sumb>{b:x}</sumb></scidacChecksum>")
}

/// The numbers of a propagator on all sites, in the order in which these loops go through sink (s, c) and source (r, d).
fn propagator<T: Fermion>(columns: &[HostField<T>], order: ColumnOrder) -> Vec<Complex64> {
    let spins = T::COMPONENTS / 3;
    let mut numbers = Vec::new();
    for site in 0..columns[0].lattice().volume() {
        let at =
            |s: usize, c: usize, r: usize, d: usize| columns[3 * r + d].numbers()[site * T::COMPONENTS + 3 * s + c];
        match order {
            ColumnOrder::SpinMatrix => {
                for (s, r) in (0..spins).flat_map(|s| (0..spins).map(move |r| (s, r))) {
                    for (c, d) in (0..3).flat_map(|c| (0..3).map(move |d| (c, d))) {
                        numbers.push(at(s, c, r, d));
                    }
                }
            }
            ColumnOrder::ColourFirst => {
                for (c, s) in (0..3).flat_map(|c| (0..spins).map(move |s| (c, s))) {
                    for (d, r) in (0..3).flat_map(|d| (0..spins).map(move |r| (d, r))) {
                        numbers.push(at(s, c, r, d));
                    }
                }
            }
            ColumnOrder::Vectors => {
                for (r, d) in (0..spins).flat_map(|r| (0..3).map(move |d| (r, d))) {
                    for (s, c) in (0..spins).flat_map(|s| (0..3).map(move |c| (s, c))) {
                        numbers.push(at(s, c, r, d));
                    }
                }
            }
        }
    }
    numbers
}

/// A file of one record with such a propagator.
fn in_one_record<T: Fermion>(columns: &[HostField<T>], order: ColumnOrder, precision: FilePrecision) -> Vec<u8> {
    let (lattice, n) = (columns[0].lattice(), T::COMPONENTS);
    let data = big_endian(&propagator(columns, order), precision);
    let bytes = 2 * precision.bytes() * n;
    let record = match order {
        ColumnOrder::SpinMatrix => record_xml("Lattice", precision, bytes * n, 1),
        ColumnOrder::ColourFirst => record_xml("QDP_D3_DiracPropagator", precision, bytes * n, 1),
        ColumnOrder::Vectors => record_xml("QUDA_DNs4Nc3_ColorSpinorField", precision, bytes, n),
    };
    lime(&[
        ("scidac-private-file-xml", file_xml(lattice).as_bytes()),
        ("scidac-private-record-xml", record.as_bytes()),
        ("scidac-binary-data", &data),
        ("scidac-checksum", checksum_xml(&data, lattice.volume()).as_bytes()),
    ])
}

fn farthest<T: Fermion>(a: &[HostField<T>], b: &[HostField<T>]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| testkit::farthest(a.numbers(), b.numbers())).fold(0.0, f64::max)
}

/// Rounding to single precision moves numbers of random sources, below 8, by up to 2⁻²⁴ of them in each part.
fn limit(precision: FilePrecision) -> f64 {
    if precision == FilePrecision::Single { 1e-6 } else { 0.0 }
}

fn every_order<T: Fermion + PartialEq + std::fmt::Debug>() {
    let columns = columns::<T>(lattice());
    for order in [ColumnOrder::SpinMatrix, ColumnOrder::ColourFirst, ColumnOrder::Vectors] {
        for precision in PRECISIONS {
            let bytes = in_one_record(&columns, order, precision);
            let file = read_fermions::<T>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
            assert!(farthest(&file.fields, &columns) <= limit(precision), "{order:?} {precision}");
            assert!(matches!(file.checksum, Checksum::Verified(_)));
            assert_eq!(file.header.arrangement, Arrangement::Columns(order));
            let header = inspect_block::<T>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap().unwrap();
            assert_eq!((header.fields, header.lattice, header.precision), (T::COMPONENTS, lattice(), precision));
            let one = read_block::<T>(ReadFrom::Memory(&bytes), 2).unwrap();
            assert!(one.field == file.fields[2] && one.checksum == file.checksum);
            let error = read_block::<T>(ReadFrom::Memory(&bytes), T::COMPONENTS).unwrap_err().to_string();
            assert!(error.contains("counted from 0, is requested"), "{error}");
            // One bit.
            let mut wrong = bytes.clone();
            let middle = header.offset as usize + 777;
            wrong[middle] ^= 1;
            let said = read_fermions::<T>(ReadFrom::Memory(&wrong), &ReadOptions::default()).unwrap_err().to_string();
            assert!(said.contains("SciDAC checksum of the data is"), "{said}");
            let cut = &bytes[..bytes.len() / 2];
            let said = read_fermions::<T>(ReadFrom::Memory(cut), &ReadOptions::default()).unwrap_err().to_string();
            assert!(said.contains("the file is cut short"), "{said}");
            let links = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap_err().to_string();
            assert!(links.contains("the file holds a propagator of"), "{links}");
        }
    }
}

#[test]
fn a_propagator_in_one_record_of_any_code() {
    every_order::<Spinor>();
    every_order::<ColourVector>();
}

/// Checks that propagators are written in QDP++'s order, by one process and by many, and that any of them read it.
fn written<T: Fermion + PartialEq>() {
    let room = Room::new();
    let lattice = Lattice::new([4, 6, 4, 12]).unwrap();
    let (columns, n) = (columns::<T>(lattice), T::COMPONENTS);
    let (one, many) = (room.path("one"), room.path("many"));
    for precision in PRECISIONS {
        let options = WriteOptions { format: &SCIDAC, precision, ..Default::default() };
        write_block(&one, &columns.iter().collect::<Vec<_>>(), &[n], &options).unwrap();
        let header = inspect(&one, &ReadOptions::default()).unwrap();
        let bytes = fs::read(&one).unwrap();
        let data = big_endian(&propagator(&columns, ColumnOrder::SpinMatrix), precision);
        let begin = header.offset as usize;
        assert!(bytes[begin..begin + data.len()] == data);
        let said = String::from_utf8_lossy(&bytes);
        let (xml, size) = (checksum_xml(&data, lattice.volume()), 2 * n * n * precision.bytes());
        let sums = &xml[xml.find("<suma>").unwrap()..];
        let kind = "<datatype>Lattice</datatype>";
        let sizes = format!("<typesize>{size}</typesize><datacount>1</datacount>");
        assert!([sums, kind, &sizes].iter().all(|part| said.contains(*part)), "{said:.2000}");
        let mut stream = Vec::new();
        write_block(WriteTo::Writer(&mut stream), &columns.iter().collect::<Vec<_>>(), &[n], &options).unwrap();
        assert!(stream[begin..begin + data.len()] == data);
        for grid in [[2, 1, 1, 3], [1, 3, 2, 1], [2, 3, 2, 2]] {
            on(grid, lattice, |world, section| {
                let parts: Vec<_> = columns.iter().map(|field| field_of(section, field)).collect();
                let parts: Vec<_> = parts.iter().collect();
                write_block(SharedFile::new(&many, world).part(section), &parts, &[n], &options).unwrap();
            });
            let written = fs::read(&many).unwrap();
            assert!(written.len() == bytes.len() && written[begin..begin + data.len()] == data, "{grid:?}");
            on(grid, lattice, |world, section| {
                let file = SharedFile::new(&many, world).part(section);
                let read = read_fermions::<T>(file, &ReadOptions::default()).unwrap();
                let parts: Vec<_> = columns.iter().map(|field| field_of(section, field)).collect();
                assert!(farthest(&read.fields, &parts) <= limit(precision));
                assert!(matches!(read.checksum, Checksum::Verified(_)));
            });
        }
    }
    let npy_only = WriteOptions { format: &SCIDAC, ..Default::default() };
    let two: Vec<_> = columns[..2].iter().collect();
    let said = write_block(WriteTo::Writer(&mut Vec::new()), &two, &[2], &npy_only).unwrap_err().to_string();
    assert!(said.contains("a SciDAC file holds one field or a propagator"), "{said}");
}

#[test]
fn propagators_are_written_as_qdp_does() {
    written::<Spinor>();
    written::<ColourVector>();
}

/// USQCD's files: a source, of one number on each site or of a time slice, and twelve or three solutions; or pairs.
#[test]
fn a_propagator_of_several_records() {
    let lattice = lattice();
    let (solutions, sources) = (columns::<ColourVector>(lattice), generate::random_source::<ColourVector>(lattice, 7));
    let bytes = |field: &HostField<ColourVector>| big_endian(field.numbers(), FilePrecision::Single);
    let data: Vec<_> = solutions.iter().map(bytes).collect();
    let (scalar, source) = (vec![0; 8 * lattice.volume()], bytes(&sources));
    let slice = vec![0; 8 * lattice.volume() / SIZE[3]];
    let number = record_xml("QLA_F_Complex", FilePrecision::Single, 8, 1);
    let hyper = number.replace("<recordtype>0", "<recordtype>2");
    let vector = record_xml("USQCD_F3_ColorVector", FilePrecision::Single, 24, 1);
    let file = file_xml(lattice);
    let of_type = |name: &str| format!("<usqcdKSPropFile><version>1.0</version><type>{name}</type></usqcdKSPropFile>");
    let scalar_type = of_type("USQCD_ColorVector_ScalarSource_ThreeSink");
    let pairs_type = of_type("USQCD_ColorVector_Source_Sink_Pairs");
    let begin = |kind| vec![("scidac-private-file-xml", file.as_bytes()), ("scidac-file-xml", kind)];
    let record = |xml| ("scidac-private-record-xml", xml);
    let field = |data| ("scidac-binary-data", data);
    for (xml, data_of_source) in [(&number, &scalar), (&hyper, &slice)] {
        let mut records = begin(scalar_type.as_bytes());
        records.extend([record(xml.as_bytes()), field(&data_of_source[..])]);
        data.iter().for_each(|data| records.extend([record(vector.as_bytes()), field(&data[..])]));
        let bytes = lime(&records);
        let file = read_fermions::<ColourVector>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
        assert!(farthest(&file.fields, &solutions) <= 1e-6);
        assert_eq!(file.header.fields, 3);
        // The program takes them, too.
        let room = Room::new();
        fs::write(room.path("three.lime"), &bytes).unwrap();
        assert_eq!(room.json("verify three.lime")["fields"], 3);
        assert_eq!(room.json("convert three.lime three.npy")["fields"], 3);
        let again = read_fermions::<ColourVector>(&room.path("three.npy"), &ReadOptions::default()).unwrap();
        assert!(farthest(&again.fields, &file.fields) == 0.0);
        room.json("convert three.lime one.npy --record 3");
        let one = read_fermion::<ColourVector>(&room.path("one.npy"), &ReadOptions::default()).unwrap();
        assert!(one.field == file.fields[2]);
    }
    let mut records = begin(pairs_type.as_bytes());
    for data in &data {
        records.extend([record(vector.as_bytes()), field(&source[..]), record(vector.as_bytes()), field(&data[..])]);
    }
    let file = read_fermions::<ColourVector>(ReadFrom::Memory(&lime(&records)), &ReadOptions::default()).unwrap();
    assert!(farthest(&file.fields, &solutions) <= 1e-6);
}

/// tmLQCD names extents and precision in a record of its own.
#[test]
fn extents_of_tmlqcd() {
    let field = generate::random_source::<Spinor>(lattice(), 3);
    let data = big_endian(field.numbers(), FilePrecision::Double);
    let etmc = |lx: usize, bits: usize, name: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<etmcFormat>\n  <field>{name}</field>\n  <precision>{bits}</precision>\n  \
             <flavours>1</flavours>\n  <lx>{lx}</lx>\n  <ly>4</ly>\n  <lz>6</lz>\n  <lt>8</lt>\n</etmcFormat>"
        )
    };
    let read = |kind: &str, xml: &str, more: &[(&str, &[u8])]| {
        let records = [&[("propagator-type", &b"DiracFermion_Sink"[..])], more, &[(kind, xml.as_bytes())]].concat();
        let bytes = lime(&[&records[..], &[("scidac-binary-data", &data)]].concat());
        read_fermion::<Spinor>(ReadFrom::Memory(&bytes), &ReadOptions::default()).map_err(|error| error.to_string())
    };
    for kind in ["etmc-propagator-format", "etmc-source-format"] {
        assert!(read(kind, &etmc(2, 64, "diracFermion"), &[]).unwrap().field == field);
        let said = read(kind, &etmc(4, 64, "diracFermion"), &[]).unwrap_err();
        assert!(said.contains(&format!("in double precision ({kind} record) has 147456")), "{said}");
        let said = read(kind, &etmc(2, 32, "diracFermion"), &[]).unwrap_err();
        assert!(said.contains(&format!("in single precision ({kind} record) has 36864")), "{said}");
        let said = read(kind, &etmc(2, 64, "su3gauge"), &[]).unwrap_err();
        assert!(said.contains(&format!("{kind} record: field is \"su3gauge\", expected diracFermion")), "{said}");
        let other = file_xml(Lattice::new([4, 2, 6, 8]).unwrap());
        let said =
            read(kind, &etmc(2, 64, "diracFermion"), &[("scidac-private-file-xml", other.as_bytes())]).unwrap_err();
        let expected = format!("the lattice is [2, 4, 6, 8] according to the {kind} record, but [4, 2, 6, 8]");
        assert!(said.contains(&expected), "{said}");
        let said = read(kind, &etmc(2, 64, "diracFermion").replace("<lx>2", "<lx>two"), &[]).unwrap_err();
        assert!(said.contains("extent is \"two\""), "{said}");
    }
}

/// Four records, each with the links of one direction.
fn directions(gauge: &HostGauge, precision: FilePrecision) -> (Vec<u8>, usize) {
    let lattice = gauge.lattice();
    let record = record_xml("QDP_D3_ColorMatrix", precision, 18 * precision.bytes(), 1);
    let data: [Vec<u8>; 4] = std::array::from_fn(|mu| {
        let links = (0..lattice.volume()).flat_map(|site| gauge.link(site, mu).iter().flatten().copied());
        big_endian(&links.collect::<Vec<_>>(), precision)
    });
    let sums: Vec<_> = data.iter().map(|data| checksum_xml(data, lattice.volume())).collect();
    let file = file_xml(lattice);
    let mut records = vec![("scidac-private-file-xml", file.as_bytes())];
    for (data, sum) in data.iter().zip(&sums) {
        records.push(("scidac-private-record-xml", record.as_bytes()));
        records.push(("scidac-binary-data", data));
        records.push(("scidac-checksum", sum.as_bytes()));
    }
    (lime(&records), data[0].len())
}

#[test]
fn links_with_a_record_for_each_direction() {
    let room = Room::new();
    let lattice = Lattice::new([4, 6, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 5, 0.4);
    let path = room.path("links.lime");
    for precision in PRECISIONS {
        let (bytes, length) = directions(&gauge, precision);
        fs::write(&path, &bytes).unwrap();
        let file = read_gauge(&path, &ReadOptions::default()).unwrap();
        let pairs = file.gauge.numbers().iter().zip(gauge.numbers());
        assert!(pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) <= limit(precision));
        assert!(matches!(file.checksum, Checksum::Verified(_)));
        assert_eq!((file.header.fields, file.header.components), (1, 36));
        on([2, 3, 1, 2], lattice, |world, section| {
            let part = read_gauge(SharedFile::new(&path, world).part(section), &ReadOptions::default()).unwrap();
            assert!(part.gauge == ferrite_tests::cut::links_of(section, &file.gauge) && part.checksum == file.checksum);
        });
        assert_eq!(room.json("verify links.lime")["field"], "gauge");
        room.json("convert links.lime one.ildg");
        assert!(read_gauge(&room.path("one.ildg"), &ReadOptions::default()).unwrap().gauge == file.gauge);
        // A bit of each record, low in a mantissa.
        for mu in 0..4 {
            let mut wrong = bytes.clone();
            let Arrangement::Directions(offsets) = file.header.arrangement else { panic!("{:?}", file.header) };
            wrong[offsets[mu] as usize + length / 2 / 144 * 144 + precision.bytes() - 1] ^= 1;
            fs::write(&path, &wrong).unwrap();
            let alone = read_gauge(&path, &ReadOptions::default()).unwrap_err().to_string();
            assert!(alone.contains("SciDAC checksum of the data is"), "{mu}: {alone}");
            let parts = on([1, 1, 2, 3], lattice, |world, section| {
                read_gauge(SharedFile::new(&path, world).part(section), &ReadOptions::default())
            });
            assert_eq!(sentence(parts), alone);
        }
        let cut = read_gauge(ReadFrom::Memory(&bytes[..bytes.len() - length]), &ReadOptions::default());
        assert!(cut.unwrap_err().to_string().contains("the file is cut short"));
    }
}

/// Links are written with a record for each direction by one process, into a pipe and by many, with the metadata of the original.
#[test]
fn links_are_written_with_a_record_for_each_direction() {
    let room = Room::new();
    let lattice = Lattice::new([4, 6, 4, 12]).unwrap();
    let gauge = generate::weak_field(lattice, 6, 0.4);
    for precision in PRECISIONS {
        let (by_hand, length) = directions(&gauge, precision);
        let metadata = vec![("ENSEMBLE_ID".into(), "weak".into())];
        let options = WriteOptions { format: &SCIDAC_DIRECTIONS, precision, metadata, ..Default::default() };
        write_gauge(&room.path("one"), &gauge, &options).unwrap();
        let header = inspect(&room.path("one"), &ReadOptions::default()).unwrap();
        assert_eq!((header.format, header.fields, header.precision), (options.format, 1, precision));
        let Arrangement::Directions(places) = header.arrangement else { panic!("{:?}", header.arrangement) };
        let expected = inspect(ReadFrom::Memory(&by_hand), &ReadOptions::default()).unwrap();
        let Arrangement::Directions(known) = expected.arrangement else { panic!("{:?}", expected.arrangement) };
        let same = |bytes: &[u8]| {
            for (place, known) in places.into_iter().zip(known) {
                let data = |bytes: &[u8], place: u64| bytes[place as usize..][..length].to_vec();
                assert!(data(bytes, place) == data(&by_hand, known));
            }
            let read = read_gauge(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap();
            assert_eq!(read.header.checksum, expected.checksum);
            assert!(matches!(read.checksum, Checksum::Verified(_)));
        };
        let one = fs::read(room.path("one")).unwrap();
        same(&one);
        let mut stream = Vec::new();
        write_gauge(WriteTo::Writer(&mut stream), &gauge, &options).unwrap();
        same(&stream);
        on([2, 3, 1, 2], lattice, |world, section| {
            let part = ferrite_tests::cut::links_of(section, &gauge);
            write_gauge(SharedFile::new(&room.path("many"), world).part(section), &part, &options).unwrap();
        });
        let many = fs::read(room.path("many")).unwrap();
        assert_eq!(many.len(), one.len());
        same(&many);
        // There and back: links, keys, and the list of copies.
        room.json("convert one two.ildg");
        room.json("convert two.ildg three --format scidac-directions");
        let three = read_gauge(&room.path("three"), &ReadOptions::default()).unwrap();
        let read = read_gauge(&room.path("one"), &ReadOptions::default()).unwrap();
        assert!(three.gauge == read.gauge);
        let text = |kind: &str| {
            let found = three.header.metadata.iter().find(|(its, _)| its == kind);
            found.unwrap_or_else(|| panic!("no {kind}")).1.clone()
        };
        assert!(text("scidac-record-xml").contains("ENSEMBLE_ID = weak"));
        assert_eq!(text("ferrite-copies").lines().count(), 2);
    }
    room.fails(2, "generate unit --lattice 2,2,2,2 -o unit.dat", &["end it in"]);
}

/// MILC's version 1 in both byte orders: magic number, extents, 8 bytes, links.
#[test]
fn the_older_format_of_milc() {
    let gauge = generate::weak_field(lattice(), 5, 0.4);
    for big in [true, false] {
        let word = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let real = |x: f64| word((x as f32).to_bits());
        let mut bytes = word(59354).to_vec();
        SIZE.iter().for_each(|extent| bytes.extend(word(*extent as u32)));
        bytes.extend([0; 8]);
        gauge.numbers().iter().for_each(|z| bytes.extend([real(z.re), real(z.im)].concat()));
        let file = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
        assert_eq!((file.header.format, file.header.lattice), (&MILC_V1, lattice()));
        let pairs = file.gauge.numbers().iter().zip(gauge.numbers());
        assert!(pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) < 1e-7);
        let cut = read_gauge(ReadFrom::Memory(&bytes[..bytes.len() - 1]), &ReadOptions::default());
        assert!(cut.unwrap_err().to_string().contains("the file is cut short"));
    }
}

/// The format that MILC shares with Fermilab: in both byte orders and precisions.
#[test]
fn staggered_propagators_of_milc() {
    let columns = columns::<ColourVector>(lattice());
    for (big, precision) in [true, false].into_iter().flat_map(|big| PRECISIONS.map(|precision| (big, precision))) {
        let ordered = |mut bytes: Vec<u8>| {
            if !big {
                bytes.reverse();
            }
            bytes
        };
        let word = |word: u32| ordered(word.to_be_bytes().to_vec());
        let [x, y, z, t] = SIZE.map(|extent| extent as u32);
        let header = |order: u32, numbers: u32| {
            let words = [0x7162_6434, 1_200_000_000, precision.bytes() as u32, numbers, x, y, z, t, order];
            words.into_iter().flat_map(word).collect::<Vec<u8>>()
        };
        let numbers = propagator(&columns, ColumnOrder::Vectors);
        let data = big_endian(&numbers, precision);
        let data: Vec<u8> = data.chunks(precision.bytes()).flat_map(|number| ordered(number.to_vec())).collect();
        let bytes = [header(0, 18), data.clone()].concat();
        let file = read_fermions::<ColourVector>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
        assert!(farthest(&file.fields, &columns) <= limit(precision), "{big} {precision}");
        assert_eq!((file.header.format, file.checksum), (&MILC_PROPAGATOR, Checksum::Absent));
        let refused = |bytes: &[u8]| {
            read_fermions::<ColourVector>(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap_err().to_string()
        };
        assert!(refused(&[header(1, 18), data.clone()].concat()).contains("order is \"1\", expected 0"));
        assert!(
            refused(&[header(0, 288), data.clone()].concat()).contains("numbers on a site is \"288\", expected 18")
        );
        assert!(refused(&bytes[..bytes.len() - 8]).contains("the file is cut short"));
        assert!(refused(&bytes[..30]).contains("the MILC header needs 36 bytes"));
        let spinors =
            read_fermions::<Spinor>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap_err().to_string();
        assert!(spinors.contains("the file holds a propagator of"), "{spinors}");
        // What is written is the same, byte by byte; MILC has single precision only.
        let endian = if big { Endian::Big } else { Endian::Little };
        let metadata = file.header.metadata.clone();
        let options = WriteOptions { format: &MILC_PROPAGATOR, precision, endian, metadata, ..Default::default() };
        let all: Vec<_> = columns.iter().collect();
        let mut out = Vec::new();
        let written = write_block(WriteTo::Writer(&mut out), &all, &[3], &options);
        if precision == FilePrecision::Double {
            assert!(written.unwrap_err().to_string().contains("single precision only"));
            continue;
        }
        written.unwrap();
        assert!(out == bytes);
        let room = Room::new();
        for grid in [[1, 2, 3, 4], [1, 1, 3, 1]] {
            on(grid, lattice(), |world, section| {
                let parts: Vec<_> = columns.iter().map(|field| field_of(section, field)).collect();
                let parts: Vec<_> = parts.iter().collect();
                write_block(SharedFile::new(&room.path("many"), world).part(section), &parts, &[3], &options).unwrap();
            });
            assert!(fs::read(room.path("many")).unwrap() == bytes, "{grid:?}");
        }
        let refused = [
            write_block(WriteTo::Writer(&mut out), &all[..2], &[2], &options),
            write_fermion(WriteTo::Writer(&mut out), all[0], &options),
            write_block(
                WriteTo::Writer(&mut out),
                &[&generate::random_source::<Spinor>(lattice(), 1); 12],
                &[12],
                &options,
            ),
        ];
        for refused in refused {
            let said = refused.unwrap_err().to_string();
            assert!(said.contains("a staggered propagator of 3 colour vectors"), "{said}");
        }
    }
    // A real one, against numbers taken from its bytes.
    let Some(folder) = refdata::folder() else { return };
    let path = folder.join("fields/ks.sample.l4448_m0.0200_t0_x0_y0_z0");
    let file = read_fermions::<ColourVector>(&path, &ReadOptions::default()).unwrap();
    let bytes = fs::read(&path).unwrap();
    let real = |number: usize| f32::from_le_bytes(bytes[36 + 4 * number..][..4].try_into().unwrap());
    for (site, source, sink) in [(0, 0, 0), (1, 0, 2), (77, 1, 0), (511, 2, 1)] {
        let number = 2 * (9 * site + 3 * source + sink);
        let found = file.fields[source].sites()[site][sink];
        assert_eq!((found.re as f32, found.im as f32), (real(number), real(number + 1)));
    }
    // There and back by way of SciDAC: MILC's bytes again, but for their order and the time stamp.
    let room = Room::new();
    fs::write(room.path("milc"), &bytes).unwrap();
    room.json("convert milc there.lime");
    room.json("convert there.lime back.milc");
    room.json("convert milc copy.milc");
    let swapped: Vec<u8> = bytes.chunks(4).flat_map(|word| word.iter().rev().copied()).collect();
    let [back, copy] = ["back.milc", "copy.milc"].map(|name| fs::read(room.path(name)).unwrap());
    assert!(back[..4] == swapped[..4] && back[8..] == swapped[8..]);
    assert!(copy == swapped);
}

/// An `.npy` file of these axes in either precision and byte order.
fn array(axes: &[usize], numbers: &[Complex64], (precision, order): (FilePrecision, char)) -> Vec<u8> {
    let axes: Vec<_> = axes.iter().map(usize::to_string).collect();
    let bytes = 2 * precision.bytes();
    let shape = axes.join(", ");
    let text = format!("{{'descr': '{order}c{bytes}', 'fortran_order': False, 'shape': ({shape}), }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(format!("{text:<117}\n").as_bytes());
    let data = big_endian(numbers, precision);
    let word = |word: &[u8]| word.iter().rev().copied().collect::<Vec<_>>();
    match order {
        '<' => file.extend(data.chunks(precision.bytes()).flat_map(word)),
        _ => file.extend(data),
    }
    file
}

fn as_arrays<T: Fermion + PartialEq + std::fmt::Debug>(site: &[usize]) {
    let columns = columns::<T>(lattice());
    let [x, y, z, t] = SIZE;
    let axes = [&[t, z, y, x], site].concat();
    let numbers = propagator(&columns, ColumnOrder::SpinMatrix);
    for precision in PRECISIONS {
        for order in ['<', '>'] {
            let bytes = array(&axes, &numbers, (precision, order));
            let file = read_fermions::<T>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
            assert!(farthest(&file.fields, &columns) <= limit(precision), "{precision} {order}");
            let header = inspect_block::<T>(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap().unwrap();
            assert_eq!((header.fields, header.lattice), (T::COMPONENTS, lattice()));
            assert!(read_block::<T>(ReadFrom::Memory(&bytes), 1).unwrap().field == file.fields[1]);
            let refused = |bytes: &[u8]| {
                read_fermions::<T>(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap_err().to_string()
            };
            assert!(refused(&bytes[..bytes.len() - 1]).contains("the file is cut short"));
            let longer = [&bytes[..], &[0; 8]].concat();
            assert!(refused(&longer).contains("8 bytes follow"), "{}", refused(&longer));
            let links = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap_err().to_string();
            assert!(links.contains("the file holds a propagator of"), "{links}");
        }
    }
    // By many processes.
    let bytes = array(&axes, &numbers, (FilePrecision::Double, '<'));
    let room = Room::new();
    let path = room.path("s.npy");
    fs::write(&path, bytes).unwrap();
    on([1, 2, 3, 2], lattice(), |world, section| {
        let part = SharedFile::new(&path, world).part(section);
        let file = read_fermions::<T>(part, &ReadOptions::default()).unwrap();
        for (found, column) in file.fields.iter().zip(&columns) {
            assert!(*found == field_of(section, column));
        }
    });
}

fn same_fields<T: Fermion>(room: &Room, names: [&str; 2]) {
    let [a, b] = names.map(|name| read_fermions::<T>(&room.path(name), &ReadOptions::default()).unwrap().fields);
    assert!(farthest(&a, &b) == 0.0, "{names:?}");
}

/// Propagators as the Python package's `S.array()` has them, with the source's indices behind those of the sink.
#[test]
fn arrays_of_propagators() {
    as_arrays::<Spinor>(&[4, 4, 3, 3]);
    as_arrays::<ColourVector>(&[3, 3]);
    let wrong = array(&[8, 6, 4, 2, 4, 4, 4, 3], &[], (FilePrecision::Double, '<'));
    let said = read_fermions::<Spinor>(ReadFrom::Memory(&wrong), &ReadOptions::default()).unwrap_err().to_string();
    assert!(said.contains("(4, 4, 3, 3) or (3, 3)"), "{said}");
    // The commands take them for the columns that they are.
    let room = Room::with_weak_field();
    for (operator, site) in [("wilson", &[4, 4, 3, 3][..]), ("asqtad", &[3, 3])] {
        let sources = if operator == "wilson" { 12 } else { 3 };
        let of = format!("--gauge weak.ildg --operator {operator} --mass 0.3");
        room.json(&format!("solve {of} --source point:0,0,0,0 --sources {sources} --tol 1e-6 -o columns.npy"));
        let axes = [&[8, 4, 4, 4], site].concat();
        let numbers = if operator == "wilson" {
            let columns = read_fermions::<Spinor>(&room.path("columns.npy"), &ReadOptions::default()).unwrap().fields;
            propagator(&columns, ColumnOrder::SpinMatrix)
        } else {
            let columns = read_fermions::<ColourVector>(&room.path("columns.npy"), &ReadOptions::default());
            propagator(&columns.unwrap().fields, ColumnOrder::SpinMatrix)
        };
        fs::write(room.path("array.npy"), array(&axes, &numbers, (FilePrecision::Double, '<'))).unwrap();
        for name in ["columns", "array"] {
            room.json(&format!("apply {of} --source file:{name}.npy -o {name}-image.npy"));
            room.json(&format!("solve {of} --source file:{name}.npy --tol 1e-4 -o {name}-solution.npy"));
        }
        assert_eq!(room.json("verify array.npy")["fields"], sources);
        room.json("convert array.npy converted.npy");
        let same =
            |a: &str, b: &str| assert!(fs::read(room.path(a)).unwrap() == fs::read(room.path(b)).unwrap(), "{a} {b}");
        same("columns-image.npy", "array-image.npy");
        same("columns-solution.npy", "array-solution.npy");
        // What solve and convert write differs in the order of bytes.
        match operator {
            "wilson" => same_fields::<Spinor>(&room, ["columns.npy", "converted.npy"]),
            _ => same_fields::<ColourVector>(&room, ["columns.npy", "converted.npy"]),
        }
        let other = if operator == "wilson" { "asqtad" } else { "wilson" };
        let apply = format!("apply --gauge weak.ildg --operator {other} --mass 0.3 --source file:array.npy -o no.npy");
        room.fails(2, &apply, &["array.npy: the file holds", "complex numbers per site"]);
    }
}

/// Solves for all components of a point are one propagator, which is a source of others, and goes there and back.
#[test]
fn the_program_reads_and_writes_propagators() {
    let room = Room::with_weak_field();
    let solve = "solve --gauge weak.ildg --source point:0,0,0,0 --tol 1e-6";
    room.json(&format!("{solve} --mass 0.3 --sources 12 -o wilson.lime"));
    room.json(&format!("{solve} --mass 0.3 --sources 12 -o wilson.npy"));
    room.json(&format!("{solve} --operator staggered --mass 0.3 --sources 3 -o staggered.scidac"));
    let verified = room.json("verify wilson.lime");
    assert_eq!((&verified["field"], &verified["fields"]), (&"spinor".into(), &12.into()));
    assert_eq!(verified["checksum"]["status"], "verified");
    let said = room.run("verify staggered.scidac").stdout;
    assert!(said.contains("fields               3, the columns of a propagator"), "{said}");
    room.json("convert wilson.lime there.npy");
    room.json("convert there.npy back.lime --precision double");
    let read = |name: &str| read_fermions::<Spinor>(&room.path(name), &ReadOptions::default()).unwrap().fields;
    let known = read("wilson.npy");
    for name in ["wilson.lime", "there.npy", "back.lime"] {
        assert!(farthest(&read(name), &known) == 0.0, "{name}");
    }
    let apply = "apply --gauge weak.ildg --mass 0.3 --source file:wilson";
    room.json(&format!("{apply}.lime -o a.npy"));
    room.json(&format!("{apply}.npy -o b.npy"));
    assert!(fs::read(room.path("a.npy")).unwrap() == fs::read(room.path("b.npy")).unwrap());
    // The staggered one goes to MILC's format, too; others do not.
    room.json(&format!("{solve} --operator staggered --mass 0.3 --sources 3 -o staggered.milc"));
    let [milc, known] = ["staggered.milc", "staggered.scidac"]
        .map(|name| read_fermions::<ColourVector>(&room.path(name), &ReadOptions::default()).unwrap().fields);
    assert!(farthest(&milc, &known) < limit(FilePrecision::Single));
    room.fails(2, &format!("{solve} --mass 0.3 --sources 12 -o x.milc"), &["x.milc", "3 colour vectors"]);
    room.fails(2, "convert wilson.lime x.milc", &["x.milc", "3 colour vectors"]);
    room.fails(2, "convert wilson.lime x.dat --format milc", &["spinor", "--format npy"]);
    room.fails(2, "convert staggered.scidac x.milc --precision double", &["hold single precision", "SciDAC or npy"]);
    // Any other number of fields has no such file, and that is known before the work.
    room.fails(
        2,
        &format!("{solve} --mass 0.3 --sources 11 -o x.lime"),
        &["x.lime", "end the name in .npy to write 11 fields into one file"],
    );
    room.fails(2, "convert wilson.lime x.ildg", &["x.ildg", ".npy or .lime"]);
    room.json("convert wilson.npy one.dat --format scidac");
    let mut many = solve.to_owned();
    (0..2).for_each(|seed| many += &format!(" --source random:{seed}"));
    let many = many.replace(" --source point:0,0,0,0", "");
    room.json(&format!("{many} --mass 0.3 -o two.npy"));
    room.fails(2, "convert two.npy two.dat --format scidac", &["two.npy holds 2 spinor fields", "--format npy"]);
    room.json("convert two.npy two.dat --format npy --precision single");
    // One field alone.
    let one = WriteOptions { format: &NPY, ..Default::default() };
    write_block(&room.path("single.npy"), &[&known[0]], &[1], &one).unwrap();
    room.json("convert single.npy single.lime");
    write_fermion(&room.path("other.npy"), &known[0], &one).unwrap();
    room.json("convert other.npy other.lime");
    let sum = |name: &str| room.json(&format!("verify {name}"))["norm2"].as_f64().unwrap();
    assert_eq!(sum("single.lime"), sum("other.lime"));
}
