//! MILC's layer of the interface: staggered solves over links that MILC keeps, and molecular dynamics on its sites.
use crate::check::given;
use crate::enums::*;
use crate::state::State;
use crate::structs::*;
use crate::{forces, links, loops, momenta, products, setup, smearing, solve, staggered};
use ferrite::gauge::loops::closed_loops;
use ferrite::lattice::Lattice;
use ferrite_tasks::{Failure, Outcome};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;

/// State of MILC's layer between calls.
#[derive(Default)]
struct Milc {
    /// Extents of the lattice of this process.
    local: [i32; 4],
    /// Whether fat and long links have been made by this library, so that MILC says when they are new.
    makes_links: bool,
    /// Whether the loaded fat and long links are those of MILC.
    are_loaded: bool,
    /// Whether momenta are resident.
    keeps_momenta: bool,
    /// Sizes of allocated memory by address.
    memory: BTreeMap<usize, usize>,
}

thread_local! {
    static MILC: RefCell<Milc> = RefCell::default();
}

/// Returns the rank at coordinates of the process grid, x fastest, as in MILC.
unsafe extern "C" fn rank_of(at: *const i32, dims: *mut c_void) -> i32 {
    // SAFETY: `set_layout` passes four numbers, and the interface passes coordinates.
    let (at, dims) = unsafe { (std::slice::from_raw_parts(at, 4), std::slice::from_raw_parts(dims.cast::<i32>(), 4)) };
    (0..4).rev().fold(0, |rank, mu| rank * dims[mu] + at[mu])
}

/// Starts the interface.
///
/// # Safety
/// The layout points to the extents of the lattice and, for several processes, of the process grid.
pub unsafe fn init(input: QudaInitArgs_t) -> Outcome {
    // SAFETY: no prefix and no file.
    unsafe { setup::set_verbosity(input.verbosity, std::ptr::null(), std::ptr::null_mut()) }?;
    // SAFETY: the caller's promise.
    unsafe { set_layout(input.layout) }
}

/// Sets the lattice and the process grid, and opens the device.
///
/// # Safety
/// As for [`init`].
pub unsafe fn set_layout(layout: QudaLayout_t) -> Outcome {
    if layout.latsize.is_null() {
        return Err(Failure::refused("latsize: the pointer is null"));
    }
    // SAFETY: the caller's promise.
    let extents: [i32; 4] = unsafe { *layout.latsize.cast() };
    let mut grid: [i32; 4] = match layout.machsize.is_null() {
        true => [1; 4],
        // SAFETY: as above.
        false => unsafe { *layout.machsize.cast() },
    };
    if let Some(mu) = (0..4).find(|mu| grid[*mu] < 1 || extents[*mu] % grid[*mu] != 0) {
        return Err(Failure::refused(format!(
            "latsize[{mu}] = {} is not a multiple of machsize[{mu}] = {}",
            extents[mu], grid[mu]
        )));
    }
    let local: [i32; 4] = std::array::from_fn(|mu| extents[mu] / grid[mu]);
    Lattice::new(local.map(|n| usize::try_from(n).unwrap_or(0)))
        .map_err(|why| Failure::refused(format!("latsize = {extents:?} on the grid {grid:?}: {why}")))?;
    // SAFETY: four numbers, which live during the call.
    unsafe { setup::init_grid(4, grid.as_ptr(), Some(rank_of), grid.as_mut_ptr().cast()) }?;
    MILC.with_borrow_mut(|milc| milc.local = local);
    setup::init_device(-1)
}

/// Ends the interface.
pub fn end() -> Outcome {
    MILC.with_borrow_mut(|milc| {
        let memory = std::mem::take(&mut milc.memory);
        *milc = Milc { memory, ..Milc::default() };
    });
    setup::end()
}

/// Alignment of allocated memory.
const ALIGNMENT: usize = 4096;

/// Allocates memory of the host.
pub fn allocate(bytes: usize) -> Outcome<*mut c_void> {
    let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(Failure::refused)?;
    // SAFETY: the layout has bytes.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(Failure::failed(format!("{bytes} bytes of memory cannot be allocated")));
    }
    MILC.with_borrow_mut(|milc| milc.memory.insert(memory.addr(), bytes.max(1)));
    Ok(memory.cast())
}

