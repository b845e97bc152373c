//! Estimates the memory that a JSON object takes besides its own bytes.
//!
//! The server keeps most of an object, such as the pod template, as text. The parts that it decodes into types take many times
//! their bytes. So a real object takes little more memory than its bytes; only many tiny values in the decoded parts take much.

use nodewise_planner::rollout::{
    Stage,
    status::{StageStatus, TargetStatus},
};

/// Bytes of a decoded object that is not empty. Even a single member takes a B-tree node with room for eleven.
const OBJECT: usize = 640;
/// Bytes of a decoded value. While a list grows, its old and its new buffer exist at the same time.
const VALUE: usize = 110;
/// Bytes of a value inside a part that stays text: the offsets of an object's members are stored to sort them.
const TEXT_VALUE: usize = 12;
/// Bytes of a character that Go's JSON encoder writes as six bytes, summed over all copies of the text that exist at the same time.
const ESCAPED: usize = 25;

/// The longest path to a part that stays text, in keys.
const DEPTH: usize = 4;

/// The keys that lead to a value, outermost first.
type Path<'a> = [&'a [u8]];

/// Whether a part of a DaemonSet stays text or is not read.
pub(super) fn text_of_daemon_set(path: &Path<'_>) -> bool {
    match path {
        [b"metadata", b"managedFields"] => true,
        [b"spec", b"template", key] => *key != b"spec",
        [b"spec", b"template", b"spec", key] => {
            !matches!(*key, b"nodeSelector" | b"affinity" | b"tolerations")
        }
        _ => false,
    }
}

/// Whether a part of a revision stays text or is not read.
pub(super) fn text_of_revision(path: &Path<'_>) -> bool {
    matches!(path, [b"metadata", b"managedFields"] | [b"data"])
}

/// Whether a part of a Deployment's ReplicaSet stays text or is not read.
pub(super) fn text_of_replica_set(path: &Path<'_>) -> bool {
    matches!(
        path,
        [b"metadata", b"managedFields"] | [b"spec", b"template"] | [b"status", b"conditions"]
    )
}

/// Whether a part of a RolloutPolicy is not read.
fn text_of_policy(path: &Path<'_>) -> bool {
    matches!(path, [b"metadata", b"managedFields"])
}

/// Bytes of an object in a policy at this path, even of an empty one: it becomes an entry with many fields in a growing list.
fn entry_of_policy(path: &Path<'_>) -> usize {
    match path {
        [b"status", b"targets", _] => 3 * size_of::<TargetStatus>(),
        [b"status", ..] => 3 * size_of::<StageStatus>(),
        [b"spec", ..] => size_of::<Stage>(),
        _ => 0,
    }
}

/// The estimated bytes that a RolloutPolicy takes besides its own. All of it is decoded.
pub(super) fn extra_bytes_of_policy(object: &[u8]) -> usize {
    estimate(object, text_of_policy, entry_of_policy)
}

/// The estimated bytes that any JSON takes as a tree.
pub(super) fn tree_bytes(value: &[u8]) -> usize {
    extra_bytes(value, |_| false)
}

