//! Numbers that are `null` in JSON if they are not finite. `serde_json` writes them so, and [`read`] reads `null` as NaN, for
//! `#[serde(deserialize_with = "real::read")]`.
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// Number, or list of numbers, that is `null` in JSON if it is not finite.
pub trait Reals {
    /// Type that `serde` reads: `None` stands for a number that is not finite.
    type Nullable: DeserializeOwned;
    /// Replaces `None` with NaN.
    fn of(read: Self::Nullable) -> Self;
}

impl Reals for f64 {
    type Nullable = Option<f64>;
    fn of(read: Option<f64>) -> Self {
        read.unwrap_or(f64::NAN)
    }
}

impl<T: Reals> Reals for Vec<T> {
    type Nullable = Vec<T::Nullable>;
    fn of(read: Vec<T::Nullable>) -> Self {
        read.into_iter().map(T::of).collect()
    }
}

/// Pair of numbers, such as real and imaginary part, or mean and error.
impl<T: Reals> Reals for [T; 2] {
    type Nullable = [T::Nullable; 2];
    fn of(read: [T::Nullable; 2]) -> Self {
        read.map(T::of)
    }
}

/// Number that only some records have. `None` stands for a missing key, which requires `#[serde(default)]`; NaN stands for `null`.
impl<T: Reals> Reals for Option<T> {
    type Nullable = T::Nullable;
    fn of(read: T::Nullable) -> Self {
        Some(T::of(read))
    }
}

/// Reads numbers, with NaN for `null`.
///
/// # Errors
/// Fails for values other than numbers or `null`, and for lists of another shape.
pub fn read<'de, T: Reals, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Nullable::deserialize(deserializer).map(T::of)
}

/// Returns NaN, the value of a number whose key is missing; for `#[serde(default = "real::unknown")]`.
pub fn unknown() -> f64 {
    f64::NAN
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct Numbers {
        #[serde(deserialize_with = "read")]
        one: f64,
        #[serde(default, deserialize_with = "read")]
        pairs: Vec<[f64; 2]>,
        #[serde(default, deserialize_with = "read")]
        rare: Option<f64>,
    }

    #[test]
    fn null_is_nan_and_a_missing_key_is_none() {
        let read = |text: &str| serde_json::from_str::<Numbers>(text);
        let all = read(r#"{ "one": null, "pairs": [[1.5, null]], "rare": null }"#).unwrap();
        assert!(all.one.is_nan() && all.pairs[0][0] == 1.5 && all.pairs[0][1].is_nan() && all.rare.unwrap().is_nan());
        let few = read(r#"{ "one": 0.1 }"#).unwrap();
        assert!(few.one == 0.1 && few.pairs.is_empty() && few.rare.is_none());
        assert!(read("{}").is_err() && read(r#"{ "one": "small" }"#).is_err());
    }
}
