//! Fields in host memory: plain arrays in site order, in double precision and the DeGrand–Rossi spin basis. Files and users have fields in
//! this form; upload and download convert between it and the order and precision of device memory.
use crate::lattice::{Lattice, LatticeError};
use gpu_kernels::FermionKind;
use num_complex::Complex64;

/// A 3×3 complex matrix, indexed by `[row][column]`.
pub type Matrix = [[Complex64; 3]; 3];
/// A spinor of four spins and three colours, indexed by `[spin][colour]`.
pub type Spinor = [[Complex64; 3]; 4];
/// A colour vector of three colours, the value of a staggered field on a site.
pub type ColourVector = [Complex64; 3];

/// Reason why an array of numbers is not a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The axes of the array are not those of a field.
    #[error(
        "an array of shape {found:?} is not a field of {name}s: the axes of a field are (T, Z, Y, X) and then \
             {site:?}"
    )]
    Shape {
        /// Name of the value of a field on a site.
        name: &'static str,
        /// Lengths of the axes for a site, which follow the first four.
        site: &'static [usize],
        /// Lengths of all axes of the array.
        found: Vec<usize>,
    },
    /// The first four axes are not the extents of a lattice.
    #[error(transparent)]
    Lattice(#[from] LatticeError),
    /// The number of complex numbers does not agree with the lengths of the axes.
    #[error("a field of {name}s of shape {shape:?} has {expected} complex numbers, not {found}")]
    Count {
        /// Name of the value of a field on a site.
        name: &'static str,
        /// Lengths of all axes of the array.
        shape: Vec<usize>,
        /// Number of complex numbers in an array with these axes.
        expected: usize,
        /// Number of complex numbers given.
        found: usize,
    },
}

/// Returns the lengths of the axes of a field on a lattice, the slowest axis first.
fn shape_on(lattice: Lattice, site: &[usize]) -> Vec<usize> {
    let extents = lattice.size().into_iter().rev();
    extents.chain(site.iter().copied()).collect()
}

/// Returns the lattice of an array with the axes T, Z, Y, X and those of a site, if the array has the right number of elements.
fn lattice_of(
    name: &'static str,
    site: &'static [usize],
    shape: &[usize],
    found: usize,
) -> Result<Lattice, FieldError> {
    let extents = match shape.split_first_chunk::<4>() {
        Some((&[t, z, y, x], rest)) if rest == site => [x, y, z, t],
        _ => return Err(FieldError::Shape { name, site, found: shape.into() }),
    };
    let lattice = Lattice::new(extents)?;
    let expected = lattice.volume() * site.iter().product::<usize>();
    if found != expected {
        return Err(FieldError::Count { name, shape: shape.into(), expected, found });
    }
    Ok(lattice)
}

/// A gauge field in host memory. U_μ(x) joins x to x+μ̂ and is stored at x.
#[derive(Clone, Debug, PartialEq)]
pub struct HostGauge {
    lattice: Lattice,
    links: Vec<Matrix>,
}

/// Name and axes of the links that are stored at a site.
const LINKS: (&str, &[usize]) = ("link", &[4, 3, 3]);

