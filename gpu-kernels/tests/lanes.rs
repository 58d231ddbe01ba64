//! A group of sites gives the bits of each site alone, and sums to rounding: hopping terms and linear algebra, in every format
//! and with every vector set that they are compiled for and that this machine has. A function computes groups where it is given
//! all sites, and one site at a time where it is given one. Fields hold random numbers; what a kernel makes of them is another test's.
#![cfg(feature = "cpu")]
#![allow(clippy::undocumented_unsafe_blocks, reason = "the contract is written once, at the first of them")]
use gpu_kernels::algebra::complex;
use gpu_kernels::blas::{
    AXPBY, AXPY_NORM2, Axpby, AxpyNorm2, BICGSTAB_HALF_KEPT, BICGSTAB_STEP, BICGSTAB_STEP_KEPT, BicgstabHalfKept,
    BicgstabStep, BicgstabStepKept, CG_RESIDUAL_UPDATE, CG_UPDATE, CG_UPDATE_KEPT, CgResidualUpdate, CgRho, CgUpdate,
    CgUpdateKept, DOT_NORM2, DotNorm2, SHIFT_UPDATE_2, ShadowRho, ShiftUpdate, XPAY_NORM2, XpayNorm2,
};
use gpu_kernels::block::{BLOCK_UPDATE, BlockUpdate, Coefficients, GRAM, Gram};
use gpu_kernels::clover::{
    CLOVER_DSLASH, CLOVER_DSLASH_DOT, CLOVER_DSLASH_DOTS, CLOVER_MATRIX, DIAGONAL_APPLY, DiagonalApply,
};
use gpu_kernels::cpu::Vectors;
use gpu_kernels::diagonal::DiagonalArguments;
use gpu_kernels::fermion_force::{
    COMBINE_MATRICES, CombineMatrices, HOP_GRADIENT, HopGradient, HopPairs, LONG_GRADIENT, LONG_HOP_GRADIENT,
    LongGradient, NAIVE_FORCE, NaiveForce, STAPLE_GRADIENT, StapleGradient,
};
use gpu_kernels::field::{Clover, Field, Links, Matrices, Momenta, ThinLinks};
use gpu_kernels::gauge::{PLAQUETTE, Plaquette};
use gpu_kernels::gauge_force::{
    FIELD_STRENGTH, FieldStrength, GaugeForce, LOOP, LinkPath, Loop, LoopCoefficients, PATH_FORCE, PATH_SUM, PathForce,
    PathSum, SYMANZIK_FORCE_DOUBLE, SYMANZIK_FORCE_SINGLE, WILSON_FORCE,
};
use gpu_kernels::ghost::Ghosts;
use gpu_kernels::heatbath::{HEATBATH, Heatbath, OVERRELAX, Overrelax, Sublattice};
use gpu_kernels::krylov::{MULTI_AXPY, MULTI_DOT, MultiAxpy, MultiDot};
use gpu_kernels::lattice::{Bordered, Divisor, Geometry, Position, Region};
use gpu_kernels::memory::Chunk;
use gpu_kernels::momenta::{
    ADD_FORCE, ADD_MOMENTA, AddForce, AddMomenta, KINETIC_ENERGY, KineticEnergy, MOVE_LINKS, MoveLinks,
};
use gpu_kernels::per_rhs::{ComplexPerRhs, PerRhs};
use gpu_kernels::random::Philox;
use gpu_kernels::smeared::{LONG_LINKS, LongLinks, PROJECT_U3, ProjectU3, SCALE_LINKS, STAPLE, ScaleLinks, Staple};
use gpu_kernels::staggered::{
    IMPROVED_DSLASH, IMPROVED_DSLASH_DOT, Phases, STAGGERED_DSLASH, STAGGERED_DSLASH_DOT, StaggeredDslash,
};
use gpu_kernels::storage::padded;
use gpu_kernels::stout::{STOUT_DERIVATIVE, STOUT_GRADIENT, StoutDerivative, StoutGradient};
use gpu_kernels::sums::DeviceSums;
use gpu_kernels::wilson::{Hopping, WILSON_DSLASH, WILSON_DSLASH_DOT, WILSON_DSLASH_DOTS, WilsonDslash};
use gpu_kernels::{FermionKind, Format, Instance, LinkStorage, Precision, Table};

