//! A page of small line charts over one time axis, as SVG.

/// One chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What is drawn, with its unit.
    pub title: String,
    /// Values, one for each time.
    pub values: Vec<f64>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 96.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 30.0;
const BELOW: f64 = 26.0;

/// Draws the charts one below the other. `seconds` are the times, `marks` are moments shown as lines across all charts,
/// each with what it stands for.
#[must_use]
pub fn svg(seconds: &[f64], charts: &[Chart], marks: &[(f64, &str)]) -> String {
    let end = seconds.last().copied().unwrap_or(1.0).max(1.0);
    let x = |second: f64| LEFT + second / end * WIDTH;
    let row = TOP + HEIGHT + BELOW;
    let (width, height) = (LEFT + WIDTH + 20.0, row * charts.len() as f64 + 10.0);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let mut put = |line: String| text.extend([line.as_str(), "\n"]);
    for (second, name) in marks {
        put(format!(
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP:.0}\" y2=\"{1:.0}\" stroke=\"#e0a040\"><title>{2}</title></line>",
            x(*second),
            height - 10.0 - BELOW,
            escaped(name)
        ));
    }
    for (index, chart) in charts.iter().enumerate() {
        let top = row * index as f64 + TOP;
        let bottom = top + HEIGHT;
        let most = chart.values.iter().copied().fold(0.0, f64::max);
        let scale = if most > 0.0 { most } else { 1.0 };
        put(format!(
            "<text x=\"{LEFT}\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
            top - 8.0,
            escaped(&chart.title)
        ));
        put(format!(
            "<rect x=\"{LEFT}\" y=\"{top:.0}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#bbb\"/>"
        ));
        for (value, y) in [(most, top + 9.0), (0.0, bottom)] {
            put(format!(
                "<text x=\"{}\" y=\"{y:.0}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                short(value)
            ));
        }
        for (second, name) in [(0.0, "0 s".to_owned()), (end, format!("{end:.0} s"))] {
            put(format!(
                "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{name}</text>",
                x(second),
                bottom + 14.0
            ));
        }
        let points: Vec<String> = thinned(seconds, &chart.values)
            .into_iter()
            .map(|(second, value)| format!("{:.1},{:.1}", x(second), bottom - value / scale * HEIGHT))
            .collect();
        put(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#2060b0\" stroke-width=\"1.2\"/>",
            points.join(" ")
        ));
    }
    text + "</svg>\n"
}

/// Enough points for the eye: of those that fall into one column of the picture, the least and the greatest, in their
/// order, so that no peak is left out.
fn thinned(seconds: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    let columns = WIDTH as usize / 2;
    let points: Vec<(f64, f64)> = seconds.iter().copied().zip(values.iter().copied()).collect();
    let column = points.len().div_ceil(columns).max(1);
    if column <= 2 {
        return points;
    }
    let extremes = |points: &[(f64, f64)]| {
        let by_value = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
        let mut two: Vec<_> = [
            points.iter().copied().min_by(by_value),
            points.iter().copied().max_by(by_value),
        ]
        .into_iter()
        .flatten()
        .collect();
        two.sort_by(|a, b| a.0.total_cmp(&b.0));
        two
    };
    points.chunks(column).flat_map(extremes).collect()
}

/// 12345678 as 12.3M.
fn short(value: f64) -> String {
    for (unit, size) in [("G", 1e9), ("M", 1e6), ("k", 1e3)] {
        if value >= size {
            return format!("{:.1}{unit}", value / size);
        }
    }
    format!("{value:.0}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chart_has_its_line_and_its_greatest_value() {
        let chart = |title: &str, values: &[f64]| Chart {
            title: title.to_owned(),
            values: values.to_vec(),
        };
        let text = svg(
            &[0.0, 5.0, 10.0],
            &[
                chart("bytes < 2", &[0.0, 1_500_000.0, 1.0]),
                chart("files", &[0.0, 0.0, 0.0]),
            ],
            &[(5.0, "a kill")],
        );
        assert_eq!(text.matches("<polyline").count(), 2);
        assert_eq!(text.matches("<line ").count(), 1);
        assert!(text.contains("bytes &lt; 2") && text.contains("1.5M"), "{text}");
        // The greatest value is at the top of its chart, in the middle of the time.
        assert!(text.contains("450.0,30.0"), "{text}");
        assert!(text.ends_with("</svg>\n"));
    }
    #[test]
    fn a_long_time_is_thinned_and_keeps_its_peaks() {
        let seconds: Vec<f64> = (0..7200).map(f64::from).collect();
        let mut values = vec![1.0; seconds.len()];
        (values[3001], values[5002]) = (9.0, 0.0);
        let points = thinned(&seconds, &values);
        assert!(points.len() < 800, "{}", points.len());
        assert!(points.contains(&(3001.0, 9.0)) && points.contains(&(5002.0, 0.0)));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0));
    }
}
