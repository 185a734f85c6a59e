//! Asks the Git host whether the decisions branch is kept for those who may decide, while a run has a gate that an approval opens.

use super::Clerk;
use crate::forge::host::HostError;
use crate::forge::settings::{Branch, Settings};
use crate::gate::approval;
use crate::gate::guard::Guard;
use crate::plan::input::MayStart;
use crate::reconcile::source::View;

/// Whether a run has a gate that an approval opens, and the policy does not trust whoever may write.
pub(super) fn gated(view: &View) -> bool {
    view.records.states().filter(|state| state.run.is_some()).any(|state| {
        let plan = view.records.get(&state.metadata).and_then(|record| record.plan.as_deref());
        let guarded = || view.main.policy(&state.source.path, MayStart::Yes).guard != Guard::Unasked;
        plan.is_some_and(approval::is_asked) && guarded()
    })
}

impl Clerk {
    /// Looks at the rules of the decisions branch. While the host is away what it said last holds.
    pub(super) async fn guard(&mut self) -> Result<(), HostError> {
        let host = &mut self.setting.host;
        let account = match host.login().await {
            Ok(account) => account,
            Err(error) => return self.untold(error),
        };
        let settings =
            Settings { instance: &self.setting.instance, main: &self.setting.main, account: &account, id: None };
        let guard = match host.rules(&settings.name(Branch::Decisions)).await {
            // It is made with the first request.
            Ok(None) => Guard::Unknown,
            Ok(Some(rules)) => rules.open().map_or(Guard::Kept, |why| {
                let words = settings.words(Branch::Decisions);
                Guard::Open {
                    why: why.to_owned(),
                    act: format!("set on the Git host: {words} (as a command: tidegate doctor)"),
                }
            }),
            Err(error) => return self.untold(error),
        };
        self.say(guard);
        Ok(())
    }

    fn untold(&self, error: HostError) -> Result<(), HostError> {
        let refused = matches!(error, HostError::Refused { .. } | HostError::Unusable { .. });
        if refused || !matches!(*self.setting.guard.borrow(), Guard::Kept | Guard::Open { .. }) {
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
                Guard::Unasked | Guard::Unknown | Guard::Kept => {}
            }
            self.setting.woken.notify_one();
        }
    }
}
