//! Parses the fields of an object that are not in its projection. Errors name the field.

use std::{borrow::Cow, collections::BTreeMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt as _};
use nodewise_projection::{ElementFilter, FirstMatch, ProjectError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{InputError, Origin, Reader};

/// The fields that every object has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct Header<'a> {
    #[serde(borrow)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) namespace: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) owner_references: Option<FirstMatch<Owner<'a>>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Owner<'a> {
    #[serde(borrow, default)]
    pub(super) uid: Cow<'a, str>,
    #[serde(default)]
    controller: bool,
}

impl ElementFilter for Owner<'_> {
    fn is_match(&self) -> bool {
        self.controller
    }
}

/// The selector of a workload, and the labels of its template.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Selecting {
    spec: Option<SelectingSpec>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct SelectingSpec {
    selector: Option<LabelSelector>,
    template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Template {
    metadata: Option<TemplateMetadata>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct TemplateMetadata {
    labels: Option<BTreeMap<String, String>>,
}

/// Checks that the selector of a workload matches its template. The apiserver rejects a workload for which that is not so: each of
/// its pods would be released at once and replaced for ever. The planner makes all other checks.
pub(super) fn check_selector(json: &RawValue, origin: &Origin, title: &str) -> Result<(), InputError> {
    let Selecting { spec } = parse(json, origin)?;
    let Some(SelectingSpec {
        selector: Some(selector),
        template: Some(template),
    }) = spec
    else {
        return Ok(());
    };
    let labels = template
        .metadata
        .and_then(|metadata| metadata.labels)
        .unwrap_or_default();
    let Ok(selector) = Selector::try_from(selector) else {
        return Ok(());
    };
    if selector.selects_all() || selector.matches(&labels) {
        return Ok(());
    }
    let problem = format!("`{selector}` does not match spec.template.metadata.labels ({title})");
    Err(InputError::new(origin.at("spec.selector"), problem))
}

/// Parses a part of an object. The error names the field.
pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue, origin: &Origin) -> Result<T, InputError> {
    serde_path_to_error::deserialize(&mut Reader::from_str(json.get())).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "" } else { &path };
        InputError::new(origin.at(field), without_position(&error.inner().to_string()))
    })
}

/// Parses an object into its projection. The error names the field.
pub(super) fn projected<T>(
    project: impl FnOnce(&mut Reader<'_>) -> Result<T, ProjectError>,
    json: &RawValue,
    origin: &Origin,
) -> Result<T, InputError> {
    project(&mut Reader::from_str(json.get()))
        .map_err(|error| InputError::new(origin.at(&error.path), without_position(&error.message)))
}

/// Removes the position from an error of serde_json: it is relative to the object, not to the file.
pub(super) fn without_position(error: &str) -> &str {
    error.rfind(" at line ").map_or(error, |end| &error[..end])
}
