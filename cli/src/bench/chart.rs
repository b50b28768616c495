//! The percentiles of acquiring as an SVG chart: a panel for each number of callers, ours and the
//! floor, on a logarithmic scale that all panels share.

use std::fmt::{self, Write};

use super::figures::{Figures, Metric, Row};
use crate::words::counted;

/// A panel's plot area and its margins.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 30.0;

const OURS: &str = "#2563eb";
const FLOOR: &str = "#9ca3af";

/// The SVG document.
pub(crate) fn svg(rows: &[Row]) -> String {
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = draw(&mut svg, rows);
    svg
}

fn draw(svg: &mut String, rows: &[Row]) -> fmt::Result {
    let (across, down) = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM);
    let height = down * rows.len() as f64;
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    )?;
    let scale = Scale::over(rows);
    for (number, row) in rows.iter().enumerate() {
        panel(svg, row, &scale, down * number as f64)?;
    }
    writeln!(svg, "</svg>")
}

/// The scale's bounds: exponents of ten, in nanoseconds, that enclose every figure.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(rows: &[Row]) -> Self {
        let figures = rows.iter().flat_map(|row| [Some(&row.ours), row.floor.as_ref()]).flatten();
        let all = figures.flat_map(|figures| Metric::ACQUIRE.map(|metric| metric.of(figures)));
        let all = all.filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) = all.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value.floor()), high.max(value.ceil()))
        });
        // A default scale if there are no figures, or all lie on one power of ten.
        if low < high { Self { low, high } } else { Self { low: 4.0, high: 6.0 } }
    }

    /// A value's distance from the panel's top.
    fn place(&self, ns: f64) -> f64 {
        let share = (ns.max(1.0).log10() - self.low) / (self.high - self.low);
        HEIGHT * (1.0 - share.clamp(0.0, 1.0))
    }
}

fn panel(svg: &mut String, row: &Row, scale: &Scale, top: f64) -> fmt::Result {
    let top = top + TOP;
    text(svg, LEFT, top - 16.0, "start", &format!("acquire, {}", counted(row.callers, "caller")))?;
    let mut power = scale.low;
    while power <= scale.high {
        let y = top + scale.place(10_f64.powf(power));
        let x2 = LEFT + WIDTH;
        writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{x2}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e5e7eb\"/>"
        )?;
        text(svg, LEFT - 8.0, y + 4.0, "end", &power_of_ten(power))?;
        power += 1.0;
    }
    for (number, metric) in Metric::ACQUIRE.iter().enumerate() {
        text(svg, across(number), top + HEIGHT + 20.0, "middle", metric.name())?;
    }
    if let Some(floor) = &row.floor {
        curve(svg, floor, scale, top, ("floor", FLOOR, 110.0))?;
    }
    curve(svg, &row.ours, scale, top, ("ours", OURS, 60.0))
}

/// One contestant's line, with its name over the panel.
fn curve(
    svg: &mut String,
    figures: &Figures,
    scale: &Scale,
    top: f64,
    (name, colour, from_right): (&str, &str, f64),
) -> fmt::Result {
    let mut points = String::new();
    for (number, metric) in Metric::ACQUIRE.iter().enumerate() {
        let (x, y) = (across(number), top + scale.place(metric.of(figures)));
        let title = metric.show(figures);
        writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\">\
             <title>{name} {}: {title}</title></circle>",
            metric.name()
        )?;
        write!(points, "{x:.1},{y:.1} ")?;
    }
    let points = points.trim_end();
    writeln!(
        svg,
        "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
    )?;
    let (x, y) = (LEFT + WIDTH - from_right, top - 16.0);
    writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>")
}

/// A percentile's horizontal position.
fn across(number: usize) -> f64 {
    let step = WIDTH / Metric::ACQUIRE.len() as f64;
    LEFT + step * (number as f64 + 0.5)
}

/// A power of ten in nanoseconds as `10 µs`.
fn power_of_ten(power: f64) -> String {
    let ns = 10_f64.powf(power);
    match power {
        ..3.0 => format!("{ns:.0} ns"),
        ..6.0 => format!("{:.0} µs", ns / 1e3),
        ..9.0 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.0} s", ns / 1e9),
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, what: &str) -> fmt::Result {
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{what}</text>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Sample;

    #[test]
    fn every_figure_is_inside_its_panel() {
        let mut ours = Figures::default();
        ours.add(Sample::of(&[(50, 40), (60, 40), (9_000, 40)], 1_000_000));
        let rows = [Row { callers: 1, ours, floor: Some(Figures::default()) }];
        let scale = Scale::over(&rows);
        assert_eq!((scale.low, scale.high), (4.0, 7.0));
        assert_eq!((scale.place(1e4), scale.place(1e7)), (HEIGHT, 0.0));
        let svg = svg(&rows);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 10);
        assert!(svg.contains("acquire, 1 caller<") && svg.contains("10 µs"), "{svg}");
        assert_eq!(power_of_ten(6.0), "1 ms");
    }
}
