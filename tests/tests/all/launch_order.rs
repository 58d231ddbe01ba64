//! The orders in which launches go through a lattice.
use gpu_kernels::lattice::{Geometry, Region};

#[test]
fn columns_have_every_site_once() {
    let extents = [[2, 2, 2, 2], [2, 4, 6, 8], [6, 2, 4, 10], [4, 34, 22, 6], [8, 16, 32, 4], [4, 26, 18, 2]];
    for extents in extents {
        let geometry = Geometry::new(extents);
        let mut sites: Vec<u32> =
            (0..geometry.half_volume()).map(|i| Region::WHOLE.index_in_columns(i, &geometry, 1)).collect();
        sites.sort_unstable();
        assert!(sites.iter().copied().eq(0..geometry.half_volume()), "{extents:?}");
    }
}

#[test]
fn columns_are_along_t() {
    // 16 × 16 rows in y and z: all of t comes before the next column in y.
    let geometry = Geometry::new([4, 32, 16, 8]);
    let coordinates = |i| {
        let site = geometry.site(Region::WHOLE.index_in_columns(i, &geometry, 0), 0);
        (site.y, site.z, site.t)
    };
    let column = 2 * 16 * 16 * 8;
    assert!((0..column).all(|i| coordinates(i).0 < 16));
    assert!((column..2 * column).all(|i| coordinates(i).0 >= 16));
    // Rows that follow each other are neighbours: pairs in y, then in z, then in t.
    let first: Vec<_> = (0..8).map(|row| coordinates(2 * row)).collect();
    assert_eq!(first, [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1)]);
    // A box has an order of its own, whatever the launch.
    let part = Region::new([2, 1, 0, 3], [2, 4, 16, 2]);
    assert!((0..part.sites(&geometry)).all(|i| part.index(i, &geometry, 1) == part.index_in_columns(i, &geometry, 1)));
}

#[test]
fn layers_have_the_sites_of_their_box() {
    let geometry = Geometry::new([6, 4, 2, 10]);
    for first in 0..10 {
        for layers in 1..=10 {
            let (start, length) = ([0, 0, 0, first], [6, 4, 2, layers]);
            let (boxed, region) = (Region::new(start, length), Region::on(&geometry, start, length));
            assert_eq!(region.sites(&geometry), boxed.sites(&geometry));
            for (i, parity) in (0..region.sites(&geometry)).flat_map(|i| [(i, 0), (i, 1)]) {
                let expected = boxed.index(i, &geometry, parity);
                assert_eq!(region.index(i, &geometry, parity), expected, "{layers} layers from {first} on: {i}");
                assert_eq!(region.index_in_columns(i, &geometry, parity), expected);
            }
        }
    }
    // Other boxes are no runs.
    for (start, length) in [([2, 0, 0, 1], [4, 4, 2, 2]), ([0, 1, 0, 3], [6, 4, 2, 4]), ([0, 0, 1, 0], [6, 4, 1, 10])] {
        let (boxed, region) = (Region::new(start, length), Region::on(&geometry, start, length));
        for i in 0..boxed.sites(&geometry) {
            assert_eq!(region.index(i, &geometry, 1), boxed.index(i, &geometry, 1));
        }
    }
    assert!((0..geometry.half_volume()).all(|i| Region::WHOLE.index(i, &geometry, 0) == i));
}
