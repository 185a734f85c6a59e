//! What a policy asks of a rollout, as the record keeps it: so that a change of the policy never lets in the version that came
//! with it.

use crate::manifest::ids::SetId;
use crate::manifest::proof::ApprovalRule;
use crate::manifest::raw::Floors;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a policy asks of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// Who has to approve; none where whoever may write decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<ApprovalRule>,
    /// What no plan goes below.
    #[serde(default, skip_serializing_if = "Floors::is_none", deserialize_with = "known")]
    pub floors: Floors,
}

/// Floors, of which a newer version may know more: people may write no others, but a record of such a version is read.
fn known<'de, D: Deserializer<'de>>(source: D) -> Result<Floors, D::Error> {
    let mut fields: BTreeMap<String, Value> = BTreeMap::deserialize(source)?;
    fields.retain(|name, _| ["approvedSteps", "firstExposure", "checks", "soak", "images"].contains(&name.as_str()));
    serde_json::from_value(fields.into_iter().collect()).map_err(D::Error::custom)
}

/// What main wants, and what the policy asks of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Governed {
    /// The set that main wants.
    pub wanted: SetId,
    /// What the policy said when that was seen last.
    pub said: Terms,
    /// What holds for that set instead: the policy was changed together with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Terms>,
}

impl Terms {
    /// The stricter of two in each respect.
    #[must_use]
    pub fn stricter(&self, other: &Self) -> Self {
        Self {
            rule: ApprovalRule::stricter(self.rule.as_ref(), other.rule.as_ref()),
            floors: self.floors.stricter(&other.floors),
        }
    }
}

impl Governed {
    /// What holds for the set.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        self.holds.as_ref().unwrap_or(&self.said)
    }

    /// What is to be kept in mind now that main wants `wanted` and its policy says `said`. Of a policy that was changed in one go
    /// with what is wanted only what restricts holds for that; a change by itself holds as it is. None where nothing is asked.
    #[must_use]
    pub fn next(known: Option<&Self>, wanted: &SetId, said: &Terms) -> Option<Self> {
        let holds = match known {
            Some(known) if known.said == *said && known.wanted == *wanted => known.holds.clone(),
            Some(known) if known.said != *said && known.wanted != *wanted => Some(known.terms().stricter(said)),
            Some(_) | None => None,
        };
        let holds = holds.filter(|terms| terms != said);
        let asks = holds.is_some() || *said != Terms::default();
        asks.then(|| Self { wanted: wanted.clone(), said: said.clone(), holds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::duration::Span;
    use crate::manifest::proof::By;
    use crate::manifest::raw::Trust;

    fn terms(approvals: u32, soak: u64) -> Terms {
        let rule =
            ApprovalRule { approvers: ["ana".to_owned()].into(), approvals, trust: Trust::Reviews, by: By::Reviews };
        Terms { rule: Some(rule), floors: Floors { soak: Some(Span::from_secs(soak)), ..Floors::default() } }
    }

    fn set(digit: &str) -> SetId {
        digit.repeat(40).parse().unwrap()
    }

    #[test]
    fn what_a_newer_version_asks_for_is_no_reason_to_read_nothing() {
        let text = r#"{"floors": {"soak": "1m", "approvedSteps": 2, "colour": "blue"}}"#;
        let floors = Floors { soak: Some(Span::from_secs(60)), approved_steps: 2, ..Floors::default() };
        assert_eq!(serde_json::from_str::<Terms>(text).unwrap(), Terms { rule: None, floors });
    }

    #[test]
    fn a_policy_that_comes_with_a_version_does_not_let_it_in() {
        let first = Governed::next(None, &set("1"), &terms(2, 60));
        let both = Governed::next(first.as_ref(), &set("2"), &terms(1, 90)).unwrap();
        assert_eq!(both.terms(), &terms(2, 90), "the stricter of both, in each respect");
        // It stays so as long as nothing else changes.
        assert_eq!(Governed::next(Some(&both), &set("2"), &terms(1, 90)), Some(both.clone()));
        // The next version, and the next change of the policy by itself, are judged as it says.
        for (wanted, said) in [("3", terms(1, 90)), ("2", terms(1, 30))] {
            assert_eq!(Governed::next(Some(&both), &set(wanted), &said).unwrap().terms(), &said);
        }
        let none = Terms::default();
        let dropped = Governed::next(first.as_ref(), &set("2"), &none).unwrap();
        assert_eq!(dropped.terms(), &terms(2, 60));
        assert_eq!(Governed::next(first.as_ref(), &set("1"), &none), None);
        assert_eq!(Governed::next(None, &set("1"), &none), None, "where nothing is asked nothing is recorded");
    }
}
