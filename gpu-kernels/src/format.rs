//! Formats as values, for code that does not compute with numbers: [`Format`] is the format of a compiled kernel, and
//! [`KernelFormat`] derives it from the types in a kernel's source.
use crate::storage::{
    CloverFormat, Double, Element, Fp16, Half, LinkFormat, NumberFormat, Reconstruct, Single, SiteKind, Sites, fine,
};
use core::fmt;

/// Storage format of the numbers of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// 64-bit floating point.
    #[default]
    Double,
    /// 32-bit floating point.
    Single,
    /// 16-bit fixed point with a norm for each site.
    Half,
    /// 16-bit floating point.
    Fp16,
}

impl Precision {
    /// All precisions, the most precise first.
    pub const ALL: [Precision; 4] = [Precision::Double, Precision::Single, Precision::Half, Precision::Fp16];
    /// Returns the name: `double`, `single`, `half` or `fp16`.
    pub const fn name(self) -> &'static str {
        match self {
            Precision::Double => "double",
            Precision::Single => "single",
            Precision::Half => "half",
            Precision::Fp16 => "fp16",
        }
    }
    /// Returns the number of bytes of the clover term of a site.
    pub const fn clover_bytes(self) -> usize {
        match self {
            Precision::Double => Double::CLOVER_BYTES,
            Precision::Single => Single::CLOVER_BYTES,
            Precision::Half => Half::CLOVER_BYTES,
            Precision::Fp16 => Fp16::CLOVER_BYTES,
        }
    }
    /// Returns the number of bytes of a half spinor, the projection of a spinor.
    pub const fn half_spinor_bytes(self) -> usize {
        match self {
            Precision::Double => Double::HALF_SPINOR_BYTES,
            Precision::Single => Single::HALF_SPINOR_BYTES,
            Precision::Half => Half::HALF_SPINOR_BYTES,
            Precision::Fp16 => Fp16::HALF_SPINOR_BYTES,
        }
    }
    /// Returns whether the range of the format is limited, so that numbers that occur in fields can overflow or
    /// underflow.
    pub const fn has_range(self) -> bool {
        matches!(self, Precision::Fp16)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Storage format of links, for fields of a given precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(C)]
pub struct LinkStorage {
    /// Real numbers per link: 18, 13, 12, 9 or 8.
    pub reals: u8,
    /// Whether the links are in temporal gauge, where temporal links are 1 except across the boundary.
    pub temporal: bool,
    /// Whether links are in half precision although fields are in single precision.
    pub half: bool,
    /// Whether fat links have 21 bits, beside long links in half precision.
    pub fine: bool,
}

