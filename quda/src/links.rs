//! Links and clover terms that applications load, and that stay until they are freed.
use crate::define::UNSET_REAL;
use crate::enums::*;
use crate::order::{LinkArrays, Width};
use crate::setup::State;
use crate::structs::{QudaGaugeParam, QudaInvertParam};
use ferrite::field::host::HostGauge;
use ferrite::gauge::measure::unitarity;
use ferrite::lattice::Lattice;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;
use std::sync::Arc;

/// Links of hopping terms, as the application loaded them.
pub struct LoadedLinks {
    /// Links without the factors and signs that the application has multiplied into them.
    pub gauge: Arc<HostGauge>,
    /// Factor of the links in space that the application has multiplied into them, beside that of the anisotropy.
    pub scale: f64,
    /// Anisotropy ξ₀/ν, by which the application has divided the links in space.
    pub anisotropy: f64,
    /// Whether the links of the last time slice have the sign of antiperiodic quarks.
    pub is_antiperiodic: bool,
}

/// Clover term that was made from resident links.
#[derive(Clone)]
pub struct LoadedClover {
    /// Coefficients of the planes in space and of those with t, in the normalisation of κ.
    pub coefficients: [f64; 2],
    /// Links from which the term was made.
    pub gauge: Arc<HostGauge>,
}

/// Fails with the name of a field whose value is not offered.
pub fn not_offered(field: &str, of_type: &str, value: i32, offered: &str) -> Failure {
    let value = crate::define::name_of(of_type, value).map_or_else(|| value.to_string(), String::from);
    Failure::refused(format!("{field} = {value} is not offered: {offered}"))
}

/// Fails unless a structure has the size that it has in this library: applications of other headers would be misread.
pub fn check_size(found: usize, expected: usize) -> Outcome {
    match found == expected {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "struct_size = {found}, but this library has {expected}: make the structure with newQuda…Param, and compile \
             the application against Ferrite's headers"
        ))),
    }
}

/// Returns a sentence about a field that the application has set to another number than 0.
pub fn set_to_other_than_0(field: &str, value: i32) -> Option<String> {
    (value != 0 && value != crate::define::UNSET_INT).then(|| format!("{field} = {value} is not offered: expected 0"))
}

/// Returns what a pointer of an argument points to.
///
/// # Safety
/// The pointer is null or valid, and nothing else uses what it points to during the call.
pub unsafe fn given<'a, T>(pointer: *mut T, name: &str) -> Outcome<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::refused(format!("{name}: the pointer is null")))
}

/// Returns the lattice of links, and their arrays and precision.
unsafe fn arrays(h_gauge: *mut c_void, param: &QudaGaugeParam) -> Outcome<(Lattice, LinkArrays, Width)> {
    if h_gauge.is_null() {
        return Err(Failure::refused("h_gauge: the pointer is null"));
    }
    if param.location == QUDA_CUDA_FIELD_LOCATION {
        let offered = "give arrays on the host, with QUDA_CPU_FIELD_LOCATION";
        return Err(not_offered("location", "QudaFieldLocation", param.location, offered));
    }
    let extents = param.X.map(|n| usize::try_from(n).unwrap_or(0));
    let lattice = Lattice::new(extents)?;
    let arrays = match param.gauge_order {
        QUDA_QDP_GAUGE_ORDER => {
            // SAFETY: in this order, the application gives four pointers.
            let four = unsafe { std::slice::from_raw_parts(h_gauge.cast::<*mut c_void>(), 4) };
            if four.iter().any(|array| array.is_null()) {
                return Err(Failure::refused("h_gauge: an array of links is a null pointer"));
            }
            LinkArrays::ByDirection([four[0], four[1], four[2], four[3]])
        }
        QUDA_MILC_GAUGE_ORDER => LinkArrays::BySite(h_gauge),
        order => {
            let offered = "orders are QUDA_QDP_GAUGE_ORDER and QUDA_MILC_GAUGE_ORDER";
            return Err(not_offered("gauge_order", "QudaGaugeFieldOrder", order, offered));
        }
    };
    Ok((lattice, arrays, Width::of("cpu_prec", param.cpu_prec)?))
}

/// Returns the factor that makes the first row of each link in space a unit vector, if it is the same for all of them.
fn scale_in_space(gauge: &HostGauge) -> Option<f64> {
    let norm = |k: usize| gauge.links()[k][0].iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
    let first = norm(0);
    let is_same = (0..gauge.links().len()).filter(|k| k % 4 < 3).all(|k| (norm(k) - first).abs() < 1e-5 * first);
    (is_same && first > 0.0).then_some(first)
}

