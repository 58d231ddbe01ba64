//! Links: arrays and files, plaquettes and other loops, smearing, gradient flow, gauge fixing, and heat bath.
use crate::array::fe_array;
use crate::call::{extents, given, leave_record, make, nothing_in, options, path, refused, store};
use crate::device::{OnDevice, OpenDevice, beside, fe_device, free, with};
use ferrite::field::host::HostGauge;
use ferrite::files::ReadOptions;
use ferrite::gauge::generate;
use ferrite::lattice::Lattice;
use ferrite_records::object;
use ferrite_tasks::Outcome;
use ferrite_tasks::bounds::number;
use ferrite_tasks::host_fields::check_finite;
use ferrite_tasks::json::JsonOptions;
use ferrite_tasks::link_smearing::SmearingRequest;
use ferrite_tasks::links::{self, FixingRequest, FlowRequest, LatticeLinks, QuenchedRequest, describe};
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// Links of a configuration, or this process's part of them. They never change.
pub struct fe_gauge {
    device: Rc<OpenDevice>,
    pub(crate) own: LatticeLinks,
}

impl OnDevice for fe_gauge {
    fn device(&self) -> &Rc<OpenDevice> {
        &self.device
    }
}

/// Lets work continue; the interface has no request to stop.
pub(crate) fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl fe_gauge {
    /// Makes links on this process's part of a lattice.
    pub(crate) fn new(device: &Rc<OpenDevice>, gauge: HostGauge) -> Outcome<Self> {
        let part = device.tasks().place().section_of(gauge.lattice())?;
        Ok(fe_gauge { device: device.clone(), own: LatticeLinks { gauge: Arc::new(gauge), part } })
    }
}

/// Copies links from an array with the axes t, z, y, x, direction (x, y, z, t), row, column, and stores them in `*out`. With several
/// processes, the array has this process's part.
///
/// # Safety
/// `device` is a device that has not been freed; `array` describes memory that may be read; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_new(
    device: *const fe_device,
    array: *const fe_array,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let array = given(array, "array")?.check("array", device.device())?;
            make(out, || {
                if array.shape.len() != 7 || !array.shape.ends_with(&[4, 3, 3]) {
                    let why = format!("an array of shape {:?} has no links: expected t, z, y, x, 4, 3, 3", array.shape);
                    return Err(refused("array", &why));
                }
                let numbers = array.read();
                check_finite("array", &numbers)?;
                fe_gauge::new(device.device(), HostGauge::from_numbers(&array.shape, &numbers)?)
            })
        })
    }
}

/// Copies links to an array with the axes of `fe_gauge_new`.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `array` describes memory that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_get(gauge: *const fe_gauge, array: *const fe_array) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let array = given(array, "array")?.check("array", &gauge.device)?;
            array.expect_shape("array", &gauge.own.gauge.shape())?;
            array.write(gauge.own.gauge.numbers());
            Ok(())
        })
    }
}

/// *Collective.* Reads links from a file in any supported format, and stores them in `*out`. Each process reads its part.
///
/// `options` is a JSON object, or null: `verify` (true: checksums have to agree), `allow_non_unitary` (false), `reunitarise` (false),
/// `lattice` (extents, for files without), `record` (0: the first configuration of the file). The record describes the file.
///
/// # Safety
/// `device` is a device that has not been freed; `path` and `options` are texts with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_read(
    device: *const fe_device,
    file: *const c_char,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let (path, mut given) = (path(file)?, options(options_json)?);
            let extents: Option<[usize; 4]> = given.take_or("lattice", None)?;
            let read = ReadOptions {
                verify: given.take_or("verify", true)?,
                allow_non_unitary: given.take_or("allow_non_unitary", false)?,
                reunitarise: given.take_or("reunitarise", false)?,
                record: given.take_or("record", 0)?,
                lattice: extents.map(Lattice::of_any_extents).transpose()?,
            };
            given.finish(&["verify", "allow_non_unitary", "reunitarise", "lattice", "record"])?;
            make(out, || {
                let opened = device.device().tasks();
                let file = links::read(Some(opened), &path, &read)?;
                leave_record(object(&describe(&file)));
                fe_gauge::new(device.device(), file.gauge)
            })
        })
    }
}

