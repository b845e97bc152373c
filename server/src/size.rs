//! Sizes in bytes as people write them.

use std::{fmt, str::FromStr};

/// A number of bytes, written as `4096`, `64KiB`, `64MiB`, `2GiB`, `64MB` (powers of ten) or `64M` (as `64MiB`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Units by lower-case suffix, in bytes.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
];

impl ByteSize {
    /// So many times 1,048,576 bytes.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// As the type of lengths in memory; capped where that is smaller.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Why a text is not a size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a size: write a number and B, KiB, MiB or GiB, for example 64MiB")]
pub struct NotASize(String);

impl FromStr for ByteSize {
    type Err = NotASize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotASize(text.to_owned());
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let suffix = suffix.trim().to_ascii_lowercase();
        let unit = UNITS
            .iter()
            .find(|(name, _)| *name == suffix)
            .ok_or_else(wrong)?
            .1;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        number.checked_mul(unit).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
            .into_iter()
            .find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit))
            .unwrap_or(("B", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let table = [
            ("0", Some(0)),
            ("4096", Some(4096)),
            ("64MiB", Some(64 << 20)),
            ("64 mib", Some(64 << 20)),
            ("64M", Some(64 << 20)),
            ("64MB", Some(64_000_000)),
            ("2gib", Some(2 << 30)),
            ("256KiB", Some(256 << 10)),
            ("", None),
            ("MiB", None),
            ("-1", None),
            ("1.5GiB", None),
            ("64 parsecs", None),
            ("99999999999GiB", None),
        ];
        for (text, bytes) in table {
            assert_eq!(text.parse().ok(), bytes.map(ByteSize), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_in_the_largest_whole_unit() {
        for text in ["1B", "1023B", "1KiB", "64MiB", "3GiB", "1025KiB"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
    }
}
