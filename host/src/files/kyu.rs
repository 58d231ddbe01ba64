//! KYU files of the χQCD collaboration (University of Kentucky), with links or a propagator, as PyQUDA reads and writes them. The files
//! have no header. Each real number of a site has a plane, which contains the whole lattice with x fastest, then y, z and t. Planes are
//! ordered by these indices, the slowest first:
//!
//! | field | planes |
//! |---|---|
//! | links | direction, column, row, real and imaginary part |
//! | a propagator of 12 spinors | spin and colour of the source, real and imaginary part, spin and colour of the sink |
//!
//! Numbers are doubles, big-endian. Spins are in the Dirac–Pauli basis, where γ_t = diag(1, 1, −1, −1) and γ_k = (0, −iσ_k; iσ_k, 0). A
//! spinor ψ_DR in the DeGrand–Rossi basis becomes ψ = P ψ_DR / √2 with a constant matrix P.
//!
//! Source: `pyquda_io/kyu.py` and `pyquda_io/io_utils.py` of PyQUDA.
use super::arrangement::Sink;
use super::formats::{
    FermionsFormat, FieldBlock, FileFamily, FileFormat, LinksFormat, MetadataPlace, OnlyPrecision, Recognition,
};
use super::frame::Frame;
use super::image::Image;
use super::payload::{LINKS, StoredForm};
use super::runs::Runs;
use super::source::ReadAt;
use super::{
    Arrangement, ColumnOrder, Endian, FilePrecision, Header, OwnArrangement, Problem, ReadOptions, WriteOptions,
};
use crate::lattice::{Lattice, Section};
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The family of KYU files, which have no header and are recognised by their length.
pub static KYU_FAMILY: FileFamily = FileFamily {
    signature: "KYU (no header; recognised by its length if the extents are given)",
    recognition: Recognition::Content(|image, options| Ok(content(image, options)?.is_some())),
    header,
    block: |image, options, site| {
        let (header, components) = (header(image, options)?, site.iter().product::<usize>());
        Ok((header.components == components * components).then(|| FieldBlock::of_columns(header, components)))
    },
    byte_order: "the format",
    formats: &[&KYU],
};
/// KYU format, with one plane for each real number of a site.
pub static KYU: FileFormat = FileFormat {
    name: "kyu",
    title: "KYU",
    flag: Some("kyu"),
    summary: "KYU: links or a propagator of 12 spinors, without a header",
    missing_feature: None,
    only: Some(OnlyPrecision { precision: FilePrecision::Double, whose: "KYU files", others: "ILDG, SciDAC or npy" }),
    links: Some(LinksFormat {
        endings: &["kyu"],
        two_rows: false,
        off_su3: false,
        frame: |links, options| frame(links.lattice(), LINKS, options),
    }),
    fermions: Some(FermionsFormat {
        endings: &["kyu"],
        holds: |components, axes| components == SPINOR && axes == [SPINOR],
        limits: "of fermion fields, a KYU file holds only a propagator of 12 spinors",
        instead: "SciDAC or npy",
        endian: Endian::Big,
        frame: |fields, options| frame(fields.lattice, PROPAGATOR, options),
    }),
    metadata: MetadataPlace::None,
};
/// Arrangement of KYU files, with one plane for each real number of a site.
static PLANES: OwnArrangement =
    OwnArrangement { name: "Planes", columns: ColumnOrder::SpinMatrix, begins_with_links: false, read, write, encode };

/// Number of complex numbers of a spinor, or of a column of a propagator on a site.
const SPINOR: usize = 12;
const PROPAGATOR: usize = SPINOR * SPINOR;
/// Number of bytes of a real number.
const REAL: usize = 8;
/// Number of planes that are read at a time.
const GROUP: usize = 18;
/// Matrix P, which is √2 times the transformation from the DeGrand–Rossi basis to the Dirac–Pauli basis. The transpose of P is √2 times the
/// inverse transformation.
const TO_DIRAC_PAULI: [[f64; 4]; 4] =
    [[0.0, -1.0, 0.0, -1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0], [-1.0, 0.0, 1.0, 0.0]];

