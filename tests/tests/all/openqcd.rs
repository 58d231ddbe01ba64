//! openQCD's configurations: against loops that follow its description, and against one of its own with its gradient flow.
use crate::program::{Room, answers, number};
use crate::sections::{on, sentence};
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::files::{
    ILDG, OPENQCD, Problem, ReadFrom, ReadOptions, SharedFile, WriteOptions, WriteTo, inspect, read_gauge, write_gauge,
};
use ferrite::gauge::{generate, measure};
use ferrite::lattice::Lattice;
use ferrite_tests::cut::links_of;
use ferrite_tests::refdata;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];

fn gauge(size: [usize; 4]) -> HostGauge {
    generate::weak_field(Lattice::new(size).unwrap(), 11, 0.6)
}

fn options() -> WriteOptions {
    WriteOptions { format: &OPENQCD, ..Default::default() }
}

fn written(gauge: &HostGauge) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_gauge(WriteTo::Writer(&mut bytes), gauge, &options()).unwrap();
    bytes
}

fn read(bytes: &[u8], options: &ReadOptions) -> Result<HostGauge, String> {
    read_gauge(ReadFrom::Memory(bytes), options).map(|file| file.gauge).map_err(|error| error.to_string())
}

/// The file, number by number, in the words of openQCD: coordinates (x0, x1, x2, x3) = (t, x, y, z), and eight links for each odd
/// point.
fn by_the_book(gauge: &HostGauge) -> Vec<u8> {
    let [x, y, z, t] = gauge.lattice().size();
    let n = [t, x, y, z];
    let mut bytes: Vec<u8> = n.iter().flat_map(|extent| (*extent as i32).to_le_bytes()).collect();
    bytes.extend((3.0 * measure::plaquette(gauge).mean).to_le_bytes());
    let link = |point: [usize; 4], mu: usize| -> Matrix {
        let [x0, x1, x2, x3] = point;
        *gauge.link(x1 + x * (x2 + y * (x3 + z * x0)), [3, 0, 1, 2][mu])
    };
    let mut put = |link: Matrix| {
        for number in link.iter().flatten() {
            bytes.extend(number.re.to_le_bytes());
            bytes.extend(number.im.to_le_bytes());
        }
    };
    for x0 in 0..n[0] {
        for x1 in 0..n[1] {
            for x2 in 0..n[2] {
                for x3 in 0..n[3] {
                    let point = [x0, x1, x2, x3];
                    if (x0 + x1 + x2 + x3) % 2 == 1 {
                        for mu in 0..4 {
                            put(link(point, mu));
                            let mut behind = point;
                            behind[mu] = (point[mu] + n[mu] - 1) % n[mu];
                            put(link(behind, mu));
                        }
                    }
                }
            }
        }
    }
    bytes
}

#[test]
fn the_order_is_that_of_the_description() {
    for size in [SIZE, [6, 2, 4, 2], [4, 4, 4, 4]] {
        let gauge = gauge(size);
        let bytes = by_the_book(&gauge);
        assert_eq!(bytes.len(), 24 + 4 * 144 * gauge.lattice().volume());
        assert!(written(&gauge) == bytes, "{size:?}");
        let file = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
        assert!(file.gauge == gauge, "{size:?}");
        assert_eq!((file.header.format, file.header.lattice.size()), (&OPENQCD, size));
    }
}

/// Parts are cut in every direction, also to two sites; none of them has all links of a record at its border.
#[test]
fn many_processes_read_and_write_the_same_bytes() {
    let room = Room::new();
    let (gauge, path) = (gauge([4, 6, 4, 12]), room.path("many"));
    let bytes = by_the_book(&gauge);
    for grid in [[2, 1, 1, 1], [1, 3, 1, 1], [1, 1, 2, 1], [1, 1, 1, 6], [2, 3, 2, 2]] {
        on(grid, gauge.lattice(), |world, section| {
            write_gauge(SharedFile::new(&path, world).part(section), &links_of(section, &gauge), &options()).unwrap();
        });
        assert!(fs::read(&path).unwrap() == bytes, "{grid:?}");
        on(grid, gauge.lattice(), |world, section| {
            let part = read_gauge(SharedFile::new(&path, world).part(section), &ReadOptions::default()).unwrap();
            assert!(part.gauge == links_of(section, &gauge), "{grid:?}");
        });
    }
}

/// openQCD's own file: its plaquette to the last bits, and the same bytes when it is written again.
#[test]
fn a_file_of_openqcd() {
    let Some(folder) = refdata::folder() else { return };
    let path = folder.join("openqcd/openQCD_qcd1_pb_L8T8_b6.0_c1.234_k0.13_r0_id4n1");
    let file = read_gauge(&path, &ReadOptions::default()).unwrap();
    let stored = file.header.plaquette.unwrap().value;
    // 24576 plaquettes of size 1 have a mean of 1.7e-3: 1e-16 √24576 / 24576, and as much for products.
    assert!((file.plaquette.mean - stored).abs() < 1e-17, "{} {stored}", file.plaquette.mean);
    let (original, again) = (fs::read(&path).unwrap(), written(&file.gauge));
    assert!(original[..16] == again[..16] && original[24..] == again[24..]);
}

