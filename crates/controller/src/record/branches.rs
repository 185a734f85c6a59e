//! The branches of an instance, by name, and what those of requests for a decision add.
//!
//! One branch for each request: for a rollout, a run and a step, so that a request is found before it is made, and
//! one for each run to be reverted.

use crate::manifest::decision::{self, Decision, DecisionAction};
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{InstanceName, RolloutId, RunId, SetId, StepName};
use crate::manifest::object::ObjectRef;
use std::collections::BTreeSet;
use std::fmt;

/// The branch that people decide on.
#[must_use]
pub fn decisions_branch(instance: &InstanceName) -> String {
    format!("tidegate/{instance}/decisions")
}

/// The branch that tidegate alone writes.
#[must_use]
pub fn state_branch(instance: &InstanceName) -> String {
    format!("tidegate/{instance}/state")
}

/// What all branches of requests begin with.
#[must_use]
pub fn propose_prefix(instance: &InstanceName) -> String {
    format!("tidegate/{instance}/propose/")
}

/// The branch of one request. Its name says all that it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// Which rollout.
    pub rollout: RolloutId,
    /// Which run.
    pub run: RunId,
    /// What is asked.
    pub asks: Asks,
}

/// What the branch of a request asks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asks {
    /// To let the run enter this step.
    Advance(StepName),
    /// To undo the run's change on main.
    Revert,
    /// To let objects go that are more than the policy lets go with one change.
    Delete,
}

/// How a revert request's branch ends; no phase may have this name.
const REVERT: &str = "revert";
/// How the branch ends that asks for a decision to delete; no phase may have this name.
const DELETE: &str = "delete";

/// The file that approves a step, as we ask for it after so many decisions for it that did not count: a file with the same content
/// would be the same decision.
///
/// # Panics
/// Never: names and ids make a short path.
#[must_use]
pub fn approval(rollout: &RolloutId, run: &RunId, through: &StepName, void: usize) -> (RepoPath, String) {
    let RolloutId { namespace, name } = rollout;
    let path = format!("{namespace}/{name}/{run}-{through}.yaml");
    let path = path.parse().expect("a short path of names, because names and ids are DNS labels and digits");
    let again = if void == 0 { String::new() } else { format!(", reason: \"asked again ({void})\"") };
    // Quoted, since a rollout may be called `on` or `123`.
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: \"{name}\", namespace: \"{namespace}\"}}\n\
         spec: {{run: \"{run}\", action: approve, through: \"{through}\"{again}}}\n",
    );
    (path, text)
}

/// The file that lets these objects go, as we ask for it after so many decisions to delete in this run.
#[must_use]
pub fn deletion(
    rollout: &RolloutId,
    run: &RunId,
    (objects, successor): (&BTreeSet<ObjectRef>, Option<&SetId>),
    before: usize,
) -> (RepoPath, String) {
    let action = DecisionAction::Delete { objects: objects.clone(), successor: successor.cloned() };
    let word = Decision { rollout: rollout.clone(), run: run.clone(), action, reason: None };
    let number = u32::try_from(before).ok().filter(|before| *before > 0).map(|before| before.saturating_add(1));
    decision::print(&word, number)
}

impl Head {
    /// The name of the branch.
    #[must_use]
    pub fn branch(&self, instance: &InstanceName) -> String {
        format!("{}{self}", propose_prefix(instance))
    }

    /// Reads the name of a branch; none if it is not one of this instance's requests.
    #[must_use]
    pub fn parse(instance: &InstanceName, branch: &str) -> Option<Self> {
        let (rollout, rest) = branch.strip_prefix(&propose_prefix(instance))?.rsplit_once('/')?;
        let (run, asks) = match rest.split_once('-')? {
            // The run before the first one, which has no steps.
            ("0", DELETE) => (RunId::zero(), Asks::Delete),
            // A run's id has one dash; a step may have more.
            (number, rest) => {
                let (digest, step) = rest.split_once('-')?;
                let asks = match step {
                    REVERT => Asks::Revert,
                    DELETE => Asks::Delete,
                    step => Asks::Advance(step.parse().ok()?),
                };
                (format!("{number}-{digest}").parse().ok()?, asks)
            }
        };
        Some(Self { rollout: rollout.parse().ok()?, run, asks })
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = match &self.asks {
            Asks::Advance(step) => step.as_str(),
            Asks::Revert => REVERT,
            Asks::Delete => DELETE,
        };
        write!(f, "{}/{}-{step}", self.rollout, self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::run;
    use super::*;
    use std::str::FromStr;

    #[test]
    fn x_3_a_branch_name_says_all_that_it_is_about() {
        let instance: InstanceName = "prod".parse().unwrap();
        let asks = [
            Asks::Advance("tenth".parse().unwrap()),
            Asks::Advance("eu-west-1".parse().unwrap()),
            Asks::Revert,
            Asks::Delete,
        ];
        let heads = asks.map(|asks| Head { rollout: "shop/podinfo".parse().unwrap(), run: run(7), asks });
        let names = heads.each_ref().map(|head| head.branch(&instance));
        assert_eq!(names[0], "tidegate/prod/propose/shop/podinfo/7-07070707-tenth");
        assert_eq!(names[2], "tidegate/prod/propose/shop/podinfo/7-07070707-revert");
        assert_eq!(names[3], "tidegate/prod/propose/shop/podinfo/7-07070707-delete");
        let zero = Head { run: RunId::zero(), ..heads[3].clone() };
        assert_eq!(Head::parse(&instance, &zero.branch(&instance)), Some(zero));
        for (head, name) in heads.iter().zip(&names) {
            assert_eq!(Head::parse(&instance, name).as_ref(), Some(head));
            assert_eq!(Head::parse(&"test".parse().unwrap(), name), None);
        }
        assert!(StepName::RESERVED.contains(&REVERT) && StepName::RESERVED.contains(&DELETE));
        for name in [
            "main",
            "tidegate/prod/state",
            "tidegate/prod/propose/shop/podinfo",
            "tidegate/prod/propose/shop/podinfo/7-07070707",
            "tidegate/prod/propose/shop/podinfo/0-tenth",
            "tidegate/prod/propose/shop/podinfo/7-xyz-tenth",
            "tidegate/prod/propose/shop/podinfo/more/7-07070707-tenth",
            "tidegate/prod/propose/shop/podinfo/7-07070707-Tenth",
        ] {
            assert_eq!(Head::parse(&instance, name), None, "{name}");
        }
    }

    /// What a name has at most, whatever limits it: the longest text of that form that is one.
    fn longest<T: FromStr>(form: impl Fn(usize) -> String) -> T {
        (1..=300).rev().find_map(|length| form(length).parse().ok()).expect("some length is one")
    }

    /// Hosts keep a ref in 255 bytes. A file system has as many for each part of it, with `.lock` behind it while Git writes it.
    #[test]
    fn the_longest_names_make_a_branch_that_git_and_every_host_can_hold() {
        let letters = |length| "a".repeat(length);
        let rollout = RolloutId { namespace: longest(letters), name: longest(letters) };
        let run = longest(|length| format!("{}-07070707", "9".repeat(length)));
        let head = Head { rollout, run, asks: Asks::Advance(longest(letters)) };
        let branch = head.branch(&longest(letters));
        assert_eq!(branch.len(), 224, "{branch}");
        assert!("refs/heads/".len() + branch.len() <= 255);
        assert!(branch.split('/').all(|part| part.len() + ".lock".len() <= 255), "{branch}");
        assert_eq!(Head::parse(&longest(letters), &branch), Some(head));
    }
}