/// Returns the lattice that the caller has given, and the number of complex numbers on a site, if the file has the length of links or of a
/// propagator on this lattice.
fn content(image: &mut Image, options: &ReadOptions) -> Result<Option<(Lattice, usize)>, Problem> {
    let length = image.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
    let Some(lattice) = options.lattice else { return Ok(None) };
    let fits = |components: &usize| (lattice.volume() * 2 * REAL * components) as u64 == length;
    Ok([LINKS, PROPAGATOR].into_iter().find(fits).map(|components| (lattice, components)))
}

/// Makes the header of a file that was recognised.
fn header(image: &mut Image, options: &ReadOptions) -> Result<Header, Problem> {
    let Some((lattice, components)) = content(image, options)? else {
        let length = image.seek(SeekFrom::End(0)).map_err(Problem::io("find the length"))?;
        let expected = "576 or 2304 bytes for each site of the given lattice";
        return Err(Problem::field("KYU file", "length", format!("{length} bytes"), expected));
    };
    Ok(Header {
        lattice,
        components,
        format: &KYU,
        precision: FilePrecision::Double,
        endian: Endian::Big,
        arrangement: Arrangement::Own(&PLANES),
        offset: 0,
        data_length: (lattice.volume() * 2 * REAL * components) as u64,
        checksum: None,
        plaquette: None,
        link_trace: None,
        metadata: Vec::new(),
        fields: if components == PROPAGATOR { SPINOR } else { 1 },
        notes: Vec::new(),
        omitted: Vec::new(),
    })
}

/// Makes the frame of a file of links or of a propagator.
fn frame(lattice: Lattice, components: usize, options: &WriteOptions) -> Result<Frame, Problem> {
    if options.precision != FilePrecision::Double {
        let why = "KYU files hold double precision only; choose double precision, or the format SciDAC or npy";
        return Err(Problem::Unwritable { why });
    }
    let form = StoredForm { components, precision: FilePrecision::Double, endian: Endian::Big, kind: None };
    Ok(Frame { arrangement: Arrangement::Own(&PLANES), ..Frame::headed(lattice, form, |_| Vec::new()) })
}

/// Splits an index into the indices of axes with these extents, the slowest first.
fn indices<const N: usize>(mut index: usize, extents: [usize; N]) -> [usize; N] {
    let mut places = extents;
    for place in places.iter_mut().rev() {
        let extent = *place;
        *place = index % extent;
        index /= extent;
    }
    places
}

/// Returns the complex number on a site to which a plane belongs, and its part: 0 for the real and 1 for the imaginary part. The numbers of
/// a propagator are in the order `[spin][source spin][colour][source colour]`.
fn place(plane: usize, components: usize) -> (usize, usize) {
    if components == LINKS {
        let [mu, column, row, part] = indices(plane, [4, 3, 3, 2]);
        return ((mu * 3 + row) * 3 + column, part);
    }
    let [source_spin, source_colour, part, spin, colour] = indices(plane, [4, 3, 2, 4, 3]);
    (((spin * 4 + source_spin) * 3 + colour) * 3 + source_colour, part)
}

/// Reads all planes of a section.
fn read(
    source: &dyn ReadAt,
    offset: u64,
    form: &StoredForm,
    section: &Section,
    values: &mut [Complex64],
) -> Result<(), SystemError> {
    let (components, runs) = (form.components, Runs::from(section));
    let (volume, sites) = (section.global.volume(), section.local.volume());
    let plane = |plane: usize| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; sites * REAL];
        let mut rest = &mut bytes[..];
        for (first, count) in runs.pieces(0..sites) {
            let piece = rest.split_off_mut(..count * REAL).unwrap_or_default();
            source.read_exact_at(piece, offset + ((plane * volume + first) * REAL) as u64)?;
        }
        Ok(bytes)
    };
    for first in (0..2 * components).step_by(GROUP) {
        let planes: io::Result<Vec<_>> = (first..first + GROUP).into_par_iter().map(plane).collect();
        let planes = planes.map_err(SystemError::of("read the data"))?;
        values.par_chunks_exact_mut(components).enumerate().for_each(|(site, numbers)| {
            for (bytes, plane) in planes.iter().zip(first..) {
                let (number, part) = place(plane, components);
                let value = f64::from_be_bytes(bytes.as_chunks().0[site]);
                if part == 0 { numbers[number].re = value } else { numbers[number].im = value }
            }
        });
    }
    if components == PROPAGATOR {
        values.par_chunks_exact_mut(components).for_each(to_degrand_rossi);
    }
    Ok(())
}

