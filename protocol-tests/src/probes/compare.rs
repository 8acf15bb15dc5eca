//! What of two answers must agree: ids are named, lists sorted, values compared path by path.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::template::Variables;

/// What lists of structs are sorted by, as far as they have it.
const SORTED_BY: &[&str] = &[
    "Name",
    "TopicId",
    "Topic",
    "TopicName",
    "GroupId",
    "Key",
    "ResourceName",
    "User",
    "TransactionalId",
    "MemberId",
    "Index",
    "PartitionIndex",
    "Partition",
    "PartitionId",
    "BatchIndex",
    "Principal",
    "Operation",
    "ApiKey",
];

/// The value at a path such as `Topics[0].Name`.
pub(super) fn at<'a>(answer: &'a Value, path: &str) -> Option<&'a Value> {
    let parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
    parts
        .into_iter()
        .try_fold(answer, |value, part| match value {
            Value::Array(list) => list.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        })
}

/// Every error code in an answer: `ErrorCode`, `PartitionErrorCode` and the like.
pub(super) fn error_codes(answer: &Value) -> Vec<Value> {
    match answer {
        Value::Array(list) => list.iter().flat_map(error_codes).collect(),
        Value::Object(fields) => {
            let own = fields
                .iter()
                .filter(|(name, _)| name.ends_with("ErrorCode"));
            let own = own.map(|(_, code)| code.clone());
            own.chain(fields.values().flat_map(error_codes)).collect()
        }
        _ => Vec::new(),
    }
}

/// The answer with names for the story's ids, and with its lists in an order of their own.
pub(super) fn normal(answer: Value, variables: &Variables, ordered: bool) -> Value {
    normal_in("", answer, variables, ordered)
}

fn normal_in(field: &str, value: Value, variables: &Variables, ordered: bool) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let value = normal_in(&name, value, variables, ordered);
                (name, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(list) => {
            let list = list
                .into_iter()
                .map(|one| normal_in(field, one, variables, ordered));
            let mut list: Vec<Value> = list.collect();
            if !ordered && field != "Batches" {
                list.sort_by_key(sort_key);
            }
            list.into()
        }
        value => named(field, &value, variables).unwrap_or(value),
    }
}

fn sort_key(value: &Value) -> Vec<String> {
    let key = |value: &Value| match value.as_i64() {
        Some(number) => format!("{number:020}"),
        None => value.to_string(),
    };
    match value {
        Value::Object(fields) => SORTED_BY
            .iter()
            .filter_map(|name| fields.get(*name))
            .map(key)
            .collect(),
        value => vec![key(value)],
    }
}

/// `$name` for a value that a variable of the story has.
fn named(field: &str, value: &Value, variables: &Variables) -> Option<Value> {
    let matches = |name: &str| match value {
        Value::String(text) => text.len() >= 20,
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(-1);
            let is_id =
                (field == "ProducerId" && number >= 0) || (field == "SessionId" && number > 0);
            is_id && (name.contains("pid") || name.contains("session"))
        }
        _ => false,
    };
    let mut known = variables.iter();
    let (name, _) = known.find(|(name, known)| *known == value && matches(name))?;
    Some(format!("${name}").into())
}

/// Paths and values, each list with its length at `path.#`.
fn flat(value: &Value) -> BTreeMap<String, Value> {
    let mut out = BTreeMap::new();
    flatten(String::new(), value, &mut out);
    out
}

fn flatten(path: String, value: &Value, out: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                flatten(inner, value, out);
            }
        }
        Value::Array(list) => {
            out.insert(format!("{path}.#"), list.len().into());
            for (index, value) in list.iter().enumerate() {
                flatten(format!("{path}[{index}]"), value, out);
            }
        }
        value => {
            out.insert(path, value.clone());
        }
    }
}

/// A line for each path whose value is another.
pub(super) fn differences(expected: &BTreeMap<String, Value>, answer: &Value) -> Vec<String> {
    let got = flat(answer);
    let differs = expected
        .iter()
        .filter(|(path, value)| got.get(*path) != Some(*value));
    differs
        .map(|(path, value)| match got.get(path) {
            Some(got) => format!("{path}: expected {value}, got {got}"),
            None => format!("{path}: expected {value}, it is not there"),
        })
        .collect()
}

/// Of a list of APIs only those that the broker serves: each must have the versions on file.
pub(super) fn narrow_to(expected: &mut BTreeMap<String, Value>, served: &BTreeSet<i16>) {
    let mut listed = Vec::new();
    for index in 0.. {
        let path = |field: &str| format!("ApiKeys[{index}].{field}");
        let Some(key) = expected.remove(&path("ApiKey")) else {
            break;
        };
        let mut take = |field: &str| expected.remove(&path(field)).unwrap_or_default();
        let (min, max) = (take("MinVersion"), take("MaxVersion"));
        let is_served = key.as_i64().and_then(|key| key.try_into().ok());
        if is_served.is_some_and(|key: i16| served.contains(&key)) {
            let row = [("ApiKey", key), ("MinVersion", min), ("MaxVersion", max)];
            listed.push(
                row.into_iter()
                    .map(|(n, v)| (n.to_owned(), v))
                    .collect::<Map<_, _>>(),
            );
        }
    }
    if expected.contains_key("ApiKeys.#") {
        let rows: Value = listed.into_iter().map(Value::from).collect();
        expected.extend(flat(&Value::from_iter([("ApiKeys", rows)])));
    }
}
