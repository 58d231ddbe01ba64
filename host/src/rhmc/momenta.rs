//! Momenta of links on a device.
use crate::backend::{Buffer, view};
use crate::domain::{Domain, Result};
use crate::field::ThinGauge;
use crate::field::host::{HostGauge, Matrix};
use gpu_kernels::field::Momenta;
use gpu_kernels::momenta::{AddMomenta, Distance, DrawMomenta, KineticEnergy, MoveLinks, PackMomenta, UnpackMomenta};
use gpu_kernels::storage::{Element, TILE};
use std::marker::PhantomData;

/// A traceless anti-Hermitian matrix for each link, its momentum or a force, in precision `T`.
pub struct MomentumField<T = f64> {
    domain: Domain,
    halves: [Buffer; 2],
    format: PhantomData<T>,
}

impl<T: Element> MomentumField<T> {
    /// Zero everywhere.
    pub fn zero(domain: &Domain) -> Result<Self> {
        let bytes = Self::bytes_for(domain.local().half_volume());
        let half = || domain.backend().allocate(bytes, &format!("momenta on {}", domain.local()));
        Ok(MomentumField { domain: domain.clone(), halves: [half()?, half()?], format: PhantomData })
    }
    /// Bytes for the links that start at `sites` sites of one parity.
    pub fn bytes_for(sites: usize) -> usize {
        sites.div_ceil(TILE) * TILE * Momenta::<T>::SITE_BYTES
    }
    /// Where the field lives.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Kernels take sites of several fields, so that these have to be there in all of them.
    pub(crate) fn expect_on(&self, domain: &Domain) -> Result {
        domain.expect_here("a field of momenta", &self.domain)
    }
    /// The momenta of the links that start at the sites of `parity`. The view must not outlive the field.
    pub(crate) fn view(&self, parity: usize) -> Momenta<T> {
        view::momenta(&self.halves[parity], self.domain.half_sites() as usize)
    }
    /// Draws all momenta with the weight exp(−½ Σ_jk |P_jk|²): the same for the same seed and trajectory, whatever the
    /// process grid.
    pub fn draw(&mut self, seed: u64, trajectory: u32) -> Result {
        let (geometry, position) = (self.domain.geometry(), self.domain.position());
        for parity in 0..2 {
            let (momenta, parity) = (self.view(parity), parity as u32);
            let kernel = DrawMomenta { momenta, geometry, position, parity, trajectory, seed };
            self.domain.backend().launch(&kernel, self.domain.half_sites(), 1)?;
        }
        Ok(())
    }
    /// *Collective.* ½ Σ_{x,μ} Σ_jk |P_jk|² less its mean, 4 for each link.
    pub fn kinetic_energy(&self) -> Result<f64> {
        for parity in 0..2 {
            let kernel = KineticEnergy { momenta: self.view(parity) };
            self.domain.backend().reduce(&kernel, self.domain.half_sites(), 1, parity)?;
        }
        let mut sums = [0.0; 2];
        self.domain.sums(&mut sums)?;
        Ok(sums[0] + sums[1])
    }
    /// A copy.
    pub fn copied(&self) -> Result<Self> {
        let mut copy = Self::zero(&self.domain)?;
        copy.copy_from(self)?;
        Ok(copy)
    }
    /// Takes over other momenta. An error if they are on another lattice.
    pub fn copy_from(&mut self, other: &Self) -> Result {
        other.expect_on(&self.domain)?;
        let bytes = Self::bytes_for(self.domain.local().half_volume());
        for (to, from) in self.halves.iter_mut().zip(&other.halves) {
            self.domain.backend().copy(from, to, bytes)?;
        }
        Ok(())
    }
    /// P ← a P + b Q. An error if Q is on another lattice.
    pub fn add(&mut self, a: f64, b: f64, other: &Self) -> Result {
        other.expect_on(&self.domain)?;
        for parity in 0..2 {
            let kernel = AddMomenta { momenta: self.view(parity), other: other.view(parity), a, b };
            self.domain.backend().launch(&kernel, self.domain.half_sites(), 4)?;
        }
        Ok(())
    }
    /// P ← a P
    pub fn scale(&mut self, a: f64) -> Result {
        for parity in 0..2 {
            let momenta = self.view(parity);
            let kernel = AddMomenta { momenta, other: momenta, a, b: 0.0 };
            self.domain.backend().launch(&kernel, self.domain.half_sites(), 4)?;
        }
        Ok(())
    }
    /// *Collective.* U_μ(x) ← exp(ε P_μ(x)) U_μ(x); with `unitarise` links are made unitary afterwards, in double. An
    /// error if the links are on another lattice.
    pub fn move_links(&self, links: &mut ThinGauge<T>, step: f64, unitarise: bool) -> Result {
        self.expect_on(links.domain())?;
        for parity in 0..2 {
            let kernel = MoveLinks {
                links: links.links(parity),
                momenta: self.view(parity),
                lattice: links.bordered(),
                parity: parity as u32,
                unitarise: u32::from(unitarise),
                step,
            };
            self.domain.backend().launch(&kernel, self.domain.half_sites(), 4)?;
        }
        links.fill_border()
    }
    /// The traceless anti-Hermitian parts of host matrices.
    pub fn upload(domain: &Domain, matrices: &HostGauge) -> Result<Self> {
        domain.expect("a field of momenta", matrices.lattice())?;
        let field = Self::zero(domain)?;
        let data: &[u8] = bytemuck::cast_slice(matrices.links());
        let mut staged = domain.backend().allocate(data.len(), "the upload of momenta")?;
        domain.backend().upload(data, &mut staged, 0)?;
        for parity in 0..2 {
            let host = view::host_array(&staged, 9 * matrices.links().len());
            let (momenta, geometry) = (field.view(parity), domain.geometry());
            let kernel = PackMomenta { host, momenta, geometry, parity: parity as u32 };
            domain.backend().launch(&kernel, domain.half_sites(), 4)?;
        }
        Ok(field)
    }
    /// Copies the momenta to the host, as matrices.
    pub fn download(&self) -> Result<HostGauge> {
        let mut matrices = vec![Matrix::default(); 4 * self.domain.local().volume()];
        let count = 9 * matrices.len();
        let data: &mut [u8] = bytemuck::cast_slice_mut(&mut matrices);
        let staged = self.domain.backend().allocate(data.len(), "the download of momenta")?;
        for parity in 0..2 {
            let host = view::host_array(&staged, count);
            let (momenta, geometry) = (self.view(parity), self.domain.geometry());
            let kernel = UnpackMomenta { host, momenta, geometry, parity: parity as u32 };
            self.domain.backend().launch(&kernel, self.domain.half_sites(), 4)?;
        }
        self.domain.backend().download(&staged, 0, data)?;
        Ok(HostGauge::from_links(self.domain.local(), matrices))
    }
}

/// *Collective.* \[√(Σ ‖U − V‖² / N), √(Σ ‖P − Q‖² / N)\] over all links, N = 8 for each link being the number of degrees
/// of freedom: how far two states are apart (Bonati et al. 2011, eqs. 14 and 15). An
/// error if they are on different lattices.
pub fn distance<T: Element>(links: [&ThinGauge<T>; 2], momenta: [&MomentumField<T>; 2]) -> Result<[f64; 2]> {
    let domain = links[0].domain();
    domain.expect_here("a field of links", links[1].domain())?;
    momenta.iter().try_for_each(|momenta| momenta.expect_on(domain))?;
    for parity in 0..2 {
        let kernel = Distance {
            links: links.map(|links| links.links(parity)),
            momenta: momenta.map(|momenta| momenta.view(parity)),
            lattice: links[0].bordered(),
            parity: parity as u32,
        };
        domain.backend().reduce(&kernel, domain.half_sites(), 1, 2 * parity)?;
    }
    let mut sums = [0.0; 4];
    domain.sums(&mut sums)?;
    let degrees = 32.0 * domain.global().volume() as f64;
    Ok([((sums[0] + sums[2]) / degrees).sqrt(), ((sums[1] + sums[3]) / degrees).sqrt()])
}
