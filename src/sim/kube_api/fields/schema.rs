//! How the objects of a kind are made of fields.

/// The fields of one kind.
#[derive(Debug)]
pub struct Schema {
    api_version: &'static str,
    kind: &'static str,
}

impl Schema {
    /// The schema of a kind, if it is known.
    #[must_use]
    pub fn of(_api_version: &str, _kind: &str) -> Option<&'static Self> {
        None
    }

    /// Group and version.
    #[must_use]
    pub fn api_version(&self) -> &'static str {
        self.api_version
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}
