//! Time against size, as SVG: both axes logarithmic, a line for each prover.

use std::fmt::Write as _;

/// A prover's line: its name, and the processor's seconds at each exponent.
pub struct Line {
    /// Its name.
    pub name: String,
    /// Exponent of the domain, seconds.
    pub points: Vec<(u32, f64)>,
}

const COLOURS: [&str; 6] = ["#2060b0", "#20a060", "#c04040", "#e0a040", "#8040a0", "#606060"];
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;

/// Draws them.
pub fn svg(title: &str, lines: &[Line]) -> String {
    let all = || lines.iter().flat_map(|line| &line.points);
    let sizes = || all().map(|(log2, _)| f64::from(*log2));
    let (least, most) = (sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    let decade = |seconds: f64| seconds.max(1e-6).log10();
    let low = all()
        .map(|point| decade(point.1).floor())
        .fold(f64::MAX, f64::min);
    let high = all()
        .map(|point| decade(point.1).ceil())
        .fold(low + 1.0, f64::max);
    let x = |log2: f64| LEFT + (log2 - least) / (most - least).max(1.0) * WIDTH;
    let y = |seconds: f64| TOP + (high - decade(seconds)) / (high - low) * HEIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-weight=\"bold\">{title}</text>\n",
        LEFT + WIDTH + 190.0,
        TOP + HEIGHT + 40.0
    );
    for exponent in low as i32..=high as i32 {
        let at = y(10f64.powi(exponent));
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{} s</text>",
            LEFT + WIDTH,
            LEFT - 6.0,
            at + 4.0,
            10f64.powi(exponent)
        );
    }
    for log2 in least as u32..=most as u32 {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">2^{log2}</text>",
            x(log2.into()),
            TOP + HEIGHT + 18.0
        );
    }
    for (index, line) in lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let places: Vec<(f64, f64)> = line
            .points
            .iter()
            .map(|(log2, seconds)| (x((*log2).into()), y(*seconds)))
            .collect();
        let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
        if let Some((x, y)) = places.last() {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
                x + 8.0,
                y + 4.0,
                line.name
            );
        }
    }
    out + "</svg>\n"
}
