//! What goes wrong on purpose on the way to a repository on this machine: one closure is asked before each errand. The world
//! in a process sets it; nothing else does.

use super::{GitError, RefName, Store};
use crate::manifest::ids::CommitId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// What is wanted of the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteCall {
    /// Where its branches are.
    LookUp,
    /// Objects.
    Fetch,
    /// That a branch moves.
    Push(RefName),
}

/// What becomes of an errand. What does not fit (a look-up that is rejected) passes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RemoteFault {
    /// Nothing goes wrong.
    #[default]
    Pass,
    /// The server is not reached.
    Away,
    /// It is done, but the answer is lost.
    Lost,
    /// It reaches the server that much later.
    Late(Duration),
    /// A look-up is answered as it was so many different answers ago, as by a mirror that lags.
    Lags(usize),
    /// A push is not allowed.
    Rejected,
}

/// Decides on the fate of each errand.
#[derive(Clone)]
pub struct FaultInjection {
    hook: Arc<dyn Fn(&RemoteCall) -> RemoteFault + Send + Sync>,
    /// What look-ups were answered, by their prefixes; each answer differs from the one before.
    answers: Arc<Mutex<BTreeMap<String, Vec<Tips>>>>,
}

type Tips = BTreeMap<RefName, CommitId>;

impl FaultInjection {
    /// Lets `hook` decide.
    #[must_use]
    pub fn new(hook: impl Fn(&RemoteCall) -> RemoteFault + Send + Sync + 'static) -> Self {
        Self { hook: Arc::new(hook), answers: Arc::default() }
    }

    fn answered(&self, prefixes: &[&str], tips: Tips, fate: &RemoteFault) -> Tips {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.entry(prefixes.join(" ")).or_default();
        if known.last() != Some(&tips) {
            known.push(tips.clone());
        }
        match fate {
            RemoteFault::Lags(n) => known.iter().rev().nth(*n).or(known.first()).cloned().unwrap_or(tips),
            RemoteFault::Pass
            | RemoteFault::Away
            | RemoteFault::Lost
            | RemoteFault::Late(_)
            | RemoteFault::Rejected => tips,
        }
    }
}

impl fmt::Debug for FaultInjection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultInjection")
    }
}

impl Store {
    /// What becomes of an errand, once it is on its way.
    pub(super) async fn fate(&self, errand: RemoteCall) -> Result<RemoteFault, GitError> {
        let Some(fault_injection) = &self.inner.config.fault_injection else { return Ok(RemoteFault::Pass) };
        match (fault_injection.hook)(&errand) {
            RemoteFault::Away => Err(away(&errand)),
            RemoteFault::Late(time) => {
                sleep(time).await;
                Ok(RemoteFault::Pass)
            }
            fate @ (RemoteFault::Pass | RemoteFault::Lost | RemoteFault::Lags(_) | RemoteFault::Rejected) => Ok(fate),
        }
    }

    /// What is heard of a look-up.
    pub(super) fn answered(&self, prefixes: &[&str], tips: Tips, fate: &RemoteFault) -> Result<Tips, GitError> {
        match &self.inner.config.fault_injection {
            Some(_) if *fate == RemoteFault::Lost => Err(away(&RemoteCall::LookUp)),
            Some(fault_injection) => Ok(fault_injection.answered(prefixes, tips, fate)),
            None => Ok(tips),
        }
    }
}

/// What is told where no answer comes.
pub(super) fn away(errand: &RemoteCall) -> GitError {
    let doing = match errand {
        RemoteCall::LookUp => "look up the refs".to_owned(),
        RemoteCall::Fetch => "fetch".to_owned(),
        RemoteCall::Push(branch) => format!("push {branch}"),
    };
    GitError::Away { doing, why: "no answer, on purpose".to_owned() }
}
