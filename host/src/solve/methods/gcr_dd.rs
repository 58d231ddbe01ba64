//! GCR with an additive Schwarz preconditioner.
use super::super::formats::AnyPreconditioner;
use super::super::memory::{NeedsScope, widths};
use super::super::report::EscalationError;
use super::super::request::Request;
use super::super::schwarz::Schwarz;
use super::{Limits, Method, OperatorPair, PreparedMethod};
use crate::field::{DeviceField, FieldShape, FieldSpace};
use crate::operators::{Key, KeyKind};
use solvers::inverter::{Inverter, gcr};
use solvers::{Converted, Info, Observer, SolveError};

impl Method {
    /// GCR on the Schur complement with an additive Schwarz preconditioner (Babich et al. 2011, Algorithm 1).
    pub const GCR_DD: &'static Method = &Method {
        name: "gcr-dd",
        titles: ["GCR-DD"; 2],
        help: "GCR with a Schwarz preconditioner on independent domains",
        keys: &[&MR_STEPS, &MR_OMEGA, &DOMAIN_PRECISION, &DOMAIN, &DOMAIN_OVERLAP, &KMAX],
        heading: Some("GCR-DD"),
        restarts: true,
        check: |request, local, grid| Ok(request.schwarz.check(local, grid)?),
        vectors: |request| 2 * request.schwarz.k_max + 2,
        needs: |request, scope| vec![("preconditioner", bytes(request, scope))],
        exchanges: |request, all, _, _, nrhs| match request.schwarz.overlap {
            0 => all,
            overlap => {
                let bytes = FieldShape::spinors(request.schwarz.precision, 1).site_bytes();
                all.ghost_zone(overlap as u32, bytes, &widths(nrhs))
            }
        },
        prepare: |formats, request, storage, _| {
            let Some(inner) = formats.preconditioner(&request.schwarz, storage)? else {
                return Err(SolveError::Invalid(
                    "GCR with the Schwarz preconditioner applies to Wilson-like operators only: choose another method",
                ));
            };
            Ok(Box::new(SchwarzPreconditioned { schwarz: request.schwarz, inner }))
        },
        ..Method::KRYLOV
    };
}

static MR_STEPS: Key =
    Key::new("mr-steps", "N", KeyKind::Count, "Number of minimum-residual steps in each domain [default: 10]", "10");
static MR_OMEGA: Key = Key::new(
    "mr-omega",
    "OMEGA",
    KeyKind::Number,
    "Over-relaxation factor of the minimum-residual steps [default: 1]",
    "1.0",
);
static DOMAIN_PRECISION: Key = Key::new(
    "domain-precision",
    "NAME",
    KeyKind::Word,
    "Precision of the preconditioner: double, single, half or fp16 [default: half]",
    "\"half\"",
);
static DOMAIN: Key = Key::new(
    "domain",
    "X,Y,Z,T",
    KeyKind::Extents,
    "Extents of a domain: even divisors of the extents of the local lattice [default: the whole local lattice]",
    "[8, 8, 8, 8]",
);
static DOMAIN_OVERLAP: Key = Key::new(
    "domain-overlap",
    "N",
    KeyKind::Count,
    "Number of sites by which a domain extends into the local lattices of neighbouring processes: 0 or 2; 2 is \
     possible only if --domain is not given [default: 0]",
    "0",
);
static KMAX: Key =
    Key::new("kmax", "K", KeyKind::Count, "Number of search directions after which GCR restarts [default: 16]", "16");

/// Returns the bytes of the preconditioner: its residual and image, the vectors of its operator, links and diagonal term, and the vectors
/// of overlapping domains.
fn bytes(request: &Request, scope: &NeedsScope<'_>) -> usize {
    let (operator, precision) = (&request.operator, request.schwarz.precision);
    let sites = request.schwarz.domain_sites(scope.local, scope.grid);
    let overlapping = if request.schwarz.overlap > 0 { 2 } else { 0 };
    let vector = operator.shape(precision, scope.nrhs).bytes(sites);
    (4 + operator.kept_fields() + overlapping) * vector
        + operator.link_bytes(precision, request.reconstruction, sites)
        + operator.diagonal_bytes(precision, sites)
}

struct SchwarzPreconditioned {
    schwarz: Schwarz,
    inner: AnyPreconditioner,
}

impl PreparedMethod for SchwarzPreconditioned {
    fn iterate(
        &self,
        pair: &OperatorPair,
        rhs: &DeviceField,
        x: &mut DeviceField,
        limits: &Limits<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Info, EscalationError> {
        let outer = &pair.outer_space;
        let space = FieldSpace::new(outer.domain(), FieldShape::new(outer.kind(), self.schwarz.precision, rhs.nrhs()));
        let converted = Converted::new(&space, &*self.inner).map_err(SolveError::Backend)?;
        let params = limits.restarting_params(None)?;
        gcr(self.schwarz.k_max, converted).invert(&pair.mixed(), rhs, x, &params, observer)
    }
}
