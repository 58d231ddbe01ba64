//! Staggered phases, fat and long links, and projections to SU(3).
use crate::check::{Mistakes, check_size, given, is_on};
use crate::enums::*;
use crate::links::{LinkFactors, LoadedLinks, arrays, multiply, phase, taken};
use crate::state::{Links, State};
use crate::structs::QudaGaugeParam;
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::ape_hyp::projected_to_su3;
use ferrite::lattice::Section;
use ferrite::operators::fat_links::{PathCoefficients, fat_links, long_links, project_u3};
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Multiplies links by all signs of staggered phases and of the boundary condition.
fn with_signs(gauge: &mut HostGauge, part: &Section, factors: LinkFactors) {
    let extents = part.global.size();
    multiply(gauge, part, |site, mu| LinkFactors { has_phases: true, ..factors }.sign(extents, site, mu));
}

/// Changes the links of a call: resident ones or those of the application. The result goes where the structure says.
unsafe fn change(
    h_gauge: *mut c_void,
    param: *mut QudaGaugeParam,
    work: impl FnOnce(&State, LoadedLinks) -> Outcome<LoadedLinks>,
) -> Outcome {
    // SAFETY: the promise of the caller's caller.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    State::with(|state| {
        let links = match is_on(param.use_resident_gauge) {
            true => {
                state.wilson()?;
                state.operator = None;
                state.wilson.take().ok_or_else(|| Failure::failed("there are no links"))?
            }
            // SAFETY: as above.
            false => unsafe { taken(state, "gauge_h", h_gauge, param) }?,
        };
        let changed = work(state, links)?;
        if is_on(param.return_result_gauge) {
            // SAFETY: as above.
            let (_, arrays) = unsafe { arrays(state, "gauge_h", h_gauge, param) }?;
            // SAFETY: as above.
            unsafe { arrays.write_links(state.backend()?, changed.links.host()?) }?;
        }
        if is_on(param.use_resident_gauge) || is_on(param.make_resident_gauge) {
            state.operator = None;
            state.wilson = Some(changed);
        }
        Ok(())
    })
}

/// Multiplies links by staggered phases and the sign of the boundary condition, or removes them if the links have them.
///
/// # Safety
/// `gauge_h` has links as `param` describes them.
pub unsafe fn change_phases(gauge_h: *mut c_void, param: *mut QudaGaugeParam) -> Outcome {
    let change_signs = |_: &State, loaded: LoadedLinks| {
        let (part, factors) = (loaded.links.part, loaded.factors);
        let mut mistakes = Mistakes::default();
        let phases = [QUDA_STAGGERED_PHASE_MILC, QUDA_STAGGERED_PHASE_CHROMA, QUDA_STAGGERED_PHASE_TIFR];
        mistakes.expect("staggered_phase_type", "QudaStaggeredPhase", factors.phases, &phases);
        mistakes.finish()?;
        let mut gauge = HostGauge::clone(loaded.links.host()?);
        with_signs(&mut gauge, &part, factors);
        let factors = LinkFactors { has_phases: !factors.has_phases, ..factors };
        Ok(LoadedLinks::new(Links::of_host(part, gauge), factors))
    };
    // SAFETY: the caller's promise.
    unsafe { change(gauge_h, param, change_signs) }
}

/// Projects links to SU(3) by their polar factors. Links with phases are projected without them.
///
/// # Safety
/// `gauge_h` has links as `param` describes them.
pub unsafe fn project(gauge_h: *mut c_void, _tol: f64, param: *mut QudaGaugeParam) -> Outcome {
    let project = |state: &State, loaded: LoadedLinks| {
        let (part, factors) = (loaded.links.part, loaded.factors);
        let mut gauge = HostGauge::clone(loaded.links.host()?);
        if factors.has_phases {
            with_signs(&mut gauge, &part, factors);
        }
        let field = GaugeField::upload(&state.device()?.domain(&part)?, &gauge)?;
        let mut gauge = projected_to_su3(&field)?.download()?;
        if factors.has_phases {
            with_signs(&mut gauge, &part, factors);
        }
        Ok(LoadedLinks::new(Links::of_host(part, gauge), factors))
    };
    // SAFETY: the caller's promise.
    unsafe { change(gauge_h, param, project) }
}

/// Makes fat links, long links and the projections of fat links to U(3), of which each that is not a null pointer is written. The path
/// coefficients belong to links with staggered phases. With Chroma's phases, the projection is to SU(3), without the phases.
///
/// # Safety
/// The pointers are null or have links as `param` describes them; `path_coeff` has six numbers.
pub unsafe fn compute_links(
    fatlink: *mut c_void,
    longlink: *mut c_void,
    ulink: *mut c_void,
    inlink: *mut c_void,
    path_coeff: *mut f64,
    param: *mut QudaGaugeParam,
) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    if path_coeff.is_null() {
        return Err(Failure::refused("path_coeff: the pointer is null"));
    }
    // SAFETY: as above.
    let c = unsafe { std::slice::from_raw_parts(path_coeff, 6) };
    let paths = PathCoefficients { one_link: c[0], naik: c[1], three: c[2], five: c[3], seven: c[4], lepage: c[5] };
    State::with(|state| {
        // SAFETY: as above.
        let thin = unsafe { taken(state, "inlink", inlink, param) }?;
        let (device, part, factors) = (state.device()?, thin.links.part, thin.factors);
        let thin = thin.links.field(device)?;
        let write = |name: &str, address: *mut c_void, gauge: &HostGauge| -> Outcome {
            // SAFETY: as above.
            let (_, arrays) = unsafe { arrays(state, name, address, param) }?;
            match arrays.are_null() {
                true => Ok(()),
                // SAFETY: as above.
                false => unsafe { arrays.write_links(state.backend()?, gauge) },
            }
        };
        if !longlink.is_null() {
            write("longlink", longlink, &long_links(thin, paths.naik)?.download()?)?;
        }
        let fat = fat_links(thin, &paths)?;
        if !fatlink.is_null() {
            write("fatlink", fatlink, &fat.download()?)?;
        }
        if ulink.is_null() {
            return Ok(());
        }
        let unitary = project_u3(&fat)?;
        if param.staggered_phase_type != QUDA_STAGGERED_PHASE_CHROMA {
            return write("ulink", ulink, &unitary.download()?);
        }
        let mut gauge = unitary.download()?;
        if factors.has_phases {
            with_signs(&mut gauge, &part, factors);
        }
        let mut gauge = projected_to_su3(&GaugeField::upload(&device.domain(&part)?, &gauge)?)?.download()?;
        if factors.has_phases {
            with_signs(&mut gauge, &part, factors);
        }
        write("ulink", ulink, &gauge)
    })
}

/// Returns the sign of staggered phases of links that have them.
pub fn sign_of_phases(factors: LinkFactors, site: [usize; 4], mu: usize) -> f64 {
    if factors.has_phases { phase(factors.phases, site, mu) } else { 1.0 }
}
