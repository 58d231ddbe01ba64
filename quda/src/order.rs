//! Orders of fields in the memory of applications: even sites before odd ones.
use crate::enums::{QUDA_DOUBLE_PRECISION, QUDA_SINGLE_PRECISION, QudaPrecision};
use ferrite::field::host::{HostGauge, HostSpinor};
use ferrite::lattice::Lattice;
use ferrite::num_complex::{Complex32, Complex64};
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Precision of numbers in the memory of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Single precision.
    Single,
    /// Double precision.
    Double,
}

impl Width {
    /// Returns the precision that a field of a structure names.
    ///
    /// # Errors
    /// Other precisions than single and double.
    pub fn of(name: &str, precision: QudaPrecision) -> Outcome<Self> {
        match precision {
            QUDA_SINGLE_PRECISION => Ok(Width::Single),
            QUDA_DOUBLE_PRECISION => Ok(Width::Double),
            _ => Err(Failure::refused(format!(
                "{name} = {precision}: arrays on the host have QUDA_SINGLE_PRECISION or QUDA_DOUBLE_PRECISION"
            ))),
        }
    }
    fn bytes(self) -> usize {
        match self {
            Width::Single => size_of::<Complex32>(),
            Width::Double => size_of::<Complex64>(),
        }
    }
    /// Reads the complex number `place` of an array.
    ///
    /// # Safety
    /// The array has the number.
    unsafe fn read(self, array: *const c_void, place: usize) -> Complex64 {
        // SAFETY: the caller's promise.
        unsafe {
            let at = array.cast::<u8>().add(place * self.bytes());
            match self {
                Width::Double => at.cast::<Complex64>().read_unaligned(),
                Width::Single => {
                    let number = at.cast::<Complex32>().read_unaligned();
                    Complex64::new(number.re.into(), number.im.into())
                }
            }
        }
    }
    /// Writes the complex number `place` of an array.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    unsafe fn write(self, array: *mut c_void, place: usize, number: Complex64) {
        // SAFETY: the caller's promise.
        unsafe {
            let at = array.cast::<u8>().add(place * self.bytes());
            match self {
                Width::Double => at.cast::<Complex64>().write_unaligned(number),
                Width::Single => {
                    at.cast::<Complex32>().write_unaligned(Complex32::new(number.re as f32, number.im as f32));
                }
            }
        }
    }
}

/// Returns the place of the site with the lexicographic index `site` in an order with even sites first.
pub fn place(lattice: Lattice, site: usize) -> usize {
    lattice.parity(lattice.coordinates(site)) * lattice.volume() / 2 + site / 2
}

/// Arrays of the links of an application.
#[derive(Clone, Copy, Debug)]
pub enum LinkArrays {
    /// QUDA_QDP_GAUGE_ORDER: an array for each direction.
    ByDirection([*mut c_void; 4]),
    /// QUDA_MILC_GAUGE_ORDER: the four links of a site together.
    BySite(*mut c_void),
}

impl LinkArrays {
    /// Returns the array and the place of the first number of a link.
    fn place(self, lattice: Lattice, site: usize, mu: usize) -> (*mut c_void, usize) {
        let at = place(lattice, site);
        match self {
            LinkArrays::ByDirection(arrays) => (arrays[mu], 9 * at),
            LinkArrays::BySite(array) => (array, 9 * (4 * at + mu)),
        }
    }
    /// Reads links.
    ///
    /// # Safety
    /// The arrays have the links of the lattice.
    pub unsafe fn read(self, lattice: Lattice, width: Width) -> HostGauge {
        let mut gauge = HostGauge::unit(lattice);
        for (k, link) in gauge.links_mut().iter_mut().enumerate() {
            let (array, first) = self.place(lattice, k / 4, k % 4);
            for (n, number) in link.as_flattened_mut().iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *number = unsafe { width.read(array, first + n) };
            }
        }
        gauge
    }
    /// Writes links.
    ///
    /// # Safety
    /// As for [`read`](Self::read).
    pub unsafe fn write(self, gauge: &HostGauge, width: Width) {
        for (k, link) in gauge.links().iter().enumerate() {
            let (array, first) = self.place(gauge.lattice(), k / 4, k % 4);
            for (n, number) in link.as_flattened().iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { width.write(array, first + n, *number) };
            }
        }
    }
}

/// Reads a spinor field in QUDA_DIRAC_ORDER: parity, site, spin, colour.
///
/// # Safety
/// The array has the numbers of a field on the lattice.
pub unsafe fn read_spinor(lattice: Lattice, array: *const c_void, width: Width) -> HostSpinor {
    let mut field = HostSpinor::zero(lattice);
    for (site, numbers) in field.numbers_mut().chunks_mut(12).enumerate() {
        let first = 12 * place(lattice, site);
        for (n, number) in numbers.iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *number = unsafe { width.read(array, first + n) };
        }
    }
    field
}

/// Writes a spinor field in QUDA_DIRAC_ORDER.
///
/// # Safety
/// As for [`read_spinor`].
pub unsafe fn write_spinor(field: &HostSpinor, array: *mut c_void, width: Width) {
    for (site, numbers) in field.numbers().chunks(12).enumerate() {
        let first = 12 * place(field.lattice(), site);
        for (n, number) in numbers.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { width.write(array, first + n, *number) };
        }
    }
}
