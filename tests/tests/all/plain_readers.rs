//! Files of links that Ferrite writes, read by plain code that goes byte by byte through what the formats' descriptions say and shares
//! nothing with the library's readers: numbers, checksums, and the entries of headers about the links.
use crate::program::Room;
use crate::sections::on;
use ferrite::field::host::HostGauge;
use ferrite::files::{
    FileFormat, FilePrecision, ILDG, MILC, NERSC, NERSC_3X3, OPENQCD, SCIDAC, SCIDAC_DIRECTIONS, SharedFile,
    WriteOptions, write_gauge,
};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_tests::testkit::matrix::{Square, multiply};
use num_complex::Complex64;
use std::collections::HashMap;
use std::fs;

const SIZE: [usize; 4] = [2, 4, 6, 8];
const SITES: usize = 2 * 4 * 6 * 8;

/// Links by place, direction, row and column.
type Links = HashMap<([usize; 4], usize), Square<3>>;

/// Places in the order in which x runs fastest and t slowest.
fn places() -> impl Iterator<Item = [usize; 4]> {
    let [nx, ny, nz, nt] = SIZE;
    (0..nt).flat_map(move |t| (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z, t]))))
}

/// Numbers one after the other.
struct ByteNumbers<'a> {
    bytes: &'a [u8],
    big: bool,
    /// 4 or 8.
    size: usize,
}

impl ByteNumbers<'_> {
    fn real(&mut self) -> f64 {
        let (mut number, rest) = (self.bytes[..self.size].to_vec(), &self.bytes[self.size..]);
        self.bytes = rest;
        if self.big {
            number.reverse();
        }
        let bits = number.iter().rev().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        if self.size == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) }
    }
    fn matrix(&mut self, rows: usize) -> Square<3> {
        let mut matrix = [[Complex64::ZERO; 3]; 3];
        for row in matrix.iter_mut().take(rows) {
            for number in row {
                let re = self.real();
                *number = Complex64::new(re, self.real());
            }
        }
        if rows == 2 {
            let [a, b, _] = matrix;
            matrix[2] = [(1, 2), (2, 0), (0, 1)].map(|(l, m)| (a[l] * b[m] - a[m] * b[l]).conj());
        }
        matrix
    }
    /// Four links on each site.
    fn sites(mut self, rows: usize) -> Links {
        let mut links = Links::new();
        for place in places() {
            for mu in 0..4 {
                links.insert((place, mu), self.matrix(rows));
            }
        }
        assert!(self.bytes.is_empty(), "{} bytes are left", self.bytes.len());
        links
    }
}

/// CRC-32, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// SciDAC's two sums over sites of so many bytes.
fn scidac(data: &[u8]) -> [u32; 2] {
    let sites = data.chunks(data.len() / SITES).enumerate();
    sites.fold([0; 2], |[a, b], (rank, site)| {
        let crc = crc(site);
        [a ^ crc.rotate_left((rank % 29) as u32), b ^ crc.rotate_left((rank % 31) as u32)]
    })
}

/// Records of a LIME file: type, begin and end flags, content.
fn lime(bytes: &[u8]) -> Vec<(String, [bool; 2], &[u8])> {
    let (mut at, mut records) = (0, Vec::new());
    while at < bytes.len() {
        let header = &bytes[at..at + 144];
        assert_eq!(header[..6], [0x45, 0x67, 0x89, 0xab, 0, 1], "magic number and version at {at}");
        let length = header[8..16].iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        let kind = header[16..].split(|byte| *byte == 0).next().unwrap();
        let flags = [header[6] & 0x80 != 0, header[6] & 0x40 != 0];
        records.push((String::from_utf8(kind.to_vec()).unwrap(), flags, &bytes[at + 144..at + 144 + length]));
        at += 144 + length.div_ceil(8) * 8;
    }
    assert_eq!(at, bytes.len());
    records
}

/// Text between `<tag>` and `</tag>`.
fn element(text: &[u8], tag: &str) -> String {
    let text = std::str::from_utf8(text).unwrap();
    let (_, behind) = text.split_once(&format!("<{tag}>")).unwrap_or_else(|| panic!("no {tag} in {text}"));
    behind.split_once(&format!("</{tag}>")).unwrap().0.trim().to_string()
}

fn checksum(text: &[u8]) -> [u32; 2] {
    ["suma", "sumb"].map(|tag| u32::from_str_radix(&element(text, tag), 16).unwrap())
}

