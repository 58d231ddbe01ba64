//! Linear algebra with coefficients from sums that stay on the device.
use super::device::DeviceField;
use super::rhs::BlockGroup;
use super::space::FieldSpace;
use crate::backend::{Call, DeviceBuffer, view};
use crate::domain::{DeviceError, PartialSums, Result, SumTarget};
use gpu_kernels::blas::{
    BICGSTAB_HALF_KEPT, BICGSTAB_STEP_KEPT, BicgstabHalfKept, BicgstabStepKept, CG_RESIDUAL_UPDATE, CG_UPDATE_KEPT,
    CgResidualUpdate, CgRho, CgUpdateKept, DOT_NORM2, DotNorm2, ShadowRho,
};
use gpu_kernels::krylov::{MULTI_DOT, MultiDot};
use gpu_kernels::per_rhs::MAX_RHS_WITH_NUMBERS;
use gpu_kernels::sums::DeviceSums;
use num_complex::Complex64;
use solvers::{CgStep, KeptRho, KeptSums, Overlap, SUM_PLACES, SUMS_IN_PLACE, VectorSpace};
use std::cell::Cell;

/// Numbers of a place that has the sums of [`DslashDots`](gpu_kernels::dslash::DslashDots) where three were asked for.
const DOT_AMONG_DOTS: [usize; 3] = [4, 5, 7];

/// Places for sums on the device.
pub(super) struct KeptPlaces {
    buffer: DeviceBuffer,
    /// Sums that were last written to each place.
    written: [Cell<Written>; SUM_PLACES],
}

/// Sums of a place.
#[derive(Clone, Copy, Default)]
struct Written {
    /// Number of sums of each right-hand side.
    width: usize,
    /// Number of sums that were asked for.
    wanted: usize,
}

impl KeptPlaces {
    fn new(space: &FieldSpace) -> Result<Self> {
        let bytes = 8 * SUM_PLACES * SUMS_IN_PLACE * space.shape.nrhs;
        let buffer = space.domain().backend().allocate(bytes, "sums")?;
        Ok(KeptPlaces { buffer, written: Default::default() })
    }
}

impl FieldSpace {
    /// Whether sums can stay on the device: those of four-dimensional fields on a lattice that is not divided.
    pub(super) fn keeps_sums(&self) -> bool {
        self.shape.ls == 1 && self.domain().grid().size() == 1
    }
    /// Queues a reduction of `wanted` sums for each right-hand side, and keeps them in a place. Returns false, and does nothing, if sums
    /// cannot stay on the device.
    pub(crate) fn keep(
        &self,
        place: usize,
        wanted: usize,
        launch: impl FnOnce(SumTarget<'_>) -> Result<PartialSums>,
    ) -> Result<bool> {
        if !self.keeps_sums() {
            return Ok(false);
        }
        let places = match self.kept.get() {
            Some(places) => places,
            None => {
                let places = KeptPlaces::new(self)?;
                self.kept.get_or_init(|| places)
            }
        };
        let [width, ..] = launch(SumTarget::Device(&places.buffer, self.first_of(place)))?.widths();
        places.written[place].set(Written { width: width as usize, wanted });
        Ok(true)
    }
    /// Writes the sums (x, y) and ‖x‖² to one place and, for spinors, four products of them to the other, for the tuner.
    pub(crate) fn keep_products(&self, x: &DeviceField, y: &DeviceField, [three, eight]: [usize; 2]) -> Result {
        self.expect(x, self.nrhs())?;
        self.expect(y, self.nrhs())?;
        let (backend, size) = (self.domain().backend(), (self.domain().half_sites(), self.nrhs()));
        let reduce = |target: SumTarget<'_>, call: Call<'_>, width: usize| {
            let mut sums = PartialSums::new(size.1);
            target.reduce(backend, None, call, size.0, size.1 as u32, sums.slot(0, width))?;
            Ok(sums)
        };
        let dot = DotNorm2 { x: x.view(), y: y.view() };
        self.keep(three, 3, |target| reduce(target, Call::of_sum(&DOT_NORM2, self.format(), &dot)?, 3))?;
        if !self.shape.is_colours() {
            let dots = MultiDot { x: [x.view(); 4], y: y.view() };
            self.keep(eight, 8, |target| reduce(target, Call::of_sum(&MULTI_DOT, self.format(), &dots)?, 8))?;
        }
        Ok(())
    }
    /// Returns the number of the first sum of a place.
    fn first_of(&self, place: usize) -> usize {
        assert!(place < SUM_PLACES, "a place for sums");
        place * SUMS_IN_PLACE * self.shape.nrhs
    }
    /// Returns the view of the sums in a place, which must have been written.
    fn sums_at(&self, place: usize) -> DeviceSums {
        let places = self.kept.get().expect("sums were kept before they are used");
        let Written { width, .. } = places.written[place].get();
        view::device_sums(&places.buffer, self.first_of(place), 0, [width as u32, 0, 0, 0, 0])
    }
    fn rho(&self, rho: KeptRho<'_, f64>, blocks: &BlockGroup<'_>) -> CgRho {
        CgRho { given: blocks.real(rho.given), kept: rho.place.map_or(DeviceSums::NONE, |place| self.sums_at(place)) }
    }
    fn shadow_rho(&self, rho: KeptRho<'_, Complex64>, blocks: &BlockGroup<'_>) -> ShadowRho {
        let kept = rho.place.map_or(DeviceSums::NONE, |place| self.sums_at(place));
        ShadowRho { given: blocks.complex(rho.given), kept }
    }
}

impl KeptSums for FieldSpace {
    type Vector = DeviceField;
    type Error = DeviceError;

