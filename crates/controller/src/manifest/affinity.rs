//! Session affinity: who got the candidate by weight keeps it while the run exposes it, by a cookie whose value is the run.
//!
//! Those who have the cookie are a header alternative like any other: recorded before they are led anywhere, read back from live, and
//! gone with the split. So a cookie of another run lets nobody in.

use super::cookie;
use super::desired::HeaderMatch;
use super::duration::Span;
use super::ids::{Percent, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Users who got the new version by weight keep it, by a cookie that its answers set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionAffinity {
    /// The name of the cookie. Its value is the run.
    #[schemars(extend("pattern" = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", "maxLength" = 256))]
    pub cookie: String,
    /// How long browsers keep it.
    #[serde(default = "day")]
    pub max_age: Span,
}

fn day() -> Span {
    Span::from_secs(86_400)
}

impl SessionAffinity {
    /// Those who have the cookie of that run.
    #[must_use]
    pub fn holders(&self, run: &RunId) -> HeaderMatch {
        cookie::matching(&self.cookie, run.as_str())
    }

    /// What an answer of the candidate sets, where it is one that chance led there: whose cookie it is, is in `headers`.
    #[must_use]
    pub fn set_cookie(&self, headers: &BTreeSet<HeaderMatch>, weight: Percent) -> Option<String> {
        let own = |(name, value): (String, String)| (name == self.cookie).then_some(value);
        let run = headers.iter().filter_map(cookie::named).find_map(own)?;
        let by_chance = !weight.is_zero() && weight < Percent::ALL;
        by_chance.then(|| format!("{}={run}; Max-Age={}; Path=/; HttpOnly", self.cookie, self.max_age.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_set_the_cookie_of_the_run_while_chance_decides() {
        let stay = SessionAffinity { cookie: "stay".to_owned(), max_age: day() };
        let run: RunId = "7-9ac41f02".parse().unwrap();
        let headers = BTreeSet::from([cookie::matching("canary", "always"), stay.holders(&run)]);
        let set = |weight: u8, headers| stay.set_cookie(headers, weight.try_into().unwrap());
        assert_eq!(set(10, &headers).as_deref(), Some("stay=7-9ac41f02; Max-Age=86400; Path=/; HttpOnly"));
        for (weight, headers) in [(0, &headers), (100, &headers), (10, &BTreeSet::new())] {
            assert_eq!(set(weight, headers), None);
        }
    }
}