impl HostGauge {
    /// Returns a field whose links are all the unit matrix.
    pub fn unit(lattice: Lattice) -> Self {
        let mut unit = Matrix::default();
        for (i, row) in unit.iter_mut().enumerate() {
            row[i] = Complex64::ONE;
        }
        Self { lattice, links: vec![unit; 4 * lattice.volume()] }
    }
    /// Makes a field from links in the order μ + 4 · site. Panics unless there are four links for each site;
    /// [`from_numbers`](Self::from_numbers) returns an error instead.
    pub fn from_links(lattice: Lattice, links: Vec<Matrix>) -> Self {
        assert_eq!(links.len(), 4 * lattice.volume(), "four links per site");
        Self { lattice, links }
    }
    /// Returns the lattice of the field.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// Returns all links in the order μ + 4 · site.
    pub fn links(&self) -> &[Matrix] {
        &self.links
    }
    /// Returns all links in the order μ + 4 · site, to be changed.
    pub fn links_mut(&mut self) -> &mut [Matrix] {
        &mut self.links
    }
    /// Returns U_μ at the site with lexicographic index `site`.
    pub fn link(&self, site: usize, mu: usize) -> &Matrix {
        &self.links[4 * site + mu]
    }
    /// Makes a field from its complex numbers in C order, `[t, z, y, x, mu, row, column]`; `shape` lists the lengths of these axes. The
    /// function does not check whether the links are unitary; [`measure`](crate::gauge::measure) does.
    ///
    /// # Errors
    /// [`FieldError`] if `shape` is not that of a gauge field, or does not agree with the length of `numbers`.
    pub fn from_numbers(shape: &[usize], numbers: &[Complex64]) -> Result<Self, FieldError> {
        let mut field = Self::unit(lattice_of(LINKS.0, LINKS.1, shape, numbers.len())?);
        field.numbers_mut().copy_from_slice(numbers);
        Ok(field)
    }
    /// Returns the lengths of the axes of [`numbers`](Self::numbers): T, Z, Y, X, 4, 3, 3.
    pub fn shape(&self) -> Vec<usize> {
        shape_on(self.lattice, LINKS.1)
    }
    /// Returns all complex numbers in C order, `[t, z, y, x, mu, row, column]`.
    pub fn numbers(&self) -> &[Complex64] {
        self.links.as_flattened().as_flattened()
    }
    /// Returns all complex numbers in C order, `[t, z, y, x, mu, row, column]`, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [Complex64] {
        self.links.as_flattened_mut().as_flattened_mut()
    }
}

/// Value of a fermion field on a site: a spinor or a colour vector.
pub trait Fermion: bytemuck::Pod + Default + Send + Sync {
    /// Fermion type of fields with this value.
    const KIND: FermionKind;
    /// Name of the type in messages.
    const NAME: &'static str;
    /// Lengths of the axes of the value on a site, in C order.
    const SHAPE: &'static [usize];
    /// Names of the axes of the value on a site.
    const AXES: &'static [&'static str];
    /// Number of complex numbers on a site.
    const COMPONENTS: usize = size_of::<Self>() / size_of::<Complex64>();
}
impl Fermion for Spinor {
    const KIND: FermionKind = FermionKind::Wilson;
    const NAME: &'static str = "spinor";
    const SHAPE: &'static [usize] = &[4, 3];
    const AXES: &'static [&'static str] = &["spin", "colour"];
}
impl Fermion for ColourVector {
    const KIND: FermionKind = FermionKind::Staggered;
    const NAME: &'static str = "colour vector";
    const SHAPE: &'static [usize] = &[3];
    const AXES: &'static [&'static str] = &["colour"];
}

/// A fermion field in host memory with a value of type `T` on every site.
#[derive(Clone, Debug, PartialEq)]
pub struct HostField<T> {
    lattice: Lattice,
    sites: Vec<T>,
}

/// A fermion field with four spins and three colours on every site.
pub type HostSpinor = HostField<Spinor>;
/// A staggered fermion field with three colours on every site.
pub type HostColour = HostField<ColourVector>;

