//! A line through samples: whether something grows.

/// The least-squares line through points: where it begins and where it ends, at the first and the last `x`. `None` for
/// fewer than two different `x`.
#[must_use]
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread.is_nan() || spread == 0.0 {
        return None;
    }
    let slope = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum::<f64>()
        / spread;
    let at = |x: f64| mean_y + slope * (x - mean_x);
    let (first, last) = (points.first()?.0, points.last()?.0);
    Some((at(first), at(last)))
}

/// By how much the line through the points rises from its beginning to its end; 0 where there is no line.
#[must_use]
pub fn growth(points: &[(f64, f64)]) -> f64 {
    line(points).map_or(0.0, |(from, to)| to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_through_noise() {
        let points: Vec<_> = (0..100)
            .map(|i| {
                (
                    f64::from(i),
                    10.0 + 2.0 * f64::from(i) + if i % 2 == 0 { 1.0 } else { -1.0 },
                )
            })
            .collect();
        assert!((growth(&points) - 198.0).abs() < 1.0, "{}", growth(&points));
        let flat: Vec<_> = points.iter().map(|(x, _)| (*x, 7.0)).collect();
        assert!(growth(&flat).abs() < 1e-9);
        assert_eq!(line(&[(1.0, 2.0)]), None);
        assert_eq!(growth(&[]), 0.0);
    }
}
