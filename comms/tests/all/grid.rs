//! Process grids: bijections, neighbours, the best grid, refusals.

use comms::{Direction, Misfit, ProcessGrid};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ranks_and_places_are_one_to_one(dims in prop::array::uniform4(1usize..6)) {
        let grid = ProcessGrid::new(dims).unwrap();
        let mut seen = vec![false; grid.size()];
        for (rank, seen) in seen.iter_mut().enumerate() {
            let place = grid.coordinates(rank);
            prop_assert!((0..4).all(|mu| place[mu] < dims[mu]));
            prop_assert_eq!(grid.rank(place), rank);
            *seen = true;
        }
        prop_assert!(seen.iter().all(|s| *s));
    }

    #[test]
    fn neighbours_wrap_and_are_mutual(dims in prop::array::uniform4(1usize..5), mu in 0usize..4, pick in 0usize..1000) {
        let grid = ProcessGrid::new(dims).unwrap();
        let start = pick % grid.size();
        for direction in Direction::BOTH {
            let next = grid.neighbour(start, mu, direction);
            prop_assert_eq!(grid.neighbour(next, mu, direction.opposite()), start);
            let around = (0..dims[mu]).fold(start, |rank, _| grid.neighbour(rank, mu, direction));
            prop_assert_eq!(around, start);
            prop_assert_eq!(next == start, dims[mu] == 1);
        }
    }

    #[test]
    fn boxes_tile_the_lattice_with_matching_parity(
        dims in prop::array::uniform4(1usize..4),
        half in prop::array::uniform4(1usize..3),
    ) {
        let grid = ProcessGrid::new(dims).unwrap();
        let global: [usize; 4] = std::array::from_fn(|mu| 2 * half[mu] * dims[mu]);
        grid.check(global, 1).unwrap();
        let local = grid.local_extents(global);
        let mut covered = vec![0u8; global.iter().product()];
        for rank in 0..grid.size() {
            let o = grid.origin(rank, global);
            prop_assert_eq!(o.iter().sum::<usize>() % 2, 0);
            for t in 0..local[3] { for z in 0..local[2] { for y in 0..local[1] { for x in 0..local[0] {
                let site = [x + o[0], y + o[1], z + o[2], t + o[3]];
                let index = site[0] + global[0] * (site[1] + global[1] * (site[2] + global[2] * site[3]));
                covered[index] += 1;
            }}}}
        }
        prop_assert!(covered.iter().all(|c| *c == 1));
    }

    #[test]
    fn the_best_grid_fits_and_no_fitting_grid_has_less_surface(
        size in 1usize..65,
        half in prop::array::uniform4(1usize..9),
        hops in 0usize..4,
    ) {
        // Without an operator extents may be odd, and so may be parts.
        let global = if hops == 0 { half } else { half.map(|h| 2 * h) };
        let fits = |g: &ProcessGrid| (0..4).all(|mu| {
            let (l, d) = (global[mu], g.dims()[mu]);
            l % d == 0 && (hops == 0 || (l / d) % 2 == 0) && (d == 1 || l / d >= hops)
        });
        let mut least = None;
        for gx in 1..=size { for gy in 1..=size / gx { for gz in 1..=size / gx / gy {
            let gt = size / gx / gy / gz;
            if gx * gy * gz * gt != size { continue; }
            let grid = ProcessGrid::new([gx, gy, gz, gt]).unwrap();
            if fits(&grid) {
                let surface = grid.surface(global);
                least = Some(least.map_or(surface, |s: usize| s.min(surface)));
            }
        }}}
        match ProcessGrid::best(size, global, hops) {
            Ok(grid) => {
                prop_assert_eq!(grid.size(), size);
                prop_assert!(grid.check_for(size, global, hops).is_ok());
                prop_assert!(fits(&grid));
                prop_assert_eq!(Some(grid.surface(global)), least);
            }
            Err(error) => {
                prop_assert_eq!(least, None);
                prop_assert!(error.fitting.iter().all(|g| fits(g) && g.size() < size));
                prop_assert!(!error.fitting.is_empty()); // one process always fits an even lattice
            }
        }
    }
}

