//! Products of fields with operators and their parts.
use crate::check::{Mistakes, check_size, count, given};
use crate::enums::*;
use crate::fields::{add, epsilon, keep_parity, scale};
use crate::memory::Width;
use crate::operator::{
    Complement, Form, Quarks, Wanted, WilsonQuarks, expect_fields, is_chiral, part_of, prepare, prepared, read,
    wilson_like, write,
};
use crate::order::{Fields, Sites};
use crate::state::State;
use crate::structs::{QUDA_MAX_MULTI_SRC, QudaInvertParam};
use ferrite::domain::Domain;
use ferrite::field::host::{HostSpinor, Spinor};
use ferrite::field::{FullField, HermitianBlock};
use ferrite::num_complex::Complex64;
use ferrite::operators::{DiagonalForm, EvenOddWilson, OperatorForm};
use ferrite_tasks::dirac::LinkedDirac;
use ferrite_tasks::host_fields::HostFields;
use ferrite_tasks::{Failure, Outcome};
use std::ffi::c_void;
use std::ops::ControlFlow;

/// Returns M ψ, M† ψ or M†M ψ in Ferrite's normalisation.
pub fn applied(dirac: &LinkedDirac, form: OperatorForm, fields: &HostFields) -> Outcome<HostFields> {
    dirac.apply(form, fields, &mut || ControlFlow::Continue(()))
}

/// Parts of a Wilson-like operator A − D/2 in Ferrite's normalisation.
pub struct Parts<'a> {
    operator: EvenOddWilson,
    domain: Domain,
    fields: &'a [HostSpinor],
}

impl<'a> Parts<'a> {
    /// Makes the parts for products with some fields.
    pub fn new(state: &State, quarks: WilsonQuarks, fields: &'a HostFields) -> Outcome<Self> {
        let HostFields::Wilson(fields) = fields else { return Err(Failure::failed("the fields have no spin")) };
        let (_, dirac) = prepared(state)?;
        let operator = wilson_like(state, quarks)?;
        let operator = dirac.configuration().wilson_like(operator, fields.len())?;
        Ok(Parts { operator, domain: dirac.configuration().domain().clone(), fields })
    }
    fn product(&self, work: impl FnOnce(&FullField, &mut FullField) -> ferrite::domain::Result) -> Outcome<HostFields> {
        let input = FullField::of_host(&self.domain, self.fields)?;
        let mut out = FullField::zero(&self.domain, input.even.shape())?;
        work(&input, &mut out)?;
        Ok(HostFields::Wilson(out.download::<Spinor>()?))
    }
    /// Returns D ψ or D† ψ on the sites of a parity.
    pub fn hops(&self, parity: usize, dagger: bool) -> Outcome<HostFields> {
        self.product(|x, out| {
            self.operator.wilson().dslash(parity, dagger, x.parity(1 - parity), out.parity_mut(parity))
        })
    }
    /// Returns A ψ, A⁻¹ ψ, A† ψ or A⁻† ψ on the sites of a parity.
    pub fn diagonal(&self, form: DiagonalForm) -> Outcome<HostFields> {
        let parity = form.parity;
        self.product(|x, out| self.operator.apply_diagonal(form, x.parity(parity), out.parity_mut(parity)))
    }
}

/// Returns A ψ, A⁻¹ ψ, A† ψ or A⁻† ψ on the sites of a parity.
pub fn diagonal(state: &State, quarks: WilsonQuarks, form: DiagonalForm, fields: &HostFields) -> Outcome<HostFields> {
    Parts::new(state, quarks, fields)?.diagonal(form)
}

