//! Partitioning of a lattice among processes.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;

/// Names of the four directions, in the order of coordinates.
const AXES: [char; 4] = ['x', 'y', 'z', 't'];
/// Maximum number of grids that an error suggests.
const SUGGESTIONS: usize = 4;

/// Direction along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Towards larger coordinates.
    Forward,
    /// Towards smaller coordinates.
    Backward,
}

impl Direction {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Backward];

    /// Returns the opposite direction.
    pub fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

/// Periodic grid of processes \[gx, gy, gz, gt\]. Each process has one box of the lattice, and all boxes are equal.
///
/// Ranks run with x fastest, as sites do: rank = cx + gx (cy + gy (cz + gz ct)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessGrid {
    dims: [usize; 4],
}

impl ProcessGrid {
    /// Grid of a single process.
    pub const SINGLE: Self = Self { dims: [1; 4] };

    /// Creates a grid without checking it against a lattice, which is the task of [`check`](Self::check). Fails if a
    /// dimension is zero.
    pub fn new(dims: [usize; 4]) -> Result<Self, GridError> {
        match dims.iter().position(|d| *d == 0) {
            Some(axis) => Err(GridError { misfits: vec![Misfit::Empty { axis }], fitting: Vec::new() }),
            None => Ok(Self { dims }),
        }
    }

    /// Returns the extents \[gx, gy, gz, gt\] of the grid.
    pub fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// Returns the number of processes, or [`usize::MAX`] if the product of the extents exceeds it.
    pub fn size(&self) -> usize {
        self.dims.iter().fold(1, |size, parts| size.saturating_mul(*parts))
    }

    /// Returns whether axis `mu` is partitioned, that is, whether its neighbours are other processes.
    pub fn is_partitioned(&self, mu: usize) -> bool {
        self.dims[mu] > 1
    }

    /// Returns the coordinates of a rank in the grid.
    ///
    /// # Panics
    /// Panics if `rank` is not below [`size`](Self::size).
    pub fn coordinates(&self, rank: usize) -> [usize; 4] {
        assert!(rank < self.size(), "rank {rank} is outside the process grid {self}");
        let mut rest = rank;
        self.dims.map(|d| {
            let c = rest % d;
            rest /= d;
            c
        })
    }

    /// Returns the rank at the given coordinates of the grid.
    ///
    /// # Panics
    /// Panics if the coordinates are outside the grid.
    pub fn rank(&self, coordinates: [usize; 4]) -> usize {
        (0..4).rev().fold(0, |rank, mu| {
            assert!(coordinates[mu] < self.dims[mu], "{coordinates:?} is outside the process grid {self}");
            coordinates[mu] + self.dims[mu] * rank
        })
    }

    /// Returns the rank next to `rank` along axis `mu`, with periodic boundaries.
    ///
    /// # Panics
    /// Panics if `rank` is not below [`size`](Self::size) or `mu` is not below 4.
    pub fn neighbour(&self, rank: usize, mu: usize, direction: Direction) -> usize {
        let mut place = self.coordinates(rank);
        let d = self.dims[mu];
        place[mu] = match direction {
            Direction::Forward => (place[mu] + 1) % d,
            Direction::Backward => (place[mu] + d - 1) % d,
        };
        self.rank(place)
    }

    /// Returns the extents of the local lattice of every process. They are meaningful only for a grid that
    /// [`check`](Self::check) accepts.
    pub fn local_extents(&self, global: [usize; 4]) -> [usize; 4] {
        std::array::from_fn(|mu| global[mu] / self.dims[mu])
    }

    /// Returns the global coordinates of the first site of a rank's box. If [`check`](Self::check) accepts the grid for
    /// an operator, all coordinates are even, so that a site has the same parity locally and globally.
    ///
    /// # Panics
    /// Panics if `rank` is not below [`size`](Self::size).
    pub fn origin(&self, rank: usize, global: [usize; 4]) -> [usize; 4] {
        let place = self.coordinates(rank);
        let local = self.local_extents(global);
        std::array::from_fn(|mu| place[mu] * local[mu])
    }

    /// Returns the number of sites on the faces of one box that other processes need. Both faces of every partitioned
    /// axis count.
    pub fn surface(&self, global: [usize; 4]) -> usize {
        let local = self.local_extents(global);
        let volume: usize = local.iter().product();
        (0..4).filter(|mu| self.is_partitioned(*mu)).map(|mu| 2 * volume / local[mu]).sum()
    }

    /// Checks that the grid can partition the lattice for operators that reach `hops` sites (Wilson 1, Naik term 3).
    /// Every local extent must be even, and at least `hops` if its axis is partitioned. For fields that are only read,
    /// written and measured on the host, `hops` is 0, and local extents may be odd.
    ///
    /// # Errors
    /// Returns all faults of the grid, and grids that fit: of as many processes, or else of fewer.
    pub fn check(&self, global: [usize; 4], hops: usize) -> Result<(), GridError> {
        let misfits = self.misfits(global, hops);
        if misfits.is_empty() {
            return Ok(());
        }
        Err(GridError { misfits, fitting: suggestions(self.size(), global, hops) })
    }