impl LinkStorage {
    /// Storage of all 18 real numbers of each link, in the precision of the fields.
    pub const FULL: LinkStorage = Self::of(18);
    /// Returns the storage with `reals` real numbers per link, in the precision of the fields.
    pub const fn of(reals: u8) -> Self {
        LinkStorage { reals, temporal: false, half: false, fine: false }
    }
    /// Returns this storage for links in temporal gauge.
    #[must_use]
    pub const fn in_temporal_gauge(self) -> Self {
        LinkStorage { temporal: true, ..self }
    }
    /// Returns this storage in half precision.
    #[must_use]
    pub const fn in_half(self) -> Self {
        self.half(true)
    }
    /// Returns this storage in half precision if `half` is true and the gauge is not temporal; otherwise returns it in
    /// the precision of the fields.
    #[must_use]
    pub const fn half(self, half: bool) -> Self {
        LinkStorage { half: half && !self.temporal, fine: self.fine && half, ..self }
    }
    /// Returns this storage in half precision beside fat links of 21 bits, unless the gauge is temporal. Long links of fewer
    /// than 18 reals then keep the phase of the determinant, also in SU(3), which halves the number of kernels.
    #[must_use]
    pub const fn in_fine(self) -> Self {
        LinkStorage { fine: !self.temporal, ..self.in_half().with_phase() }
    }
    /// Returns the name, for example `18`, `8t` for temporal gauge, `12h` for half precision, or `13f` beside fat links of 21
    /// bits.
    pub const fn name(self) -> &'static str {
        match (self.reals, self.temporal, self.half) {
            (18, false, true) if self.fine => "18f",
            (13, false, true) if self.fine => "13f",
            (9, false, true) if self.fine => "9f",
            (18, false, false) => "18",
            (13, false, false) => "13",
            (12, false, false) => "12",
            (9, false, false) => "9",
            (8, false, false) => "8",
            (18, false, true) => "18h",
            (13, false, true) => "13h",
            (12, false, true) => "12h",
            (9, false, true) => "9h",
            (8, false, true) => "8h",
            (12, true, _) => "12t",
            (8, true, _) => "8t",
            _ => "unknown",
        }
    }
    /// Returns whether the phase of the determinant is stored, as links in U(3) need it.
    pub const fn keeps_phase(self) -> bool {
        self.reals % 2 == 1
    }
    /// Returns this storage with the phase of the determinant in addition to 12 or 8 reals, for links in U(3).
    #[must_use]
    pub const fn with_phase(self) -> Self {
        match (self.reals, self.temporal) {
            (12 | 8, false) => LinkStorage { reals: self.reals + 1, ..self },
            _ => self,
        }
    }
    /// Returns this storage with all 18 reals per link, and not in temporal gauge.
    #[must_use]
    pub const fn with_all_reals(self) -> Self {
        LinkStorage { reals: 18, temporal: false, ..self }
    }
    /// Returns this storage with 12 or 13 reals per link if it has 8 or 9, with which some links cannot be represented.
    #[must_use]
    pub const fn with_two_rows(self) -> Self {
        match self.reals {
            8 | 9 => LinkStorage { reals: self.reals + 4, ..self },
            _ => self,
        }
    }
    /// Returns this storage with 8 or 9 reals per link if it has 12 or 13.
    #[must_use]
    pub const fn with_row_and_column(self) -> Self {
        match self.reals {
            12 | 13 => LinkStorage { reals: self.reals - 4, ..self },
            _ => self,
        }
    }
    /// Returns whether this storage cannot represent the links whose first row is (a, 0, 0).
    pub const fn has_singular_links(self) -> bool {
        self.reals == 8 || self.reals == 9
    }
    /// Returns the number of bytes of the eight links around a site, for fields of the given precision.
    pub const fn site_bytes(self, precision: Precision) -> usize {
        4 * self.pair_bytes(precision)
    }
    /// Returns the number of bytes of links that a hopping term reads at a site away from the boundary in t, for fields
    /// of the given precision.
    pub const fn read_bytes(self, precision: Precision) -> usize {
        let directions = if self.temporal { 3 } else { 4 };
        directions * self.pair_bytes(precision)
    }
    /// Returns the number of bytes of the two links of a direction. An odd number of reals is stored as complex numbers and a
    /// phase; the phases of the two links share a complex number. With all reals, these are links of 21 bits if `fine` is set.
    const fn pair_bytes(self, precision: Precision) -> usize {
        if self.fine && self.reals == 18 {
            return fine::PAIR_BYTES;
        }
        let complex = match precision {
            Precision::Double => 16,
            Precision::Single if self.half => 4,
            Precision::Single => 8,
            Precision::Half | Precision::Fp16 => 4,
        };
        complex * self.reals as usize
    }
}

/// The default storage has 12 real numbers per link.
impl Default for LinkStorage {
    fn default() -> Self {
        Self::of(12)
    }
}

impl fmt::Display for LinkStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kind of a fermion field: degrees of freedom on a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FermionKind {
    /// Four spins of three colours.
    Wilson,
    /// Three colours.
    Staggered,
}