/// Returns the blocks of the loaded clover term in the normalisation of κ, or of its inverse, in lexicographic order of the sites.
pub fn clover_blocks(state: &mut State, inverse: bool) -> Outcome<Vec<[HermitianBlock; 2]>> {
    // With this κ, the normalisation is Ferrite's.
    let quarks = WilsonQuarks { kappa: 0.5, has_clover: true, twist: 0.0 };
    prepare(state, Quarks::Wilson(quarks))?;
    let lattice = state.wilson()?.links.part.local;
    // The columns of all blocks are the images of fields that are 1 in one spin and colour.
    let unit = |column: usize| {
        let mut field = HostSpinor::zero(lattice);
        field.numbers_mut().chunks_mut(12).for_each(|site| site[column] = Complex64::ONE);
        field
    };
    let units = HostFields::Wilson((0..12).map(unit).collect());
    let mut columns = Vec::new();
    for parity in 0..2 {
        let form = DiagonalForm { parity, inverse, dagger: false };
        let HostFields::Wilson(images) = diagonal(state, quarks, form, &units)? else {
            return Err(Failure::failed("the fields have no spin"));
        };
        columns.push(images);
    }
    let block = |site: usize, chirality: usize| {
        let images = &columns[lattice.parity(lattice.coordinates(site))];
        let element =
            |row: usize, column: usize| images[6 * chirality + column].numbers()[12 * site + 6 * chirality + row];
        let mut block =
            HermitianBlock { diagonal: std::array::from_fn(|k| element(k, k).re), lower: [Complex64::ZERO; 15] };
        for row in 1..6 {
            (0..row).for_each(|column| block.lower[row * (row - 1) / 2 + column] = element(row, column));
        }
        block
    };
    Ok((0..lattice.volume()).map(|site| [block(site, 0), block(site, 1)]).collect())
}

/// Returns the product with the even-odd complement S = A − ¼ D A⁻¹ D, with A⁻¹ S if it is symmetric, or with the adjoint.
pub fn complement(
    state: &State,
    quarks: WilsonQuarks,
    Complement { parity, is_asymmetric }: Complement,
    dagger: bool,
    fields: &HostFields,
) -> Outcome<HostFields> {
    let (inverse, there) = (DiagonalForm { parity, inverse: true, dagger }, 1 - parity);
    let divided = match !is_asymmetric && dagger {
        true => diagonal(state, quarks, inverse, fields)?,
        false => fields.clone(),
    };
    let hopped = Parts::new(state, quarks, &divided)?.hops(there, dagger)?;
    let hopped = diagonal(state, quarks, DiagonalForm { parity: there, ..inverse }, &hopped)?;
    let back = Parts::new(state, quarks, &hopped)?.hops(parity, dagger)?;
    let mut out = diagonal(state, quarks, DiagonalForm { inverse: false, ..inverse }, &divided)?;
    add(&mut out, -0.25, &back);
    match !is_asymmetric && !dagger {
        true => diagonal(state, quarks, inverse, &out),
        false => Ok(out),
    }
}

/// Returns the product with the operator that is wanted, in QUDA's normalisation without that of the mass: M = 1 − κ D or 2m − D.
pub fn product(state: &State, wanted: &Wanted, fields: &HostFields) -> Outcome<HostFields> {
    let (_, dirac) = prepared(state)?;
    match (wanted.quarks, wanted.complement) {
        (Quarks::Wilson(WilsonQuarks { kappa, .. }), None) => {
            let (form, power) = match wanted.form {
                Form::Plain { dagger: false } => (OperatorForm::Plain, 1),
                Form::Plain { dagger: true } => (OperatorForm::Dagger, 1),
                Form::Normal => (OperatorForm::Normal, 2),
            };
            let mut out = applied(dirac, form, fields)?;
            scale(&mut out, (2.0 * kappa).powi(power));
            Ok(out)
        }
        (Quarks::Wilson(quarks), Some(of)) => {
            // 2κ A − …, or 1 − …, which needs no factor.
            let factor = if of.is_asymmetric { 2.0 * quarks.kappa } else { 1.0 };
            let times = |dagger: bool, fields: &HostFields| -> Outcome<HostFields> {
                let mut out = complement(state, quarks, of, dagger, fields)?;
                scale(&mut out, factor);
                Ok(out)
            };
            match wanted.form {
                Form::Plain { dagger } => times(dagger, fields),
                Form::Normal => times(true, &times(false, fields)?),
            }
        }
        (Quarks::Staggered { .. }, None) => match wanted.form {
            Form::Plain { dagger } => {
                let mut fields = fields.clone();
                if dagger {
                    epsilon(&mut fields);
                }
                let mut out = applied(dirac, OperatorForm::Plain, &fields)?;
                if dagger {
                    epsilon(&mut out);
                }
                scale(&mut out, 2.0);
                Ok(out)
            }
            Form::Normal => {
                let mut out = applied(dirac, OperatorForm::Normal, fields)?;
                scale(&mut out, 4.0);
                Ok(out)
            }
        },
        // M̂ = 4m² − D² on one parity, which is M†M there.
        (Quarks::Staggered { .. }, Some(of)) => {
            if wanted.form == Form::Normal {
                return Err(no_square());
            }
            let mut out = applied(dirac, OperatorForm::Normal, fields)?;
            keep_parity(&mut out, of.parity);
            scale(&mut out, 4.0);
            Ok(out)
        }
    }
}

