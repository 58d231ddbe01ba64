//! Processes that read or write a file together: their parts of the field, and a common result for all.
use super::error::Problem;
use crate::lattice::{Lattice, Section};
use crate::network::Network;
use crate::system::atomic::SystemError;
use std::borrow::Cow;
use std::io;

/// Parts of a field on all processes.
pub(crate) struct FileParts<'a> {
    pub network: &'a dyn Network,
    /// Sections of the processes in the order of their ranks.
    pub sections: Vec<Section>,
}

impl<'a> FileParts<'a> {
    /// *Collective.* Exchanges the sections of all processes, or their errors. Fails on all processes if one has an error, if the lattices
    /// of its fields (`fields`) differ from the lattice of its section, or if the sections do not make up the whole lattice.
    pub fn meet<T>(
        network: &'a dyn Network,
        section: &Section,
        fields: &[Lattice],
        mine: Result<T, SystemError>,
    ) -> Result<(T, Self), Problem> {
        let fits = fields.iter().all(|field| *field == section.local);
        let Section { global, origin, local } = section;
        let numbers = [global.size(), *origin, local.size(), [usize::from(fits), 0, 0, 0]];
        let bytes: Vec<u8> = numbers.iter().flatten().flat_map(|n| (*n as u64).to_le_bytes()).collect();
        let (mine, all) = gather(network, mine, |_| bytes)?;
        let mut sections = Vec::new();
        for (rank, bytes) in all.iter().enumerate() {
            let words: Vec<usize> = bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b) as usize).collect();
            let ([global, origin, local, [fits, ..]], _) = words
                .as_chunks::<4>()
                .0
                .split_first_chunk()
                .ok_or_else(|| Problem::Parts { why: format!("rank {rank} sent no part") })?;
            let wrong = |source| Problem::Lattice { place: "the part of a process", source };
            let lattice = |size: &[usize; 4]| Lattice::of_any_extents(*size).map_err(wrong);
            sections.push(Section { global: lattice(global)?, origin: *origin, local: lattice(local)? });
            if *fits == 0 {
                return Err(Problem::Parts {
                    why: format!(
                        "the extents of the field of rank {rank} differ from those of its part; give a field on the \
                         part of the rank"
                    ),
                });
            }
        }
        check_cover(&sections)?;
        Ok((mine, Self { network, sections }))
    }
    /// Returns this process's section.
    pub fn mine(&self) -> &Section {
        &self.sections[self.network.rank()]
    }
    /// *Collective.* Returns the `numbers` of each process, in the order of the ranks.
    pub fn collect<const N: usize>(&self, numbers: [u64; N]) -> Result<Vec<[u64; N]>, Problem> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let all = self.network.all_gather(&bytes)?;
        let of = |bytes: &Vec<u8>, k: usize| bytes.as_chunks().0.get(k).map_or(0, |b| u64::from_le_bytes(*b));
        Ok(all.iter().map(|bytes| std::array::from_fn(|k| of(bytes, k))).collect())
    }
}

/// Checks that every site is in exactly one section.
fn check_cover(sections: &[Section]) -> Result<(), Problem> {
    let global = sections[0].global;
    for (rank, section) in sections.iter().enumerate() {
        let wrong = |why: String| Err(Problem::Parts { why });
        if section.global != global {
            return wrong(format!(
                "rank 0 has a part of a {global} lattice, but rank {rank} has a part of a {} lattice; give \
                 parts of one lattice",
                section.global
            ));
        }
        let inside = |mu: usize| section.origin[mu].checked_add(section.local.size()[mu]);
        if (0..4).any(|mu| inside(mu).is_none_or(|end| end > global.size()[mu])) {
            return wrong(format!(
                "the part of rank {rank} extends outside the {global} lattice; give a part inside the lattice"
            ));
        }
        let shared = |other: &Section| section.cuboid().intersection(&other.cuboid()).is_some();
        if let Some(other) = sections[..rank].iter().position(shared) {
            return wrong(format!(
                "the parts of rank {other} and rank {rank} overlap; give each site to one rank only"
            ));
        }
    }
    if sections.iter().map(|section| section.local.volume()).sum::<usize>() != global.volume() {
        return Err(Problem::Parts {
            why: format!("some sites of the {global} lattice belong to no process; give each site to a rank"),
        });
    }
    Ok(())
}

