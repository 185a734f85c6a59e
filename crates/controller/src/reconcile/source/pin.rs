//! Whether what lies at the repository's URL is still the repository that the Installation means. Who renames or deletes one sets
//! its name free, and who takes the name can show main, the record and decisions as they please, with their whole past.

use super::Poll;
use crate::forge::host::Host;

/// The number of the repository that is meant, and the Git host that tells which one lies there.
pub struct Pin {
    number: u64,
    host: Host,
}

impl Pin {
    /// With a host of its own, so that what others ask there disturbs nobody.
    #[must_use]
    pub fn new(number: u64, host: Host) -> Self {
        Self { number, host }
    }

    /// Asks which repository lies there now.
    ///
    /// *Guarantees*: after `Ok` what was seen at the URL before this call is that of the repository that is meant, but for a name
    /// that somebody took and gave back meanwhile.
    ///
    /// # Errors
    /// What a look-up comes to that must not be believed. That a host does not tell is no yes.
    pub(super) async fn hold(&mut self) -> Result<(), Poll> {
        match self.host.repository().await {
            Ok(found) if found == self.number => Ok(()),
            Ok(found) => Err(Poll::WrongRepository(format!(
                "the repository there has the number {found} on its Git host, and the Installation means number {}: that one was \
                 renamed, moved or deleted, and another has its name. Nothing of it is read, and nothing is pushed to it",
                self.number
            ))),
            Err(error) => Err(Poll::Unreachable(format!("it is not known which repository lies there: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests;
