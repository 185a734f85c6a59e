//! What goes wrong, as data: a list that can be made shorter, and read.

use crate::convergence::dice::Dice;
use crate::convergence::story::Story;
use chrono::TimeDelta;
use std::fmt;
use std::time::Duration;
use tidegate::git::RemoteFault;
use tidegate::world::kube_api;
use tidegate::world::kube_api::FaultVerdict;

/// One thing that goes wrong. Requests, events and errands are counted over all controllers, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// To the `nth` request of a class, and those after it.
    Request { class: Class, nth: u64, times: u64, what: Trouble },
    /// To the `nth` event of a watch.
    Event { nth: u64, what: Slip },
    /// To the `nth` errand to Git, and those after it.
    Git { to: To, nth: u64, times: u64, what: Mishap },
    /// Somebody else commits to the state branch just before the `nth` push.
    Raced { nth: u64 },
    /// Whoever makes the `nth` write is killed before or after it took effect, and is back after so many seconds.
    Kill { on: On, nth: u64, after: bool, back: u64 },
    /// Whoever makes the `nth` write is killed after it took effect, and the Git server with it: another one takes over, which
    /// learns of the last commit only 30 s later.
    FailOver { nth: u64 },
    /// At that second nothing runs for so long, and then goes on as if nothing had been.
    Jump { at: u64, by: u64 },
    /// At that second the clock of the controller that leads is set forward, or back, by so many seconds.
    Clock { at: u64, by: i64 },
    /// At that second the clock of the controller that leads is a year ahead, for a minute.
    Ahead { at: u64 },
    /// At that second all watches break.
    Break { at: u64 },
    /// At that second the API server forgets its history.
    Compact { at: u64 },
    /// At that second a hand deletes the Lease.
    LeaseDeleted { at: u64 },
    /// At that second a hand gives the Lease to somebody who does not renew it.
    LeaseTaken { at: u64 },
    /// At that second the state branch is put back by a commit, and put right so many seconds later.
    Rewritten { at: u64, mended: u64 },
    /// At that second all controllers are started again, and can neither list nor watch a kind for so many seconds.
    Closed { kind: &'static str, at: u64, lasts: u64 },
    /// The definition of ServiceMonitors is deleted, with all of them, and made again.
    Undefined { at: u64, lasts: u64 },
}

