//! The `data` of ControllerRevisions, in the bytes that upstream writes (D-58).

use serde_json::Value;

use crate::core::json::{Json, Part, rewrite, write_list};

/// Serializes a small value as upstream does.
pub(crate) fn to_bytes(value: &Value) -> Vec<u8> {
    Json::from(value).as_str().into()
}

/// The `data` of a ControllerRevision for this template.
///
/// The template is taken as served, so no field is lost. Apiservers of different versions serve a few fields differently; those
/// are written as upstream writes them: `creationTimestamp: null` is left out, and `metadata` and each container's `resources`
/// are objects even when empty.
pub(crate) fn revision_data(template: &Json) -> Json {
    let mut out = String::with_capacity(template.as_str().len());
    out.push_str(r#"{"spec":{"template":"#);
    rewrite(
        &mut out,
        template.part(),
        &["$patch", "metadata", "spec"],
        |written, key, old| match (key, old) {
            ("$patch", _) => written.member(key).push_str(r#""replace""#),
            ("metadata", old) => write_metadata(written.member(key), old.unwrap_or(Part::EMPTY)),
            (_, Some(spec)) if spec.is_object() => write_spec(written.member(key), spec),
            (_, Some(odd)) => written.member(key).push_str(odd.text()),
            (_, None) => {}
        },
    );
    out.push_str("}}");
    Json::written(out)
}

fn write_metadata(out: &mut String, metadata: Part<'_>) {
    rewrite(out, metadata, &["creationTimestamp"], |written, key, old| {
        if let Some(time) = old.filter(|time| !time.is_null()) {
            written.member(key).push_str(time.text());
        }
    });
}

fn write_spec(out: &mut String, spec: Part<'_>) {
    rewrite(
        out,
        spec,
        &["containers", "initContainers"],
        |written, key, old| {
            let Some(containers) = old else { return };
            let out = written.member(key);
            if containers.is_list() {
                write_list(out, containers.items(), write_container);
            } else {
                out.push_str(containers.text());
            }
        },
    );
}

fn write_container(out: &mut String, container: Part<'_>) {
    if !container.is_object() {
        out.push_str(container.text());
        return;
    }
    rewrite(out, container, &["resources"], |written, key, old| {
        written.member(key).push_str(old.unwrap_or(Part::EMPTY).text());
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn d_58_the_example_of_the_serialization_is_reproduced_to_the_byte() {
        // The members are out of order on purpose. Apiservers up to 1.33 serve the null timestamp.
        let template: Json = serde_json::from_str(
            r#"{"spec":{"terminationGracePeriodSeconds":30,"securityContext":{},"schedulerName":"default-scheduler",
                "restartPolicy":"Always","dnsPolicy":"ClusterFirst","containers":[{"name":"c","image":"img:1",
                "terminationMessagePolicy":"File","terminationMessagePath":"/dev/termination-log",
                "imagePullPolicy":"IfNotPresent"}]},
                "metadata":{"creationTimestamp":null,"labels":{"app":"x"},"annotations":{"html":"<a>&b"}}}"#,
        )
        .unwrap();
        let expected = r#"{"spec":{"template":{"$patch":"replace","metadata":{"annotations":{"html":"\u003ca\u003e\u0026b"},"labels":{"app":"x"}},"spec":{"containers":[{"image":"img:1","imagePullPolicy":"IfNotPresent","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;
        assert_eq!(revision_data(&template).as_str(), expected);
    }

    #[test]
    fn d_58_missing_objects_are_added_and_nothing_else_changes() {
        // (template, the data's template)
        let table = [
            (json!({}), r#"{"$patch":"replace","metadata":{}}"#),
            (json!(null), r#"{"$patch":"replace","metadata":{}}"#),
            (json!({"metadata": null}), r#"{"$patch":"replace","metadata":{}}"#),
            (
                json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}),
                r#"{"$patch":"replace","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"}}"#,
            ),
            (
                json!({"spec": {"initContainers": [{"name": "i"}], "volumes": [{"emptyDir": {}, "name": "v"}]}}),
                r#"{"$patch":"replace","metadata":{},"spec":{"initContainers":[{"name":"i","resources":{}}],"volumes":[{"emptyDir":{},"name":"v"}]}}"#,
            ),
            (
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "500m"}}}, "odd"], "newField": [3, 1]}}),
                r#"{"$patch":"replace","metadata":{},"spec":{"containers":[{"resources":{"limits":{"cpu":"500m"}}},"odd"],"newField":[3,1]}}"#,
            ),
            (
                json!({"spec": {"containers": null, "initContainers": {"x": {}}}, "z": 1, "$patch": "merge", "metadata": [1]}),
                r#"{"$patch":"replace","metadata":{},"spec":{"containers":null,"initContainers":{"x":{}}},"z":1}"#,
            ),
            (
                json!({"spec": [{}]}),
                r#"{"$patch":"replace","metadata":{},"spec":[{}]}"#,
            ),
        ];
        for (template, expected) in table {
            let expected = format!(r#"{{"spec":{{"template":{expected}}}}}"#);
            let data = revision_data(&Json::from(&template));
            assert_eq!(data.as_str(), expected, "{template}");
        }
    }
}
