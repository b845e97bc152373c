//! What a JSON object takes besides its bytes.
//!
//! Most of an object stays a text; the parts that are read into types take many times their bytes. So an object of a real
//! shape weighs little more than itself, however large its template, and only lists and tables of next to nothing in the
//! parts that are read weigh much.

/// An object that is read and not empty. Its members may be in nodes with room for eleven, also when there is one.
const OBJECT: usize = 640;
/// A value that is read. Lists grow as they are read, and for a moment the smaller list is there too.
const VALUE: usize = 110;
/// A value in a text: of an object's members it is noted where they begin, so that they can be sorted.
const PLACE: usize = 12;
/// A character that becomes six when it is written as Go's encoder does, in each of the texts that there are at once.
const ESCAPED: usize = 25;

/// Keys that are noted: no path to a part that stays a text is longer.
const DEPTH: usize = 4;

/// The keys that lead to a value, from the outermost one on.
type Path<'a> = [&'a [u8]];

/// Which part of a DaemonSet stays a text or is not read.
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

/// Which part of a revision stays a text or is not read.
pub(super) fn text_of_revision(path: &Path<'_>) -> bool {
    matches!(path, [b"metadata", b"managedFields"] | [b"data"])
}

/// About how many bytes an object takes besides its own. Nothing is said about what is no JSON.
pub(super) fn besides(object: &[u8], is_text: fn(&Path<'_>) -> bool) -> usize {
    let mut walk = Walk {
        is_text,
        depth: 0,
        keys: [&[]; DEPTH],
        text_since: None,
    };
    let (mut weight, mut at, mut before) = (VALUE, 0, b' ');
    while let Some(&byte) = object.get(at) {
        let mut end = at + 1;
        match byte {
            b'"' => {
                let escaped;
                (end, escaped) = string(object, at);
                weight += escaped * ESCAPED;
                if before == b'{' && walk.text_since.is_none() {
                    weight += OBJECT;
                }
                // Only a key is followed by a colon.
                let next = object[end..].iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    walk.key(object.get(at + 1..end - 1).unwrap_or_default());
                }
            }
            b'{' | b'[' => {
                weight += walk.value();
                walk.open();
            }
            b'}' | b']' => walk.close(),
            b',' => {
                walk.leave(walk.depth);
                weight += walk.value();
            }
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        at = end;
    }
    weight
}

/// Where in an object.
struct Walk<'a> {
    is_text: fn(&Path<'_>) -> bool,
    depth: usize,
    keys: [&'a [u8]; DEPTH],
    /// The depth of the key whose value stays a text.
    text_since: Option<usize>,
}

impl<'a> Walk<'a> {
    fn value(&self) -> usize {
        if self.text_since.is_some() { PLACE } else { VALUE }
    }

    fn open(&mut self) {
        // In a list there are no keys.
        if let Some(key) = self.keys.get_mut(self.depth) {
            *key = &[];
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.leave(self.depth);
        self.depth = self.depth.saturating_sub(1);
    }

    /// What ends the value of a member ends a text that is the value.
    fn leave(&mut self, depth: usize) {
        if self.text_since == Some(depth) {
            self.text_since = None;
        }
    }

    fn key(&mut self, key: &'a [u8]) {
        let Some(index) = self.depth.checked_sub(1).filter(|index| *index < DEPTH) else {
            return;
        };
        // A key with an escape may be any key.
        let plain = !key.contains(&b'\\');
        self.keys[index] = if plain { key } else { &[] };
        if plain && self.text_since.is_none() && (self.is_text)(&self.keys[..=index]) {
            self.text_since = Some(self.depth);
        }
    }
}

/// Where the string that begins there ends, and how many of its characters are escaped when it is written again.
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
    use super::{ESCAPED, OBJECT, PLACE, VALUE, besides, text_of_daemon_set, text_of_revision};

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
            assert_eq!(besides(text.as_bytes(), |_| false), expected, "{text}");
        }
    }

    #[test]
    fn what_stays_a_text_weighs_little() {
        // (object, objects and values that are read, values of texts) of a DaemonSet, of a revision
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
            // Nothing of that name elsewhere.
            (
                r#"{"a":{"data":[0,1]},"managedFields":[{}]}"#,
                (2, 8, 0),
                (2, 8, 0),
            ),
            (r#"[{"data":[0,1]}]"#, (1, 5, 0), (1, 5, 0)),
            (r#"{"a":"data","b":[0]}"#, (1, 4, 0), (1, 4, 0)),
            // May be any key.
            (
                r#"{"spec":{"template":{"spec":{"\u0061ffinity":[0,1]}}}}"#,
                (4, 7, 0),
                (4, 7, 0),
            ),
        ];
        for (object, of_daemon_set, of_revision) in table {
            let weight = |(objects, values, places)| objects * OBJECT + values * VALUE + places * PLACE;
            let besides = |is_text| besides(object.as_bytes(), is_text);
            assert_eq!(besides(text_of_daemon_set), weight(of_daemon_set), "{object}");
            assert_eq!(besides(text_of_revision), weight(of_revision), "{object}");
        }
    }
}
