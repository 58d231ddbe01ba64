//! Momenta of links, and the steps of molecular dynamics.
use crate::check::{check_size, given, is_on};
use crate::links::{LoadedLinks, arrays, keep, resident_or_taken, taken};
use crate::loops::{Path, on_links, paths_of_directions};
use crate::state::{Links, State};
use crate::structs::QudaGaugeParam;
use ferrite::Precision;
use ferrite::field::host::HostGauge;
use ferrite::gauge::loops::closed_loops;
use ferrite::hmc::action::GaugeAction;
use ferrite::hmc::force::{Force, GaugeActionForce};
use ferrite::hmc::links::EvolvingLinks;
use ferrite::hmc::momenta::MomentumField;
use ferrite::hmc::paths::kick_by_paths;
use ferrite_tasks::bounds::number;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Takes momenta: resident ones with `use_resident_mom`, otherwise those of the application.
///
/// # Safety
/// `mom` has momenta as `param` describes them.
pub unsafe fn take(state: &mut State, name: &str, mom: *mut c_void, param: &QudaGaugeParam) -> Outcome<MomentumField> {
    if is_on(param.use_resident_mom) {
        let none = || Failure::refused("there are no resident momenta: call momResidentQuda first");
        return state.momenta.take().ok_or_else(none);
    }
    // SAFETY: the caller's promise.
    let (part, arrays) = unsafe { arrays(state, name, mom, param) }?;
    // SAFETY: as above.
    let momenta = unsafe { arrays.read_momenta(state.backend()?, part.local) }?;
    Ok(MomentumField::upload(&state.device()?.domain(&part)?, &momenta, Precision::Double)?)
}

/// Puts momenta where a structure says: to memory of the application, and to the resident ones.
///
/// # Safety
/// `mom` has room for momenta as `param` describes them.
pub unsafe fn put(
    state: &mut State,
    name: &str,
    mom: *mut c_void,
    param: &QudaGaugeParam,
    momenta: MomentumField,
) -> Outcome {
    if is_on(param.return_result_mom) {
        // SAFETY: the caller's promise.
        let (_, arrays) = unsafe { arrays(state, name, mom, param) }?;
        // SAFETY: as above.
        unsafe { arrays.write_momenta(state.backend()?, &momenta.download()?) }?;
    }
    // QUDA's calls with momenta of the application leave resident ones alone only if none are to be kept.
    state.momenta = is_on(param.make_resident_mom).then_some(momenta).or(if is_on(param.use_resident_mom) {
        None
    } else {
        state.momenta.take()
    });
    Ok(())
}

/// Keeps momenta of the application, or returns and frees resident ones.
///
/// # Safety
/// `mom` has momenta as `param` describes them.
pub unsafe fn exchange(mom: *mut c_void, param: *mut QudaGaugeParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    State::with(|state| match (is_on(param.make_resident_mom), is_on(param.return_result_mom)) {
        (true, false) => {
            let given = QudaGaugeParam { use_resident_mom: 0, ..*param };
            // SAFETY: as above.
            let momenta = unsafe { take(state, "mom", mom, &given) }?;
            state.momenta = Some(momenta);
            Ok(())
        }
        (false, true) => {
            let resident = QudaGaugeParam { use_resident_mom: 1, ..*param };
            // SAFETY: as above.
            let momenta = unsafe { take(state, "mom", mom, &resident) }?;
            // SAFETY: as above.
            unsafe { put(state, "mom", mom, &resident, momenta) }
        }
        _ => Err(Failure::refused(
            "set either make_resident_mom, to keep momenta, or return_result_mom, to get resident ones back",
        )),
    })
}

/// Returns ½ Σ |P|² − 4 summed over all links.
///
/// # Safety
/// `mom` has momenta as `param` describes them.
pub unsafe fn action(mom: *mut c_void, param: *mut QudaGaugeParam) -> Outcome<f64> {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    State::with(|state| {
        // SAFETY: as above.
        let momenta = unsafe { take(state, "momentum", mom, param) }?;
        let energy = momenta.kinetic_energy()?;
        if is_on(param.use_resident_mom) || is_on(param.make_resident_mom) {
            state.momenta = Some(momenta);
        }
        Ok(energy)
    })
}

/// Draws resident momenta of the weight exp(−½ Σ |P|²/σ²).
pub fn draw(seed: u64, sigma: f64) -> Outcome {
    number("sigma", sigma, "a finite number", |_| true)?;
    State::with(|state| {
        let none = || Failure::refused("there are no resident momenta: call momResidentQuda first");
        let momenta = state.momenta.as_mut().ok_or_else(none)?;
        momenta.draw(seed, 0)?;
        Ok(momenta.scale(sigma)?)
    })
}

/// Replaces the resident links by exp(σ P) with momenta P of the weight exp(−½ Σ |P|²).
pub fn draw_links(seed: u64, sigma: f64) -> Outcome {
    number("sigma", sigma, "a finite number", |_| true)?;
    State::with(|state| {
        let loaded = state.wilson()?;
        let (device, part, factors) = (state.device()?, loaded.links.part, loaded.factors);
        let domain = device.domain(&part)?;
        let mut momenta = MomentumField::zero(&domain, Precision::Double)?;
        momenta.draw(seed, 0)?;
        let mut links = ferrite::field::GaugeField::upload(&domain, &HostGauge::unit(part.local))?;
        momenta.move_links(&mut links, sigma, true)?;
        state.operator = None;
        state.wilson = Some(LoadedLinks::new(Links::of_device(part, links), factors));
        Ok(())
    })
}

