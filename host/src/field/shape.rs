//! Shape of fermion fields on a device.
use gpu_kernels::storage::padded;
use gpu_kernels::{FermionKind, Format, Precision};

/// Shape of a fermion field on the sites of one parity.
///
/// With a fifth dimension of extent L_s, each right-hand side consists of L_s blocks, which are four-dimensional fields. Block j L_s + s is
/// slice s of right-hand side j. Sums are over all L_s blocks of a right-hand side, and a coefficient of a right-hand side applies to all
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldShape {
    /// Fermion type, which determines how many numbers a site of a block has.
    pub kind: FermionKind,
    /// Extent L_s of the fifth dimension; 1 for four-dimensional fields.
    pub ls: usize,
    /// Precision of the stored numbers.
    pub precision: Precision,
    /// Number of right-hand sides.
    pub nrhs: usize,
}

/// All fermion types: Wilson and staggered.
pub const FERMION_KINDS: [FermionKind; 2] = [FermionKind::Wilson, FermionKind::Staggered];

impl FieldShape {
    /// Returns the shape of four-dimensional fields of a fermion type.
    pub const fn new(kind: FermionKind, precision: Precision, nrhs: usize) -> Self {
        FieldShape { kind, ls: 1, precision, nrhs }
    }
    /// Returns the shape of four-dimensional fields with four spins and three colours.
    pub const fn spinors(precision: Precision, nrhs: usize) -> Self {
        Self::new(FermionKind::Wilson, precision, nrhs)
    }
    /// Returns the shape of four-dimensional fields with three colours.
    pub const fn colours(precision: Precision, nrhs: usize) -> Self {
        Self::new(FermionKind::Staggered, precision, nrhs)
    }
    /// Returns this shape with another extent L_s of the fifth dimension.
    #[must_use]
    pub const fn with_ls(self, ls: usize) -> Self {
        FieldShape { ls, ..self }
    }
    /// Returns this shape with another precision.
    #[must_use]
    pub const fn with_precision(self, precision: Precision) -> Self {
        FieldShape { precision, ..self }
    }
    /// Returns this shape with another number of right-hand sides.
    #[must_use]
    pub const fn with_nrhs(self, nrhs: usize) -> Self {
        FieldShape { nrhs, ..self }
    }
    /// Returns the number of four-dimensional blocks: L_s for each right-hand side.
    pub const fn blocks(self) -> usize {
        self.ls * self.nrhs
    }
    /// Returns the number of complex numbers on a site of a block.
    pub const fn components(self) -> usize {
        3 * self.kind.spins()
    }
    /// Returns the number of bytes of a site of a block.
    pub const fn site_bytes(self) -> usize {
        self.kind.site_bytes(self.precision)
    }
    /// Returns the number of bytes of a field on `sites` sites, all blocks included.
    pub fn bytes(self, sites: usize) -> usize {
        padded(sites) * self.site_bytes() * self.blocks()
    }
    /// Whether the field has colour vectors, as staggered fermions do.
    pub(crate) fn is_colours(self) -> bool {
        self.kind == FermionKind::Staggered
    }
    /// Returns the format of kernels for fields of this shape.
    pub(crate) fn format(self) -> Format {
        Format::fermions(self.kind, self.precision)
    }
}
