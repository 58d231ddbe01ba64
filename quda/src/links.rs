//! Links and clover terms that applications load, and that stay until they are freed.
use crate::check::{Mistakes, check_size, given, is_on, not_offered};
use crate::define::{UNSET_INT, UNSET_REAL};
use crate::enums::*;
use crate::forces::clover_quarks;
use crate::memory::{Array, Width};
use crate::order::{LinkArrays, PackedBlocks, SiteArray};
use crate::products::clover_blocks;
use crate::state::{Links, State};
use crate::structs::{QudaGaugeParam, QudaInvertParam};
use ferrite::field::HermitianBlock;
use ferrite::field::host::{HostGauge, Matrix};
use ferrite::gauge::measure::unitarity;
use ferrite::hmc::wilson::determinant::log_determinants;
use ferrite::lattice::Section;
use ferrite::num_complex::Complex64;
use ferrite_tasks::{Failure, Outcome};
use rayon::prelude::*;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::sync::Arc;

/// Links of hopping terms, as the application loaded them or as calls changed them.
pub struct LoadedLinks {
    /// Links with all factors and signs that the application has multiplied into them.
    pub links: Links,
    /// Factors and signs in the links.
    pub factors: LinkFactors,
    special: OnceCell<SpecialUnitaryLinks>,
}

/// Factors and signs that an application has multiplied into links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkFactors {
    /// Anisotropy ξ₀/ν, by which the application has divided the links in space.
    pub anisotropy: f64,
    /// Whether the links of the last time slice have the sign of antiperiodic quarks.
    pub is_antiperiodic: bool,
    /// Convention of staggered phases.
    pub phases: QudaStaggeredPhase,
    /// Whether the links have staggered phases.
    pub has_phases: bool,
}

/// Links of SU(3), without the factors and signs that an application has multiplied into them.
pub struct SpecialUnitaryLinks {
    /// Links of SU(3).
    pub gauge: Arc<HostGauge>,
    /// Factor of the links in space that the application has multiplied into them.
    pub factor_in_space: f64,
}

/// Clover term A, in the normalisation of κ.
pub enum LoadedClover {
    /// Term that is made from resident links.
    OfLinks {
        /// Coefficients of the planes in space and of those with t.
        coefficients: [f64; 2],
        /// Links from which the term is made.
        gauge: Arc<HostGauge>,
    },
    /// Term of the application.
    Given {
        /// Blocks of the upper and of the lower spins, in lexicographic order of the sites.
        blocks: Vec<[HermitianBlock; 2]>,
    },
}

impl LinkFactors {
    /// Reads the factors of a structure.
    pub fn of(param: &QudaGaugeParam) -> Outcome<Self> {
        let anisotropy = param.anisotropy;
        if !(anisotropy.is_finite() && anisotropy > 0.0) {
            return Err(Failure::refused(format!("anisotropy = {anisotropy}: expected a number above 0")));
        }
        if param.i_mu != 0.0 && param.i_mu != UNSET_REAL {
            return Err(Failure::refused(format!("i_mu = {} is not offered: expected 0", param.i_mu)));
        }
        let is_antiperiodic = match param.t_boundary {
            QUDA_ANTI_PERIODIC_T => true,
            QUDA_PERIODIC_T => false,
            other => {
                let offered = "expected QUDA_ANTI_PERIODIC_T or QUDA_PERIODIC_T";
                return Err(not_offered("t_boundary", "QudaTboundary", other, offered));
            }
        };
        let has_phases = is_on(param.staggered_phase_applied);
        Ok(LinkFactors { anisotropy, is_antiperiodic, phases: param.staggered_phase_type, has_phases })
    }
    /// Returns the sign of the link in direction `mu` at a site of the whole lattice that comes from the boundary condition and, if there
    /// are some, from staggered phases.
    pub fn sign(&self, extents: [usize; 4], site: [usize; 4], mu: usize) -> f64 {
        let across = mu == 3 && site[3] + 1 == extents[3] && self.is_antiperiodic;
        let boundary = if across { -1.0 } else { 1.0 };
        if self.has_phases { boundary * phase(self.phases, site, mu) } else { boundary }
    }
}