/// HiRep's record of openQCD-2.0's Wilson flow of this file: actions and charge at t = 0 and 0.2.
#[test]
fn the_flow_of_openqcd() {
    let Some(folder) = refdata::folder() else { return };
    let answers = answers(&folder, "openqcd_flow_8888.json");
    let path = folder.join("openqcd/openQCD_qcd1_pb_L8T8_b6.0_c1.234_k0.13_r0_id4n1");
    let found = Room::new().json(&format!("measure {} --flow 0.2 --flow-step 0.02", path.display()));
    let points = found["configurations"][0]["flow"].as_array().unwrap();
    let volume = 4096.0;
    for (point, answer) in [(&points[0], &answers["flow"][0]), (points.last().unwrap(), &answers["flow"][1])] {
        assert!((number(&point["t"]) - number(&answer["t"])).abs() < 1e-12);
        let energy = &point["energy"];
        // Sums over sites of -tr F F over six planes; openQCD counts its charge with the other sign.
        let yact = volume * (number(&energy["space"]) + number(&energy["time"]));
        let wact = volume * number(&point["plaquette_energy"]);
        // Seven digits are printed, and the scheme of third order with steps of 0.02 is off by as much.
        for (found, name) in [(yact, "Yact"), (wact, "Wact")] {
            let known = number(&answer[name]);
            println!("{name}: {found} {known}");
            assert!((found / known - 1.0).abs() < 1e-6, "{name}: {found} {known}");
        }
        assert!((number(&point["charge"]) + number(&answer["Q"])).abs() < 1e-3);
    }
}

#[test]
fn files_that_are_not_right() {
    let gauge = gauge(SIZE);
    let good = written(&gauge);
    let default = ReadOptions::default();
    let refused = |bytes: &[u8]| read(bytes, &default).unwrap_err();
    // Cut short, with what follows, and with other extents.
    for cut in [24, 1000, good.len() - 1] {
        let said = refused(&good[..cut]);
        assert!(
            said.contains("the field on a 2×4×6×8 lattice in double precision needs 221184 bytes from byte 24"),
            "{said}"
        );
    }
    for cut in [1, 16, 23] {
        let said = refused(&good[..cut]);
        assert!(said.contains("starts with the bytes 08"), "{said}");
    }
    assert!(refused(&[&good[..], b"more"].concat()).contains("4 bytes follow the last number"));
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    assert!(refused(&with(0, &6i32.to_le_bytes())).contains("bytes follow the last number"));
    assert!(refused(&with(0, &7i32.to_le_bytes())).contains("extent t = 7"));
    // The plaquette takes the place of a checksum.
    let other = 3.0 * measure::plaquette(&gauge).mean + 1e-9;
    let said = refused(&with(16, &other.to_le_bytes()));
    assert!(said.contains("plaquette of the links is") && said.contains("read with verification off"), "{said}");
    for wrong in [f64::NAN, f64::INFINITY, -4.0] {
        assert!(refused(&with(16, &wrong.to_le_bytes())).contains("plaquette of the links is"));
    }
    let lenient = ReadOptions { verify: false, ..Default::default() };
    assert!(read(&with(16, &other.to_le_bytes()), &lenient).unwrap() == gauge);
    // Two links of a record in the other's place, as those of another order would be.
    let swapped = [&good[..24], &good[168..312], &good[24..168], &good[312..]].concat();
    assert!(refused(&swapped).contains("plaquette of the links is"));
    // In the other byte order.
    let mut big: Vec<u8> =
        good[..16].chunks(4).flat_map(|word| word.iter().rev().copied().collect::<Vec<_>>()).collect();
    big.extend(good[16..].chunks(8).flat_map(|number| number.iter().rev().copied().collect::<Vec<_>>()));
    assert!(read(&big, &default).unwrap() == gauge);
    // What the format cannot hold.
    let single = WriteOptions { precision: ferrite::files::FilePrecision::Single, ..options() };
    let said = write_gauge(WriteTo::Writer(&mut Vec::new()), &gauge, &single).unwrap_err().to_string();
    assert!(said.contains("openQCD's files hold double precision only"), "{said}");
    // Many ranks say what one says.
    let room = Room::new();
    let path = room.path("bad");
    fs::write(&path, &swapped).unwrap();
    let parts = on([1, 2, 3, 2], gauge.lattice(), |world, section| {
        read_gauge(SharedFile::new(&path, world).part(section), &default)
    });
    assert_eq!(sentence(parts), read_gauge(&path, &default).unwrap_err().to_string());
}