/// Frees memory that [`allocate`] returned.
pub fn free(memory: *mut c_void) -> Outcome {
    if memory.is_null() {
        return Ok(());
    }
    let bytes = MILC.with_borrow_mut(|milc| milc.memory.remove(&memory.addr()));
    let bytes = bytes.ok_or_else(|| Failure::refused("ptr: the memory was not allocated by this library"))?;
    let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(Failure::refused)?;
    // SAFETY: `allocate` returned the memory with this layout, and it is freed once.
    unsafe { dealloc(memory.cast(), layout) };
    Ok(())
}

/// Accepts the parameters of projections of HISQ links. Ferrite projects all links that can be projected, and guards forces as MILC does.
pub fn set_hisq_params(_: QudaHisqParams_t) -> Outcome {
    Ok(())
}

fn precision_of(precision: i32) -> Outcome<QudaPrecision> {
    match precision {
        1 => Ok(QUDA_SINGLE_PRECISION),
        2 => Ok(QUDA_DOUBLE_PRECISION),
        other => Err(Failure::refused(format!("precision = {other}: expected 1 for single or 2 for double"))),
    }
}

/// Returns the description of links of MILC, which have staggered phases and the sign of the boundary condition if `phased` is set.
fn gauge_param(precision: i32, phased: bool) -> Outcome<QudaGaugeParam> {
    Ok(QudaGaugeParam {
        location: QUDA_CPU_FIELD_LOCATION,
        X: MILC.with_borrow(|milc| milc.local),
        anisotropy: 1.0,
        tadpole_coeff: 1.0,
        scale: 1.0,
        r#type: QUDA_WILSON_LINKS,
        gauge_order: QUDA_MILC_GAUGE_ORDER,
        t_boundary: if phased { QUDA_ANTI_PERIODIC_T } else { QUDA_PERIODIC_T },
        cpu_prec: precision_of(precision)?,
        staggered_phase_type: QUDA_STAGGERED_PHASE_MILC,
        staggered_phase_applied: phased.into(),
        i_mu: 0.0,
        ..setup::new_param()?
    })
}

/// Returns the description of links and momenta at sites of MILC, with the address of both.
unsafe fn site_param(
    precision: i32,
    arg: *mut QudaMILCSiteArg_t,
    phased: bool,
) -> Outcome<(QudaGaugeParam, *mut c_void, *mut c_void)> {
    // SAFETY: the promise of the caller's caller.
    let arg = unsafe { given(arg, "arg") }?;
    let param = gauge_param(precision, phased)?;
    if arg.site.is_null() {
        return Ok((param, arg.link, arg.mom));
    }
    let in_sites = QudaGaugeParam {
        gauge_order: QUDA_MILC_SITE_GAUGE_ORDER,
        gauge_offset: arg.link_offset,
        mom_offset: arg.mom_offset,
        site_size: arg.size,
        ..param
    };
    Ok((in_sites, arg.site, arg.site))
}

/// Makes those of fat, long and unitary links that have a place, and marks loaded links as old.
unsafe fn make_links(
    precision: i32,
    (coefficients, thin): (*mut f64, *mut c_void),
    [fat, long, unitary]: [*mut c_void; 3],
) -> Outcome {
    let mut param = gauge_param(precision, true)?;
    // SAFETY: the promise of the caller's caller.
    unsafe { staggered::compute_links(fat, long, unitary, thin, coefficients, &mut param) }?;
    MILC.with_borrow_mut(|milc| (milc.makes_links, milc.are_loaded) = (true, false));
    Ok(())
}

/// Makes fat and long links.
///
/// # Safety
/// The pointers have links of MILC's lattice, and `path_coeff` has six numbers.
pub unsafe fn load_links(
    precision: i32,
    _: QudaFatLinkArgs_t,
    path_coeff: *mut f64,
    inlink: *mut c_void,
    fatlink: *mut c_void,
    longlink: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { make_links(precision, (path_coeff, inlink), [fatlink, longlink, std::ptr::null_mut()]) }
}

/// Makes fat links and their projections to U(3).
///
/// # Safety
/// As for [`load_links`].
pub unsafe fn load_unitary_links(
    precision: i32,
    _: QudaFatLinkArgs_t,
    path_coeff: *mut f64,
    inlink: *mut c_void,
    fatlink: *mut c_void,
    ulink: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { make_links(precision, (path_coeff, inlink), [fatlink, std::ptr::null_mut(), ulink]) }
}

