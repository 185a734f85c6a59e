//! Asks the Git host whether the decisions branch is kept for those who may decide, while a run has a gate that an approval opens, or people
//! are asked to let objects go.

use super::Worker;
use crate::forge::host::HostError;
use crate::forge::settings::{ProtectedBranch, Settings};
use crate::gate::approval;
use crate::gate::guard::{Guard, open};
use crate::people::branch::Rules;
use crate::plan::input::MayStart;
use crate::reconcile::source::GitView;

/// Whether a run has a gate that an approval opens, or people are asked to let objects go, and the policy does not trust whoever may write.
pub(super) fn gated(view: &GitView) -> bool {
    view.records.states().any(|state| {
        let plan = view.records.get(&state.metadata).and_then(|record| record.plan.as_deref());
        let waits = state.deletions.asked.is_some() || state.run.is_some() && plan.is_some_and(approval::is_asked);
        let guarded = || view.main.policy(&state.source.path, MayStart::Yes).guard != Guard::Unasked;
        waits && guarded()
    })
}

/// What rules make of the branch; `words` say what they should be.
fn judged(rules: &Rules, words: &str) -> Guard {
    match open(rules) {
        Some(why) => Guard::Open {
            why: why.to_owned(),
            act: format!("set on the Git host: {words} (as a command: tidegate doctor)"),
        },
        None if rules.hidden => Guard::Hidden {
            act: format!(
                "set in a ruleset, of which everybody is told: {words} (as a command: tidegate init --host github); or name approvers in the \
                 policy"
            ),
        },
        None => Guard::Kept,
    }
}

impl Worker {
    /// Looks at the rules of the decisions branch. While the host is away what it said last holds.
    pub(super) async fn guard(&mut self) -> Result<(), HostError> {
        let host = &mut self.setting.host;
        let account = match host.login().await {
            Ok(account) => account,
            Err(error) => return self.untold(error),
        };
        let settings =
            Settings { instance: &self.setting.instance, main: &self.setting.main, account: &account, id: None };
        let guard = match host.rules(&settings.name(ProtectedBranch::Decisions)).await {
            // It is made with the first request.
            Ok(None) => Guard::Unknown,
            Ok(Some(rules)) => judged(&rules, &settings.words(ProtectedBranch::Decisions)),
            Err(error) => return self.untold(error),
        };
        self.say(guard);
        Ok(())
    }

    fn untold(&self, error: HostError) -> Result<(), HostError> {
        let refused = matches!(error, HostError::Refused { .. } | HostError::Unusable { .. });
        if refused || !matches!(*self.setting.guard.borrow(), Guard::Kept | Guard::Hidden { .. } | Guard::Open { .. }) {
            self.say(Guard::Untold(error.to_string()));
        }
        // What the host does not tell does not keep it from being told of requests.
        if refused { Ok(()) } else { Err(error) }
    }

    /// Lets plans know, if it is news.
    pub(super) fn say(&self, guard: Guard) {
        let is_news = self.setting.guard.send_if_modified(|known| {
            let is_news = *known != guard;
            known.clone_from(&guard);
            is_news
        });
        if is_news {
            match &guard {
                Guard::Open { why, act } => {
                    tracing::warn!(why, act, "the decisions branch is not protected: approval gates stay closed");
                }
                Guard::Untold(why) => tracing::warn!(why, "nobody knows whether the decisions branch is protected"),
                Guard::Hidden { act } => {
                    tracing::warn!(act, "nobody knows what the rule of the decisions branch asks for");
                }
                Guard::Unasked | Guard::Unknown | Guard::Kept => {}
            }
            self.setting.woken.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_which_nothing_is_told_is_no_protection() {
        let hidden = Rules { protected: true, hidden: true, ..Rules::default() };
        let Guard::Hidden { act } = judged(&hidden, "one approval") else { panic!("nobody knows what it asks for") };
        assert!(act.contains("ruleset") && act.contains("one approval") && act.contains("approvers"), "{act}");
        assert_eq!(judged(&Rules { hidden: false, ..hidden }, ""), Guard::Kept, "only those write whom it leaves out");
        assert!(matches!(judged(&Rules::default(), ""), Guard::Open { .. }));
    }
}