/// Links in t at the end are zero, and the mean in the header counts their plaquettes as zero.
#[test]
fn open_boundary_conditions_are_named() {
    let mut gauge = gauge(SIZE);
    let lattice = gauge.lattice();
    for site in (0..lattice.volume()).filter(|site| lattice.coordinates(*site)[3] == SIZE[3] - 1) {
        gauge.links_mut()[4 * site + 3] = Matrix::default();
    }
    let bytes = by_the_book(&gauge);
    assert!(written(&gauge) == bytes);
    let error = read_gauge(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.problem, Problem::OpenBoundary), "{error}");
    let allowed = ReadOptions { allow_non_unitary: true, ..Default::default() };
    assert!(read(&bytes, &allowed).unwrap() == gauge);
    let header = inspect(ReadFrom::Memory(&bytes), &ReadOptions::default()).unwrap();
    assert!((header.plaquette.unwrap().value - measure::plaquette(&gauge).mean).abs() < 1e-15);
    let room = Room::new();
    fs::write(room.path("open"), &bytes).unwrap();
    room.fails(2, "plaquette open", &["open: has open boundary conditions in t", "(--allow-non-unitary)"]);
    room.fails(1, "verify open", &["has open boundary conditions in t"]);
    let verified = room.json("verify open --allow-non-unitary");
    assert_eq!(verified["open_boundary"], true);
    // In other formats, too; no projection makes links of zeros.
    room.json("convert open open.ildg --allow-non-unitary");
    let read = "open.ildg: has open boundary conditions in t";
    room.fails(2, "plaquette open.ildg", &[read, "(--allow-non-unitary)"]);
    room.fails(2, "plaquette open.ildg --allow-non-unitary --reunitarise", &[read, "without projection to SU(3)"]);
    // Links in t that are zero elsewhere are something else.
    let mut other = gauge.clone();
    for site in (0..lattice.volume()).filter(|site| lattice.coordinates(*site)[3] == 1) {
        other.links_mut()[4 * site + 3] = Matrix::default();
    }
    fs::write(room.path("other"), by_the_book(&other)).unwrap();
    room.fails(2, "plaquette other", &["deviates from SU(3)"]);
}

/// Each command that takes such links says what it assumes, on one process and on many.
#[test]
fn open_boundary_conditions_are_warned_of() {
    let room = Room::new();
    room.json("generate weak-field --lattice 4,4,4,8 --seed 3 --noise 0.3 -o closed.ildg");
    let mut gauge = read_gauge(&room.path("closed.ildg"), &ReadOptions::default()).unwrap().gauge;
    let lattice = gauge.lattice();
    for site in (0..lattice.volume()).filter(|site| lattice.coordinates(*site)[3] == 7) {
        gauge.links_mut()[4 * site + 3] = Matrix::default();
    }
    let allowed = WriteOptions { format: &ILDG, ..Default::default() };
    write_gauge(&room.path("open.ildg"), &gauge, &allowed).unwrap();
    fs::write(
        room.path("run.toml"),
        "configurations = [\"open.ildg\"]\n[solve]\noperator = \"wilson\"\nmass = 0.3\ntol = 1e-6\nallow-non-unitary = true\n",
    )
    .unwrap();
    let warning = "warning: open.ildg: open boundary conditions in t";
    for command in [
        "plaquette open.ildg --allow-non-unitary",
        "verify open.ildg --allow-non-unitary",
        "measure open.ildg --allow-non-unitary",
        "measure open.ildg --allow-non-unitary --flow 0.1",
        "solve --gauge open.ildg --allow-non-unitary --mass 0.3 --source random:1 --tol 1e-6 -o x.npy",
        "apply --gauge open.ildg --allow-non-unitary --mass 0.3 --source random:1 -o b.npy",
        "trace open.ildg --allow-non-unitary --mass 0.3 --noise 1",
        "spectrum run.toml --out out",
    ] {
        let run = room.run(&format!("{command} --backend cpu"));
        assert_eq!(run.code, Some(0), "{command}: {}", run.stderr);
        let said: Vec<_> = run.stderr.lines().filter(|line| line.starts_with(warning)).collect();
        assert_eq!(said.len(), 1, "{command}: {}", run.stderr);
        assert!(said[0].contains("and with them t0 and w0, are means over all time slices"), "{said:?}");
        let closed = room.run(&format!("{} --backend cpu", command.replace("open.ildg", "closed.ildg")));
        assert!(!closed.stderr.contains("open boundary"), "{command}: {}", closed.stderr);
    }
    // The parts of many processes: links that are zero are in some of them.
    let path = room.path("open.ildg");
    let options = ReadOptions { allow_non_unitary: true, ..Default::default() };
    for grid in [[1, 1, 1, 2], [2, 1, 2, 1]] {
        on(grid, lattice, |world, section| {
            assert!(read_gauge(SharedFile::new(&path, world).part(section), &options).unwrap().open_boundary);
        });
    }
}
