//! Shape of the thread blocks of a launch.
use gpu_kernels::multi_rhs::{LOOPED_THREADS, RhsBlocking};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::str::FromStr;

/// Threads of a block, and their distribution over sites and right-hand sides. The text form is `128` or `8x4x4`. If each thread computes
/// several right-hand sides, it is `2:8x4x4` or `looped 2:128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Distribution of right-hand sides over threads.
    pub blocking: RhsBlocking,
    /// Numbers of threads for the sites of a row, for the groups of right-hand sides of a site, and for rows. For example, 8, 4 and 4 are
    /// 32 sites with four groups each; a warp of 32 threads then computes eight sites with all four groups.
    pub threads: [u32; 3],
}

impl Shape {
    /// Returns the shape in which each thread computes all right-hand sides, `rhs` at a time.
    pub const fn looped(rhs: u32) -> Self {
        Shape { blocking: RhsBlocking { rhs, looped: true }, threads: [LOOPED_THREADS, 1, 1] }
    }
    /// Returns the number of threads of a block.
    pub fn block(&self) -> u32 {
        self.threads.iter().product()
    }
    /// Returns the number of sites that a block computes.
    pub fn sites(&self) -> u32 {
        self.threads[0] * self.threads[2]
    }
    /// Returns the number of right-hand sides that a block computes, out of `nrhs`.
    pub fn rhs_of_block(&self, nrhs: u32) -> u32 {
        if self.blocking.looped { nrhs } else { self.blocking.rhs * self.threads[1] }
    }
}

/// Converts a number of threads to a shape in which each thread computes one site and one right-hand side.
impl From<u32> for Shape {
    fn from(block: u32) -> Self {
        Shape { blocking: RhsBlocking::ONE, threads: [block, 1, 1] }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [along, groups, rows] = self.threads;
        match self.blocking {
            RhsBlocking { rhs, looped: true } => write!(f, "looped {rhs}:")?,
            RhsBlocking { rhs: 1, .. } => {}
            RhsBlocking { rhs, .. } => write!(f, "{rhs}:")?,
        }
        if groups == 1 && rows == 1 { write!(f, "{along}") } else { write!(f, "{along}x{groups}x{rows}") }
    }
}

/// Error for a text that is not a [`Shape`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a block shape, such as 128, 8x4x4, 2:8x4x4 or looped 2:128")]
pub struct NoShape(String);

impl FromStr for Shape {
    type Err = NoShape;
    fn from_str(text: &str) -> Result<Self, NoShape> {
        let wrong = || NoShape(text.to_string());
        let number = |text: &str| text.parse().ok().filter(|n| (1..=1024).contains(n)).ok_or_else(wrong);
        let (blocking, threads) = text.split_once(':').unwrap_or(("1", text));
        let (looped, rhs) = match blocking.strip_prefix("looped ") {
            Some(rhs) => (true, rhs),
            None => (false, blocking),
        };
        let threads: Vec<u32> = threads.split('x').map(number).collect::<Result<_, _>>()?;
        let threads = match threads[..] {
            [along] => [along, 1, 1],
            [along, groups, rows] => [along, groups, rows],
            _ => return Err(wrong()),
        };
        Ok(Shape { blocking: RhsBlocking { rhs: number(rhs)?, looped }, threads })
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_again() {
        let two = Shape { blocking: RhsBlocking { rhs: 2, looped: false }, threads: [8, 4, 4] };
        for (shape, text) in [
            (Shape::from(128), "128"),
            (Shape { threads: [16, 2, 1], ..Shape::from(1) }, "16x2x1"),
            (two, "2:8x4x4"),
            (Shape { threads: [64, 1, 1], ..two }, "2:64"),
            (Shape::looped(2), "looped 2:128"),
        ] {
            assert_eq!((shape.to_string().as_str(), text.parse()), (text, Ok(shape)));
        }
        for wrong in ["", "x", "8x4", "8x4x4x1", "0", "-8", "two:8", "looped 2", "looped:128", "2:", "4096"] {
            assert!(wrong.parse::<Shape>().unwrap_err().to_string().contains(&format!("'{wrong}'")));
        }
    }

    #[test]
    fn what_a_block_has() {
        let two: Shape = "2:8x4x4".parse().unwrap();
        assert_eq!((two.block(), two.sites(), two.rhs_of_block(16)), (128, 32, 8));
        let looped = Shape::looped(2);
        assert_eq!((looped.block(), looped.sites(), looped.rhs_of_block(16)), (128, 128, 16));
    }
}