/// Links of an ILDG file or of a SciDAC file with one record or four.
fn of_lime(bytes: &[u8], size: usize) -> Links {
    let records = lime(bytes);
    let all = |kind: &str| -> Vec<&[u8]> { records.iter().filter(|r| r.0 == kind).map(|r| r.2).collect() };
    // Messages begin and end, and none lies in another.
    let mut inside = false;
    for (kind, [begins, ends], _) in &records {
        assert_eq!(*begins, !inside, "{kind}");
        inside = !ends;
    }
    assert!(!inside);
    let dims = element(all("scidac-private-file-xml")[0], "dims");
    assert_eq!(dims.split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<usize>>(), SIZE);
    let letter = if size == 4 { "F" } else { "D" };
    let (privates, sums) = (all("scidac-private-record-xml"), all("scidac-checksum"));
    let big = |bytes| ByteNumbers { bytes, big: true, size };
    if let [data] = all("ildg-binary-data")[..] {
        let format = all("ildg-format")[0];
        let extents = ["lx", "ly", "lz", "lt"].map(|tag| element(format, tag).parse::<usize>().unwrap());
        assert_eq!((extents, element(format, "precision")), (SIZE, (8 * size).to_string()));
        assert_eq!(element(format, "field"), "su3gauge");
        assert_eq!(checksum(sums[0]), scidac(data));
        return big(data).sites(3);
    }
    let data = all("scidac-binary-data");
    assert_eq!((privates.len(), sums.len()), (data.len(), data.len()));
    for ((private, sum), data) in privates.iter().zip(&sums).zip(&data) {
        let number = |tag| element(private, tag).parse::<usize>().unwrap();
        assert_eq!(element(private, "precision"), letter);
        assert_eq!(element(private, "datatype"), format!("QDP_{letter}3_ColorMatrix"));
        assert_eq!((number("typesize"), number("recordtype")), (18 * size, 0));
        assert_eq!(18 * size * number("datacount") * SITES, data.len());
        assert_eq!(checksum(sum), scidac(data));
    }
    if let [data] = data[..] {
        return big(data).sites(3);
    }
    assert_eq!(data.len(), 4);
    let mut links = Links::new();
    for (mu, data) in data.into_iter().enumerate() {
        let mut numbers = big(data);
        places().for_each(|place| assert!(links.insert((place, mu), numbers.matrix(3)).is_none()));
    }
    links
}

/// Σ Re tr P / 18 V, and Σ Re tr U / 12 V.
fn measured(links: &Links) -> [f64; 2] {
    let ahead = |mut place: [usize; 4], mu: usize| {
        place[mu] = (place[mu] + 1) % SIZE[mu];
        place
    };
    let (mut plaquette, mut trace) = (0.0, 0.0);
    for place in places() {
        for mu in 0..4 {
            trace += (0..3).map(|k| links[&(place, mu)][k][k].re).sum::<f64>();
            for nu in 0..mu {
                // Re tr (U_μ U_ν) (U_ν U_μ)†: all products of equal elements.
                let there = multiply(&links[&(place, mu)], &links[&(ahead(place, mu), nu)]);
                let back = multiply(&links[&(place, nu)], &links[&(ahead(place, nu), mu)]);
                let pairs = there.iter().flatten().zip(back.iter().flatten());
                plaquette += pairs.map(|(a, b)| a.re * b.re + a.im * b.im).sum::<f64>();
            }
        }
    }
    [plaquette / (18 * SITES) as f64, trace / (12 * SITES) as f64]
}

/// Links of a NERSC file, whose header has to fit them.
fn of_nersc(bytes: &[u8], rows: usize, size: usize) -> Links {
    let end = bytes.windows(11).position(|w| w == b"END_HEADER\n").unwrap() + 11;
    let text = std::str::from_utf8(&bytes[..end]).unwrap();
    assert!(text.starts_with("BEGIN_HEADER\n"));
    let keys: HashMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once('=')).map(|(k, v)| (k.trim(), v.trim())).collect();
    assert_eq!([1, 2, 3, 4].map(|k| keys[&*format!("DIMENSION_{k}")].parse::<usize>().unwrap()), SIZE);
    assert_eq!(keys["DATATYPE"], if rows == 2 { "4D_SU3_GAUGE" } else { "4D_SU3_GAUGE_3x3" });
    assert_eq!(keys["FLOATING_POINT"], format!("IEEE{}BIG", 8 * size));
    let data = &bytes[end..];
    let words = data.chunks(4).map(|w| u32::from_be_bytes(w.try_into().unwrap()));
    let sum = words.fold(0u32, u32::wrapping_add);
    assert_eq!(u32::from_str_radix(keys["CHECKSUM"], 16).unwrap(), sum);
    let links = ByteNumbers { bytes: data, big: true, size }.sites(rows);
    let said = ["PLAQUETTE", "LINK_TRACE"].map(|key| keys[key].parse::<f64>().unwrap());
    for (said, found) in said.into_iter().zip(measured(&links)) {
        // Of links before they are rounded to single precision: each plaquette moves by some 6e-8/√V.
        assert!(
            (said - found).abs() < if size == 4 { 1e-7 } else { 1e-12 },
            "{rows} rows of {size} bytes: {said} {found}"
        );
    }
    links
}