impl FermionKind {
    /// Returns the number of spins on a site.
    pub const fn spins(self) -> usize {
        match self {
            FermionKind::Wilson => 4,
            FermionKind::Staggered => 1,
        }
    }
    /// Returns the number of bytes of a site in the given precision.
    pub const fn site_bytes(self, precision: Precision) -> usize {
        const fn bytes<P: NumberFormat>(kind: FermionKind) -> usize {
            match kind {
                FermionKind::Wilson => P::SPINOR_BYTES,
                FermionKind::Staggered => P::COLOUR_BYTES,
            }
        }
        match precision {
            Precision::Double => bytes::<Double>(self),
            Precision::Single => bytes::<Single>(self),
            Precision::Half => bytes::<Half>(self),
            Precision::Fp16 => bytes::<Fp16>(self),
        }
    }
    /// Returns the word for the kind in names of kernels: `spinor` or `colour`.
    pub const fn name(self) -> &'static str {
        match self {
            FermionKind::Wilson => "spinor",
            FermionKind::Staggered => "colour",
        }
    }
}

impl fmt::Display for FermionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Format of an instance of a kernel: the properties of its fields for which the instance is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Format {
    /// Kind of the fermion fields.
    pub kind: Option<FermionKind>,
    /// Precision of the fields, or of the input if input and output may differ.
    pub precision: Option<Precision>,
    /// Precision of the output, if it may differ from the precision of the input.
    pub to: Option<Precision>,
    /// Storage of the links.
    pub links: Option<LinkStorage>,
}

impl Format {
    /// Format of kernels that have a single instance.
    pub const NONE: Format = Format { kind: None, precision: None, to: None, links: None };
    /// Returns the format of kernels for fields of one precision.
    pub const fn of(precision: Precision) -> Self {
        Format { precision: Some(precision), ..Self::NONE }
    }
    /// Returns the format of kernels that read one precision and write another.
    pub const fn between(from: Precision, to: Precision) -> Self {
        Format { to: Some(to), ..Self::of(from) }
    }
    /// Returns the format of kernels for fermion fields.
    pub const fn fermions(kind: FermionKind, precision: Precision) -> Self {
        Format { kind: Some(kind), ..Self::of(precision) }
    }
    /// Returns the format of kernels for fields in a precision and links in a storage.
    pub const fn with_links(precision: Precision, links: LinkStorage) -> Self {
        Format { links: Some(links), ..Self::of(precision) }
    }
}

/// Prints the words of a format in names of kernels, separated by spaces: `spinor double`, `single 12`.
impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        let parts: [Option<&dyn fmt::Display>; 4] = [
            self.kind.as_ref().map(|x| x as _),
            self.precision.as_ref().map(|x| x as _),
            self.to.as_ref().map(|x| x as _),
            self.links.as_ref().map(|x| x as _),
        ];
        for part in parts.into_iter().flatten() {
            write!(f, "{space}{part}")?;
            space = " ";
        }
        Ok(())
    }
}

/// Format as a type, which is the parameter of generic kernels.
pub trait KernelFormat {
    /// The format as a value.
    const FORMAT: Format;
}
impl KernelFormat for () {
    const FORMAT: Format = Format::NONE;
}
macro_rules! precisions {
    ($($precision:ident)*) => {$(
        impl KernelFormat for $precision {
            const FORMAT: Format = Format::of(<$precision as NumberFormat>::PRECISION);
        }
    )*};
}
precisions!(Double Single Half Fp16);
impl KernelFormat for f64 {
    const FORMAT: Format = Format::of(<f64 as Element>::PRECISION);
}
impl KernelFormat for f32 {
    const FORMAT: Format = Format::of(<f32 as Element>::PRECISION);
}
/// Format of a conversion from format P to format Q.
#[derive(Clone, Copy, Debug)]
pub struct Between<P, Q>(core::marker::PhantomData<(P, Q)>);
impl<P: KernelFormat, Q: KernelFormat> KernelFormat for Between<P, Q> {
    const FORMAT: Format = Format { to: Q::FORMAT.precision, ..P::FORMAT };
}
impl<K: SiteKind, P: NumberFormat> KernelFormat for Sites<K, P> {
    const FORMAT: Format = Format::fermions(K::FERMIONS, P::PRECISION);
}
impl<P: NumberFormat, R: LinkFormat<P>> KernelFormat for (P, R) {
    const FORMAT: Format = Format::with_links(P::PRECISION, <R as Reconstruct>::STORAGE);
}

