//! From pairs of vectors that hops join to the force on thin links: the chain rule along the paths of fat and long links.
use super::Error;
use super::fermions::QuarkOperator;
use super::links::MovingLinks;
use super::momenta::MomentumField;
use crate::backend::Backend;
use crate::domain::{DeviceError, Domain, Result};
use crate::fat_links::{MatrixField, PathCoefficients};
use crate::field::{DeviceColour, ThinGauge};
use gpu_kernels::fermion_force::{CombineMatrices, HopGradient, HopPairs, LongGradient, NaiveForce, StapleGradient};
use gpu_kernels::field::Matrices;
use gpu_kernels::lattice::{Bordered, Region};
use gpu_kernels::momenta::AddForce;
use gpu_kernels::smeared::Staple;
use gpu_kernels::storage::{Double, Element, Precision};
use gpu_kernels::transfer::CopySites;

/// Vectors Z_j on all sites, as right-hand sides of one field for each parity: what a force is made of.
pub(crate) struct Hops<P: Precision> {
    fields: [DeviceColour<P>; 2],
    added: usize,
}

impl<P: Precision> Hops<P> {
    /// Room for `count` vectors.
    pub fn new(domain: &Domain, count: usize) -> Result<Self> {
        Ok(Hops { fields: [DeviceColour::zero(domain, count)?, DeviceColour::zero(domain, count)?], added: 0 })
    }
    /// Adds the vectors of a block: x on even and `factor` y on odd sites.
    pub fn add(&mut self, x: &DeviceColour<P>, y: &DeviceColour<P>, factor: f64) -> Result {
        let domain = x.domain();
        assert!(self.added + x.nrhs() <= self.fields[0].nrhs(), "there is room");
        for (parity, (field, factor)) in [(x, 1.0), (y, factor)].into_iter().enumerate() {
            let kernel = CopySites {
                input: field.view(),
                from: Region::WHOLE,
                out: self.fields[parity].view().from_rhs(self.added),
                to: Region::WHOLE,
                geometry: domain.geometry(),
                parity: parity as u32,
                factor,
            };
            domain.backend().launch(&kernel, domain.half_sites(), x.nrhs() as u32)?;
        }
        self.added += x.nrhs();
        Ok(())
    }
    /// *Collective.* The same with the neighbours' vectors around, on the lattice of links with a border.
    fn with_border(self, lattice: &ThinGauge<impl Element>, across: f64) -> Result<Self> {
        let domain = lattice.domain();
        let Some(halo) = domain.halo() else { return Ok(self) };
        let width = lattice.border_width();
        let wide = domain.with_margin(width)?;
        let count = self.fields[0].nrhs();
        let mut fields = [DeviceColour::zero(&wide, count)?, DeviceColour::zero(&wide, count)?];
        for (parity, (from, to)) in self.fields.iter().zip(&mut fields).enumerate() {
            halo.fill_margin((from, from.nrhs()), to, parity as u32, width, across)?;
        }
        Ok(Hops { fields, added: self.added })
    }
    fn pairs(&self, operator: &QuarkOperator) -> HopPairs<P> {
        HopPairs {
            vectors: [self.fields[0].view(), self.fields[1].view()],
            count: self.added as u32,
            phases: operator.params.phases.table(),
            across: operator.params.boundary.sign(),
        }
    }
}

/// P ← P + ε A, A the traceless anti-Hermitian part of U G†, where G is the gradient of Re Σ_{n even} x†(n) (D y)(n), x being
/// on even and y on odd sites, in double precision.
///
/// # Errors
/// Fields on another lattice than the links, long links on parts that are fewer than 3 sites long in a direction that is
/// cut, and failures of the device.
pub fn hop_force<T: Element>(
    operator: &QuarkOperator,
    (x, y): (&DeviceColour<Double>, &DeviceColour<Double>),
    links: &MovingLinks<T>,
    step: f64,
    momenta: &mut MomentumField<T>,
) -> std::result::Result<(), Error> {
    let domain = links.own().domain();
    [x, y].into_iter().try_for_each(|field| field.expect(domain, 1))?;
    let mut hops = Hops::new(domain, 1)?;
    hops.add(x, y, 1.0)?;
    push(operator, hops, links, step, momenta)
}

