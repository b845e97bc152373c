//! Reads values from the text in which programs serve their metrics.

use anyhow::{Result, ensure};

/// The sum of the samples of this name that have all of these labels.
///
/// # Errors
/// There is no such sample, or one is not a number.
pub(crate) fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> Result<f64> {
    let wanted: Vec<_> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    let (mut sum, mut found) = (0.0, false);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (of, with) = series.split_once('{').unwrap_or((series, ""));
        let with = with.trim_end_matches('}');
        // No value of a label that is asked for here contains a comma.
        if of == name
            && wanted
                .iter()
                .all(|label| with.split(',').any(|other| other == label))
        {
            sum += value.parse::<f64>()?;
            found = true;
        }
    }
    ensure!(found, "no sample of {name} with {labels:?}");
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_name_and_labels() -> Result<()> {
        let text = "# HELP waited How long\n# TYPE waited histogram\nwaited_sum{name=\"daemonset\",of=\"a\"} 1.5\n\
                    waited_sum{name=\"daemonset\",of=\"b\"} 2\nwaited_sum{name=\"daemonsets\"} 40\nwaited 7\n";
        let daemon_set = [("name", "daemonset")];
        assert!((sum(text, "waited_sum", &daemon_set)? - 3.5).abs() < 1e-9);
        assert!((sum(text, "waited_sum", &[])? - 43.5).abs() < 1e-9);
        assert!((sum(text, "waited", &[])? - 7.0).abs() < 1e-9);
        assert!(sum(text, "waited", &daemon_set).is_err() && sum(text, "wait", &[]).is_err());
        Ok(())
    }
}