/// Extents of four, where one hop and three hops lead to the other half of the lattice; and such whose halves are odd, where groups have 8
/// sites: in x and other directions, and in t and not in x.
const EXTENTS: [[u32; 4]; 5] = [[4, 8, 12, 4], [6, 6, 6, 6], [2, 4, 6, 8], [2, 6, 6, 6], [4, 2, 8, 6]];
const NRHS: usize = 2;

fn geometries() -> impl Iterator<Item = Geometry> {
    EXTENTS.into_iter().map(|extents| Geometry::new(extents).in_lane_order())
}
fn sites(geometry: &Geometry) -> usize {
    geometry.half_volume() as usize
}

/// Fields for the kernels, in a format, with numbers of either sign that are moderate in the precision; all are of the same size, that
/// of the largest.
struct LaneMemory {
    geometry: Geometry,
    storage: LinkStorage,
    fields: Vec<Vec<Chunk>>,
}
impl LaneMemory {
    fn new(geometry: Geometry, format: Format, count: usize) -> Self {
        let precision = format.precision.expect("kernels with fields have a precision");
        let links = format.links.map_or(0, |links| links.with_all_reals().site_bytes(precision));
        let site = (NRHS * FermionKind::Wilson.site_bytes(precision)).max(links).max(precision.clover_bytes());
        // Four matrices, or momenta in double.
        let site = site.max(4 * FermionKind::Wilson.site_bytes(precision)).max(Momenta::site_bytes::<f64>());
        let bytes = padded(sites(&geometry)) * site;
        let mut fields = Vec::new();
        for seed in 0..count as u64 {
            let mut stream = Philox::new(seed, 0, 0);
            // The first word of a double is the lower one. Each is near 0.3, as one number or as two of 16 bits.
            let mut word = |k: usize| match precision {
                Precision::Double if k.is_multiple_of(2) => stream.next_u32(),
                Precision::Double => 0x3fd0_0000 | stream.next_u32() & 0x800f_ffff,
                _ => 0x3e80_3e80 | stream.next_u32() & 0x80ff_80ff,
            };
            fields.push((0..bytes / 16).map(|_| Chunk(std::array::from_fn(&mut word))).collect());
        }
        LaneMemory { geometry, storage: format.links.unwrap_or(LinkStorage::FULL), fields }
    }
    fn address(&mut self, k: usize) -> *mut u8 {
        self.fields[k].as_mut_ptr().cast()
    }
    fn thin(&mut self, k: usize) -> ThinLinks {
        unsafe { ThinLinks::new(self.address(k)) }
    }
    fn links(&mut self, k: usize, storage: LinkStorage) -> Links {
        unsafe { Links::new(self.address(k), storage) }
    }
    fn matrices(&mut self, k: usize) -> Matrices {
        self.thin(k).direction(2)
    }
    fn momenta(&mut self, k: usize) -> Momenta {
        unsafe { Momenta::new(self.address(k)) }
    }
    fn field(&mut self, k: usize) -> Field {
        // SAFETY: here and below, every view of a kernel is of memory of its test, of the size of its field.
        unsafe { Field::new(self.address(k), (padded(sites(&self.geometry)) / gpu_kernels::storage::PADDING) as u32) }
    }
}

