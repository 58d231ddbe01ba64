//! Values as typed, before they are converted.
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

/// Value as typed, before its key determines the meaning. Values of flags are texts; numbers in files are numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// Text.
    Text(String),
    /// Whole number.
    Whole(i128),
    /// Number with a decimal point or an exponent.
    Real(f64),
    /// True or false.
    Switch(bool),
    /// Array of values.
    List(Vec<Raw>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Raw, E> {
                Ok(Raw::Text(text.into()))
            }
            fn visit_i64<E: Error>(self, n: i64) -> Result<Raw, E> {
                Ok(Raw::Whole(n.into()))
            }
            fn visit_u64<E: Error>(self, n: u64) -> Result<Raw, E> {
                Ok(Raw::Whole(n.into()))
            }
            fn visit_i128<E: Error>(self, n: i128) -> Result<Raw, E> {
                Ok(Raw::Whole(n))
            }
            fn visit_f64<E: Error>(self, x: f64) -> Result<Raw, E> {
                Ok(Raw::Real(x))
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<Raw, E> {
                Ok(Raw::Switch(on))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(Raw::List(all))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// Returns a value as text; values of a list are joined with commas.
pub(crate) fn joined(raw: &Raw) -> String {
    match raw {
        Raw::Text(text) => text.clone(),
        Raw::Whole(n) => n.to_string(),
        Raw::Real(x) => x.to_string(),
        Raw::Switch(on) => on.to_string(),
        Raw::List(all) => all.iter().map(joined).collect::<Vec<_>>().join(","),
    }
}
