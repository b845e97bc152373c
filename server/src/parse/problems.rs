//! Where a parser is, and what it found wrong.

use std::fmt;

use crate::{
    limits::Limits,
    refusal::{Refusal, Violation},
};

/// A place in a request. It is built on the stack while parsing and becomes text only when something is wrong there.
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

    /// A field of the message that is here.
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

    /// An element of the list that is here.
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

/// What was found wrong so far. Parsing goes on after a problem, so that one answer tells of all.
#[derive(Default)]
pub(crate) struct Problems {
    violations: Vec<Violation>,
    more: usize,
    bytes: usize,
}

impl Problems {
    /// Most violations of one answer.
    const MOST: usize = 32;
    /// Most bytes of the violations of one answer: they travel in a header, Base64-encoded, and some clients take no more
    /// than 8 KiB of headers.
    const MOST_BYTES: usize = 4_096;
    /// Most bytes of one description, which may quote the request.
    const DESCRIPTION_BYTES: usize = 400;

    /// Notes that a field is wrong.
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

    /// Notes that a text that is needed is not there.
    pub(crate) fn require(&mut self, at: &Path<'_>, text: &str) {
        if text.is_empty() {
            self.add(at, "is required");
        }
    }

    /// Notes that a name or a uid that is needed is not there, or longer than any.
    pub(crate) fn require_name(&mut self, at: &Path<'_>, text: &str) {
        self.require(at, text);
        self.bound_name(at, text);
    }

    /// Notes that a name is longer than any.
    pub(crate) fn bound_name(&mut self, at: &Path<'_>, text: &str) {
        if text.len() > Limits::NAME_BYTES {
            self.add(at, too_long(text, Limits::NAME_BYTES));
        }
    }

    /// Nothing is wrong so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.violations.is_empty()
    }

    /// More would not be told; walking on through thousands of items is no use.
    pub(crate) fn is_full(&self) -> bool {
        self.violations.len() >= Self::MOST || self.bytes >= Self::MOST_BYTES
    }

    /// An error when something was wrong.
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

/// What is wrong with a text of more than `most` bytes.
pub(crate) fn too_long(text: &str, most: usize) -> String {
    format!("has {} bytes; at most {most} are taken", text.len())
}

#[cfg(test)]
mod tests {
    use super::{Path, Problems};
    use crate::refusal::Refusal;

    #[test]
    fn paths_read_like_the_request() {
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
    fn an_answer_stays_small_and_counts_the_rest() {
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