/// P ← P + ε A, A the traceless anti-Hermitian part of U G†, where G is the gradient of Re Σ_j Σ_n Z_j†(n) D Z_j over the
/// even sites n, in precision `P`.
pub(crate) fn push<P: Precision<Real: Element>, T: Element>(
    operator: &QuarkOperator,
    hops: Hops<P>,
    links: &MovingLinks<T>,
    step: f64,
    momenta: &mut MomentumField<T>,
) -> std::result::Result<(), Error> {
    let thin = links.thin::<P::Real>()?;
    let (domain, sites) = (thin.domain().clone(), thin.domain().half_sites());
    momenta.expect_on(&domain)?;
    if operator.paths.is_some_and(|paths| paths.naik != 0.0) {
        // Long links that begin further away are with nobody that this process hears of.
        domain.grid().check(domain.global().size(), 3).map_err(DeviceError::from)?;
    }
    let hops = hops.with_border(&thin, operator.params.boundary.sign())?;
    // With the ends of the whole lattice where hops cross them, and none where vectors have their sign.
    let geometry = hops.fields[0].domain().geometry();
    let lattice = Bordered { geometry, ..thin.bordered() };
    let Some(paths) = operator.paths else {
        for parity in 0..2 {
            let (links, momenta) = (thin.links(parity), momenta.view(parity));
            let kernel =
                NaiveForce { pairs: hops.pairs(operator), links, momenta, lattice, parity: parity as u32, step };
            domain.backend().launch(&kernel, sites, 4)?;
        }
        return Ok(());
    };
    let gradient = Chain::new(&thin, paths, lattice)?.gradient(&hops.pairs(operator))?;
    for parity in 0..2 {
        let kernel = AddForce {
            momenta: momenta.view(parity),
            links: thin.links(parity),
            gradient: gradient.links(parity),
            lattice,
            parity: parity as u32,
            step,
        };
        domain.backend().launch(&kernel, sites, 4)?;
    }
    Ok(())
}

/// The chain rule from fat and long links to thin ones.
///
/// With S_ν the staple in direction ν, F_μ = c_1 U_μ + Σ_ν [c_3 V + c_L S_ν V + Σ_ρ (c_5 W + Σ_σ c_7 S_σ W)], V = S_ν U_μ and
/// W = S_ρ V. Gradients go through the same staples: that of W is c_5 G + c_7 Σ_σ S_σ G, that of V is
/// c_3 G + c_L S_ν G + Σ_ρ S_ρ of the former, and each staple adds to the gradients of the links beside it.
struct Chain<'a, T> {
    thin: &'a ThinGauge<T>,
    paths: PathCoefficients,
    lattice: Bordered,
    /// The gradient of thin links.
    sum: ThinGauge<T>,
}