/// Returns the sign of the link in direction `mu` at a site in a convention of staggered phases.
pub fn phase(phases: QudaStaggeredPhase, [x, y, z, t]: [usize; 4], mu: usize) -> f64 {
    // The sums whose parity is the sign. Chroma's signs are those of its operator, which is −D.
    let sum = match phases {
        QUDA_STAGGERED_PHASE_MILC => [t, t + x, t + x + y, 0][mu],
        QUDA_STAGGERED_PHASE_CHROMA => 1 + [0, x, x + y, x + y + z][mu],
        QUDA_STAGGERED_PHASE_TIFR => [3 + t + z + y, 2 + t + z, 1 + t, 0][mu],
        _ => 0,
    };
    if sum % 2 == 0 { 1.0 } else { -1.0 }
}

/// Multiplies links by a number for each link, which depends on the site of the whole lattice and the direction.
pub fn multiply(gauge: &mut HostGauge, part: &Section, factor: impl Fn([usize; 4], usize) -> f64 + Sync) {
    let factor = |k: usize| factor(part.global.coordinates(part.global_index(k / 4)), k % 4);
    gauge.links_mut().par_iter_mut().enumerate().with_min_len(1024).for_each(|(k, link)| {
        let factor = factor(k);
        link.as_flattened_mut().iter_mut().for_each(|number| *number *= factor);
    });
}

/// Returns the factor that makes the first row of each link in space a unit vector, if it is the same for all of them.
fn scale_in_space(gauge: &HostGauge) -> Option<f64> {
    let norm = |link: &Matrix| link[0].iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let first = norm(&gauge.links()[0]);
    let is_same =
        gauge.links().par_chunks(4).all(|site| site[..3].iter().all(|link| (norm(link) - first).abs() < 1e-5 * first));
    (is_same && first > 0.0).then_some(first)
}

impl LoadedLinks {
    /// Keeps links with their factors.
    pub fn new(links: Links, factors: LinkFactors) -> Self {
        LoadedLinks { links, factors, special: OnceCell::new() }
    }
    /// Returns the links of SU(3) without the factors and signs.
    ///
    /// # Errors
    /// Links that are not a factor times links of SU(3).
    pub fn special_unitary(&self) -> Outcome<&SpecialUnitaryLinks> {
        if self.special.get().is_none() {
            let (part, mut gauge) = (self.links.part, HostGauge::clone(self.links.host()?));
            let found = scale_in_space(&gauge).ok_or_else(|| {
                Failure::refused(
                    "the links in space have different norms: links of SU(3) times one factor are expected",
                )
            })?;
            let (factors, extents) = (self.factors, part.global.size());
            multiply(&mut gauge, &part, |site, mu| {
                let sign = factors.sign(extents, site, mu);
                if mu < 3 { sign / found } else { sign }
            });
            let violation = unitarity(&gauge).violation;
            if violation > 1e-4 || violation.is_nan() {
                return Err(Failure::refused(format!(
                    "without the factors of anisotropy, boundary and staggered phases, the links deviate from SU(3) by \
                     {violation:.1e}: expected links of SU(3), and a t_boundary and a staggered_phase_applied that say \
                     which signs they have"
                )));
            }
            let made = SpecialUnitaryLinks { gauge: Arc::new(gauge), factor_in_space: found };
            return Ok(self.special.get_or_init(|| made));
        }
        self.special.get().ok_or_else(|| Failure::failed("there are no links"))
    }
}

