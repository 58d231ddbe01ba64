//! Orders of fields in the memory of applications: even sites before odd ones.
use crate::memory::{Array, Width};
use ferrite::backend::Backend;
use ferrite::field::HermitianBlock;
use ferrite::field::host::{Fermion, HostField, HostGauge};
use ferrite::lattice::Lattice;
use ferrite::num_complex::Complex64;
use ferrite_tasks::{Failure, Outcome};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ffi::c_void;

/// Returns the place of the site with the lexicographic index `site` in an order with even sites first.
pub fn place(lattice: Lattice, site: usize) -> usize {
    lattice.parity(lattice.coordinates(site)) * lattice.volume() / 2 + site / 2
}

/// Gathers the numbers of sites, `count` for each site, from an order with even sites first.
fn lexicographic(lattice: Lattice, count: usize, numbers: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; numbers.len()];
    out.par_chunks_mut(count).enumerate().with_min_len(1024).for_each(|(site, to)| {
        let first = count * place(lattice, site);
        to.copy_from_slice(&numbers[first..first + count]);
    });
    out
}

/// Returns the lexicographic index of the site with this place in an order with even sites first.
fn site_at(lattice: Lattice, place: usize) -> usize {
    let half = lattice.volume() / 2;
    let pair = 2 * (place % half);
    if lattice.parity(lattice.coordinates(pair)) == place / half { pair } else { pair + 1 }
}

/// Gathers the numbers of sites into an order with even sites first.
fn even_first(lattice: Lattice, count: usize, numbers: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; numbers.len()];
    out.par_chunks_mut(count).enumerate().with_min_len(1024).for_each(|(place, to)| {
        let first = count * site_at(lattice, place);
        to.copy_from_slice(&numbers[first..first + count]);
    });
    out
}

/// Reals of a link.
const LINK: usize = 18;
/// Reals of a momentum in the memory of applications; the last one is not used.
const MOMENTUM: usize = 10;

/// Structures of an application, one for each site on the host, which have links and momenta among other members.
#[derive(Clone, Copy, Debug)]
pub struct SiteArray<'a> {
    /// The structures, even sites first.
    pub sites: Array<'a>,
    /// Bytes before the four links of a site in its structure.
    pub links: usize,
    /// Bytes before the four momenta of a site in its structure.
    pub momenta: usize,
    /// Bytes of a structure.
    pub size: usize,
}

impl SiteArray<'_> {
    /// Returns the address of the four links or, with `count` reals for each link, of the four momenta at a place.
    fn address(&self, place: usize, count: usize) -> *mut u8 {
        let offset = if count == LINK { self.links } else { self.momenta };
        self.sites.address.cast::<u8>().wrapping_add(place * self.size + offset)
    }
    /// Fails if structures are too small for the numbers, or are on a GPU.
    fn check(&self, backend: &dyn Backend, count: usize) -> Outcome {
        let (name, bytes) = (self.sites.name, 4 * count * self.sites.width.bytes());
        let offset = if count == LINK { self.links } else { self.momenta };
        if offset.checked_add(bytes).is_none_or(|end| end > self.size) {
            return Err(Failure::refused(format!(
                "{name}: the sites have {} bytes, and {bytes} bytes at offset {offset} do not fit",
                self.size
            )));
        }
        if self.sites.address.is_null() {
            return Err(Failure::refused(format!("{name}: the pointer is null")));
        }
        if backend.is_on_device(self.sites.address.addr()) {
            return Err(Failure::refused(format!("{name}: sites have to be in memory of the host")));
        }
        Ok(())
    }
    /// Reads `count` reals for each link, in the order of sites and directions.
    unsafe fn read(self, backend: &dyn Backend, lattice: Lattice, count: usize) -> Outcome<Vec<f64>> {
        self.check(backend, count)?;
        let mut out = Vec::with_capacity(4 * count * lattice.volume());
        for site in 0..lattice.volume() {
            let first = self.address(place(lattice, site), count);
            // SAFETY: the promise of the caller's caller.
            let number = |k: usize| unsafe { self.sites.width.read(first.wrapping_add(k * self.sites.width.bytes())) };
            out.extend((0..4 * count).map(number));
        }
        Ok(out)
    }
    /// Writes `count` reals for each link, which are in the order of sites and directions.
    unsafe fn write(self, backend: &dyn Backend, lattice: Lattice, count: usize, numbers: &[f64]) -> Outcome {
        self.check(backend, count)?;
        for (site, numbers) in numbers.chunks(4 * count).enumerate() {
            let first = self.address(place(lattice, site), count);
            for (k, number) in numbers.iter().enumerate() {
                // SAFETY: the promise of the caller's caller.
                unsafe { self.sites.width.write(first.wrapping_add(k * self.sites.width.bytes()), *number) };
            }
        }
        Ok(())
    }
}