/// Computes S_DR = Pᵀ S P / 2 on one site.
fn to_degrand_rossi(matrix: &mut [Complex64]) {
    let given = matrix.to_vec();
    for (index, number) in matrix.iter_mut().enumerate() {
        let [a, b, colours] = indices(index, [4, 4, 9]);
        *number = half_sum(|s, t| TO_DIRAC_PAULI[s][a] * TO_DIRAC_PAULI[t][b], |s, t| given[(s * 4 + t) * 9 + colours]);
    }
}

/// Computes Σ_st w_st z_st / 2; terms with a weight of 0 are omitted.
fn half_sum(weight: impl Fn(usize, usize) -> f64, number: impl Fn(usize, usize) -> Complex64) -> Complex64 {
    let pairs = (0..4).flat_map(|s| (0..4).map(move |t| (s, t)));
    pairs.filter(|&(s, t)| weight(s, t) != 0.0).map(|(s, t)| number(s, t) * weight(s, t)).sum::<Complex64>() * 0.5
}

/// Returns the bytes of one plane of a gauge field, or of the columns of a propagator.
fn plane(fields: &[&[Complex64]], components: usize, plane: usize) -> Vec<u8> {
    let part = |z: Complex64, part: usize| if part == 0 { z.re } else { z.im };
    if components == LINKS {
        let (number, which) = place(plane, components);
        let sites = fields.iter().flat_map(|values| values.chunks_exact(LINKS));
        return sites.flat_map(|site| part(site[number], which).to_be_bytes()).collect();
    }
    let [source_spin, source_colour, which, spin, colour] = indices(plane, [4, 3, 2, 4, 3]);
    // `on_site` returns the element of S = P S_DR Pᵀ / 2 on a site that belongs to this plane.
    let on_site = |site: usize| {
        half_sum(
            |a, b| TO_DIRAC_PAULI[spin][a] * TO_DIRAC_PAULI[source_spin][b],
            |a, b| fields[3 * b + source_colour][site * SPINOR + 3 * a + colour],
        )
    };
    let sites = 0..fields.first().map_or(0, |field| field.len() / SPINOR);
    sites.flat_map(|site| part(on_site(site), which).to_be_bytes()).collect()
}

/// Writes all planes of a section.
fn write(
    file: &File,
    offset: u64,
    form: &StoredForm,
    section: &Section,
    fields: &[&[Complex64]],
) -> Result<(), SystemError> {
    let (volume, runs) = (section.global.volume(), Runs::from(section));
    let put = |number: usize| -> io::Result<()> {
        let bytes = plane(fields, form.components, number);
        let mut rest = &bytes[..];
        for (first, count) in runs.pieces(0..section.local.volume()) {
            let piece = rest.split_off(..count * REAL).unwrap_or_default();
            file.write_all_at(piece, offset + ((number * volume + first) * REAL) as u64)?;
        }
        Ok(())
    };
    (0..2 * form.components).into_par_iter().try_for_each(put).map_err(SystemError::of("write"))
}

