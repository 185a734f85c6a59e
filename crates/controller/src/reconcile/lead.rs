//! Who leads: the Lease is kept by a task of its own, so that nothing that a tick waits for can lose it.

use super::clock::Clock;
use crate::cluster::lease::{ElectionTurn, Inherited, Lease, LeaseAnnotations, LeaseHeld, Timing};
use crate::rules::{Rule, holds};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What is known of the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStatus {
    /// Nothing yet, and why.
    Unknown(String),
    /// Another process leads.
    Standby(Option<String>),
    /// We lead.
    Leading(LeaseHeld),
}

/// The Lease, as the loop sees it.
#[derive(Debug, Clone)]
pub struct Lead {
    status: watch::Receiver<LeaseStatus>,
    clock: Clock,
}

impl Lead {
    /// The proof that this process leads now, if it does.
    #[must_use]
    pub fn held(&self) -> Option<LeaseHeld> {
        match &*self.status.borrow() {
            LeaseStatus::Leading(held) if held.still(self.clock.boot()) => Some(held.clone()),
            LeaseStatus::Leading(_) | LeaseStatus::Standby(_) | LeaseStatus::Unknown(_) => None,
        }
    }

    /// Whether what was begun under `held` may go on: the same term, not expired by now.
    #[must_use]
    pub fn still(&self, held: &LeaseHeld) -> bool {
        !holds(Rule::Lease) || self.held().is_some_and(|now| now.epoch() == held.epoch())
    }

    /// What is known.
    #[must_use]
    pub fn status(&self) -> LeaseStatus {
        self.status.borrow().clone()
    }

    /// Waits for news. Pending for ever once nobody keeps the Lease any more.
    pub async fn changed(&mut self) {
        if self.status.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Keeps the Lease.
pub struct Renewer {
    lease: Lease,
    timing: Timing,
    clock: Clock,
    notes: watch::Receiver<LeaseAnnotations>,
    status: watch::Sender<LeaseStatus>,
    begun: tokio::sync::mpsc::UnboundedSender<Inherited>,
}

impl Renewer {
    /// What renews it, what it tells, and what each new term finds.
    #[must_use]
    pub fn new(
        lease: Lease,
        timing: Timing,
        clock: Clock,
        notes: watch::Receiver<LeaseAnnotations>,
    ) -> (Self, Lead, tokio::sync::mpsc::UnboundedReceiver<Inherited>) {
        let (status, seen) = watch::channel(LeaseStatus::Unknown("the Lease was not read yet".to_owned()));
        let (begun, terms) = tokio::sync::mpsc::unbounded_channel();
        let lead = Lead { status: seen, clock: clock.clone() };
        (Self { lease, timing, clock, notes, status, begun }, lead, terms)
    }

    /// Keeps it until told to stop; gives it back then.
    pub async fn keep(mut self, stop: CancellationToken) {
        loop {
            let pause = self.turn().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep(pause) => {}
            }
        }
        let wall = self.clock.now();
        self.lease.release(wall).await;
    }

    /// One turn; returns how long after it the next is due. Contenders count on while this machine is suspended, and so does this clock.
    async fn turn(&mut self) -> Duration {
        let notes = self.notes.borrow().clone();
        let now = self.clock.boot();
        let turn = self.lease.turn(&notes, now, self.clock.now()).await;
        let (mut next, mut began) = (now + self.timing.renew, false);
        let status = match turn {
            ElectionTurn::Leading { held, inherited } => {
                if let Some(found) = inherited {
                    tracing::info!(epoch = held.epoch(), "leads");
                    began = true;
                    // Told before the standing, so that no term begins without what it inherits. Nobody listens to it only
                    // when the process ends.
                    self.begun.send(found).ok();
                }
                LeaseStatus::Leading(held)
            }
            ElectionTurn::Standby { holder, free_at } => {
                next = next.min(free_at);
                LeaseStatus::Standby(holder)
            }
            ElectionTurn::Unknown { why } => {
                next = now + self.timing.renew / 5;
                match self.status.borrow().clone() {
                    // What we hold stays true until it expires by itself.
                    LeaseStatus::Leading(held) if held.still(now) => LeaseStatus::Leading(held),
                    LeaseStatus::Leading(_) | LeaseStatus::Unknown(_) | LeaseStatus::Standby(_) => {
                        LeaseStatus::Unknown(why)
                    }
                }
            }
        };
        self.status.send_if_modified(|known| {
            let news = began || news(known, &status);
            if let (true, LeaseStatus::Unknown(why)) = (news, &status) {
                tracing::warn!(why, "nobody knows who leads: nothing is done");
            }
            *known = status;
            news
        });
        next.saturating_duration_since(self.clock.boot())
    }
}

/// Whether it is worth waking anybody: a renewal is not.
fn news(before: &LeaseStatus, after: &LeaseStatus) -> bool {
    match (before, after) {
        (LeaseStatus::Leading(before), LeaseStatus::Leading(after)) => before.epoch() != after.epoch(),
        (before, after) => before != after,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::leading;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn x_12_a_machine_that_was_suspended_does_not_lead_until_it_has_the_lease_again() {
        let (clock, hand) = Clock::default().another();
        let mut lead = leading(&clock).await;
        let held = lead.held().unwrap();
        hand.suspend(5);
        assert!(lead.held().is_some() && lead.still(&held));
        // Others have seen nothing of us for longer than the Lease holds, and this process has not aged.
        hand.suspend(60);
        assert_eq!(lead.held(), None);
        assert!(!lead.still(&held));
        while lead.held().is_none() {
            lead.changed().await;
        }
    }
}
