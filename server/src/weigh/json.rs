//! What a JSON text takes as a tree.

/// An object that is not empty. Its members are in nodes with room for eleven, also when there is one.
const OBJECT: usize = 640;
/// A value. Lists grow as they are read, and for a moment the smaller list is there too.
const VALUE: usize = 110;
/// What each character takes that becomes six when it is written as Go's encoder does.
const ESCAPED: usize = 18;

/// About how many bytes a text takes as a tree of values. Nothing is said about a text that is no JSON.
pub(super) fn tree(text: &[u8]) -> usize {
    let (mut objects, mut values, mut escaped) = (0, 1, 0);
    let mut after_brace = false;
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => {
                objects += usize::from(after_brace);
                escaped += skip_string(&mut rest);
            }
            b',' | b'[' | b'{' => values += 1,
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            _ => {}
        }
        after_brace = *byte == b'{';
    }
    text.len() + objects * OBJECT + values * VALUE + escaped * ESCAPED
}

/// Skips the rest of a string and counts what is escaped when it is written again.
fn skip_string(rest: &mut std::slice::Iter<'_, u8>) -> usize {
    let mut escaped = 0;
    while let Some(byte) = rest.next() {
        match byte {
            b'"' => break,
            b'\\' => {
                rest.next();
            }
            b'<' | b'>' | b'&' => escaped += 1,
            _ => {}
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{ESCAPED, OBJECT, VALUE, tree};

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
        ];
        for (text, objects, values, escaped) in table {
            let expected = text.len() + objects * OBJECT + values * VALUE + escaped * ESCAPED;
            assert_eq!(tree(text.as_bytes()), expected, "{text}");
        }
    }
}
