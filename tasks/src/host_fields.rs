//! Fermion fields in host memory whose type is known at run time only, for interfaces of other languages.
use crate::grid_device::GridDevice;
use crate::{Failure, Outcome};
use ferrite::FermionKind;
use ferrite::field::host::{ColourVector, Fermion, HostColour, HostField, HostSpinor, Spinor};
use ferrite::files::{self, Endian, FileFormat, FilePrecision, ReadFrom, ReadOptions, WriteOptions, WriteTo};
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use num_complex::Complex64;
use std::path::Path;

/// Fermion fields of one type on one lattice.
#[derive(Clone, Debug, PartialEq)]
pub enum HostFields {
    /// Fields of Wilson-like quarks.
    Wilson(Vec<HostSpinor>),
    /// Fields of staggered quarks.
    Staggered(Vec<HostColour>),
}

/// Evaluates an expression with the fields of a [`HostFields`](crate::host_fields::HostFields), for either type of fermion.
#[macro_export]
macro_rules! with_fields {
    ($fields:expr, $name:ident => $value:expr) => {
        match $fields {
            $crate::host_fields::HostFields::Wilson($name) => $value,
            $crate::host_fields::HostFields::Staggered($name) => $value,
        }
    };
}

/// Type of fermion whose fields [`HostFields`] can hold.
pub trait HeldFermion: Fermion {
    /// Returns the fields if they are of this type, otherwise `None`.
    fn held(fields: &HostFields) -> Option<&[HostField<Self>]>;
}
impl HeldFermion for Spinor {
    fn held(fields: &HostFields) -> Option<&[HostSpinor]> {
        if let HostFields::Wilson(fields) = fields { Some(fields) } else { None }
    }
}
impl HeldFermion for ColourVector {
    fn held(fields: &HostFields) -> Option<&[HostColour]> {
        if let HostFields::Staggered(fields) = fields { Some(fields) } else { None }
    }
}

impl From<Vec<HostSpinor>> for HostFields {
    fn from(fields: Vec<HostSpinor>) -> Self {
        HostFields::Wilson(fields)
    }
}
impl From<Vec<HostColour>> for HostFields {
    fn from(fields: Vec<HostColour>) -> Self {
        HostFields::Staggered(fields)
    }
}

/// Returns the extents of the axes of a site, in C order: spin and colour, or colour.
pub fn site_shape(kind: FermionKind) -> &'static [usize] {
    match kind {
        FermionKind::Wilson => Spinor::SHAPE,
        FermionKind::Staggered => ColourVector::SHAPE,
    }
}

/// Returns the number of spin and colour components of a source.
pub fn components(kind: FermionKind) -> usize {
    site_shape(kind).iter().product()
}

