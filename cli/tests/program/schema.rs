//! As much of JSON Schema as our own schema uses: enough to hold an object to it.

#![expect(clippy::expect_used, reason = "a schema that is none must fail its test on the spot")]

use serde_json::Value;

/// The keywords that this knows. A schema that uses another is not checked, and that is a fault.
const KNOWN: [&str; 14] = [
    "$schema",
    "$ref",
    "$defs",
    "title",
    "description",
    "type",
    "required",
    "properties",
    "items",
    "minItems",
    "minimum",
    "enum",
    "const",
    "anyOf",
];

/// Where the value is not as the schema says.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    check(schema, schema, value, "$")
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let members = schema.as_object().expect("a schema is an object");
    let mut faults = Vec::new();
    let mut fault = |holds: bool, what: &str| {
        if !holds {
            faults.push(format!("{at}: {what}"));
        }
    };
    let known = |name: &String| KNOWN.contains(&&**name);
    fault(members.keys().all(known), "the schema uses a keyword that is not checked");
    if let Some(types) = members.get("type") {
        let types = types.as_array().map_or_else(|| vec![types], |all| all.iter().collect());
        fault(types.iter().any(|name| is_a(value, name.as_str())), "another type");
    }
    fault(members.get("const").is_none_or(|only| only == value), "another value");
    let listed = members.get("enum").and_then(Value::as_array);
    fault(listed.is_none_or(|all| all.contains(value)), "none of the values");
    let minimum = members.get("minimum").and_then(Value::as_f64);
    let number = value.as_f64();
    fault(minimum.zip(number).is_none_or(|(least, number)| number >= least), "too small");
    let least = members.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let items = value.as_array();
    fault(items.is_none_or(|items| items.len() as u64 >= least), "too few items");
    for name in members.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().expect("a name is a text");
        fault(value.as_object().is_none_or(|o| o.contains_key(name)), &format!("no {name}"));
    }
    if let Some(path) = members.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(path.trim_start_matches('#')).expect("a reference has a target");
        faults.extend(check(root, target, value, at));
    }
    if let Some(any) = members.get("anyOf").and_then(Value::as_array) {
        let each: Vec<_> = any.iter().map(|schema| check(root, schema, value, at)).collect();
        if each.iter().all(|faults| !faults.is_empty()) {
            // What is nearly right says the most.
            faults.extend(each.into_iter().min_by_key(Vec::len).unwrap_or_default());
        }
    }
    for (name, member) in members.get("properties").and_then(Value::as_object).into_iter().flatten()
    {
        if let Some(inner) = value.get(name) {
            faults.extend(check(root, member, inner, &format!("{at}.{name}")));
        }
    }
    if let (Some(schema), Some(items)) = (members.get("items"), items) {
        for (number, item) in items.iter().enumerate() {
            faults.extend(check(root, schema, item, &format!("{at}[{number}]")));
        }
    }
    faults
}

fn is_a(value: &Value, name: Option<&str>) -> bool {
    match name {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        _ => false,
    }
}
