//! A drawing in SVG: panels in rows of three, both axes logarithmic, one legend. Pure.
//!
//! Its greys and colours can be read on white and on black, and it has no background of its own.

use std::fmt::Write as _;

/// One plot.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) series: Vec<Series>,
}

/// One line in it.
#[derive(Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

const COLUMNS: usize = 3;
const PANEL: (f64, f64) = (250.0, 190.0);
const MARGIN: (f64, f64) = (62.0, 50.0);
/// Above the panels, for the title and the legend.
const HEAD: f64 = 70.0;
const COLORS: [&str; 5] = ["#2f81f7", "#d97706", "#16a34a", "#db2777", "#8b5cf6"];
const GREY: &str = "#808080";

/// What the axes span: powers of ten, and of two.
struct Span {
    x: (f64, f64),
    y: (f64, f64),
}

/// Draws them all to the same scale.
pub(crate) fn draw(title: &str, panels: &[Panel]) -> String {
    let span = Span::of(panels);
    let rows = panels.len().div_ceil(COLUMNS).max(1) as f64;
    let width = COLUMNS as f64 * (PANEL.0 + MARGIN.0) + 20.0;
    let height = HEAD + rows * (PANEL.1 + MARGIN.1) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\" fill=\"{GREY}\">\n\
         <text x=\"{}\" y=\"20\" font-size=\"15\">{title}</text>\n",
        MARGIN.0
    );
    legend(&mut svg, panels);
    for (number, panel) in panels.iter().enumerate() {
        let x = MARGIN.0 + (number % COLUMNS) as f64 * (PANEL.0 + MARGIN.0);
        let y = HEAD + (number / COLUMNS) as f64 * (PANEL.1 + MARGIN.1);
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">"); // a string takes all
        axes(&mut svg, &span, &panel.title);
        for (series, color) in panel.series.iter().zip(COLORS) {
            line(&mut svg, &span, series, color);
        }
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

/// The names of the first panel's lines: all have the same.
fn legend(svg: &mut String, panels: &[Panel]) {
    let series = panels.first().map(|panel| &*panel.series).unwrap_or_default();
    for (number, (series, color)) in series.iter().zip(COLORS).enumerate() {
        let x = MARGIN.0 + 90.0 * number as f64;
        *svg += &format!(
            "<path d=\"M{x} 38h18\" stroke=\"{color}\" stroke-width=\"3\"/>\
             <text x=\"{}\" y=\"42\">{}</text>\n",
            x + 24.0,
            series.name
        );
    }
}

impl Span {
    fn of(panels: &[Panel]) -> Self {
        let points = || panels.iter().flat_map(|it| &it.series).flat_map(|it| &it.points);
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)))
        };
        let (x, y) = (ends(&mut points().map(|it| it.0)), ends(&mut points().map(|it| it.1)));
        if !(x.0.is_finite() && y.0.is_finite() && x.0 > 0.0 && y.0 > 0.0) {
            return Self { x: (1.0, 10.0), y: (1.0, 10.0) };
        }
        let power = |value: f64| 10_f64.powf(value);
        let y = (power(y.0.log10().floor()), power(y.1.log10().ceil()));
        Self { x: (x.0, x.1.max(2.0 * x.0)), y: (y.0, y.1.max(10.0 * y.0)) }
    }

    /// Where a point lies in its panel.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part = |value: f64, (low, high): (f64, f64)| (value / low).ln() / (high / low).ln();
        (PANEL.0 * part(x, self.x), PANEL.1 * (1.0 - part(y, self.y)))
    }
}

/// Frame, grid, numbers, names.
fn axes(svg: &mut String, span: &Span, title: &str) {
    let (width, height) = PANEL;
    *svg += &format!(
        "<text x=\"0\" y=\"-6\" font-weight=\"bold\">{title}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">callers</text>\
         <text transform=\"translate(-48 {}) rotate(-90)\" text-anchor=\"middle\">cycles/s</text>\
         <path d=\"M0 0V{height}H{width}\" fill=\"none\" stroke=\"{GREY}\"/>\n",
        width / 2.0,
        height + 30.0,
        height / 2.0
    );
    let mut at = span.y.0;
    while at <= span.y.1 * 1.001 {
        let (_, y) = span.place((span.x.0, at));
        *svg += &format!(
            "<path d=\"M0 {y:.1}H{width}\" stroke=\"{GREY}\" stroke-opacity=\"0.3\"/>\
             <text x=\"-5\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
            y + 4.0,
            short(at)
        );
        at *= 10.0;
    }
    let mut at = span.x.0;
    while at <= span.x.1 * 1.001 {
        let (x, _) = span.place((at, span.y.0));
        *svg += &format!(
            "<path d=\"M{x:.1} {height}v4\" stroke=\"{GREY}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
            height + 16.0,
            short(at)
        );
        at *= 8.0;
    }
}

fn line(svg: &mut String, span: &Span, series: &Series, color: &str) {
    let places: Vec<(f64, f64)> = series.points.iter().map(|point| span.place(*point)).collect();
    let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    *svg += &format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.8\"/>\n",
        path.join(" ")
    );
    for (x, y) in places {
        *svg += &format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\" fill=\"{color}\"/>\n");
    }
}

/// `10k`, `1M`.
fn short(value: f64) -> String {
    match value {
        it if it >= 1e6 => format!("{:.0}M", it / 1e6),
        it if it >= 1e4 => format!("{:.0}k", it / 1e3),
        it => format!("{it:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(points: &[(f64, f64)]) -> Panel {
        let series = vec![Series { name: "5 nodes".into(), points: points.to_vec() }];
        Panel { title: "ours".into(), series }
    }

    #[test]
    fn the_ends_of_the_span_are_the_corners() {
        let span = Span::of(&[panel(&[(1.0, 1_500.0), (4_096.0, 150_000.0)])]);
        assert_eq!((span.x, span.y), ((1.0, 4_096.0), (1_000.0, 1_000_000.0)));
        assert_eq!(span.place((1.0, 1_000.0)), (0.0, PANEL.1));
        assert_eq!(span.place((4_096.0, 1_000_000.0)), (PANEL.0, 0.0));
        let (x, _) = span.place((64.0, 1_000.0));
        assert!((x - PANEL.0 / 2.0).abs() < 1e-9, "{x}");
    }

    #[test]
    fn every_point_is_drawn_and_no_number_is_broken() {
        for points in [&[][..], &[(1.0, 5.0)], &[(1.0, 10.0), (8.0, 90.0), (64.0, 900.0)]] {
            let svg = draw("title", &[panel(points), panel(points)]);
            assert_eq!(svg.matches("<circle").count(), 2 * points.len());
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
