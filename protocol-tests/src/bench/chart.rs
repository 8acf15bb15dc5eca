//! Pictures of the table, as SVG that needs nothing else.

use std::fmt::Write as _;

use super::contestant::Kind;
use super::report::{Sheet, number};

const LABELS: f64 = 330.0;
const PLOT: f64 = 520.0;
const ROW: f64 = 26.0;
const TOP: f64 = 66.0;
const FONT: &str = "font-family=\"sans-serif\" font-size=\"12\"";

fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::Barnabas => "#0b6e4f",
        Kind::KafkaTuned => "#c1121f",
        Kind::Kafka => "#f4a261",
        Kind::Control => "#6c757d",
    }
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    length: f64,
}

impl Axis {
    /// One that begins and ends at powers of ten and holds all values.
    fn over(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|value| *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.1, 10.0);
        }
        Self {
            low: 10_f64.powf(low.log10().floor()),
            high: 10_f64.powf((high * 1.001).log10().ceil()),
            length,
        }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value / self.low).ln() / (self.high / self.low).ln();
        part.clamp(0.0, 1.0) * self.length
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = vec![self.low];
        // Rounding must not make a tick of the end.
        while ticks[ticks.len() - 1] * 10.0 < self.high * 0.99 {
            ticks.push(ticks[ticks.len() - 1] * 10.0);
        }
        ticks
    }
}

/// Every figure with a goal, each contestant in relation to the tuned Kafka.
pub fn cost(sheets: &[Sheet<'_>]) -> String {
    let mut rows = Vec::new();
    for sheet in sheets {
        for figure in sheet.cell.figures {
            let Some(kafka) = sheet.figure(Kind::KafkaTuned, figure.key) else {
                continue;
            };
            if figure.unit.contains("more is better") || kafka.median <= 0.0 {
                continue;
            }
            let dots: Vec<(Kind, f64)> = Kind::ALL
                .into_iter()
                .filter_map(|kind| {
                    let value = sheet.figure(kind, figure.key)?.median;
                    Some((kind, value / kafka.median))
                })
                .collect();
            rows.push((format!("{}: {}", sheet.cell.name, figure.title), dots));
        }
    }
    let values = rows
        .iter()
        .flat_map(|(_, dots)| dots.iter().map(|dot| dot.1));
    let axis = Axis::over(values, PLOT);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut body =
        heading("Cost in relation to Apache Kafka tuned (1 = the same, left is cheaper)");
    for tick in axis.ticks() {
        let x = LABELS + axis.at(tick);
        vertical(&mut body, x, bottom, tick == 1.0);
        text(&mut body, x, bottom + 18.0, "middle", &plain(tick));
    }
    for (at, (label, dots)) in rows.iter().enumerate() {
        let y = TOP + ROW * (at as f64 + 0.5);
        text(&mut body, LABELS - 12.0, y + 4.0, "end", label);
        for (kind, value) in dots {
            circle(
                &mut body,
                LABELS + axis.at(*value),
                y,
                *kind,
                &number(*value),
            );
        }
    }
    whole(&body, bottom + 34.0)
}

/// The percentiles of the busy latency cell.
pub fn latency(sheets: &[Sheet<'_>]) -> String {
    const QUANTILES: [(&str, &str); 5] = [
        ("p50", "p50"),
        ("p90", "p90"),
        ("p99", "p99"),
        ("p999", "p99.9"),
        ("max", "max"),
    ];
    const HEIGHT: f64 = 260.0;
    let mut body =
        heading("Produce 16 KiB, acks=1, 5,000 a second: microseconds from the intended time");
    let sheet = sheets.iter().find(|sheet| sheet.cell.name == "latency-16k");
    let lines: Vec<(Kind, Vec<f64>)> = Kind::ALL
        .into_iter()
        .filter_map(|kind| {
            let values = QUANTILES
                .iter()
                .map(|(key, _)| Some(sheet?.figure(kind, key)?.median));
            Some((kind, values.collect::<Option<_>>()?))
        })
        .collect();
    let axis = Axis::over(lines.iter().flat_map(|(_, values)| values.clone()), HEIGHT);
    let x_of = |at: usize| 90.0 + 160.0 * at as f64;
    let y_of = |value: f64| TOP + HEIGHT - axis.at(value);
    for tick in axis.ticks().into_iter().chain([axis.high]) {
        let y = y_of(tick);
        let _ = writeln!(
            body,
            "<line x1=\"70\" y1=\"{y:.1}\" x2=\"850\" y2=\"{y:.1}\" stroke=\"#ddd\"/>"
        );
        text(&mut body, 62.0, y + 4.0, "end", &plain(tick));
    }
    for (at, (_, name)) in QUANTILES.iter().enumerate() {
        text(&mut body, x_of(at), TOP + HEIGHT + 20.0, "middle", name);
    }
    for (kind, values) in &lines {
        let points: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("{:.1},{:.1}", x_of(at), y_of(*value)))
            .collect();
        let _ = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            points.join(" "),
            colour(*kind)
        );
        for (at, value) in values.iter().enumerate() {
            circle(&mut body, x_of(at), y_of(*value), *kind, &number(*value));
        }
    }
    whole(&body, TOP + HEIGHT + 36.0)
}

fn plain(tick: f64) -> String {
    if tick >= 1.0 {
        format!("{tick:.0}")
    } else {
        let text = format!("{tick:.5}");
        text.trim_end_matches('0').to_owned()
    }
}

/// The title and who has which colour.
fn heading(title: &str) -> String {
    let mut body = String::new();
    let _ = writeln!(
        body,
        "<text x=\"16\" y=\"24\" font-family=\"sans-serif\" font-size=\"15\" font-weight=\"bold\">{title}</text>"
    );
    let mut x = 24.0;
    for kind in Kind::ALL {
        circle(&mut body, x, 44.0, kind, kind.title());
        text(&mut body, x + 10.0, 48.0, "start", kind.title());
        x += 160.0;
    }
    body
}

fn text(body: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {FONT} text-anchor=\"{anchor}\">{words}</text>"
    );
}

fn vertical(body: &mut String, x: f64, bottom: f64, strong: bool) {
    let stroke = if strong { "#555" } else { "#ddd" };
    let _ = writeln!(
        body,
        "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{stroke}\"/>"
    );
}

fn circle(body: &mut String, x: f64, y: f64, kind: Kind, title: &str) {
    let _ = writeln!(
        body,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{}\" fill-opacity=\"0.85\"><title>{title}</title></circle>",
        colour(kind)
    );
}

fn whole(body: &str, height: f64) -> String {
    let width = LABELS + PLOT + 30.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_spans_its_values() {
        let axis = Axis::over([0.03, 4.0].into_iter(), 300.0);
        assert_eq!((axis.low, axis.high), (0.01, 10.0));
        assert!((axis.at(0.1) - 100.0).abs() < 0.001);
        assert_eq!(axis.at(1000.0), 300.0);
        assert_eq!(axis.ticks().len(), 3, "0.01, 0.1, 1");
    }

    #[test]
    fn ticks_are_plain_numbers() {
        assert_eq!(
            [0.01, 0.1, 1.0, 1000.0].map(plain),
            ["0.01", "0.1", "1", "1000"]
        );
    }

    #[test]
    fn a_chart_without_samples_is_still_one() {
        assert!(cost(&[]).ends_with("</svg>\n"));
        assert!(latency(&[]).starts_with("<svg"));
    }
}
