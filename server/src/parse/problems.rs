//! The errors of a request and the paths of their fields.

use std::fmt;

use crate::{
    limits::Limits,
    refusal::{Refusal, Violation},
};

/// The path of a field in a request. It is built on the stack while parsing, and is formatted only for an error.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    segment: Segment<'a>,
}

#[derive(Clone, Copy)]
enum Segment<'a> {
    Field(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    /// A field of the request message.
    pub(crate) const fn root(field: &'a str) -> Self {
        Self {
            parent: None,
            segment: Segment::Field(field),
        }
    }

    /// A field of the message at this path.
    pub(crate) const fn field(&'a self, field: &'a str) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Field(field),
        }
    }

    /// A field of the message at `parent`, or of the request message.
    pub(crate) const fn member(parent: Option<&'a Path<'a>>, field: &'a str) -> Self {
        Self {
            parent,
            segment: Segment::Field(field),
        }
    }

    /// An element of the list at this path.
    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.segment {
            Segment::Field(field) if self.parent.is_some() => write!(f, ".{field}"),
            Segment::Field(field) => f.write_str(field),
            Segment::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The errors found so far. Parsing goes on after an error, so that one response can report all.
#[derive(Default)]
pub(crate) struct Problems {
    violations: Vec<Violation>,
    more: usize,
    bytes: usize,
}

impl Problems {
    /// Most violations in one response.
    const MOST: usize = 32;
    /// Most bytes of the violations in one response. They travel Base64-encoded in a header, and some clients accept no more than
    /// 8 KiB of headers.
    const MOST_BYTES: usize = 4_096;
    /// Most bytes of one description, which may quote the request.
    const DESCRIPTION_BYTES: usize = 400;

    /// Adds an error.
    pub(crate) fn add(&mut self, at: &Path<'_>, description: impl Into<String>) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        let mut description = description.into();
        if description.len() > Self::DESCRIPTION_BYTES {
            description.truncate(description.floor_char_boundary(Self::DESCRIPTION_BYTES));
            description.push('…');
        }
        let violation = Violation {
            field: at.to_string(),
            description,
        };
        self.bytes += violation.field.len() + violation.description.len();
        self.violations.push(violation);
    }

    /// Adds an error if a required text is empty.
    pub(crate) fn require(&mut self, at: &Path<'_>, text: &str) {
        if text.is_empty() {
            self.add(at, "is required");
        }
    }

    /// Adds an error if a required name or uid is empty or too long.
    pub(crate) fn require_name(&mut self, at: &Path<'_>, text: &str) {
        self.require(at, text);
        self.bound_name(at, text);
    }

    /// Adds an error if a name is too long.
    pub(crate) fn bound_name(&mut self, at: &Path<'_>, text: &str) {
        if text.len() > Limits::NAME_BYTES {
            self.add(at, too_long(text, Limits::NAME_BYTES));
        }
    }

    /// The description of the first error.
    pub(crate) fn first(&self) -> Option<&str> {
        self.violations
            .first()
            .map(|violation| violation.description.as_str())
    }

    /// Whether there are no errors so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether further errors would only be counted, so that parsing may end.
    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() >= Self::MOST || self.bytes >= Self::MOST_BYTES
    }

    /// A refusal if there are errors.
    pub(crate) fn into_result(self) -> Result<(), Refusal> {
        if self.violations.is_empty() {
            return Ok(());
        }
        Err(Refusal::Invalid {
            violations: self.violations,
            more: self.more,
        })
    }
}

/// The description of the error that a text has more than `most` bytes.
pub(crate) fn too_long(text: &str, most: usize) -> String {
    format!("has {} bytes; at most {most} are taken", text.len())
}

#[cfg(test)]
mod tests {
    use super::{Path, Problems};
    use crate::refusal::Refusal;

    #[test]
    fn paths_are_written_like_field_accesses() {
        let root = Path::root("snapshot");
        let bucket = root.field("pod_buckets");
        let data = bucket.index(0);
        let data = data.field("data");
        let pods = data.field("pods");
        let pod = pods.index(3);
        assert_eq!(
            pod.field("uid").to_string(),
            "snapshot.pod_buckets[0].data.pods[3].uid"
        );
    }

    #[test]
    fn violations_are_bounded_and_the_rest_is_counted() {
        let mut problems = Problems::default();
        for index in 0..100 {
            problems.add(&Path::root("list").index(index), "é".repeat(1_000));
        }
        let Err(Refusal::Invalid { violations, more }) = problems.into_result() else {
            panic!("no error")
        };
        assert_eq!(violations.len() + more, 100);
        let bytes: usize = violations
            .iter()
            .map(|v| v.field.len() + v.description.len())
            .sum();
        assert!(bytes < 5_000, "{bytes}");
    }
}
