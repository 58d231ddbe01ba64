//! Keys of an input, taken from the structures into which it is read.
use crate::InputKind;
use crate::given::KINDS;
use crate::values::Kind;
use serde::de::value::{Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::cell::Cell;
use std::iter;

/// Keys with their kinds. Keys of tables contain a dot: `trajectory.length`. Keys of arrays of tables contain `*` for the number of the
/// table: `fermion.*.mass`.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub(crate) keys: Vec<(String, Kind)>,
    /// Command that reads this input.
    pub(crate) command: Option<InputKind>,
    pub(crate) solves: Option<SolveTables>,
}

/// Table with the keys of a solve, and array of tables with keys in which solves differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolveTables {
    pub table: &'static str,
    pub array: &'static str,
    pub schema: &'static Schema,
}

impl Schema {
    /// Creates a schema without keys. `command` is the command that reads the input; `None` for a file that the program writes for itself.
    pub fn new(command: Option<InputKind>) -> Self {
        Schema { command, ..Self::default() }
    }
    /// Adds the fields of a structure as keys of a table. If the name of the table is empty, adds them as keys outside tables.
    #[must_use]
    pub fn with<'de, T: Deserialize<'de>>(mut self, table: &str) -> Self {
        let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
        self.keys.extend(fields::<T>().iter().map(|field| (format!("{prefix}{field}"), kind::<T>(field))));
        self
    }
    /// Adds keys of a table that operators or methods define.
    #[must_use]
    pub fn with_keys(mut self, table: &str, keys: impl IntoIterator<Item = (&'static str, Kind)>) -> Self {
        let prefix = if table.is_empty() { String::new() } else { format!("{table}.") };
        for (name, kind) in keys {
            let name = format!("{prefix}{name}");
            if self.keys.iter().all(|(known, _)| *known != name) {
                self.keys.push((name, kind));
            }
        }
        self
    }
    /// Adds a table with the keys of a solve, and an array of tables in which these keys may also stand.
    #[must_use]
    pub fn with_solves(self, table: &'static str, array: &'static str, schema: &'static Schema) -> Self {
        Schema { solves: Some(SolveTables { table, array, schema }), ..self }
    }
    /// Returns the keys with their kinds, without the keys in the table for solves.
    pub fn keys(&self) -> impl Iterator<Item = (&str, Kind)> {
        self.keys.iter().map(|(name, kind)| (name.as_str(), *kind))
    }
    /// Returns the kind of a key's values.
    pub fn kind_of(&self, key: &str) -> Option<Kind> {
        self.keys().find(|(name, _)| *name == key).map(|(_, kind)| kind)
    }
    /// Returns all keys. Keys of the table for solves contain its name.
    pub fn all_names(&self) -> Vec<String> {
        let of_solves = |solves: &SolveTables| {
            let names = solves.schema.keys().map(|(name, _)| format!("{}.{name}", solves.table));
            names.collect::<Vec<_>>()
        };
        let own = self.keys().map(|(name, _)| name.to_string());
        own.chain(self.solves.iter().flat_map(of_solves)).collect()
    }
}

/// Returns the names of a structure's fields, as they appear in an input.
fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Names<'a>(&'a Cell<&'static [&'static str]>);
    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom("not a structure"))
        }
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Error> {
            self.0.set(fields);
            Err(Error::custom("the names are known"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    let names = Cell::new(&[][..]);
    // Deserialization fails on purpose after the names have been stored.
    let _ = T::deserialize(Names(&names));
    names.get()
}

/// Returns the kind of a field of a structure.
fn kind<'de, T: Deserialize<'de>>(field: &'static str) -> Kind {
    struct Asked<'a>(&'a Cell<Kind>);
    impl<'de> Deserializer<'de> for Asked<'_> {
        type Error = Error;
        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom("not a value of a key"))
        }
        fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, _: V) -> Result<V::Value, Error> {
            if let Some((kind, _)) = KINDS.iter().find(|(_, known)| *known == name) {
                self.0.set(*kind);
            }
            Err(Error::custom("the kind is known"))
        }
        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }
    impl IntoDeserializer<'_> for Asked<'_> {
        type Deserializer = Self;
        fn into_deserializer(self) -> Self {
            self
        }
    }
    let kind = Cell::new(Kind::Text);
    // Deserialization fails on purpose after the kind has been stored.
    let _ = T::deserialize(MapDeserializer::new(iter::once((field, Asked(&kind)))));
    kind.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{Any, Count, Item, Number, Switch};
    use crate::{Given, Listed};

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, rename_all = "kebab-case")]
    struct Table {
        mass: Given<Number<Any>>,
        max_iterations: Given<Count<1, 9>>,
        no_verify: Given<Switch>,
        source: Listed<Item>,
    }

    #[test]
    fn keys_are_fields_of_structures() {
        let schema =
            Schema::new(None).with::<Table>("").with::<Table>("fermion.*").with_keys("", [("mu", Kind::Number)]);
        let expected = [
            ("mass", Kind::Number),
            ("max-iterations", Kind::Count),
            ("no-verify", Kind::Switch),
            ("source", Kind::Texts),
        ];
        assert!(schema.keys().take(4).eq(expected));
        assert_eq!(schema.kind_of("fermion.*.max-iterations"), Some(Kind::Count));
        assert_eq!(schema.kind_of("mu"), Some(Kind::Number));
        assert_eq!(schema.kind_of("fermion.*.mu"), None);
    }
}
