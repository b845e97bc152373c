//! Reads the apiserver's audit log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// One audit event: a request that was answered, or a watch that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// The user name, see [`crate::User`]; empty if the request ended before authentication.
    pub user: String,
    /// The verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The plural of the resource (`pods`); empty for other paths (`/healthz`).
    pub resource: String,
    /// The subresource (`status`, `binding`); empty for the object itself.
    pub subresource: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name; empty for a list, and for a create with `generateName`.
    pub name: String,
    /// The HTTP status of the response; 0 if there was none.
    pub code: u16,
    /// Whether RBAC denied the request. A 403 can have other reasons, such as a quota.
    pub is_forbidden: bool,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// Path and query.
    pub uri: String,
    /// When the apiserver got the request.
    pub received: Timestamp,
    /// When the apiserver logged the response, or the start of a watch.
    pub answered: Timestamp,
    /// Whether the response has ended. A watch is logged when it starts, and again when it ends.
    pub complete: bool,
}

impl AuditEvent {
    /// Reads a kept audit log, oldest response first. Ignores a last line that is incomplete.
    ///
    /// # Errors
    /// The file does not exist, or is not an audit log.
    pub fn read_all(path: &Path) -> Result<Vec<Self>> {
        read(path)
    }

    /// Whether the request was a write, successful or not.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

/// Reads an audit log, oldest response first. Ignores a last line that is incomplete.
pub(super) fn read(path: &Path) -> Result<Vec<AuditEvent>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str::<Line>(line).map(AuditEvent::from))
        .collect::<Result<_, _>>()
        .with_context(|| format!("parsing {}", path.display()))
}

/// How often an unreadable line is read again before it is an error: a line that is being written can be seen in an
/// intermediate state.
const MAX_ATTEMPTS: u32 = 100;

/// Reads an audit log while it grows. Each call returns the new events.
#[derive(Debug)]
pub struct AuditTail {
    file: File,
    /// The offset of the first line that was not read yet, in bytes.
    offset: u64,
    /// How often reading that line has failed.
    attempts: u32,
}

impl AuditTail {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        Ok(Self {
            file,
            offset: 0,
            attempts: 0,
        })
    }

    /// The new events, oldest response first. The first call starts at the beginning of the log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn read(&mut self) -> Result<Vec<AuditEvent>> {
        let mut new = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.offset))
            .and_then(|_| self.file.read_to_end(&mut new))
            .context("reading the audit log")?;
        let mut events = Vec::new();
        for line in new.split_inclusive(|&byte| byte == b'\n') {
            // An incomplete last line is read again at the next call.
            let Some(text) = line.strip_suffix(b"\n") else {
                break;
            };
            match serde_json::from_slice::<Line>(text) {
                Ok(event) => events.push(event.into()),
                Err(_) if self.attempts < MAX_ATTEMPTS => {
                    self.attempts += 1;
                    return Ok(events);
                }
                Err(error) => {
                    let (offset, text) = (self.offset, text.escape_ascii());
                    return Err(error).with_context(|| format!("the audit log has at byte {offset}: {text}"));
                }
            }
            self.offset += line.len() as u64;
            self.attempts = 0;
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
    fn incomplete_last_line_is_ignored() -> Result<()> {
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
    fn user_may_be_missing() -> Result<()> {
        let unknown = CREATE.replace(r#"{"username":"kwok"}"#, "{}");
        let event = AuditEvent::from(serde_json::from_str::<Line>(&unknown)?);
        assert_eq!((event.user.as_str(), event.verb.as_str()), ("", "create"));
        Ok(())
    }

    #[test]
    fn tail_returns_each_complete_line_once() -> Result<()> {
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
    fn unreadable_line_is_read_again_before_it_is_an_error() -> Result<()> {
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
        let error = (0..=MAX_ATTEMPTS).find_map(|_| tail.read().err());
        let said = format!("{:#}", error.expect("it stays broken"));
        assert!(
            said.contains(&format!("at byte {}", 2 * (line.len() + 1))),
            "{said}"
        );
        Ok(())
    }
}