    fn cg_residual_kept(
        &self,
        r: &DeviceField,
        t: &mut DeviceField,
        rho: KeptRho<'_, f64>,
        curvature: usize,
        squared: bool,
        to: usize,
    ) -> Result {
        let sums = self.sums_at(curvature);
        let mut parts = PartialSums::new(self.nrhs());
        parts.slot(0, 2);
        self.keep(to, 2, |target| {
            for blocks in self.groups(0..self.nrhs(), MAX_RHS_WITH_NUMBERS) {
                let (rho, first) = (self.rho(rho, &blocks), blocks.first());
                let (r, t) = (blocks.of(r), blocks.of(t));
                let (squared, first_rhs) = (u32::from(squared), first as u32);
                let kernel = CgResidualUpdate { r, t, p: r, shift: 0.0, rho, sums, squared, first: first_rhs };
                blocks.fit()?;
                let call = Call::of_sum(&CG_RESIDUAL_UPDATE, self.format(), &kernel)?;
                let (backend, sites) = (self.domain().backend(), self.domain().half_sites());
                target.reduce(backend, None, call, sites, blocks.count(), 2 * first)?;
            }
            Ok(parts)
        })?;
        Ok(())
    }
    fn cg_step_kept(
        &self,
        step: &CgStep<'_, DeviceField>,
        t: &mut DeviceField,
        place: usize,
        curvature: &mut [Complex64],
        norm2: &mut [f64],
        overlap: [Overlap<'_, DeviceError>; 2],
    ) -> Result {
        self.cg_step(step, (self.sums_at(place), true, step.shift), t, curvature, norm2, overlap)
    }
    fn cg_update_kept(
        &self,
        r: &DeviceField,
        x: &mut DeviceField,
        p: &mut DeviceField,
        rho: KeptRho<'_, f64>,
        next: usize,
    ) -> Result {
        let next = self.sums_at(next);
        self.all(&CG_UPDATE_KEPT, |rhs| CgUpdateKept {
            x: rhs.of(x),
            p: rhs.of(p),
            r: rhs.of(r),
            rho: self.rho(rho, rhs),
            next,
            first: rhs.first() as u32,
        })
    }
    fn bicgstab_half_kept(
        &self,
        v: &DeviceField,
        r: &mut DeviceField,
        rho: KeptRho<'_, Complex64>,
        shadow_v: usize,
    ) -> Result {
        let shadow_v = self.sums_at(shadow_v);
        self.all(&BICGSTAB_HALF_KEPT, |rhs| BicgstabHalfKept {
            r: rhs.of(r),
            v: rhs.of(v),
            rho: self.shadow_rho(rho, rhs),
            shadow_v,
            first: rhs.first() as u32,
        })
    }
    fn bicgstab_step_kept(
        &self,
        v: &DeviceField,
        t: &DeviceField,
        x: &mut DeviceField,
        r: &mut DeviceField,
        p: &mut DeviceField,
        rho: KeptRho<'_, Complex64>,
        places: [usize; 2],
    ) -> Result {
        let [shadow_v, sums] = places.map(|place| self.sums_at(place));
        self.all(&BICGSTAB_STEP_KEPT, |rhs| BicgstabStepKept {
            x: rhs.of(x),
            r: rhs.of(r),
            p: rhs.of(p),
            v: rhs.of(v),
            t: rhs.of(t),
            rho: self.shadow_rho(rho, rhs),
            shadow_v,
            sums,
            first: rhs.first() as u32,
        })
    }
    fn kept_sums(&self, count: usize) -> Result<Vec<f64>> {
        let places = self.kept.get().expect("sums were kept before they are fetched");
        let mut numbers = vec![0.0; count * SUMS_IN_PLACE * self.shape.nrhs];
        self.domain().backend().fetch_numbers(&places.buffer, &mut numbers)?;
        let mut sums = vec![0.0; count * SUMS_IN_PLACE * self.nrhs()];
        for (place, sums) in sums.chunks_exact_mut(SUMS_IN_PLACE * self.nrhs()).enumerate() {
            let Written { width, wanted } = places.written[place].get();
            for (j, sums) in sums.chunks_exact_mut(SUMS_IN_PLACE).enumerate() {
                let numbers = &numbers[self.first_of(place) + j * width..][..width];
                if wanted < width {
                    sums.iter_mut().zip(DOT_AMONG_DOTS).for_each(|(sum, k)| *sum = numbers[k]);
                } else {
                    sums[..width].copy_from_slice(numbers);
                }
            }
        }
        Ok(sums)
    }
}