/// Loads fat and long links, or thin ones without long links, unless they are there.
unsafe fn load(precision: i32, fat: *const c_void, long: *const c_void, iterations: *mut i32) -> Outcome {
    // SAFETY: the promise of the caller's caller.
    let iterations = unsafe { given(iterations, "num_iters") }?;
    // MILC marks new links by -1 iterations.
    let is_there = MILC.with_borrow(|milc| milc.are_loaded && milc.makes_links) && *iterations != -1;
    if is_there {
        return Ok(());
    }
    if fat.is_null() {
        return Err(Failure::refused("milc_fatlink: the pointer is null"));
    }
    let mut param = gauge_param(precision, true)?;
    if long.is_null() {
        // SAFETY: as above.
        unsafe { links::load(fat.cast_mut(), &mut param) }?;
    } else {
        param.r#type = QUDA_ASQTAD_FAT_LINKS;
        // SAFETY: as above.
        unsafe { links::load(fat.cast_mut(), &mut param) }?;
        param.r#type = QUDA_ASQTAD_LONG_LINKS;
        // SAFETY: as above.
        unsafe { links::load(long.cast_mut(), &mut param) }?;
    }
    MILC.with_borrow_mut(|milc| milc.are_loaded = true);
    Ok(())
}

/// Returns the address of a field's part on the sites of a parity.
fn half(name: &str, field: *mut c_void, parity: QudaParity, precision: i32) -> Outcome<*mut c_void> {
    if field.is_null() {
        return Err(Failure::refused(format!("{name}: the pointer is null")));
    }
    let extents = MILC.with_borrow(|milc| milc.local).map(|n| n as usize);
    let (sites, bytes) = (Lattice::new(extents)?.volume() / 2, if precision == 2 { 8 } else { 4 });
    Ok(field.wrapping_byte_add(if parity == QUDA_ODD_PARITY { 6 * bytes * sites } else { 0 }))
}

/// Returns the description of solves with 4m² − D² on the sites of one parity.
fn invert_param(
    external: i32,
    quda: i32,
    args: QudaInvertArgs_t,
    is_improved: bool,
    (mass, tol): (f64, f64),
) -> Outcome<QudaInvertParam> {
    precision_of(quda)?;
    let parity = args.evenodd;
    if ![QUDA_EVEN_PARITY, QUDA_ODD_PARITY].contains(&parity) {
        return Err(Failure::refused(format!("evenodd = {parity}: expected QUDA_EVEN_PARITY or QUDA_ODD_PARITY")));
    }
    let sloppy = match (args.mixed_precision, quda) {
        (0, 2) => QUDA_DOUBLE_PRECISION,
        (0 | 1, _) => QUDA_SINGLE_PRECISION,
        _ => QUDA_HALF_PRECISION,
    };
    Ok(QudaInvertParam {
        input_location: QUDA_CPU_FIELD_LOCATION,
        output_location: QUDA_CPU_FIELD_LOCATION,
        dslash_type: if is_improved { QUDA_ASQTAD_DSLASH } else { QUDA_STAGGERED_DSLASH },
        inv_type: QUDA_CG_INVERTER,
        mass,
        kappa: 0.5,
        tol,
        maxiter: args.max_iter,
        solution_type: QUDA_MATPC_SOLUTION,
        matpc_type: if parity == QUDA_ODD_PARITY { QUDA_MATPC_ODD_ODD } else { QUDA_MATPC_EVEN_EVEN },
        dagger: QUDA_DAG_NO,
        mass_normalization: QUDA_MASS_NORMALIZATION,
        cpu_prec: precision_of(external)?,
        cuda_prec: QUDA_DOUBLE_PRECISION,
        cuda_prec_sloppy: sloppy,
        dirac_order: QUDA_DIRAC_ORDER,
        residual_type: QUDA_L2_RELATIVE_RESIDUAL,
        use_init_guess: QUDA_USE_INIT_GUESS_YES,
        ..setup::new_param()?
    })
}

/// Fails for solves to a heavy-quark residual.
fn expect_l2(target: f64, fermilab: f64) -> Outcome {
    match target > 0.0 && fermilab == 0.0 {
        true => Ok(()),
        false => Err(Failure::refused(format!(
            "target_residual = {target}, target_fermilab_residual = {fermilab}: expected a relative residual above 0 \
             and no heavy-quark residual, which is not offered"
        ))),
    }
}

/// Writes a number to memory of the application, unless it gives none.
unsafe fn store<T>(to: *mut T, value: T) {
    // SAFETY: the promise of the caller's caller.
    if let Some(to) = unsafe { to.as_mut() } {
        *to = value;
    }
}

