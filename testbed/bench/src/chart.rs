//! Charts as SVG files.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::figure::figure;
use crate::report::{Bar, Chart, Series, Shape};

const WIDTH: u32 = 860;
const FONT: &str = "sans-serif";
/// Colours that people with any colour vision can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; 4] = [
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0x99, 0x99, 0x99),
    RGBColor(0x00, 0x9e, 0x73),
];
/// The colour of text and axes: readable on white and on a dark background.
const INK: RGBColor = RGBColor(0x66, 0x6e, 0x78);

/// Draws a chart into a file in `folder`.
///
/// # Errors
/// There is no data, or the file cannot be written.
pub fn draw(chart: &Chart, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{}.svg", chart.file));
    match &chart.shape {
        Shape::Bars(bars) => draw_bars(chart, bars, &path),
        Shape::Lines { of, series } => draw_lines(chart, of, series, &path),
    }
    .with_context(|| format!("drawing {}", path.display()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Converts an error of plotters, which is not `'static`.
fn told<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("{error}")
}

fn letters(size: u32) -> TextStyle<'static> {
    (FONT, size).into_font().color(&INK)
}

/// The distinct names, in the order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

fn heading<'a>(path: &'a Path, chart: &Chart, height: u32, who: &[&str]) -> Result<Area<'a>> {
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    let scale = if chart.logarithmic { ", logarithmic" } else { "" };
    let title = format!("{} ({}{scale})", chart.title, chart.unit);
    area.draw(&Text::new(title, (12, 10), letters(17)))
        .map_err(told)?;
    let mut x = 14;
    for (name, colour) in who.iter().zip(COLOURS) {
        let square = Rectangle::new([(x, 38), (x + 12, 50)], colour.filled());
        area.draw(&square).map_err(told)?;
        area.draw(&Text::new((*name).to_owned(), (x + 18, 37), letters(14)))
            .map_err(told)?;
        x += 40 + 8 * i32::try_from(name.len())?;
    }
    Ok(area)
}

fn draw_bars(chart: &Chart, bars: &[Bar], path: &Path) -> Result<()> {
    const BAR: i32 = 22;
    const LEFT: i32 = 190;
    const TOP: i32 = 64;
    let who = distinct(bars.iter().map(|bar| bar.who.as_str()));
    let groups = distinct(bars.iter().map(|bar| bar.group.as_str()));
    let most = bars.iter().map(|bar| bar.values.max()).fold(0.0, f64::max);
    let least = bars.iter().map(|bar| bar.values.min()).fold(most, f64::min);
    ensure!(
        most > 0.0 && who.len() <= COLOURS.len(),
        "no bars, or too many kinds"
    );
    let lines = i32::try_from(bars.len())?;
    let gaps = i32::try_from(groups.len())?;
    let height = TOP + lines * BAR + gaps * 14 + 10;
    let area = heading(path, chart, u32::try_from(height)?, &who)?;
    // Leave space for the figure after the longest bar.
    let room = f64::from(WIDTH) - f64::from(LEFT) - 150.0;
    let base = 10_f64.powf(least.log10().floor());
    let length = |value: f64| {
        let part = if chart.logarithmic {
            (value / base).log10() / (most / base).log10()
        } else {
            value / most
        };
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a chart")]
        let pixels = (room * part).round() as i32;
        pixels
    };
    let mut y = TOP;
    for group in groups {
        area.draw(&Text::new(group.to_owned(), (12, y + 3), letters(14)))
            .map_err(told)?;
        for bar in bars.iter().filter(|bar| bar.group == group) {
            let colour = who.iter().position(|name| *name == bar.who).unwrap_or_default();
            let (values, end) = (&bar.values, LEFT + length(bar.values.median()).max(1));
            let filled = Rectangle::new([(LEFT, y + 2), (end, y + BAR - 4)], COLOURS[colour].filled());
            area.draw(&filled).map_err(told)?;
            let (from, to) = (LEFT + length(values.min()), LEFT + length(values.max()));
            let middle = y + BAR / 2 - 1;
            area.draw(&PathElement::new(
                vec![(from, middle), (to, middle)],
                BLACK.stroke_width(1),
            ))
            .map_err(told)?;
            area.draw(&Text::new(
                figure(values.median()),
                (to.max(end) + 8, y + 3),
                letters(13),
            ))
            .map_err(told)?;
            y += BAR;
        }
        y += 14;
    }
    area.present().map_err(told)
}

