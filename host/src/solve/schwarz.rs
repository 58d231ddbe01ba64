//! Parameters of the Schwarz preconditioner.
use crate::lattice::Lattice;
use comms::ProcessGrid;
use gpu_kernels::Precision;

/// Parameters of the preconditioner of [`Method::GCR_DD`](super::Method::GCR_DD), which takes steps of minimum residual in independent
/// domains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schwarz {
    /// Number of steps of minimum residual in each application.
    pub steps: usize,
    /// Over-relaxation parameter ω.
    pub omega: f64,
    /// Precision of the computation in the domains.
    pub precision: Precision,
    /// Extents of a domain, which must be even and divide the part of each process; with `None`, a domain is the whole part.
    pub domain: Option<[usize; 4]>,
    /// Width, in sites, by which the domain of a process extends into its neighbours' parts in partitioned directions: 0 or 2.
    pub overlap: usize,
    /// Number of directions after which GCR restarts.
    pub k_max: usize,
}

/// Reason why a Schwarz preconditioner cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchwarzError {
    /// No steps, or no directions.
    NoSteps,
    /// Over-relaxation parameter ω that is not between 0 and 2.
    Omega,
    /// Extents of a domain that are odd or do not divide those of a process's part.
    Extents,
    /// Overlap of a width other than 0 or 2 sites.
    Overlap,
    /// Extents given for domains that overlap.
    OverlapWithExtents,
    /// Overlap with a single process, which has no neighbours.
    OverlapAlone,
    /// Parts of processes that are too short to overlap.
    OverlapTooShort,
}

impl SchwarzError {
    /// Returns the reason as a sentence.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoSteps => "GCR-DD needs at least one minimum-residual step and one search direction",
            Self::Omega => "the over-relaxation factor of the minimum-residual steps must be above 0 and below 2",
            Self::Extents => "the extents of a domain must be even and divide those of the local lattice of a process",
            Self::Overlap => "domains must overlap by 0 or 2 sites",
            Self::OverlapWithExtents => {
                "overlapping domains are the local lattices of the processes: remove domain or domain-overlap"
            }
            Self::OverlapAlone => {
                "one process has no neighbours to overlap with: remove domain-overlap, or start several processes"
            }
            Self::OverlapTooShort => {
                "overlapping domains must be at least 4 sites long in partitioned directions: use fewer processes"
            }
        }
    }
}

impl std::fmt::Display for SchwarzError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}
impl std::error::Error for SchwarzError {}

impl Schwarz {
    /// Checks that the domains fit the part of each process in this process grid; the error is the reason if they do not.
    pub fn check(&self, local: Lattice, grid: &ProcessGrid) -> Result<(), SchwarzError> {
        let Schwarz { steps, omega, domain, overlap, k_max, .. } = *self;
        let extents = domain.unwrap_or(local.size());
        let fits = |(&extent, whole): (&usize, usize)| extent > 0 && extent % 2 == 0 && whole % extent == 0;
        let short = |mu: usize| grid.is_partitioned(mu) && local.size()[mu] < 4;
        let refused = [
            (steps == 0 || k_max == 0, SchwarzError::NoSteps),
            (!(omega > 0.0 && omega < 2.0), SchwarzError::Omega),
            (!extents.iter().zip(local.size()).all(fits), SchwarzError::Extents),
            (overlap != 0 && overlap != 2, SchwarzError::Overlap),
            (overlap > 0 && domain.is_some(), SchwarzError::OverlapWithExtents),
            (overlap > 0 && grid.size() == 1, SchwarzError::OverlapAlone),
            (overlap > 0 && (0..4).any(short), SchwarzError::OverlapTooShort),
        ];
        refused.into_iter().find(|(wrong, _)| *wrong).map_or(Ok(()), |(_, why)| Err(why))
    }
    /// Returns the number of sites of one parity in the domain of a process whose part is `local`.
    pub fn domain_sites(&self, local: Lattice, grid: &ProcessGrid) -> usize {
        let margin = |mu: usize| if grid.is_partitioned(mu) { 2 * self.overlap } else { 0 };
        (0..4).map(|mu| local.size()[mu] + margin(mu)).product::<usize>() / 2
    }
}

impl Default for Schwarz {
    fn default() -> Self {
        Schwarz { steps: 10, omega: 1.0, precision: Precision::Half, domain: None, overlap: 0, k_max: 16 }
    }
}
