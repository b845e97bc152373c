//! The chart: updated, available, unavailable and surging over time, with the budgets.

use anyhow::anyhow;
use nodewise_forecast::{End, Forecast};
use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, DashedLineSeries, IntoDrawingArea as _, LineSeries, PathElement,
    RGBColor, SVGBackend, SeriesLabelPosition, ShapeStyle, WHITE,
};

use super::{
    report::{Sample, Subject},
    text::time,
};
use crate::kind::Kind;

/// A line of the chart: its name, its colour, and its value at a step.
type Line = (&'static str, RGBColor, fn(&Sample) -> u32);

const SIZE: (u32, u32) = (960, 480);
/// Colours that people with any colour vision tell apart (Okabe and Ito).
const UPDATED: RGBColor = RGBColor(0, 114, 178);
const AVAILABLE: RGBColor = RGBColor(0, 158, 115);
const UNAVAILABLE: RGBColor = RGBColor(213, 94, 0);
const SURGING: RGBColor = RGBColor(204, 121, 167);
const BUDGET: RGBColor = RGBColor(90, 90, 90);

/// What is drawn.
pub(super) struct Chart<'a> {
    pub(super) subject: &'a Subject,
    pub(super) forecast: &'a Forecast,
    pub(super) samples: &'a [Sample],
}

/// The chart as SVG.
pub(super) fn render(played: &Chart<'_>) -> anyhow::Result<String> {
    let mut svg = String::new();
    draw(played, &mut svg).map_err(|error| anyhow!("the chart cannot be drawn: {error}"))?;
    Ok(with_description(&svg, played))
}

type Point = (f64, f64);

fn draw(played: &Chart<'_>, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (unit, seconds) = unit(played.forecast.took.as_secs());
    let end = (played.forecast.took.as_secs_f64() / seconds).max(1.0);
    let most = played.samples.iter().map(|step| step.counts.desired).max();
    let most = f64::from(most.unwrap_or(1).max(1));
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .caption(caption(played), ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..end, 0.0..most * 1.08)?;
    chart
        .configure_mesh()
        .x_desc(format!("time since the change ({unit})"))
        .y_desc(format!("{}s", played.subject.noun()))
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.1))
        .label_style(("sans-serif", 14))
        .draw()?;
    let surges = played.forecast.budget.max_surge > 0;
    let mut lines: Vec<Line> = vec![
        ("updated", UPDATED, |step| step.counts.updated),
        ("available", AVAILABLE, |step| step.counts.available),
        ("unavailable, at worst", UNAVAILABLE, |step| {
            step.worst_unavailable
        }),
    ];
    let mut budgets: Vec<Line> = Vec::new();
    if played.subject.kind != Kind::ReplicaSet {
        budgets.push(("maxUnavailable", BUDGET, |step| step.budget.max_unavailable));
    }
    if surges {
        lines.push(("surging, at worst", SURGING, |step| step.worst_surging));
        budgets.push(("maxSurge", SURGING, |step| step.budget.max_surge));
    }
    for (label, colour, value) in lines {
        let style = ShapeStyle::from(colour).stroke_width(2);
        chart
            .draw_series(LineSeries::new(stairs(played, seconds, end, value), style))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
    }
    for (label, colour, value) in budgets {
        let style = ShapeStyle::from(colour).stroke_width(1);
        chart
            .draw_series(DashedLineSeries::new(
                stairs(played, seconds, end, value),
                6,
                4,
                style,
            ))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 8, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}

/// The unit of the time axis, and its seconds.
fn unit(total: u64) -> (&'static str, f64) {
    match total {
        0..=300 => ("s", 1.0),
        301..=18_000 => ("min", 60.0),
        _ => ("h", 3_600.0),
    }
}

/// A number without needless digits.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// The corners of a line that changes at each step.
fn stairs(played: &Chart<'_>, unit: f64, end: f64, value: impl Fn(&Sample) -> u32) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::with_capacity(2 * played.samples.len() + 1);
    for step in played.samples {
        let (x, y) = (step.at.as_secs_f64() / unit, f64::from(value(step)));
        if let Some((_, before)) = points.last().copied() {
            points.push((x, before));
        }
        points.push((x, y));
    }
    if let Some((_, last)) = points.last().copied() {
        points.push((end, last));
    }
    points
}

fn caption(played: &Chart<'_>) -> String {
    let took = time(played.forecast.took);
    let end = match &played.forecast.end {
        End::Done => format!("done after {took}"),
        End::Stuck { .. } => format!("stuck after {took}"),
        End::Bound(_) => format!("not done after {took}"),
        End::Cancelled => format!("cancelled after {took}"),
    };
    format!("{}: {end}", played.subject.title)
}

/// Adds what a screen reader says.
fn with_description(svg: &str, played: &Chart<'_>) -> String {
    let forecast = played.forecast;
    let surge = if forecast.budget.max_surge > 0 {
        format!(
            "At worst {} are surging; maxSurge allows {}. ",
            forecast.worst_surging, forecast.budget.max_surge
        )
    } else {
        String::new()
    };
    let description = format!(
        "A line chart over time. At worst {} of {} {}s are without an available pod; maxUnavailable allows {}. {surge}At the end {} \
         are updated and {} available.",
        forecast.worst_unavailable,
        forecast.counts.desired,
        played.subject.noun(),
        forecast.budget.max_unavailable,
        forecast.counts.updated,
        forecast.counts.available
    );
    let (title, description) = (escaped(&caption(played)), escaped(&description));
    let Some((head, body)) = svg.split_once('>') else {
        return svg.to_owned();
    };
    format!(
        "{head} role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{title}</title>\n<desc id=\"desc\">{description}</desc>{body}"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