fn draw_lines(chart: &Chart, of: &str, series: &[Series], path: &Path) -> Result<()> {
    let who: Vec<&str> = series.iter().map(|series| series.who.as_str()).collect();
    let points = || series.iter().flat_map(|series| &series.points);
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        })
    };
    let (left, right) = bounds(&mut points().map(|(size, _)| *size));
    let (low, high) = bounds(&mut points().flat_map(|(_, values)| [values.min(), values.max()]));
    ensure!(
        left > 0.0 && low > 0.0 && who.len() <= COLOURS.len(),
        "nothing to draw on a logarithmic scale"
    );
    let area = heading(path, chart, 420, &who)?;
    let area = area.margin(60, 8, 8, 20);
    let mut builder = ChartBuilder::on(&area);
    builder.x_label_area_size(40).y_label_area_size(70);
    let across = (left / 1.1..right * 1.1).log_scale();
    let up = (low / 1.5..high * 1.5).log_scale();
    let mut plot = builder.build_cartesian_2d(across, up).map_err(told)?;
    mesh(&mut plot, of)?;
    for (series, colour) in series.iter().zip(COLOURS) {
        let line = series
            .points
            .iter()
            .map(|(size, values)| (*size, values.median()));
        plot.draw_series(LineSeries::new(line, colour.stroke_width(2)))
            .map_err(told)?;
        let dots = series.points.iter().map(|(size, values)| {
            ErrorBar::new_vertical(
                *size,
                values.min(),
                values.median(),
                values.max(),
                colour.filled(),
                8,
            )
        });
        plot.draw_series(dots).map_err(told)?;
    }
    area.present().map_err(told)
}

fn mesh<X, Y>(plot: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>, of: &str) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    plot.configure_mesh()
        .x_desc(of)
        .axis_desc_style(letters(14))
        .label_style(letters(13))
        .axis_style(INK)
        .bold_line_style(INK.mix(0.3))
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|value| figure(*value))
        .y_label_formatter(&|value| figure(*value))
        .draw()
        .map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Spread;

    fn chart(shape: Shape) -> Chart {
        Chart {
            file: "chart".to_owned(),
            title: "Plans".to_owned(),
            unit: "µs, less is better".to_owned(),
            logarithmic: true,
            shape,
        }
    }

    fn bar(who: &str, value: f64) -> Bar {
        Bar {
            group: "5,000 nodes".to_owned(),
            who: who.to_owned(),
            values: Spread::of([value * 0.9, value, value * 1.1]).expect("values"),
        }
    }

    #[test]
    fn charts_contain_their_labels() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let points = [1_000.0, 100_000.0].map(|size| (size, Spread::of([size * 37.0]).expect("a value")));
        let series = Series {
            who: "Nodewise".to_owned(),
            points: points.into(),
        };
        for shape in [
            Shape::Bars(vec![bar("upstream", 175_000.0), bar("Nodewise", 184.0)]),
            Shape::Lines {
                of: "nodes".to_owned(),
                series: vec![series],
            },
        ] {
            draw(&chart(shape), folder.path())?;
            let text = std::fs::read_to_string(folder.path().join("chart.svg"))?;
            for word in ["Plans (µs, less is better, logarithmic)", "Nodewise"] {
                assert!(text.contains(word), "{word}: {text}");
            }
        }
        Ok(())
    }

    #[test]
    fn empty_chart_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(draw(&chart(Shape::Bars(vec![])), folder.path()).is_err());
    }
}
