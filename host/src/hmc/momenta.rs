//! Momenta of links on a device.
use crate::backend::{DeviceBuffer, view};
use crate::domain::{DeviceError, Domain, Result};
use crate::field::GaugeField;
use crate::field::host::{HostGauge, Matrix};
use gpu_kernels::field::Momenta;
use gpu_kernels::momenta::{
    ADD_MOMENTA, AddMomenta, DISTANCE, DRAW_MOMENTA, Distance, DrawMomenta, KINETIC_ENERGY, KineticEnergy, MOVE_LINKS,
    MoveLinks, PACK_MOMENTA, PackMomenta, UNPACK_MOMENTA, UnpackMomenta,
};
use gpu_kernels::storage::padded;
use gpu_kernels::{Format, Precision};

/// Field with a traceless anti-Hermitian matrix for each link, a momentum or a force, in double or single precision.
pub struct MomentumField {
    domain: Domain,
    halves: [DeviceBuffer; 2],
    precision: Precision,
}

impl MomentumField {
    /// Allocates momenta that are zero.
    ///
    /// # Errors
    /// [`DeviceError::OtherFormat`] for a precision of 16 bits, and failures of the device.
    pub fn zero(domain: &Domain, precision: Precision) -> Result<Self> {
        GaugeField::expect_kept_in(precision)?;
        let bytes = Self::bytes_for(precision, domain.local().half_volume());
        let half = || domain.backend().allocate(bytes, &format!("momenta on {}", domain.local()));
        Ok(MomentumField { domain: domain.clone(), halves: [half()?, half()?], precision })
    }
    /// Returns the size in bytes of the momenta of the links that start at `sites` sites of one parity, four for each site.
    ///
    /// # Panics
    /// For a precision of 16 bits.
    pub fn bytes_for(precision: Precision, sites: usize) -> usize {
        padded(sites) * Self::site_bytes(precision)
    }
    pub(super) fn site_bytes(precision: Precision) -> usize {
        match precision {
            Precision::Double => Momenta::site_bytes::<f64>(),
            Precision::Single => Momenta::site_bytes::<f32>(),
            Precision::Half | Precision::Fp16 => panic!("momenta have 64 or 32 bits, not 16"),
        }
    }
    /// Returns the domain on which the field is stored.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
    /// Returns the precision of the stored numbers.
    pub fn precision(&self) -> Precision {
        self.precision
    }
    /// Returns the format of kernels for the momenta.
    fn format(&self) -> Format {
        Format::of(self.precision)
    }
    /// Checks that the momenta are on a domain. Kernels access the same sites of several fields, so all fields must contain these sites.
    pub(crate) fn expect_on(&self, domain: &Domain) -> Result {
        domain.expect_here("a field of momenta", &self.domain)
    }
    /// Checks that the momenta are on a domain and in a precision.
    pub(super) fn expect_like(&self, domain: &Domain, precision: Precision) -> Result {
        self.expect_on(domain)?;
        if self.precision == precision {
            return Ok(());
        }
        Err(DeviceError::OtherFormat { found: self.format(), expected: Format::of(precision) })
    }
    /// Returns the momenta of the links that start at the sites of `parity`. The view must not outlive the field.
    pub(crate) fn view(&self, parity: usize) -> Momenta {
        let (sites, bytes) = (self.domain.half_sites() as usize, Self::site_bytes(self.precision));
        view::momenta(&self.halves[parity], sites, bytes)
    }
    /// Draws all momenta with the weight exp(−½ Σ_jk |P_jk|²). They depend on the seed and the trajectory, but not on the process grid.
    pub fn draw(&mut self, seed: u64, trajectory: u32) -> Result {
        let (geometry, position) = (self.domain.geometry(), self.domain.position());
        for parity in 0..2 {
            let (momenta, parity) = (self.view(parity), parity as u32);
            let kernel = DrawMomenta { momenta, geometry, position, parity, trajectory, seed };
            self.domain.backend().launch(&DRAW_MOMENTA, self.format(), &kernel, self.domain.half_sites(), 1)?;
        }
        Ok(())
    }
    /// *Collective.* Computes ½ Σ_{x,μ} Σ_jk |P_jk|² minus its mean, which is 4 for each link.
    pub fn kinetic_energy(&self) -> Result<f64> {
        for parity in 0..2 {
            let kernel = KineticEnergy { momenta: self.view(parity) };
            let size = (self.domain.half_sites(), 1);
            self.domain.backend().reduce(&KINETIC_ENERGY, self.format(), &kernel, size, parity)?;
        }
        let mut sums = [0.0; 2];
        self.domain.sums(&mut sums)?;
        Ok(sums[0] + sums[1])
    }
    /// Returns a copy of the momenta.
    pub fn copied(&self) -> Result<Self> {
        let mut copy = Self::zero(&self.domain, self.precision)?;
        copy.copy_from(self)?;
        Ok(copy)
    }
    /// Copies `other` into these momenta. Fails if `other` is on another lattice or in another precision.
    pub fn copy_from(&mut self, other: &Self) -> Result {
        other.expect_like(&self.domain, self.precision)?;
        let bytes = Self::bytes_for(self.precision, self.domain.local().half_volume());
        for (to, from) in self.halves.iter_mut().zip(&other.halves) {
            self.domain.backend().copy(from, to, bytes)?;
        }
        Ok(())
    }
    /// Computes P ← a P + b Q, where Q is `other`. Fails if Q is on another lattice or in another precision.
    pub fn add(&mut self, a: f64, b: f64, other: &Self) -> Result {
        other.expect_like(&self.domain, self.precision)?;
        for parity in 0..2 {
            let kernel = AddMomenta { momenta: self.view(parity), other: other.view(parity), a, b };
            self.domain.backend().launch(&ADD_MOMENTA, self.format(), &kernel, self.domain.half_sites(), 4)?;
        }
        Ok(())
    }
    /// Computes P ← a P.
    pub fn scale(&mut self, a: f64) -> Result {
        for parity in 0..2 {
            let momenta = self.view(parity);
            let kernel = AddMomenta { momenta, other: momenta, a, b: 0.0 };
            self.domain.backend().launch(&ADD_MOMENTA, self.format(), &kernel, self.domain.half_sites(), 4)?;
        }
        Ok(())
    }
    /// *Collective.* Computes U_μ(x) ← exp(ε P_μ(x)) U_μ(x), where ε is `step`. If `unitarise` is set, the links are made unitary
    /// afterwards, in double precision. Fails if the links are on another lattice or in another precision.
    pub fn move_links(&self, links: &mut GaugeField, step: f64, unitarise: bool) -> Result {
        self.expect_like(links.domain(), links.precision())?;
        for parity in 0..2 {
            let kernel = MoveLinks {
                links: links.links(parity),
                momenta: self.view(parity),
                lattice: links.bordered(),
                parity: parity as u32,
                unitarise: u32::from(unitarise),
                step,
            };
            self.domain.backend().launch(&MOVE_LINKS, self.format(), &kernel, self.domain.half_sites(), 4)?;
        }
        links.fill_border()
    }
    /// Creates momenta on the device, in `precision`, from the traceless anti-Hermitian parts of matrices on the host.
    pub fn upload(domain: &Domain, matrices: &HostGauge, precision: Precision) -> Result<Self> {
        domain.expect("a field of momenta", matrices.lattice())?;
        let field = Self::zero(domain, precision)?;
        let data: &[u8] = bytemuck::cast_slice(matrices.links());
        let mut buffer = domain.backend().allocate(data.len(), "the upload of momenta")?;
        domain.backend().upload(data, &mut buffer, 0)?;
        for parity in 0..2 {
            let host = view::host_array(&buffer, 9 * matrices.links().len());
            let (momenta, geometry) = (field.view(parity), domain.geometry());
            let kernel = PackMomenta { host, momenta, geometry, parity: parity as u32 };
            domain.backend().launch(&PACK_MOMENTA, field.format(), &kernel, domain.half_sites(), 4)?;
        }
        Ok(field)
    }
    /// Copies the momenta to the host, as one matrix in double precision for each link.
    pub fn download(&self) -> Result<HostGauge> {
        let mut matrices = vec![Matrix::default(); 4 * self.domain.local().volume()];
        let count = 9 * matrices.len();
        let data: &mut [u8] = bytemuck::cast_slice_mut(&mut matrices);
        let buffer = self.domain.backend().allocate(data.len(), "the download of momenta")?;
        for parity in 0..2 {
            let host = view::host_array(&buffer, count);
            let (momenta, geometry) = (self.view(parity), self.domain.geometry());
            let kernel = UnpackMomenta { host, momenta, geometry, parity: parity as u32 };
            self.domain.backend().launch(&UNPACK_MOMENTA, self.format(), &kernel, self.domain.half_sites(), 4)?;
        }
        self.domain.backend().download(&buffer, 0, data)?;
        Ok(HostGauge::from_links(self.domain.local(), matrices))
    }
}

