//! The candidate's value beside stable's, at one moment. Pure.
//!
//! What cannot be compared says nothing, neither for the version nor against it: no data is not success (C-34).

use super::judge::number;
use crate::manifest::measure::{Comparison, Limits};

/// How the candidate's value is beyond the limits; an error where there is nothing to compare it with.
///
/// # Errors
/// Says what is missing.
pub fn beside(limits: Comparison, candidate: f64, stable: Option<f64>) -> Result<Option<String>, &'static str> {
    let Comparison { ratio, difference } = limits;
    let stable = stable.filter(|stable| stable.is_finite()).ok_or("stable has none")?;
    let exceeded = |limits: Option<Limits>, value: f64| Some((value, limits?.exceeded(value)?));
    let absolute = exceeded(difference, candidate - stable)
        .map(|(by, how)| format!("differs from stable's {} by {}, which is {how}", number(stable), number(by)));
    // The ratio to nothing, or to less, would call any value bad, or any good.
    if absolute.is_none() && ratio.is_some() && stable <= 0.0 {
        return Err("stable is at 0, to which there is no ratio");
    }
    let relative = || exceeded(ratio, candidate / stable);
    Ok(absolute.or_else(|| {
        relative().map(|(times, how)| format!("is {} times stable's {}, which is {how}", number(times), number(stable)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(yaml: &str) -> Comparison {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[track_caller]
    fn is(yaml: &str, candidate: f64, stable: f64, wanted: Result<Option<&str>, &'static str>) {
        let wanted = wanted.map(|how| how.map(str::to_owned));
        assert_eq!(beside(limits(yaml), candidate, Some(stable)), wanted, "{candidate} beside {stable}");
    }

    #[test]
    fn a_ratio_is_one_of_values_above_nothing() {
        let most = "ratio: {max: 1.2}";
        is(most, 0.12, 0.1, Ok(None));
        is(most, 0.0, 0.1, Ok(None));
        is(most, 0.25, 0.1, Ok(Some("is 2.5 times stable's 0.1, which is above 1.2")));
        is(most, f64::INFINITY, 0.1, Ok(Some("is inf times stable's 0.1, which is above 1.2")));
        is("ratio: {min: 0.8, max: 1.2}", 50.0, 100.0, Ok(Some("is 0.5 times stable's 100, which is below 0.8")));
    }

    #[test]
    fn c_34_what_cannot_be_compared_says_nothing() {
        let most = "ratio: {max: 1.2}";
        for (candidate, stable) in [(0.0, 0.0), (0.5, 0.0), (0.5, -1.0), (-0.5, -1.0)] {
            is(most, candidate, stable, Err("stable is at 0, to which there is no ratio"));
        }
        assert_eq!(beside(limits(most), 0.5, None), Err("stable has none"));
        for stable in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            is(most, 0.5, stable, Err("stable has none"));
        }
    }

    #[test]
    fn a_difference_needs_no_more_than_a_value() {
        let most = "difference: {max: 0.01}";
        is(most, 0.01, 0.0, Ok(None));
        is(most, 0.25, 0.0, Ok(Some("differs from stable's 0 by 0.25, which is above 0.01")));
        is("difference: {min: -5}", 90.0, 99.0, Ok(Some("differs from stable's 99 by -9, which is below -5")));
    }

    #[test]
    fn of_both_limits_both_hold() {
        let both = "{ratio: {max: 2}, difference: {max: 0.1}}";
        is(both, 0.15, 0.1, Ok(None));
        is(both, 0.3, 0.1, Ok(Some("differs from stable's 0.1 by 0.2, which is above 0.1")));
        is(both, 0.05, 0.01, Ok(Some("is 5 times stable's 0.01, which is above 2")));
        is(both, 0.3, 0.0, Ok(Some("differs from stable's 0 by 0.3, which is above 0.1")));
        is(both, 0.05, 0.0, Err("stable is at 0, to which there is no ratio"));
    }
}