impl<T: Fermion> HostField<T> {
    /// Returns a field that is zero everywhere.
    pub fn zero(lattice: Lattice) -> Self {
        // The operating system provides memory that is zero already, so that each page is placed near the thread that writes it first.
        Self { lattice, sites: bytemuck::zeroed_vec(lattice.volume()) }
    }
    /// Makes a field from values in lexicographic site order. Panics unless there is exactly one for each site;
    /// [`from_numbers`](Self::from_numbers) returns an error instead.
    pub fn from_sites(lattice: Lattice, sites: Vec<T>) -> Self {
        assert_eq!(sites.len(), lattice.volume(), "one {} per site", T::NAME);
        Self { lattice, sites }
    }
    /// Returns the lattice of the field.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// Returns the values on all sites in lexicographic order.
    pub fn sites(&self) -> &[T] {
        &self.sites
    }
    /// Returns the values on all sites in lexicographic order, to be changed.
    pub fn sites_mut(&mut self) -> &mut [T] {
        &mut self.sites
    }
    /// Makes a field from its complex numbers in C order, `[t, z, y, x, spin, colour]` or `[t, z, y, x, colour]`; `shape` lists the
    /// lengths of these axes.
    ///
    /// # Errors
    /// [`FieldError`] if `shape` is not that of such a field, or does not agree with the length of `numbers`.
    ///
    /// # Example
    /// ```
    /// use ferrite::field::host::{FieldError, HostColour, HostSpinor};
    /// use ferrite::num_complex::Complex64;
    ///
    /// let numbers = vec![Complex64::I; 2 * 4 * 4 * 4 * 3];
    /// let field = HostColour::from_numbers(&[2, 4, 4, 4, 3], &numbers)?;
    /// assert_eq!(field.lattice().size(), [4, 4, 4, 2]);
    /// assert_eq!((field.shape(), field.numbers()), (vec![2, 4, 4, 4, 3], &numbers[..]));
    ///
    /// let wrong = HostSpinor::from_numbers(&[2, 4, 4, 4, 3], &numbers);
    /// assert!(matches!(wrong, Err(FieldError::Shape { .. })));
    /// # Ok::<(), FieldError>(())
    /// ```
    pub fn from_numbers(shape: &[usize], numbers: &[Complex64]) -> Result<Self, FieldError> {
        let mut field = Self::zero(lattice_of(T::NAME, T::SHAPE, shape, numbers.len())?);
        field.numbers_mut().copy_from_slice(numbers);
        Ok(field)
    }
    /// Returns the lengths of the axes of [`numbers`](Self::numbers): T, Z, Y, X, followed by those of [`Fermion::SHAPE`].
    pub fn shape(&self) -> Vec<usize> {
        shape_on(self.lattice, T::SHAPE)
    }
    /// Returns all complex numbers in C order, those of a site together.
    pub fn numbers(&self) -> &[Complex64] {
        bytemuck::cast_slice(&self.sites)
    }
    /// Returns all complex numbers in C order, those of a site together, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [Complex64] {
        bytemuck::cast_slice_mut(&mut self.sites)
    }
    /// Returns Σ_x |ψ(x)|², summed in site order.
    pub fn norm2(&self) -> f64 {
        self.numbers().iter().map(|c| c.norm_sqr()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [usize; 4] = [2, 4, 6, 8];

    fn counted(n: usize) -> Vec<Complex64> {
        (0..n).map(|i| Complex64::new(i as f64, -1.0)).collect()
    }

    #[test]
    fn numbers_come_back_in_their_places() {
        let lattice = Lattice::new(SIZE).unwrap();
        let site = lattice.index([1, 2, 3, 4]);

        let numbers = counted(36 * lattice.volume());
        let gauge = HostGauge::from_numbers(&[8, 6, 4, 2, 4, 3, 3], &numbers).unwrap();
        assert_eq!((gauge.lattice(), gauge.shape()), (lattice, vec![8, 6, 4, 2, 4, 3, 3]));
        assert_eq!(gauge.numbers(), numbers);
        assert_eq!(gauge.link(site, 3)[2][1], numbers[36 * site + 9 * 3 + 3 * 2 + 1]);

        let numbers = counted(12 * lattice.volume());
        let spinor = HostSpinor::from_numbers(&[8, 6, 4, 2, 4, 3], &numbers).unwrap();
        assert_eq!(spinor.shape(), [8, 6, 4, 2, 4, 3]);
        assert_eq!(spinor.sites()[site][2][1], numbers[12 * site + 3 * 2 + 1]);
        assert_eq!(HostSpinor::from_numbers(&spinor.shape(), spinor.numbers()), Ok(spinor));
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let numbers = counted(3 * 16);
        let colour = |shape: &[usize], n: usize| HostColour::from_numbers(shape, &numbers[..n]).unwrap_err();
        for shape in [&[][..], &[3], &[2, 2, 2, 2], &[2, 2, 2, 2, 4], &[2, 2, 2, 2, 3, 1]] {
            assert!(matches!(colour(shape, 48), FieldError::Shape { found, .. } if found == shape));
        }
        // In the order of users: T is 3.
        let error = colour(&[3, 2, 2, 2, 3], 48);
        assert!(matches!(error, FieldError::Lattice(LatticeError::Odd { axis: 't', extent: 3, .. })));
        let error = colour(&[2, 2, 2, 2, 3], 47);
        assert_eq!(
            error.to_string(),
            "a field of colour vectors of shape [2, 2, 2, 2, 3] has 48 complex numbers, not 47"
        );
        let error = HostGauge::from_numbers(&[2, 2, 2, 2, 3, 3], &numbers).unwrap_err();
        assert_eq!(
            error.to_string(),
            "an array of shape [2, 2, 2, 2, 3, 3] is not a field of links: the axes of a field are (T, Z, Y, X) and then [4, 3, 3]"
        );
    }
}
