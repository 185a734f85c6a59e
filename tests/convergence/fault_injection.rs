//! Lets the faults of a list happen, each at its request, event or errand.

use crate::convergence::faults::{Class, Fault, Mishap, On, Slip, To, Trouble};
use crate::convergence::host::{Host, STATE};
use git2::Oid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::git::{RemoteCall, RemoteFault};
use tidegate::record::state::Time;
use tidegate::world::kube_api::{self, ApiVerb, FaultVerdict, SeenRequest, What};

/// More requests than any world needs: something is busy for nothing.
const BUSY: u64 = 200_000;

/// The faults, and how far their counts are.
pub(crate) struct FaultInjection {
    faults: Vec<Fault>,
    host: Mutex<Host>,
    at: Time,
    counts: Mutex<Counts>,
    /// The version of the last change.
    pub(crate) version: AtomicU64,
}

#[derive(Default)]
struct Counts {
    requests: BTreeMap<Class, u64>,
    events: u64,
    errands: BTreeMap<To, u64>,
    all: u64,
    begun: bool,
    raced: u64,
    /// What others have committed to the state branch.
    others: Vec<Oid>,
    /// Where the state branch was before it was put back.
    rewound: Option<Oid>,
    /// Controllers that were killed.
    dead: BTreeSet<String>,
    /// Those whose end nobody has seen to yet, and when they come back.
    fallen: Vec<(String, u64)>,
    /// What can be neither listed nor watched.
    closed: Option<&'static str>,
    /// For how many seconds something is on its way.
    late: u64,
}

impl FaultInjection {
    pub(crate) fn new(faults: &[Fault], repository: &Path, at: Time) -> Self {
        let host = Mutex::new(Host::open(repository));
        Self { faults: faults.to_vec(), host, at, counts: Mutex::default(), version: AtomicU64::new(0) }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults count from here.
    pub(crate) fn begin(&self) {
        self.counts().begun = true;
    }

    /// Nothing goes wrong any more.
    pub(crate) fn clear(&self) {
        self.counts().begun = false;
    }

    /// From now on this can be neither listed nor watched.
    pub(crate) fn close(&self, kind: &'static str) {
        self.counts().closed = Some(kind);
    }

    /// All can be read again.
    pub(crate) fn open(&self) {
        self.counts().closed = None;
    }

    /// Ends a controller, which is back after a second.
    pub(crate) fn restart(&self, name: &str) {
        self.counts().fall(name, 1);
    }

    /// Controllers that were killed since the last call, and after how many seconds they are back.
    pub(crate) fn fallen(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.counts().fallen)
    }

    /// Whether that is a write that others see.
    pub(crate) fn is_write(seen: &SeenRequest<'_>) -> bool {
        match seen.what {
            What::Request { verb, dry_run } => class_of(seen.resource.plural, verb, dry_run) == Some(Class::Write),
            What::Event(_) => false,
        }
    }

    pub(crate) fn is_dead(&self, caller: &str) -> bool {
        self.counts().dead.contains(caller)
    }

    pub(crate) fn judge(&self, seen: &SeenRequest<'_>) -> FaultVerdict {
        let mut counts = self.counts();
        counts.all += 1;
        assert!(counts.all < BUSY, "the world is busy for nothing");
        if counts.dead.contains(seen.caller) {
            return FaultVerdict::Before(kube_api::Fault::Silence);
        }
        if !counts.begun || seen.caller.is_empty() {
            return FaultVerdict::Pass;
        }
        match seen.what {
            What::Event(_) => {
                counts.events += 1;
                let number = counts.events;
                let slip = self.faults.iter().find_map(|fault| match fault {
                    Fault::Event { nth, what } if *nth == number => Some(*what),
                    _ => None,
                });
                if let Some(Slip::Late(seconds)) = slip {
                    counts.late = counts.late.max(seconds);
                }
                slip.map(Slip::verdict).unwrap_or_default()
            }
            What::Request { verb, dry_run } => {
                let class = class_of(seen.resource.plural, verb, dry_run);
                let Some(class) = class else { return FaultVerdict::Pass };
                let is_list = matches!(verb, ApiVerb::List | ApiVerb::Watch);
                if is_list && counts.closed == Some(seen.resource.plural) && seen.namespace == "shop" {
                    return FaultVerdict::Before(kube_api::Fault::Forbidden);
                }
                let number = counts.requests.entry(class).or_default();
                *number += 1;
                let number = *number;
                if class == Class::Write
                    && let Some(after) = counts.kill(&self.faults, On::Write, number, seen.caller)
                {
                    let silence = kube_api::Fault::Silence;
                    return if after { FaultVerdict::After(silence) } else { FaultVerdict::Before(silence) };
                }
                let fails_over = |fault: &Fault| matches!(fault, Fault::FailOver { nth } if *nth == number);
                if class == Class::Write && self.faults.iter().any(fails_over) {
                    counts.fall(seen.caller, 1);
                    counts.rewound = self.fail_over();
                    return FaultVerdict::After(kube_api::Fault::Silence);
                }
                let version = self.version.load(Ordering::Relaxed);
                let trouble = self.faults.iter().find_map(|fault| match fault {
                    Fault::Request { class: of, nth, times, what }
                        if *of == class && (*nth..nth + times).contains(&number) =>
                    {
                        Some(*what)
                    }
                    _ => None,
                });
                if let Some(Trouble::Late(seconds)) = trouble {
                    counts.late = counts.late.max(seconds);
                }
                trouble.map(|trouble| trouble.verdict(version)).unwrap_or_default()
            }
        }
    }

