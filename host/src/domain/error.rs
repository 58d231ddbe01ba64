//! Errors of fields and operators on a domain.
use crate::backend::{BackendError, MAX_RHS_PER_LAUNCH, in_this_build};
use crate::lattice::{Lattice, LatticeError};
use comms::{CommError, GridError};
use gpu_kernels::{Format, LinkStorage, Precision};

/// Reason why an operation on fields failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The communication with other processes failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Numbers are not the extents of a lattice.
    #[error(transparent)]
    Lattice(#[from] LatticeError),
    /// The process grid does not fit the lattice.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A field is on another lattice than the domain.
    #[error("{what} is on a lattice of {found}, but must be on one of {expected}")]
    OtherLattice {
        /// Name of the field.
        what: &'static str,
        /// Lattice of the field on this process.
        found: Lattice,
        /// Lattice of the domain on this process.
        expected: Lattice,
    },
    /// A field is in the memory of another backend, which may be another GPU.
    #[error("{what} is on {found}, but the domain uses another backend, on {expected}")]
    OtherDevice {
        /// Name of the field.
        what: &'static str,
        /// Device of the field's backend.
        found: String,
        /// Device of the domain's backend.
        expected: String,
    },
    /// The number of fields differs from the number of right-hand sides.
    #[error("the number of fields is {found}, but the number of right-hand sides is {expected}")]
    OtherCount {
        /// Number of fields given.
        found: usize,
        /// Number of right-hand sides.
        expected: usize,
    },
    /// A field has another extent of the fifth dimension than the others.
    #[error("a field has L_s = {found}, but must have L_s = {expected}")]
    OtherExtent {
        /// L_s of the field.
        found: usize,
        /// L_s of the other fields.
        expected: usize,
    },
    /// A field is in another format than the others.
    #[error("a field has format '{found}', but must have '{expected}'")]
    OtherFormat {
        /// Format of the field.
        found: Format,
        /// Format of the other fields.
        expected: Format,
    },
    /// The local lattice has more sites than a device can count.
    #[error(
        "a local lattice of {local} and its border have more than {MOST_LOCAL_SITES} sites, the maximum for one \
         device: divide the lattice among more processes"
    )]
    PartTooLarge {
        /// Local lattice of this process.
        local: Lattice,
    },
    /// The operator has no kernels in the requested format.
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
    /// A clover term was made for another mass or anisotropy than those of the operator.
    #[error(
        "the clover term was made for a diagonal of {found}, but mass and anisotropy of the operator give {expected}"
    )]
    OtherTerm {
        /// Diagonal for which the term was made.
        found: f64,
        /// Diagonal that the operator's mass and anisotropy give.
        expected: f64,
    },
    /// An operator needs the links of a configuration, but only fat and long links are present.
    #[error(
        "only fat and long links are present: Wilson-like and naive staggered operators need the links of a \
         configuration"
    )]
    NoThinLinks,
    /// A clover term was supplied where one made from the links is needed.
    #[error(
        "{what}: not possible with a clover term that the caller supplies, because this needs a term made from the links"
    )]
    GivenTerm {
        /// Name of the part that needs a term made from the links.
        what: &'static str,
    },
    /// A tadpole factor was requested from the mean plaquette, which is unknown.
    #[error("the tadpole factor needs the mean plaquette, which is not known here: give a number")]
    NoTadpole,
    /// Fat links of the first level of HISQ cannot be projected to U(3).
    #[error(
        "fat links of the first level cannot be projected to U(3): they are singular or not numbers (mean violation of \
         unitarity after projection {violation:.1e}); check the configuration with `ferrite verify`"
    )]
    SingularLinks {
        /// Root mean square of ‖W†W − 1‖ after the projection.
        violation: f64,
    },
    /// Sums of links and staples cannot be projected to SU(3).
    #[error(
        "sums of links and staples cannot be projected to SU(3): they are singular or not numbers (mean violation of \
         unitarity after projection {violation:.1e}); check the configuration with `ferrite verify`, or give staples \
         less weight"
    )]
    SingularSums {
        /// Root mean square of ‖W†W − 1‖ after the projection.
        violation: f64,
    },
    /// A path of links leaves the border of this process's part.
    #[error("a path reaches {reach} sites along axis {axis}, but the border has {border} sites")]
    PathTooLong {
        /// Axis: 0 to 3 for x to t.
        axis: usize,
        /// Largest number of steps of the path along the axis.
        reach: usize,
        /// Number of sites of the border along the axis.
        border: usize,
    },
    /// The Hermitian conjugate of a coarse multigrid operator was requested, which does not exist.
    #[error("the Hermitian conjugate of coarse multigrid operators is not available: choose the solver GCR")]
    NoDagger,
    /// The number of right-hand sides is 0, or larger than can be processed together; the value is the number.
    #[error("{0} right-hand sides: at most {MAX_RHS_PER_LAUNCH} can be processed together, and at least 1")]
    RightHandSides(usize),
}

/// Largest number of sites that one device can hold, including the border. Kernels count sites in 32 bits.
pub const MOST_LOCAL_SITES: usize = (1 << 31) - 1;

/// Result of an operation on a device.
pub type Result<T = ()> = std::result::Result<T, DeviceError>;