/// The estimated bytes that an object takes besides its own. The result is arbitrary for text that is not JSON.
pub(super) fn extra_bytes(object: &[u8], is_text: fn(&Path<'_>) -> bool) -> usize {
    estimate(object, is_text, |_| 0)
}

/// As [`extra_bytes`], with what each object takes at its path.
fn estimate(object: &[u8], is_text: fn(&Path<'_>) -> bool, entry: fn(&Path<'_>) -> usize) -> usize {
    let mut walk = Walk {
        is_text,
        depth: 0,
        keys: [&[]; DEPTH],
        text_since: None,
    };
    let (mut bytes, mut at, mut before) = (VALUE, 0, b' ');
    while let Some(&byte) = object.get(at) {
        let mut end = at + 1;
        match byte {
            b'"' => {
                let escaped;
                (end, escaped) = string(object, at);
                bytes += escaped * ESCAPED;
                if before == b'{' && walk.text_since.is_none() {
                    bytes += OBJECT;
                }
                // Only a key is followed by a colon.
                let next = object[end..].iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    walk.key(object.get(at + 1..end - 1).unwrap_or_default());
                }
            }
            b'{' | b'[' => {
                bytes += walk.value();
                if byte == b'{' {
                    bytes += entry(walk.path());
                }
                walk.open();
            }
            b'}' | b']' => walk.close(),
            b',' => {
                walk.leave(walk.depth);
                bytes += walk.value();
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        at = end;
    }
    bytes
}

/// The position in an object.
struct Walk<'a> {
    is_text: fn(&Path<'_>) -> bool,
    depth: usize,
    keys: [&'a [u8]; DEPTH],
    /// The depth of the key whose value stays text, while the position is inside that value.
    text_since: Option<usize>,
}

impl<'a> Walk<'a> {
    fn value(&self) -> usize {
        if self.text_since.is_some() {
            TEXT_VALUE
        } else {
            VALUE
        }
    }

    /// The keys that lead to the value that begins here. A list has an empty one.
    fn path(&self) -> &Path<'a> {
        &self.keys[..self.depth.min(DEPTH)]
    }

    fn open(&mut self) {
        // A list has no keys.
        if let Some(key) = self.keys.get_mut(self.depth) {
            *key = &[];
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.leave(self.depth);
        self.depth = self.depth.saturating_sub(1);
    }

    /// Called at the end of a value at `depth`: a part that stays text ends with its value.
    fn leave(&mut self, depth: usize) {
        if self.text_since == Some(depth) {
            self.text_since = None;
        }
    }

    fn key(&mut self, key: &'a [u8]) {
        let Some(index) = self.depth.checked_sub(1).filter(|index| *index < DEPTH) else {
            return;
        };
        // A key with an escape could be any key, so it matches none.
        let plain = !key.contains(&b'\\');
        self.keys[index] = if plain { key } else { &[] };
        if plain && self.text_since.is_none() && (self.is_text)(&self.keys[..=index]) {
            self.text_since = Some(self.depth);
        }
    }
}

/// The end of the string that begins at `begin`, and how many of its characters need an escape when it is written again.
fn string(object: &[u8], begin: usize) -> (usize, usize) {
    let (mut at, mut escaped) = (begin + 1, 0);
    while let Some(byte) = object.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            b'\\' => at += 1,
            b'<' | b'>' | b'&' => escaped += 1,
            _ => {}
        }
    }
    (at.min(object.len()), escaped)
}

#[cfg(test)]
mod tests {
    use super::{
        ESCAPED, OBJECT, Stage, StageStatus, TEXT_VALUE, TargetStatus, VALUE, extra_bytes,
        extra_bytes_of_policy, text_of_daemon_set, text_of_revision,
    };

    // Also empty objects: one of three bytes becomes an entry with all its fields.
    #[test]
    fn entries_of_policies_are_counted() {
        let of = |object: &str| extra_bytes_of_policy(object.as_bytes());
        let target = 3 * size_of::<TargetStatus>();
        assert_eq!(
            of(r#"{"status":{"targets":[{},{}]}}"#),
            2 * OBJECT + 7 * VALUE + 2 * target + of_status()
        );
        assert_eq!(
            of(r#"{"metadata":{"managedFields":[{},{}]}}"#),
            2 * OBJECT + 3 * VALUE + 4 * TEXT_VALUE
        );
        let spec = of(r#"{"spec":{"windows":[{}]}}"#) - of(r#"{"spec":{"windows":[0]}}"#);
        assert_eq!(spec, VALUE + size_of::<Stage>());
    }

    /// Bytes of the status itself.
    fn of_status() -> usize {
        3 * size_of::<StageStatus>()
    }

    #[test]
    fn objects_values_and_escapes_are_counted_outside_of_strings() {
        // (text, objects, values, escaped)
        let table = [
            ("0", 0, 1, 0),
            ("{}", 0, 2, 0),
            ("[{ }]", 0, 3, 0),
            (r#"{ "a": 0}"#, 1, 2, 0),
            (r#"[{"a":0},{"b":1,"c":[]}]"#, 2, 7, 0),
            (r#"["{,[\"{,[","<>&"]"#, 0, 3, 3),
            (r#"["\\",0]"#, 0, 3, 0),
            (r#"["unfinished"#, 0, 2, 0),
            (r#"["unfinished\"#, 0, 2, 0),
            ("]]}{", 0, 2, 0),
        ];
        for (text, objects, values, escaped) in table {
            let expected = objects * OBJECT + values * VALUE + escaped * ESCAPED;
            assert_eq!(extra_bytes(text.as_bytes(), |_| false), expected, "{text}");
        }
    }

    #[test]
    fn parts_that_stay_text_take_little() {
        // (object, (decoded objects, decoded values, values in text) as a DaemonSet, the same as a revision)
        let table = [
            (
                r#"{"metadata":{"managedFields":[{"a":0}],"name":"n"}}"#,
                (2, 4, 2),
                (2, 4, 2),
            ),
            (r#"{"data":{"a":[0,1]},"revision":1}"#, (2, 6, 0), (1, 3, 3)),
            (r#"{"data" : 0,"a":[0,1]}"#, (1, 5, 0), (1, 5, 0)),
            (
                r#"{"spec":{"template":{"metadata":{"labels":{}},"spec":{"containers":[{},{}],"affinity":{"a":[]},"volumes":[0]}}}}"#,
                (5, 10, 7),
                (6, 17, 0),
            ),
            // The same names at other paths.
            (
                r#"{"a":{"data":[0,1]},"managedFields":[{}]}"#,
                (2, 8, 0),
                (2, 8, 0),
            ),
            (r#"[{"data":[0,1]}]"#, (1, 5, 0), (1, 5, 0)),
            (r#"{"a":"data","b":[0]}"#, (1, 4, 0), (1, 4, 0)),
            // An escaped key could be any key.
            (
                r#"{"spec":{"template":{"spec":{"\u0061ffinity":[0,1]}}}}"#,
                (4, 7, 0),
                (4, 7, 0),
            ),
        ];
        for (object, of_daemon_set, of_revision) in table {
            let expected = |(objects, values, texts)| objects * OBJECT + values * VALUE + texts * TEXT_VALUE;
            let found = |is_text| extra_bytes(object.as_bytes(), is_text);
            assert_eq!(found(text_of_daemon_set), expected(of_daemon_set), "{object}");
            assert_eq!(found(text_of_revision), expected(of_revision), "{object}");
        }
    }
}
