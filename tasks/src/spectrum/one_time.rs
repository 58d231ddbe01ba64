//! Sources on one time slice. They are made, smeared and uploaded without the zeros of all other time slices.
use super::spatial::SpatialWork;
use crate::{Failure, Outcome, text};
use ferrite::Precision;
use ferrite::domain::{Domain, Result};
use ferrite::field::host::{Fermion, HostField, HostGauge, Spinor};
use ferrite::field::{FieldShape, FullField};
use ferrite::lattice::Section;
use ferrite::observables::spectrum::smearing::SmearingLinks;
use ferrite::solve::{Report, SolveFailure, for_batches};
use num_complex::Complex64;
use solvers::Unsolved;

/// Time slice within this process's part of the lattice, with the fields on it, which are zero on all other time slices; `None` if the
/// process does not have the time slice.
pub type OneTime<F> = Option<(usize, Vec<HostField<F>>)>;

/// Returns all components of a source with the profile `[z, y, x]` on the time slice `time` of the whole lattice.
///
/// # Errors
/// A process that has the time and no profile of its sites.
pub fn of_profile<F: Fermion>(part: &Section, time: usize, profile: Option<&[Complex64]>) -> Outcome<OneTime<F>> {
    let Some(section) = part.at_time(time) else { return Ok(None) };
    let lattice = section.local;
    let Some(profile) = profile else { return Err(Failure::failed("a source has no profile")) };
    if profile.len() != lattice.volume() {
        let (count, volume) = (profile.len(), lattice.volume());
        let why = format!(
            "the profile has {}, but the time slice {lattice} has {volume} sites: give a number for each site",
            text::count(count, "number")
        );
        return Err(Failure::refused(why));
    }
    let one = |component: usize| {
        let mut field = HostField::<F>::zero(lattice);
        let sites = field.numbers_mut().chunks_exact_mut(F::COMPONENTS);
        sites.zip(profile).for_each(|(site, value)| site[component] = *value);
        field
    };
    Ok(Some((time - part.origin[3], (0..F::COMPONENTS).map(one).collect())))
}

/// *Collective.* Applies a spatial operation to all components of a source on one time slice. `domain` has two time slices on each process;
/// in space it is partitioned like the links `gauge`.
///
/// # Errors
/// Failures of the device.
pub fn worked_on<F: Fermion>(
    domain: &Domain,
    gauge: &HostGauge,
    sources: OneTime<F>,
    work: SpatialWork,
) -> Result<OneTime<F>> {
    let (time, fields) = sources.map_or((None, Vec::new()), |(time, fields)| (Some(time), fields));
    let links = (gauge, time.unwrap_or(0));
    let on = SmearingLinks::of_time(domain, links, F::KIND, Precision::Double, work.momentum())?;
    let field = match time {
        Some(_) => FullField::of_time(domain, 0, &fields)?,
        None => FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, F::COMPONENTS))?,
    };
    let made = work.on(&on, field)?.at_time(0)?;
    Ok(time.map(|time| (time, made)))
}

/// *Collective.* Solves for all components of a source with `solve`, in batches of the sizes `sizes`. Gathers the solutions on the domain
/// `home`.
///
/// # Errors
/// Failures of the first batch that could not begin.
pub fn solved<F: Fermion>(
    sources: &OneTime<F>,
    sizes: &[usize],
    [domain, home]: [&Domain; 2],
    mut solve: impl FnMut(FullField) -> std::result::Result<(FullField, Report, Option<Unsolved>), SolveFailure>,
) -> std::result::Result<(FullField, Report, Option<Unsolved>), SolveFailure> {
    let mut solutions = None;
    let (report, error) = for_batches::<Spinor>(sizes, F::COMPONENTS, false, |batch| {
        let source = match sources {
            Some((time, fields)) => FullField::of_time(domain, *time, &fields[batch.clone()])?,
            None => FullField::zero(domain, FieldShape::new(F::KIND, Precision::Double, batch.len()))?,
        };
        let (found, report, error) = solve(source)?;
        FullField::gather_batch(&mut solutions, (F::COMPONENTS, batch), found, home)?;
        Ok((report, error))
    })?;
    Ok((solutions.expect("a source has components"), report, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrite::field::host::ColourVector;
    use ferrite::lattice::Lattice;

    #[test]
    fn components_of_a_profile_are_its_values_in_turn() {
        let lattice = Lattice::new([2, 2, 2, 4]).unwrap();
        let part = Section { global: lattice, origin: [0, 0, 0, 2], local: Lattice::new([2, 2, 2, 2]).unwrap() };
        let profile: Vec<Complex64> = (0..8).map(|k| Complex64::new(k.into(), 1.0)).collect();
        let (time, fields) = of_profile::<ColourVector>(&part, 3, Some(&profile)).unwrap().unwrap();
        assert_eq!((time, fields.len(), fields[0].lattice().size()), (1, 3, [2, 2, 2, 1]));
        for (component, field) in fields.iter().enumerate() {
            for (site, value) in profile.iter().enumerate() {
                for colour in 0..3 {
                    let expected = if colour == component { *value } else { Complex64::ZERO };
                    assert_eq!(field.numbers()[3 * site + colour], expected);
                }
            }
        }
        assert_eq!(of_profile::<ColourVector>(&part, 1, None).unwrap(), None);
        assert!(of_profile::<ColourVector>(&part, 2, Some(&profile[..7])).is_err());
    }
}