/// Moves links: U ← exp(ε P) U, or with the adjoint of the exponential, which is never approximated.
///
/// # Safety
/// `gauge` and `momentum` have links and momenta as `param` describes them.
pub unsafe fn move_links(
    gauge: *mut c_void,
    momentum: *mut c_void,
    dt: f64,
    conj_mom: i32,
    _exact: i32,
    param: *mut QudaGaugeParam,
) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    number("dt", dt, "a finite number", |_| true)?;
    State::with(|state| {
        // SAFETY: as above.
        let momenta = unsafe { take(state, "momentum", momentum, param) }?;
        let loaded = match is_on(param.use_resident_gauge) {
            true => {
                state.wilson()?;
                state.wilson.take().ok_or_else(|| Failure::failed("there are no links"))?
            }
            // SAFETY: as above.
            false => unsafe { taken(state, "gauge", gauge, param) }?,
        };
        let (part, factors) = (loaded.links.part, loaded.factors);
        let mut links = loaded.links.field(state.device()?)?.copied()?;
        momenta.move_links(&mut links, if conj_mom == 0 { dt } else { -dt }, false)?;
        let moved = LoadedLinks::new(Links::of_device(part, links), factors);
        if is_on(param.return_result_gauge) {
            // SAFETY: as above.
            let (_, arrays) = unsafe { arrays(state, "gauge", gauge, param) }?;
            // SAFETY: as above.
            unsafe { arrays.write_links(state.backend()?, moved.links.host()?) }?;
        }
        if is_on(param.make_resident_gauge) {
            (state.operator, state.wilson) = (None, Some(moved));
        }
        if is_on(param.make_resident_mom) || is_on(param.use_resident_mom) {
            state.momenta = Some(momenta);
        }
        Ok(())
    })
}

/// Adds the force of closed paths to momenta: P ← P − ε A with the traceless anti-Hermitian part A of U_μ(x) Σ c L, where the paths L go
/// from x+μ̂ to x.
///
/// # Safety
/// `mom` and `links` have momenta and links as `param` describes them; the others are as for [`paths_of_directions`].
pub unsafe fn kick(
    mom: *mut c_void,
    links: *mut c_void,
    buffers: *mut *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number_of_paths: i32,
    _longest: i32,
    dt: f64,
    param: *mut QudaGaugeParam,
) -> Outcome<i32> {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "qudaGaugeParam") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    number("dt", dt, "a finite number", |_| true)?;
    // SAFETY: as above.
    let paths = unsafe { paths_of_directions(buffers, lengths, factors, number_of_paths) }?;
    State::with(|state| {
        // SAFETY: as above.
        let mut momenta = unsafe { take(state, "mom", mom, param) }?;
        if is_on(param.overwrite_mom) {
            momenta.scale(0.0)?;
        }
        let mut read = None;
        // SAFETY: as above.
        let loaded = unsafe { resident_or_taken(state, &mut read, "sitelink", links, param) }?;
        on_links(state, loaded, true, |links| match known_action(&paths) {
            Some(action) => {
                let links = EvolvingLinks::new(links, Precision::Double)?;
                GaugeActionForce { action, single: false }.kick(&links, dt, &mut momenta).map_err(Failure::failed)
            }
            None => Ok(kick_by_paths(links, paths.each_ref().map(Vec::as_slice), dt, &mut momenta)?),
        })?;
        keep(state, read, param);
        // SAFETY: as above.
        unsafe { put(state, "mom", mom, param, momenta) }?;
        Ok(0)
    })
}

/// Returns the action of plaquettes, rectangles and parallelograms whose force these paths are, if there is one, because it has faster
/// kernels.
fn known_action(paths: &[Vec<Path>; 4]) -> Option<GaugeAction> {
    let mut factors = [None; 3];
    for (mu, paths) in paths.iter().enumerate() {
        let mut expected: Vec<(usize, Vec<(usize, bool)>)> = Vec::new();
        for known in closed_loops() {
            let both = [known.steps.clone(), known.steps.iter().rev().map(|(nu, way)| (*nu, !way)).collect::<Vec<_>>()];
            for steps in both {
                for first in (0..steps.len()).filter(|first| steps[*first] == (mu, true)) {
                    let mut turned = steps.clone();
                    turned.rotate_left(first);
                    expected.push((known.kind as usize, turned));
                }
            }
        }
        let mut found = [0; 3];
        for (factor, steps) in paths {
            let (kind, _) = expected.iter().find(|(_, known)| known == steps)?;
            if factors[*kind].is_some_and(|known: f64| known != *factor) {
                return None;
            }
            factors[*kind] = Some(*factor);
            found[*kind] += 1;
        }
        // Each path may be there once, and all of a kind have to be there.
        for (n, (_, steps)) in paths.iter().enumerate() {
            if paths[..n].iter().any(|(_, other)| other == steps) {
                return None;
            }
        }
        let all = |kind: usize| expected.iter().filter(|(of, _)| *of == kind).count();
        if found.iter().enumerate().any(|(kind, found)| *found != 0 && *found != all(kind)) {
            return None;
        }
    }
    let [plaquette, rectangle, parallelogram] = factors.map(Option::unwrap_or_default);
    Some(GaugeAction { plaquette, rectangle, parallelogram, ..GaugeAction::wilson(3.0) })
}