#[test]
fn x_varies_fastest() {
    let grid = ProcessGrid::new([2, 3, 4, 5]).unwrap();
    assert_eq!(grid.coordinates(1), [1, 0, 0, 0]);
    assert_eq!(grid.coordinates(2), [0, 1, 0, 0]);
    assert_eq!(grid.coordinates(6), [0, 0, 1, 0]);
    assert_eq!(grid.coordinates(24), [0, 0, 0, 1]);
    assert_eq!(grid.neighbour(0, 3, Direction::Backward), 96);
}

#[test]
fn best_grids_known_by_hand() {
    let best = |size, global, hops| ProcessGrid::best(size, global, hops).unwrap().dims();
    assert_eq!(best(1, [4, 4, 4, 4], 1), [1, 1, 1, 1]);
    // The longest axis is cut.
    assert_eq!(best(2, [16, 16, 16, 32], 1), [1, 1, 1, 2]);
    assert_eq!(best(4, [16, 16, 16, 64], 1), [1, 1, 1, 4]);
    // All axes alike: later ones first.
    assert_eq!(best(2, [8, 8, 8, 8], 1), [1, 1, 1, 2]);
    // [1, 1, 4, 4] has the same surface, but boxes two sites thin.
    assert_eq!(best(16, [8, 8, 8, 8], 1), [2, 2, 2, 2]);
    // Three hops keep a short axis whole: 4 / 2 = 2 is too thin.
    assert_eq!(best(2, [8, 8, 8, 4], 3), [1, 1, 2, 1]);
    // 5 must not be an extent: 20 / 4 is odd, 20 / 2 is not.
    assert_eq!(best(4, [20, 4, 4, 4], 1)[0], 2);
    // Without an operator.
    assert_eq!(best(15, [3, 4, 5, 6], 0), [1, 1, 5, 3]);
    // Factors other than two.
    assert_eq!(best(3, [12, 8, 8, 8], 1), [3, 1, 1, 1]);
    assert_eq!(best(6, [16, 16, 16, 96], 1), [1, 1, 1, 6]);
}

#[test]
fn refusals_name_the_extent_and_suggest() {
    let error = ProcessGrid::new([1, 1, 1, 4]).unwrap().check([16, 16, 16, 30], 1).unwrap_err();
    assert_eq!(error.misfits, [Misfit::NotDivisible { axis: 3, extent: 30, parts: 4 }]);
    let text = error.to_string();
    assert!(text.contains("extent 30 along t") && text.contains("1,2,2,1 (4 processes)"), "{text}");

    // Everything that is wrong, at once.
    let error = ProcessGrid::new([2, 3, 1, 4]).unwrap().check_for(8, [6, 8, 8, 8], 3).unwrap_err();
    assert_eq!(error.misfits.len(), 4, "{error}");
    assert!(error.to_string().contains("gives 3, which is odd"), "{error}");
    assert!(error.to_string().contains("gives 2, but the operator needs at least 3"), "{error}");
    assert!(error.fitting.iter().all(|g| g.size() == 8));

    let error = ProcessGrid::best(7, [16, 16, 16, 16], 1).unwrap_err();
    assert!(error.to_string().contains("16×16×16×16 cannot be divided among 7 processes"), "{error}");
    assert_eq!(error.fitting[0].size(), 4);

    // However many there are, suggestions are at hand.
    let error = ProcessGrid::new([1000; 4]).unwrap().check([128; 4], 3).unwrap_err();
    assert_eq!((error.misfits.len(), error.fitting[0].dims()), (4, [32; 4]), "{error}");
    assert_eq!(ProcessGrid::new([usize::MAX; 4]).unwrap().size(), usize::MAX);

    let error = ProcessGrid::best(2, [5, 4, 4, 4], 1).unwrap_err();
    assert!(error.to_string().contains("extent 5 along x") && error.fitting.is_empty(), "{error}");

    let error = ProcessGrid::best(7, [3, 4, 5, 6], 0).unwrap_err();
    assert!(error.to_string().contains("3×4×5×6 cannot be divided into 7 equal boxes"), "{error}");
    assert_eq!(error.fitting[0].size(), 6);

    assert!(ProcessGrid::new([1, 0, 1, 1]).unwrap_err().to_string().contains("along y"));
    assert!(ProcessGrid::best(0, [4, 4, 4, 4], 1).is_err());
    assert!(ProcessGrid::best(1, [0, 4, 4, 4], 1).is_err());
}
