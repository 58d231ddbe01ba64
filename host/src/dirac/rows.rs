//! Rows of Wilson operators, launched over a lattice that may be cut: the inside by the kernel for whole lattices, the
//! sites near a cut by one for rows of its kind that also looks into ghost zones.
use super::wilson::Wilson;
use crate::backend::{Call, view};
use crate::domain::Result;
use crate::field::DeviceField;
use crate::halo::{Hop, Outside, PartialSums, SumTarget, hop};
use gpu_kernels::clover::{CLOVER_ROW, CLOVER_ROW_DOT, CLOVER_ROW_DOTS, CLOVER_SUM_ROW};
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::exterior::{WILSON_EXTERIOR, WILSON_EXTERIOR_DOTS};
use gpu_kernels::field::{Clover, Field};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::Region;
use gpu_kernels::wilson::{Hopping, WILSON_ROW, WILSON_ROW_DOT, WILSON_ROW_DOTS, WilsonRow};

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
pub(super) struct Row<'a> {
    /// Parity of the sites of the result.
    pub parity: usize,
    /// With D† instead of D.
    pub dagger: bool,
    /// Which row.
    pub form: Form,
    /// ψ, on the other parity.
    pub input: &'a DeviceField,
    /// The result.
    pub out: &'a DeviceField,
    /// x, where the row has one.
    pub x: &'a DeviceField,
    /// Factor of x.
    pub a: f64,
    /// Factor of the hopping term.
    pub b: f64,
    /// A or A⁻¹, where the row has one.
    pub clover: Clover,
}

/// Which sums a row comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sums {
    /// (w, y) and ‖y‖²
    Dot,
    /// What BiCGstab's second half step needs.
    Dots,
}

impl<'a> Row<'a> {
    /// out = D ψ
    pub fn hops(parity: usize, dagger: bool, input: &'a DeviceField, out: &'a DeviceField) -> Self {
        let clover = view::NO_CLOVER;
        Row { parity, dagger, form: Form::Hops, input, out, x: out, a: 1.0, b: 1.0, clover }
    }
    /// out = a x + b D ψ
    pub fn sum(
        parity: usize,
        dagger: bool,
        (a, x): (f64, &'a DeviceField),
        (b, input): (f64, &'a DeviceField),
        out: &'a DeviceField,
    ) -> Self {
        Row { form: Form::Sum, x, a, b, ..Self::hops(parity, dagger, input, out) }
    }
    /// Whether the row is one of A or A⁻¹, whose kernels differ.
    fn has_clover(&self) -> bool {
        !matches!(self.form, Form::Hops | Form::Sum)
    }
    /// As kernels have it, with w and for the sites of a region.
    fn arguments(&self, wilson: &Wilson, w: Field, region: Region, ghosts: Ghosts) -> WilsonRow {
        let diagonal = match self.form {
            Form::Hops | Form::Sum => DiagonalArguments::mass(self.a),
            Form::Inverse | Form::InverseSum => DiagonalArguments::clover(self.clover, true),
            Form::CloverSum => DiagonalArguments::clover(self.clover, false),
        };
        WilsonRow {
            out: self.out.view(),
            x: self.x.view(),
            w,
            sum: u32::from(matches!(self.form, Form::Sum | Form::InverseSum | Form::CloverSum)),
            dagger: u32::from(self.dagger),
            b: self.b.into(),
            diagonal,
            hopping: Hopping { region, ..wilson.hopping(self.input, self.parity) },
            ghosts,
        }
    }
}

impl Wilson {
    /// Computes a row.
    pub(super) fn launch(&self, row: &Row<'_>) -> Result {
        let (backend, nrhs, format) = (self.domain().backend(), self.sides_of(row) as u32, self.format());
        self.expect(&[row.input, row.out, row.x], nrhs as usize)?;
        let interior = match row.form {
            Form::Hops | Form::Sum => &WILSON_ROW,
            Form::Inverse | Form::InverseSum => &CLOVER_ROW,
            Form::CloverSum => &CLOVER_SUM_ROW,
        };
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| {
                let row = row.arguments(self, view::NO_FIELD, region, Ghosts::NONE);
                Ok(backend.launch(interior, format, &row, sites, nrhs)?)
            },
            &mut |Outside { region, sites, ghosts, stream, .. }| {
                let row = row.arguments(self, view::NO_FIELD, region, ghosts);
                Ok(backend.run(stream, Call::of(&WILSON_EXTERIOR, format, &row)?, sites, nrhs)?)
            },
        )
    }
    /// Computes a row with sums, which are to be collected. Rows with x, of A⁻¹ where they have a clover term, and D, not
    /// D†.
    pub(super) fn launch_sums(
        &self,
        row: &Row<'_>,
        (which, w): (Sums, &DeviceField),
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        debug_assert!(matches!(row.form, Form::Sum | Form::InverseSum) && !row.dagger, "no sums of other rows");
        let (backend, nrhs, format) = (self.domain().backend(), self.sides_of(row), self.format());
        self.expect(&[row.input, row.out, row.x, w], nrhs)?;
        let (interior, values) = match (which, row.has_clover()) {
            (Sums::Dot, false) => (&WILSON_ROW_DOT, 3),
            (Sums::Dots, false) => (&WILSON_ROW_DOTS, 8),
            (Sums::Dot, true) => (&CLOVER_ROW_DOT, 3),
            (Sums::Dots, true) => (&CLOVER_ROW_DOTS, 8),
        };
        let sums = std::cell::RefCell::new(PartialSums::new(nrhs));
        hop(
            row.input,
            self.hop_of(row),
            &mut |region, sites| {
                let slot = sums.borrow_mut().slot(0, values);
                let row = row.arguments(self, w.view(), region, Ghosts::NONE);
                target.reduce((backend, None), Call::of_sum(interior, format, &row)?, sites, nrhs as u32, slot)
            },
            &mut |Outside { part, region, sites, ghosts, stream }| {
                let slot = sums.borrow_mut().slot(part, 8);
                let row = row.arguments(self, w.view(), region, ghosts);
                let call = Call::of_sum(&WILSON_EXTERIOR_DOTS, format, &row)?;
                target.reduce((backend, stream), call, sites, nrhs as u32, slot)
            },
        )?;
        Ok(sums.into_inner())
    }
    fn hop_of(&self, row: &Row<'_>) -> Hop {
        Hop { steps: 1, parity: row.parity, dagger: row.dagger, beyond: self.beyond(), sides: self.sides_of(row) }
    }
    fn sides_of(&self, row: &Row<'_>) -> usize {
        self.sides().of(row.input.nrhs())
    }
}