/// Applies D to a field on the sites of the other parity.
///
/// # Safety
/// Links and fields are those of MILC's lattice.
pub unsafe fn hops(
    external: i32,
    quda: i32,
    args: QudaInvertArgs_t,
    fat: *const c_void,
    long: *const c_void,
    source: *mut c_void,
    solution: *mut c_void,
    iterations: *mut i32,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { load(external, fat, long, iterations) }?;
    let mut param = invert_param(external, quda, args, !long.is_null(), (0.0, 1e-10))?;
    let there = if args.evenodd == QUDA_ODD_PARITY { QUDA_EVEN_PARITY } else { QUDA_ODD_PARITY };
    let from = half("source", source, there, external)?;
    let to = half("solution", solution, args.evenodd, external)?;
    // SAFETY: as above.
    unsafe { products::hops(to, from, &mut param, args.evenodd) }
}

/// Solves (4m² − D²) x = b on the sites of one parity.
///
/// # Safety
/// Links and fields are those of MILC's lattice; the residuals and iterations point to numbers.
pub unsafe fn invert(
    external: i32,
    quda: i32,
    mass: f64,
    args: QudaInvertArgs_t,
    target: f64,
    target_fermilab: f64,
    fat: *const c_void,
    long: *const c_void,
    source: *mut c_void,
    solution: *mut c_void,
    residual: *mut f64,
    fermilab: *mut f64,
    iterations: *mut i32,
) -> Outcome {
    let (mut sources, mut solutions) = ([source], [solution]);
    // SAFETY: the caller's promise.
    unsafe {
        invert_several(
            external,
            quda,
            mass,
            args,
            target,
            target_fermilab,
            fat,
            long,
            sources.as_mut_ptr(),
            solutions.as_mut_ptr(),
            residual,
            fermilab,
            iterations,
            1,
        )
    }
}

/// Solves (4m² − D²) x = b on the sites of one parity for several sources.
///
/// # Safety
/// As for [`invert`]; `sources` and `solutions` have `count` fields.
pub unsafe fn invert_several(
    external: i32,
    quda: i32,
    mass: f64,
    args: QudaInvertArgs_t,
    target: f64,
    target_fermilab: f64,
    fat: *const c_void,
    long: *const c_void,
    sources: *mut *mut c_void,
    solutions: *mut *mut c_void,
    residual: *mut f64,
    fermilab: *mut f64,
    iterations: *mut i32,
    number: i32,
) -> Outcome {
    expect_l2(target, target_fermilab)?;
    let count = crate::check::count("num_src", number, QUDA_MAX_MULTI_SRC)?;
    if sources.is_null() || solutions.is_null() {
        return Err(Failure::refused("the array of sources or solutions is a null pointer"));
    }
    // SAFETY: the caller's promise.
    unsafe { load(external, fat, long, iterations) }?;
    let mut param = invert_param(external, quda, args, !long.is_null(), (mass, target))?;
    param.num_src = number;
    let halves = |name: &str, fields: *mut *mut c_void| -> Outcome<Vec<*mut c_void>> {
        // SAFETY: as above.
        let fields = unsafe { std::slice::from_raw_parts(fields, count) };
        fields.iter().map(|field| half(name, *field, args.evenodd, external)).collect()
    };
    let (mut b, mut x) = (halves("source", sources)?, halves("solution", solutions)?);
    // SAFETY: as above.
    unsafe { solve::invert_several(x.as_mut_ptr(), b.as_mut_ptr(), &mut param) }?;
    // SAFETY: as above.
    unsafe {
        store(iterations, param.iter);
        store(residual, param.true_res[count - 1]);
        store(fermilab, 0.0);
    }
    Ok(())
}

