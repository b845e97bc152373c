//! The schemas of fields that the types alone do not give, and the rules that the apiserver checks.
//!
//! Where a value can be wrong, a rule in CEL checks it instead of `pattern` or `oneOf`, because only a rule can say
//! in words what was found and what would be right. Every text and list has a maximum: the apiserver multiplies
//! them to estimate the cost of the rules.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// The units in the order in which they may occur: the letter, its seconds, and how many digits a number may have.
/// With these limits every duration fits into the 292 years that CEL can count.
pub(crate) const UNITS: [(char, u64, usize); 3] = [('h', 3600, 6), ('m', 60, 7), ('s', 1, 9)];

/// Numbers are counts of nodes, with 32 bits as in Kubernetes.
const MAX_NUMBER: i32 = i32::MAX;
const LABEL_NAME: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// A rule that fails with these words. Where CEL itself fails, the apiserver adds them to the error of CEL.
fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A rule whose message is an expression, so that it can say what was found.
fn explained(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "messageExpression": message })
}

/// The same about a field that is missing.
fn missing(field: &str, rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "messageExpression": message, "fieldPath": field, "reason": "FieldValueRequired" })
}

/// The same about a field that must not be there.
fn forbidden(field: &str, rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "messageExpression": message, "fieldPath": field, "reason": "FieldValueForbidden" })
}

/// A text that must match, or the message says what it is not.
fn text(max_length: u32, pattern: &str, what: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": max_length,
        "x-kubernetes-validations": [explained(&matches(pattern), &not(what))],
    })
}

fn matches(pattern: &str) -> String {
    format!("self.matches({})", quoted(&format!("^({pattern})$")))
}

fn not(what: &str) -> String {
    format!("\"'\" + self + \"' is not \" + {}", quoted(what))
}

/// A text as a literal of CEL.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn integer(minimum: u32) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": minimum })
}

/// A count that may be 0.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    integer(0)
}

/// A count of at least 1.
pub(crate) fn at_least_one(_: &mut SchemaGenerator) -> Schema {
    integer(1)
}

/// A number or percentage of nodes.
pub(crate) fn int_or_percent(minimum: u32) -> Schema {
    let percentages = if minimum == 0 {
        "100|[1-9]?[0-9]"
    } else {
        "100|[1-9][0-9]?"
    };
    let is_percentage = matches(&format!("({percentages})%"));
    let check = format!("type(self) == int ? self >= {minimum} && self <= {MAX_NUMBER} : {is_percentage}");
    let right = format!(
        " is not allowed: write a number of at least {minimum} without quotes, or a percentage from \"{minimum}%\" to \"100%\""
    );
    let message = format!(
        "(type(self) == int ? string(self) : \"'\" + string(self) + \"'\") + {}",
        quoted(&right)
    );
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "nullable": false,
        "maxLength": 16,
        "x-kubernetes-validations": [explained(&check, &message)],
    })
}

/// At least 1, or `1%`.
pub(crate) fn positive_int_or_percent(_: &mut SchemaGenerator) -> Schema {
    int_or_percent(1)
}

fn duration_pattern() -> String {
    let units = UNITS.map(|(letter, _, digits)| format!("([0-9]{{1,{digits}}}{letter})?"));
    units.concat()
}

pub(crate) fn duration() -> Schema {
    let is_right = format!("self != '' && {}", matches(&duration_pattern()));
    let message =
        not("a duration: write hours, minutes and seconds in this order, such as 10m, 1h30m or 45s");
    json_schema!({
        "type": "string",
        "maxLength": 32,
        "x-kubernetes-validations": [explained(&is_right, &message)],
    })
}

/// A duration of at least a second.
pub(crate) fn interval(_: &mut SchemaGenerator) -> Schema {
    let mut schema = duration();
    // Of a text that is no duration, the rule above says so.
    let is_long_enough = format!(
        "self == '' || !{} || duration(self) >= duration('1s')",
        matches(&duration_pattern())
    );
    add_rules(
        &mut schema,
        [explained(
            &is_long_enough,
            "\"'\" + self + \"' is too short: write at least 1s\"",
        )],
    );
    schema
}

