//! Functions that write fields, on one process or on many.
use super::formats::{FermionsFormat, FermionsToWrite, LinksToWrite};
use super::frame::Frame;
use super::parts::FileParts;
use super::{FileError, Problem, ReadOptions, SharedFile, WriteOptions, checks};
use crate::field::host::{Fermion, HostField, HostGauge};
use crate::lattice::{Lattice, Section};
use crate::network::Network;
use crate::system::atomic::{Destination, SystemError, open_stream};
use comms::Solo;
use num_complex::Complex64;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Destination of a field that is written.
///
/// A path (`&Path`, `&PathBuf`, `&str`) converts to a file that one process writes: `write_gauge(&path, &gauge, &options)`. A
/// [`SharedFile`] converts to a file that many processes write together.
pub enum WriteTo<'a> {
    /// A file that one process writes.
    File(&'a Path),
    /// *Collective.* A file that many processes write together.
    Shared(SharedFile<'a>),
    /// A writer, such as a `Vec<u8>`. After an error, it may contain a part of the bytes.
    Writer(&'a mut dyn Write),
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for WriteTo<'a> {
    fn from(path: &'a P) -> Self {
        Self::File(path.as_ref())
    }
}

impl<'a> From<SharedFile<'a>> for WriteTo<'a> {
    fn from(file: SharedFile<'a>) -> Self {
        Self::Shared(file)
    }
}

/// Writes a gauge field. Fails if a number is not finite, or if the format stores two rows and a link is not in SU(3).
pub fn write_gauge<'a>(to: impl Into<WriteTo<'a>>, gauge: &HostGauge, options: &WriteOptions) -> Result<(), FileError> {
    let values = bytemuck::cast_slice(gauge.links());
    write(to.into(), &[(gauge.lattice(), values)], |parts| gauge_frame(gauge, options, parts))
}

/// Writes a fermion field. The format must store fermion fields, as SciDAC LIME, NumPy and HDF5 do.
pub fn write_fermion<'a, T: Fermion>(
    to: impl Into<WriteTo<'a>>,
    field: &HostField<T>,
    options: &WriteOptions,
) -> Result<(), FileError> {
    write(to.into(), &[(field.lattice(), field.numbers())], |parts| fermion_frame(field, options, parts))
}

/// Writes several fermion fields into one file. In an `.npy` file, `axes` precede those of the lattice: `[12]` for the columns of a
/// propagator, `[2, 12]` for two propagators. [`read_block`](super::read_block) reads files with one such axis. In the format
/// [`SCIDAC`](super::SCIDAC), twelve spinors or three colour vectors become a propagator in one record, with the fields as columns. In the
/// format [`MILC_PROPAGATOR`](super::MILC_PROPAGATOR), three colour vectors also become a propagator.
pub fn write_block<'a, T: Fermion>(
    to: impl Into<WriteTo<'a>>,
    fields: &[&HostField<T>],
    axes: &[usize],
    options: &WriteOptions,
) -> Result<(), FileError> {
    let values: Vec<_> = fields.iter().map(|field| (field.lattice(), field.numbers())).collect();
    write(to.into(), &values, |parts| {
        let format = fermions_of(options)?;
        if !(format.holds)(T::COMPONENTS, axes) {
            return Err(Problem::NotHeld { limits: format.limits, instead: format.instead });
        }
        if fields.is_empty() {
            return Err(NO_FIELD);
        }
        if axes.iter().product::<usize>() != fields.len() {
            let why = "the number of fields differs from the product of the axis lengths; give as many fields as the \
                       product";
            return Err(Problem::Unwritable { why });
        }
        for (number, field) in fields.iter().enumerate() {
            checks::fermion(field, parts).map_err(Problem::in_field(number))?;
        }
        (format.frame)(&FermionsToWrite { lattice: parts.mine().global, axes, site: T::SHAPE }, options)
    })
}

const NO_FIELD: Problem = Problem::Unwritable { why: "no field is given" };

/// *Collective.* Writes fields, each given by its local lattice and its numbers. `frame` checks the fields, and makes the frame of the
/// file.
fn write(
    to: WriteTo,
    fields: &[(Lattice, &[Complex64])],
    frame: impl FnOnce(&FileParts) -> Result<Frame, Problem>,
) -> Result<(), FileError> {
    let solo = Solo::new();
    let (path, network, section): (&Path, &dyn Network, Option<Section>) = match &to {
        WriteTo::File(path) => (path, &solo, None),
        WriteTo::Shared(file) => (file.path, file.network, file.section),
        WriteTo::Writer(_) => (Path::new("<writer>"), &solo, None),
    };
    let (lattices, values): (Vec<_>, Vec<_>) = fields.iter().copied().unzip();
    let all = || {
        let section = section.or(lattices.first().map(|lattice| (*lattice).into())).ok_or(NO_FIELD)?;
        let ((), parts) = FileParts::meet(network, &section, &lattices, Ok::<_, SystemError>(()))?;
        let frame = frame(&parts)?;
        match to {
            WriteTo::Writer(writer) => frame.write_to(writer, &values),
            WriteTo::File(_) | WriteTo::Shared(_) => match Destination::of(path) {
                // A stream must be written in order, which requires all data on one process.
                Ok(Destination::Stream(stream)) if network.size() == 1 => {
                    let mut writer = BufWriter::with_capacity(1 << 20, open_stream(&stream)?);
                    frame.write_to(&mut writer, &values)?;
                    writer.flush().map_err(Problem::io("write"))
                }
                _ => frame.write_parts(path, &values, &parts),
            },
        }
    };
    all().map_err(FileError::at(path))
}

/// *Collective.* Checks a gauge field, and makes the frame of its file.
fn gauge_frame(gauge: &HostGauge, options: &WriteOptions, parts: &FileParts) -> Result<Frame, Problem> {
    let Some(format) = &options.format.links else {
        let why = "the chosen format holds propagators, not links; choose a format for links, such as ILDG";
        return Err(Problem::Unwritable { why });
    };
    let required = ReadOptions { allow_non_unitary: !format.two_rows, ..Default::default() };
    checks::links(gauge, options.precision, &required, parts)?;
    (format.frame)(&LinksToWrite { gauge, parts }, options)
}

/// *Collective.* Checks a fermion field, and makes the frame of its file.
fn fermion_frame<T: Fermion>(
    field: &HostField<T>,
    options: &WriteOptions,
    parts: &FileParts,
) -> Result<Frame, Problem> {
    checks::fermion(field, parts)?;
    let format = fermions_of(options)?;
    if !(format.holds)(T::COMPONENTS, &[]) {
        return Err(Problem::NotHeld { limits: format.limits, instead: format.instead });
    }
    (format.frame)(&FermionsToWrite { lattice: parts.mine().global, axes: &[], site: T::SHAPE }, options)
}

fn fermions_of(options: &WriteOptions) -> Result<&'static FermionsFormat, Problem> {
    let why = "the chosen format holds links only; write fermion fields as SciDAC or npy";
    options.format.fermions.as_ref().ok_or(Problem::Unwritable { why })
}
