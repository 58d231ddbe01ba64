//! A lattice that is cut over ranks against the whole one: every operator, in every format.
use crate::accuracy::Accuracy;
use comms::ProcessGrid;
use ferrite::backend::Backend;
use ferrite::dirac::{
    CloverParams, EvenOdd, EvenOddClover, EvenOddStaggered, EvenOddWilson, Schur, Staggered, StaggeredLinks,
    StaggeredParams, TimeBoundary, Wilson, WilsonParams,
};
use ferrite::domain::{Domain, Result};
use ferrite::fat_links::{Improvement, PathCoefficients};
use ferrite::field::host::{Fermion, HostField, HostGauge};
use ferrite::field::{DeviceGauge, FieldKind, FieldSpace, FullField, ThinGauge};
use ferrite::gauge_fixing::temporal_gauge;
use ferrite::generate;
use ferrite::halo::Network;
use ferrite::lattice::{Lattice, Section};
use gpu_kernels::storage::{
    Double, FourSpins, Fp16, Half, LinkFormat, OneSpin, Recon8, Recon8H, Recon8T, Recon9, Recon9H, Recon12, Recon12H,
    Recon12T, Recon13, Recon13H, Recon18, Recon18H, Single,
};
use num_complex::Complex64;
use solvers::{Dots, LinearOperator};
use std::sync::Arc;

/// A field that was computed.
struct Image {
    label: String,
    components: usize,
    /// One array for each right-hand side, `[site][component]`.
    fields: Vec<Vec<Complex64>>,
    /// Largest difference, relative to the largest number of the field: 0 where bits are equal.
    tolerance: f64,
}

/// A number that was computed: a sum over the lattice.
struct Number {
    label: String,
    value: f64,
    /// What its error is relative to.
    scale: f64,
    tolerance: f64,
}

/// What a rank computed.
#[derive(Default)]
pub struct Images {
    fields: Vec<Image>,
    numbers: Vec<Number>,
}

/// What is computed with, on the whole lattice; a rank takes its section.
pub struct Input {
    gauge: HostGauge,
    /// The same in temporal gauge.
    temporal: HostGauge,
    seed: u64,
    nrhs: usize,
}