pub(crate) fn time_of_day() -> Schema {
    text(
        32,
        "([01][0-9]|2[0-3]):[0-5][0-9]",
        "a time of the day: write hours and minutes with two digits each, from \"00:00\" to \"23:59\", such as \"09:30\"",
    )
}

/// A name that CEL finds in its database. CEL would also take offsets and the zone of the apiserver.
pub(crate) fn time_zone(_: &mut SchemaGenerator) -> Schema {
    const RIGHT: &str = "write a name of the IANA time zone database, such as Europe/Berlin or UTC";
    let looks_right = format!(
        "self != 'Local' && {}",
        matches("[A-Za-z][-+A-Za-z0-9_]*(/[-+A-Za-z0-9_]+)*")
    );
    let is_known = format!("!({looks_right}) || timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0");
    json_schema!({
        "type": "string",
        "maxLength": 64,
        "x-kubernetes-validations": [
            explained(&looks_right, &not(&format!("a time zone: {RIGHT}"))),
            rule(&is_known, RIGHT),
        ],
    })
}

pub(crate) fn dns_label(_: &mut SchemaGenerator) -> Schema {
    text(
        63,
        DNS_LABEL,
        "a name: write lower-case letters, digits and hyphens, with a letter or digit at both ends",
    )
}

pub(crate) fn dns_subdomain(_: &mut SchemaGenerator) -> Schema {
    text(
        253,
        &format!("{DNS_LABEL}(\\.{DNS_LABEL})*"),
        "a name: write lower-case letters, digits, hyphens and dots, with a letter or digit at both ends",
    )
}

pub(crate) fn label_key(_: &mut SchemaGenerator) -> Schema {
    text(
        317,
        &format!("({DNS_LABEL}(\\.{DNS_LABEL})*/)?{LABEL_NAME}"),
        "the key of a label: write a key such as pool or topology.kubernetes.io/zone",
    )
}

pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    let message = not(
        "a URL: write a URL that begins with http:// or https://, such as http://prometheus.monitoring:9090",
    );
    json_schema!({
        "type": "string",
        "maxLength": 1024,
        "x-kubernetes-validations": [explained(
            "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",
            &message,
        )],
    })
}

pub(crate) fn host_and_port(_: &mut SchemaGenerator) -> Schema {
    text(
        259,
        "(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?):[0-9]{1,5}",
        "a host with a port: write both without a scheme, such as checks.monitoring:9000",
    )
}

/// Names of DaemonSets.
pub(crate) fn names(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": dns_subdomain(generator),
        "minItems": 1,
        "maxItems": 100,
        "x-kubernetes-list-type": "set",
    })
}

/// A LabelSelector in which an operator has values exactly if it needs some.
pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let value = json!({ "type": "string", "maxLength": 63, "pattern": format!("^({LABEL_NAME})?$") });
    let needs_values = "self.operator in ['In', 'NotIn']";
    let has_values = "has(self.values) && size(self.values) > 0";
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that must have these values.",
                "type": "object",
                "maxProperties": 32,
                "additionalProperties": value,
            },
            "matchExpressions": {
                "description": "Requirements for labels, all of which must be met.",
                "type": "array",
                "maxItems": 32,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": described("The key of the label.", label_key(generator)),
                        "operator": {
                            "description": "In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "The values of In and NotIn. Exists and DoesNotExist have none.",
                            "type": "array",
                            "maxItems": 1000,
                            "x-kubernetes-list-type": "atomic",
                            "items": value,
                        },
                    },
                    "x-kubernetes-validations": [
                        missing(".values", &format!("!({needs_values}) || ({has_values})"),
                            "'operator ' + self.operator + ' needs values: write at least one'"),
                        forbidden(".values", &format!("{needs_values} || !({has_values})"),
                            "'operator ' + self.operator + ' takes no values: remove them, or write In or NotIn'"),
                    ],
                },
            },
        },
    })
}

