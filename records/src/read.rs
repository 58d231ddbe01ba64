//! Reading of records from JSON.
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_path_to_error::Segment;

/// Reads a record. Keys that the type of the record does not have are ignored.
///
/// # Errors
/// Returns a sentence on the value that is missing or has another type. It begins with the path of the key: ``plaquette: missing field
/// `spatial` ``.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|why| match why.path().to_string().as_str() {
        "." | "?" => why.inner().to_string(),
        path => format!("{path}: {}", why.inner()),
    })
}

/// Reads a record that may lack keys. Keys whose value has another type are ignored.
pub fn read_leniently<T: DeserializeOwned + Default>(value: &Value) -> T {
    let mut value = value.clone();
    while let Value::Object(object) = &mut value {
        let Err(why) = serde_path_to_error::deserialize::<_, T>(&*object) else { break };
        let Some(Segment::Map { key }) = why.path().iter().next() else { break };
        if object.remove(key).is_none() {
            break;
        }
    }
    serde_json::from_value(value).unwrap_or_default()
}

/// Reads the elements of a list. Keys whose value has another type are ignored. Returns `None` if the value is not a list.
pub fn read_list_leniently<T: DeserializeOwned + Default>(value: &Value) -> Option<Vec<T>> {
    let Value::Array(list) = value else { return None };
    Some(list.iter().map(read_leniently).collect())
}

/// Reads the value of a key as `Some`, even if it is `null`. A missing key gives `None` in a field of type `Option<Option<T>>` with
/// `#[serde(default)]`.
///
/// # Errors
/// Fails if the value has another type.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Returns the schema of an object, such as `ferrite.solve/1`; `None` if the object has none.
pub fn schema(value: &Value) -> Option<&str> {
    value["schema"].as_str()
}

/// Returns the schema of an object without its version; an empty text if the object has no schema.
pub fn kind(value: &Value) -> &str {
    let schema = schema(value).unwrap_or_default();
    schema.split_once('/').map_or(schema, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        x: f64,
        #[serde(skip_deserializing)]
        y: f64,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Outer {
        name: String,
        list: Vec<Inner>,
    }

    #[test]
    fn errors_name_the_key() {
        let read = |value: &Value| read::<Outer>(value);
        assert_eq!(read(&json!({ "name": "a", "other": 1 })).unwrap().name, "a");
        let why = read(&json!({ "list": [{ "x": 1.0 }, { "x": "y" }] })).unwrap_err();
        assert!(why.starts_with("list[1].x: invalid type"), "{why}");
    }

    #[test]
    fn keys_of_another_type_are_left_out() {
        let found: Outer = read_leniently(&json!({ "name": 3, "list": [{ "x": 2.0 }] }));
        assert_eq!(found, Outer { name: String::new(), list: vec![Inner { x: 2.0, y: 0.0 }] });
        assert_eq!(read_leniently::<Outer>(&json!({ "name": "a", "list": [{ "x": [] }] })).name, "a");
        for value in [json!(null), json!([1]), json!("text")] {
            assert_eq!(read_leniently::<Outer>(&value), Outer::default(), "{value}");
        }
    }

    #[test]
    fn an_element_of_another_type_does_not_spoil_a_list() {
        let list = read_list_leniently::<Outer>(&json!([{ "name": "a" }, 3, { "name": 1, "list": [{ "x": 2.0 }] }]));
        let named = Outer { name: "a".into(), list: Vec::new() };
        let listed = Outer { name: String::new(), list: vec![Inner { x: 2.0, y: 0.0 }] };
        assert_eq!(list, Some(vec![named, Outer::default(), listed]));
        assert_eq!(read_list_leniently::<Outer>(&json!({ "name": "a" })), None);
    }

    #[test]
    fn schemas_have_versions() {
        let object = json!({ "schema": "ferrite.solve/1" });
        assert_eq!((schema(&object), kind(&object), kind(&json!([]))), (Some("ferrite.solve/1"), "ferrite.solve", ""));
    }
}