/// Keeps links of an application.
///
/// # Safety
/// `h_gauge` has links as `param` describes them.
pub unsafe fn load(h_gauge: *mut c_void, param: *mut QudaGaugeParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    // SAFETY: as above.
    let (lattice, arrays, width) = unsafe { arrays(h_gauge, param) }?;
    if param.r#type != QUDA_WILSON_LINKS {
        return Err(not_offered("type", "QudaLinkType", param.r#type, "links of type QUDA_WILSON_LINKS are"));
    }
    let zeros = [
        ("staggered_phase_applied", param.staggered_phase_applied),
        ("use_resident_gauge", param.use_resident_gauge),
        ("return_result_gauge", param.return_result_gauge),
    ];
    if let Some(why) = zeros.into_iter().find_map(|(field, value)| set_to_other_than_0(field, value)) {
        return Err(Failure::refused(why));
    }
    if param.i_mu != 0.0 && param.i_mu != UNSET_REAL {
        return Err(Failure::refused(format!("i_mu = {} is not offered: expected 0", param.i_mu)));
    }
    let anisotropy = param.anisotropy;
    if !(anisotropy.is_finite() && anisotropy > 0.0) {
        return Err(Failure::refused(format!("anisotropy = {anisotropy}: expected a number above 0")));
    }
    let is_antiperiodic = match param.t_boundary {
        QUDA_ANTI_PERIODIC_T => true,
        QUDA_PERIODIC_T => false,
        other => {
            let offered = "expected QUDA_ANTI_PERIODIC_T or QUDA_PERIODIC_T";
            return Err(not_offered("t_boundary", "QudaTboundary", other, offered));
        }
    };
    // SAFETY: as above.
    let mut gauge = unsafe { arrays.read(lattice, width) };
    let found = scale_in_space(&gauge).ok_or_else(|| {
        Failure::refused("the links in space have different norms: links of SU(3) times one factor are expected")
    })?;
    let last = lattice.volume() - lattice.volume() / lattice.size()[3];
    for (k, link) in gauge.links_mut().iter_mut().enumerate() {
        let factor = match (k % 4, k / 4 >= last) {
            (3, true) if is_antiperiodic => -1.0,
            (3, _) => 1.0,
            _ => 1.0 / found,
        };
        link.as_flattened_mut().iter_mut().for_each(|number| *number *= factor);
    }
    let violation = unitarity(&gauge).violation;
    if violation > 1e-4 || violation.is_nan() {
        return Err(Failure::refused(format!(
            "without the factors of anisotropy and boundary, the links deviate from SU(3) by {violation:.1e}: expected \
             links of SU(3), and a t_boundary that says whether the last time slice has a sign"
        )));
    }
    let links = LoadedLinks { gauge: Arc::new(gauge), scale: found * anisotropy, anisotropy, is_antiperiodic };
    State::with(|state| {
        state.operator = None;
        state.links = Some(links);
        Ok(())
    })
}

/// Frees all links.
pub fn free() -> Outcome {
    State::with(|state| {
        (state.operator, state.links) = (None, None);
        Ok(())
    })
}

/// Frees links of one type.
pub fn free_type(link_type: QudaLinkType) -> Outcome {
    match link_type {
        QUDA_WILSON_LINKS => free(),
        // Links of other types cannot have been loaded.
        _ => Ok(()),
    }
}

/// Makes a clover term from the resident links.
///
/// # Safety
/// `param` is null or points to a structure.
pub unsafe fn load_clover(clover: *mut c_void, inverse: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "inv_param") }?;
    if !clover.is_null() || !inverse.is_null() {
        return Err(Failure::refused(
            "h_clover and h_clovinv: clover terms of the application are not offered: give null pointers, so that the \
             term is made from the resident links",
        ));
    }
    if param.clover_rho != 0.0 && param.clover_rho != UNSET_REAL {
        return Err(Failure::refused(format!("clover_rho = {} is not offered: expected 0", param.clover_rho)));
    }
    if param.return_clover == 1 || param.return_clover_inverse == 1 {
        return Err(Failure::refused("return_clover and return_clover_inverse are not offered: expected 0"));
    }
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
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
        let links = state.links.as_ref().ok_or_else(|| {
            Failure::refused("there are no links: call loadGaugeQuda before the clover term is made from them")
        })?;
        // A loop in space has four links in space, and one with t has two.
        let scale = links.scale / links.anisotropy;
        let coefficients = [scale.powi(4), scale.powi(2)].map(|factor| coefficient * factor);
        state.clover = Some(LoadedClover { coefficients, gauge: links.gauge.clone() });
        state.operator = None;
        Ok(())
    })
}

/// Frees the clover term.
pub fn free_clover() -> Outcome {
    State::with(|state| {
        (state.operator, state.clover) = (None, None);
        Ok(())
    })
}
