//! Names and ids: one newtype each, so that no two can be mixed up.
//!
//! Parsing is the only way in for text that came from a repository; the inner string is never empty and is safe to
//! show, to use in a path and to use in a Git ref.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is not a valid name or id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a valid {what}: {rule}")]
pub struct InvalidId {
    /// What was to be named, in words: "rollout name".
    pub what: &'static str,
    /// The text found, cut to 80 characters.
    pub found: String,
    /// The rule that it breaks, in words.
    pub rule: &'static str,
}

/// A DNS label of RFC 1123: the rule of Kubernetes for most names.
fn dns_label(text: &str, max: usize) -> bool {
    let alnum = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= max
        && bytes.iter().all(|&c| alnum(c) || c == b'-')
        && bytes.first().is_some_and(|&c| alnum(c))
        && bytes.last().is_some_and(|&c| alnum(c))
}

/// A DNS subdomain of RFC 1123: labels joined by dots, 253 characters at most.
fn dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|label| dns_label(label, 63))
}

fn hex(text: &str, len: usize) -> bool {
    text.len() == len && text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

/// The name of a kind of id in `format` of our JSON Schemas; [`super::schema`] checks it by parsing.
fn format_of(what: &str) -> String {
    what.replace(' ', "-")
}

/// The rules again, lengths left out, as patterns for editors: what parses matches.
const LABEL: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";
const SUBDOMAIN: &str = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$";
const OBJECT_ID: &str = "^[0-9a-f]{40}$";

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $pattern:expr, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String", extend(
            "format" = format_of($what), "pattern" = $pattern, "patternErrorMessage" = $rule
        ))]
        pub struct $name(String);

        impl $name {
            /// The text of it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidId { what: $what, found: text.chars().take(80).collect(), rule: $rule })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// A Kubernetes namespace.
    Namespace, "namespace", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// The name of a rollout within its namespace. 52 characters at most, so that names made from it fit.
    RolloutName, "rollout name", "lower-case letters, digits and '-', at most 52 characters", LABEL, |t| dns_label(t, 52)
);
id!(
    /// The name of a Kubernetes object.
    ObjectName, "object name", "a DNS subdomain: lower-case letters, digits, '-' and '.', at most 253 characters", SUBDOMAIN, dns_subdomain
);
id!(
    /// The name of a tidegate instance: part of branch names, of the Lease and of the owner mark.
    InstanceName, "instance name", "lower-case letters, digits and '-', at most 30 characters", LABEL, |t| dns_label(t, 30)
);
id!(
    /// The name of a cluster, as the installation calls it.
    ClusterName, "cluster name", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// The name of a tenant of the policy.
    TenantName, "tenant name", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// The name of a window or a freeze of the policy.
    ScheduleName, "schedule name", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// The name of a wave of a fleet.
    WaveName, "wave name", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// The name of a step: a phase of the manifest, or one of [`StepName::RESERVED`].
    StepName, "step name", "lower-case letters, digits and '-', at most 40 characters", LABEL, |t| dns_label(t, StepName::LONGEST)
);
id!(
    /// The name of a check of a rollout.
    CheckName, "check name", "lower-case letters, digits and '-', at most 40 characters", LABEL, |t| dns_label(t, 40)
);
id!(
    /// The name of a provider of metrics, as the installation calls it.
    ProviderName, "provider name", "lower-case letters, digits and '-', at most 63 characters", LABEL, |t| dns_label(t, 63)
);
id!(
    /// A Git commit, 40 hex digits.
    CommitId, "commit id", "40 hex digits", OBJECT_ID, |t| hex(t, 40)
);
id!(
    /// A Git blob, 40 hex digits.
    BlobId, "blob id", "40 hex digits", OBJECT_ID, |t| hex(t, 40)
);
id!(
    /// A set of manifests by content: the id of its Git tree, 40 hex digits.
    SetId, "set id", "40 hex digits", OBJECT_ID, |t| hex(t, 40)
);
id!(
    /// What makes a version, in canonical form: `v1:sha256:` and 64 hex digits. Tags are never compared with each other.
    Revision, "revision", "v1:sha256: and 64 hex digits", "^v1:sha256:[0-9a-f]{64}$", |t| t.strip_prefix("v1:sha256:").is_some_and(|h| hex(h, 64))
);
id!(
    /// The digest of a target's pod template and all that it references; the value of the label `tidegate.io/pods`.
    PodsDigest, "pods digest", "16 hex digits", "^[0-9a-f]{16}$", |t| hex(t, 16)
);
id!(
    /// A run of a rollout: its number, a dash and 8 hex digits of what it was made from. `0` is the run before the first.
    RunId, "run id", "a number, '-' and 8 hex digits, or 0", "^(0|[0-9]{1,9}-[0-9a-f]{8})$", |t| t == "0" || t.split_once('-').is_some_and(|(n, h)| {
        !n.is_empty() && n.len() <= 9 && n.bytes().all(|c| c.is_ascii_digit()) && hex(h, 8)
    })
);