/// Runs a kernel of a table in every format: with all sites at once, and with one after the other.
fn compare<K>(geometry: Geometry, table: &Table, fields: usize, make: impl Fn(&mut LaneMemory) -> K) {
    compare_for(geometry, NRHS, table, fields, make);
}
/// Runs a kernel as [`compare`] does, with `nrhs` right-hand sides or directions.
fn compare_for<K>(geometry: Geometry, nrhs: usize, table: &Table, fields: usize, make: impl Fn(&mut LaneMemory) -> K) {
    for vectors in Vectors::COMPILED.iter().filter(|vectors| vectors.exist()) {
        for instance in table.instances() {
            let all = outcome(geometry, *vectors, instance, (fields, nrhs), &make, sites(&geometry));
            let one = outcome(geometry, *vectors, instance, (fields, nrhs), &make, 1);
            let size = geometry.size();
            let name = format!("{} {} {} {size:?}", table.name, instance.format, vectors.name());
            assert!(all.0 == one.0, "{name}: fields");
            for ((x, y), size) in all.1.iter().zip(&one.1).zip(&one.2) {
                // 200 numbers are added in double in another order.
                assert!((x - y).abs() <= 200.0 * f64::EPSILON * size, "{name}: sums {x:e} and {y:e}");
            }
        }
    }
}
/// All fields afterwards, the sums, and the sums of the absolute values of what they are made of.
fn outcome<K>(
    geometry: Geometry,
    vectors: Vectors,
    instance: &Instance,
    (fields, nrhs): (usize, usize),
    make: impl Fn(&mut LaneMemory) -> K,
    together: usize,
) -> (Vec<Vec<Chunk>>, Vec<f64>, Vec<f64>) {
    let mut memory = LaneMemory::new(geometry, instance.format, fields);
    let before = memory.fields.clone();
    let kernel = make(&mut memory);
    let run = instance.cpu.of(vectors).expect("compiled");
    let count = instance.sum.map_or(0, |sum| sum.values);
    let (mut sums, mut sizes) = (vec![0.0; nrhs * count], vec![0.0; nrhs * count]);
    for rhs in 0..nrhs {
        for first in (0..sites(&geometry)).step_by(together) {
            let mut part = [0.0; gpu_kernels::MOST_VALUES];
            let arguments = std::ptr::from_ref(&kernel).cast();
            unsafe { run(arguments, first as u32, (first + together) as u32, rhs as u32, part.as_mut_ptr()) };
            for k in 0..count {
                sums[count * rhs + k] += part[k];
                sizes[count * rhs + k] += part[k].abs();
            }
        }
    }
    assert!(memory.fields != before || count > 0, "something is written or summed");
    (memory.fields, sums, sizes)
}

#[test]
fn hopping_terms_of_wilson_like_operators() {
    geometries().for_each(hopping_terms_of_wilson_like_operators_on);
}
fn hopping_terms_of_wilson_like_operators_on(geometry: Geometry) {
    let dslash = |kind: fn(Clover) -> DiagonalArguments, dagger: u32, sum: u32, parity: u32| {
        move |m: &mut LaneMemory| WilsonDslash {
            out: m.field(0),
            x: m.field(1),
            w: m.field(2),
            sum,
            dagger,
            b: (-0.4).into(),
            diagonal: kind(unsafe { Clover::new(m.address(5)) }),
            hopping: Hopping {
                input: m.field(3),
                links: m.links(4, m.storage),
                geometry,
                region: Region::WHOLE,
                parity,
                time: 1.5.into(),
                time_across: (-1.5).into(),
            },
            ghosts: Ghosts::NONE,
        }
    };
    let mass: fn(Clover) -> _ = |_| DiagonalArguments::mass(0.75);
    let inverse: fn(Clover) -> _ = |clover| DiagonalArguments::clover(clover, true);
    let clover: fn(Clover) -> _ = |clover| DiagonalArguments::clover(clover, false);
    for parity in [0, 1] {
        for (dagger, sum) in [(0, 0), (1, 1)] {
            compare(geometry, WILSON_DSLASH.0, 6, dslash(mass, dagger, sum, parity));
            compare(geometry, CLOVER_DSLASH.0, 6, dslash(inverse, dagger, sum, parity));
            compare(geometry, CLOVER_MATRIX.0, 6, dslash(clover, dagger, 1, parity));
        }
        compare(geometry, WILSON_DSLASH_DOT.0, 6, dslash(mass, 0, 1, parity));
        compare(geometry, WILSON_DSLASH_DOTS.0, 6, dslash(mass, 0, 1, parity));
        compare(geometry, CLOVER_DSLASH_DOT.0, 6, dslash(inverse, 0, 1, parity));
        compare(geometry, CLOVER_DSLASH_DOTS.0, 6, dslash(inverse, 0, 1, parity));
    }
    compare(geometry, DIAGONAL_APPLY.0, 6, |m| DiagonalApply {
        out: m.field(0),
        input: m.field(1),
        diagonal: DiagonalArguments::twisted_clover(unsafe { Clover::new(m.address(5)) }, 0.3),
    });
}

