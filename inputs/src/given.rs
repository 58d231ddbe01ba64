//! Values of the keys in the tables of an input, with the places where they were typed.
use crate::values::{Kind, Raw, Value};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Index of a value's place in its [`Input`](crate::Input).
pub type PlaceNumber = usize;

/// Value of a key, with its place in the input; empty if the key is absent or its value is invalid.
pub struct Given<T: Value>(Option<(T::Out, PlaceNumber)>);

/// Values of a key that accepts several values, each with its place in the input.
pub struct Listed<T: Value>(Vec<Given<T>>);

impl<T: Value> Given<T> {
    /// Returns the value; `None` if the key is absent or its value is wrong.
    pub fn get(&self) -> Option<&T::Out> {
        self.0.as_ref().map(|(value, _)| value)
    }
    /// Returns a copy of the value; `None` if the key is absent or its value is wrong.
    pub fn value(&self) -> Option<T::Out>
    where
        T::Out: Clone,
    {
        self.get().cloned()
    }
    /// Returns a copy of the value, or `other` if the key is absent or its value is invalid.
    pub fn or(&self, other: T::Out) -> T::Out
    where
        T::Out: Clone,
    {
        self.value().unwrap_or(other)
    }
    /// Returns whether the key has a valid value.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }
    pub(crate) fn place(&self) -> Option<PlaceNumber> {
        self.0.as_ref().map(|(_, place)| *place)
    }
}

impl<T: Value<Out = bool>> Given<T> {
    /// Returns whether a switch was given and is true.
    pub fn is_on(&self) -> bool {
        self.value() == Some(true)
    }
}

impl<T: Value> Listed<T> {
    /// Returns the values of the key in the order in which they were typed.
    pub fn iter(&self) -> impl Iterator<Item = &Given<T>> {
        self.0.iter()
    }
    /// Returns the first value of the key; `None` if there is none.
    pub fn first(&self) -> Option<&Given<T>> {
        self.0.first()
    }
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Value> Default for Given<T> {
    fn default() -> Self {
        Given(None)
    }
}
impl<T: Value> Default for Listed<T> {
    fn default() -> Self {
        Listed(Vec::new())
    }
}
impl<T: Value<Out: Clone>> Clone for Given<T> {
    fn clone(&self) -> Self {
        Given(self.0.clone())
    }
}
impl<T: Value<Out: Clone>> Clone for Listed<T> {
    fn clone(&self) -> Self {
        Listed(self.0.clone())
    }
}
impl<T: Value<Out: fmt::Debug>> fmt::Debug for Given<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
impl<T: Value<Out: fmt::Debug>> fmt::Debug for Listed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names of the kinds of values, by which a [`Schema`](crate::Schema) recognises them.
pub(crate) const KINDS: [(Kind, &str); 10] = [
    (Kind::Text, "Text"),
    (Kind::Texts, "Texts"),
    (Kind::Number, "Number"),
    (Kind::Count, "Count"),
    (Kind::Word, "Word"),
    (Kind::Switch, "Switch"),
    (Kind::Extents, "Extents"),
    (Kind::Sites, "Sites"),
    (Kind::Numbers, "Numbers"),
    (Kind::Fractions, "Fractions"),
];

fn name_of(kind: Kind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

impl<'de, T: Value> Deserialize<'de> for Given<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One<T>(PhantomData<T>);
        impl<'de, T: Value> Visitor<'de> for One<T> {
            type Value = Given<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Given<T>, D::Error> {
                let (place, raw) = <(u64, Raw)>::deserialize(deserializer)?;
                Ok(Given(Some((T::of(&raw).map_err(D::Error::custom)?, place as PlaceNumber))))
            }
        }
        deserializer.deserialize_newtype_struct(name_of(T::KIND), One(PhantomData))
    }
}

impl<'de, T: Value> Deserialize<'de> for Listed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Several<T>(PhantomData<T>);
        impl<'de, T: Value> Visitor<'de> for Several<T> {
            type Value = Listed<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Listed<T>, D::Error> {
                deserializer.deserialize_seq(self)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Listed<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(Listed(all))
            }
        }
        deserializer.deserialize_newtype_struct(name_of(T::KIND), Several(PhantomData))
    }
}
