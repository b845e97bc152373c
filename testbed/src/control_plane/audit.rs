//! What the apiserver wrote down about each request.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// One request that the apiserver has answered, or a watch that it has begun to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// Who asked: a user's name, see [`crate::User`]; empty where the request ended before that was known.
    pub user: String,
    /// What for: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The resource in its plural (`pods`), empty when the request was for none (`/healthz`).
    pub resource: String,
    /// The part of it (`status`, `binding`), empty for the object itself.
    pub subresource: String,
    /// The API group, empty for the core one.
    pub group: String,
    /// The namespace, empty for what has none.
    pub namespace: String,
    /// The object's name, empty for a list, and for a create that leaves the name to the apiserver.
    pub name: String,
    /// The HTTP status of the answer, 0 where there was none.
    pub code: u16,
    /// Whether the user had no right to it: a 403 may have other reasons, such as a quota.
    pub is_forbidden: bool,
    /// The client's program.
    pub user_agent: String,
    /// Path and query.
    pub uri: String,
    /// When the request came in.
    pub received: Timestamp,
    /// When it was written down: when it was answered, or a watch began to be.
    pub answered: Timestamp,
    /// Whether the answer has ended. A watch is written down when it begins, and again when it ends.
    pub complete: bool,
}

impl AuditEvent {
    /// Reads an audit log that was kept, oldest answer first. A last line that was not written whole is left out.
    ///
    /// # Errors
    /// There is no such file, or it is no audit log.
    pub fn read_all(path: &Path) -> Result<Vec<Self>> {
        read(path)
    }

    /// Whether the request asked for a change, also when it was refused.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

/// Reads an audit log, oldest answer first. A last line that is still being written is left out.
pub(super) fn read(path: &Path) -> Result<Vec<AuditEvent>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).map(AuditEvent::from))
        .collect::<Result<_, _>>()
        .with_context(|| format!("parsing {}", path.display()))
}

/// Looks at a line that cannot be read before it is believed to be broken: what is seen of a line that is just being written need
/// not be what is there in the end.
const LOOKS: u32 = 100;

/// Reads an audit log while it grows: each call gives what was written down since the one before.
#[derive(Debug)]
pub struct AuditTail {
    file: File,
    /// Where the first line begins that was not read yet.
    place: u64,
    /// How often that line could not be read.
    looks: u32,
}

impl AuditTail {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        Ok(Self {
            file,
            place: 0,
            looks: 0,
        })
    }

    /// What is new, oldest answer first; from the beginning of the log at the first call.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(&mut self) -> Result<Vec<AuditEvent>> {
        let mut new = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.place))
            .and_then(|_| self.file.read_to_end(&mut new))
            .context("reading the audit log")?;
        let mut events = Vec::new();
        for line in new.split_inclusive(|&byte| byte == b'\n') {
            // The last one is still being written.
            let Some(text) = line.strip_suffix(b"\n") else {
                break;
            };
            match serde_json::from_slice::<Line>(text) {
                Ok(event) => events.push(event.into()),
                Err(_) if self.looks < LOOKS => {
                    self.looks += 1;
                    return Ok(events);
                }
                Err(error) => {
                    let (place, text) = (self.place, text.escape_ascii());
                    return Err(error).with_context(|| format!("the audit log has at byte {place}: {text}"));
                }
            }
            self.place += line.len() as u64;
            self.looks = 0;
        }
        Ok(events)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: UserInfo,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    annotations: Annotations,
    #[serde(default)]
    response_status: Status,
    #[serde(deserialize_with = "timestamp")]
    request_received_timestamp: Timestamp,
    #[serde(deserialize_with = "timestamp")]
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectRef {
    resource: String,
    subresource: String,
    api_group: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "authorization.k8s.io/decision")]
    decision: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
}

