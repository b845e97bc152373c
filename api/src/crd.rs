//! The schema of the object, in the form that CustomResourceDefinitions must have.

use std::borrow::Cow;

use kube_core::schema::StructuralSchemaRewriter;
use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    json_schema,
    transform::{Transform, transform_subschemas},
};
use serde_json::{Map, Value};

use crate::{RolloutPolicy, RolloutPolicySpec, RolloutPolicyStatus};

/// Not derived: a derived schema would have `null` as a value of every optional field, and the descriptions of the
/// types instead of those of the fields.
impl JsonSchema for RolloutPolicy {
    fn schema_name() -> Cow<'static, str> {
        "RolloutPolicy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A RolloutPolicy says how the new revision of DaemonSets reaches the nodes: in which stages, how fast, when, what is \
                            checked, and what happens when it goes wrong. It stands beside DaemonSets of its namespace, which stay as they are.",
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": structural::<RolloutPolicySpec>(),
                "status": structural::<RolloutPolicyStatus>(),
            },
        })
    }
}

fn structural<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .with_transform(Tidy)
        .with_transform(StructuralSchemaRewriter)
        .into_generator()
        .into_root_schema_for::<T>();
    schema.remove("title");
    schema
}

/// Optional fields are absent, not null. There are no defaults: a given value must stay different from an absent
/// one. Each description is one line.
#[derive(Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(members) = schema.as_object_mut() else {
            return;
        };
        if let Some(value) = optional(members) {
            members.remove("anyOf");
            for (key, member) in value {
                members.entry(key).or_insert(member);
            }
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            members.remove("nullable");
        }
        members.remove("default");
        if let Some(Value::String(description)) = members.get_mut("description") {
            *description = description.replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}

/// The schema of the value if this is one of an optional value: one of two, the other of which is null.
fn optional(members: &Map<String, Value>) -> Option<Map<String, Value>> {
    match members.get("anyOf")?.as_array()?.as_slice() {
        [value, null] if null["nullable"] == true => value.as_object().cloned(),
        _ => None,
    }
}