/// Solves (4σ_i − D²) x_i = b on the sites of one parity; the offsets are 4σ_i. All systems go on until the first one is solved, as in MILC.
///
/// # Safety
/// As for [`invert`]; offsets, targets and residuals have `number` numbers, and `solutions` has as many fields.
pub unsafe fn invert_shifted(
    external: i32,
    quda: i32,
    number: i32,
    offset: *mut f64,
    args: QudaInvertArgs_t,
    target: *const f64,
    target_fermilab: *const f64,
    fat: *const c_void,
    long: *const c_void,
    source: *mut c_void,
    solutions: *mut *mut c_void,
    residual: *mut f64,
    fermilab: *mut f64,
    iterations: *mut i32,
) -> Outcome {
    let count = crate::check::count("num_offsets", number, QUDA_MAX_MULTI_SHIFT)?;
    if offset.is_null() || target.is_null() || solutions.is_null() {
        return Err(Failure::refused("offset, target_residual or solutionArray is a null pointer"));
    }
    // SAFETY: the caller's promise.
    let (offsets, tol) = unsafe { (std::slice::from_raw_parts(offset, count), *target) };
    // SAFETY: as above.
    expect_l2(tol, if target_fermilab.is_null() { 0.0 } else { unsafe { *target_fermilab } })?;
    // SAFETY: as above.
    unsafe { load(external, fat, long, iterations) }?;
    // The systems in the order of their offsets.
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| offsets[*a].total_cmp(&offsets[*b]));
    let mut param = invert_param(external, quda, args, !long.is_null(), (0.0, tol))?;
    param.num_offset = number;
    // SAFETY: as above.
    let fields = unsafe { std::slice::from_raw_parts(solutions, count) };
    let mut x = Vec::with_capacity(count);
    for (place, from) in order.iter().enumerate() {
        (param.offset[place], param.tol_offset[place]) = (offsets[*from], tol);
        x.push(half("solutionArray", fields[*from], args.evenodd, external)?);
    }
    let b = half("source", source, args.evenodd, external)?;
    // SAFETY: as above.
    unsafe { solve::invert_shifted_together(x.as_mut_ptr(), b, &mut param) }?;
    // SAFETY: as above.
    unsafe {
        store(iterations, param.iter);
        for (place, from) in order.iter().enumerate() {
            if !residual.is_null() {
                *residual.add(*from) = param.true_res_offset[place];
            }
            if !fermilab.is_null() {
                *fermilab.add(*from) = 0.0;
            }
        }
    }
    Ok(())
}

/// Adds the force of HISQ quarks to resident momenta, or stores it.
///
/// # Safety
/// As for `forces::hisq`, with the links of MILC.
pub unsafe fn hisq_force(
    precision: i32,
    number: i32,
    with_epsilon: i32,
    dt: f64,
    coeff: *mut *mut f64,
    quarks: *mut *mut c_void,
    level2_coeff: *mut f64,
    fat7_coeff: *mut f64,
    w_link: *const c_void,
    v_link: *const c_void,
    u_link: *const c_void,
    momentum: *mut c_void,
) -> Outcome {
    let mut param = gauge_param(precision, true)?;
    let keeps = MILC.with_borrow(|milc| milc.keeps_momenta);
    (param.use_resident_mom, param.make_resident_mom) = (keeps.into(), keeps.into());
    param.return_result_mom = (!keeps).into();
    // SAFETY: the caller's promise.
    unsafe {
        forces::hisq(
            momentum,
            dt,
            level2_coeff,
            fat7_coeff,
            w_link,
            v_link,
            u_link,
            quarks,
            number,
            with_epsilon,
            coeff,
            &mut param,
        )
    }
}