/// Arrays of an application with numbers for each link.
#[derive(Clone, Copy, Debug)]
pub enum LinkArrays<'a> {
    /// QUDA_QDP_GAUGE_ORDER: an array for each direction.
    ByDirection([Array<'a>; 4]),
    /// QUDA_MILC_GAUGE_ORDER: the four links of a site together.
    BySite(Array<'a>),
    /// QUDA_MILC_SITE_GAUGE_ORDER: links in the structures of sites.
    InSites(SiteArray<'a>),
}

impl LinkArrays<'_> {
    /// Returns whether an array is a null pointer.
    pub fn are_null(&self) -> bool {
        match self {
            LinkArrays::ByDirection(four) => four.iter().any(|array| array.address.is_null()),
            LinkArrays::BySite(array) => array.address.is_null(),
            LinkArrays::InSites(array) => array.sites.address.is_null(),
        }
    }
    /// Reads `count` reals for each link, in the order of sites and directions.
    unsafe fn read(self, backend: &dyn Backend, lattice: Lattice, count: usize) -> Outcome<Vec<f64>> {
        let sites = lattice.volume();
        match self {
            // SAFETY: the promise of the caller's caller.
            LinkArrays::InSites(array) => unsafe { array.read(backend, lattice, count) },
            LinkArrays::BySite(array) => {
                // SAFETY: the promise of the caller's caller.
                let numbers = unsafe { array.read(backend, 4 * count * sites) }?;
                Ok(lexicographic(lattice, 4 * count, &numbers))
            }
            LinkArrays::ByDirection(four) => {
                // SAFETY: as above.
                let read = |array: &Array<'_>| unsafe { array.read(backend, count * sites) };
                let four = four.iter().map(read).collect::<Outcome<Vec<_>>>()?;
                let mut out = vec![0.0; 4 * count * sites];
                out.par_chunks_mut(4 * count).enumerate().with_min_len(1024).for_each(|(site, to)| {
                    let first = count * place(lattice, site);
                    for (to, from) in to.chunks_mut(count).zip(&four) {
                        to.copy_from_slice(&from[first..first + count]);
                    }
                });
                Ok(out)
            }
        }
    }
    /// Writes `count` reals for each link, which are in the order of sites and directions.
    unsafe fn write(self, backend: &dyn Backend, lattice: Lattice, count: usize, numbers: &[f64]) -> Outcome {
        match self {
            // SAFETY: the promise of the caller's caller.
            LinkArrays::InSites(array) => unsafe { array.write(backend, lattice, count, numbers) },
            LinkArrays::BySite(array) => {
                // SAFETY: the promise of the caller's caller.
                unsafe { array.write(backend, &even_first(lattice, 4 * count, numbers)) }
            }
            LinkArrays::ByDirection(four) => {
                for (mu, array) in four.into_iter().enumerate() {
                    let mut one = vec![0.0; count * lattice.volume()];
                    one.par_chunks_mut(count).enumerate().with_min_len(1024).for_each(|(place, to)| {
                        let first = count * (4 * site_at(lattice, place) + mu);
                        to.copy_from_slice(&numbers[first..first + count]);
                    });
                    // SAFETY: as above.
                    unsafe { array.write(backend, &one) }?;
                }
                Ok(())
            }
        }
    }
    /// Reads links.
    ///
    /// # Safety
    /// The arrays have the links of the lattice, and nothing writes to them during the call.
    pub unsafe fn read_links(self, backend: &dyn Backend, lattice: Lattice) -> Outcome<HostGauge> {
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.read(backend, lattice, LINK) }?;
        Ok(HostGauge::from_links(lattice, bytemuck::cast_slice(&numbers).to_vec()))
    }
    /// Writes links.
    ///
    /// # Safety
    /// The arrays have room for the links of the lattice, and nothing else uses them during the call.
    pub unsafe fn write_links(self, backend: &dyn Backend, gauge: &HostGauge) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { self.write(backend, gauge.lattice(), LINK, bytemuck::cast_slice(gauge.links())) }
    }
    /// Reads momenta, anti-Hermitian matrices without trace: the three elements above the diagonal, and the imaginary parts of those on it.
    ///
    /// # Safety
    /// As for [`read_links`](Self::read_links).
    pub unsafe fn read_momenta(self, backend: &dyn Backend, lattice: Lattice) -> Outcome<HostGauge> {
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.read(backend, lattice, MOMENTUM) }?;
        let mut momenta = HostGauge::unit(lattice);
        for (matrix, p) in momenta.links_mut().iter_mut().zip(numbers.chunks(MOMENTUM)) {
            for (n, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
                matrix[i][j] = Complex64::new(p[2 * n], p[2 * n + 1]);
                matrix[j][i] = -matrix[i][j].conj();
            }
            (0..3).for_each(|i| matrix[i][i] = Complex64::new(0.0, p[6 + i]));
        }
        Ok(momenta)
    }
    /// Writes momenta.
    ///
    /// # Safety
    /// As for [`write_links`](Self::write_links).
    pub unsafe fn write_momenta(self, backend: &dyn Backend, momenta: &HostGauge) -> Outcome {
        let mut numbers = Vec::with_capacity(MOMENTUM * momenta.links().len());
        for m in momenta.links() {
            let above = [m[0][1], m[0][2], m[1][2]];
            numbers.extend(above.iter().flat_map(|element| [element.re, element.im]));
            numbers.extend([m[0][0].im, m[1][1].im, m[2][2].im, 0.0]);
        }
        // SAFETY: the caller's promise.
        unsafe { self.write(backend, momenta.lattice(), MOMENTUM, &numbers) }
    }
}

