//! Values of an input in the form that `serde` reads, each with the index of its place.
use crate::given::PlaceNumber;
use crate::raw::Raw;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};

/// Value with the index of its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub raw: Raw,
    pub place: PlaceNumber,
}

/// Value or values of a key.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    One(Placed),
    /// Values of a key that may have several, and the place of the whole list.
    Several(Vec<Placed>, PlaceNumber),
}

impl Stored {
    /// Returns the place of the value, or the place of the whole list.
    pub fn place(&self) -> PlaceNumber {
        match self {
            Stored::One(one) => one.place,
            Stored::Several(_, place) => *place,
        }
    }
    /// Returns the place of each value.
    pub fn places(&self) -> Vec<PlaceNumber> {
        match self {
            Stored::One(one) => vec![one.place],
            Stored::Several(all, _) => all.iter().map(|one| one.place).collect(),
        }
    }
}

/// Error for a value that does not fit its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub(crate) place: Option<PlaceNumber>,
    pub(crate) why: String,
}

impl Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
impl std::error::Error for Unfit {}
impl de::Error for Unfit {
    fn custom<T: Display>(why: T) -> Self {
        Unfit { place: None, why: why.to_string() }
    }
}

/// Reads the values of a table into a structure.
///
/// # Errors
/// Returns the first value that does not fit its key.
pub(crate) fn read<'de, T: Deserialize<'de>>(values: &'de [(String, Stored)]) -> Result<T, Unfit> {
    T::deserialize(MapDeserializer::new(values.iter().map(|(key, value)| (key.as_str(), value))))
}

impl<'de> Deserializer<'de> for &'de Placed {
    type Error = Unfit;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.raw.clone().deserialize_any(visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Unfit> {
        let at = |why: Unfit| Unfit { place: why.place.or(Some(self.place)), ..why };
        visitor.visit_newtype_struct(self).map_err(at)
    }
    /// Passes the place and the value to the visitor.
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unfit> {
        let both = [Raw::Whole(self.place as i128), self.raw.clone()];
        visitor.visit_seq(SeqDeserializer::new(both.into_iter()))
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        struct seq tuple_struct map enum identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for &'de Stored {
    type Error = Unfit;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self {
            Stored::One(one) => one.deserialize_any(visitor),
            Stored::Several(all, _) => visitor.visit_seq(SeqDeserializer::new(all.iter())),
        }
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Unfit> {
        match self {
            Stored::One(one) => one.deserialize_newtype_struct(name, visitor),
            Stored::Several(..) => visitor.visit_newtype_struct(self),
        }
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for Raw {
    type Error = Unfit;
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self {
            Raw::Text(text) => visitor.visit_string(text),
            Raw::Whole(n) => visitor.visit_i128(n),
            Raw::Real(x) => visitor.visit_f64(x),
            Raw::Switch(on) => visitor.visit_bool(on),
            Raw::List(all) => visitor.visit_seq(SeqDeserializer::new(all.into_iter())),
        }
    }
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self {
            Raw::Whole(n) => visitor.visit_u64(n as u64),
            other => other.deserialize_any(visitor),
        }
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
impl IntoDeserializer<'_, Unfit> for Raw {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
impl<'de> IntoDeserializer<'de, Unfit> for &'de Placed {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
impl<'de> IntoDeserializer<'de, Unfit> for &'de Stored {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
