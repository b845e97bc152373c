//! Resource quantities as Kubernetes reads and prints them. They compare by value (P-16): `1` equals `1000m`.

use std::fmt;

/// A quantity. The range is that of `i128` in billionths, far beyond what any cluster has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    /// The value in billionths, the finest step of the API.
    nanos: i128,
    /// How the quantity was written, and so how it is printed.
    format: Format,
}

/// The families of suffixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `m`, `k`, `M`: powers of 1000.
    Decimal,
    /// `Ki`, `Mi`: powers of 1024.
    Binary,
    /// `e3`: powers of 1000 as an exponent.
    Exponent,
}

/// Billionths of one.
const ONE: i128 = 1_000_000_000;
/// Billionths of a thousandth.
const THOUSANDTH: i128 = 1_000_000;
/// The most that a quantity with a binary suffix can be.
const MOST_BINARY: i128 = i64::MAX as i128 * ONE;
/// The suffixes of powers of 1000, from a billionth on.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// The suffixes of powers of 1024, from one on.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Zero, as Kubernetes prints it in a sum without summands.
    pub(crate) const ZERO: Self = Self::of(0);

    /// A whole number.
    pub(crate) const fn of(number: u32) -> Self {
        Self {
            nanos: number as i128 * ONE,
            format: Format::Decimal,
        }
    }

    /// Reads a quantity; `None` if the text is none, or too large.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let fraction = fraction.trim_end_matches('0');
        if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let (tens, binary, format) = factor(suffix)?;
        let tens = tens + 9 - i32::try_from(fraction.len()).ok()?;
        let value = digits.checked_mul(1_i128 << binary)?;
        let power = 10_i128.checked_pow(tens.unsigned_abs());
        let value = if tens >= 0 {
            value.checked_mul(power?)?
        } else {
            // The API rounds up what is finer than its finest step.
            let power = power?;
            value.checked_add(power - 1)? / power
        };
        let value = match format {
            Format::Binary => value.min(MOST_BINARY),
            Format::Decimal | Format::Exponent => value,
        };
        Some(Self {
            nanos: if negative { -value } else { value },
            format,
        })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The next thousandth, as the apiserver stores the resources of pods; `None` if it is too large.
    pub(crate) fn rounded_up(self) -> Option<Self> {
        let above = self.nanos.rem_euclid(THOUSANDTH);
        let missing = if above == 0 { 0 } else { THOUSANDTH - above };
        Some(Self {
            nanos: self.nanos.checked_add(missing)?,
            ..self
        })
    }

    /// The sum; `None` if it is too large. It is printed like the first summand that is not zero, as in Kubernetes.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        Some(Self {
            nanos: self.nanos.checked_add(other.nanos)?,
            format: if self.nanos == 0 {
                other.format
            } else {
                self.format
            },
        })
    }

    /// The larger one; of equal ones the first.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.nanos > self.nanos { other } else { self }
    }
}

/// Quantities are equal if their values are.
impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

/// The canonical form: no fraction, the largest suffix, and no rounding.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.nanos % ONE == 0;
        if self.nanos == 0 {
            return f.write_str("0");
        }
        if self.format == Format::Binary && whole && (self.nanos / ONE).abs() >= 1024 {
            let (mut number, mut suffixes) = (self.nanos / ONE, BINARY.iter());
            let mut suffix = suffixes.next().copied().unwrap_or_default();
            while number % 1024 == 0 {
                let Some(next) = suffixes.next() else { break };
                (number, suffix) = (number / 1024, next);
            }
            return write!(f, "{number}{suffix}");
        }
        let (mut number, mut suffixes) = (self.nanos, decimal());
        let (mut exponent, mut suffix) = suffixes.next().unwrap_or_default();
        while number % 1000 == 0 {
            let Some(next) = suffixes.next() else { break };
            (number, (exponent, suffix)) = (number / 1000, next);
        }
        match self.format {
            Format::Exponent if exponent != 0 => write!(f, "{number}e{exponent}"),
            _ => write!(f, "{number}{suffix}"),
        }
    }
}

/// Powers of ten with their suffixes.
fn decimal() -> impl Iterator<Item = (i32, &'static str)> {
    (-9..).step_by(3).zip(DECIMAL)
}

