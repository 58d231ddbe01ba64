//! Krylov methods as inverters; each owns its memory.

use super::Inverter;
use crate::bicgstab::BicgstabWorkspace;
use crate::block_cg::{BlockCgParams, BlockCgWorkspace};
use crate::block_cgnr::BlockCgNormalWorkspace;
use crate::cg::CgWorkspace;
use crate::cgnr::CgNormalWorkspace;
use crate::error::SolveError;
use crate::gcr::{GcrParams, GcrWorkspace};
use crate::idr::IdrWorkspace;
use crate::info::Info;
use crate::observer::Observer;
use crate::operator::{Precise, System};
use crate::params::SolverParams;
use crate::preconditioner::Preconditioner;
use crate::traits::VectorSpace;

/// A workspace that is allocated at first use, and again if the number of right-hand sides changes.
struct LazyWorkspace<W>(Option<(usize, W)>);

impl<W> LazyWorkspace<W> {
    fn get<Y: System>(
        &mut self,
        system: &Y,
        make: impl FnOnce() -> Result<W, Y::Error>,
    ) -> Result<&mut W, SolveError<Y::Error>> {
        let nrhs = system.precise().nrhs();
        let kept = match self.0.take().filter(|kept| kept.0 == nrhs) {
            Some(kept) => kept,
            None => (nrhs, make()?),
        };
        Ok(&mut self.0.insert(kept).1)
    }
}

/// Defines the inverter for a solver function of this crate, given its name and the conversion of the parameters common to
/// all solvers to those of the function.
macro_rules! krylov {
    ($name:ident, $function:ident, $workspace:ident $(, $(#[$about:meta])* $field:ident: $type:ty)?; $given:expr) => {
        #[doc = concat!("Made by [`", stringify!($function), "()`].")]
        pub struct $name<P: VectorSpace, S: VectorSpace> {
            workspace: LazyWorkspace<$workspace<P, S>>,
            $($field: $type,)?
        }

        #[doc = concat!("[`", stringify!($function), "`](crate::", stringify!($function), "()) with its memory.")]
        $($(#[$about])*)?
        pub fn $function<P: VectorSpace, S: VectorSpace>($($field: $type)?) -> $name<P, S> {
            $name { workspace: LazyWorkspace(None) $(, $field)? }
        }

        impl<P, S, Y> Inverter<Y> for $name<P, S>
        where
            P: VectorSpace,
            S: VectorSpace<Error = P::Error>,
            Y: System<Precise = P, Sloppy = S, Error = P::Error>,
        {
            fn invert(
                &mut self,
                system: &Y,
                b: &Precise<Y>,
                x: &mut Precise<Y>,
                params: &SolverParams,
                observer: &mut dyn Observer,
            ) -> Result<Info, SolveError<Y::Error>> {
                let workspace = self.workspace.get(system, || $workspace::new(system))?;
                crate::$function(system, b, x, &$given(*params $(, self.$field)?), workspace, observer)
            }
        }
    };
}

krylov!(Cg, cg, CgWorkspace; |params| params);
krylov!(Cgnr, cgnr, CgNormalWorkspace; |params| params);
krylov!(Cgne, cgne, CgNormalWorkspace; |params| params);
krylov!(Bicgstab, bicgstab, BicgstabWorkspace; |params| params);
krylov!(
    BlockCg, block_cg, BlockCgWorkspace,
    /// `dependent` is the threshold of dependence, [`BlockCgParams::dependent`].
    dependent: Option<f64>;
    |solver, dependent| BlockCgParams { solver, dependent }
);
krylov!(
    BlockCgnr, block_cgnr, BlockCgNormalWorkspace,
    /// `dependent` is the threshold of dependence, [`BlockCgParams::dependent`].
    dependent: Option<f64>;
    |solver, dependent| BlockCgParams { solver, dependent }
);

/// Inverter that runs IDR(s), the solver [`crate::idr()`]. The function [`idr()`] of this module creates it.
pub struct Idr<P: VectorSpace, S: VectorSpace, F> {
    workspace: LazyWorkspace<IdrWorkspace<P, S>>,
    shadow: F,
}

/// Creates an inverter that runs IDR(s), the solver [`crate::idr()`], and owns its memory. `shadow` returns the s
/// shadow vectors of [`IdrWorkspace::new`] in the sloppy space.
pub fn idr<P: VectorSpace, S: VectorSpace, F: Fn(&S) -> Result<Vec<S::Vector>, S::Error>>(shadow: F) -> Idr<P, S, F> {
    Idr { workspace: LazyWorkspace(None), shadow }
}

impl<P, S, Y, F> Inverter<Y> for Idr<P, S, F>
where
    P: VectorSpace,
    S: VectorSpace<Error = P::Error>,
    Y: System<Precise = P, Sloppy = S, Error = P::Error>,
    F: Fn(&S) -> Result<Vec<S::Vector>, S::Error>,
{
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let make = || IdrWorkspace::new(system, (self.shadow)(system.sloppy())?);
        crate::idr(system, b, x, params, self.workspace.get(system, make)?, observer)
    }
}

/// Inverter that runs GCR, the solver [`crate::gcr()`]. The function [`gcr()`] of this module creates it.
pub struct Gcr<P: VectorSpace, S: VectorSpace, K> {
    workspace: LazyWorkspace<GcrWorkspace<P, S>>,
    k_max: usize,
    preconditioner: K,
}

/// Creates an inverter that runs GCR, the solver [`crate::gcr()`], with restarts after `k_max` directions, and owns its
/// memory.
pub fn gcr<P: VectorSpace, S: VectorSpace, K: Preconditioner<S>>(k_max: usize, preconditioner: K) -> Gcr<P, S, K> {
    Gcr { workspace: LazyWorkspace(None), k_max, preconditioner }
}

impl<P, S, Y, K> Inverter<Y> for Gcr<P, S, K>
where
    P: VectorSpace,
    S: VectorSpace<Error = P::Error>,
    Y: System<Precise = P, Sloppy = S, Error = P::Error>,
    K: Preconditioner<S>,
{
    fn invert(
        &mut self,
        system: &Y,
        b: &Precise<Y>,
        x: &mut Precise<Y>,
        params: &SolverParams,
        observer: &mut dyn Observer,
    ) -> Result<Info, SolveError<Y::Error>> {
        let Self { workspace, k_max, preconditioner } = self;
        let params = GcrParams { k_max: *k_max, ..(*params).into() };
        let workspace = workspace.get(system, || GcrWorkspace::new(system, *k_max))?;
        crate::gcr(system, preconditioner, b, x, &params, workspace, observer)
    }
}
