//! Propagators that are stored in one record. Each site has a matrix, whose columns are the solutions for the components of a source. These
//! are twelve spinors, ordered by 3 spin + colour of the source, or three colour vectors.
use super::arrangement::{self, ColumnOrder};
use super::payload::{self, PartialChecksum, StoredForm};
use super::runs::Runs;
use super::source::ReadAt;
use super::{Header, Problem};
use crate::field::host::{Fermion, HostField};
use crate::lattice::{Lattice, Section};
use crate::system::atomic::SystemError;
use num_complex::Complex64;
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;

/// Reads some columns of a propagator on a section. Returns also the checksum of all bytes of the section. One time slice is in memory
/// twice.
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

/// Returns the matrices on a time slice, made from the numbers of all columns.
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

/// Writes a section of a propagator into the data at `offset`, and returns the checksum of the written bytes.
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

/// Passes the bytes of a propagator to the sink in the order of the file, and returns their checksum.
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
