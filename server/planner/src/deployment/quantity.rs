//! Compares resource quantities by value (P-16): `1` equals `1000m`.

/// A quantity in billionths, the finest step of the API; `None` if the text is no quantity or too large.
fn billionths(text: &str) -> Option<i128> {
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
    let (tens, binary) = factor(suffix)?;
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
    Some(if negative { -value } else { value })
}

/// The power of ten and the power of two of a suffix.
fn factor(suffix: &str) -> Option<(i32, u32)> {
    Some(match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (-100..=100).contains(&exponent).then_some((exponent, 0))?
        }
    })
}

/// Whether two quantities have the same value. Texts that are no quantities are compared as they are.
pub(crate) fn equal(a: &str, b: &str) -> bool {
    a == b || billionths(a).is_some_and(|value| billionths(b) == Some(value))
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
}
