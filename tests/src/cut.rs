//! A lattice that is cut over ranks against the whole one: every operator, in every format.
use crate::formats::{self, LinkFormat};
use comms::ProcessGrid;
use ferrite::backend::Backend;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{ColourVector, Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{FieldShape, FieldSpace, FullField, GaugeField};
use ferrite::gauge::fixing::temporal_gauge;
use ferrite::gauge::generate;
use ferrite::lattice::{Lattice, Section};
use ferrite::network::Network;
use ferrite::operators::fat_links::{Improvement, PathCoefficients};
use ferrite::operators::{
    EvenOdd, EvenOddStaggered, EvenOddWilson, OPERATORS, Schur, Staggered, StaggeredLinks, StaggeredParams,
    TimeBoundary, Wilson, WilsonLike, WilsonParams,
};
use ferrite::{FermionKind, LinkStorage, Precision};
use num_complex::Complex64;
use solvers::{Dots, LinearOperator};
use std::ops::Range;
use std::sync::Arc;

/// A field that was computed.
struct ComputedField {
    label: String,
    components: usize,
    /// One array for each right-hand side, `[site][component]`.
    fields: Vec<Vec<Complex64>>,
    /// Largest difference, relative to the largest number of the field: 0 where bits are equal.
    tolerance: f64,
}

/// A number that was computed: a sum over the lattice.
struct ComputedSum {
    label: String,
    value: f64,
    /// Scale of the error.
    scale: f64,
    tolerance: f64,
}

/// Fields and sums that a rank computed.
#[derive(Default)]
pub struct Images {
    fields: Vec<ComputedField>,
    numbers: Vec<ComputedSum>,
}

/// Links on the whole lattice, of which a rank takes its section, and the sources.
pub struct LatticeInput {
    gauge: HostGauge,
    /// Links in temporal gauge.
    temporal: HostGauge,
    seed: u64,
    nrhs: usize,
}

impl LatticeInput {
    /// Makes the input of a weak field and `nrhs` random sources.
    pub fn new(lattice: Lattice, seed: u64, nrhs: usize) -> Self {
        let gauge = generate::weak_field(lattice, seed, 0.25);
        LatticeInput { temporal: temporal_gauge(&gauge).0, gauge, seed, nrhs }
    }
    /// Extents of the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.gauge.lattice()
    }
}

/// Share of the formats that is computed, by their numbers in the lists of [`formats`].
#[derive(Clone, Copy)]
pub struct FormatShare {
    /// Number of shares, of which one is computed.
    pub one_of: usize,
    /// Remainder, modulo `one_of`, of the numbers of the formats that are computed.
    pub which: usize,
}

impl FormatShare {
    /// Every format.
    pub const ALL: Self = FormatShare { one_of: 1, which: 0 };

    fn of<T>(self, formats: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        formats.into_iter().skip(self.which % self.one_of).step_by(self.one_of)
    }
}

/// The links of a section.
pub fn links_of(section: &Section, gauge: &HostGauge) -> HostGauge {
    let links = (0..section.local.volume()).flat_map(|site| {
        let global = section.global_index(site);
        (0..4).map(move |mu| *gauge.link(global, mu))
    });
    HostGauge::from_links(section.local, links.collect())
}

/// The part of a field on a section.
pub fn part_of<T: Fermion>(section: &Section, field: &HostField<T>) -> HostField<T> {
    let site = |site: usize| field.sites()[section.global_index(site)];
    HostField::from_sites(section.local, (0..section.local.volume()).map(site).collect())
}

struct Computing<'a> {
    domain: &'a Domain,
    seed: u64,
    nrhs: usize,
    out: Images,
}

impl<'a> Computing<'a> {
    fn new(domain: &'a Domain, input: &LatticeInput) -> Self {
        Computing { domain, seed: input.seed, nrhs: input.nrhs, out: Images::default() }
    }
}

