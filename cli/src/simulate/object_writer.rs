//! Writes a JSON object field by field, so that a long one is written as it comes.

use std::io::Write;

use anyhow::Context as _;
use serde::Serialize;

/// A JSON object that is being written.
pub(crate) struct ObjectWriter<W> {
    out: W,
    fields: usize,
}

impl<W: Write> ObjectWriter<W> {
    pub(crate) fn begin(mut out: W) -> anyhow::Result<Self> {
        write(&mut out, "{")?;
        Ok(Self { out, fields: 0 })
    }

    /// Writes a field.
    pub(crate) fn field(&mut self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        write_value(self.open(name)?, value)
    }

    /// Begins a field. The caller writes its value to this writer before the next call.
    pub(crate) fn open(&mut self, name: &str) -> anyhow::Result<&mut W> {
        let separator = if self.fields == 0 { "" } else { "," };
        self.fields += 1;
        write(&mut self.out, &format!("{separator}\n  \"{name}\": "))?;
        Ok(&mut self.out)
    }

    /// What the object is written to.
    pub(crate) fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends the object. Returns the writer below.
    pub(crate) fn end(mut self) -> anyhow::Result<W> {
        write(&mut self.out, "\n}")?;
        Ok(self.out)
    }
}

/// Writes a value in one line.
pub(crate) fn write_value(out: &mut impl Write, value: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(value).context("cannot write the answer as JSON")?;
    write(out, &text)
}

pub(crate) fn write(out: &mut impl Write, text: &str) -> anyhow::Result<()> {
    out.write_all(text.as_bytes()).context("cannot write the answer")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn objects_may_be_nested() {
        let mut outer = ObjectWriter::begin(Vec::new()).expect("written");
        outer.field("a", &1).expect("written");
        let inner = outer.open("b").expect("written");
        let mut inner = ObjectWriter::begin(inner).expect("written");
        inner.field("c", &[2, 3]).expect("written");
        inner.field("d\u{2192}", &"x").expect("written");
        inner.end().expect("written");
        outer.field("e", &Value::Null).expect("written");
        let text = outer.end().expect("written");
        let read: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(
            read,
            json!({"a": 1, "b": {"c": [2, 3], "d\u{2192}": "x"}, "e": null})
        );
        let empty = ObjectWriter::begin(Vec::new()).and_then(ObjectWriter::end);
        let read: Value = serde_json::from_slice(&empty.expect("written")).expect("JSON");
        assert_eq!(read, json!({}));
    }
}