#[test]
fn hopping_terms_of_staggered_operators() {
    geometries().for_each(hopping_terms_of_staggered_operators_on);
}
fn hopping_terms_of_staggered_operators_on(geometry: Geometry) {
    for parity in [0, 1] {
        for sum in [0, 1] {
            let dslash = |m: &mut LaneMemory, storage: fn(LinkStorage) -> LinkStorage| StaggeredDslash {
                out: m.field(0),
                x: m.field(1),
                w: m.field(2),
                sum,
                parity,
                a: 0.7.into(),
                b: (-0.4).into(),
                input: m.field(3),
                geometry,
                region: Region::WHOLE,
                phases: Phases::new([0, 1, 3, 7]),
                across: (-1.0).into(),
                links: m.links(4, storage(m.storage)),
                factor: 0.5.into(),
                // Only fat links have 21 bits.
                long: m.links(5, LinkStorage { fine: false, ..m.storage }),
                long_factor: 0.25.into(),
                ghosts: Ghosts::NONE,
            };
            let naive = |m: &mut LaneMemory| dslash(m, |links| links);
            let improved = |m: &mut LaneMemory| dslash(m, LinkStorage::with_all_reals);
            compare(geometry, STAGGERED_DSLASH.0, 6, naive);
            compare(geometry, IMPROVED_DSLASH.0, 6, improved);
            if sum == 1 {
                compare(geometry, STAGGERED_DSLASH_DOT.0, 6, naive);
                compare(geometry, IMPROVED_DSLASH_DOT.0, 6, improved);
            }
        }
    }
}

