//! Random objects.

use rand::{RngExt as _, rngs::SmallRng};

use crate::kinds::{Field, Form, Kind};

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Vec<u8>),
    Bool(bool),
    Int32(i32),
    /// Seconds and nanoseconds. `None` is Go's zero time.
    Time(Option<(i64, i32)>),
    /// Sorted by key.
    Map(Vec<(Vec<u8>, Vec<u8>)>),
    Message(Object),
    List(Vec<Value>),
}

/// The fields of an object that are not nil.
pub(crate) type Object = Vec<(Field, Value)>;

/// The first second of year 1, which is Go's zero time, and the bounds of what the protocol supports.
pub(crate) const ZERO_SECOND: i64 = -62_135_596_800;
const SECONDS: &[i64] = &[
    0,
    1,
    -1,
    1_790_000_000,
    ZERO_SECOND,
    ZERO_SECOND - 1,
    ZERO_SECOND + 1,
    -62_167_219_200,
    253_402_127_999,
    253_402_128_001,
    253_402_300_800,
    9_999_999_999_999,
    -9_999_999_999_999,
];

/// Texts of which some are not valid UTF-8.
const ODD: &[&[u8]] = &[
    b"",
    b"\xff",
    b"a\xe2\x82",
    b"\xf0\x9f\x98\x80\xf0\x9f\x98",
    b"\xed\xa0\x80",
    "é\u{fffd}\u{0}\\\"<".as_bytes(),
    b"-12",
    &[b'x'; 300],
];

pub(crate) struct Generator<'a>(pub(crate) &'a mut SmallRng);

impl Generator<'_> {
    fn one_of<T>(&mut self, values: &'static [T]) -> &'static T {
        &values[self.0.random_range(0..values.len())]
    }

    fn is(&mut self, percent: u32) -> bool {
        self.0.random_range(0..100) < percent
    }

    pub(crate) fn message(&mut self, fields: &'static [Field]) -> Object {
        let mut object = Object::new();
        for field in fields {
            let value = match field.form {
                Form::Pointer if self.is(50) => continue,
                Form::List => {
                    let length = self.0.random_range(0..4);
                    Value::List((0..length).map(|_| self.value(field.kind)).collect())
                }
                _ => self.value(field.kind),
            };
            object.push((*field, value));
        }
        object
    }

    fn value(&mut self, kind: Kind) -> Value {
        match kind {
            Kind::Text(words) => Value::Text(self.text(words)),
            Kind::Bool => Value::Bool(self.is(50)),
            Kind::Int32 => Value::Int32(*self.one_of(&[0, 1, 137, i32::MAX, -1, i32::MIN])),
            Kind::Time => Value::Time(self.time()),
            Kind::Map(keys) => {
                let length = self.0.random_range(0..5);
                let entries = (0..length).map(|_| (self.text(keys), self.text(&["1", "-7", "x"])));
                let sorted: std::collections::BTreeMap<_, _> = entries.collect();
                Value::Map(sorted.into_iter().collect())
            }
            Kind::Message(fields) => Value::Message(self.message(fields)),
        }
    }

    fn text(&mut self, words: &'static [&'static str]) -> Vec<u8> {
        if self.is(90) {
            self.one_of(words).as_bytes().to_vec()
        } else {
            self.one_of(ODD).to_vec()
        }
    }

    fn time(&mut self) -> Option<(i64, i32)> {
        if self.is(20) {
            return None;
        }
        let seconds = if self.is(50) {
            *self.one_of(SECONDS)
        } else {
            self.0.random_range(-100_000_000_000..300_000_000_000)
        };
        Some((seconds, *self.one_of(&[0, 999_999_999, -5])))
    }
}
