//! How much all watches keep together: whatever has grown the most gives way, and nobody else.

use crate::manifest::ids::Namespace;
use crate::manifest::object::Kind;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most memory that is taken for all objects that are watched, in bytes.
pub(super) const TOTAL: usize = 256 << 20;

/// The objects of a kind in a namespace.
pub(super) type Kept = (Namespace, Kind);

/// What all watches keep.
pub(super) struct Total {
    most: usize,
    kept: Mutex<Sizes>,
}

#[derive(Default)]
struct Sizes {
    of: BTreeMap<Kept, Size>,
    sum: usize,
}

#[derive(Default)]
struct Size {
    now: usize,
    /// When it was listed first; none before that.
    first: Option<usize>,
    /// Told that it has to give way.
    out: Arc<Notify>,
}

impl Total {
    /// At most so many bytes.
    pub(super) fn of(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        // A size is set as a whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By what it is told that it has to give way.
    pub(super) fn enter(&self, kept: &Kept) -> Arc<Notify> {
        Arc::clone(&self.sizes().of.entry(kept.clone()).or_default().out)
    }

    /// Takes note of how much is kept of something, and whether it may stay: where all together is too much, it is what has grown the most since
    /// it was listed first that gives way, and while some was not listed yet, what is largest.
    pub(super) fn keep(&self, kept: &Kept, size: usize) -> bool {
        let Sizes { of, sum } = &mut *self.sizes();
        let before = std::mem::replace(&mut of.entry(kept.clone()).or_default().now, size);
        *sum = *sum - before + size;
        let mut stays = true;
        while *sum > self.most {
            let is_new = of.values().any(|size| size.first.is_none());
            let base = |size: &Size| size.first.filter(|_| !is_new).unwrap_or(0);
            let grown = |size: &Size| (size.now.saturating_sub(base(size)), size.now);
            let Some((most, size)) = of.iter_mut().max_by_key(|(_, size)| grown(size)) else { break };
            *sum -= std::mem::take(&mut size.now);
            if most == kept {
                stays = false;
            } else {
                size.out.notify_one();
            }
        }
        stays
    }

    /// Takes note that it was listed, or cannot be.
    pub(super) fn listed(&self, kept: &Kept) {
        if let Some(size) = self.sizes().of.get_mut(kept) {
            size.first.get_or_insert(size.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn attack_117_what_has_grown_the_most_gives_way() {
        let total = Total::of(100);
        let of = |namespace: &str, kind| (namespace.parse().unwrap(), kind);
        let (large, small) = (of("shop", Kind::Pod), of("shop", Kind::ConfigMap));
        let (other, late) = (of("blog", Kind::ConfigMap), of("blog", Kind::Service));
        let told = |kept: &Kept| total.enter(kept).notified().now_or_never().is_some();
        for (kept, size) in [(&large, 50), (&small, 10), (&other, 10)] {
            total.enter(kept);
            assert!(total.keep(kept, size));
        }
        // While not all was listed nobody has grown yet.
        assert!(!total.keep(&other, 60), "the largest");
        assert!(total.keep(&other, 10));
        [&large, &small, &other].into_iter().for_each(|kept| total.listed(kept));
        assert!(total.keep(&small, 40), "as much as there is");
        assert!(total.keep(&other, 12) && told(&small) && !told(&large), "the largest one is as it was");
        assert!(!total.keep(&small, 40), "it does not come back before there is room");
        assert!(!told(&other) && total.keep(&small, 38));
        // What comes later has grown from nothing.
        total.enter(&late);
        total.listed(&late);
        assert!(!total.keep(&late, 80) && ![&large, &small, &other].map(told).contains(&true));
    }
}
