//! Fields in host memory: plain arrays in site order, double precision, DeGrand–Rossi spin basis. This is what files
//! hold and what users see; the order and precision of device memory stay behind upload and download.
use crate::lattice::Lattice;
use num_complex::Complex64;

/// A 3×3 complex matrix, row-major.
pub type Matrix = [[Complex64; 3]; 3];
/// Four spins of three colours, `[spin][colour]`.
pub type Spinor = [[Complex64; 3]; 4];
/// Three colours: a staggered fermion.
pub type ColourVector = [Complex64; 3];

/// A gauge field: U_μ(x) joins x to x+μ̂ and is kept at x.
#[derive(Clone, Debug, PartialEq)]
pub struct HostGauge {
    lattice: Lattice,
    links: Vec<Matrix>,
}

impl HostGauge {
    /// All links the unit matrix.
    pub fn unit(lattice: Lattice) -> Self {
        let mut unit = Matrix::default();
        for (i, row) in unit.iter_mut().enumerate() {
            row[i] = Complex64::ONE;
        }
        Self { lattice, links: vec![unit; 4 * lattice.volume()] }
    }
    /// Takes links in the order index = μ + 4 · site. Panics if there are not exactly 4 per site.
    pub fn from_links(lattice: Lattice, links: Vec<Matrix>) -> Self {
        assert_eq!(links.len(), 4 * lattice.volume(), "four links per site");
        Self { lattice, links }
    }
    /// Extents of the lattice.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// All links, index = μ + 4 · site.
    pub fn links(&self) -> &[Matrix] {
        &self.links
    }
    /// All links, index = μ + 4 · site.
    pub fn links_mut(&mut self) -> &mut [Matrix] {
        &mut self.links
    }
    /// U_μ at the site with lexicographic index `site`.
    pub fn link(&self, site: usize, mu: usize) -> &Matrix {
        &self.links[4 * site + mu]
    }
}

/// What a fermion field has on a site.
pub trait Fermion: bytemuck::Pod + Default + Send + Sync {
    /// How messages call it.
    const NAME: &'static str;
    /// Lengths of its axes, in C order.
    const SHAPE: &'static [usize];
    /// Names of its axes.
    const AXES: &'static [&'static str];
    /// Complex numbers on a site.
    const COMPONENTS: usize = size_of::<Self>() / size_of::<Complex64>();
}
impl Fermion for Spinor {
    const NAME: &'static str = "spinor";
    const SHAPE: &'static [usize] = &[4, 3];
    const AXES: &'static [&'static str] = &["spin", "colour"];
}
impl Fermion for ColourVector {
    const NAME: &'static str = "colour vector";
    const SHAPE: &'static [usize] = &[3];
    const AXES: &'static [&'static str] = &["colour"];
}

/// A fermion field: a value of type `T` at every site.
#[derive(Clone, Debug, PartialEq)]
pub struct HostField<T> {
    lattice: Lattice,
    sites: Vec<T>,
}

/// A fermion field with four spins and three colours at every site.
pub type HostSpinor = HostField<Spinor>;
/// A staggered fermion field: three colours at every site.
pub type HostColour = HostField<ColourVector>;

impl<T: Fermion> HostField<T> {
    /// Zero everywhere.
    pub fn zero(lattice: Lattice) -> Self {
        Self { lattice, sites: vec![T::default(); lattice.volume()] }
    }
    /// Takes values in lexicographic site order. Panics if there is not exactly one per site.
    pub fn from_sites(lattice: Lattice, sites: Vec<T>) -> Self {
        assert_eq!(sites.len(), lattice.volume(), "one {} per site", T::NAME);
        Self { lattice, sites }
    }
    /// Extents of the lattice.
    pub fn lattice(&self) -> Lattice {
        self.lattice
    }
    /// All sites in lexicographic order.
    pub fn sites(&self) -> &[T] {
        &self.sites
    }
    /// All sites in lexicographic order.
    pub fn sites_mut(&mut self) -> &mut [T] {
        &mut self.sites
    }
    /// All complex numbers, those of a site together.
    pub fn numbers(&self) -> &[Complex64] {
        bytemuck::cast_slice(&self.sites)
    }
    /// All complex numbers, those of a site together.
    pub fn numbers_mut(&mut self) -> &mut [Complex64] {
        bytemuck::cast_slice_mut(&mut self.sites)
    }
    /// Σ_x |ψ(x)|², summed in site order.
    pub fn norm2(&self) -> f64 {
        self.numbers().iter().map(|c| c.norm_sqr()).sum()
    }
}