impl Input {
    /// Of a weak field and `nrhs` random sources.
    pub fn new(lattice: Lattice, seed: u64, nrhs: usize) -> Self {
        let gauge = generate::weak_field(lattice, seed, 0.25);
        Input { temporal: temporal_gauge(&gauge).0, gauge, seed, nrhs }
    }
    /// Extents of the whole lattice.
    pub fn lattice(&self) -> Lattice {
        self.gauge.lattice()
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

struct Computing<'a> {
    domain: &'a Domain,
    seed: u64,
    nrhs: usize,
    out: Images,
}

impl<'a> Computing<'a> {
    fn new(domain: &'a Domain, input: &Input) -> Self {
        Computing { domain, seed: input.seed, nrhs: input.nrhs, out: Images::default() }
    }
}

impl Computing<'_> {
    fn field<K: FieldKind, P: Accuracy>(&self, block: u64) -> Result<FullField<K, P>> {
        let first = self.seed + 10 * block;
        let host = (0..self.nrhs as u64).map(|j| generate::random_source(self.domain.section(), first + j));
        let mut field = FullField::zero(self.domain, self.nrhs)?;
        field.upload(&host.collect::<Vec<HostField<K::Host>>>())?;
        Ok(field)
    }
    fn keep<K: FieldKind, P: Accuracy>(&mut self, label: String, field: &FullField<K, P>, tolerance: f64) -> Result {
        let fields = field.download()?.iter().map(|field| field.numbers().to_vec()).collect();
        self.out.fields.push(Image { label, components: K::Host::COMPONENTS, fields, tolerance });
        Ok(())
    }
    fn number(&mut self, label: String, value: f64, scale: f64, tolerance: f64) {
        self.out.numbers.push(Number { label, value, scale, tolerance });
    }
    /// A Schur complement with all its ways to be applied.
    fn operator<K: FieldKind, P: Accuracy>(
        &mut self,
        label: &str,
        operator: &impl LinearOperator<FieldSpace<K, P>>,
        tolerance: f64,
    ) -> Result {
        let (x, w) = (self.field::<K, P>(3)?, self.field::<K, P>(4)?);
        let mut out = FullField::<K, P>::zero(self.domain, self.nrhs)?;
        let space = FieldSpace::<K, P>::new(self.domain, self.nrhs);
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
    fn wilson<P: Accuracy, R: LinkFormat<P>>(&mut self, thin: &ThinGauge) -> Result {
        let name = format!("{} {}", P::NAME, R::NAME);
        // Half precision rounds what comes from another process once more: a unit of 2⁻¹⁶ in each of the six hops in
        // space, of numbers up to twice as large, and the image is about as large as they are.
        let tolerance = if P::NAME == "half" { 6.0 * 2.0 * 2f64.powi(-16) } else { 0.0 };
        let links: Arc<DeviceGauge<P, R>> = Arc::new(thin.pack()?);
        let params = WilsonParams::from_mass(0.1, TimeBoundary::Antiperiodic);
        let wilson = Wilson::new(links, params);
        let (psi, x) = (self.field::<FourSpins, P>(1)?, self.field::<FourSpins, P>(2)?);
        let mut out = FullField::<FourSpins, P>::zero(self.domain, self.nrhs)?;
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
        self.operator(&format!("Wilson {name}"), &EvenOddWilson::new(wilson.clone(), self.nrhs)?, 2.0 * tolerance)?;
        let params = CloverParams::isotropic(params, 1.2, 0.9);
        let term = Arc::new(params.term(thin)?.convert::<P>()?);
        for schur in [Schur::Symmetric, Schur::Asymmetric] {
            let clover = EvenOddClover::new(wilson.clone(), term.clone(), schur, self.nrhs)?;
            self.operator(&format!("clover {schur:?} {name}"), &clover, 2.0 * tolerance)?;
            let mut even = FullField::<FourSpins, P>::zero(self.domain, self.nrhs)?;
            clover.prepare(&psi, &mut even.even)?;
            clover.reconstruct(&x, &mut even)?;
            clover.row(1, true, &psi, &mut out.odd)?;
            self.keep(format!("clover {schur:?} {name} there and back"), &even, 4.0 * tolerance)?;
            self.keep(format!("clover {schur:?} {name} row"), &out, 4.0 * tolerance)?;
        }
        Ok(())
    }
    fn staggered<P: Accuracy, L: StaggeredLinks<P>>(&mut self, name: String, links: L) -> Result {
        let operator = Staggered::new(Arc::new(links), StaggeredParams::new(0.1, TimeBoundary::Antiperiodic));
        let (psi, x) = (self.field::<OneSpin, P>(5)?, self.field::<OneSpin, P>(6)?);
        let mut out = FullField::<OneSpin, P>::zero(self.domain, self.nrhs)?;
        for parity in 0..2 {
            operator.dslash(parity, psi.parity(1 - parity), out.parity_mut(parity))?;
        }
        self.keep(format!("D {name}"), &out, 0.0)?;
        for parity in 0..2 {
            let (x, input) = ((0.7, x.parity(parity)), (-0.3, psi.parity(1 - parity)));
            operator.dslash_add(parity, x, input, out.parity_mut(parity))?;
        }
        self.keep(format!("a x + b D {name}"), &out, 0.0)?;
        self.operator(&name, &EvenOddStaggered::<P, L>::shifted(operator, 0, 0.2, self.nrhs)?, 0.0)
    }
}

/// Everything of Wilson, clover and naive staggered operators.
pub fn one_hop(domain: &Domain, input: &Input) -> Result<Images> {
    let section = domain.section();
    let mut c = Computing::new(domain, input);
    let thin = ThinGauge::upload(domain, &links_of(&section, &input.gauge))?;
    let temporal = ThinGauge::upload(domain, &links_of(&section, &input.temporal))?;
    let (plaquette, trace) = thin.plaquette()?;
    for (name, value) in [("spatial", plaquette.spatial), ("temporal", plaquette.temporal), ("trace", trace)] {
        c.number(format!("plaquette {name}"), value, 1.0, 1e-14);
    }
    let counts = [thin.singular_links()?, temporal.singular_links()?, temporal.singular_links_in_temporal_gauge()?];
    counts.into_iter().for_each(|count| c.number("singular links".into(), count as f64, 1.0, 0.0));
    macro_rules! wilson {
        ($thin:ident: $($precision:ident $recon:ident),*) => {$(c.wilson::<$precision, $recon>(&$thin)?;)*};
    }
    wilson!(thin: Double Recon18, Double Recon12, Double Recon8, Single Recon18, Single Recon12, Single Recon8);
    wilson!(thin: Half Recon18, Half Recon12, Half Recon8, Fp16 Recon18, Fp16 Recon12, Fp16 Recon8);
    wilson!(temporal: Double Recon12T, Double Recon8T, Single Recon12T, Single Recon8T, Half Recon12T, Fp16 Recon12T);
    macro_rules! staggered {
        ($($precision:ident $recon:ident),*) => {$({
            let name = format!("naive {} {}", stringify!($precision), stringify!($recon));
            c.staggered::<$precision, _>(name, thin.pack::<$precision, $recon>()?)?;
        })*};
    }
    staggered!(Double Recon18, Double Recon12, Double Recon8, Single Recon18, Single Recon12, Single Recon8);
    staggered!(Half Recon18, Half Recon12, Half Recon8, Single Recon18H, Single Recon12H, Single Recon8H);
    Ok(c.out)
}

/// Everything of asqtad and HISQ, whose links are made on the cut lattice, too.
pub fn three_hops(domain: &Domain, input: &Input) -> Result<Images> {
    let mut c = Computing::new(domain, input);
    let thin = ThinGauge::upload(domain, &links_of(&domain.section(), &input.gauge))?;
    let asqtad = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9))?;
    c.number("fat scale".into(), asqtad.fat_scale, 1.0, 0.0);
    c.number("singular long links".into(), asqtad.singular_long_links()? as f64, 1.0, 0.0);
    for (name, links) in [("fat", &asqtad.fat), ("long", &asqtad.long)] {
        let host = links.download()?;
        let numbers = bytemuck::cast_slice(host.links()).to_vec();
        c.out.fields.push(Image { label: name.into(), components: 36, fields: vec![numbers], tolerance: 0.0 });
    }
    macro_rules! improved {
        ($links:ident: $($precision:ident $recon:ident),*) => {$({
            let name = format!("{} {} {}", stringify!($links), stringify!($precision), stringify!($recon));
            c.staggered::<$precision, _>(name, $links.pack::<$precision, $recon>()?)?;
        })*};
    }
    improved!(asqtad: Double Recon18, Double Recon12, Double Recon8, Single Recon18, Single Recon12, Single Recon8);
    improved!(asqtad: Half Recon18, Half Recon12, Half Recon8, Single Recon18H, Single Recon12H, Single Recon8H);
    if let Ok(hisq) = Improvement::hisq(&thin, -0.1) {
        improved!(hisq: Double Recon18, Single Recon18, Half Recon18);
        improved!(hisq: Double Recon13, Double Recon9, Single Recon13, Single Recon9, Half Recon13, Half Recon9);
        improved!(hisq: Single Recon13H, Single Recon9H);
    }
    Ok(c.out)
}

/// What a rank found that differs from the whole lattice.
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

/// The part of this rank of a cut lattice.
pub fn domain(
    backend: impl Into<Arc<dyn Backend>>,
    lattice: Lattice,
    grid: [usize; 4],
    network: impl Network + 'static,
) -> Result<Domain> {
    Domain::new(backend, lattice, ProcessGrid::new(grid)?, Arc::new(network))
}