/// *Collective.* Writes links to a file, whose name determines the format. Each process writes its part.
///
/// `options` is a JSON object, or null: `title` (a text), `metadata` (an object of texts), `single` (false: numbers in double precision).
///
/// # Safety
/// `gauge` is a handle that has not been freed; `path` and `options` are texts with a final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_write(
    gauge: *const fe_gauge,
    file: *const c_char,
    options_json: *const c_char,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let (path, mut given) = (path(file)?, options(options_json)?);
            let title = given.take_or("title", "Ferrite".to_string())?;
            let metadata: BTreeMap<String, String> = given.take_or("metadata", BTreeMap::new())?;
            let single = given.take_or("single", false)?;
            given.finish(&["title", "metadata", "single"])?;
            let texts = (title, metadata.into_iter().collect());
            gauge.own.write(Some(gauge.device.tasks()), &path, texts, single)
        })
    }
}

/// Makes unit links on a lattice with the extents x, y, z, t, and stores them in `*out`.
///
/// # Safety
/// `device` is a device that has not been freed; `lattice` points to four numbers; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_unit(device: *const fe_device, lattice: *const i64, out: *mut *mut fe_gauge) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let part = device.device().part(extents(lattice)?)?;
            make(out, || fe_gauge::new(device.device(), HostGauge::unit(part.local)))
        })
    }
}

/// Makes random links on a lattice, and stores them in `*out`. They do not depend on the number of processes.
///
/// `options` is a JSON object: `seed`, and `noise` for links near 1; without `noise`, links are distributed with the Haar measure.
///
/// # Safety
/// As for `fe_gauge_unit`; `options` is a text with a final zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_random(
    device: *const fe_device,
    lattice: *const i64,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let (part, mut given) = (device.device().part(extents(lattice)?)?, options(options_json)?);
            let (seed, noise): (u64, Option<f64>) = (given.needed("seed")?, given.take_or("noise", None)?);
            given.finish(&["seed", "noise"])?;
            number("noise", noise.unwrap_or(0.0), "a number between -1e50 and 1e50", |noise| noise.abs() <= 1e50)?;
            make(out, || {
                let near = |noise| generate::weak_field(part, seed, noise);
                let gauge = noise.map_or_else(|| generate::random(part, seed), near);
                fe_gauge::new(device.device(), gauge)
            })
        })
    }
}

/// *Collective.* Generates links of SU(3) gauge theory by heat bath and over-relaxation, and stores them in `*out`. They continue from
/// `start`, or from unit or random links if `start` is null.
///
/// `options` is a JSON object: `beta`, `seed`, `sweeps`, `overrelax` (4), `hot` (false: start from unit links), and `passes` (the
/// heat-bath passes that generated `start` with the same seed). The record has `plaquettes`, one for each sweep.
///
/// # Safety
/// As for `fe_gauge_random`; `start` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_quenched(
    device: *const fe_device,
    lattice: *const i64,
    options_json: *const c_char,
    start: *const fe_gauge,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    // SAFETY: the caller's promise.
    unsafe {
        with(device, "device", |device| {
            let (opened, request) = (device.device(), options(options_json)?.request::<QuenchedRequest>()?);
            let part = opened.part(extents(lattice)?)?;
            let start = if start.is_null() { None } else { Some(&beside(start, "start", opened)?.own) };
            make(out, || {
                let (gauge, plaquettes) = links::quenched(opened.tasks(), &part, &request, start, &mut go_on)?;
                leave_record(json!({ "plaquettes": plaquettes }));
                fe_gauge::new(opened, gauge)
            })
        })
    }
}

/// Stores the extents x, y, z, t of the whole lattice of links.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `lattice` has room for four numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_lattice(gauge: *const fe_gauge, lattice: *mut i64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            store(lattice.cast::<[i64; 4]>(), gauge.own.part.global.size().map(|x| x as i64));
            Ok(())
        })
    }
}

/// Means of plaquettes, Re tr / 3.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct fe_plaquette {
    /// Mean of all planes.
    pub mean: f64,
    /// Mean of the planes in space.
    pub spatial: f64,
    /// Mean of the planes with t.
    pub temporal: f64,
    /// Mean of Re tr U / 3 of the links.
    pub link_trace: f64,
}