/// The power of ten and the power of two of a suffix.
fn factor(suffix: &str) -> Option<(i32, u32, Format)> {
    if let Some((tens, _)) = decimal().find(|(_, known)| *known == suffix) {
        return Some((tens, 0, Format::Decimal));
    }
    if let Some((twos, _)) = (0..).step_by(10).zip(BINARY).find(|(_, known)| *known == suffix) {
        return Some((0, twos, Format::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-100..=100)
        .contains(&exponent)
        .then_some((exponent, 0, Format::Exponent))
}

/// Whether two quantities have the same value. Texts that are no quantities are compared as they are.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    a == b || Quantity::parse(a).is_some_and(|value| Quantity::parse(b) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_16_quantities_compare_by_value() {
        // (a, b, equal)
        let table = [
            ("1", "1000m", true),
            ("1", "1.0", true),
            ("1", "+1", true),
            ("0.5", "500m", true),
            (".5", "5e-1", true),
            ("1Gi", "1073741824", true),
            ("1Gi", "1G", false),
            ("1e3", "1k", true),
            ("1E3", "1k", true),
            ("1E", "1000P", true),
            ("-1", "1", false),
            ("-1", "-1000m", true),
            ("0", "0m", true),
            ("0.1n", "1n", true),
            ("1.9n", "2n", true),
            ("10e-10", "1n", true),
            ("1u", "1000n", true),
            ("1m", "1000u", true),
            ("1M", "1000k", true),
            ("1G", "1000M", true),
            ("1T", "1000G", true),
            ("1P", "1000T", true),
            ("1Ki", "1024", true),
            ("1Mi", "1024Ki", true),
            ("1Gi", "1024Mi", true),
            ("1Ti", "1024Gi", true),
            ("1Pi", "1024Ti", true),
            ("1Ei", "1024Pi", true),
            ("1n", "2n", false),
            ("8Ei", "8Ei", true),
            ("1e99", "1e99", true),
            ("1e99", "10e98", false),
            ("", "0", false),
            (".", "0", false),
            ("1.2.3", "1.2.3", true),
            ("1.2.3", "1", false),
            ("x", "y", false),
            ("1é", "1", false),
            ("é", "1", false),
        ];
        for (a, b, expected) in table {
            assert_eq!(equal(a, b), expected, "{a} and {b}");
            assert_eq!(equal(b, a), expected, "{b} and {a}");
        }
    }

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).expect(text)
    }

    #[test]
    fn quantities_are_printed_as_kubernetes_does() {
        // (written, printed)
        let table = [
            ("0", "0"),
            ("0Mi", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("1.5", "1500m"),
            ("0.1", "100m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500", "1500"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("1e-3", "1e-3"),
            ("1e-1", "100e-3"),
            ("1024", "1024"),
            ("1024Ki", "1Mi"),
            ("1536Mi", "1536Mi"),
            ("1.5Gi", "1536Mi"),
            ("1023Ki", "1023Ki"),
            ("0.5Ki", "512"),
            ("0.0001Ki", "102400u"),
            ("1.0001Ki", "1024102400u"),
            ("1Ei", "1Ei"),
            ("9Ei", "9223372036854775807"),
            ("1E", "1E"),
            ("1000E", "1000E"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-1500m", "-1500m"),
            ("-2048", "-2048"),
            ("-2Ki", "-2Ki"),
        ];
        for (written, printed) in table {
            assert_eq!(quantity(written).to_string(), printed, "{written}");
            assert_eq!(quantity(printed), quantity(written), "{written}");
        }
    }

    #[test]
    fn sums_are_checked_and_printed_like_the_first_summand_that_is_not_zero() {
        // (a, b, sum)
        let table = [
            ("100m", "1", Some("1100m")),
            ("1Gi", "512Mi", Some("1536Mi")),
            ("1Gi", "1M", Some("1074741824")),
            ("1000", "1Ki", Some("2024")),
            ("0", "1Ki", Some("1Ki")),
            ("0Ki", "1k", Some("1k")),
            ("1", "-1", Some("0")),
            ("1e29", "1e29", None),
        ];
        for (a, b, sum) in table {
            let found = quantity(a).checked_add(quantity(b));
            assert_eq!(found.map(|sum| sum.to_string()).as_deref(), sum, "{a} and {b}");
        }
        assert_eq!(quantity("1").max(quantity("2000m")).to_string(), "2");
        assert_eq!(quantity("1Ki").max(quantity("1024")).to_string(), "1Ki");
        let rounded = |text| quantity(text).rounded_up().map(|rounded| rounded.to_string());
        assert_eq!(rounded("7n").as_deref(), Some("1m"));
        assert_eq!(rounded("1500m").as_deref(), Some("1500m"));
        assert_eq!(rounded("0").as_deref(), Some("0"));
        assert!(quantity("-1").is_negative() && !quantity("-0").is_negative());
        assert_eq!(Quantity::of(7).to_string(), "7");
    }
}
