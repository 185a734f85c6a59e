//! Faults on purpose, for the tests that kill the controller between any two side effects (requirement X-11). Without the
//! feature `faults` nothing of it is built in.
//!
//! `TIDEGATE_FAULT=abort-before:TEXT` or `abort-after:TEXT` aborts the process before or after the first side effect whose
//! name has that in it. A push of records is called like its commit, a write to the cluster by why it is done, a pull
//! request by its rollout. `record-last` does what the record allows before it is pushed, which breaks the promise, so that
//! tests can show that they would notice.

/// Does one side effect, which has a name.
#[cfg(not(feature = "faults"))]
pub async fn effect<T>(_: impl std::fmt::Display, what: impl Future<Output = T>) -> T {
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
    use std::fmt::Display;
    use std::sync::LazyLock;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Fault {
        None,
        AbortBefore(String),
        AbortAfter(String),
        RecordLast,
    }

    #[expect(clippy::disallowed_methods, reason = "a switch of test builds only")]
    static FAULT: LazyLock<Fault> = LazyLock::new(|| parse(&std::env::var("TIDEGATE_FAULT").unwrap_or_default()));

    fn parse(text: &str) -> Fault {
        match text.split_once(':') {
            None if text.is_empty() => Fault::None,
            None if text == "record-last" => Fault::RecordLast,
            Some(("abort-before", name)) => Fault::AbortBefore(name.to_owned()),
            Some(("abort-after", name)) => Fault::AbortAfter(name.to_owned()),
            _ => panic!("TIDEGATE_FAULT={text}: expected abort-before:TEXT, abort-after:TEXT or record-last"),
        }
    }

    /// Does one side effect, which has a name, unless the process is to end first.
    pub async fn effect<T>(name: impl Display, what: impl Future<Output = T>) -> T {
        let name = name.to_string();
        abort_if(matches!(&*FAULT, Fault::AbortBefore(at) if name.contains(at)), &name);
        let result = what.await;
        abort_if(matches!(&*FAULT, Fault::AbortAfter(at) if name.contains(at)), &name);
        result
    }

    fn abort_if(now: bool, name: &str) {
        if now {
            tracing::error!(name, "aborted on purpose at this side effect");
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
            assert_eq!(parse("abort-before:half → promote"), Fault::AbortBefore("half → promote".to_owned()));
            assert_eq!(parse("abort-after:Deployment shop/web:"), Fault::AbortAfter("Deployment shop/web:".to_owned()));
            assert_eq!(parse("record-last"), Fault::RecordLast);
            for bad in ["abort", "abort:x", "later"] {
                assert!(std::panic::catch_unwind(|| parse(bad)).is_err(), "{bad}");
            }
        }
    }
}