    /// Checks that the grid has `size` processes, the number of processes of the run, and that it passes
    /// [`check`](Self::check).
    ///
    /// # Errors
    /// Returns the errors of [`check`](Self::check), and one if the number of processes differs.
    pub fn check_for(&self, size: usize, global: [usize; 4], hops: usize) -> Result<(), GridError> {
        let mut misfits = self.misfits(global, hops);
        if self.size() != size {
            misfits.insert(0, Misfit::Size { grid: *self, size });
        }
        if misfits.is_empty() {
            return Ok(());
        }
        Err(GridError { misfits, fitting: suggestions(size, global, hops) })
    }

    fn misfits(&self, global: [usize; 4], hops: usize) -> Vec<Misfit> {
        let axes = global.into_iter().zip(self.dims).enumerate();
        axes.filter_map(|(axis, (extent, parts))| misfit(axis, extent, parts, hops)).collect()
    }

    /// Returns the grid of `size` processes with the smallest [`surface`](Self::surface) among those that
    /// [`check`](Self::check) accepts. Ties are broken in favour of the thickest boxes (more interior sites to hide the
    /// exchange behind), then of fewer partitioned axes, and then of later axes: x, along which memory is contiguous,
    /// is partitioned last.
    ///
    /// # Errors
    /// Returns the reasons why no grid fits, and grids of fewer processes that do.
    pub fn best(size: usize, global: [usize; 4], hops: usize) -> Result<Self, GridError> {
        fitting(size, global, hops).first().copied().ok_or_else(|| {
            let mut misfits: Vec<_> = (0..4)
                .filter(|axis| global[*axis] == 0 || is_unfit(global[*axis], hops))
                .map(|axis| Misfit::Odd { axis, extent: global[axis], parts: 1 })
                .collect();
            misfits.push(Misfit::NoGrid { size, global, hops });
            GridError { misfits, fitting: suggestions(size, global, hops) }
        })
    }
}

impl fmt::Display for ProcessGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Times(self.dims))
    }
}

/// Extents that print as 16×16×16×32.
struct Times([usize; 4]);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z, t] = self.0;
        write!(f, "{x}×{y}×{z}×{t}")
    }
}

/// Returns whether a local extent is odd although an operator (`hops` > 0) needs an even one.
fn is_unfit(extent: usize, hops: usize) -> bool {
    hops > 0 && !extent.is_multiple_of(2)
}

/// Returns the reason why an axis cannot be partitioned into `parts` parts, if there is one.
fn misfit(axis: usize, extent: usize, parts: usize, hops: usize) -> Option<Misfit> {
    if extent == 0 || !extent.is_multiple_of(parts) {
        Some(Misfit::NotDivisible { axis, extent, parts })
    } else if is_unfit(extent / parts, hops) {
        Some(Misfit::Odd { axis, extent, parts })
    } else if parts > 1 && extent / parts < hops {
        Some(Misfit::TooThin { axis, extent, parts, hops })
    } else {
        None
    }
}

/// Returns all grids of `size` processes that fit the lattice, the best first.
fn fitting(size: usize, global: [usize; 4], hops: usize) -> Vec<ProcessGrid> {
    let divisors = |n: usize, most: usize| (1..=n.min(most)).filter(move |d| n.is_multiple_of(*d));
    let mut grids = Vec::new();
    if size == 0 {
        return grids;
    }
    for gx in divisors(size, global[0]) {
        for gy in divisors(size / gx, global[1]) {
            for gz in divisors(size / gx / gy, global[2]) {
                let grid = ProcessGrid { dims: [gx, gy, gz, size / gx / gy / gz] };
                if grid.misfits(global, hops).is_empty() {
                    grids.push(grid);
                }
            }
        }
    }
    grids.sort_by_key(|grid| {
        let [gx, gy, gz, _] = grid.dims;
        let cut = || (0..4).filter(|mu| grid.is_partitioned(*mu));
        let thickness = cut().map(|mu| global[mu] / grid.dims[mu]).min();
        (grid.surface(global), Reverse(thickness), cut().count(), gx, gy, gz)
    });
    grids
}

impl GridError {
    /// Returns the error with other suggestions: the best grids of `size` processes or, if none fits, of fewer
    /// processes.
    #[must_use]
    pub fn with_grids_for(self, size: usize, global: [usize; 4], hops: usize) -> Self {
        GridError { fitting: suggestions(size, global, hops), ..self }
    }
}