fn described(description: &str, mut schema: Schema) -> Schema {
    schema.insert("description".into(), description.into());
    schema
}

/// Conditions as in Kubernetes' own objects.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "Accepted: whether the policy is used. Progressing: whether the rollout goes on. Available: whether the pods of all \
                                    targets are available. RolledBack: whether a rejected revision was rolled back.",
                    "type": "string",
                    "maxLength": 316,
                },
                "status": {
                    "description": "True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": { "description": "Why, in one word.", "type": "string", "minLength": 1, "maxLength": 128 },
                "message": { "description": "Why, in a sentence.", "type": "string", "maxLength": 4096 },
                "lastTransitionTime": {
                    "description": "When the status changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The generation of the policy that the condition is about.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

fn add_rules(schema: &mut Schema, rules: impl IntoIterator<Item = Value>) {
    let key = "x-kubernetes-validations";
    let mut all = match schema.remove(key) {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.extend(rules);
    schema.insert(key.into(), Value::Array(all));
}

pub(crate) fn targets(schema: &mut Schema) {
    add_rules(
        schema,
        [explained(
            "has(self.names) != has(self.selector)",
            "has(self.names) ? 'names and selector are both set: remove one of them' \
             : 'neither names nor selector is set: write the names of DaemonSets, or a selector for their labels'",
        )],
    );
}

pub(crate) fn stage(schema: &mut Schema) {
    add_rules(
        schema,
        [forbidden(
            ".groupBy",
            "!(has(self.replicas) && has(self.groupBy))",
            "\"stage '\" + self.name + \"' has both replicas and groupBy: remove one of them\"",
        )],
    );
}

pub(crate) fn analysis(schema: &mut Schema) {
    let check = "\"check '\" + self.name + \"' ";
    add_rules(
        schema,
        [
            explained(
                "(has(self.prometheus) ? 1 : 0) + (has(self.webhook) ? 1 : 0) + (has(self.grpc) ? 1 : 0) == 1",
                &format!(
                    "{check}has \" + (has(self.prometheus) \
                     ? (has(self.webhook) ? (has(self.grpc) ? 'prometheus, webhook and grpc' : 'prometheus and webhook') : 'prometheus and grpc') \
                     : (has(self.webhook) ? 'webhook and grpc' : 'none')) \
                     + ': write exactly one of prometheus, webhook and grpc'"
                ),
            ),
            missing(
                ".successCondition",
                "!has(self.prometheus) || has(self.successCondition)",
                &format!("{check}asks Prometheus, so it needs a condition such as 'result < 0.01'\""),
            ),
            forbidden(
                ".successCondition",
                "!has(self.grpc) || !has(self.successCondition)",
                &format!("{check}asks a gRPC service, which decides itself: remove the condition\""),
            ),
        ],
    );
}

pub(crate) fn window(schema: &mut Schema) {
    let right = "write both, or neither for the whole day";
    add_rules(
        schema,
        [
            missing(
                ".endTime",
                "!has(self.startTime) || has(self.endTime)",
                &format!("'the window begins at ' + self.startTime + ', but has no end: {right}'"),
            ),
            missing(
                ".startTime",
                "!has(self.endTime) || has(self.startTime)",
                &format!("'the window ends at ' + self.endTime + ', but has no start: {right}'"),
            ),
            json!({
                "rule": "!has(self.startTime) || !has(self.endTime) || self.startTime != self.endTime",
                "messageExpression": "'the window begins and ends at ' + self.startTime + ', so it never opens: \
                    write another end, or neither start nor end for the whole day'",
                "fieldPath": ".endTime",
            }),
        ],
    );
}
