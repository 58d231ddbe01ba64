//! Launches of products with Wilson operators. The kernel for whole lattices computes the interior. On a partitioned lattice, another
//! kernel of this kind, which also reads ghost zones, computes the exterior.
use super::diagonal::DiagonalKernels;
use super::wilson::Wilson;
use crate::backend::{Call, view};
use crate::domain::Result;
use crate::domain::{PartialSums, SumTarget};
use crate::field::{DeviceField, FieldShape, FullField};
use crate::halo::{ExteriorPart, Hop, hop};
use gpu_kernels::Instances;
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::exterior::{WILSON_EXTERIOR, WILSON_EXTERIOR_DOTS};
use gpu_kernels::field::Field;
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::lattice::Region;
use gpu_kernels::wilson::{Hopping, WILSON_DSLASH, WilsonDslash};

/// Arguments of a product: D ψ, a x + b D ψ, A⁻¹ D ψ, x + b A⁻¹ D ψ or A x + b D ψ, where A is the term in `diagonal`.
pub(super) struct WilsonHop<'a> {
    /// Parity of the sites of the result.
    pub parity: usize,
    /// Whether to apply D† instead of D.
    pub dagger: bool,
    /// Input ψ, on the other parity.
    pub input: &'a DeviceField,
    /// Result of the product.
    pub out: &'a DeviceField,
    /// Field x of the product; `None` for the products D ψ and A⁻¹ D ψ.
    pub x: Option<&'a DeviceField>,
    /// Factor of the hopping term, if the product has x.
    pub b: f64,
    /// Kernel arguments of a, A or A⁻¹.
    pub diagonal: DiagonalArguments,
    /// Kernel for sites whose neighbours are all on this device.
    pub interior: &'static Instances<WilsonDslash>,
}

/// Sums that are computed with a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DslashSums {
    /// Sums (w, y) and ‖y‖².
    Dot,
    /// Sums of BiCGstab's second half step.
    Dots,
}

