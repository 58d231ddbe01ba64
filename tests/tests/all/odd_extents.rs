//! Lattices with odd extents: fields on them are read, checked, converted and written; devices refuse them.
use crate::program::Room;
use crate::sections::{field_of, on};
use ferrite::backend::Cpu;
use ferrite::domain::Domain;
use ferrite::field::host::{HostField, HostGauge, Spinor};
use ferrite::files::{
    FilePrecision, ILDG, MILC, NERSC, NERSC_3X3, NPY, OPENQCD, ReadFrom, ReadOptions, SCIDAC, SCIDAC_DIRECTIONS,
    SharedFile, WriteOptions, WriteTo, read_fermions, read_gauge, write_block, write_fermion, write_gauge,
};
use ferrite::gauge::measure;
use ferrite::lattice::Lattice;
use num_complex::Complex64;

const SIZES: [[usize; 4]; 3] = [[3, 5, 1, 7], [2, 3, 4, 5], [5, 5, 5, 5]];

/// Numbers from −1 to 1.
fn noise() -> impl FnMut() -> f64 {
    let mut state = 9u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn gauge(size: [usize; 4]) -> HostGauge {
    let mut gauge = HostGauge::unit(Lattice::of_any_extents(size).unwrap());
    let mut next = noise();
    gauge.numbers_mut().iter_mut().for_each(|z| *z += Complex64::new(next(), next()));
    gauge.reunitarise();
    gauge
}

fn spinor(size: [usize; 4]) -> HostField<Spinor> {
    let mut field = HostField::<Spinor>::zero(Lattice::of_any_extents(size).unwrap());
    let mut next = noise();
    field.numbers_mut().iter_mut().for_each(|z| *z = Complex64::new(next(), next()));
    field
}

/// Re tr P / 3 of all planes, by loops over coordinates.
fn plaquette(gauge: &HostGauge) -> f64 {
    let size = gauge.lattice().size();
    let [nx, ny, nz, nt] = size;
    let link = |x: [usize; 4], mu: usize| gauge.link(x[0] + nx * (x[1] + ny * (x[2] + nz * x[3])), mu);
    let (mut sum, mut count) = (0.0, 0);
    for number in 0..nx * ny * nz * nt {
        let x = [number % nx, number / nx % ny, number / (nx * ny) % nz, number / (nx * ny * nz)];
        for (mu, nu) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let ahead = |mu: usize| std::array::from_fn(|k| if k == mu { (x[k] + 1) % size[k] } else { x[k] });
            let (a, b, c, d) = (link(x, mu), link(ahead(mu), nu), link(ahead(nu), mu), link(x, nu));
            for [i, j, k, l] in (0..81).map(|n| [n % 3, n / 3 % 3, n / 9 % 3, n / 27]) {
                sum += (a[i][j] * b[j][k] * c[l][k].conj() * d[i][l].conj()).re;
            }
            count += 3;
        }
    }
    sum / f64::from(count)
}

#[test]
fn every_format_but_openqcds_holds_them() {
    for size in SIZES {
        let gauge = gauge(size);
        // Sums of some thousand numbers of order 1 in another order.
        assert!((measure::plaquette(&gauge).mean - plaquette(&gauge)).abs() < 1e-14);
        for format in [&NERSC, &NERSC_3X3, &ILDG, &SCIDAC, &SCIDAC_DIRECTIONS, &MILC, &NPY] {
            let precision = if format == &MILC { FilePrecision::Single } else { FilePrecision::Double };
            let options = WriteOptions { format, precision, ..Default::default() };
            let mut bytes = Vec::new();
            write_gauge(WriteTo::Writer(&mut bytes), &gauge, &options).unwrap();
            let file = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
            assert_eq!(file.gauge.lattice().size(), size);
            let pairs = file.gauge.numbers().iter().zip(gauge.numbers());
            let limit = if format == &MILC { 1e-7 } else { 1e-15 };
            assert!(pairs.map(|(a, b)| (a - b).norm()).fold(0.0, f64::max) <= limit, "{format} {size:?}");
        }
        let options = WriteOptions { format: &OPENQCD, ..Default::default() };
        let said = write_gauge(WriteTo::Writer(&mut Vec::new()), &gauge, &options).unwrap_err().to_string();
        assert!(said.contains("even extents only"), "{said}");
        let columns: Vec<_> = (0..12).map(|_| spinor(size)).collect();
        for format in [&SCIDAC, &NPY] {
            let options = WriteOptions { format, ..Default::default() };
            let (mut one, mut all) = (Vec::new(), Vec::new());
            write_fermion(WriteTo::Writer(&mut one), &columns[0], &options).unwrap();
            write_block(WriteTo::Writer(&mut all), &columns.iter().collect::<Vec<_>>(), &[12], &options).unwrap();
            for (bytes, count) in [(&one, 1), (&all, 12)] {
                let read = read_fermions::<Spinor>(ReadFrom::Memory(bytes), &ReadOptions::default()).unwrap();
                assert!(read.fields == columns[..count]);
            }
        }
    }
}

