//! Computes how fast a value grows.

/// The slope of the least-squares line through these points; none if there are fewer than two different times.
pub(super) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = crate::timing::float(points.len() as u64);
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (middle_x, middle_y) = (mean(|it| it.0), mean(|it| it.1));
    let products = points.iter().map(|(x, y)| (x - middle_x) * (y - middle_y)).sum::<f64>();
    let squares = points.iter().map(|(x, _)| (x - middle_x).powi(2)).sum::<f64>();
    (squares > 0.0).then(|| products / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_close(found: Option<f64>, wanted: f64) -> bool {
        found.is_some_and(|found| (found - wanted).abs() < 1e-9)
    }

    #[test]
    fn a_straight_line_has_its_own_slope() {
        assert!(is_close(slope(&[(0.0, 5.0), (1.0, 8.0), (2.0, 11.0)]), 3.0));
        assert!(is_close(slope(&[(1.0, 7.0), (4.0, 7.0)]), 0.0));
    }

    #[test]
    fn noise_on_both_sides_cancels_out() {
        assert!(is_close(slope(&[(0.0, 1.0), (1.0, 0.0), (2.0, 2.0), (3.0, 1.0)]), 0.2));
    }

    #[test]
    fn one_moment_has_no_slope() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 9.0)]), None);
    }
}
