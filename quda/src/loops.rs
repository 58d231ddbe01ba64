//! Loops of links: plaquettes, Polyakov loops, traces and sums of arbitrary paths, energy density and topological charge.
use crate::check::{check_size, count, given, is_on};
use crate::enums::QudaBoolean;
use crate::links::{LoadedLinks, arrays, keep, multiply, resident_or_taken};
use crate::state::{Links, State};
use crate::structs::{QudaGaugeObservableParam, QudaGaugeParam};
use ferrite::field::GaugeField;
use ferrite::field::host::HostGauge;
use ferrite::gauge::loops::{MOST_STEPS_OF_A_PATH, mean_complex_traces, sums_of_paths};
use ferrite::num_complex::Complex64;
use ferrite::observables::field_strength::field_strengths;
use ferrite::observables::polyakov::polyakov_loop;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;

/// Path of links with its factor: the direction of each step, and whether it goes forward.
pub type Path = (f64, Vec<(usize, bool)>);

/// Largest number of paths in a call.
const MOST_PATHS: usize = 10_000;

/// Returns a step of a number of the interface: 0 to 3 go forward along x to t, and 7 to 4 go backward along x to t.
fn step(number: i32) -> Outcome<(usize, bool)> {
    match usize::try_from(number) {
        Ok(mu @ 0..=3) => Ok((mu, true)),
        Ok(back @ 4..=7) => Ok((7 - back, false)),
        _ => Err(Failure::refused(format!("input_path_buf: a step is {number}: expected numbers from 0 to 7"))),
    }
}

/// Reads paths of an application.
///
/// # Safety
/// `buffer` has `count` pointers to the steps of the paths, `lengths` and `factors` have `count` numbers.
pub unsafe fn paths(
    buffer: *const *mut i32,
    lengths: *const i32,
    factors: *const f64,
    count: usize,
) -> Outcome<Vec<Path>> {
    if buffer.is_null() || lengths.is_null() || factors.is_null() {
        return Err(Failure::refused("input_path_buf, path_length or loop_coeff is a null pointer"));
    }
    // SAFETY: the caller's promise.
    let (buffer, lengths, factors) = unsafe {
        (
            std::slice::from_raw_parts(buffer, count),
            std::slice::from_raw_parts(lengths, count),
            std::slice::from_raw_parts(factors, count),
        )
    };
    let mut all = Vec::with_capacity(count);
    for ((buffer, length), factor) in buffer.iter().zip(lengths).zip(factors) {
        let length = usize::try_from(*length).ok().filter(|length| *length < MOST_STEPS_OF_A_PATH);
        let length = length.ok_or_else(|| {
            Failure::refused(format!("path_length: expected numbers from 0 to {}", MOST_STEPS_OF_A_PATH - 1))
        })?;
        if buffer.is_null() {
            return Err(Failure::refused("input_path_buf: a path is a null pointer"));
        }
        // SAFETY: as above.
        let steps = unsafe { std::slice::from_raw_parts(*buffer, length) };
        all.push((*factor, steps.iter().map(|number| step(*number)).collect::<Outcome<_>>()?));
    }
    Ok(all)
}

/// Reads the number of paths of a call.
pub fn number_of_paths(number: i32) -> Outcome<usize> {
    count("num_paths", number, MOST_PATHS)
}

/// Reads the paths of four directions, which begin with a step along the direction.
///
/// # Safety
/// As for [`paths`], for each of four buffers.
pub unsafe fn paths_of_directions(
    buffers: *mut *mut *mut i32,
    lengths: *const i32,
    factors: *const f64,
    number: i32,
) -> Outcome<[Vec<Path>; 4]> {
    if buffers.is_null() {
        return Err(Failure::refused("input_path_buf: the pointer is null"));
    }
    let count = number_of_paths(number)?;
    let mut all: [Vec<Path>; 4] = Default::default();
    for (mu, all) in all.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *all = unsafe { paths(*buffers.add(mu), lengths, factors, count) }?;
        all.iter_mut().for_each(|(_, steps)| steps.insert(0, (mu, true)));
    }
    Ok(all)
}

