//! Multigrid setups of applications.
use crate::check::{Mistakes, check_size, count, given, is_on};
use crate::enums::*;
use crate::operator::{Quarks, prepare, prepared};
use crate::setup::say;
use crate::state::State;
use crate::structs::{QudaInvertParam, QudaMultigridParam};
use ferrite_tasks::solver::{MultigridSettings, SolverSettings};
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Parameters of setups that applications have made. A setup is given to applications as its number.
#[derive(Default)]
pub struct Setups(Vec<Option<MultigridSettings>>);

impl Setups {
    /// Keeps parameters, and returns the pointer that stands for them.
    fn keep(&mut self, settings: MultigridSettings) -> *mut c_void {
        self.0.push(Some(settings));
        std::ptr::without_provenance_mut(self.0.len())
    }
    fn place(&self, instance: *mut c_void) -> Outcome<usize> {
        let place = instance.addr().checked_sub(1).filter(|place| self.0.get(*place).is_some_and(Option::is_some));
        place.ok_or_else(|| Failure::refused("the multigrid setup is not one that newMultigridQuda made, or was freed"))
    }
    /// Returns the parameters for which a pointer stands.
    pub fn settings(&self, instance: *mut c_void) -> Outcome<MultigridSettings> {
        Ok(self.0[self.place(instance)?].clone().unwrap_or_default())
    }
}

/// Largest number of levels of the interface.
const MOST_LEVELS: usize = 5;

/// Reads the parameters of a structure that Ferrite has: levels, aggregates and numbers of near-null vectors. Its own choices replace the
/// others, such as smoothers and tolerances, on which solutions do not depend.
/// Aggregates that do not divide the part of a process into an even number of parts are halved until they do.
fn settings_of(param: &QudaMultigridParam, local: [usize; 4]) -> Outcome<MultigridSettings> {
    let levels = count("n_level", param.n_level, MOST_LEVELS)?;
    let mut mistakes = Mistakes::default();
    if levels < 2 {
        mistakes.add(format!("n_level = {levels}: expected at least 2"));
    }
    if param.vec_load.iter().chain(&param.vec_store).any(|flag| is_on(*flag)) {
        mistakes.add("vec_load and vec_store are not offered: expected QUDA_BOOLEAN_FALSE");
    }
    mistakes.finish()?;
    let extent = |n: i32| usize::try_from(n).unwrap_or(0);
    let mut extents = local;
    let mut blocks = Vec::new();
    for (level, given) in param.geo_block_size[..levels - 1].iter().enumerate() {
        let asked = [0, 1, 2, 3].map(|mu| extent(given[mu]));
        let mut block = asked;
        for (size, extent) in block.iter_mut().zip(extents) {
            while *size > 1 && !extent.is_multiple_of(2 * *size) {
                *size /= 2;
            }
        }
        if block != asked {
            say(QUDA_SUMMARIZE, &format!("WARNING: aggregates of level {level}: {block:?} instead of {asked:?}"));
        }
        extents = std::array::from_fn(|mu| extents[mu] / block[mu].max(1));
        blocks.push(block);
    }
    Ok(MultigridSettings {
        vectors: Some(extent(param.n_vec[0])),
        levels: Some(levels),
        blocks: Some(blocks),
        ..MultigridSettings::default()
    })
}

/// Makes the setup for the operator of a structure on the resident links.
fn make(state: &mut State, param: &QudaMultigridParam, settings: &MultigridSettings) -> Outcome<f64> {
    // SAFETY: the application gives the structure of the operator.
    let inverse: &QudaInvertParam = unsafe { given(param.invert_param, "invert_param") }?;
    check_size(inverse.struct_size, size_of::<QudaInvertParam>())?;
    let mut mistakes = Mistakes::default();
    let quarks = Quarks::of(inverse, &mut mistakes);
    if quarks.are_staggered() {
        mistakes.add("multigrid is not offered for staggered quarks: solve without a preconditioner");
    }
    mistakes.finish()?;
    prepare(state, quarks)?;
    let (_, dirac) = prepared(state)?;
    let settings = SolverSettings { multigrid: settings.clone(), ..SolverSettings::default() };
    dirac.forget_setup();
    let record = dirac.set_up(&settings, &mut ())?;
    // The coarsest level has no record.
    let levels = record.levels.len() + 1;
    say(QUDA_SUMMARIZE, &format!("multigrid setup: {levels} levels in {:.3} s", record.seconds));
    Ok(record.seconds)
}

/// Makes a multigrid setup.
///
/// # Safety
/// `param` points to a structure, whose `invert_param` points to one.
pub unsafe fn new(param: *mut QudaMultigridParam) -> Outcome<*mut c_void> {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaMultigridParam>())?;
    State::with(|state| {
        let settings = settings_of(param, state.wilson()?.links.part.local.size())?;
        param.secs = make(state, param, &settings)?;
        Ok(state.setups.keep(settings))
    })
}

/// Makes a setup again for the resident links.
///
/// # Safety
/// As for [`new`].
pub unsafe fn update(instance: *mut c_void, param: *mut QudaMultigridParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaMultigridParam>())?;
    State::with(|state| {
        let place = state.setups.place(instance)?;
        let settings = settings_of(param, state.wilson()?.links.part.local.size())?;
        param.secs = make(state, param, &settings)?;
        state.setups.0[place] = Some(settings);
        Ok(())
    })
}

/// Frees a setup.
pub fn destroy(instance: *mut c_void) -> Outcome {
    State::with(|state| {
        let place = state.setups.place(instance)?;
        state.setups.0[place] = None;
        if let Ok((_, dirac)) = prepared(state) {
            dirac.forget_setup();
        }
        Ok(())
    })
}