    pub(crate) fn judge_git(&self, caller: &str, errand: &RemoteCall) -> RemoteFault {
        let mut counts = self.counts();
        if counts.dead.contains(caller) {
            return RemoteFault::Late(Duration::from_secs(86_400));
        }
        if !counts.begun {
            return RemoteFault::Pass;
        }
        let to = match errand {
            RemoteCall::LookUp => To::LookUp,
            RemoteCall::Fetch => To::Fetch,
            RemoteCall::Push(_) => To::Push,
        };
        let number = counts.errands.entry(to).or_default();
        *number += 1;
        let number = *number;
        if to == To::Push {
            if let Some(after) = counts.kill(&self.faults, On::Push, number, caller) {
                return if after { RemoteFault::Lost } else { RemoteFault::Late(Duration::from_secs(86_400)) };
            }
            if self.faults.contains(&Fault::Raced { nth: number }) {
                counts.raced += 1;
                let other = self.race(counts.raced);
                counts.others.push(other);
            }
        }
        let mishap = self.faults.iter().find_map(|fault| match fault {
            Fault::Git { to: of, nth, times, what } if *of == to && (*nth..nth + times).contains(&number) => {
                Some(*what)
            }
            _ => None,
        });
        if let Some(Mishap::Late(seconds)) = mishap {
            counts.late = counts.late.max(seconds);
        }
        mishap.map(Mishap::fault).unwrap_or_default()
    }

    /// Somebody commits a file to the state branch that is none of the record.
    fn race(&self, number: u64) -> Oid {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let files = [("NOTES.md".to_owned(), format!("note {number}\n"))];
        host.commit(STATE, &files, "a note", self.at);
        host.tip(STATE).unwrap()
    }

    /// What others have committed to the state branch.
    pub(crate) fn others(&self) -> Vec<Oid> {
        self.counts().others.clone()
    }

    /// For how many seconds something is on its way that was sent since the last call.
    pub(crate) fn late(&self) -> u64 {
        std::mem::take(&mut self.counts().late)
    }

    /// Where the state branch was before it was put back, once.
    pub(crate) fn rewound(&self) -> Option<Oid> {
        self.counts().rewound.take()
    }

    /// Another Git server takes over, which has not heard of the last commit.
    fn fail_over(&self) -> Option<Oid> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let tip = host.tip(STATE)?;
        host.put(STATE, host.parent(tip)?);
        Some(tip)
    }
}

impl Counts {
    /// Whether whoever asks is killed at this, and whether after it took effect.
    fn kill(&mut self, faults: &[Fault], at: On, number: u64, caller: &str) -> Option<bool> {
        let (after, back) = faults.iter().find_map(|fault| match fault {
            Fault::Kill { on, nth, after, back } if *on == at && *nth == number => Some((*after, *back)),
            _ => None,
        })?;
        self.fall(caller, back);
        Some(after)
    }

    fn fall(&mut self, caller: &str, back: u64) {
        self.dead.insert(caller.to_owned());
        self.fallen.push((caller.to_owned(), back));
    }
}

fn class_of(plural: &str, verb: ApiVerb, dry_run: bool) -> Option<Class> {
    let writes = matches!(verb, ApiVerb::Create | ApiVerb::Update | ApiVerb::Patch | ApiVerb::Delete) && !dry_run;
    match (plural, writes) {
        ("events", _) => None,
        ("leases", _) => Some(Class::Lease),
        (_, true) => Some(Class::Write),
        (_, false) => Some(Class::Read),
    }
}