/// Returns whether links have staggered phases, and the links without them.
pub fn without_phases(loaded: &LoadedLinks) -> Outcome<Option<Links>> {
    if !loaded.factors.has_phases {
        return Ok(None);
    }
    let (part, factors) = (loaded.links.part, loaded.factors);
    let mut gauge = HostGauge::clone(loaded.links.host()?);
    let extents = part.global.size();
    multiply(&mut gauge, &part, |site, mu| factors.sign(extents, site, mu));
    Ok(Some(Links::of_host(part, gauge)))
}

/// Calls `work` with resident links on the device, without staggered phases if they have them and `strips` is set.
pub fn on_links<T>(
    state: &State,
    loaded: &LoadedLinks,
    strips: bool,
    work: impl FnOnce(&GaugeField) -> Outcome<T>,
) -> Outcome<T> {
    let stripped = if strips { without_phases(loaded)? } else { None };
    work(stripped.as_ref().unwrap_or(&loaded.links).field(state.device()?)?)
}

/// Returns the traces of closed paths, summed over the lattice and multiplied by their factors and `factor`.
fn traces(links: &GaugeField, paths: &[Path], factor: f64) -> Outcome<Vec<Complex64>> {
    let volume = links.domain().global().volume() as f64;
    let means = mean_complex_traces(links, paths.iter().map(|(_, steps)| steps.as_slice()))?;
    Ok(paths.iter().zip(means).map(|((of_path, _), mean)| factor * of_path * volume * mean).collect())
}

/// Measures what a structure asks for on links, and stores the results in it.
///
/// # Safety
/// Pointers in the structure have what the structure describes.
pub unsafe fn observe(links: &GaugeField, param: &mut QudaGaugeObservableParam) -> Outcome {
    let wants = |flag: QudaBoolean| is_on(flag);
    if wants(param.su_project) {
        return Err(Failure::refused("su_project is not offered: project the links with projectSU3Quda"));
    }
    if wants(param.compute_qcharge_density) {
        return Err(Failure::refused("compute_qcharge_density is not offered: expected QUDA_BOOLEAN_FALSE"));
    }
    if wants(param.compute_plaquette) {
        let (found, _) = links.plaquette()?;
        param.plaquette = [found.mean, found.spatial, found.temporal];
    }
    if wants(param.compute_polyakov_loop) {
        let found = 3.0 * polyakov_loop(links)?;
        param.ploop = [found.re, found.im];
    }
    if wants(param.compute_gauge_loop_trace) {
        let count = number_of_paths(param.num_paths)?;
        if param.traces.is_null() {
            return Err(Failure::refused("traces: the pointer is null"));
        }
        // SAFETY: the caller's promise.
        let paths = unsafe { paths(param.input_path_buff, param.path_length, param.loop_coeff, count) }?;
        let found = traces(links, &paths, param.factor)?;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(param.traces, count) }.copy_from_slice(&found);
    }
    if wants(param.compute_qcharge) {
        let found = field_strengths(links)?;
        param.energy = [found.energy(), found.space, found.time];
        param.qcharge = found.charge;
    }
    Ok(())
}

/// Measures observables of smeared links if there are some, otherwise of the resident links.
///
/// # Safety
/// `param` is null or points to a structure whose pointers have what it describes.
pub unsafe fn observe_resident(param: *mut QudaGaugeObservableParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    check_size(param.struct_size, size_of::<QudaGaugeObservableParam>())?;
    State::with(|state| {
        let loaded = state.smeared.as_ref().map_or_else(|| state.wilson(), Ok)?;
        // SAFETY: as above.
        on_links(state, loaded, is_on(param.remove_staggered_phase), |links| unsafe { observe(links, param) })
    })
}