#[test]
fn linear_algebra() {
    geometries().for_each(linear_algebra_on);
}
fn linear_algebra_on(geometry: Geometry) {
    let real = || PerRhs::new(|rhs| 0.3 + rhs as f64);
    let number = || ComplexPerRhs::new(|rhs| gpu_kernels::algebra::complex(0.3 + rhs as f64, -0.7));
    compare(geometry, AXPBY.0, 2, |m| Axpby { x: m.field(0), y: m.field(1), a: number(), b: number() });
    compare(geometry, AXPY_NORM2.0, 2, |m| AxpyNorm2 { x: m.field(0), y: m.field(1), a: number() });
    compare(geometry, DOT_NORM2.0, 2, |m| DotNorm2 { x: m.field(0), y: m.field(1) });
    compare(geometry, XPAY_NORM2.0, 2, |m| XpayNorm2 { x: m.field(0), y: m.field(1), a: real() });
    compare(geometry, CG_UPDATE.0, 3, |m| CgUpdate {
        x: m.field(0),
        p: m.field(1),
        r: m.field(2),
        a: real(),
        b: real(),
    });
    compare(geometry, SHIFT_UPDATE_2.0, 5, |m| ShiftUpdate {
        r: m.field(0),
        x: [m.field(1), m.field(2)],
        p: [m.field(3), m.field(4)],
        a: [real(), real()],
        b: [real(), real()],
    });
    compare(geometry, BICGSTAB_STEP.0, 5, |m| {
        let [x, r, p, v, t] = [0, 1, 2, 3, 4].map(|k| m.field(k));
        BicgstabStep { x, r, p, v, t, alpha: number(), omega: number(), beta: number() }
    });
    // The curvature is added once, not once for each lane.
    let curvatures = [2.0f64, 0.0, 0.4, 3.0, 0.0, 0.6];
    compare(geometry, CG_RESIDUAL_UPDATE.0, 2, |m| CgResidualUpdate {
        r: m.field(0),
        t: m.field(1),
        p: m.field(0),
        shift: 0.0,
        rho: CgRho { given: real(), kept: DeviceSums::NONE },
        sums: sums_of(&curvatures, 3),
        squared: 0,
        first: 0,
    });
    // Sums that stay on the device: the norm and the curvature of a step of CG, and the eight sums of BiCGstab.
    let next = [0.7f64, 2.0, 0.9, 3.0];
    let dots: Vec<f64> = (0..16).map(|k| 0.3 + 0.1 * f64::from(k)).collect();
    let rho = CgRho { given: real(), kept: sums_of(&next, 2) };
    for (sums, shift) in [(sums_of(&curvatures, 3), 0.0), (sums_of(&dots, 8), 0.2)] {
        compare(geometry, CG_RESIDUAL_UPDATE.0, 3, |m| {
            let [r, t, p] = [0, 1, 2].map(|k| m.field(k));
            CgResidualUpdate { r, t, p, shift, rho, sums, squared: 1, first: 0 }
        });
    }
    compare(geometry, CG_UPDATE_KEPT.0, 3, |m| CgUpdateKept {
        x: m.field(0),
        p: m.field(1),
        r: m.field(2),
        rho,
        next: sums_of(&next, 2),
        first: 0,
    });
    let rho = ShadowRho { given: number(), kept: sums_of(&dots, 8) };
    compare(geometry, BICGSTAB_HALF_KEPT.0, 2, |m| BicgstabHalfKept {
        r: m.field(0),
        v: m.field(1),
        rho,
        shadow_v: sums_of(&curvatures, 3),
        first: 0,
    });
    compare(geometry, BICGSTAB_STEP_KEPT.0, 5, |m| {
        let [x, r, p, v, t] = [0, 1, 2, 3, 4].map(|k| m.field(k));
        BicgstabStepKept { x, r, p, v, t, rho, shadow_v: sums_of(&curvatures, 3), sums: sums_of(&dots, 8), first: 0 }
    });
    let four = |m: &mut LaneMemory| [0, 1, 2, 3].map(|k| m.field(k));
    compare(geometry, MULTI_DOT.0, 5, |m| MultiDot { x: four(m), y: m.field(4) });
    compare(geometry, MULTI_AXPY.0, 5, |m| MultiAxpy { x: four(m), a: [number(); 4], y: m.field(4) });
    let last = NRHS as u32 - 1;
    compare(geometry, GRAM.0, 2, |m| Gram {
        x: m.field(0),
        y: m.field(1),
        last_x: last,
        last_y: last,
        along: Divisor::new(1),
    });
    compare(geometry, BLOCK_UPDATE.0, 3, |m| BlockUpdate {
        x: m.field(0),
        y: m.field(1),
        a: unsafe { Coefficients::new(m.address(2)) },
        count: NRHS as u32,
        add: 1,
    });
}

/// Returns the view of sums in host memory, `width` for each right-hand side.
fn sums_of(sums: &[f64], width: u32) -> DeviceSums {
    // SAFETY: the kernels of a test run while it holds the sums.
    unsafe { DeviceSums::new(sums.as_ptr().cast_mut().cast(), 0, [width, 0, 0, 0, 0]) }
}