impl Computing<'_> {
    fn zero(&self, kind: FermionKind, precision: Precision) -> Result<FullField> {
        FullField::zero(self.domain, FieldShape::new(kind, precision, self.nrhs))
    }
    fn field(&self, kind: FermionKind, precision: Precision, block: u64) -> Result<FullField> {
        fn upload<F: Fermion>(field: &mut FullField, section: Section, seeds: Range<u64>) -> Result {
            let host = seeds.map(|seed| generate::random_source(section, seed));
            field.upload(&host.collect::<Vec<HostField<F>>>())
        }
        let (section, first) = (self.domain.section(), self.seed + 10 * block);
        let (mut field, seeds) = (self.zero(kind, precision)?, first..first + self.nrhs as u64);
        match kind {
            FermionKind::Wilson => upload::<Spinor>(&mut field, section, seeds)?,
            FermionKind::Staggered => upload::<ColourVector>(&mut field, section, seeds)?,
        }
        Ok(field)
    }
    fn keep(&mut self, label: String, field: &FullField, tolerance: f64) -> Result {
        fn numbers<F: Fermion>(field: &FullField) -> Result<Vec<Vec<Complex64>>> {
            Ok(field.download::<F>()?.iter().map(|field| field.numbers().to_vec()).collect())
        }
        let (components, fields) = match field.even.kind() {
            FermionKind::Wilson => (Spinor::COMPONENTS, numbers::<Spinor>(field)?),
            FermionKind::Staggered => (ColourVector::COMPONENTS, numbers::<ColourVector>(field)?),
        };
        self.out.fields.push(ComputedField { label, components, fields, tolerance });
        Ok(())
    }
    fn number(&mut self, label: String, value: f64, scale: f64, tolerance: f64) {
        self.out.numbers.push(ComputedSum { label, value, scale, tolerance });
    }
    /// A Schur complement with all its ways to be applied.
    fn operator(
        &mut self,
        label: &str,
        (kind, precision): (FermionKind, Precision),
        operator: &impl LinearOperator<FieldSpace>,
        tolerance: f64,
    ) -> Result {
        let (x, w) = (self.field(kind, precision, 3)?, self.field(kind, precision, 4)?);
        let mut out = self.zero(kind, precision)?;
        let space = FieldSpace::new(self.domain, FieldShape::new(kind, precision, self.nrhs));
        operator.apply(&x.even, &mut out.even)?;
        self.keep(format!("{label} M"), &out, tolerance)?;
        operator.apply_dagger(&x.even, &mut out.even)?;
        self.keep(format!("{label} M+"), &out, tolerance)?;
        let (mut dot, mut norm) = (vec![Complex64::ZERO; self.nrhs], vec![0.0; self.nrhs]);
        operator.apply_dot(&space, &x.even, &mut out.even, &w.even, &mut dot, &mut norm)?;
        self.keep(format!("{label} M with sums"), &out, tolerance)?;
        let mut all = vec![Dots::default(); self.nrhs];
        operator.apply_dots(&space, &x.even, &mut out.even, &w.even, &mut all)?;
        self.keep(format!("{label} M with all sums"), &out, tolerance)?;
        // Sites have the same numbers whoever computes them: only the order of the sums over sites differs.
        let tolerance = 10.0 * tolerance + 1e-13;
        for (j, dots) in all.iter().enumerate() {
            for (name, value) in [("re", dot[j].re), ("im", dot[j].im), ("norm", norm[j])] {
                self.number(format!("{label} (w, Mx) {name}"), value, dots.y_y, tolerance);
            }
            for (name, value) in [
                ("(x, y)", dots.x_y.re),
                ("(x, y) im", dots.x_y.im),
                ("(w, x)", dots.w_x.re),
                ("(w, y)", dots.w_y.im),
                ("|x|^2", dots.x_x),
                ("|y|^2", dots.y_y),
            ] {
                self.number(format!("{label} all sums {name}"), value, dots.y_y, tolerance);
            }
        }
        Ok(())
    }
    fn wilson(&mut self, links: &GaugeField, (precision, storage): LinkFormat) -> Result {
        let (name, kind) = (format!("{precision} {storage}"), FermionKind::Wilson);
        // Half precision rounds what comes from another process once more: a unit of 2⁻¹⁶ in each of the six hops in
        // space, of numbers up to twice as large, and the image is about as large as they are.
        let tolerance = if precision == Precision::Half { 6.0 * 2.0 * 2f64.powi(-16) } else { 0.0 };
        let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let wilson = Wilson::new(Arc::new(links.pack(precision, storage)?), params);
        let (psi, x) = (self.field(kind, precision, 1)?, self.field(kind, precision, 2)?);
        let mut out = self.zero(kind, precision)?;
        for dagger in [false, true] {
            for parity in 0..2 {
                wilson.dslash(parity, dagger, psi.parity(1 - parity), out.parity_mut(parity))?;
            }
            self.keep(format!("D {name} {dagger}"), &out, tolerance)?;
            for parity in 0..2 {
                let (x, input) = ((0.7, x.parity(parity)), (-0.3, psi.parity(1 - parity)));
                wilson.dslash_add(parity, dagger, x, input, out.parity_mut(parity))?;
            }
            self.keep(format!("a x + b D {name} {dagger}"), &out, tolerance)?;
        }
        self.slices(&wilson, &name, tolerance)?;
        let (fields, even_odd) = ((kind, precision), EvenOddWilson::new(wilson.clone(), self.nrhs)?);
        self.operator(&format!("Wilson {name}"), fields, &even_odd, 2.0 * tolerance)?;
        // All operators whose diagonal term is more than a number.
        for definition in OPERATORS.into_iter().filter(|definition| definition.exists(precision, storage)) {
            let Some(&operator) = (definition.sample)().parameters::<WilsonLike>() else { continue };
            if operator.has_number() {
                continue;
            }
            let wilson = Wilson::new(Arc::new(links.pack(precision, storage)?), operator.wilson);
            let term = operator.diagonal(links)?.convert(precision)?;
            for schur in [Schur::Symmetric, Schur::Asymmetric] {
                let even_odd = EvenOddWilson::with_diagonal(wilson.clone(), term.clone(), schur, self.nrhs)?;
                let name = format!("{} {schur:?} {name}", definition.name);
                self.operator(&name, fields, &even_odd, 2.0 * tolerance)?;
                let mut even = self.zero(kind, precision)?;
                even_odd.prepare(&psi, &mut even.even)?;
                even_odd.reconstruct(&x, &mut even)?;
                even_odd.apply_parity(1, true, &psi, &mut out.odd)?;
                self.keep(format!("{name} there and back"), &even, 4.0 * tolerance)?;
                self.keep(format!("{name} row"), &out, 4.0 * tolerance)?;
            }
        }
        Ok(())
    }
    /// The hopping term in each slice of a fifth dimension, where it gives what it gives for as many right-hand sides.
    fn slices(&mut self, wilson: &Wilson, name: &str, tolerance: f64) -> Result {
        const LS: usize = 3;
        let (section, first) = (self.domain.section(), self.seed + 70);
        let seeds = first..first + (LS * self.nrhs) as u64;
        let host: Vec<HostField<Spinor>> = seeds.map(|seed| generate::random_source(section, seed)).collect();
        let flat = FieldShape::spinors(wilson.precision(), LS * self.nrhs);
        let mut images = Vec::new();
        for shape in [flat, flat.with_nrhs(self.nrhs).with_ls(LS)] {
            let (mut psi, mut out) = (FullField::zero(self.domain, shape)?, FullField::zero(self.domain, shape)?);
            psi.upload(&host)?;
            for parity in 0..2 {
                wilson.dslash(parity, false, psi.parity(1 - parity), out.parity_mut(parity))?;
            }
            self.keep(format!("D {name}, L_s = {}", shape.ls), &out, tolerance)?;
            images.push(out.download::<Spinor>()?);
        }
        assert!(images[0] == images[1], "D {name} in slices");
        Ok(())
    }
    fn staggered(&mut self, name: String, links: StaggeredLinks) -> Result {
        let fields @ (kind, precision) = (FermionKind::Staggered, links.precision());
        let operator = Staggered::new(Arc::new(links), StaggeredParams::new(0.1, TimeBoundary::Antiperiodic));
        let (psi, x) = (self.field(kind, precision, 5)?, self.field(kind, precision, 6)?);
        let mut out = self.zero(kind, precision)?;
        for parity in 0..2 {
            operator.dslash(parity, psi.parity(1 - parity), out.parity_mut(parity))?;
        }
        self.keep(format!("D {name}"), &out, 0.0)?;
        for parity in 0..2 {
            let (x, input) = ((0.7, x.parity(parity)), (-0.3, psi.parity(1 - parity)));
            operator.dslash_add(parity, x, input, out.parity_mut(parity))?;
        }
        self.keep(format!("a x + b D {name}"), &out, 0.0)?;
        self.operator(&name, fields, &EvenOddStaggered::shifted(operator, 0, 0.2, self.nrhs)?, 0.0)
    }
    fn improved(
        &mut self,
        name: &str,
        links: &Improvement,
        share: FormatShare,
        keeps: impl Fn(LinkStorage) -> bool,
    ) -> Result {
        for (precision, storage) in share.of(formats::improved().into_iter().filter(|(_, storage)| keeps(*storage))) {
            self.staggered(format!("{name} {precision} {storage}"), links.pack(precision, storage)?)?;
        }
        Ok(())
    }
}