/// Which requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Writes that others see.
    Write,
    /// Reads, watches and dry runs.
    Read,
    /// Those about the Lease.
    Lease,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Before(kube_api::Fault),
    After(kube_api::Fault),
    /// It arrives so many seconds late.
    Late(u64),
    /// It is answered as the world was so many versions ago.
    Stale(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slip {
    Double,
    Late(u64),
    /// Lost, with the connection.
    Cut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    LookUp,
    Fetch,
    Push,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    Away,
    Lost,
    Late(u64),
    /// An answer of so many answers ago.
    Lags(usize),
    Rejected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum On {
    Write,
    Push,
}

const ANSWERS: [kube_api::Fault; 7] = [
    kube_api::Fault::Conflict,
    kube_api::Fault::TooManyRequests,
    kube_api::Fault::Internal,
    kube_api::Fault::Unavailable,
    kube_api::Fault::Timeout,
    kube_api::Fault::Silence,
    kube_api::Fault::Reset,
];

/// The faults of a world.
pub(crate) fn faults(seed: u64, story: &Story) -> Vec<Fault> {
    let mut dice = Dice::new(seed ^ 0xfa_17);
    let count = dice.pick(&[1, 2, 3, 4, 6, 9]);
    let faults = (0..count).map(|_| Fault::new(&mut dice, story));
    // By dice of their own: all other faults stay as they are.
    let faults = faults.chain(closed(&mut Dice::new(seed ^ 0xc1_05ed), story));
    let faults = faults.chain(ahead(&mut Dice::new(seed ^ 0xa4_ead), story));
    faults.chain(undefined(&mut Dice::new(seed ^ 0xde_f1e5), story)).collect()
}

fn ahead(dice: &mut Dice, story: &Story) -> Option<Fault> {
    let at = dice.between(5, 60 + 120 * story.chapters());
    dice.chance(4).then_some(Fault::Ahead { at })
}

fn undefined(dice: &mut Dice, story: &Story) -> Option<Fault> {
    let (at, lasts) = (dice.between(5, 60 + 120 * story.chapters()), dice.pick(&[20, 90, 400]));
    let beside = story.rollouts.iter().any(|part| part.shape.beside);
    (beside && dice.chance(40)).then_some(Fault::Undefined { at, lasts })
}

fn closed(dice: &mut Dice, story: &Story) -> Option<Fault> {
    let kind = dice.pick(&["pods", "endpointslices", "configmaps"]);
    let (at, lasts) = (dice.between(5, 60 + 120 * story.chapters()), dice.pick(&[20, 90, 400]));
    dice.chance(15).then_some(Fault::Closed { kind, at, lasts })
}

impl Fault {
    fn new(dice: &mut Dice, story: &Story) -> Self {
        let chapters = story.chapters();
        let second = |dice: &mut Dice| dice.between(5, 60 + 120 * chapters);
        // Of several rollouts those that were not in the last commit would go on from there.
        if story.rollouts.len() == 1 && dice.chance(4) {
            return Self::FailOver { nth: dice.between(1, 25 * chapters) };
        }
        match dice.below(20) {
            0..=3 => Self::Request {
                class: Class::Write,
                nth: dice.between(1, 25 * chapters),
                times: dice.pick(&[1, 1, 1, 3]),
                what: Trouble::write(dice),
            },
            4 | 5 => Self::Request {
                class: Class::Read,
                nth: dice.rising(200),
                times: dice.pick(&[1, 1, 5, 20]),
                what: Trouble::read(dice),
            },
            6 | 7 => Self::Request {
                class: Class::Lease,
                nth: dice.rising(60 * chapters),
                times: dice.pick(&[1, 3, 8, 12]),
                what: Trouble::write(dice),
            },
            8 | 9 => Self::Event { nth: dice.rising(600), what: Slip::new(dice) },
            10 => Self::Git {
                to: To::LookUp,
                nth: dice.rising(100 * chapters),
                times: dice.pick(&[1, 4, 15, 40]),
                what: Mishap::look(dice),
            },
            11 => Self::Git {
                to: To::Fetch,
                nth: dice.rising(20 * chapters),
                times: dice.pick(&[1, 3]),
                what: Mishap::fetch(dice),
            },
            12 | 13 => Self::Git {
                to: To::Push,
                nth: dice.between(1, 10 * chapters),
                times: dice.pick(&[1, 1, 3]),
                what: Mishap::push(dice),
            },
            14 => Self::Raced { nth: dice.between(1, 10 * chapters) },
            15 | 16 => Self::Kill {
                on: dice.pick(&[On::Write, On::Write, On::Push]),
                nth: dice.between(1, 15 * chapters),
                after: dice.chance(50),
                back: dice.pick(&[1, 20, 90]),
            },
            17 if dice.chance(50) => Self::Clock { at: second(dice), by: dice.pick(&[-20, 10, 30, 90, 90, 4_000]) },
            17 => Self::Jump { at: second(dice), by: dice.pick(&[8, 30, 120]) },
            _ => {
                let at = second(dice);
                let rewritten = Self::Rewritten { at, mended: dice.pick(&[10, 30]) };
                let (deleted, taken) = (Self::LeaseDeleted { at }, Self::LeaseTaken { at });
                dice.pick(&[Self::Break { at }, Self::Compact { at }, deleted, taken, taken, rewritten])
            }
        }
    }

    /// When it happens, if it does at a certain second.
    pub(crate) fn second(&self) -> Option<u64> {
        match self {
            Self::Jump { at, .. }
            | Self::Clock { at, .. }
            | Self::Ahead { at }
            | Self::Break { at }
            | Self::Compact { at }
            | Self::LeaseDeleted { at }
            | Self::LeaseTaken { at }
            | Self::Rewritten { at, .. }
            | Self::Undefined { at, .. }
            | Self::Closed { at, .. } => Some(*at),
            Self::Request { .. }
            | Self::Event { .. }
            | Self::Git { .. }
            | Self::Raced { .. }
            | Self::Kill { .. }
            | Self::FailOver { .. } => None,
        }
    }
}

impl Trouble {
    fn write(dice: &mut Dice) -> Self {
        match (dice.below(5), dice.pick(&ANSWERS)) {
            (0, _) => Self::Late(dice.pick(&[1, 6, 14, 25, 60])),
            // What conflicts, or is one too many, has no effect.
            (1 | 2, fault) => Self::Before(fault),
            (_, fault @ (kube_api::Fault::Conflict | kube_api::Fault::TooManyRequests)) => Self::Before(fault),
            (_, fault) => Self::After(fault),
        }
    }

    fn read(dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::Stale(dice.rising(40)),
            1 => Self::Before(kube_api::Fault::Expired),
            2 => Self::Late(dice.pick(&[1, 5, 9])),
            _ => Self::Before(dice.pick(&ANSWERS)),
        }
    }

    pub(crate) fn verdict(self, version: u64) -> FaultVerdict {
        match self {
            Self::Before(fault) => FaultVerdict::Before(fault),
            Self::After(fault) => FaultVerdict::After(fault),
            Self::Late(seconds) => FaultVerdict::Late(TimeDelta::seconds(i64::try_from(seconds).unwrap())),
            Self::Stale(by) => FaultVerdict::Stale(version.saturating_sub(by).max(1)),
        }
    }
}

impl Slip {
    fn new(dice: &mut Dice) -> Self {
        match dice.below(3) {
            0 => Self::Double,
            1 => Self::Late(dice.pick(&[1, 3, 10, 20])),
            _ => Self::Cut,
        }
    }

    pub(crate) fn verdict(self) -> FaultVerdict {
        match self {
            Self::Double => FaultVerdict::Double,
            Self::Late(seconds) => FaultVerdict::Delay(TimeDelta::seconds(i64::try_from(seconds).unwrap())),
            Self::Cut => FaultVerdict::Cut,
        }
    }
}

impl Mishap {
    fn look(dice: &mut Dice) -> Self {
        match dice.below(4) {
            0 => Self::Lags(usize::try_from(dice.between(1, 3)).unwrap()),
            1 => Self::Late(dice.pick(&[1, 5, 20])),
            _ => Self::Away,
        }
    }

    fn fetch(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Away, Self::Lost, Self::Late(7)])
    }

    fn push(dice: &mut Dice) -> Self {
        let late = Self::Late(dice.pick(&[1, 12, 30, 60]));
        dice.pick(&[Self::Away, Self::Lost, Self::Lost, late, late, Self::Rejected])
    }

    pub(crate) fn fault(self) -> RemoteFault {
        match self {
            Self::Away => RemoteFault::Away,
            Self::Lost => RemoteFault::Lost,
            Self::Late(seconds) => RemoteFault::Late(Duration::from_secs(seconds)),
            Self::Lags(by) => RemoteFault::Lags(by),
            Self::Rejected => RemoteFault::Rejected,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |times: &u64| if *times == 1 { String::new() } else { format!(" and the {} after it", times - 1) };
        match self {
            Self::Request { class, nth, times, what } => {
                let class = match class {
                    Class::Write => "write",
                    Class::Read => "read",
                    Class::Lease => "request about the Lease",
                };
                write!(f, "{class} {nth}{}: {what}", many(times))
            }
            Self::Event { nth, what } => match what {
                Slip::Double => write!(f, "event {nth}: arrives twice"),
                Slip::Late(seconds) => write!(f, "event {nth}: arrives {seconds} s late"),
                Slip::Cut => write!(f, "event {nth}: is lost with its connection"),
            },
            Self::Git { to, nth, times, what } => {
                let to = match to {
                    To::LookUp => "look-up",
                    To::Fetch => "fetch",
                    To::Push => "push",
                };
                write!(f, "{to} {nth}{}: {what}", many(times))
            }
            Self::Raced { nth } => write!(f, "push {nth}: somebody else pushes to the state branch just before"),
            Self::Kill { on, nth, after, back } => {
                let on = if *on == On::Write { "write" } else { "push" };
                let when = if *after { "after" } else { "before" };
                write!(f, "{on} {nth}: its controller is killed just {when} it, and back after {back} s")
            }
            Self::FailOver { nth } => {
                write!(
                    f,
                    "write {nth}: its controller is killed just after it; Git is as it was before the last push, for 30 s"
                )
            }
            Self::Jump { at, by } => write!(f, "second {at}: nothing runs for {by} s"),
            Self::Clock { at, by } if *by < 0 => write!(f, "second {at}: the leader's clock is set back by {} s", -by),
            Self::Clock { at, by } => write!(f, "second {at}: the leader's clock is set forward by {by} s"),
            Self::Ahead { at } => write!(f, "second {at}: the leader's clock is a year ahead, for a minute"),
            Self::Break { at } => write!(f, "second {at}: all watches break"),
            Self::Compact { at } => write!(f, "second {at}: the API server forgets its history"),
            Self::LeaseDeleted { at } => write!(f, "second {at}: a hand deletes the Lease"),
            Self::LeaseTaken { at } => write!(f, "second {at}: a hand gives the Lease to somebody else"),
            Self::Rewritten { at, mended } => {
                write!(f, "second {at}: the state branch is put back by a commit, and put right {mended} s later")
            }
            Self::Undefined { at, lasts } => {
                write!(f, "second {at}: ServiceMonitors are not served for {lasts} s, and those that were are gone")
            }
            Self::Closed { kind, at, lasts } => {
                write!(f, "second {at}: all start again, and {kind} cannot be read for {lasts} s")
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(fault) => write!(f, "fails ({fault:?})"),
            Self::After(fault) => write!(f, "is done, but the answer says {fault:?}"),
            Self::Late(seconds) => write!(f, "arrives {seconds} s late"),
            Self::Stale(by) => write!(f, "is answered as the world was {by} versions ago"),
        }
    }
}

impl fmt::Display for Mishap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away => f.write_str("Git is away"),
            Self::Lost => f.write_str("is done, but the answer is lost"),
            Self::Late(seconds) => write!(f, "arrives {seconds} s late"),
            Self::Lags(by) => write!(f, "is answered as it was {by} moves ago"),
            Self::Rejected => f.write_str("is rejected"),
        }
    }
}
