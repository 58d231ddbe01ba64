//! Errors of work on a domain.
use crate::backend::{BackendError, MAX_RHS_PER_LAUNCH, in_this_build};
use crate::lattice::{Lattice, LatticeError};
use comms::{CommError, GridError};
use gpu_kernels::{Format, LinkStorage, Precision};

/// Reason why fields could not be made, moved or computed with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Failure of the device.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// Failure of the communication with other processes.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Extents that are not those of a lattice.
    #[error(transparent)]
    Lattice(#[from] LatticeError),
    /// A process grid that does not fit the lattice.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A field on another lattice than that of the domain.
    #[error("{what} is on a lattice of {found}, but must be on one of {expected}")]
    OtherLattice {
        /// Name of the field.
        what: &'static str,
        /// Lattice of the field.
        found: Lattice,
        /// This process's part of the domain's lattice.
        expected: Lattice,
    },
    /// A field in the memory of another backend, which may be another GPU and has an order of work of its own.
    #[error("{what} is on {found}, but the domain uses another backend, on {expected}")]
    OtherDevice {
        /// Name of the field.
        what: &'static str,
        /// Device of the field's backend.
        found: String,
        /// Device of the domain's backend.
        expected: String,
    },
    /// A number of fields that differs from the number of right-hand sides.
    #[error("{found} fields for {expected} right-hand sides")]
    OtherCount {
        /// Number of fields given.
        found: usize,
        /// Number of right-hand sides.
        expected: usize,
    },
    /// A field with another extent of the fifth dimension than that of the others.
    #[error("a field has L_s = {found}, but must have L_s = {expected}")]
    OtherExtent {
        /// L_s of this field.
        found: usize,
        /// L_s of the other fields.
        expected: usize,
    },
    /// A field in another format than that of the others.
    #[error("a field has format '{found}', but must have '{expected}'")]
    OtherFormat {
        /// Format of this field.
        found: Format,
        /// Format of the other fields.
        expected: Format,
    },
    /// More sites than a device can count.
    #[error(
        "a local lattice of {local} and its border have more than {MOST_LOCAL_SITES} sites, the maximum for one \
         device: divide the lattice among more processes"
    )]
    PartTooLarge {
        /// This process's part.
        local: Lattice,
    },
    /// A format for which no kernels of an operator are compiled.
    #[error(
        "no kernels exist for the {operator} operator in {precision} with links of {reconstruction} reals{}",
        if features.is_empty() { String::new() } else { format!("; {}", in_this_build(formats, features)) }
    )]
    NoKernels {
        /// Name of the fermion operator.
        operator: &'static str,
        /// Precision of the fields.
        precision: Precision,
        /// Storage of the links.
        reconstruction: LinkStorage,
        /// Formats for which kernels of the operator are compiled.
        formats: Vec<String>,
        /// Cargo features that enable this format; empty if no build provides it.
        features: Vec<&'static str>,
    },
    /// A clover term of another mass or anisotropy than those of its operator.
    #[error(
        "the clover term was made for a diagonal of {found}, but mass and anisotropy of the operator give {expected}"
    )]
    OtherTerm {
        /// Diagonal with which the term was made.
        found: f64,
        /// Diagonal that follows from the operator's parameters.
        expected: f64,
    },
    /// An operator on the links of a configuration where only its fat and long links are present.
    #[error(
        "only fat and long links are present: Wilson-like and naive staggered operators need the links of a \
         configuration"
    )]
    NoThinLinks,
    /// A tadpole factor that has to be computed from an unknown plaquette.
    #[error("the tadpole factor needs the mean plaquette, which is not known here: give a number")]
    NoTadpole,
    /// Fat links of HISQ's first level without a projection to U(3).
    #[error(
        "fat links of the first level cannot be projected to U(3): they are singular or not numbers (mean violation of \
         unitarity after projection {violation:.1e}); check the configuration with `ferrite verify`"
    )]
    SingularLinks {
        /// Root mean square of ‖W†W − 1‖.
        violation: f64,
    },
    /// Sums of links and staples without a projection to SU(3).
    #[error(
        "sums of links and staples cannot be projected to SU(3): they are singular or not numbers (mean violation of \
         unitarity after projection {violation:.1e}); check the configuration with `ferrite verify`, or give staples \
         less weight"
    )]
    SingularSums {
        /// Root mean square of ‖W†W − 1‖.
        violation: f64,
    },
    /// A path to links that this process does not have.
    #[error("a path reaches {reach} sites along axis {axis}, but the border has {border} sites")]
    PathTooLong {
        /// Axis: 0 to 3 for x to t.
        axis: usize,
        /// Steps from the site where the path begins.
        reach: usize,
        /// Sites outside this process's part whose links are known.
        border: usize,
    },
    /// The Hermitian conjugate of a coarse operator of multigrid.
    #[error("the Hermitian conjugate of coarse multigrid operators is not available: choose the solver GCR")]
    NoDagger,
    /// No right-hand sides, or more than can be computed together.
    #[error("{0} right-hand sides: at most {MAX_RHS_PER_LAUNCH} can be processed together, and at least 1")]
    RightHandSides(usize),
}

/// Largest number of sites of the part of a lattice that one device holds, with its border: kernels count them in 32 bits.
pub const MOST_LOCAL_SITES: usize = (1 << 31) - 1;

/// A result of work on a device.
pub type Result<T = ()> = std::result::Result<T, DeviceError>;