/// Links of a MILC file of version 5, whose checksums have to be theirs.
fn of_milc(bytes: &[u8]) -> Links {
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!([0, 4, 8, 12, 16, 84].map(word), [20103, 2, 4, 6, 8, 0]);
    assert!(bytes[20..84].contains(&0), "a time stamp that ends");
    let (mut sum29, mut sum31) = (0u32, 0u32);
    for (rank, at) in (96..bytes.len()).step_by(4).enumerate() {
        sum29 ^= word(at).rotate_left((rank % 29) as u32);
        sum31 ^= word(at).rotate_left((rank % 31) as u32);
    }
    assert_eq!([word(88), word(92)], [sum29, sum31]);
    ByteNumbers { bytes: &bytes[96..], big: true, size: 4 }.sites(3)
}

/// Links of openQCD's file: eight at each odd site, in the order of t, x, y, z.
fn of_openqcd(bytes: &[u8]) -> Links {
    let [nx, ny, nz, nt] = SIZE;
    let extents: Vec<u32> = bytes[..16].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(extents, [nt, nx, ny, nz].map(|n| n as u32));
    let plaquette = f64::from_le_bytes(bytes[16..24].try_into().unwrap());
    let mut numbers = ByteNumbers { bytes: &bytes[24..], big: false, size: 8 };
    let mut links = Links::new();
    for (t, x) in (0..nt).flat_map(|t| (0..nx).map(move |x| (t, x))) {
        for (y, z) in (0..ny).flat_map(|y| (0..nz).map(move |z| (y, z))).filter(|(y, z)| (t + x + y + z) % 2 == 1) {
            for mu in [3, 0, 1, 2] {
                let here = [x, y, z, t];
                let mut behind = here;
                behind[mu] = (behind[mu] + SIZE[mu] - 1) % SIZE[mu];
                for place in [here, behind] {
                    assert!(links.insert((place, mu), numbers.matrix(3)).is_none(), "{place:?} {mu} is there twice");
                }
            }
        }
    }
    assert!(numbers.bytes.is_empty());
    // Sums of 2304 numbers of order 1 in another order.
    assert!((plaquette / 3.0 - measured(&links)[0]).abs() < 1e-13);
    links
}

/// Checks that links are those that were written, rounded to single precision if `rounds`.
fn same(links: &Links, gauge: &HostGauge, rounds: bool, rows: usize, what: &str) {
    assert_eq!(links.len(), 4 * SITES, "{what}");
    for (site, place) in places().enumerate() {
        for mu in 0..4 {
            let (found, known) = (links[&(place, mu)], gauge.link(site, mu));
            for (row, column) in (0..3).flat_map(|row| (0..3).map(move |column| (row, column))) {
                let (found, known) = (found[row][column], known[row][column]);
                let round = |x: f64| if rounds { f64::from(x as f32) } else { x };
                if row < rows {
                    assert_eq!(found, Complex64::new(round(known.re), round(known.im)), "{what} {place:?} {mu}");
                } else {
                    // Two products of rounded numbers, and their difference.
                    let limit = if rounds { 4.0 * 6e-8 } else { 4.0 * 1.2e-16 };
                    assert!((found - known).norm() < limit, "{what} {place:?} {mu}");
                }
            }
        }
    }
}

#[test]
fn what_is_written_is_what_the_descriptions_say() {
    let room = Room::new();
    let lattice = Lattice::new(SIZE).unwrap();
    let gauge = generate::random(lattice, 17);
    let check = |name: &str, format: &'static FileFormat, size: usize| {
        let (bytes, rounds) = (fs::read(room.path(name)).unwrap(), size == 4);
        let what = format!("{name}, {format}, {size} bytes");
        let (links, rows) = match format.name {
            "nersc" => (of_nersc(&bytes, 2, size), 2),
            "nersc3x3" => (of_nersc(&bytes, 3, size), 3),
            "milc" => (of_milc(&bytes), 3),
            "openqcd" => (of_openqcd(&bytes), 3),
            _ => (of_lime(&bytes, size), 3),
        };
        same(&links, &gauge, rounds, rows, &what);
    };
    write_gauge(&room.path("known.ildg"), &gauge, &WriteOptions::default()).unwrap();
    for (format, name) in [
        (&NERSC, "nersc"),
        (&NERSC_3X3, "nersc3x3"),
        (&ILDG, "ildg"),
        (&SCIDAC, "scidac"),
        (&SCIDAC_DIRECTIONS, "scidac-directions"),
        (&MILC, "milc"),
        (&OPENQCD, "openqcd"),
    ] {
        for precision in [FilePrecision::Single, FilePrecision::Double] {
            if format.only_precision().is_some_and(|only| only != precision) {
                continue;
            }
            let options = WriteOptions { format, precision, ..Default::default() };
            // By the program, which copies records, and by eight processes, each its part.
            room.json(&format!("convert known.ildg one --format {name} --precision {precision}"));
            check("one", format, precision.bytes());
            on([1, 2, 1, 4], lattice, |world, section| {
                let part = ferrite_tests::cut::links_of(section, &gauge);
                write_gauge(SharedFile::new(&room.path("many"), world).part(section), &part, &options).unwrap();
            });
            check("many", format, precision.bytes());
        }
    }
}