/// Format that consists of a precision of fields and a storage of links.
pub trait Linked {
    /// Precision of the fields.
    type Precision;
    /// Storage of the links.
    type Links;
}
impl<P, R> Linked for (P, R) {
    type Precision = P;
    type Links = R;
}

/// Format in which a CPU can compute groups of sites with registers V.
#[cfg(target_arch = "x86_64")]
pub trait LaneFormat<V> {
    /// The corresponding format for several sites at once.
    type In;
    /// Number of sites that are computed at once.
    const LANES: usize;
}
#[cfg(target_arch = "x86_64")]
mod lanes {
    use super::{Between, LaneFormat, Sites};
    use crate::algebra::Real;
    use crate::storage::{Double, HasLanes, InLanes, Single, VectorSet};

    macro_rules! precisions {
        ($($precision:ident)*) => {$(
            impl<V: VectorSet> LaneFormat<V> for $precision {
                type In = InLanes<$precision, V>;
                const LANES: usize = <<$precision as HasLanes>::In<V> as Real>::LANES;
            }
        )*};
    }
    precisions!(Double Single);
    impl<V: VectorSet> LaneFormat<V> for f64 {
        type In = V::Double;
        const LANES: usize = V::Double::LANES;
    }
    // The number of lanes is that of F. If T has fewer lanes, kernels process the output in parts.
    impl<F: LaneFormat<V>, T: LaneFormat<V>, V: VectorSet> LaneFormat<V> for Between<F, T> {
        type In = Between<F::In, T::In>;
        const LANES: usize = F::LANES;
    }
    impl<V: VectorSet> LaneFormat<V> for f32 {
        type In = V::Single;
        const LANES: usize = V::Single::LANES;
    }
    impl<P: HasLanes, R, V: VectorSet> LaneFormat<V> for (P, R) {
        type In = (InLanes<P, V>, R);
        const LANES: usize = <P::In<V> as Real>::LANES;
    }
    impl<K, P: HasLanes, V: VectorSet> LaneFormat<V> for Sites<K, P> {
        type In = Sites<K, InLanes<P, V>>;
        const LANES: usize = <P::In<V> as Real>::LANES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::*;
    use std::string::ToString;

    #[test]
    fn sizes_as_values_are_those_of_the_types() {
        macro_rules! links {
            ($($precision:ident: $($recon:ident)*;)*) => {$($(
                let Format { precision, links, .. } = <($precision, $recon)>::FORMAT;
                let (precision, links) = (precision.unwrap(), links.unwrap());
                assert_eq!(links.site_bytes(precision), <$recon as LinkFormat<$precision>>::SITE_BYTES, "{links}");
                assert_eq!(links.read_bytes(precision), <$recon as LinkFormat<$precision>>::READ_BYTES, "{links}");
            )*)*};
        }
        links! {
            Double: Recon18 Recon13 Recon12 Recon9 Recon8 Recon12T Recon8T;
            Single: Recon18 Recon13 Recon12 Recon9 Recon8 Recon12T Recon8T Recon18H Recon13H Recon12H Recon9H Recon8H;
            Single: Recon13F Recon9F Fine18;
            Half: Recon18 Recon13 Recon12 Recon9 Recon8 Recon12T;
            Fp16: Recon18 Recon12 Recon12T;
        }
        assert_eq!(FermionKind::Staggered.site_bytes(Precision::Half), Half::COLOUR_BYTES);
        assert!(Precision::ALL.iter().all(|p| p.has_range() == (*p == Precision::Fp16)));
        const { assert!(Fp16::HAS_RANGE && !Half::HAS_RANGE && !Single::HAS_RANGE && !Double::HAS_RANGE) };
    }

    #[test]
    fn formats_are_named_as_kernels_are() {
        assert_eq!(<(Single, Recon8T)>::FORMAT.to_string(), "single 8t");
        assert_eq!(<(Single, Recon13H)>::FORMAT.to_string(), "single 13h");
        assert_eq!(<(Single, Recon13F)>::FORMAT.to_string(), "single 13f");
        assert_eq!(<Between<Spinors<Double>, Spinors<Half>>>::FORMAT.to_string(), "spinor double half");
        assert_eq!(Format::NONE.to_string(), "");
    }
}