/// Returns the refusal of the square of a staggered complement.
pub fn no_square() -> Failure {
    Failure::refused(
        "solution_type = QUDA_MATPCDAG_MATPC_SOLUTION is not offered for staggered quarks: QUDA_MATPC_SOLUTION is \
         4m² − D²",
    )
}

/// Returns the power of 1/(2κ) by which products are multiplied.
fn power(wanted: &Wanted) -> i32 {
    let one = match (wanted.normalisation, wanted.complement) {
        (QUDA_KAPPA_NORMALIZATION, _) => 0,
        (QUDA_MASS_NORMALIZATION, Some(_)) => 2,
        _ => 1,
    };
    if wanted.form == Form::Normal { 2 * one } else { one }
}

/// Applies the operator that `solution_type` and `dagger` choose.
///
/// # Safety
/// `out` and `input` are fields on the lattice of the resident links, as `param` describes them.
pub unsafe fn apply(out: *mut c_void, input: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "inv_param") }?;
    if [QUDA_COVDEV_DSLASH, QUDA_LAPLACE_DSLASH].contains(&param.dslash_type) {
        // SAFETY: as above.
        return unsafe { crate::covariant::apply(out, input, param) };
    }
    let form = if param.dagger == QUDA_DAG_YES { Form::Plain { dagger: true } } else { Form::Plain { dagger: false } };
    // SAFETY: as above.
    unsafe { multiply(out, input, param, form) }
}

/// Applies M†M, or M̂†M̂ if `solution_type` is that of an even-odd complement.
///
/// # Safety
/// As for [`apply`].
pub unsafe fn apply_normal(out: *mut c_void, input: *mut c_void, param: *mut QudaInvertParam) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { multiply(out, input, given(param, "inv_param")?, Form::Normal) }
}

unsafe fn multiply(out: *mut c_void, input: *mut c_void, param: &QudaInvertParam, form: Form) -> Outcome {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    // The call determines whether the matrix is M or M†M.
    let solution_type = match param.solution_type {
        QUDA_MATDAG_MAT_SOLUTION => QUDA_MAT_SOLUTION,
        QUDA_MATPCDAG_MATPC_SOLUTION => QUDA_MATPC_SOLUTION,
        other => other,
    };
    let wanted = Wanted { form, ..Wanted::of(&QudaInvertParam { solution_type, ..*param })? };
    State::with(|state| {
        let part = part_of(state, wanted.quarks)?;
        prepare(state, wanted.quarks)?;
        let fields = wanted.fields(part.local);
        // SAFETY: the promise of the caller's caller.
        let from = unsafe { read(state.device()?, fields, wanted.quarks, "h_in", &[input]) }?;
        let mut image = product(state, &wanted, &from)?;
        scale(&mut image, (2.0 * param.kappa).powi(-power(&wanted)));
        // SAFETY: as above.
        unsafe { write(state.device()?, fields, "h_out", &[out], &image) }
    })
}

/// Returns a parity, from a number of the interface.
fn parity_of(parity: QudaParity) -> Outcome<usize> {
    let mut mistakes = Mistakes::default();
    mistakes.expect("parity", "QudaParity", parity, &[QUDA_EVEN_PARITY, QUDA_ODD_PARITY]);
    mistakes.finish()?;
    Ok(usize::from(parity == QUDA_ODD_PARITY))
}

/// Checks the fields that a part of an operator needs. Returns its quarks and the precision of fields.
fn quarks_of(param: &QudaInvertParam) -> Outcome<(Quarks, Width)> {
    check_size(param.struct_size, size_of::<QudaInvertParam>())?;
    let mut mistakes = Mistakes::default();
    let quarks = Quarks::of(param, &mut mistakes);
    expect_fields(param, &mut mistakes);
    mistakes.expect("dagger", "QudaDagType", param.dagger, &[QUDA_DAG_NO, QUDA_DAG_YES]);
    mistakes.finish()?;
    Ok((quarks, Width::of("cpu_prec", param.cpu_prec)?))
}

/// Applies the hops D to a field on the sites of the other parity; with a clover term, A⁻¹ D.
///
/// # Safety
/// `out` and `input` are fields on the sites of one parity of the lattice of the resident links.
pub unsafe fn hops(out: *mut c_void, input: *mut c_void, param: *mut QudaInvertParam, parity: QudaParity) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hops_of_several(&[out], &[input], given(param, "inv_param")?, parity) }
}

