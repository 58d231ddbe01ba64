//! BiCGstab, multigrid or CG, as [`choice`](super::super::choice) advises.
use super::super::formats::{Formats, MultigridState};
use super::super::request::Request;
use super::{Method, multigrid};
use crate::domain::Result;

impl Method {
    /// BiCGstab, which gives way to multigrid if that is faster, setup included, for all of the [`Request::sources`], and to CG on the
    /// normal equations if it gives up in double precision, is far from the solution after half of the iterations, or multigrid does not
    /// converge.
    pub const AUTO: &'static Method = &Method {
        name: "auto",
        titles: ["BiCGstab, multigrid or CG"; 2],
        help: "bicgstab, then multigrid once that is faster for all sources together, setup included; cg if these fail",
        keys: multigrid::KEYS,
        // Requested aggregates have to fit, even if they may never be needed.
        check: |request, local, grid| match request.multigrid.blocks[0] {
            Some(_) => (Method::MULTIGRID.check)(request, local, grid),
            None => Ok(()),
        },
        // Multigrid takes over only if enough memory is left for it.
        vectors: Method::BICGSTAB.vectors,
        choose: Some(choose),
        prepare: |formats, request, storage, observer| {
            (choose(formats, request)?.prepare)(formats, request, storage, observer)
        },
        ..Method::KRYLOV
    };
}

/// Chooses multigrid if its setup exists already.
fn choose(formats: &dyn Formats, request: &Request) -> Result<&'static Method> {
    let is_ready = formats.multigrid_state(&request.multigrid)? == MultigridState::Ready;
    Ok(if is_ready { Method::MULTIGRID } else { Method::BICGSTAB })
}