/// Stores the mean plaquettes of the resident links: all, those in space, and those with t.
///
/// # Safety
/// `plaquettes` has room for three numbers.
pub unsafe fn plaquette(plaquettes: *mut f64) -> Outcome {
    // SAFETY: the caller's promise.
    let out = unsafe { given(plaquettes.cast::<[f64; 3]>(), "plaq") }?;
    State::with(|state| {
        let (found, _) = state.wilson()?.links.field(state.device()?)?.plaquette()?;
        *out = [found.mean, found.spatial, found.temporal];
        Ok(())
    })
}

/// Stores the mean trace of the Polyakov loops in t of the resident links.
///
/// # Safety
/// `loops` has room for two numbers.
pub unsafe fn polyakov(loops: *mut f64, direction: i32) -> Outcome {
    // SAFETY: the caller's promise.
    let out = unsafe { given(loops.cast::<[f64; 2]>(), "ploop") }?;
    if direction != 3 {
        return Err(Failure::refused(format!("dir = {direction} is not offered: expected 3, for t")));
    }
    State::with(|state| {
        let found = 3.0 * polyakov_loop(state.wilson()?.links.field(state.device()?)?)?;
        *out = [found.re, found.im];
        Ok(())
    })
}

/// Stores the traces of closed paths of the resident links without staggered phases, summed over the lattice.
///
/// # Safety
/// `out` has room for `count` numbers; the others are as for [`paths`].
pub unsafe fn store_traces(
    out: *mut Complex64,
    buffer: *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number: i32,
    _longest: i32,
    factor: f64,
) -> Outcome {
    let count = number_of_paths(number)?;
    if out.is_null() {
        return Err(Failure::refused("traces: the pointer is null"));
    }
    // SAFETY: the caller's promise.
    let paths = unsafe { paths(buffer, lengths, factors, count) }?;
    State::with(|state| {
        let found = on_links(state, state.wilson()?, true, |links| traces(links, &paths, factor))?;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(out, count) }.copy_from_slice(&found);
        Ok(())
    })
}

/// Computes U_μ(x) times sums of paths from x+μ̂, multiplied by `factor`. The result is added to `out` unless `overwrite_gauge` is set.
///
/// # Safety
/// `out` and `links` have links as `param` describes them; the others are as for [`paths_of_directions`].
pub unsafe fn sum_paths(
    out: *mut c_void,
    links: *mut c_void,
    buffers: *mut *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number: i32,
    _longest: i32,
    factor: f64,
    param: *mut QudaGaugeParam,
) -> Outcome<i32> {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "qudaGaugeParam") }?;
    check_size(param.struct_size, size_of::<QudaGaugeParam>())?;
    // SAFETY: as above.
    let mut paths = unsafe { paths_of_directions(buffers, lengths, factors, number) }?;
    paths.iter_mut().flatten().for_each(|(of_path, _)| *of_path *= factor);
    State::with(|state| {
        let mut read = None;
        // SAFETY: as above.
        let loaded = unsafe { resident_or_taken(state, &mut read, "sitelink", links, param) }?;
        let lists = paths.each_ref().map(Vec::as_slice);
        let sums = on_links(state, loaded, true, |links| Ok(sums_of_paths(links, lists)?.download()?))?;
        // SAFETY: as above.
        let (part, arrays) = unsafe { arrays(state, "out", out, param) }?;
        let mut total = sums;
        if !is_on(param.overwrite_gauge) {
            // SAFETY: as above.
            let old = unsafe { arrays.read_links(state.backend()?, part.local) }?;
            total.numbers_mut().iter_mut().zip(old.numbers()).for_each(|(sum, old)| *sum += old);
        }
        // SAFETY: as above.
        unsafe { arrays.write_links(state.backend()?, &total) }?;
        keep(state, read, param);
        Ok(0)
    })
}