/// Returns the best grids of `size` processes; if none fits, the best grid of each of the next smaller sizes.
fn suggestions(size: usize, global: [usize; 4], hops: usize) -> Vec<ProcessGrid> {
    let mut grids = fitting(size, global, hops);
    grids.truncate(SUGGESTIONS);
    if grids.is_empty() {
        let mut sizes = BTreeSet::from([1]);
        for (axis, extent) in global.into_iter().enumerate() {
            let parts: Vec<_> = (1..=extent).filter(|parts| misfit(axis, extent, *parts, hops).is_none()).collect();
            let more = sizes.iter().flat_map(|before| parts.iter().map(move |parts| before * parts));
            sizes = more.filter(|more| *more < size).collect();
        }
        let smaller = sizes.iter().rev().filter_map(|size| fitting(*size, global, hops).first().copied());
        grids = smaller.take(SUGGESTIONS).collect();
    }
    grids
}

/// Fault of a process grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A dimension of the grid is zero.
    Empty {
        /// Axis, 0 … 3 for x … t.
        axis: usize,
    },
    /// The number of processes in the grid is not that of the run.
    Size {
        /// Grid with another number of processes.
        grid: ProcessGrid,
        /// Number of processes of the run.
        size: usize,
    },
    /// An extent is not a multiple of the number of parts along its axis.
    NotDivisible {
        /// Axis, 0 … 3 for x … t.
        axis: usize,
        /// Global extent.
        extent: usize,
        /// Processes along this axis.
        parts: usize,
    },
    /// A local extent is odd: checkerboards of neighbours would not match.
    Odd {
        /// Axis, 0 … 3 for x … t.
        axis: usize,
        /// Global extent.
        extent: usize,
        /// Processes along this axis.
        parts: usize,
    },
    /// A local extent is smaller than the reach of the operator.
    TooThin {
        /// Axis, 0 … 3 for x … t.
        axis: usize,
        /// Global extent.
        extent: usize,
        /// Processes along this axis.
        parts: usize,
        /// Reach of the operator.
        hops: usize,
    },
    /// No grid with this number of processes fits the lattice.
    NoGrid {
        /// Number of processes of the run.
        size: usize,
        /// Global extents.
        global: [usize; 4],
        /// Reach of the operator; 0 without an operator.
        hops: usize,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty { axis } => {
                write!(f, "the process grid has no processes along {}: give at least 1", AXES[axis])
            }
            Self::Size { grid, size } => {
                write!(f, "the process grid {grid} has {}, but the run has {size}", processes(grid.size()))
            }
            Self::NotDivisible { axis, extent, parts } => {
                write!(f, "the lattice extent {extent} along {} cannot be divided into {parts} equal parts", AXES[axis])
            }
            Self::Odd { axis, extent, parts: 1 } => {
                write!(f, "the lattice extent {extent} along {} is not an even number above zero", AXES[axis])
            }
            Self::Odd { axis, extent, parts } => write!(
                f,
                "the lattice extent {extent} along {} divided into {parts} parts gives {}, which is odd",
                AXES[axis],
                extent / parts
            ),
            Self::TooThin { axis, extent, parts, hops } => write!(
                f,
                "the lattice extent {extent} along {} divided into {parts} parts gives {}, but the operator needs at \
                 least {hops}",
                AXES[axis],
                extent / parts
            ),
            Self::NoGrid { size, global, hops: 0 } => {
                write!(
                    f,
                    "the lattice {} cannot be divided into {size} equal boxes, one for each process",
                    Times(global)
                )
            }
            Self::NoGrid { size, global, hops } => {
                write!(
                    f,
                    "the lattice {} cannot be divided among {} with even local extents",
                    Times(global),
                    processes(size)
                )?;
                // Even extents are at least 2.
                if hops > 2 { write!(f, " of at least {hops}") } else { Ok(()) }
            }
        }
    }
}

/// Returns a number of processes with its noun.
fn processes(count: usize) -> String {
    if count == 1 { "1 process".to_string() } else { format!("{count} processes") }
}

/// Faults of a rejected process grid, with grids that fit; `Display` prints them as sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridError {
    /// All faults of the grid.
    pub misfits: Vec<Misfit>,
    /// Grids that fit the lattice, the best first: grids of the requested number of processes or, if none fits, of
    /// fewer processes.
    pub fitting: Vec<ProcessGrid>,
}

impl fmt::Display for GridError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, misfit) in self.misfits.iter().enumerate() {
            write!(f, "{}{misfit}", if i == 0 { "" } else { "; " })?;
        }
        if self.fitting.is_empty() {
            // `ProcessGrid::new` has no lattice for which it could find grids.
            let no_lattice = self.misfits.iter().all(|misfit| matches!(misfit, Misfit::Empty { .. }));
            return if no_lattice { Ok(()) } else { f.write_str(". No process grid fits: choose another lattice.") };
        }
        // The grids have the form of the flag `--grid`.
        f.write_str(". Grids that fit: ")?;
        for (i, grid) in self.fitting.iter().enumerate() {
            let [x, y, z, t] = grid.dims;
            write!(f, "{}{x},{y},{z},{t} ({})", if i == 0 { "" } else { "; " }, processes(grid.size()))?;
        }
        f.write_str(".")
    }
}

impl std::error::Error for GridError {}
