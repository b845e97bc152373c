//! Converts OpenMetrics to the older text format of Prometheus (version 0.0.4), for clients that do not accept OpenMetrics.
//!
//! The older format has no exemplars, no units and no end mark, and the name of a counter ends with `_total` also in its `# HELP`
//! and `# TYPE` lines. <https://prometheus.io/docs/instrumenting/exposition_formats/>

use std::borrow::Cow;

/// The media type.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts the output of `prometheus_client`: for each family `# HELP`, then `# TYPE`, then samples.
pub(super) fn from_open_metrics(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map(|(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let (name, kind) = named(name, kind);
            if let Some(help) = help.take() {
                push(&mut text, &["# HELP ", &name, " ", help]);
            }
            push(&mut text, &["# TYPE ", &name, " ", kind]);
        } else if !line.starts_with('#') {
            push(&mut text, &[without_exemplar(line)]);
        }
    }
    text
}

fn push(text: &mut String, parts: &[&str]) {
    text.extend(parts.iter().copied());
    text.push('\n');
}

/// The name and type of a family in the older format.
fn named<'a>(name: &'a str, kind: &'a str) -> (Cow<'a, str>, &'a str) {
    match kind {
        "counter" => (format!("{name}_total").into(), kind),
        "info" => (format!("{name}_info").into(), "gauge"),
        "gauge" | "histogram" | "summary" => (name.into(), kind),
        _ => (name.into(), "untyped"),
    }
}

/// A sample without its exemplar. A `#` within a quoted label value does not begin an exemplar.
fn without_exemplar(sample: &str) -> &str {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in sample.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'#' if !is_quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_converted() {
        let open_metrics = "\
# HELP plans Plans answered.
# TYPE plans counter
plans_total{verdict=\"a # {\\\"b\\\\\"} 3 # {trace_id=\"1f\"} 1.0 5.0
# HELP age_seconds How old.
# TYPE age_seconds gauge
# UNIT age_seconds seconds
age_seconds 1.5
# HELP took Took.
# TYPE took histogram
took_sum 2.0
took_count 1
took_bucket{le=\"+Inf\"} 1 # {trace_id=\"2f\"} 2.0
# HELP target About it.
# TYPE target info
target_info{a=\"b\"} 1
# EOF
";
        let expected = "\
# HELP plans_total Plans answered.
# TYPE plans_total counter
plans_total{verdict=\"a # {\\\"b\\\\\"} 3
# HELP age_seconds How old.
# TYPE age_seconds gauge
age_seconds 1.5
# HELP took Took.
# TYPE took histogram
took_sum 2.0
took_count 1
took_bucket{le=\"+Inf\"} 1
# HELP target_info About it.
# TYPE target_info gauge
target_info{a=\"b\"} 1
";
        assert_eq!(from_open_metrics(open_metrics), expected);
    }
}