/// *Collective.* Returns the encoded values of all processes in the order of their ranks. If any process has an error, all get the error of
/// the lowest such rank, so that no process continues alone.
pub(crate) fn gather<T>(
    network: &dyn Network,
    mine: Result<T, SystemError>,
    encode: impl FnOnce(&T) -> Vec<u8>,
) -> Result<(T, Vec<Vec<u8>>), Problem> {
    if network.size() == 1 {
        let mine = mine?;
        let answers = encode(&mine);
        return Ok((mine, vec![answers]));
    }
    let message = match &mine {
        Ok(mine) => [&[0], &encode(mine)[..]].concat(),
        Err(trouble) => trouble.to_bytes(),
    };
    let mut all = network.all_gather(&message)?;
    for (rank, message) in all.iter_mut().enumerate() {
        if message.first() != Some(&0) {
            return Err(SystemError::from_bytes(message, rank).into());
        }
        message.remove(0);
    }
    Ok((mine?, all))
}

/// *Collective.* Returns the value of this process, or on all processes the error of the lowest rank that has one.
pub(crate) fn agree<T>(network: &dyn Network, mine: Result<T, SystemError>) -> Result<T, Problem> {
    Ok(gather(network, mine, |_| Vec::new())?.0)
}

impl SystemError {
    /// Encodes the error as bytes. They are not empty and do not start with 0.
    fn to_bytes(&self) -> Vec<u8> {
        let (kind, source) = match self.source.raw_os_error() {
            Some(code) => (1, code.to_le_bytes().to_vec()),
            None => (2, self.source.to_string().into_bytes()),
        };
        [&[kind, self.action.len() as u8], self.action.as_bytes(), &source].concat()
    }
    /// Decodes the error of another process. The message names the rank unless it is 0, which appears to users as the only process.
    fn from_bytes(bytes: &[u8], rank: usize) -> Self {
        let (head, rest) = bytes.split_first_chunk().unwrap_or((&[2, 0], &[]));
        let (action, source) = rest.split_at_checked(usize::from(head[1])).unwrap_or_default();
        let source = match (head[0], source.first_chunk()) {
            (1, Some(code)) => io::Error::from_raw_os_error(i32::from_le_bytes(*code)),
            _ => io::Error::other(String::from_utf8_lossy(source).into_owned()),
        };
        let source =
            if rank == 0 { source } else { io::Error::new(source.kind(), format!("{source}, on rank {rank}")) };
        Self { action: Cow::Owned(String::from_utf8_lossy(action).into_owned()), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comms::{Communicator, Threads};

    #[test]
    fn the_lowest_rank_in_trouble_speaks_for_all() {
        let answers = |bad: &[usize]| {
            let said = Threads::run(4, |world| {
                let me = Communicator::rank(&world);
                let missing = || io::Error::from_raw_os_error(2);
                let source = || if me == 2 { io::Error::other("gone") } else { missing() };
                let mine = if bad.contains(&me) {
                    Err(SystemError { action: "open".into(), source: source() })
                } else {
                    Ok(me)
                };
                let result = gather(&world, mine, |me| vec![*me as u8; *me]);
                Ok::<_, io::Error>(match result {
                    Ok((mine, all)) => format!("{} {all:?}", mine == me),
                    Err(problem) => problem.to_string(),
                })
            });
            let said = said.unwrap();
            assert!(said.iter().all(|s| *s == said[0]), "{said:?}");
            said[0].clone()
        };
        let alone = Problem::io("open")(io::Error::from_raw_os_error(2)).to_string();
        assert_eq!(answers(&[]), "true [[], [1], [2, 2], [3, 3, 3]]");
        assert_eq!(answers(&[0, 1, 2, 3]), alone);
        assert_eq!(answers(&[3, 1]), format!("{alone}, on rank 1"));
        assert_eq!(answers(&[3, 2]), "cannot open: gone, on rank 2");
    }
}
