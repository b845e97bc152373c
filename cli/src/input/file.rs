//! Reads files: JSON or YAML with one or more documents. Each document is a `List` or a single object.

use std::{
    fmt, fs,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer as _,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Cluster, Header, InputError, Origin, Reader, parse, without_position, yaml};
use crate::kind::Kind;

/// The expected content of a file, for errors.
const EXPECTED: &str = "expected a List as `kubectl get deployments,replicasets,daemonsets,controllerrevisions,pods,nodes -A -o json` prints it";

/// Reads all files into one cluster.
pub(super) fn read(cluster: &mut Cluster, files: &[PathBuf]) -> Result<(), InputError> {
    for file in files {
        let source: Arc<str> = name(file).into();
        if cluster.sources.contains(&source) {
            return Err(InputError::new(&source, "is given twice"));
        }
        cluster.sources.push(source);
    }
    for (file, source) in files.iter().zip(cluster.sources.clone()) {
        if is_target(file) && !file.exists() {
            let problem = "no such file; name workloads before -f";
            return Err(InputError::new(&source, problem));
        }
        add_text(cluster, &source, &contents(file, &source)?)?;
    }
    Ok(())
}

/// The text of a file; of standard input, if its name is `-`.
pub(crate) fn read_text_file(file: &Path) -> Result<String, InputError> {
    contents(file, &name(file))
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Whether the name of a file looks like that of a workload, such as `deployment/web`.
fn is_target(file: &Path) -> bool {
    let kind = file.to_str().and_then(|name| name.split('/').next());
    kind.is_some_and(|kind| Kind::of_workload(kind).is_some())
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
    text(bytes, source)
}

/// The text of a file, without a byte order mark.
///
/// In JSON, invalid UTF-8 is replaced, as in the executor: the data of a revision has the bytes that a client wrote, and
/// `kubectl get --raw` prints them unchanged.
pub(super) fn text(bytes: Vec<u8>, source: &str) -> Result<String, InputError> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned())
            .filter(|text| is_json(text.trim_start_matches('\u{feff}')))
            .ok_or_else(|| InputError::new(source, "is not UTF-8 text"))?,
    };
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// JSON starts with a bracket. Everything else is read as YAML.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

/// Adds the objects of one file.
pub(super) fn add_text(cluster: &mut Cluster, source: &Arc<str>, text: &str) -> Result<(), InputError> {
    if text.trim().is_empty() {
        return Err(InputError::new(source, format!("is empty; {EXPECTED}")));
    }
    if is_json(text) {
        return add_json(cluster, source, text);
    }
    let documents = yaml::documents(text).map_err(|error| {
        InputError::new(
            source,
            format!("is neither JSON nor YAML: {}", first_line(&error.to_string())),
        )
    })?;
    let several = documents.len() > 1;
    for (index, document) in (1..).zip(&documents) {
        // A document may be empty, for example before the first `---`.
        if !(several && document.get() == "null") {
            add_document(cluster, document, &origin(source, several, index))?;
        }
    }
    Ok(())
}

/// Adds JSON documents. The text is parsed twice instead of collecting the documents: a file may consist of millions of `[]`.
fn add_json(cluster: &mut Cluster, source: &Arc<str>, text: &str) -> Result<(), InputError> {
    let documents = || serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let wrong = |error| InputError::new(source, format!("is not JSON: {error}"));
    let mut count = 0;
    for document in documents() {
        document.map_err(wrong)?;
        count += 1;
    }
    for (index, document) in (1..).zip(documents()) {
        add_document(
            cluster,
            document.map_err(wrong)?,
            &origin(source, count > 1, index),
        )?;
    }
    Ok(())
}

fn origin(source: &Arc<str>, several: bool, document: u32) -> Origin {
    Origin {
        source: Arc::clone(source),
        document: several.then_some(document),
        item: None,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct List<'a> {
    #[serde(borrow)]
    items: Option<&'a RawValue>,
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
            // A file of manifests has other objects beside the workload.
            None if origin.document.is_some() => Ok(()),
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
    let mut wrong = None;
    let mut is_empty = true;
    let add = |index, item: &RawValue| {
        is_empty = false;
        let origin = Origin {
            item: Some(index),
            ..origin.clone()
        };
        let added = add_item(cluster, item_kind, item, origin);
        added.map_err(|error| wrong = Some(error)).is_ok()
    };
    let read = Reader::from_str(items.get()).deserialize_seq(Each(add));
    cluster.has_empty_list |= is_empty;
    match (wrong, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => {
            let error = error.to_string();
            Err(InputError::new(origin.at("items"), without_position(&error)))
        }
        (None, Ok(())) => Ok(()),
    }
}

/// Calls a function with each element of a JSON array, until it returns false. Collecting the elements would take several times the
/// size of the text.
struct Each<F>(F);

impl<'de, F: FnMut(u32, &'de RawValue) -> bool> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for index in 0.. {
            let Some(item) = list.next_element()? else { break };
            if !(self.0)(index, item) {
                return Err(A::Error::custom("an item was refused"));
            }
        }
        Ok(())
    }
}

fn add_item(
    cluster: &mut Cluster,
    item_kind: &str,
    item: &RawValue,
    origin: Origin,
) -> Result<(), InputError> {
    let Header {
        kind, api_version, ..
    } = parse(item, &origin)?;
    // The items of a typed list, such as a PodList, need no kind.
    let kind = kind.as_deref().unwrap_or(item_kind);
    if kind.is_empty() {
        return Err(InputError::new(origin.at("kind"), "is missing"));
    }
    match Kind::parse(kind, api_version.as_deref()) {
        Some(kind) => cluster.add(kind, item, origin),
        None => Ok(()),
    }
}