#[test]
fn gauge_fields() {
    geometries().for_each(gauge_fields_on);
}
fn gauge_fields_on(geometry: Geometry) {
    let lattice = Bordered::bare(geometry);
    for parity in [0, 1] {
        let force = |m: &mut LaneMemory| GaugeForce {
            links: [m.thin(0), m.thin(1)],
            momenta: m.momenta(2),
            lattice,
            parity,
            coefficients: LoopCoefficients {
                plaquettes: [0.3, 0.4],
                rectangles: [0.2, 0.1, -0.3],
                parallelograms: -0.1,
            },
        };
        for table in [WILSON_FORCE.0, SYMANZIK_FORCE_DOUBLE.0, SYMANZIK_FORCE_SINGLE.0] {
            compare_for(geometry, 4, table, 3, force);
        }
        // Around by z, t, t, −z, −t, −t.
        let (steps, length) = (0x77_5664, 6);
        let path = |m: &mut LaneMemory| LinkPath { links: [m.thin(0), m.thin(1)], lattice, parity, steps, length };
        compare(geometry, LOOP.0, 2, |m| Loop { path: path(m) });
        compare(geometry, PATH_SUM.0, 3, |m| PathSum { path: path(m), out: m.thin(2), factor: -0.3, mu: 2 });
        compare(geometry, PATH_FORCE.0, 3, |m| PathForce { path: path(m), momenta: m.momenta(2), step: 0.2, mu: 2 });
        compare(geometry, FIELD_STRENGTH.0, 2, |m| FieldStrength { links: [m.thin(0), m.thin(1)], lattice, parity });
        compare(geometry, PLAQUETTE.0, 2, |m| Plaquette { here: m.thin(0), there: m.thin(1), lattice, parity });
        for mu in [0, 3] {
            let at = |m: &mut LaneMemory| Sublattice { links: [m.thin(0), m.thin(1)], lattice, parity, mu };
            let [x, y, z, _] = geometry.size();
            let position = Position { origin: [0; 4], extents: [x, y, z] };
            compare(geometry, HEATBATH.0, 2, |m| Heatbath {
                at: at(m),
                geometry,
                position,
                beta: 6.0,
                seed: 5,
                pass: 3,
            });
            compare(geometry, OVERRELAX.0, 2, |m| Overrelax { at: at(m) });
            compare(geometry, STAPLE.0, 6, |m| Staple {
                links: [m.thin(0), m.thin(1)],
                input: [m.matrices(2), m.matrices(3)],
                out: m.matrices(4),
                sum: m.matrices(5),
                geometry,
                parity,
                mu,
                nu: 1,
                keep: 1,
                coefficient: 0.4,
            });
        }
        compare(geometry, LONG_LINKS.0, 3, |m| LongLinks {
            links: [m.thin(0), m.thin(1)],
            out: m.thin(2),
            geometry,
            parity,
            factor: 0.4,
        });
        for unitarise in [0, 1] {
            let step = 0.3;
            let make = |m: &mut LaneMemory| MoveLinks {
                links: m.thin(0),
                momenta: m.momenta(1),
                lattice,
                parity,
                unitarise,
                step,
            };
            compare_for(geometry, 4, MOVE_LINKS.0, 2, make);
        }
        compare_for(geometry, 4, ADD_FORCE.0, 3, |m| AddForce {
            momenta: m.momenta(0),
            links: m.thin(1),
            gradient: m.thin(2),
            lattice,
            parity,
            step: 0.3,
        });
    }
    compare_for(geometry, 4, ADD_MOMENTA.0, 2, |m| AddMomenta {
        momenta: m.momenta(0),
        other: m.momenta(1),
        a: 0.3,
        b: -0.7,
    });
    compare(geometry, KINETIC_ENERGY.0, 1, |m| KineticEnergy { momenta: m.momenta(0) });
    compare(geometry, PROJECT_U3.0, 2, |m| ProjectU3 { input: m.thin(0), out: m.thin(1) });
    let factors = [0.7, -0.2, 1.0, 0.0].map(|re| complex(re, 0.3));
    compare(geometry, SCALE_LINKS.0, 2, |m| ScaleLinks { input: m.thin(0), out: m.thin(1), factors });
}

