//! Rows of Wilson operators, launched over a lattice that may be cut: the inside by the kernel for whole lattices, the
//! sites near a cut by one for rows of its kind that also looks into ghost zones.
use super::wilson::Wilson;
use crate::backend::view;
use crate::domain::{Domain, Result};
use crate::field::DeviceSpinor;
use crate::halo::{Hop, Outside, PartialSums, SumTarget, hop};
use gpu_kernels::algebra::Real;
use gpu_kernels::exterior::{CloverSum, Inverse, Plain, WilsonExterior, WilsonExteriorDots};
use gpu_kernels::field::Clover;
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::storage::{CloverFormat, LinkFormat};
use gpu_kernels::wilson::Hopping;
use gpu_kernels::{Kernel, Reduction, Values};
use std::marker::PhantomData;

/// A row of the Wilson or the Wilson-clover operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// D ψ
    Hops,
    /// a x + b D ψ
    Sum,
    /// A⁻¹ D ψ
    Inverse,
    /// x + b A⁻¹ D ψ
    InverseSum,
    /// A x + b D ψ
    CloverSum,
}

/// What a row computes.
pub(super) struct Row<'a, P: CloverFormat> {
    /// Parity of the sites of the result.
    pub parity: usize,
    /// With D† instead of D.
    pub dagger: bool,
    /// Which row.
    pub form: Form,
    /// ψ, on the other parity.
    pub input: &'a DeviceSpinor<P>,
    /// The result.
    pub out: &'a DeviceSpinor<P>,
    /// x, where the row has one.
    pub x: &'a DeviceSpinor<P>,
    /// Factor of x.
    pub a: f64,
    /// Factor of the hopping term.
    pub b: f64,
    /// A or A⁻¹, where the row has one.
    pub clover: Clover<P>,
}

impl<'a, P: CloverFormat> Row<'a, P> {
    /// out = D ψ
    pub fn hops(parity: usize, dagger: bool, input: &'a DeviceSpinor<P>, out: &'a DeviceSpinor<P>) -> Self {
        let clover = view::no_clover();
        Row { parity, dagger, form: Form::Hops, input, out, x: out, a: 1.0, b: 1.0, clover }
    }
    /// out = a x + b D ψ
    pub fn sum(
        parity: usize,
        dagger: bool,
        (a, x): (f64, &'a DeviceSpinor<P>),
        (b, input): (f64, &'a DeviceSpinor<P>),
        out: &'a DeviceSpinor<P>,
    ) -> Self {
        Row { form: Form::Sum, x, a, b, ..Self::hops(parity, dagger, input, out) }
    }
    /// Whether all fields are where the links are, with so many right-hand sides.
    fn expect(&self, domain: &Domain, nrhs: usize) -> Result {
        [self.input, self.out, self.x].into_iter().try_for_each(|field| field.expect(domain, nrhs))
    }
    fn exterior<R, F>(&self, hopping: Hopping<P, R>, ghosts: Ghosts<P>) -> WilsonExterior<P, R, F> {
        WilsonExterior {
            out: self.out.view(),
            x: self.x.view(),
            sum: u32::from(matches!(self.form, Form::Sum | Form::InverseSum | Form::CloverSum)),
            form: PhantomData,
            dagger: u32::from(self.dagger),
            a: P::Real::from_f64(self.a),
            b: P::Real::from_f64(self.b),
            clover: self.clover,
            hopping,
            ghosts,
        }
    }
}

impl<P: CloverFormat, R: LinkFormat<P>> Wilson<P, R> {
    /// Computes a row; `kernel` does it on a whole lattice.
    pub(super) fn launch<K: Kernel>(&self, row: &Row<'_, P>, kernel: impl Fn(Hopping<P, R>) -> K) -> Result {
        let (backend, nrhs) = (self.domain().backend(), self.sides_of(row) as u32);
        row.expect(self.domain(), nrhs as usize)?;
        let hopping = self.hopping(row.input, row.parity);
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| Ok(backend.launch(&kernel(Hopping { region, ..hopping }), sites, nrhs)?),
            &mut |Outside { region, sites, ghosts, stream, .. }| {
                let hopping = Hopping { region, ..hopping };
                match row.form {
                    Form::Hops | Form::Sum => {
                        backend.launch_on(stream, &row.exterior::<R, Plain>(hopping, ghosts), sites, nrhs)?
                    }
                    Form::Inverse | Form::InverseSum => {
                        backend.launch_on(stream, &row.exterior::<R, Inverse>(hopping, ghosts), sites, nrhs)?;
                    }
                    Form::CloverSum => {
                        backend.launch_on(stream, &row.exterior::<R, CloverSum>(hopping, ghosts), sites, nrhs)?
                    }
                }
                Ok(())
            },
        )
    }
    /// Computes a row with sums, which are to be collected; `kernel` does it on a whole lattice. Sums with x or A⁻¹ only, and D, not D†.
    pub(super) fn launch_sums<K: Reduction>(
        &self,
        row: &Row<'_, P>,
        w: &DeviceSpinor<P>,
        target: SumTarget<'_>,
        kernel: impl Fn(Hopping<P, R>) -> K,
    ) -> Result<PartialSums> {
        let (backend, nrhs) = (self.domain().backend(), self.sides_of(row));
        row.expect(self.domain(), nrhs)?;
        w.expect(self.domain(), nrhs)?;
        let hopping = self.hopping(row.input, row.parity);
        let sums = std::cell::RefCell::new(PartialSums::new(nrhs));
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| {
                let slot = sums.borrow_mut().slot(0, K::Values::COUNT);
                target.reduce((backend, None), &kernel(Hopping { region, ..hopping }), sites, nrhs as u32, slot)
            },
            &mut |Outside { part, region, sites, ghosts, stream }| {
                let slot = sums.borrow_mut().slot(part, 8);
                let (hopping, nrhs, w) = (Hopping { region, ..hopping }, nrhs as u32, w.view());
                match row.form {
                    Form::Sum => {
                        let row = row.exterior::<R, Plain>(hopping, ghosts);
                        target.reduce((backend, stream), &WilsonExteriorDots { row, w }, sites, nrhs, slot)
                    }
                    Form::InverseSum => {
                        let row = row.exterior::<R, Inverse>(hopping, ghosts);
                        target.reduce((backend, stream), &WilsonExteriorDots { row, w }, sites, nrhs, slot)
                    }
                    form => unreachable!("no sums of {form:?} are asked for"),
                }
            },
        )?;
        Ok(sums.into_inner())
    }
    fn hop_of(&self, row: &Row<'_, P>) -> Hop {
        Hop { steps: 1, parity: row.parity, dagger: row.dagger, beyond: self.beyond(), sides: self.sides_of(row) }
    }
    fn sides_of(&self, row: &Row<'_, P>) -> usize {
        self.sides().of(row.input.nrhs())
    }
}