/// Applies the hops D to `num_src` fields.
///
/// # Safety
/// `out` and `input` are arrays of `num_src` fields as for [`hops`].
pub unsafe fn hops_of_all(
    out: *mut *mut c_void,
    input: *mut *mut c_void,
    param: *mut QudaInvertParam,
    parity: QudaParity,
) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "param") }?;
    let count = count("num_src", param.num_src, QUDA_MAX_MULTI_SRC)?;
    if out.is_null() || input.is_null() {
        return Err(Failure::refused("_hp_x or _hp_b is a null pointer"));
    }
    // SAFETY: as above.
    let (out, input) = unsafe { (std::slice::from_raw_parts(out, count), std::slice::from_raw_parts(input, count)) };
    // SAFETY: as above.
    unsafe { hops_of_several(out, input, param, parity) }
}

unsafe fn hops_of_several(
    out: &[*mut c_void],
    input: &[*mut c_void],
    param: &QudaInvertParam,
    parity: QudaParity,
) -> Outcome {
    let ((quarks, width), parity, dagger) = (quarks_of(param)?, parity_of(parity)?, param.dagger == QUDA_DAG_YES);
    State::with(|state| {
        let lattice = part_of(state, quarks)?.local;
        prepare(state, quarks)?;
        let there = Fields { lattice, sites: Sites::Parity(1 - parity), width, is_chiral: is_chiral(param) };
        // SAFETY: the promise of the caller's caller.
        let from = unsafe { read(state.device()?, there, quarks, "h_in", input) }?;
        let image = match quarks {
            Quarks::Wilson(quarks) => {
                let image = Parts::new(state, quarks, &from)?.hops(parity, dagger)?;
                match quarks.has_number() {
                    true => image,
                    // QUDA's A is 2κ times Ferrite's.
                    false => {
                        let form = DiagonalForm { parity, inverse: true, dagger };
                        let mut image = diagonal(state, quarks, form, &image)?;
                        scale(&mut image, 0.5 / quarks.kappa);
                        image
                    }
                }
            }
            Quarks::Staggered { mass, .. } => {
                // On the links −U, the operator is m − D/2.
                let mut image = applied(prepared(state)?.1, OperatorForm::Plain, &from)?;
                let sign = if dagger { 2.0 } else { -2.0 };
                let is_kappa = param.mass_normalization == QUDA_KAPPA_NORMALIZATION;
                scale(&mut image, if is_kappa { sign / (2.0 * mass) } else { sign });
                image
            }
        };
        // SAFETY: as above.
        unsafe { write(state.device()?, Fields { sites: Sites::Parity(parity), ..there }, "h_out", out, &image) }
    })
}

/// Applies the clover term or its inverse to a field on the sites of one parity.
///
/// # Safety
/// `out` and `input` are fields on the sites of one parity of the lattice of the resident links.
pub unsafe fn clover(
    out: *mut c_void,
    input: *mut c_void,
    param: *mut QudaInvertParam,
    parity: QudaParity,
    inverse: i32,
) -> Outcome {
    // SAFETY: the caller's promise.
    let param = unsafe { given(param, "inv_param") }?;
    let ((quarks, width), parity) = (quarks_of(param)?, parity_of(parity)?);
    let Quarks::Wilson(WilsonQuarks { kappa, has_clover: true, .. }) = quarks else {
        return Err(Failure::refused("dslash_type: expected QUDA_CLOVER_WILSON_DSLASH, whose clover term is applied"));
    };
    State::with(|state| {
        let lattice = part_of(state, quarks)?.local;
        prepare(state, quarks)?;
        let fields = Fields { lattice, sites: Sites::Parity(parity), width, is_chiral: is_chiral(param) };
        // SAFETY: as above.
        let from = unsafe { read(state.device()?, fields, quarks, "h_in", &[input]) }?;
        let form = DiagonalForm { parity, inverse: inverse != 0, dagger: false };
        // Without the twisted mass, as in QUDA.
        let mut image = diagonal(state, WilsonQuarks { kappa, has_clover: true, twist: 0.0 }, form, &from)?;
        scale(&mut image, if inverse != 0 { 0.5 / kappa } else { 2.0 * kappa });
        // SAFETY: as above.
        unsafe { write(state.device()?, fields, "h_out", &[out], &image) }
    })
}
