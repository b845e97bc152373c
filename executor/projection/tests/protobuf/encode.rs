//! Encodes random objects as Go does: in JSON, and in Protobuf with unknown fields among the others.

use rand::{RngExt as _, rngs::SmallRng};
use serde_json::{Map, Value as Json};

use crate::kinds::Form;
use crate::random::{Object, Value, ZERO_SECOND};

pub(crate) fn json(object: &Object) -> Json {
    let mut members = Map::new();
    for (field, value) in object {
        let omits = matches!(field.form, Form::OmitEmpty | Form::List);
        if !(omits && is_empty(value)) {
            members.insert(field.name.into(), json_value(value));
        }
    }
    members.insert("laterField".into(), Json::from(vec![1, 2]));
    Json::Object(members)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.is_empty(),
        Value::Bool(is) => !is,
        Value::Int32(number) => *number == 0,
        Value::Time(time) => seconds(*time).is_none(),
        Value::Map(entries) => entries.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Message(_) => false,
    }
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::Text(text) => replaced(text).into(),
        Value::Bool(is) => (*is).into(),
        Value::Int32(number) => (*number).into(),
        Value::Time(time) => seconds(*time).map(rfc3339).into(),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (replaced(key), replaced(value).into()));
            Json::Object(entries.collect())
        }
        Value::Message(object) => json(object),
        Value::List(list) => list.iter().map(json_value).collect(),
    }
}

/// The seconds of a time. Go's zero time has none, even if its seconds are written.
fn seconds(time: Option<(i64, i32)>) -> Option<i64> {
    let (seconds, _) = time?;
    (seconds != ZERO_SECOND).then_some(seconds)
}

/// The text with a replacement character instead of each byte that does not begin a character, as `encoding/json` writes it.
fn replaced(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    while !bytes.is_empty() {
        let lengths = 1..=bytes.len().min(4);
        let mut prefixes = lengths.map(|length| &bytes[..length]);
        let valid = prefixes.find_map(|prefix| std::str::from_utf8(prefix).ok());
        text.push_str(valid.unwrap_or("\u{fffd}"));
        bytes = &bytes[valid.map_or(1, str::len)..];
    }
    text
}

/// A time in UTC as Go formats it, in any year.
fn rfc3339(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The civil date of a day, counted from 0000-03-01 in eras of 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let sign = if year < 0 { "-" } else { "" };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!(
        "{sign}{:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z",
        year.abs()
    )
}

pub(crate) fn protobuf(object: &Object, random: &mut SmallRng) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, value) in object {
        match value {
            Value::List(list) => {
                for value in list {
                    protobuf_value(&mut out, field.number, value, random);
                }
            }
            value => protobuf_value(&mut out, field.number, value, random),
        }
        unknown_field(&mut out, random);
    }
    out
}

fn protobuf_value(out: &mut Vec<u8>, number: u32, value: &Value, random: &mut SmallRng) {
    match value {
        Value::Text(text) => delimited(out, number, text),
        Value::Bool(is) => varint_field(out, number, (*is).into()),
        // Negative numbers are extended to 64 bits.
        Value::Int32(value) => varint_field(out, number, i64::from(*value).cast_unsigned()),
        Value::Time(time) => {
            let mut message = Vec::new();
            if let Some((seconds, nanos)) = time {
                varint_field(&mut message, 1, seconds.cast_unsigned());
                varint_field(&mut message, 2, i64::from(*nanos).cast_unsigned());
            }
            delimited(out, number, &message);
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                let mut entry = Vec::new();
                delimited(&mut entry, 1, key);
                delimited(&mut entry, 2, value);
                delimited(out, number, &entry);
            }
        }
        Value::Message(object) => {
            let message = protobuf(object, random);
            delimited(out, number, &message);
        }
        Value::List(_) => unreachable!("lists have no lists"),
    }
}

/// Sometimes adds a field of a later version.
fn unknown_field(out: &mut Vec<u8>, random: &mut SmallRng) {
    let number = random.random_range(500..600);
    match random.random_range(0..16) {
        0 => varint_field(out, number, u64::MAX),
        1 => {
            varint(out, u64::from(number << 3 | 1));
            out.extend([0xff; 8]);
        }
        2 => delimited(out, number, b"\xff\x00later"),
        3 => {
            varint(out, u64::from(number << 3 | 5));
            out.extend([0x80; 4]);
        }
        _ => {}
    }
}

fn varint_field(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number << 3));
    varint(out, value);
}

fn delimited(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number << 3 | 2));
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