/// Many processes write the bytes of one, and each reads its part; header and plaquette are those of the whole.
#[test]
fn many_processes_read_and_write_them() {
    let room = Room::new();
    for (size, grids) in [
        ([3, 5, 1, 7], vec![[3, 1, 1, 1], [1, 5, 1, 1], [1, 1, 1, 7]]),
        ([2, 3, 4, 5], vec![[2, 3, 1, 1], [1, 3, 2, 1], [1, 1, 4, 1]]),
        ([3, 4, 5, 6], vec![[1, 1, 5, 2], [3, 2, 1, 1], [1, 4, 1, 3]]),
    ] {
        let gauge = gauge(size);
        let (lattice, spinor) = (gauge.lattice(), spinor(size));
        let formats = [&NERSC, &ILDG, &SCIDAC, &SCIDAC_DIRECTIONS, &MILC, &NPY];
        for (format, grid) in formats.into_iter().flat_map(|format| grids.iter().map(move |grid| (format, *grid))) {
            let precision = format.only_precision().unwrap_or(FilePrecision::Double);
            // With a date of its own, where a header has one.
            let metadata = vec![("time stamp".into(), "now".into())];
            let options = WriteOptions { format, precision, metadata, ..Default::default() };
            let (one, many) = (room.path("one"), room.path("many"));
            write_gauge(&one, &gauge, &options).unwrap();
            let known = read_gauge(&one, &ReadOptions::default()).unwrap();
            on(grid, lattice, |world, section| {
                let part = ferrite_tests::cut::links_of(section, &gauge);
                write_gauge(SharedFile::new(&many, world).part(section), &part, &options).unwrap();
                let file = SharedFile::new(&many, world).part(section);
                let read = read_gauge(file, &ReadOptions::default()).unwrap();
                assert!(read.gauge == ferrite_tests::cut::links_of(section, &known.gauge), "{format} {grid:?}");
                let sums = (&read.header.checksum, read.plaquette, read.link_trace, read.unitarity);
                assert_eq!(sums, (&known.header.checksum, known.plaquette, known.link_trace, known.unitarity));
            });
            assert!(read_gauge(&many, &ReadOptions::default()).unwrap().gauge == known.gauge);
        }
        let options = WriteOptions { format: &SCIDAC, ..Default::default() };
        on(grids[0], lattice, |world, section| {
            let path = room.path("spinor");
            let file = SharedFile::new(&path, world).part(section);
            write_fermion(file, &field_of(section, &spinor), &options).unwrap();
            let read = read_fermions::<Spinor>(file, &ReadOptions::default()).unwrap();
            assert!(read.fields[0] == field_of(section, &spinor));
        });
    }
}

#[test]
fn devices_and_commands_that_need_them_refuse() {
    let size = [3, 4, 5, 6];
    let gauge = gauge(size);
    let said = Domain::single(Cpu::new(Some(1)), gauge.lattice()).err().map(|error| error.to_string());
    assert!(said.as_ref().is_some_and(|said| said.contains("3")), "{said:?}");
    let room = Room::new();
    write_gauge(&room.path("odd.ildg"), &gauge, &WriteOptions::default()).unwrap();
    let verified = room.json("verify odd.ildg");
    assert_eq!((&verified["ok"], &verified["lattice"]), (&true.into(), &serde_json::json!(size)));
    let plaquettes = room.json("plaquette odd.ildg");
    assert_eq!(plaquettes["backend"], "host");
    assert!((plaquettes["plaquette"]["mean"].as_f64().unwrap() - plaquette(&gauge)).abs() < 1e-14);
    for format in ["nersc3x3", "scidac", "npy", "ildg"] {
        room.json(&format!("convert odd.ildg copy.{format}"));
        let copy = read_gauge(&room.path(&format!("copy.{format}")), &ReadOptions::default()).unwrap();
        assert!(copy.gauge == gauge, "{format}");
    }
    room.fails(2, "convert odd.ildg odd.openqcd", &["odd.openqcd", "even extents only"]);
    let parts = ["odd.ildg: extent x = 3 of lattice [3, 4, 5, 6]: every extent must be even", "`ferrite verify`"];
    room.fails(2, "solve --gauge odd.ildg --mass 0.1 --source random:1", &parts);
    room.fails(2, "measure odd.ildg", &parts);
    room.fails(2, "smear odd.ildg -o out.ildg --rho 0.1", &parts);
    room.fails(2, "fix-gauge odd.ildg -o out.ildg", &parts);
    room.fails(2, "links asqtad odd.ildg fat.npy long.npy --u0 1", &parts);
    room.fails(2, "generate unit --lattice 3,4,5,6 -o out.ildg", &["extent x = 3", "must be even"]);
    // A file without extents: those of the flag are used.
    let data: Vec<u8> =
        gauge.numbers().iter().flat_map(|z| [z.re.to_be_bytes(), z.im.to_be_bytes()].concat()).collect();
    let mut bare = vec![0; 144];
    bare[..6].copy_from_slice(&[0x45, 0x67, 0x89, 0xab, 0, 1]);
    bare[8..16].copy_from_slice(&(data.len() as u64).to_be_bytes());
    bare[16..32].copy_from_slice(b"ildg-binary-data");
    bare.extend(data);
    std::fs::write(room.path("bare.lime"), bare).unwrap();
    assert_eq!(room.json("verify bare.lime --lattice 3,4,5,6")["ok"], true);
    room.fails(2, "verify bare.lime --lattice 0,4,5,6", &["extent x of lattice [0, 4, 5, 6] is 0"]);
}
