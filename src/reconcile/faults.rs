//! Faults on purpose, for the tests that kill the controller between any two side effects (requirement X-11). Without the
//! feature `faults` nothing of it is built in.
//!
//! `TIDEGATE_FAULT=abort-before:N` or `abort-after:N` aborts the process before or after its N-th side effect, counted
//! from 1: each write to the cluster and each push. `record-last` does what the record allows before it is pushed, which
//! breaks the promise, so that tests can show that they would notice.

/// Does one side effect.
#[cfg(not(feature = "faults"))]
pub async fn effect<T>(what: impl Future<Output = T>) -> T {
    what.await
}

/// Whether the record is pushed after what it allows.
#[cfg(not(feature = "faults"))]
#[must_use]
pub fn record_last() -> bool {
    false
}

#[cfg(feature = "faults")]
pub use on::{effect, record_last};

#[cfg(feature = "faults")]
mod on {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fault {
        None,
        AbortBefore(u64),
        AbortAfter(u64),
        RecordLast,
    }

    static EFFECTS: AtomicU64 = AtomicU64::new(0);
    #[expect(clippy::disallowed_methods, reason = "a switch of test builds only")]
    static FAULT: LazyLock<Fault> = LazyLock::new(|| parse(&std::env::var("TIDEGATE_FAULT").unwrap_or_default()));

    fn parse(text: &str) -> Fault {
        let number = |n: &str| n.parse().unwrap_or_else(|_| panic!("TIDEGATE_FAULT={text}: a number after the colon"));
        match text.split_once(':') {
            None if text.is_empty() => Fault::None,
            None if text == "record-last" => Fault::RecordLast,
            Some(("abort-before", n)) => Fault::AbortBefore(number(n)),
            Some(("abort-after", n)) => Fault::AbortAfter(number(n)),
            _ => panic!("TIDEGATE_FAULT={text}: expected abort-before:N, abort-after:N or record-last"),
        }
    }

    /// Does one side effect, unless the process is to end first.
    pub async fn effect<T>(what: impl Future<Output = T>) -> T {
        let number = EFFECTS.fetch_add(1, Ordering::SeqCst) + 1;
        abort_if(*FAULT == Fault::AbortBefore(number), number);
        let result = what.await;
        abort_if(*FAULT == Fault::AbortAfter(number), number);
        result
    }

    fn abort_if(now: bool, number: u64) {
        if now {
            tracing::error!(number, "aborted on purpose at this side effect");
            std::process::abort();
        }
    }

    /// Whether the record is pushed after what it allows.
    #[must_use]
    pub fn record_last() -> bool {
        *FAULT == Fault::RecordLast
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn faults_are_read_from_one_word() {
            assert_eq!(parse(""), Fault::None);
            assert_eq!(parse("abort-before:3"), Fault::AbortBefore(3));
            assert_eq!(parse("abort-after:12"), Fault::AbortAfter(12));
            assert_eq!(parse("record-last"), Fault::RecordLast);
            for bad in ["abort", "abort-before:x", "later"] {
                assert!(std::panic::catch_unwind(|| parse(bad)).is_err(), "{bad}");
            }
        }
    }
}