/// Everything of Wilson, clover and naive staggered operators.
pub fn one_hop(domain: &Domain, input: &LatticeInput, share: FormatShare) -> Result<Images> {
    let section = domain.section();
    let mut c = Computing::new(domain, input);
    let gauge = GaugeField::upload(domain, &links_of(&section, &input.gauge))?;
    let temporal = GaugeField::upload(domain, &links_of(&section, &input.temporal))?;
    let (plaquette, trace) = gauge.plaquette()?;
    for (name, value) in [("spatial", plaquette.spatial), ("temporal", plaquette.temporal), ("trace", trace)] {
        c.number(format!("plaquette {name}"), value, 1.0, 1e-14);
    }
    let counts = [gauge.singular_links()?, temporal.singular_links()?, temporal.singular_links_in_temporal_gauge()?];
    counts.into_iter().for_each(|count| c.number("singular links".into(), count as f64, 1.0, 0.0));
    for format in share.of(formats::wilson()) {
        let (_, storage) = format;
        c.wilson(if storage.temporal { &temporal } else { &gauge }, format)?;
    }
    for (precision, storage) in share.of(formats::naive()) {
        let links = StaggeredLinks::naive(Arc::new(gauge.pack(precision, storage)?));
        c.staggered(format!("naive {precision} {storage}"), links)?;
    }
    Ok(c.out)
}

