//! Method that chooses BiCGstab, multigrid or CG, as [`choice`](super::super::choice) advises.
use super::super::formats::{Formats, MultigridState};
use super::super::request::Request;
use super::{Method, multigrid};
use crate::domain::Result;

impl Method {
    /// BiCGstab, which gives way to other methods. Multigrid takes over if it is faster for all of the [`Request::sources`], setup
    /// included. CG on the normal equations takes over if a trial shows that it is faster than both, if BiCGstab gives up in double
    /// precision or is far from the solution after half of the allowed iterations, or if multigrid does not converge.
    pub const AUTO: &'static Method = &Method {
        name: "auto",
        titles: ["BiCGstab, multigrid or CG"; 2],
        help: "bicgstab, then multigrid once multigrid with its setup is faster for all sources together; cg if it is \
               faster than both or if both fail",
        keys: multigrid::KEYS,
        // If the request sets the extents of aggregates, they must fit the lattice even if multigrid is never used.
        check: |request, local, grid| match request.multigrid.blocks[0] {
            Some(_) => (Method::MULTIGRID.check)(request, local, grid),
            None => Ok(()),
        },
        // Memory is counted for BiCGstab only, because multigrid takes over only if enough memory is left.
        vectors: Method::BICGSTAB.vectors,
        choose: Some(choose),
        prepare: |formats, request, storage, observer| {
            (choose(formats, request)?.prepare)(formats, request, storage, observer)
        },
        ..Method::KRYLOV
    };
}

/// Returns multigrid if its setup exists already, otherwise BiCGstab.
fn choose(formats: &dyn Formats, request: &Request) -> Result<&'static Method> {
    let is_ready = formats.multigrid_state(&request.multigrid)? == MultigridState::Ready;
    Ok(if is_ready { Method::MULTIGRID } else { Method::BICGSTAB })
}