impl<'a, T: Element> Chain<'a, T> {
    fn new(thin: &'a ThinGauge<T>, paths: PathCoefficients, lattice: Bordered) -> Result<Self> {
        Ok(Chain { thin, paths, lattice, sum: thin.empty_like()? })
    }
    fn backend(&self) -> &dyn Backend {
        self.thin.domain().backend()
    }
    fn sites(&self) -> u32 {
        self.thin.bordered_sites()
    }
    /// The gradient of thin links from vectors.
    fn gradient<P: Precision<Real = T>>(self, pairs: &HopPairs<P>) -> Result<ThinGauge<T>> {
        let (c, geometry) = (self.paths, self.lattice.geometry);
        let fat = self.thin.empty_like()?;
        if c.naik != 0.0 {
            for parity in 0..2 {
                let (out, parity) = (fat.links(parity), parity as u32);
                let kernel = HopGradient::<P, 3> { pairs: *pairs, out, geometry, parity, factor: 1.0 };
                self.backend().launch(&kernel, self.sites(), 4)?;
            }
            for parity in 0..2 {
                let kernel = LongGradient {
                    links: self.thin.both(),
                    gradient: fat.both(),
                    sum: self.sum.links(parity),
                    geometry,
                    parity: parity as u32,
                    coefficient: c.naik,
                };
                self.backend().launch(&kernel, self.sites(), 4)?;
            }
        }
        for parity in 0..2 {
            let (out, parity) = (fat.links(parity), parity as u32);
            let kernel = HopGradient::<P, 1> { pairs: *pairs, out, geometry, parity, factor: 1.0 };
            self.backend().launch(&kernel, self.sites(), 4)?;
        }
        self.staples(&fat)?;
        Ok(self.sum)
    }
    /// Adds the gradient of thin links from that of fat ones.
    fn staples(&self, fat: &ThinGauge<T>) -> Result {
        let c = self.paths;
        let field = || MatrixField::<T>::new(self.thin.domain(), self.sites() as usize, "a path of forces");
        let (v, w, of_v, of_w, scratch) = (field()?, field()?, field()?, field()?, field()?);
        let others = |taken: &[u32]| (0..4).filter(|nu| !taken.contains(nu)).collect::<Vec<u32>>();
        let longer = c.five != 0.0 || c.seven != 0.0;
        for mu in 0..4 {
            let (link, g) = (self.thin.both().map(|u| u.direction(mu)), fat.both().map(|g| g.direction(mu)));
            // Staples of staples in one direction also have the paths that go aside and back, which are the link itself.
            let sum = self.sum.both().map(|sum| sum.direction(mu));
            self.combine(sum, g, (1.0, c.one_link - 6.0 * c.lepage))?;
            for nu in others(&[mu]) {
                if !longer && c.lepage == 0.0 && c.three == 0.0 {
                    continue;
                }
                self.combine(of_v.views(), g, (0.0, c.three))?;
                if longer || c.lepage != 0.0 {
                    self.staple((mu, nu), link, Some(v.views()), (scratch.views(), 0.0))?;
                }
                if c.lepage != 0.0 {
                    self.beside((mu, nu), v.views(), g, c.lepage)?;
                    self.staple((mu, nu), g, None, (of_v.views(), c.lepage))?;
                }
                for rho in others(&[mu, nu]).into_iter().filter(|_| longer) {
                    self.combine(of_w.views(), g, (0.0, c.five))?;
                    if c.seven != 0.0 {
                        self.staple((mu, rho), v.views(), Some(w.views()), (scratch.views(), 0.0))?;
                        for sigma in others(&[mu, nu, rho]) {
                            self.beside((mu, sigma), w.views(), g, c.seven)?;
                            self.staple((mu, sigma), g, None, (of_w.views(), c.seven))?;
                        }
                    }
                    self.beside((mu, rho), v.views(), of_w.views(), 1.0)?;
                    self.staple((mu, rho), of_w.views(), None, (of_v.views(), 1.0))?;
                }
                self.beside((mu, nu), link, of_v.views(), 1.0)?;
                self.staple((mu, nu), of_v.views(), None, (sum, 1.0))?;
            }
        }
        Ok(())
    }
    /// X ← a X + b Y
    fn combine(&self, out: [Matrices<T>; 2], input: [Matrices<T>; 2], (a, b): (f64, f64)) -> Result {
        for (out, input) in out.into_iter().zip(input) {
            self.backend().launch(&CombineMatrices { out, input, a, b }, self.sites(), 1)?;
        }
        Ok(())
    }
    /// `out` = S_ν V, and `sum` ← `sum` + c S_ν V.
    fn staple(
        &self,
        (mu, nu): (u32, u32),
        input: [Matrices<T>; 2],
        out: Option<[Matrices<T>; 2]>,
        (sum, coefficient): ([Matrices<T>; 2], f64),
    ) -> Result {
        for parity in 0..2 {
            let kernel = Staple {
                links: self.thin.both(),
                input,
                // Not written where nothing is kept.
                out: out.unwrap_or(sum)[parity],
                sum: sum[parity],
                geometry: self.lattice.geometry,
                parity: parity as u32,
                mu,
                nu,
                keep: u32::from(out.is_some()),
                coefficient,
            };
            self.backend().launch(&kernel, self.sites(), 1)?;
        }
        Ok(())
    }
    /// Adds what the staple S_ν V with the gradient c G gives to the gradient of U_ν.
    fn beside(
        &self,
        (mu, nu): (u32, u32),
        path: [Matrices<T>; 2],
        gradient: [Matrices<T>; 2],
        coefficient: f64,
    ) -> Result {
        for parity in 0..2 {
            let kernel = StapleGradient {
                links: self.thin.both(),
                path,
                gradient,
                sum: self.sum.links(parity).direction(nu),
                geometry: self.lattice.geometry,
                parity: parity as u32,
                mu,
                nu,
                coefficient,
            };
            self.backend().launch(&kernel, self.sites(), 1)?;
        }
        Ok(())
    }
}