#[test]
fn forces_of_staggered_fermions() {
    geometries().for_each(forces_of_staggered_fermions_on);
}
fn forces_of_staggered_fermions_on(geometry: Geometry) {
    let (lattice, phases) = (Bordered::bare(geometry), Phases::new([0, 1, 3, 7]));
    let pairs = |m: &mut LaneMemory| HopPairs { vectors: [m.field(0), m.field(1)], count: 2, phases, across: -1.0 };
    for parity in [0, 1] {
        compare_for(geometry, 4, NAIVE_FORCE.0, 4, |m| NaiveForce {
            pairs: pairs(m),
            links: m.thin(2),
            momenta: m.momenta(3),
            lattice,
            parity,
            step: 0.3,
        });
        let gradient =
            |m: &mut LaneMemory| HopGradient { pairs: pairs(m), out: m.thin(2), geometry, parity, factor: 0.3 };
        compare_for(geometry, 4, HOP_GRADIENT.0, 3, gradient);
        compare_for(geometry, 4, LONG_HOP_GRADIENT.0, 3, gradient);
        for (mu, nu) in [(0, 3), (3, 1)] {
            compare(geometry, STAPLE_GRADIENT.0, 7, |m| StapleGradient {
                links: [m.thin(0), m.thin(1)],
                path: [m.matrices(2), m.matrices(3)],
                gradient: [m.matrices(4), m.matrices(5)],
                sum: m.matrices(6),
                geometry,
                parity,
                mu,
                nu,
                coefficient: 0.4,
            });
        }
        compare_for(geometry, 4, LONG_GRADIENT.0, 5, |m| LongGradient {
            links: [m.thin(0), m.thin(1)],
            gradient: [m.thin(2), m.thin(3)],
            sum: m.thin(4),
            geometry,
            parity,
            coefficient: 0.4,
        });
        for directions in [3, 4] {
            compare_for(geometry, directions as usize, STOUT_DERIVATIVE.0, 4, |m| StoutDerivative {
                links: [m.thin(0), m.thin(1)],
                gradient: m.thin(2),
                weights: m.momenta(3),
                lattice,
                parity,
                directions,
                rho: 0.02,
            });
            compare_for(geometry, directions as usize, STOUT_GRADIENT.0, 5, |m| StoutGradient {
                links: [m.thin(0), m.thin(1)],
                weights: [m.momenta(2), m.momenta(3)],
                gradient: m.thin(4),
                lattice,
                parity,
                directions,
                rho: 0.1,
            });
        }
    }
    compare(geometry, COMBINE_MATRICES.0, 2, |m| CombineMatrices {
        out: m.matrices(0),
        input: m.matrices(1),
        a: 0.3,
        b: -0.7,
    });
}

/// A closure that is called more than once may be compiled apart from the kernel, for any processor: then each vector instruction is a
/// call of a function, which this program would have.
#[cfg(target_arch = "x86_64")]
#[test]
fn vector_instructions_are_no_functions() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let symbols = |part: &str| program.windows(part.len()).filter(|bytes| *bytes == part.as_bytes()).count();
    assert!(symbols("WILSON_DSLASH") > 0, "names of functions are there");
    for module in ["7avx512f", "8avx512dq", "3avx", "4avx2", "3fma"] {
        // As the compiler writes core::core_arch::x86::avx512f. (The pattern itself is not to be in the program.)
        assert_eq!(symbols(&format!("core_arch3x{}{module}", 86)), 0, "{module}: functions of instructions");
    }
}