/// Adds the force of a gauge action to resident momenta, or to those of MILC: of plaquettes, rectangles and parallelograms.
///
/// # Safety
/// `coefficients` has `kinds` numbers, and `arg` describes MILC's sites.
pub unsafe fn gauge_force_phased(
    precision: i32,
    kinds: i32,
    coefficients: *mut f64,
    eb3: f64,
    arg: *mut QudaMILCSiteArg_t,
    phase_in: i32,
) -> Outcome {
    let kinds = crate::check::count("num_loop_types", kinds, 3)?;
    if coefficients.is_null() {
        return Err(Failure::refused("milc_loop_coeff: the pointer is null"));
    }
    // SAFETY: the caller's promise.
    let coefficients = unsafe { std::slice::from_raw_parts(coefficients, kinds) };
    // SAFETY: as above.
    let (mut param, gauge, mom) = unsafe { site_param(precision, arg, phase_in != 0) }?;
    let keeps = MILC.with_borrow(|milc| milc.keeps_momenta);
    (param.use_resident_mom, param.make_resident_mom) = (keeps.into(), keeps.into());
    param.return_result_mom = (!keeps).into();
    // All paths that close loops of these kinds, in both orientations, without their first step along the direction.
    let mut paths: [Vec<Vec<i32>>; 4] = Default::default();
    let mut factors = Vec::new();
    for (mu, paths) in paths.iter_mut().enumerate() {
        for known in closed_loops().into_iter().filter(|known| (known.kind as usize) < kinds) {
            let back = known.steps.iter().rev().map(|(nu, way)| (*nu, !way)).collect::<Vec<_>>();
            for steps in [known.steps.clone(), back] {
                for first in (0..steps.len()).filter(|first| steps[*first] == (mu, true)) {
                    let mut turned = steps.clone();
                    turned.rotate_left(first);
                    let number = |(nu, forward): &(usize, bool)| if *forward { *nu as i32 } else { 7 - *nu as i32 };
                    paths.push(turned[1..].iter().map(number).collect());
                    if mu == 0 {
                        factors.push((turned.len() as i32 - 1, coefficients[known.kind as usize]));
                    }
                }
            }
        }
    }
    let (mut lengths, mut factors): (Vec<i32>, Vec<f64>) = factors.into_iter().unzip();
    let number = lengths.len() as i32;
    let mut rows = paths.each_mut().map(|paths| paths.iter_mut().map(|path| path.as_mut_ptr()).collect::<Vec<_>>());
    let mut buffers = rows.each_mut().map(|rows| rows.as_mut_ptr());
    // SAFETY: as above; the paths live during the call.
    unsafe {
        momenta::kick(
            mom,
            gauge,
            buffers.as_mut_ptr(),
            lengths.as_mut_ptr(),
            factors.as_mut_ptr(),
            number,
            6,
            eb3,
            &mut param,
        )
    }?;
    Ok(())
}

/// Adds the force of a gauge action over links without phases.
///
/// # Safety
/// As for [`gauge_force_phased`].
pub unsafe fn gauge_force(
    precision: i32,
    kinds: i32,
    coefficients: *mut f64,
    eb3: f64,
    arg: *mut QudaMILCSiteArg_t,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { gauge_force_phased(precision, kinds, coefficients, eb3, arg, 0) }
}

/// Moves links: U ← exp(ε P) U.
///
/// # Safety
/// `arg` describes MILC's sites.
pub unsafe fn move_phased(precision: i32, eps: f64, arg: *mut QudaMILCSiteArg_t, phase_in: i32) -> Outcome {
    // SAFETY: the caller's promise.
    let (mut param, gauge, mom) = unsafe { site_param(precision, arg, phase_in != 0) }?;
    let keeps = MILC.with_borrow(|milc| milc.keeps_momenta);
    (param.use_resident_mom, param.make_resident_mom) = (keeps.into(), keeps.into());
    param.return_result_gauge = 1;
    // SAFETY: as above.
    unsafe { momenta::move_links(gauge, mom, eps, 0, 1, &mut param) }
}

/// Moves links without phases.
///
/// # Safety
/// As for [`move_phased`].
pub unsafe fn move_links(precision: i32, eps: f64, arg: *mut QudaMILCSiteArg_t) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { move_phased(precision, eps, arg, 0) }
}

/// Moves links. They are written back after each step, whether a pipeline is wanted or not.
///
/// # Safety
/// As for [`move_phased`].
pub unsafe fn move_in_pipeline(
    precision: i32,
    eps: f64,
    arg: *mut QudaMILCSiteArg_t,
    phase_in: i32,
    _want_gaugepipe: i32,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { move_phased(precision, eps, arg, phase_in) }
}

/// Keeps momenta of MILC.
///
/// # Safety
/// `arg` describes MILC's sites.
pub unsafe fn load_momenta(precision: i32, arg: *mut QudaMILCSiteArg_t) -> Outcome {
    // SAFETY: the caller's promise.
    let (mut param, _, mom) = unsafe { site_param(precision, arg, false) }?;
    (param.make_resident_mom, param.return_result_mom) = (1, 0);
    // SAFETY: as above.
    unsafe { momenta::exchange(mom, &mut param) }?;
    MILC.with_borrow_mut(|milc| milc.keeps_momenta = true);
    Ok(())
}

/// Returns and frees resident momenta.
///
/// # Safety
/// As for [`load_momenta`].
pub unsafe fn save_momenta(precision: i32, arg: *mut QudaMILCSiteArg_t) -> Outcome {
    // SAFETY: the caller's promise.
    let (mut param, _, mom) = unsafe { site_param(precision, arg, false) }?;
    (param.make_resident_mom, param.return_result_mom) = (0, 1);
    // SAFETY: as above.
    unsafe { momenta::exchange(mom, &mut param) }?;
    MILC.with_borrow_mut(|milc| milc.keeps_momenta = false);
    Ok(())
}