impl HostFields {
    /// Converts an array in C order to fields. The last axes of the array are `[t, z, y, x]` and the axes of a site. Also returns the
    /// extents of the axes before them.
    ///
    /// # Errors
    /// An array of another shape.
    pub fn of_array(kind: FermionKind, shape: &[usize], numbers: &[Complex64]) -> Outcome<(Self, Vec<usize>)> {
        match kind {
            FermionKind::Wilson => of_array::<Spinor>(shape, numbers).map(|(fields, axes)| (fields.into(), axes)),
            FermionKind::Staggered => {
                of_array::<ColourVector>(shape, numbers).map(|(fields, axes)| (fields.into(), axes))
            }
        }
    }
    /// Converts an array to the fields of a propagator. Its only leading axis has one entry for each component of a source.
    ///
    /// # Errors
    /// An array of another shape.
    pub fn of_propagator(kind: FermionKind, shape: &[usize], numbers: &[Complex64]) -> Outcome<Self> {
        let (fields, axes) = Self::of_array(kind, shape, numbers)?;
        let count = components(kind);
        if axes != [count] {
            let why = format!(
                "an array of shape {shape:?} is not a propagator: a propagator has one leading axis of length {count}"
            );
            return Err(Failure::refused(why));
        }
        Ok(fields)
    }
    /// Returns a field of random numbers, which depend on the global site. If `gaussian` is true, the numbers are normal with variance 1
    /// and `number` is ignored; otherwise the field is vector `number` of the noise (±1 ± i)/√2.
    pub fn noise(kind: FermionKind, lattice: Lattice, gaussian: bool, seed: u64, number: u32) -> Self {
        fn made<T: Fermion>(lattice: Lattice, gaussian: bool, seed: u64, number: u32) -> Vec<HostField<T>> {
            vec![match gaussian {
                true => generate::random_source(lattice, seed),
                false => generate::noise_source(lattice, seed, number),
            }]
        }
        match kind {
            FermionKind::Wilson => made::<Spinor>(lattice, gaussian, seed, number).into(),
            FermionKind::Staggered => made::<ColourVector>(lattice, gaussian, seed, number).into(),
        }
    }
    /// Reads all fields of a file; with a device of several processes, each process reads its part. Also returns whether the file holds a
    /// block of fields, because a block of one field differs from a single field.
    ///
    /// # Errors
    /// A file that cannot be read, or whose data is wrong.
    pub fn read(
        device: Option<&GridDevice>,
        path: &Path,
        kind: FermionKind,
        options: &ReadOptions,
    ) -> Outcome<(Self, bool)> {
        match kind {
            FermionKind::Wilson => read::<Spinor>(device, path, options).map(|(fields, block)| (fields.into(), block)),
            FermionKind::Staggered => {
                read::<ColourVector>(device, path, options).map(|(fields, block)| (fields.into(), block))
            }
        }
    }
    /// Writes fields with the leading axes `axes` to a file, whose name determines the format. With a device of several processes, each
    /// process writes its part.
    ///
    /// # Errors
    /// A name of no format, and a file that cannot be written.
    pub fn write(&self, device: Option<&GridDevice>, path: &Path, axes: &[usize], title: String) -> Outcome {
        let Some(format) = FileFormat::of_fermion_file(path) else {
            let endings = files::formats::endings_of_fermion_files();
            let why = format!("{}: the name does not determine the format; end it in {endings}", path.display());
            return Err(Failure::refused(why));
        };
        let precision = format.only_precision().unwrap_or(FilePrecision::Double);
        let options = WriteOptions { format, title, precision, endian: Endian::Little, ..Default::default() };
        let write = |to: WriteTo<'_>| -> Outcome {
            with_fields!(self, fields => match (&fields[..], axes) {
                ([field], []) => files::write_fermion(to, field, &options)?,
                (fields, axes) => files::write_block(to, &fields.iter().collect::<Vec<_>>(), axes, &options)?,
            });
            Ok(())
        };
        match device {
            None => write(path.into()),
            Some(device) => {
                let part = device.place().section_of(self.lattice()?)?;
                device.with_file(path, |file| write(file.part(&part).into()))
            }
        }
    }
    /// Returns whether the fields are of Wilson-like or of staggered quarks.
    pub fn kind(&self) -> FermionKind {
        match self {
            HostFields::Wilson(_) => FermionKind::Wilson,
            HostFields::Staggered(_) => FermionKind::Staggered,
        }
    }
    /// Returns the number of fields.
    pub fn count(&self) -> usize {
        with_fields!(self, fields => fields.len())
    }
    /// Returns the lattice of the fields.
    ///
    /// # Errors
    /// No fields.
    pub fn lattice(&self) -> Outcome<Lattice> {
        let first = with_fields!(self, fields => fields.first().map(HostField::lattice));
        first.ok_or_else(|| Failure::refused("no fields are given"))
    }
    /// Returns the extents of the axes of one field.
    ///
    /// # Errors
    /// No fields.
    pub fn shape(&self) -> Outcome<Vec<usize>> {
        let first = with_fields!(self, fields => fields.first().map(HostField::shape));
        first.ok_or_else(|| Failure::refused("no fields are given"))
    }
    /// Returns the numbers of all fields, one field after the other.
    pub fn numbers(&self) -> Vec<Complex64> {
        fn all<T: Fermion>(fields: &[HostField<T>]) -> Vec<Complex64> {
            let mut all = Vec::with_capacity(fields.iter().map(|field| field.numbers().len()).sum());
            fields.iter().for_each(|field| all.extend_from_slice(field.numbers()));
            all
        }
        with_fields!(self, fields => all(fields))
    }
    /// Fails if a number is not finite; `what` names the array in the message.
    ///
    /// # Errors
    /// The first such number.
    pub fn check_finite(&self, what: &str) -> Outcome {
        with_fields!(self, fields => check_finite_fields(what, fields))
    }
}

