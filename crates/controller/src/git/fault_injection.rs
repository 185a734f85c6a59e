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
pub enum Errand {
    /// Where its branches are.
    LookUp,
    /// Objects.
    Fetch,
    /// That a branch moves.
    Push(RefName),
}

/// What becomes of an errand. What does not fit (a look-up that is rejected) passes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Fate {
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
    hook: Arc<dyn Fn(&Errand) -> Fate + Send + Sync>,
    /// What look-ups were answered, by their prefixes; each answer differs from the one before.
    answers: Arc<Mutex<BTreeMap<String, Vec<Tips>>>>,
}

type Tips = BTreeMap<RefName, CommitId>;

impl FaultInjection {
    /// Lets `hook` decide.
    #[must_use]
    pub fn new(hook: impl Fn(&Errand) -> Fate + Send + Sync + 'static) -> Self {
        Self { hook: Arc::new(hook), answers: Arc::default() }
    }

    fn answered(&self, prefixes: &[&str], tips: Tips, fate: &Fate) -> Tips {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers.entry(prefixes.join(" ")).or_default();
        if known.last() != Some(&tips) {
            known.push(tips.clone());
        }
        match fate {
            Fate::Lags(n) => known.iter().rev().nth(*n).or(known.first()).cloned().unwrap_or(tips),
            Fate::Pass | Fate::Away | Fate::Lost | Fate::Late(_) | Fate::Rejected => tips,
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
    pub(super) async fn fate(&self, errand: Errand) -> Result<Fate, GitError> {
        let Some(fault_injection) = &self.inner.config.fault_injection else { return Ok(Fate::Pass) };
        match (fault_injection.hook)(&errand) {
            Fate::Away => Err(away(&errand)),
            Fate::Late(time) => {
                sleep(time).await;
                Ok(Fate::Pass)
            }
            fate @ (Fate::Pass | Fate::Lost | Fate::Lags(_) | Fate::Rejected) => Ok(fate),
        }
    }

    /// What is heard of a look-up.
    pub(super) fn heard(&self, prefixes: &[&str], tips: Tips, fate: &Fate) -> Result<Tips, GitError> {
        match &self.inner.config.fault_injection {
            Some(_) if *fate == Fate::Lost => Err(away(&Errand::LookUp)),
            Some(fault_injection) => Ok(fault_injection.answered(prefixes, tips, fate)),
            None => Ok(tips),
        }
    }
}

/// What is told where no answer comes.
pub(super) fn away(errand: &Errand) -> GitError {
    let doing = match errand {
        Errand::LookUp => "look up the refs".to_owned(),
        Errand::Fetch => "fetch".to_owned(),
        Errand::Push(branch) => format!("push {branch}"),
    };
    GitError::Away { doing, why: "no answer, on purpose".to_owned() }
}
