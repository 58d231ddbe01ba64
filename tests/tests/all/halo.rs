//! A lattice cut over several ranks, here threads of one process, gives what the whole one gives.
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::HostGauge;
use ferrite::field::{DeviceGauge, GaugeField};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::{Improvement, PathCoefficients};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::cut::{self, Images, Input};

type Compute = fn(&Domain, &Input) -> ferrite::domain::Result<Images>;

/// Compares all ranks of each grid with the whole lattice, whose extents are those of a rank times the grid's.
fn check(cases: &[([usize; 4], [usize; 4])], compute: Compute) {
    for (number, &(local, grid)) in cases.iter().enumerate() {
        let lattice = Lattice::new(std::array::from_fn(|mu| local[mu] * grid[mu])).unwrap();
        // Now and then three right-hand sides, for what does not come in pairs.
        let nrhs = if number % 8 == 0 { 3 } else { 2 };
        let input = Input::new(lattice, 100 * number as u64, nrhs);
        let whole = compute(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &input).unwrap();
        let found = Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world)?;
            let part = compute(&domain, &input)?;
            ferrite::domain::Result::Ok(cut::differences(&whole, &part, &domain.section()))
        });
        for (rank, found) in found.unwrap().into_iter().enumerate() {
            assert!(found.is_empty(), "{local:?} on {grid:?}, rank {rank}: {found:#?}");
        }
    }
}

/// Every subset of directions cut in two, from 2 to 16 ranks, and some grids where the two neighbours are not the same.
fn grids() -> Vec<[usize; 4]> {
    let subsets = (1..16usize).map(|cut| std::array::from_fn(|mu| 1 + (cut >> mu & 1)));
    subsets.chain([[3, 1, 1, 1], [1, 3, 1, 2], [1, 1, 4, 1], [2, 1, 1, 3]]).collect()
}

#[test]
fn operators_with_one_hop() {
    let shapes = [[4, 2, 6, 2], [2, 4, 2, 6], [6, 2, 2, 4], [2, 6, 4, 2]];
    let cases: Vec<_> = grids().into_iter().enumerate().map(|(k, grid)| (shapes[k % 4], grid)).collect();
    check(&cases, cut::one_hop);
}

#[test]
fn operators_with_three_hops() {
    // Local extents of at least four where a direction is cut.
    let shapes = [[4, 6, 4, 8], [8, 4, 6, 4], [4, 8, 4, 6], [6, 4, 8, 4]];
    let cases: Vec<_> = grids().into_iter().enumerate().map(|(k, grid)| (shapes[k % 4], grid)).collect();
    // Where it is not cut, two are enough.
    let thin = [([2, 6, 4, 2], [1, 2, 1, 1]), ([4, 2, 2, 4], [2, 1, 1, 2]), ([2, 2, 4, 4], [1, 1, 2, 1])];
    check(&[&cases[..], &thin].concat(), cut::three_hops);
}

#[test]
fn hops_beyond_the_neighbour_are_refused() {
    let lattice = Lattice::new([4, 4, 4, 4]).unwrap();
    let refused = Threads::run(2, |world| {
        let domain = cut::domain(Cpu::new(Some(1)), lattice, [1, 1, 1, 2], world)?;
        let thin = GaugeField::upload(&domain, &HostGauge::unit(domain.local()))?;
        let (precision, storage) = (Precision::Double, LinkStorage::FULL);
        let improved = Improvement::from_paths(&thin, &PathCoefficients::asqtad(0.9))?.pack(precision, storage);
        // Hops over one link are possible.
        DeviceGauge::from_thin(&thin, precision, storage, 1.0, 1)?;
        ferrite::domain::Result::Ok(matches!(improved, Err(DeviceError::Grid(_))))
    });
    assert_eq!(refused.unwrap(), [true, true]);
}