/// Fails if a field has a number that is not finite; `what` names the array in the message.
///
/// # Errors
/// The first such number.
pub fn check_finite_fields<T: Fermion>(what: &str, fields: &[HostField<T>]) -> Outcome {
    let is_infinite = |field: &HostField<T>| field.numbers().iter().any(|number| !number.is_finite());
    match fields.iter().position(is_infinite) {
        None => Ok(()),
        Some(field) => check_finite(&format!("{what}, field {field} counted from 0"), fields[field].numbers()),
    }
}

/// Fails if a number is not finite; `what` names the numbers in the message.
///
/// # Errors
/// The first such number.
pub fn check_finite(what: &str, numbers: &[Complex64]) -> Outcome {
    match numbers.iter().position(|number| !number.is_finite()) {
        None => Ok(()),
        Some(place) => Err(Failure::refused(format!(
            "{what}: number {place}, counted from 0 in C order, is {}: every number must be finite",
            numbers[place]
        ))),
    }
}

fn read<T: Fermion>(
    device: Option<&GridDevice>,
    path: &Path,
    options: &ReadOptions,
) -> Outcome<(Vec<HostField<T>>, bool)> {
    fn all<'a, T: Fermion>(
        file: impl Into<ReadFrom<'a>> + Copy,
        options: &ReadOptions,
    ) -> Outcome<(Vec<HostField<T>>, bool)> {
        let block = files::inspect_block::<T>(file, options)?.is_some();
        Ok((files::read_fermions::<T>(file, options)?.fields, block))
    }
    let Some(device) = device else { return all(path, options) };
    device.with_file(path, |file| {
        let header = match files::inspect_block::<T>(file, options)? {
            Some(first) => first,
            None => files::inspect(file, options)?,
        };
        all(file.part(&device.place().section(header.lattice)?), options)
    })
}

fn of_array<T: Fermion>(shape: &[usize], numbers: &[Complex64]) -> Outcome<(Vec<HostField<T>>, Vec<usize>)> {
    let Some(front) = shape.len().checked_sub(4 + T::SHAPE.len()) else {
        HostField::<T>::from_numbers(shape, numbers)?;
        return Err(Failure::failed("a field has too few axes"));
    };
    let (axes, field) = shape.split_at(front);
    let (count, size) = (axes.iter().product::<usize>(), field.iter().product::<usize>());
    if count == 0 || size == 0 {
        return Err(Failure::refused(format!("an array of shape {shape:?} contains no field: give extents above 0")));
    }
    let fields = numbers.chunks_exact(size).map(|one| HostField::from_numbers(field, one));
    Ok((fields.collect::<Result<_, _>>()?, axes.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_any_axes_in_front() {
        let numbers: Vec<Complex64> = (0..2 * 2 * 2 * 2 * 2 * 3).map(|k| Complex64::new(k.into(), 0.0)).collect();
        let of = |shape: &[usize]| HostFields::of_array(FermionKind::Staggered, shape, &numbers);
        let (fields, axes) = of(&[2, 2, 2, 2, 2, 3]).unwrap();
        assert_eq!((fields.count(), axes, fields.shape().unwrap()), (2, vec![2], vec![2, 2, 2, 2, 3]));
        assert_eq!(fields.numbers(), numbers);
        assert_eq!(of(&[1, 2, 2, 2, 2, 2, 3]).unwrap().1, [1, 2]);
        assert!(of(&[0, 2, 2, 2, 2, 3]).unwrap_err().message.contains("contains no field"));
        assert!(of(&[2, 2, 3]).unwrap_err().message.contains("(T, Z, Y, X)"));
        let propagator = HostFields::of_propagator(FermionKind::Staggered, &[2, 2, 2, 2, 2, 3], &numbers);
        assert!(propagator.unwrap_err().message.ends_with("one leading axis of length 3"));
    }

    #[test]
    fn numbers_that_are_not_finite_are_reported_with_their_place() {
        let mut field = HostColour::zero(Lattice::new([2; 4]).unwrap());
        field.numbers_mut()[5] = Complex64::new(f64::NAN, 0.0);
        let fields: HostFields = vec![HostColour::zero(field.lattice()), field].into();
        let why = fields.check_finite("b").unwrap_err().message;
        assert!(why.starts_with("b, field 1 counted from 0: number 5, counted from 0"), "{why}");
    }
}