/// Passes all planes to the sink in the order of the file.
fn encode(_: Lattice, form: &StoredForm, fields: &[&[Complex64]], sink: Sink) -> Result<(), Problem> {
    (0..2 * form.components).try_for_each(|number| sink(&plane(fields, form.components, number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::host::{HostField, HostGauge, Spinor};
    use crate::files::{
        Checksum, FileError, ReadFrom, SharedFile, WriteTo, inspect, inspect_block, read_fermions, read_gauge,
        write_block, write_fermion, write_gauge,
    };
    use crate::gauge::generate;
    use comms::{Communicator, Threads};

    const SIZE: [usize; 4] = [2, 4, 6, 8];

    fn given() -> ReadOptions {
        ReadOptions { lattice: Some(Lattice::new(SIZE).unwrap()), ..Default::default() }
    }

    fn options() -> WriteOptions {
        WriteOptions { format: &KYU, ..Default::default() }
    }

    fn gauge() -> HostGauge {
        generate::random(Lattice::new(SIZE).unwrap(), 7)
    }

    fn columns() -> Vec<HostField<Spinor>> {
        let section = Lattice::new(SIZE).unwrap();
        (0..12).map(|number| generate::noise_source(section, 5, number)).collect()
    }

    fn put(file: &mut Vec<u8>, number: f64) {
        file.extend(number.to_be_bytes());
    }

    fn sites() -> impl Iterator<Item = usize> {
        let [nx, ny, nz, nt] = SIZE;
        (0..nt).flat_map(move |t| {
            (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| x + nx * (y + ny * (z + nz * t)))))
        })
    }

    /// A file of links, by the definition.
    fn plain_links(gauge: &HostGauge) -> Vec<u8> {
        let mut file = Vec::new();
        for mu in 0..4 {
            for column in 0..3 {
                for row in 0..3 {
                    let z = |site: usize| gauge.links()[4 * site + mu][row][column];
                    sites().for_each(|site| put(&mut file, z(site).re));
                    sites().for_each(|site| put(&mut file, z(site).im));
                }
            }
        }
        file
    }

    /// A spinor's spins in the Dirac–Pauli basis.
    fn dirac_pauli(psi: [Complex64; 4]) -> [Complex64; 4] {
        [-psi[1] - psi[3], psi[0] + psi[2], psi[1] - psi[3], psi[2] - psi[0]].map(|z| z / 2f64.sqrt())
    }

    /// A file of a propagator, by the definition.
    fn plain_propagator(columns: &[HostField<Spinor>]) -> Vec<u8> {
        let matrix = |site: usize, colour: usize, source_colour: usize| {
            let of_source = |b: usize| std::array::from_fn(|a| columns[3 * b + source_colour].sites()[site][a][colour]);
            let sink: [[Complex64; 4]; 4] = std::array::from_fn(|b| dirac_pauli(of_source(b)));
            // By spin of the sink, then of the source.
            <[_; 4]>::map([0, 1, 2, 3], |s| dirac_pauli(std::array::from_fn(|b| sink[b][s])))
        };
        let mut file = Vec::new();
        for (source_spin, source_colour) in (0..4).flat_map(|s| (0..3).map(move |c| (s, c))) {
            for part in 0..2 {
                for (spin, colour) in (0..4).flat_map(|s| (0..3).map(move |c| (s, c))) {
                    for site in sites() {
                        let z = matrix(site, colour, source_colour)[spin][source_spin];
                        put(&mut file, if part == 0 { z.re } else { z.im });
                    }
                }
            }
        }
        file
    }

    fn numbers(file: &[u8]) -> Vec<f64> {
        file.as_chunks().0.iter().map(|bytes| f64::from_be_bytes(*bytes)).collect()
    }

    fn near(left: &[f64], right: &[f64]) {
        assert_eq!(left.len(), right.len());
        // Four products with 1/2, and two divisions by √2 in the plain file.
        let worst = left.iter().zip(right).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 16.0 * f64::EPSILON * left.iter().fold(1.0, |m, x| x.abs().max(m)), "{worst}");
    }

    fn said<T>(result: Result<T, FileError>) -> String {
        result.map(|_| ()).unwrap_err().to_string()
    }

    /// γ_t = diag(1, 1, −1, −1), γ_x = (0, −iσ_x; iσ_x, 0) after the change of basis.
    #[test]
    fn the_basis_is_that_of_dirac_and_pauli() {
        let psi: [Complex64; 4] = std::array::from_fn(|k| Complex64::new(1.0 + k as f64, 0.5 * k as f64 - 2.0));
        let (i, there) = (Complex64::i(), dirac_pauli(psi));
        let reals = |psi: [Complex64; 4]| psi.into_iter().flat_map(|z| [z.re, z.im]).collect::<Vec<_>>();
        let gamma_t = dirac_pauli([psi[2], psi[3], psi[0], psi[1]]);
        near(&reals(gamma_t), &reals([there[0], there[1], -there[2], -there[3]]));
        let gamma_x = dirac_pauli([i * psi[3], i * psi[2], -i * psi[1], -i * psi[0]]);
        near(&reals(gamma_x), &reals([-i * there[3], -i * there[2], i * there[1], i * there[0]]));
    }

    #[test]
    fn links_are_those_of_a_plain_writer() {
        let (gauge, mut bytes) = (gauge(), Vec::new());
        write_gauge(WriteTo::Writer(&mut bytes), &gauge, &options()).unwrap();
        assert_eq!(bytes, plain_links(&gauge));
        let file = read_gauge(ReadFrom::Memory(&bytes), &given()).unwrap();
        assert_eq!((file.gauge, file.checksum, file.header.format), (gauge, Checksum::Absent, &KYU));
    }

    #[test]
    fn propagators_are_those_of_a_plain_writer() {
        let (columns, mut bytes) = (columns(), Vec::new());
        let all: Vec<_> = columns.iter().collect();
        write_block(WriteTo::Writer(&mut bytes), &all, &[12], &options()).unwrap();
        near(&numbers(&bytes), &numbers(&plain_propagator(&columns)));
        let from = ReadFrom::Memory(&bytes);
        assert_eq!(inspect_block::<Spinor>(from, &given()).unwrap().unwrap().fields, 12);
        let read = read_fermions::<Spinor>(from, &given()).unwrap().fields;
        let reals = |fields: &[HostField<Spinor>]| -> Vec<f64> {
            fields.iter().flat_map(HostField::numbers).flat_map(|z| [z.re, z.im]).collect()
        };
        near(&reals(&read), &reals(&columns));
    }

    #[test]
    fn parts_make_up_the_file() {
        let path = std::env::temp_dir().join(format!("ferrite-{}.kyu", std::process::id()));
        let global = Lattice::new(SIZE).unwrap();
        let lost: Vec<String> = Threads::run(4, |world| {
            let me = Communicator::rank(&world);
            let origin = [0, 2 * (me % 2), 0, 4 * (me / 2)];
            let section = Section { global, origin, local: Lattice::new([2, 2, 6, 4]).unwrap() };
            let file = SharedFile::new(&path, &world).part(&section);
            let gauge = generate::random(section, 7);
            write_gauge(file, &gauge, &options()).unwrap();
            assert_eq!(read_gauge(file, &ReadOptions::default()).unwrap().gauge, gauge);
            let whole = if me == 0 { std::fs::read(&path).unwrap() } else { Vec::new() };
            world.barrier()?;
            let columns: Vec<_> = (0..12).map(|n| generate::noise_source::<Spinor>(section, 5, n)).collect();
            write_block(file, &columns.iter().collect::<Vec<_>>(), &[12], &options()).unwrap();
            let read = read_fermions::<Spinor>(file, &ReadOptions::default()).unwrap().fields;
            for (read, written) in read.iter().zip(&columns) {
                let far = read.numbers().iter().zip(written.numbers()).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
                assert!(far < 1e-14, "{far}");
            }
            Ok::<_, comms::CommError>(if me == 0 && whole != plain_links(&self::gauge()) {
                "other bytes".into()
            } else {
                String::new()
            })
        })
        .unwrap();
        assert!(lost.iter().all(String::is_empty), "{lost:?}");
        near(&numbers(&std::fs::read(&path).unwrap()), &numbers(&plain_propagator(&columns())));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn other_lengths_and_fields_are_refused() {
        let bytes = plain_links(&gauge());
        let read = |bytes: &[u8], options: &ReadOptions| said(read_gauge(ReadFrom::Memory(bytes), options));
        // Without the extents nothing recognises the file, and neither cut short nor on another lattice.
        let longer = [&bytes[..], &[0; 8]].concat();
        let other = ReadOptions { lattice: Some(Lattice::new([2, 4, 6, 10]).unwrap()), ..Default::default() };
        for said in [
            read(&bytes, &ReadOptions::default()),
            read(&bytes[..bytes.len() - 8], &given()),
            read(&longer, &given()),
            read(&bytes, &other),
        ] {
            assert!(said.contains("KYU (no header; recognised by its length if the extents are given)"), "{said}");
        }
        assert_eq!(inspect(ReadFrom::Memory(&bytes), &given()).unwrap().components, LINKS);
        assert_eq!(inspect_block::<Spinor>(ReadFrom::Memory(&bytes), &given()).unwrap(), None);
        let mut torn = bytes.clone();
        torn[..8].copy_from_slice(&f64::NAN.to_be_bytes());
        assert!(read(&torn, &given()).contains("U_x at site (x, y, z, t) = [0, 0, 0, 0] is not finite"));
        let mut file = Vec::new();
        let single = WriteOptions { precision: FilePrecision::Single, ..options() };
        let refused = said(write_gauge(WriteTo::Writer(&mut file), &gauge(), &single));
        assert!(refused.contains("double precision only"), "{refused}");
        let refused = said(write_fermion(WriteTo::Writer(&mut file), &columns()[0], &options()));
        assert!(refused.contains("a KYU file holds only a propagator of 12 spinors; write SciDAC or npy"), "{refused}");
    }
}
