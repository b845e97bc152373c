//! How the report writes numbers.

/// A number with three significant digits and thousands separators.
#[must_use]
pub(crate) fn figure(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "an exponent is small")]
    let digits = value.abs().log10().floor() as i32;
    let decimals = usize::try_from(2 - digits).unwrap_or_default();
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (0.012_345, "0.0123"),
            (1.0, "1"),
            (1.25, "1.25"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (1_234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-5_000.0, "-5,000"),
            (20.0, "20"),
        ] {
            assert_eq!(figure(value), expected);
        }
    }
}
