//! A lattice cut over several ranks, here threads of one process, gives what the whole one gives.
use comms::Threads;
use ferrite::backend::Cpu;
use ferrite::domain::{DeviceError, Domain};
use ferrite::field::host::HostGauge;
use ferrite::field::{DeviceGauge, GaugeField, HopPhases};
use ferrite::lattice::Lattice;
use ferrite::operators::fat_links::{Improvement, PathCoefficients};
use ferrite::{LinkStorage, Precision};
use ferrite_tests::cut::{self, FormatShare, Images, LatticeInput};

type Compute = fn(&Domain, &LatticeInput, FormatShare) -> ferrite::domain::Result<Images>;

/// Extents of each rank, and the grid of ranks.
type Cut = ([usize; 4], [usize; 4]);

/// Right-hand sides: now and then three, for what does not come in pairs.
fn nrhs(number: usize) -> usize {
    if number.is_multiple_of(3) { 3 } else { 2 }
}

/// Compares all ranks of each grid with the whole lattice, whose extents are those of a rank times the grid's. On each grid
/// one of so many formats is computed: the next grid has the next ones.
fn check(cases: &[Cut], one_of: usize, compute: Compute) {
    for (number, &(local, grid)) in cases.iter().enumerate() {
        let lattice = Lattice::new(std::array::from_fn(|mu| local[mu] * grid[mu])).unwrap();
        let input = LatticeInput::new(lattice, 100 * number as u64, nrhs(number));
        let share = FormatShare { one_of, which: number };
        let whole = compute(&Domain::single(Cpu::new(Some(1)), lattice).unwrap(), &input, share).unwrap();
        let found = Threads::run(grid.iter().product(), |world| {
            let domain = cut::domain(Cpu::new(Some(1)), lattice, grid, world)?;
            let part = compute(&domain, &input, share)?;
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

/// All grids, with local extents that take turns.
fn cuts(local: [[usize; 4]; 4]) -> Vec<Cut> {
    grids().into_iter().enumerate().map(|(k, grid)| (local[k % 4], grid)).collect()
}

fn one_hop() -> Vec<Cut> {
    cuts([[4, 2, 6, 2], [2, 4, 2, 6], [6, 2, 2, 4], [2, 6, 4, 2]])
}

fn three_hops() -> Vec<Cut> {
    // Local extents of at least four where a direction is cut.
    let cases = cuts([[4, 6, 4, 8], [8, 4, 6, 4], [4, 8, 4, 6], [6, 4, 8, 4]]);
    // Where it is not cut, two are enough.
    let thin = [([2, 6, 4, 2], [1, 2, 1, 1]), ([4, 2, 2, 4], [2, 1, 1, 2]), ([2, 2, 4, 4], [1, 1, 2, 1])];
    [&cases[..], &thin].concat()
}

/// Cuts for HISQ and for asqtad. Making the links takes longest: HISQ, which makes them twice, gets a third of the grids, and asqtad the
/// others.
fn hisq_and_asqtad() -> [Vec<Cut>; 2] {
    let (hisq, asqtad): (Vec<_>, Vec<_>) = three_hops().into_iter().enumerate().partition(|(k, _)| k % 3 == 0);
    [hisq, asqtad].map(|cases| cases.into_iter().map(|(_, case)| case).collect())
}

/// One of so many formats on each grid, of operators with one hop and with three. No format goes without a direction that is
/// cut: there is a test of that.
const SHARES: [usize; 2] = [5, 2];

#[test]
fn operators_with_one_hop() {
    check(&one_hop(), SHARES[0], cut::one_hop);
}

#[test]
fn operators_with_three_hops() {
    let [hisq, asqtad] = hisq_and_asqtad();
    check(&hisq, SHARES[1], cut::hisq);
    check(&asqtad, SHARES[1], cut::asqtad);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn operators_with_one_hop_in_every_format_on_every_grid() {
    check(&one_hop(), 1, cut::one_hop);
}

#[test]
#[ignore = "exhaustive: run by cargo xtask test --full"]
fn operators_with_three_hops_in_every_format_on_every_grid() {
    check(&three_hops(), 1, cut::three_hops);
}

/// Every format is computed on grids that cut each direction, and with three right-hand sides.
#[test]
fn no_format_goes_without_a_direction_that_is_cut() {
    let [hisq, asqtad] = hisq_and_asqtad();
    for (cases, one_of) in [(one_hop(), SHARES[0]), (hisq, SHARES[1]), (asqtad, SHARES[1])] {
        for which in 0..one_of {
            let here: Vec<_> = cases.iter().enumerate().skip(which).step_by(one_of).collect();
            for mu in 0..4 {
                assert!(here.iter().any(|(_, (_, grid))| grid[mu] > 1), "{which} of {one_of}, {mu}: {here:?}");
            }
            assert!(here.iter().any(|(number, _)| nrhs(*number) == 3), "{which} of {one_of}: {here:?}");
        }
    }
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
        DeviceGauge::from_links(&thin, precision, storage, 1.0, 1, HopPhases::NONE)?;
        ferrite::domain::Result::Ok(matches!(improved, Err(DeviceError::Grid(_))))
    });
    assert_eq!(refused.unwrap(), [true, true]);
}