/// Returns ½ Σ |P|² − 4 summed over all links.
///
/// # Safety
/// As for [`load_momenta`].
pub unsafe fn momentum_action(precision: i32, arg: *mut QudaMILCSiteArg_t) -> Outcome<f64> {
    // SAFETY: the caller's promise.
    let (mut param, _, mom) = unsafe { site_param(precision, arg, false) }?;
    let keeps = MILC.with_borrow(|milc| milc.keeps_momenta);
    (param.use_resident_mom, param.make_resident_mom) = (keeps.into(), keeps.into());
    // SAFETY: as above.
    unsafe { momenta::action(mom, &mut param) }
}

/// Projects links to SU(3).
///
/// # Safety
/// `arg` describes MILC's sites.
pub unsafe fn project_phased(precision: i32, tol: f64, arg: *mut QudaMILCSiteArg_t, phase_in: i32) -> Outcome {
    // SAFETY: the caller's promise.
    let (mut param, gauge, _) = unsafe { site_param(precision, arg, phase_in != 0) }?;
    param.return_result_gauge = 1;
    // SAFETY: as above.
    unsafe { staggered::project(gauge, tol, &mut param) }
}

/// Projects links without phases to SU(3).
///
/// # Safety
/// As for [`project_phased`].
pub unsafe fn project(precision: i32, tol: f64, arg: *mut QudaMILCSiteArg_t) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { project_phased(precision, tol, arg, 0) }
}

/// Multiplies links by staggered phases and the sign of the boundary condition if `flag` is set, or removes them.
///
/// # Safety
/// `gauge` has links of MILC's lattice.
pub unsafe fn change_phases(precision: i32, gauge: *mut c_void, flag: i32, i_mu: f64) -> Outcome {
    if i_mu != 0.0 {
        return Err(Failure::refused(format!("i_mu = {i_mu} is not offered: expected 0")));
    }
    let mut param = gauge_param(precision, true)?;
    param.staggered_phase_applied = (flag == 0).into();
    param.return_result_gauge = 1;
    // SAFETY: the caller's promise.
    unsafe { staggered::change_phases(gauge, &mut param) }
}

/// Observables of links that MILC asks for together.
struct MilcLoops {
    plaquettes: *mut f64,
    polyakov: *mut f64,
    traces: *mut f64,
    buffer: *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number: i32,
    factor: f64,
}

/// Measures links of MILC, without staggered phases and the sign of the boundary condition.
unsafe fn measure(precision: i32, arg: *mut QudaMILCSiteArg_t, phase_in: i32, wanted: &MilcLoops) -> Outcome {
    // SAFETY: the promise of the caller's caller.
    let (param, gauge, _) = unsafe { site_param(precision, arg, phase_in != 0) }?;
    State::with(|state| {
        // SAFETY: as above.
        let loaded = unsafe { links::taken(state, "arg", gauge, &param) }?;
        loops::on_links(state, &loaded, true, |field| {
            let number = |pointer: *mut f64| i32::from(!pointer.is_null());
            let mut observed = QudaGaugeObservableParam {
                su_project: 0,
                compute_plaquette: number(wanted.plaquettes),
                compute_polyakov_loop: number(wanted.polyakov),
                compute_gauge_loop_trace: number(wanted.traces),
                traces: wanted.traces.cast(),
                input_path_buff: wanted.buffer,
                path_length: wanted.lengths,
                loop_coeff: wanted.factors,
                num_paths: wanted.number,
                factor: wanted.factor,
                ..setup::new_param()?
            };
            // SAFETY: as above.
            unsafe { loops::observe(field, &mut observed) }?;
            // QUDA changes the sign once more, whether the boundary condition had one or not.
            let sign = if phase_in != 0 { 1.0 } else { -1.0 };
            // SAFETY: as above.
            unsafe {
                if let Some(out) = wanted.plaquettes.cast::<[f64; 3]>().as_mut() {
                    *out = observed.plaquette;
                }
                if let Some(out) = wanted.polyakov.cast::<[f64; 2]>().as_mut() {
                    *out = observed.ploop.map(|part| sign * part);
                }
            }
            Ok(())
        })
    })
}

/// Fails if there is no place for results.
fn expect_output(name: &str, results: *mut f64) -> Outcome {
    if results.is_null() { Err(Failure::refused(format!("{name}: the pointer is null"))) } else { Ok(()) }
}