id!(
    /// A host that people call, or with `*.` before it all hosts below it.
    Hostname,
    "host name",
    "a DNS name in lower case, at most 253 characters; with *. before it all names below it",
    "^([*][.])?[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
    |t| t.len() <= 253 && dns_subdomain(t.strip_prefix("*.").unwrap_or(t))
);

impl Hostname {
    /// Whether a host, or all that a wildcard stands for, is meant by this one.
    #[must_use]
    pub fn covers(&self, host: &str) -> bool {
        match self.0.strip_prefix('*') {
            Some(below) => host.len() > below.len() && host.ends_with(below),
            None => self.0 == host,
        }
    }
}

impl StepName {
    /// The most characters of a name.
    pub const LONGEST: usize = 40;

    /// Names of steps that every procedure has; phases may not use them.
    pub const RESERVED: [&'static str; 10] =
        ["prepare", "shift", "promote", "promotion", "return", "retire", "restore", "split", "revert", "delete"];

    /// One of [`Self::RESERVED`] as a name.
    ///
    /// # Panics
    /// Never for a literal that is a DNS label.
    #[must_use]
    pub fn fixed(name: &'static str) -> Self {
        Self(name.to_owned())
    }
}

impl RunId {
    /// The run that a rollout has before its first.
    #[must_use]
    pub fn zero() -> Self {
        Self("0".to_owned())
    }
}

impl SetId {
    /// The 12 hex digits that name the set's directory on the state branch.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl Revision {
    /// The first 8 hex digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        let digits = self.0.rsplit(':').next().unwrap_or(&self.0);
        &digits[..8]
    }
}

impl CommitId {
    /// What stands for a commit that is not known: no commit has this id.
    #[must_use]
    pub fn none() -> Self {
        Self("0".repeat(40))
    }
}

impl InstanceName {
    /// What stands for it in a cluster: its field manager, its Lease and its roles have this name.
    #[must_use]
    pub fn in_cluster(&self) -> String {
        format!("tidegate-{self}")
    }

    /// The owner mark of a rollout's objects.
    #[must_use]
    pub fn owner_of(&self, rollout: &RolloutId) -> String {
        format!("{self}/{rollout}")
    }
}

/// A rollout's identity, for as long as it exists: namespace and name, wherever its file lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct RolloutId {
    /// The namespace that its objects live in.
    pub namespace: Namespace,
    /// Its name there.
    pub name: RolloutName,
}

impl fmt::Display for RolloutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for RolloutId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let (namespace, name) = text.split_once('/').ok_or_else(|| InvalidId {
            what: "rollout",
            found: text.chars().take(80).collect(),
            rule: "NAMESPACE/NAME",
        })?;
        Ok(Self { namespace: namespace.parse()?, name: name.parse()? })
    }
}

/// A share of requests in percent, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(with = "u8", extend("maximum" = 100))]
pub struct Percent(u8);

impl Percent {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// A fifth.
    pub const FIFTH: Self = Self(20);
    /// All.
    pub const ALL: Self = Self(100);

    /// Whether it is nothing.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// The number, 0 to 100.
    #[must_use]
    pub fn get(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for Percent {
    type Error = InvalidId;

    fn try_from(value: u8) -> Result<Self, InvalidId> {
        if value <= 100 {
            Ok(Self(value))
        } else {
            Err(InvalidId { what: "weight", found: value.to_string(), rule: "an integer from 0 to 100" })
        }
    }
}

impl From<Percent> for u8 {
    fn from(percent: Percent) -> u8 {
        percent.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