/// Returns this process's part of the lattice, and the arrays of a structure.
///
/// # Errors
/// Orders and precisions that are not offered.
///
/// # Safety
/// For QUDA_QDP_GAUGE_ORDER, `address` is null or has four pointers.
pub unsafe fn arrays<'a>(
    state: &State,
    name: &'a str,
    address: *mut c_void,
    param: &QudaGaugeParam,
) -> Outcome<(Section, LinkArrays<'a>)> {
    let mut mistakes = Mistakes::default();
    if param.location != UNSET_INT {
        mistakes.expect_location("location", param.location);
    }
    mistakes.finish()?;
    let width = Width::of("cpu_prec", param.cpu_prec)?;
    let array = |address: *mut c_void| Array { name, address, width };
    let null = std::ptr::null_mut();
    let arrays = match param.gauge_order {
        QUDA_QDP_GAUGE_ORDER if address.is_null() => LinkArrays::ByDirection([array(null); 4]),
        QUDA_QDP_GAUGE_ORDER => {
            // SAFETY: the caller's promise.
            let four = unsafe { std::slice::from_raw_parts(address.cast::<*mut c_void>(), 4) };
            LinkArrays::ByDirection([four[0], four[1], four[2], four[3]].map(array))
        }
        QUDA_MILC_GAUGE_ORDER => LinkArrays::BySite(array(address)),
        QUDA_MILC_SITE_GAUGE_ORDER => LinkArrays::InSites(SiteArray {
            sites: array(address),
            links: param.gauge_offset,
            momenta: param.mom_offset,
            size: param.site_size,
        }),
        order => {
            let offered = "orders are QUDA_QDP_GAUGE_ORDER, QUDA_MILC_GAUGE_ORDER and QUDA_MILC_SITE_GAUGE_ORDER";
            return Err(not_offered("gauge_order", "QudaGaugeFieldOrder", order, offered));
        }
    };
    Ok((state.part(param.X)?, arrays))
}

/// Returns the links that a call works on: resident ones with `use_resident_gauge`, otherwise those of the application.
///
/// # Safety
/// `address` has links as `param` describes them.
pub unsafe fn taken(state: &State, name: &str, address: *mut c_void, param: &QudaGaugeParam) -> Outcome<LoadedLinks> {
    // SAFETY: the caller's promise.
    let (part, arrays) = unsafe { arrays(state, name, address, param) }?;
    // SAFETY: as above.
    let gauge = unsafe { arrays.read_links(state.backend()?, part.local) }?;
    Ok(LoadedLinks::new(Links::of_host(part, gauge), LinkFactors::of(param)?))
}

/// Returns the links that a call works on, and keeps those of the application in `read`.
///
/// # Safety
/// As for [`taken`].
pub unsafe fn resident_or_taken<'a>(
    state: &'a State,
    read: &'a mut Option<LoadedLinks>,
    name: &str,
    address: *mut c_void,
    param: &QudaGaugeParam,
) -> Outcome<&'a LoadedLinks> {
    if is_on(param.use_resident_gauge) {
        return state.wilson();
    }
    // SAFETY: the caller's promise.
    Ok(read.insert(unsafe { taken(state, name, address, param) }?))
}

/// Makes links of the application resident if `make_resident_gauge` is set and there are some.
pub fn keep(state: &mut State, read: Option<LoadedLinks>, param: &QudaGaugeParam) {
    if is_on(param.make_resident_gauge) && read.is_some() {
        (state.operator, state.wilson) = (None, read);
    }
}

/// Returns the place of links of a type.
fn slot(state: &mut State, link_type: QudaLinkType) -> Outcome<&mut Option<LoadedLinks>> {
    Ok(match link_type {
        QUDA_WILSON_LINKS => &mut state.wilson,
        QUDA_ASQTAD_FAT_LINKS => &mut state.fat,
        QUDA_ASQTAD_LONG_LINKS => &mut state.long,
        QUDA_SMEARED_LINKS => &mut state.smeared,
        other => {
            let offered = "types are QUDA_WILSON_LINKS, QUDA_ASQTAD_FAT_LINKS, QUDA_ASQTAD_LONG_LINKS and \
                           QUDA_SMEARED_LINKS";
            return Err(not_offered("type", "QudaLinkType", other, offered));
        }
    })
}