impl MilcLoops {
    const NONE: Self = MilcLoops {
        plaquettes: std::ptr::null_mut(),
        polyakov: std::ptr::null_mut(),
        traces: std::ptr::null_mut(),
        buffer: std::ptr::null_mut(),
        lengths: std::ptr::null_mut(),
        factors: std::ptr::null_mut(),
        number: 0,
        factor: 1.0,
    };
}

/// Measures plaquettes: all, those in space, and those with t.
///
/// # Safety
/// `plaquettes` has room for three numbers, and `arg` describes MILC's sites.
pub unsafe fn plaquette(precision: i32, plaquettes: *mut f64, arg: *mut QudaMILCSiteArg_t, phase_in: i32) -> Outcome {
    expect_output("plaq", plaquettes)?;
    // SAFETY: the caller's promise.
    unsafe { measure(precision, arg, phase_in, &MilcLoops { plaquettes, ..MilcLoops::NONE }) }
}

/// Measures the Polyakov loop in t with the sign of QUDA: the loop over links without phases with the opposite sign, and the loop over links
/// with phases as it is without the sign of the boundary condition.
///
/// # Safety
/// `loops` has room for two numbers, and `arg` describes MILC's sites.
pub unsafe fn polyakov(
    precision: i32,
    loops: *mut f64,
    direction: i32,
    arg: *mut QudaMILCSiteArg_t,
    phase_in: i32,
) -> Outcome {
    if direction != 3 {
        return Err(Failure::refused(format!("dir = {direction} is not offered: expected 3, for t")));
    }
    expect_output("ploop", loops)?;
    // SAFETY: the caller's promise.
    unsafe { measure(precision, arg, phase_in, &MilcLoops { polyakov: loops, ..MilcLoops::NONE }) }
}

/// Measures the traces of closed paths, summed over the lattice.
///
/// # Safety
/// The paths are as for `loops::paths`, and `arg` describes MILC's sites.
pub unsafe fn loop_traces(
    precision: i32,
    traces: *mut f64,
    buffer: *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number: i32,
    _longest: i32,
    factor: f64,
    arg: *mut QudaMILCSiteArg_t,
    phase_in: i32,
) -> Outcome {
    expect_output("traces", traces)?;
    let wanted = MilcLoops { traces, buffer, lengths, factors, number, factor, ..MilcLoops::NONE };
    // SAFETY: the caller's promise.
    unsafe { measure(precision, arg, phase_in, &wanted) }
}

/// Measures plaquettes, the Polyakov loop and traces of closed paths.
///
/// # Safety
/// As for [`plaquette`], [`polyakov`] and [`loop_traces`].
pub unsafe fn measure_all(
    precision: i32,
    plaquettes: *mut f64,
    polyakov: *mut f64,
    direction: i32,
    traces: *mut f64,
    buffer: *mut *mut i32,
    lengths: *mut i32,
    factors: *mut f64,
    number: i32,
    _longest: i32,
    factor: f64,
    arg: *mut QudaMILCSiteArg_t,
    phase_in: i32,
) -> Outcome {
    if direction != 3 {
        return Err(Failure::refused(format!("dir = {direction} is not offered: expected 3, for t")));
    }
    let wanted = MilcLoops { plaquettes, polyakov, traces, buffer, lengths, factors, number, factor };
    // SAFETY: the caller's promise.
    unsafe { measure(precision, arg, phase_in, &wanted) }
}

/// Fixes links of MILC to Landau or Coulomb gauge by over-relaxation.
///
/// # Safety
/// `arg` describes MILC's sites.
pub unsafe fn fix_by_relaxation(
    precision: i32,
    gauge_dir: u32,
    steps: i32,
    verbose_interval: i32,
    relax_boost: f64,
    tolerance: f64,
    reunit_interval: u32,
    stop_by_theta: u32,
    arg: *mut QudaMILCSiteArg_t,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (mut param, gauge, _) = unsafe { site_param(precision, arg, false) }?;
    let (steps, interval) = (steps.max(0) as u32, verbose_interval.max(0) as u32);
    // SAFETY: as above.
    unsafe {
        smearing::fix_by_relaxation(
            gauge,
            gauge_dir,
            steps,
            interval,
            relax_boost,
            tolerance,
            reunit_interval,
            stop_by_theta,
            &mut param,
        )
    }?;
    Ok(())
}
