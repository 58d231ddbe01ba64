//! A part of a gauge field on the host, with the links of neighbouring parts that its plaquettes need.
use crate::field::host::{HostGauge, Matrix};
use crate::lattice::{Cuboid, Section};
use crate::network::{HostBuffer, Message, Network};
use comms::{CommError, Tag};

/// First tag of the messages; each direction has its own. The tags of the halo exchange of fields are smaller.
const TAG: Tag = 0x4600;

/// Links of a box, and links of the sites one step ahead of it in partitioned directions.
pub(crate) struct GaugePart<'a> {
    pub gauge: &'a HostGauge,
    /// Links one step ahead in direction μ, in the order of [`Section::ahead`]; `None` if this process has them in its box.
    ahead: [Option<(Cuboid, Vec<Matrix>)>; 4],
}

impl<'a> GaugePart<'a> {
    /// Wraps a gauge field that is complete on this process.
    pub fn whole(gauge: &'a HostGauge) -> Self {
        GaugePart { gauge, ahead: [const { None }; 4] }
    }
    /// *Collective.* Makes the part of this process. `sections` lists the sections of all ranks. The links of sites one step ahead of the
    /// box are received from the processes that have them.
    pub fn exchange(gauge: &'a HostGauge, sections: &[Section], network: &dyn Network) -> Result<Self, CommError> {
        let mut part = Self::whole(gauge);
        for (mu, slot) in part.ahead.iter_mut().enumerate() {
            *slot = layer(gauge, mu, sections, network)?;
        }
        Ok(part)
    }
    /// Returns the four links that start one step forward of `site` in direction `mu`. The coordinates of `site` count in the box.
    pub fn forward(&self, site: [usize; 4], mu: usize) -> &[Matrix] {
        let lattice = self.gauge.lattice();
        let extent = lattice.size()[mu];
        let mut to = site;
        to[mu] = if site[mu] + 1 < extent { site[mu] + 1 } else { 0 };
        let (links, index) = match &self.ahead[mu] {
            Some((layer, links)) if to[mu] == 0 => (&links[..], Cuboid { origin: [0; 4], ..*layer }.index(to)),
            _ => (self.gauge.links(), lattice.index(to)),
        };
        &links[4 * index..][..4]
    }
}

/// *Collective.* Exchanges the links ahead in direction `mu`: receives those of this process, and sends those that other processes need.
fn layer(
    gauge: &HostGauge,
    mu: usize,
    sections: &[Section],
    network: &dyn Network,
) -> Result<Option<(Cuboid, Vec<Matrix>)>, CommError> {
    let tag = TAG + mu as Tag;
    let mine = &sections[network.rank()];
    let wanted = mine.ahead(mu);
    let mut receptions: Vec<(Cuboid, Box<dyn Message>)> = Vec::new();
    for (from, other) in sections.iter().enumerate() {
        if let Some(common) = wanted.and_then(|wanted| wanted.intersection(&other.cuboid())) {
            let memory = vec![0u8; common.volume() * size_of::<[Matrix; 4]>()];
            let mut message = network.receiver(from, tag, HostBuffer(Box::new(memory)))?;
            message.start()?;
            receptions.push((common, message));
        }
    }
    let mut sends: Vec<Box<dyn Message>> = Vec::new();
    for (to, other) in sections.iter().enumerate() {
        if let Some(common) = other.ahead(mu).and_then(|wanted| wanted.intersection(&mine.cuboid())) {
            let mut memory = Vec::with_capacity(common.volume() * size_of::<[Matrix; 4]>());
            for site in 0..common.volume() {
                let index = mine.cuboid().index(common.site(site));
                memory.extend_from_slice(bytemuck::cast_slice(&gauge.links()[4 * index..][..4]));
            }
            let mut message = network.sender(to, tag, HostBuffer(Box::new(memory)))?;
            message.start()?;
            sends.push(message);
        }
    }
    let Some(wanted) = wanted else {
        sends.iter_mut().try_for_each(|message| message.wait())?;
        return Ok(None);
    };
    let mut links = vec![Matrix::default(); 4 * wanted.volume()];
    for (common, message) in &mut receptions {
        message.wait()?;
        let bytes = message.bytes()?.chunks_exact(size_of::<[Matrix; 4]>());
        for (site, bytes) in bytes.enumerate() {
            let index = wanted.index(common.site(site));
            bytemuck::cast_slice_mut(&mut links[4 * index..][..4]).copy_from_slice(bytes);
        }
    }
    sends.iter_mut().try_for_each(|message| message.wait())?;
    Ok(Some((wanted, links)))
}