/// Clover term of an application in QUDA_PACKED_CLOVER_ORDER: parity, site, spins, and then the diagonal and the columns below it.
#[derive(Clone, Copy, Debug)]
pub struct PackedBlocks<'a>(pub Array<'a>);

/// Reals of a block: 6 on the diagonal and 15 complex numbers below it.
const BLOCK: usize = 36;

impl PackedBlocks<'_> {
    /// Reads the blocks of the upper and of the lower spins, in lexicographic order of the sites.
    ///
    /// # Safety
    /// The array has the blocks of the lattice, and nothing writes to it during the call.
    pub unsafe fn read(self, backend: &dyn Backend, lattice: Lattice) -> Outcome<Vec<[HermitianBlock; 2]>> {
        // SAFETY: the caller's promise.
        let numbers = unsafe { self.0.read(backend, 2 * BLOCK * lattice.volume()) }?;
        let numbers = lexicographic(lattice, 2 * BLOCK, &numbers);
        let block = |packed: &[f64]| {
            let mut below = packed[6..].chunks(2).map(|z| Complex64::new(z[0], z[1]));
            let mut block =
                HermitianBlock { diagonal: std::array::from_fn(|k| packed[k]), lower: [Complex64::ZERO; 15] };
            for (column, row) in (0..6).flat_map(|column| (column + 1..6).map(move |row| (column, row))) {
                block.lower[row * (row - 1) / 2 + column] = below.next().unwrap_or_default();
            }
            block
        };
        Ok(numbers.par_chunks(2 * BLOCK).map(|site| [block(&site[..BLOCK]), block(&site[BLOCK..])]).collect())
    }
    /// Writes blocks.
    ///
    /// # Safety
    /// The array has room for the blocks of the lattice, and nothing else uses it during the call.
    pub unsafe fn write(self, backend: &dyn Backend, lattice: Lattice, blocks: &[[HermitianBlock; 2]]) -> Outcome {
        let mut numbers = Vec::with_capacity(2 * BLOCK * blocks.len());
        for block in blocks.iter().flatten() {
            numbers.extend(block.diagonal);
            for (column, row) in (0..6).flat_map(|column| (column + 1..6).map(move |row| (column, row))) {
                let element = block.lower[row * (row - 1) / 2 + column];
                numbers.extend([element.re, element.im]);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.write(backend, &even_first(lattice, 2 * BLOCK, &numbers)) }
    }
}