impl From<Line> for AuditEvent {
    fn from(line: Line) -> Self {
        Self {
            user: line.user.username,
            verb: line.verb,
            resource: line.object_ref.resource,
            subresource: line.object_ref.subresource,
            group: line.object_ref.api_group,
            namespace: line.object_ref.namespace,
            name: line.object_ref.name,
            code: line.response_status.code,
            is_forbidden: line.annotations.decision == "forbid",
            user_agent: line.user_agent,
            uri: line.request_uri,
            received: line.request_received_timestamp,
            answered: line.stage_timestamp,
            complete: line.stage == "ResponseComplete",
        }
    }
}

fn timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CREATE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",
        "requestURI":"/api/v1/namespaces/default/pods","verb":"create","user":{"username":"kwok"},"userAgent":"me/1",
        "objectRef":{"resource":"pods","namespace":"default","name":"p","apiVersion":"v1"},
        "responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z",
        "stageTimestamp":"2026-01-02T03:04:05.688901Z"}"#;

    #[test]
    fn whole_lines_are_read_and_the_unfinished_last_one_is_not() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("audit.log");
        let line = CREATE.replace('\n', "");
        fs::write(&path, format!("{line}\n{}", &line[..40]))?;
        let events = read(&path)?;
        assert_eq!(events.len(), 1);
        let event = &events[0];
        assert_eq!(
            (event.user.as_str(), event.verb.as_str(), event.code),
            ("kwok", "create", 201)
        );
        assert_eq!(
            (event.resource.as_str(), event.subresource.as_str()),
            ("pods", "")
        );
        assert_eq!(event.received, "2026-01-02T03:04:05.678901Z".parse()?);
        assert_eq!(event.answered, "2026-01-02T03:04:05.688901Z".parse()?);
        assert!(event.is_write() && event.complete);
        Ok(())
    }

    #[test]
    fn who_asked_may_not_be_known() -> Result<()> {
        let unknown = CREATE.replace(r#"{"username":"kwok"}"#, "{}");
        let event = AuditEvent::from(serde_json::from_str::<Line>(&unknown)?);
        assert_eq!((event.user.as_str(), event.verb.as_str()), ("", "create"));
        Ok(())
    }

    #[test]
    fn a_tail_gives_each_line_once_and_when_it_is_whole() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("audit.log");
        let line = CREATE.replace('\n', "");
        let write = |text: &str| -> Result<()> {
            let mut file = fs::File::options().create(true).append(true).open(&path)?;
            Ok(std::io::Write::write_all(&mut file, text.as_bytes())?)
        };
        write(&format!("{line}\n{}", &line[..40]))?;
        let mut tail = AuditTail::open(&path)?;
        assert_eq!(tail.read()?.len(), 1);
        assert_eq!(tail.read()?.len(), 0);
        write(&format!("{}\n{line}\n", &line[40..]))?;
        assert_eq!(tail.read()?.len(), 2);
        assert_eq!(tail.read()?.len(), 0);
        Ok(())
    }

    #[test]
    fn a_line_that_cannot_be_read_is_looked_at_again_before_it_is_an_error() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("audit.log");
        let line = CREATE.replace('\n', "");
        let (head, rest) = line.split_at(40);
        let halves = format!("{head}{}\n", " ".repeat(rest.len()));
        fs::write(&path, format!("{line}\n{halves}"))?;
        let mut tail = AuditTail::open(&path)?;
        assert_eq!(tail.read()?.len(), 1, "those before it are given");
        assert_eq!(tail.read()?.len(), 0);
        fs::write(&path, format!("{line}\n{line}\n"))?;
        assert_eq!(tail.read()?.len(), 1, "it was seen too early");

        fs::write(&path, format!("{line}\n{line}\n{halves}"))?;
        let error = (0..=LOOKS).find_map(|_| tail.read().err());
        let said = format!("{:#}", error.expect("it stays broken"));
        assert!(
            said.contains(&format!("at byte {}", 2 * (line.len() + 1))),
            "{said}"
        );
        Ok(())
    }
}
