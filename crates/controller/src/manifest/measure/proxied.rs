//! Which limits say something of what proxies count: a share in percent, and a time, of which none is negative.

use super::{Bound, Comparison, Limits};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// How many requests of a hundred are answered well: more is better.
    Share,
    /// How long requests take.
    Time,
}

impl Counted {
    fn most(self) -> f64 {
        match self {
            Self::Share => 100.0,
            Self::Time => f64::INFINITY,
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Share => "min: 99, or comparedWithStable: {difference: {min: -1}}",
            Self::Time => "max: 500, or comparedWithStable: {ratio: {max: 1.2}}",
        }
    }
}

/// A limit that takes no version back, or each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Useless {
    /// Where it stands, below the check.
    pub at: String,
    /// What is wrong.
    pub found: String,
    /// What is wanted.
    pub wanted: &'static str,
}

/// One side of the limits.
struct Side {
    at: String,
    bound: Bound,
    /// Whether there is a value beyond it.
    tells: bool,
}

/// What is wrong with the limits of what is counted; nothing where there are none.
#[must_use]
pub fn useless(counted: Counted, limits: Limits, compared: Option<Comparison>) -> Option<Useless> {
    let most = counted.most();
    let (ratio, difference) = compared.map_or((None, None), |Comparison { ratio, difference }| (ratio, difference));
    let all = [
        ("", Some(limits), 0.0, most),
        ("comparedWithStable/ratio/", ratio, 0.0, f64::INFINITY),
        ("comparedWithStable/difference/", difference, -most, most),
    ];
    let low = all.iter().filter_map(|(at, limits, least, _)| {
        let bound = (*limits)?.min?;
        Some(Side { at: format!("{at}min"), bound, tells: bound.get() > *least })
    });
    let high = all.iter().filter_map(|(at, limits, _, most)| {
        let bound = (*limits)?.max?;
        Some(Side { at: format!("{at}max"), bound, tells: bound.get() < *most })
    });
    let (low, high): (Vec<Side>, Vec<Side>) = (low.collect(), high.collect());
    let too_good = (limits.min.filter(|min| min.get() > most), limits.max.filter(|max| max.get() < 0.0));
    let told = |list: &[Side]| list.iter().any(|side| side.tells);
    let first = |list: &[Side]| list.first().map(|side| (side.at.clone(), side.bound));
    let (at, found) = match (counted, too_good) {
        (_, (Some(min), _)) => ("min".to_owned(), format!("no share is as large as {min} %")),
        (_, (None, Some(max))) => ("max".to_owned(), format!("nothing that is counted is as small as {max}")),
        (Counted::Share, _) if told(&low) => return almost_none(limits.min?),
        (Counted::Time, _) if told(&low) || told(&high) => return None,
        (_, _) => match (first(&low), first(&high)) {
            (Some((at, min)), _) => (at, format!("no value is below {min}")),
            (None, Some((at, max))) => (at, format!("at most {max} is good, so no share of errors is too large")),
            (None, None) => return None,
        },
    };
    Some(Useless { at, found, wanted: counted.wanted() })
}

/// A share that was written as if it were one of 1.
fn almost_none(min: Bound) -> Option<Useless> {
    (min.get() > 0.0 && min.get() <= 1.0).then(|| Useless {
        at: "min".to_owned(),
        found: format!("{min} % of the requests are enough, so almost all may fail"),
        wanted: "percent, such as 99",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(counted: Counted, limits: &str) -> Option<(String, String)> {
        let value: serde_json::Value = serde_yaml::from_str(limits).unwrap();
        let of = |key: &str| value.get(key).and_then(serde_json::Value::as_f64).and_then(|n| Bound::try_from(n).ok());
        let compared = value.get("comparedWithStable").map(|it| serde_json::from_value(it.clone()).unwrap());
        useless(counted, Limits { max: of("max"), min: of("min") }, compared).map(|wrong| (wrong.at, wrong.found))
    }

    #[test]
    fn limits_that_say_nothing_of_a_share_are_known() {
        for (limits, at, what) in [
            ("{max: 99}", "max", "at most 99 is good, so no share of errors is too large"),
            ("{max: 100}", "max", "at most 100 is good, so no share of errors is too large"),
            ("{min: 101}", "min", "no share is as large as 101 %"),
            ("{min: 0}", "min", "no value is below 0"),
            ("{min: -1, max: 50}", "min", "no value is below -1"),
            ("{min: 0.99}", "min", "0.99 % of the requests are enough, so almost all may fail"),
            ("{min: 99, max: -1}", "max", "nothing that is counted is as small as -1"),
            (
                "{comparedWithStable: {ratio: {max: 1.2}}}",
                "comparedWithStable/ratio/max",
                "at most 1.2 is good, so no share of errors is too large",
            ),
            ("{comparedWithStable: {ratio: {min: 0}}}", "comparedWithStable/ratio/min", "no value is below 0"),
            (
                "{comparedWithStable: {difference: {min: -100}}}",
                "comparedWithStable/difference/min",
                "no value is below -100",
            ),
        ] {
            assert_eq!(found(Counted::Share, limits), Some((at.to_owned(), what.to_owned())), "{limits}");
        }
        for limits in [
            "{}",
            "{min: 99}",
            "{min: 99, max: 100}",
            "{max: 100, comparedWithStable: {difference: {min: -1}}}",
            "{comparedWithStable: {ratio: {min: 0.99}, difference: {max: 1}}}",
        ] {
            assert_eq!(found(Counted::Share, limits), None, "{limits}");
        }
    }

    #[test]
    fn limits_that_say_nothing_of_a_time_are_known() {
        for (limits, at) in [
            ("{max: -1}", "max"),
            ("{min: 0}", "min"),
            ("{comparedWithStable: {ratio: {min: 0}}}", "comparedWithStable/ratio/min"),
        ] {
            assert_eq!(found(Counted::Time, limits).unwrap().0, at, "{limits}");
        }
        for limits in ["{}", "{max: 500}", "{min: 1}", "{comparedWithStable: {difference: {max: 20}}}"] {
            assert_eq!(found(Counted::Time, limits), None, "{limits}");
        }
    }
}