/// Sites that a field in the memory of an application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sites {
    /// All sites, even ones first.
    All,
    /// The sites of one parity.
    Parity(usize),
}

/// Fields in the memory of an application, in QUDA_DIRAC_ORDER: parity, site, spin, colour.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Lattice of the process.
    pub lattice: Lattice,
    /// Sites that the fields have.
    pub sites: Sites,
    /// Precision of the numbers.
    pub width: Width,
    /// Whether spinors have QUDA_CHIRAL_GAMMA_BASIS instead of QUDA_DEGRAND_ROSSI_GAMMA_BASIS.
    pub is_chiral: bool,
}

/// Changes spinors from the chiral basis to the one of DeGrand and Rossi, or back: both have the same matrix, (−χ₃, χ₂, χ₁, −χ₀).
fn change_basis(numbers: &mut [Complex64]) {
    for site in numbers.chunks_mut(12) {
        for colour in 0..3 {
            site.swap(colour, 9 + colour);
            site.swap(3 + colour, 6 + colour);
            site[colour] = -site[colour];
            site[9 + colour] = -site[9 + colour];
        }
    }
}

impl Fields {
    fn count<T: Fermion>(self) -> usize {
        let sites = match self.sites {
            Sites::All => self.lattice.volume(),
            Sites::Parity(_) => self.lattice.volume() / 2,
        };
        2 * T::COMPONENTS * sites
    }
    /// Reads a field; it is zero on sites that the array does not have.
    ///
    /// # Safety
    /// The array has the field, and nothing writes to it during the call.
    pub unsafe fn read<T: Fermion>(
        self,
        backend: &dyn Backend,
        name: &str,
        address: *mut c_void,
    ) -> Outcome<HostField<T>> {
        // SAFETY: the caller's promise.
        let numbers = unsafe { Array { name, address, width: self.width }.read(backend, self.count::<T>()) }?;
        let (count, half) = (2 * T::COMPONENTS, self.lattice.volume() / 2);
        let mut field = HostField::<T>::zero(self.lattice);
        let reals: &mut [f64] = bytemuck::cast_slice_mut(field.numbers_mut());
        match self.sites {
            Sites::All => reals.copy_from_slice(&lexicographic(self.lattice, count, &numbers)),
            Sites::Parity(parity) => numbers.chunks(count).enumerate().for_each(|(at, from)| {
                let first = count * site_at(self.lattice, parity * half + at);
                reals[first..first + count].copy_from_slice(from);
            }),
        }
        if self.is_chiral {
            change_basis(field.numbers_mut());
        }
        Ok(field)
    }
    /// Writes the part of a field that the array has.
    ///
    /// # Safety
    /// The array has room for the field, and nothing else uses it during the call.
    pub unsafe fn write<T: Fermion>(
        self,
        backend: &dyn Backend,
        name: &str,
        address: *mut c_void,
        field: &HostField<T>,
    ) -> Outcome {
        let (count, half) = (2 * T::COMPONENTS, self.lattice.volume() / 2);
        let mut changed = Cow::Borrowed(field.numbers());
        if self.is_chiral {
            change_basis(changed.to_mut());
        }
        let reals: &[f64] = bytemuck::cast_slice(&changed);
        let numbers = match self.sites {
            Sites::All => even_first(self.lattice, count, reals),
            Sites::Parity(parity) => (0..half)
                .flat_map(|at| {
                    let first = count * site_at(self.lattice, parity * half + at);
                    reals[first..first + count].iter().copied()
                })
                .collect(),
        };
        // SAFETY: the caller's promise.
        unsafe { Array { name, address, width: self.width }.write(backend, &numbers) }
    }
}