/// Keeps links of an application. With `use_resident_gauge`, resident links are kept as they are.
///
/// # Safety
/// `h_gauge` has links as `param` describes them.
pub unsafe fn load(h_gauge: *mut c_void, param: *mut QudaGaugeParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    State::with(|state| {
        if is_on(param.use_resident_gauge) && param.r#type == QUDA_WILSON_LINKS {
            return state.wilson().map(|_| ());
        }
        slot(state, param.r#type)?;
        // SAFETY: as above.
        let links = unsafe { taken(state, "h_gauge", h_gauge, param) }?;
        state.operator = None;
        *slot(state, param.r#type)? = Some(links);
        Ok(())
    })
}

/// Writes resident links to memory of the application.
///
/// # Safety
/// `h_gauge` has room for links as `param` describes them.
pub unsafe fn save(h_gauge: *mut c_void, param: *mut QudaGaugeParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    State::with(|state| {
        let none = Failure::refused("there are no links of this type: load or make them before they are saved");
        slot(state, param.r#type)?.as_ref().ok_or(none)?;
        // SAFETY: as above.
        let (part, arrays) = unsafe { arrays(state, "h_gauge", h_gauge, param) }?;
        let gauge = match slot(state, param.r#type)? {
            Some(loaded) if loaded.links.part == part => loaded.links.host()?.clone(),
            _ => return Err(Failure::refused("X: the resident links are on another lattice")),
        };
        // SAFETY: as above.
        unsafe { arrays.write_links(state.backend()?, &gauge) }
    })
}

/// Frees all links.
pub fn free() -> Outcome {
    State::with(|state| {
        state.operator = None;
        (state.wilson, state.fat, state.long, state.smeared) = (None, None, None, None);
        Ok(())
    })
}

/// Frees links of one type.
pub fn free_type(link_type: QudaLinkType) -> Outcome {
    State::with(|state| {
        // Links of other types cannot have been loaded.
        if let Ok(slot) = slot(state, link_type) {
            *slot = None;
        }
        if link_type != QUDA_SMEARED_LINKS {
            state.operator = None;
        }
        Ok(())
    })
}

/// Frees smeared links.
pub fn free_smeared() -> Outcome {
    free_type(QUDA_SMEARED_LINKS)
}

/// Makes a clover term from the resident links, or keeps the one of the application if `clover` is not null and `compute_clover` is not set.
///
/// # Safety
/// `param` is null or points to a structure; `clover` and `inverse` are null or have two blocks for each site.
pub unsafe fn load_clover(clover: *mut c_void, inverse: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "inv_param") }?;
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    if param.clover_rho != 0.0 && param.clover_rho != UNSET_REAL {
        return Err(Failure::refused(format!("clover_rho = {} is not offered: expected 0", param.clover_rho)));
    }
    let returned = [(param.return_clover, clover, false), (param.return_clover_inverse, inverse, true)];
    let returned = returned.map(|(flag, address, inverse)| (is_on(flag), address, inverse));
    let returns = returned.iter().any(|(is_wanted, ..)| *is_wanted);
    let has_pointers = !clover.is_null() || !inverse.is_null();
    if has_pointers && !returns && !is_on(param.compute_clover) {
        // SAFETY: as above.
        return unsafe { take_clover(clover, inverse, param) };
    }
    let is_set = |number: f64| number != UNSET_REAL && number != 0.0;
    let coefficient = match (is_set(param.clover_coeff), is_set(param.clover_csw) && is_set(param.kappa)) {
        (true, _) => param.clover_coeff,
        (false, true) => param.kappa * param.clover_csw,
        (false, false) => {
            return Err(Failure::refused("neither clover_coeff nor clover_csw and kappa are set: set one of the two"));
        }
    };
    if !coefficient.is_finite() {
        return Err(Failure::refused(format!("clover_coeff = {coefficient}: expected a finite number")));
    }
    State::with(|state| {
        if let Some(LoadedClover::Given { .. }) = state.clover {
            state.operator = None;
        }
        let links = state.wilson()?.special_unitary()?;
        // A loop in space has four links in space, and one with t has two.
        let scale = links.factor_in_space;
        let coefficients = [scale.powi(4), scale.powi(2)].map(|factor| coefficient * factor);
        state.clover = Some(LoadedClover::OfLinks { coefficients, gauge: links.gauge.clone() });
        if is_on(param.compute_clover_trlog) {
            param.trlogA = logarithms(state, param.kappa)?;
        }
        for (is_wanted, address, inverse) in returned {
            if is_wanted {
                // SAFETY: the caller's promise.
                unsafe { return_clover(state, address, inverse, param) }?;
            }
        }
        Ok(())
    })
}