impl<'a> WilsonHop<'a> {
    /// Returns the arguments of the product `out` = D ψ, or D† ψ if `dagger` is set.
    pub fn hops(parity: usize, dagger: bool, input: &'a DeviceField, out: &'a DeviceField) -> Self {
        let (diagonal, interior) = (DiagonalArguments::mass(1.0), &WILSON_DSLASH);
        WilsonHop { parity, dagger, input, out, x: None, b: 1.0, diagonal, interior }
    }
    /// Returns the arguments of the product `out` = a x + b D ψ, with D† instead of D if `dagger` is set.
    pub fn sum(
        parity: usize,
        dagger: bool,
        (a, x): (f64, &'a DeviceField),
        (b, input): (f64, &'a DeviceField),
        out: &'a DeviceField,
    ) -> Self {
        WilsonHop { x: Some(x), b, diagonal: DiagonalArguments::mass(a), ..Self::hops(parity, dagger, input, out) }
    }
    /// Returns all fields of the product.
    fn fields(&self) -> [&'a DeviceField; 3] {
        [self.input, self.out, self.x.unwrap_or(self.out)]
    }
    /// Returns the kernel's arguments, with w and for the sites of a region.
    fn arguments(&self, wilson: &Wilson, w: Field, region: Region, ghosts: Ghosts) -> WilsonDslash {
        WilsonDslash {
            out: self.out.view(),
            x: self.x.unwrap_or(self.out).view(),
            w,
            sum: u32::from(self.x.is_some()),
            dagger: u32::from(self.dagger),
            b: self.b.into(),
            diagonal: self.diagonal,
            hopping: Hopping { region, ..wilson.hopping(self.input, self.parity) },
            ghosts,
        }
    }
}

impl Wilson {
    /// Computes `out` = D ψ, or D† ψ if `dagger` is set, on the sites of `parity`. `input` is ψ on the other parity.
    pub fn dslash(&self, parity: usize, dagger: bool, input: &DeviceField, out: &mut DeviceField) -> Result {
        self.launch(&WilsonHop::hops(parity, dagger, input, out))
    }
    /// Computes `out` = a x + b D ψ on the sites of `parity`, with D† instead of D if `dagger` is set. `x` is on `parity`, and `input` is ψ
    /// on the other parity.
    #[allow(clippy::too_many_arguments)]
    pub fn dslash_add(
        &self,
        parity: usize,
        dagger: bool,
        ax: (f64, &DeviceField),
        by: (f64, &DeviceField),
        out: &mut DeviceField,
    ) -> Result {
        self.launch(&WilsonHop::sum(parity, dagger, ax, by, out))
    }
    /// Computes `out` = M ψ, or M† ψ if `dagger` is set, on all sites.
    pub fn full(&self, dagger: bool, psi: &FullField, out: &mut FullField) -> Result {
        let (diagonal, hop) = (self.params().diagonal(), self.params().hop());
        for parity in 0..2 {
            let (x, input) = (psi.parity(parity), psi.parity(1 - parity));
            self.dslash_add(parity, dagger, (diagonal, x), (-hop, input), out.parity_mut(parity))?;
        }
        Ok(())
    }
    /// Computes a product.
    pub(super) fn launch(&self, product: &WilsonHop<'_>) -> Result {
        let (backend, format, shape) = (self.domain().backend(), self.format(), self.shape_of(product));
        self.expect(&product.fields(), shape)?;
        let blocks = shape.blocks() as u32;
        let interior = product.interior;
        hop(
            product.input,
            self.hop_of(product),
            &mut |region, sites| {
                let arguments = product.arguments(self, view::NO_FIELD, region, Ghosts::NONE);
                Ok(backend.launch(interior, format, &arguments, sites, blocks)?)
            },
            &mut |ExteriorPart { region, sites, ghosts, stream, .. }| {
                let arguments = product.arguments(self, view::NO_FIELD, region, ghosts);
                Ok(backend.run(stream, Call::of(&WILSON_EXTERIOR, format, &arguments)?, sites, blocks)?)
            },
        )
    }
    /// Computes a product with x and sums that are to be collected, on four-dimensional fields and with D, not D†. The product has A⁻¹ if A
    /// is more than a number.
    pub(super) fn launch_sums(
        &self,
        product: &WilsonHop<'_>,
        kernels: &DiagonalKernels,
        (which, w): (DslashSums, &DeviceField),
        target: SumTarget<'_>,
    ) -> Result<PartialSums> {
        debug_assert!(product.x.is_some() && !product.dagger, "sums come with x and D only");
        let (backend, nrhs, format) = (self.domain().backend(), self.shape_of(product).nrhs, self.format());
        let shape = FieldShape::spinors(self.precision(), nrhs);
        self.expect(&product.fields(), shape)?;
        self.expect(&[w], shape)?;
        let (interior, values) = match which {
            DslashSums::Dot => kernels.dot.map_or((kernels.dots, 8), |dot| (dot, 3)),
            DslashSums::Dots => (kernels.dots, 8),
        };
        let sums = std::cell::RefCell::new(PartialSums::new(nrhs));
        hop(
            product.input,
            self.hop_of(product),
            &mut |region, sites| {
                let slot = sums.borrow_mut().slot(0, values);
                let arguments = product.arguments(self, w.view(), region, Ghosts::NONE);
                target.reduce(backend, None, Call::of_sum(interior, format, &arguments)?, sites, nrhs as u32, slot)
            },
            &mut |ExteriorPart { part, region, sites, ghosts, stream }| {
                let slot = sums.borrow_mut().slot(part, 8);
                let arguments = product.arguments(self, w.view(), region, ghosts);
                let call = Call::of_sum(&WILSON_EXTERIOR_DOTS, format, &arguments)?;
                target.reduce(backend, stream, call, sites, nrhs as u32, slot)
            },
        )?;
        Ok(sums.into_inner())
    }
    fn hop_of(&self, product: &WilsonHop<'_>) -> Hop {
        Hop {
            steps: 1,
            parity: product.parity,
            dagger: product.dagger,
            boundary: self.boundary(),
            blocks: self.shape_of(product).blocks(),
        }
    }
    /// Returns the shape of the fields of a product, with the right-hand sides for which it is computed.
    fn shape_of(&self, product: &WilsonHop<'_>) -> FieldShape {
        let nrhs = self.nrhs().of(product.input.nrhs());
        FieldShape::spinors(self.precision(), nrhs).with_ls(product.input.shape().ls)
    }
}