/// Everything of asqtad and HISQ.
pub fn three_hops(domain: &Domain, input: &LatticeInput, share: FormatShare) -> Result<Images> {
    let (mut all, hisq) = (asqtad(domain, input, share)?, hisq(domain, input, share)?);
    all.fields.extend(hisq.fields);
    all.numbers.extend(hisq.numbers);
    Ok(all)
}

/// Everything of asqtad, whose links are made on the cut lattice, too.
pub fn asqtad(domain: &Domain, input: &LatticeInput, share: FormatShare) -> Result<Images> {
    let mut c = Computing::new(domain, input);
    let thin = GaugeField::upload(domain, &links_of(&domain.section(), &input.gauge))?;
    let asqtad = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9))?;
    c.number("fat scale".into(), asqtad.fat_scale, 1.0, 0.0);
    c.number("singular long links".into(), asqtad.singular_long_links()? as f64, 1.0, 0.0);
    for (name, links) in [("fat", &asqtad.fat), ("long", &asqtad.long)] {
        let host = links.download()?;
        let numbers = bytemuck::cast_slice(host.links()).to_vec();
        c.out.fields.push(ComputedField { label: name.into(), components: 36, fields: vec![numbers], tolerance: 0.0 });
    }
    // Long links of asqtad are in SU(3), those of HISQ in U(3).
    c.improved("asqtad", &asqtad, share, |storage| !storage.keeps_phase())?;
    Ok(c.out)
}

/// Everything of HISQ.
pub fn hisq(domain: &Domain, input: &LatticeInput, share: FormatShare) -> Result<Images> {
    let mut c = Computing::new(domain, input);
    let thin = GaugeField::upload(domain, &links_of(&domain.section(), &input.gauge))?;
    let hisq = Improvement::hisq(&thin, -0.1)?;
    c.improved("hisq", &hisq, share, |storage| storage == storage.with_phase())?;
    Ok(c.out)
}

/// Lists the results of a rank that differ from those of the whole lattice.
pub fn differences(whole: &Images, part: &Images, section: &Section) -> Vec<String> {
    let mut found = Vec::new();
    if (whole.fields.len(), whole.numbers.len()) != (part.fields.len(), part.numbers.len()) {
        found.push("not the same results were computed".into());
    }
    for (whole, part) in whole.fields.iter().zip(&part.fields) {
        assert_eq!(whole.label, part.label);
        let n = whole.components;
        for (j, (whole_field, field)) in whole.fields.iter().zip(&part.fields).enumerate() {
            let largest = whole_field.iter().fold(0.0, |a: f64, z| a.max(z.re.abs()).max(z.im.abs()));
            let expected = |k: usize| whole_field[n * section.global_index(k / n) + k % n];
            let error = field.iter().enumerate().map(|(k, z)| (k, (z - expected(k)).norm() / largest));
            let nan = field.iter().any(|z| !z.is_finite());
            let (k, error) = error.fold((0, 0.0), |a, b| if b.1 > a.1 { b } else { a });
            if nan || error > whole.tolerance {
                let (label, site) = (&whole.label, section.local.coordinates(k / n));
                let allowed = whole.tolerance;
                found.push(format!("{label}, rhs {j}: {error:.1e} at {site:?}, allowed {allowed:.1e}"));
            }
        }
    }
    for (whole, part) in whole.numbers.iter().zip(&part.numbers) {
        assert_eq!(whole.label, part.label);
        let error = (whole.value - part.value).abs() / whole.scale.abs().max(f64::MIN_POSITIVE);
        if error.is_nan() || error > whole.tolerance {
            let (label, value, expected) = (&whole.label, part.value, whole.value);
            found.push(format!("{label}: {value:e} instead of {expected:e}"));
        }
    }
    found
}

/// Makes the domain of this rank of a partitioned lattice.
pub fn domain(
    backend: impl Into<Arc<dyn Backend>>,
    lattice: Lattice,
    grid: [usize; 4],
    network: impl Network + 'static,
) -> Result<Domain> {
    Domain::new(backend, lattice, ProcessGrid::new(grid)?, Arc::new(network))
}
