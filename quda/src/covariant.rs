//! Covariant shifts, Laplace operators, and the smearing of quark fields.
use crate::check::{Mistakes, check_size, given};
use crate::enums::*;
use crate::fields::scale;
use crate::memory::Width;
use crate::operator::{Quarks, WilsonQuarks, expect_fields, read, write};
use crate::order::{Fields, Sites};
use crate::state::State;
use crate::structs::QudaInvertParam;
use ferrite::operators::{NeighbourHops, covariant_shift};
use ferrite_tasks::bounds::number;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Outcome, with_fields};
use std::ffi::c_void;

/// Returns whether fields have spin or not, in the form that reading them needs.
fn kind(is_staggered: bool) -> Quarks {
    match is_staggered {
        true => Quarks::Staggered { mass: 0.0, is_improved: false },
        false => Quarks::Wilson(WilsonQuarks { kappa: 0.5, has_clover: false, twist: 0.0 }),
    }
}

/// Reads a field, calls `work`, and writes its result.
unsafe fn on_fields(
    (out, input): (*mut c_void, *mut c_void),
    width: Width,
    is_staggered: bool,
    work: impl FnOnce(&State, &HostFields) -> Outcome<HostFields>,
) -> Outcome {
    State::with(|state| {
        // Spins do not mix, so the basis does not matter.
        let lattice = state.wilson()?.links.part.local;
        let fields = Fields { lattice, sites: Sites::All, width, is_chiral: false };
        // SAFETY: the promise of the caller's caller.
        let from = unsafe { read(state.device()?, fields, kind(is_staggered), "h_in", &[input]) }?;
        let image = work(state, &from)?;
        // SAFETY: as above.
        unsafe { write(state.device()?, fields, "h_out", &[out], &image) }
    })
}

/// Applies a covariant shift (`covdev_mu` from 0 to 7), or 1 − κ H of a Laplace operator (`laplace3D`).
///
/// # Safety
/// `out` and `input` are fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn apply(out: *mut c_void, input: *mut c_void, param: &QudaInvertParam) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let is_shift = param.dslash_type == QUDA_COVDEV_DSLASH;
    let mut mistakes = Mistakes::default();
    expect_fields(param, &mut mistakes);
    mistakes.expect("dagger", "QudaDagType", param.dagger, &[QUDA_DAG_NO, QUDA_DAG_YES]);
    mistakes.expect("solution_type", "QudaSolutionType", param.solution_type, &[QUDA_MAT_SOLUTION]);
    let normalisations = [QUDA_KAPPA_NORMALIZATION, QUDA_MASS_NORMALIZATION, QUDA_ASYMMETRIC_MASS_NORMALIZATION];
    mistakes.expect("mass_normalization", "QudaMassNormalization", param.mass_normalization, &normalisations);
    if is_shift && !(0..8).contains(&param.covdev_mu) {
        mistakes.add(format!("covdev_mu = {}: expected a number from 0 to 7", param.covdev_mu));
    }
    if !(param.kappa.is_finite() && param.kappa != 0.0) {
        mistakes.add(format!("kappa = {}: expected a number other than 0", param.kappa));
    }
    mistakes.finish()?;
    let factor = if param.mass_normalization == QUDA_KAPPA_NORMALIZATION { 1.0 } else { 0.5 / param.kappa };
    let product = |state: &State, fields: &HostFields| {
        let links = state.wilson()?.links.field(state.device()?)?;
        let mut image: HostFields = match is_shift {
            true => {
                let direction = (param.covdev_mu as usize + if param.dagger == QUDA_DAG_YES { 4 } else { 0 }) % 8;
                let (mu, forward) = (direction % 4, direction < 4);
                with_fields!(fields, fields => covariant_shift(links, (mu, forward), fields)?.into())
            }
            false => {
                // The direction that is left out; none for other numbers.
                let left_out = usize::try_from(param.laplace3D).unwrap_or(usize::MAX);
                let hops = NeighbourHops::sums(links, std::array::from_fn(|mu| mu != left_out))?;
                with_fields!(fields, fields => hops.apply((1.0, -param.kappa), 1, fields)?.into())
            }
        };
        scale(&mut image, factor);
        Ok(image)
    };
    // SAFETY: the caller's promise.
    unsafe { on_fields((out, input), Width::of("cpu_prec", param.cpu_prec)?, !is_shift, product) }
}

/// Applies the covariant shift in direction `dir`, from 0 to 7, to a field with spin.
///
/// # Safety
/// `out` and `input` are fields on the lattice of the resident links.
pub unsafe fn shift(out: *mut c_void, input: *mut c_void, dir: i32, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    let param = QudaInvertParam {
        dslash_type: QUDA_COVDEV_DSLASH,
        covdev_mu: dir,
        mass_normalization: QUDA_KAPPA_NORMALIZATION,
        solution_type: QUDA_MAT_SOLUTION,
        dagger: QUDA_DAG_NO,
        kappa: 0.5,
        ..*param
    };
    // SAFETY: as above.
    unsafe { apply(out, input, &param) }
}

/// Smears a field by steps of (1 + α H)/(1 + 6 α) with the hops H of the directions in space, over smeared links if there are some.
///
/// # Safety
/// `out` and `input` are fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn smear_by_hops(
    out: *mut c_void,
    input: *mut c_void,
    param: *mut QudaInvertParam,
    steps: u32,
    alpha: f64,
) -> Outcome {
    number("alpha", alpha, "a number other than −1/6", |alpha| (1.0 + 6.0 * alpha).abs() > 1e-10)?;
    let divisor = 1.0 + 6.0 * alpha;
    // SAFETY: the caller's promise.
    unsafe { smear((out, input), param, steps as usize, (1.0 / divisor, alpha / divisor)) }
}

unsafe fn smear(
    (out, input): (*mut c_void, *mut c_void),
    param: *mut QudaInvertParam,
    steps: usize,
    factors: (f64, f64),
) -> Outcome {
    // SAFETY: the promise of the caller's caller.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let mut mistakes = Mistakes::default();
    expect_fields(param, &mut mistakes);
    mistakes.finish()?;
    let is_staggered = [QUDA_STAGGERED_DSLASH, QUDA_ASQTAD_DSLASH, QUDA_LAPLACE_DSLASH].contains(&param.dslash_type);
    let smeared = |state: &State, fields: &HostFields| {
        let loaded = state.smeared.as_ref().map_or_else(|| state.wilson(), Ok)?;
        let hops = NeighbourHops::sums(loaded.links.field(state.device()?)?, [true, true, true, false])?;
        Ok(with_fields!(fields, fields => hops.apply(factors, steps, fields)?.into()))
    };
    // SAFETY: as above.
    unsafe { on_fields((out, input), Width::of("cpu_prec", param.cpu_prec)?, is_staggered, smeared) }
}