/// *Collective.* Stores the mean plaquettes of links in `*out`.
///
/// # Safety
/// `gauge` is a handle that has not been freed; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_plaquette(gauge: *const fe_gauge, out: *mut fe_plaquette) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let [mean, spatial, temporal, link_trace] = gauge.own.plaquettes(Some(gauge.device.tasks()))?;
            store(out, fe_plaquette { mean, spatial, temporal, link_trace });
            Ok(())
        })
    }
}

/// *Collective.* Measures plaquettes, rectangles, Polyakov loop, energy density and topological charge, which the record has.
///
/// # Safety
/// `gauge` is a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_loops(gauge: *const fe_gauge) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        with(gauge, "gauge", |gauge| {
            leave_record(object(&gauge.own.loops(gauge.device.tasks())?));
            Ok(())
        })
    }
}

/// Makes links from other links, with a request in JSON.
unsafe fn changed(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
    change: impl FnOnce(&fe_gauge, JsonOptions) -> Outcome<HostGauge>,
) -> i32 {
    // SAFETY: the promise of the caller's caller.
    unsafe {
        with(gauge, "gauge", |gauge| {
            let given = options(options_json)?;
            make(out, || fe_gauge::new(&gauge.device, change(gauge, given)?))
        })
    }
}

/// *Collective.* Smears links, and stores the result in `*out`.
///
/// `options` is a JSON object: `kind` (`"stout"`, `"ape"` or `"hyp"`), `weights` (ρ, α, or α₁, α₂, α₃), `levels` (1: number of steps), and
/// `spatial` (false: all links).
///
/// # Safety
/// `gauge` is a handle that has not been freed; `options` is a text with a final zero; `out` is valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_smear(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    let smear = |gauge: &fe_gauge, given: JsonOptions| {
        gauge.own.smeared(gauge.device.tasks(), &given.request::<SmearingRequest>()?, &mut go_on)
    };
    // SAFETY: the caller's promise.
    unsafe { changed(gauge, options_json, out, smear) }
}

/// *Collective.* Follows the gradient flow, and stores the links at its end in `*out`.
///
/// `options` is a JSON object: `time` and `step` in units of a², and `action` (`"wilson"`). The record has `points`, each with the flow
/// time, the energy density from the clover and from plaquettes, and the topological charge; and `t0` and `w0`.
///
/// # Safety
/// As for `fe_gauge_smear`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_flow(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    let flow = |gauge: &fe_gauge, given: JsonOptions| {
        let (links, steps) = gauge.own.flowed(gauge.device.tasks(), &given.request::<FlowRequest>()?, &mut go_on)?;
        leave_record(object(&steps));
        Ok(links)
    };
    // SAFETY: the caller's promise.
    unsafe { changed(gauge, options_json, out, flow) }
}

/// *Collective.* Fixes the gauge of links, and stores the result in `*out`.
///
/// `options` is a JSON object: `gauge` (`"coulomb"` or `"landau"`), `tol` (for θ), `overrelax` (from the extents of the lattice) and
/// `max_sweeps` (20,000). The record has `theta`, `functional` and `sweeps`.
///
/// # Safety
/// As for `fe_gauge_smear`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_fix(
    gauge: *const fe_gauge,
    options_json: *const c_char,
    out: *mut *mut fe_gauge,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { nothing_in(out) };
    let fix = |gauge: &fe_gauge, given: JsonOptions| {
        let fixed = gauge.own.fixed(gauge.device.tasks(), &given.request::<FixingRequest>()?, &mut go_on)?;
        leave_record(json!({ "theta": fixed.theta, "functional": fixed.functional, "sweeps": fixed.sweeps }));
        Ok(fixed.gauge)
    };
    // SAFETY: the caller's promise.
    unsafe { changed(gauge, options_json, out, fix) }
}

/// Frees links. Objects that were made from them keep what they need.
///
/// # Safety
/// `gauge` is null or a handle that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fe_gauge_free(gauge: *mut fe_gauge) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { free(gauge) }
}
