//! Files: JSON or YAML, one document or several, a `List` each or a single object.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{Cluster, Header, InputError, Kind, Origin, parse};

/// What a file should hold.
const EXPECTED: &str =
    "expected a List as `kubectl get daemonsets,nodes,pods,controllerrevisions -A -o json` prints it";

/// Merges all files.
pub(super) fn read(cluster: &mut Cluster, files: &[PathBuf]) -> Result<(), InputError> {
    for file in files {
        let source: Arc<str> = name(file).into();
        if cluster.sources.contains(&source) {
            return Err(InputError::new(&source, "is given twice"));
        }
        cluster.sources.push(source);
    }
    for (file, source) in files.iter().zip(cluster.sources.clone()) {
        add_text(cluster, &source, &contents(file, &source)?)?;
    }
    Ok(())
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn name(file: &Path) -> String {
    if is_standard_input(file) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

fn contents(file: &Path, source: &str) -> Result<String, InputError> {
    let bytes = if is_standard_input(file) {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(file)
    };
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => InputError::new(source, "no such file"),
        std::io::ErrorKind::IsADirectory => InputError::new(source, "is a directory, not a file"),
        _ => InputError::new(source, format!("cannot be read: {error}")),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| InputError::new(source, "is not UTF-8 text"))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// One file's text. JSON starts with a bracket, everything else is read as YAML.
pub(super) fn add_text(cluster: &mut Cluster, source: &Arc<str>, text: &str) -> Result<(), InputError> {
    if text.trim().is_empty() {
        return Err(InputError::new(source, format!("is empty; {EXPECTED}")));
    }
    if text.trim_start().starts_with(['{', '[']) {
        let documents: Result<Vec<&RawValue>, _> =
            serde_json::Deserializer::from_str(text).into_iter().collect();
        let documents =
            documents.map_err(|error| InputError::new(source, format!("is not JSON: {error}")))?;
        return add_documents(cluster, source, &documents);
    }
    // The size of a file is its owner's business; what an alias may multiply stays bounded.
    let options = serde_saphyr::options! { budget: None, with_snippet: false };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        InputError::new(
            source,
            format!("is neither JSON nor YAML: {}", first_line(&error.to_string())),
        )
    })?;
    let documents: Vec<Box<RawValue>> = documents
        .iter()
        .map(serde_json::value::to_raw_value)
        .collect::<Result<_, _>>()
        .map_err(|error| InputError::new(source, format!("cannot be read as JSON: {error}")))?;
    let documents: Vec<&RawValue> = documents.iter().map(AsRef::as_ref).collect();
    add_documents(cluster, source, &documents)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn add_documents(
    cluster: &mut Cluster,
    source: &Arc<str>,
    documents: &[&RawValue],
) -> Result<(), InputError> {
    for (index, document) in (1..).zip(documents) {
        let document_number = (documents.len() > 1).then_some(index);
        let origin = Origin {
            source: Arc::clone(source),
            document: document_number,
            item: None,
        };
        add_document(cluster, document, &origin)?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct List<'a> {
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

fn add_document(cluster: &mut Cluster, document: &RawValue, origin: &Origin) -> Result<(), InputError> {
    let found = match document.get().as_bytes().first() {
        Some(b'{') => None,
        Some(b'[') => Some("a bare array"),
        Some(b'"') => Some("a string"),
        _ => Some("a single value"),
    };
    if let Some(found) = found {
        return Err(InputError::new(
            origin,
            format!("holds {found}, not a List; {EXPECTED}"),
        ));
    }
    let Header {
        kind, api_version, ..
    } = parse(document, origin)?;
    let Some(kind) = kind else {
        return Err(InputError::new(
            origin.at("kind"),
            format!("is missing; {EXPECTED}"),
        ));
    };
    let Some(item_kind) = kind.strip_suffix("List") else {
        return match Kind::parse(&kind, api_version.as_deref()) {
            Some(kind) => cluster.add(kind, document, origin.clone()),
            None => Err(InputError::new(
                origin.at("kind"),
                format!("{kind} is not a List; {EXPECTED}"),
            )),
        };
    };
    let List { items } = parse(document, origin)?;
    let Some(items) = items else {
        return Err(InputError::new(origin.at("items"), "is missing"));
    };
    for (index, item) in (0..).zip(items) {
        let origin = Origin {
            item: Some(index),
            ..origin.clone()
        };
        let Header {
            kind, api_version, ..
        } = parse(item, &origin)?;
        // The items of a typed list, such as a PodList, need not repeat their kind.
        let kind = kind.as_deref().unwrap_or(item_kind);
        if kind.is_empty() {
            return Err(InputError::new(origin.at("kind"), "is missing"));
        }
        if let Some(kind) = Kind::parse(kind, api_version.as_deref()) {
            cluster.add(kind, item, origin)?;
        }
    }
    Ok(())
}