/// *Collective.* Computes the distances √(Σ ‖U − V‖² / N) between two sets of links and √(Σ ‖P − Q‖² / N) between two sets of momenta. N is
/// the number of degrees of freedom, 8 for each link (Bonati et al. 2011, eqs. 14 and 15). Fails if the fields are on different lattices or
/// in different precisions.
pub fn distance(links: [&GaugeField; 2], momenta: [&MomentumField; 2]) -> Result<[f64; 2]> {
    let (domain, precision) = (links[0].domain(), links[0].precision());
    domain.expect_here("a field of links", links[1].domain())?;
    links[1].expect_in(precision)?;
    momenta.iter().try_for_each(|momenta| momenta.expect_like(domain, precision))?;
    for parity in 0..2 {
        let kernel = Distance {
            links: links.map(|links| links.links(parity)),
            momenta: momenta.map(|momenta| momenta.view(parity)),
            lattice: links[0].bordered(),
            parity: parity as u32,
        };
        domain.backend().reduce(&DISTANCE, Format::of(precision), &kernel, (domain.half_sites(), 1), 2 * parity)?;
    }
    let mut sums = [0.0; 4];
    domain.sums(&mut sums)?;
    let degrees = 32.0 * domain.global().volume() as f64;
    Ok([((sums[0] + sums[2]) / degrees).sqrt(), ((sums[1] + sums[3]) / degrees).sqrt()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendError, Cpu};
    use crate::lattice::Lattice;

    #[test]
    fn two_threads_do_not_mix_their_sums() {
        let domain = Domain::single(Cpu::new(Some(1)), Lattice::new([4, 4, 4, 4]).unwrap()).unwrap();
        let mut momenta = MomentumField::zero(&domain, Precision::Double).unwrap();
        momenta.draw(1, 1).unwrap();
        let energy = momenta.kinetic_energy().unwrap();
        let elsewhere = || std::thread::scope(|s| s.spawn(|| momenta.kinetic_energy()).join().unwrap());
        // One after the other is no mistake.
        assert_eq!(elsewhere().unwrap(), energy);

        let backend = domain.backend();
        let reduce = || {
            let (format, kernel) = (Format::of(Precision::Double), KineticEnergy { momenta: momenta.view(0) });
            backend.reduce(&KINETIC_ENERGY, format, &kernel, (domain.half_sites(), 1), 0)
        };
        reduce().unwrap();
        let refused = elsewhere().unwrap_err();
        assert!(matches!(refused, DeviceError::Backend(BackendError::Shared { .. })), "{refused}");
        // The first thread's sums are untouched, and the other one can continue when they are fetched.
        let mut even = [0.0];
        backend.sums(&mut even).unwrap();
        assert!(even[0] != 0.0 && even[0].is_finite());
        assert_eq!(elsewhere().unwrap(), energy);

        // A thread that ends without its sums does not block others.
        std::thread::scope(|s| s.spawn(|| reduce().unwrap()).join().unwrap());
        assert_eq!(elsewhere().unwrap(), energy);
    }
}