/// Keeps the clover term of an application.
unsafe fn take_clover(clover: *mut c_void, inverse: *mut c_void, param: &mut QudaInvertParam) -> Outcome {
    let mut mistakes = Mistakes::default();
    mistakes.expect_location("clover_location", param.clover_location);
    mistakes.expect("clover_order", "QudaCloverFieldOrder", param.clover_order, &[QUDA_PACKED_CLOVER_ORDER]);
    if clover.is_null() {
        mistakes.add(
            "h_clover: the pointer is null, but h_clovinv is not: give the clover term, from which its inverse is made",
        );
    }
    if is_on(param.compute_clover_trlog) {
        mistakes.add("compute_clover_trlog = 1 is not offered for a clover term of the application: expected 0");
    }
    mistakes.finish()?;
    let width = Width::of("clover_cpu_prec", param.clover_cpu_prec)?;
    State::with(|state| {
        let part = state.wilson()?.links.part;
        let backend = state.backend()?;
        let array = |name, address| PackedBlocks(Array { name, address, width });
        // SAFETY: the promise of the caller's caller.
        let blocks = unsafe { array("h_clover", clover).read(backend, part.local) }?;
        if !inverse.is_null() {
            // SAFETY: as above.
            let inverse = unsafe { array("h_clovinv", inverse).read(backend, part.local) }?;
            let deviation = deviation_of_inverse(&blocks, &inverse);
            if deviation > 1e-3 || deviation.is_nan() {
                return Err(Failure::refused(format!(
                    "h_clovinv is not the inverse of h_clover: their product deviates from 1 by {deviation:.1e}"
                )));
            }
        }
        (state.operator, state.clover) = (None, Some(LoadedClover::Given { blocks }));
        Ok(())
    })
}

/// Writes the loaded clover term, or its inverse, to memory of the application.
unsafe fn return_clover(state: &mut State, address: *mut c_void, inverse: bool, param: &QudaInvertParam) -> Outcome {
    let mut mistakes = Mistakes::default();
    mistakes.expect_location("clover_location", param.clover_location);
    mistakes.expect("clover_order", "QudaCloverFieldOrder", param.clover_order, &[QUDA_PACKED_CLOVER_ORDER]);
    mistakes.finish()?;
    let width = Width::of("clover_cpu_prec", param.clover_cpu_prec)?;
    let name = if inverse { "h_clovinv" } else { "h_clover" };
    let blocks = clover_blocks(state, inverse)?;
    let lattice = state.wilson()?.links.part.local;
    // SAFETY: the promise of the caller's caller.
    unsafe { PackedBlocks(Array { name, address, width }).write(state.backend()?, lattice, &blocks) }
}

/// Returns the largest element of |A B − 1| over all blocks.
fn deviation_of_inverse(a: &[[HermitianBlock; 2]], b: &[[HermitianBlock; 2]]) -> f64 {
    let of_block = |a: &HermitianBlock, b: &HermitianBlock| {
        let (a, b) = (a.matrix(), b.matrix());
        let element = |i: usize, j: usize| (0..6).map(|k| a[i][k] * b[k][j]).sum::<Complex64>();
        let distance = |i: usize, j: usize| (element(i, j) - if i == j { 1.0 } else { 0.0 }).norm();
        (0..36).map(|k| distance(k / 6, k % 6)).fold(0.0, f64::max)
    };
    let of_site =
        |(a, b): (&[HermitianBlock; 2], &[HermitianBlock; 2])| of_block(&a[0], &b[0]).max(of_block(&a[1], &b[1]));
    a.par_iter().zip(b).map(of_site).reduce(|| 0.0, f64::max)
}

/// Returns ln det A of the loaded clover term, in the normalisation of κ, over the even and over the odd sites.
fn logarithms(state: &State, kappa: f64) -> Outcome<[f64; 2]> {
    if !(kappa.is_finite() && kappa > 0.0) {
        return Err(Failure::refused(format!(
            "kappa = {kappa}: the logarithm of the determinant needs a number above 0"
        )));
    }
    // Without the value on links that are 1, where A is 1 in this normalisation.
    let (quarks, links) = clover_quarks(state, kappa)?;
    Ok(log_determinants(&quarks, &links)?)
}

/// Frees the clover term.
pub fn free_clover() -> Outcome {
    State::with(|state| {
        if let Some(LoadedClover::Given { .. }) = state.clover.take() {
            state.operator = None;
        }
        Ok(())
    })
}
