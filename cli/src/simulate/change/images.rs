//! New images, as `kubectl set image` sets them.

use anyhow::{bail, ensure};
use serde_json::{Map, Value, json};

/// Sets the images in a workload or in its manifest. Each is `IMAGE` or `CONTAINER=IMAGE`.
pub(super) fn set(object: &mut Value, images: &[String], title: &str) -> anyhow::Result<()> {
    for image in images {
        let (container, image) = match image.split_once('=') {
            Some((container, image)) => (Some(container), image),
            None => (None, image.as_str()),
        };
        ensure!(!image.is_empty(), "--image: the image is empty");
        set_one(object, container, image, title)?;
    }
    Ok(())
}

fn set_one(object: &mut Value, container: Option<&str>, image: &str, title: &str) -> anyhow::Result<()> {
    let mut all: Vec<&mut Map<String, Value>> = Vec::new();
    let spec = object.pointer_mut("/spec/template/spec");
    if let Some(spec) = spec.and_then(Value::as_object_mut) {
        for (field, list) in spec.iter_mut() {
            // An image without a name is for the only container; init containers are always named.
            if field == "containers" || (field == "initContainers" && container.is_some()) {
                let list = list.as_array_mut().into_iter().flatten();
                all.extend(list.filter_map(Value::as_object_mut));
            }
        }
    }
    let name = |container: &Map<String, Value>| {
        let name = container.get("name").and_then(Value::as_str);
        name.unwrap_or_default().to_owned()
    };
    let names: Vec<String> = all.iter().map(|container| name(container)).collect();
    let mut wanted = all
        .into_iter()
        .filter(|found| container.is_none_or(|wanted| name(found) == wanted));
    match (wanted.next(), wanted.next()) {
        (Some(found), None) => {
            found.insert("image".to_owned(), json!(image));
            Ok(())
        }
        (Some(_), Some(_)) => bail!(
            "--image {image}: {title} has the containers {}; name one: --image {}={image}",
            names.join(", "),
            names[0]
        ),
        (None, _) => match container {
            Some(container) => bail!(
                "--image {container}={image}: {title} has no such container; it has {}",
                names.join(", ")
            ),
            None => bail!("--image {image}: {title} has no container"),
        },
    }
}

/// The strategic merge patch with the images that differ.
pub(super) fn patch(before: &Value, after: &Value) -> Value {
    let mut spec = json!({});
    for field in ["containers", "initContainers"] {
        let list = |object: &Value| {
            let list = object["spec"]["template"]["spec"][field].as_array();
            list.cloned().unwrap_or_default()
        };
        let changed: Vec<Value> = list(before)
            .iter()
            .zip(list(after))
            .filter(|(old, new)| old["image"] != new["image"])
            .map(|(_, new)| json!({"name": new["name"], "image": new["image"]}))
            .collect();
        if !changed.is_empty() {
            spec[field] = Value::Array(changed);
        }
    }
    json!({"spec": {"template": {"spec": spec}}})
}

#[cfg(test)]
mod tests {
    use super::{super::differences, *};

    fn workload() -> Value {
        json!({"spec": {"template": {"spec": {
            "initContainers": [{"name": "init", "image": "init:1"}],
            "containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        }}}})
    }

    #[test]
    fn images_are_of_the_named_container() {
        let mut object = workload();
        let images = ["b=b:2".to_owned(), "init=init:2".to_owned()];
        set(&mut object, &images, "DaemonSet x/y").expect("known");
        assert_eq!(
            differences(&workload()["spec"], &object["spec"]),
            [
                "spec.template.spec.containers[b].image: b:1 → b:2",
                "spec.template.spec.initContainers[init].image: init:1 → init:2"
            ]
        );
        for (image, expected) in [
            (
                "b:2",
                "--image b:2: DaemonSet x/y has the containers a, b; name one: --image a=b:2",
            ),
            // The order of the fields of a JSON object is that of their names.
            (
                "c=c:2",
                "--image c=c:2: DaemonSet x/y has no such container; it has a, b, init",
            ),
            ("a=", "--image: the image is empty"),
        ] {
            let error = set(&mut workload(), &[image.to_owned()], "DaemonSet x/y").expect_err(image);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_template_of_a_wrong_type_has_no_container() {
        for template in [
            json!("text"),
            json!({"spec": {"containers": ["a", 5]}}),
            Value::Null,
        ] {
            let mut object = json!({"spec": {"template": template}});
            let error = set(&mut object, &["a:2".to_owned()], "DaemonSet x/y").expect_err("no container");
            assert_eq!(error.to_string(), "--image a:2: DaemonSet x/y has no container");
        }
    }
}
