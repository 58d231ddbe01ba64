//! Propagators in one record: on each site a matrix, whose columns are solutions for the components of a source. Twelve
//! spinors, column 3 spin + colour of the source, or three colour vectors.
use super::payload::{self, PartialChecksum, StoredForm};
use super::runs::Runs;
use super::source::ReadAt;
use super::{Header, Problem, arrangement};
use crate::field::host::{Fermion, HostField};
use crate::lattice::{Lattice, Section};
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;

/// The order of a propagator's numbers on a site: its indices, the slowest first. Spins and colours of the sink are s and c, those
/// of the source s′ and c′; colour vectors have one spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnOrder {
    /// s s′ c c′: QDP++ and Chroma.
    SpinMatrix,
    /// c s c′ s′: QDP/C's `DiracPropagator`.
    ColourFirst,
    /// s′ c′ s c, one column after the other: QUDA, and MILC's staggered propagators.
    Vectors,
}

impl ColumnOrder {
    /// Where a component of a column is among the numbers of a site, each with so many components.
    fn place(self, components: usize, column: usize, component: usize) -> usize {
        let (spins, s, c) = (components / 3, component / 3, component % 3);
        let (source_s, source_c) = (column / 3, column % 3);
        match self {
            Self::SpinMatrix => ((s * spins + source_s) * 3 + c) * 3 + source_c,
            Self::ColourFirst => ((c * spins + s) * 3 + source_c) * spins + source_s,
            Self::Vectors => column * components + component,
        }
    }
}

/// Reads some columns of a propagator on a section, and the checksum of all its bytes there. A time slice is in
/// memory twice.
pub(crate) fn read<T: Fermion>(
    source: &dyn ReadAt,
    header: &Header,
    order: ColumnOrder,
    section: &Section,
    columns: Range<usize>,
) -> Result<(Vec<HostField<T>>, PartialChecksum), SystemError> {
    let (components, form) = (T::COMPONENTS, header.form());
    let [nx, ny, nz, nt] = section.local.size();
    let mut fields: Vec<_> = columns.clone().map(|_| HostField::<T>::zero(section.local)).collect();
    let mut slice = vec![Complex64::ZERO; nx * ny * nz * components * components];
    let (mut sum, numbers) = (PartialChecksum::default(), nx * ny * nz * components);
    for t in 0..nt {
        sum = form.combine(sum, arrangement::read_slice(source, header, section, t, &mut slice)?);
        fields.par_iter_mut().zip(columns.clone()).for_each(|(field, column)| {
            let places: Vec<_> = (0..components).map(|k| order.place(components, column, k)).collect();
            let sites = field.numbers_mut()[t * numbers..][..numbers].chunks_exact_mut(components);
            for (site, matrix) in sites.zip(slice.chunks_exact(components * components)) {
                site.iter_mut().zip(&places).for_each(|(number, place)| *number = matrix[*place]);
            }
        });
    }
    Ok((fields, sum))
}

/// The matrices of a time slice, from the numbers of all columns.
fn slice(lattice: Lattice, order: ColumnOrder, columns: &[&[Complex64]], t: usize) -> Vec<Complex64> {
    let [nx, ny, nz, _] = lattice.size();
    let (components, sites) = (columns.len(), nx * ny * nz);
    let mut matrices = vec![Complex64::ZERO; sites * components * components];
    matrices.par_chunks_exact_mut(components * components).enumerate().for_each(|(site, matrix)| {
        for (column, numbers) in columns.iter().enumerate() {
            let site = &numbers[(t * sites + site) * components..][..components];
            for (component, number) in site.iter().enumerate() {
                matrix[order.place(components, column, component)] = *number;
            }
        }
    });
    matrices
}

/// Writes a section of a propagator at `offset`, and returns the checksum of the bytes.
pub(crate) fn write(
    file: &File,
    offset: u64,
    form: &StoredForm,
    order: ColumnOrder,
    section: &Section,
    columns: &[&[Complex64]],
) -> Result<PartialChecksum, SystemError> {
    (0..section.local.size()[3]).try_fold(PartialChecksum::default(), |sum, t| {
        let matrices = slice(section.local, order, columns, t);
        let written = payload::write(file, offset, &matrices, form, &Runs::of_slice(section, t))?;
        Ok(form.combine(sum, written))
    })
}

/// Hands on the bytes of a propagator, in their order, and returns their checksum.
pub(crate) fn encode(
    lattice: Lattice,
    form: &StoredForm,
    order: ColumnOrder,
    columns: &[&[Complex64]],
    sink: &mut dyn FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<PartialChecksum, Problem> {
    let [nx, ny, nz, nt] = lattice.size();
    (0..nt).try_fold(PartialChecksum::default(), |sum, t| {
        let matrices = slice(lattice, order, columns, t);
        let part = payload::encode(&matrices, form, t * nx * ny * nz, &mut *sink)?;
        Ok(form.combine(sum, part))
    })
}
