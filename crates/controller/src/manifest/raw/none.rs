//! The target as files spell it: a mapping, or the word `none`.

use crate::manifest::desired::{Layout, TargetKind, Track};
use crate::manifest::ids::ObjectName;
use crate::manifest::variant::Variant;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Both spellings. The schema has said by then what else is wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Target {
    Word(Word),
    Named {
        kind: TargetKind,
        name: ObjectName,
        #[serde(default)]
        layout: Layout,
        #[serde(default)]
        track: Track,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        variant: Option<Variant>,
    },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Word {
    #[serde(rename = "none")]
    None,
}

impl From<Target> for super::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::Word(Word::None) => {
                let name = "none".parse().expect("the name of an object");
                Self { kind: TargetKind::None, name, layout: Layout::InPlace, track: Track::default(), variant: None }
            }
            Target::Named { kind, name, layout, track, variant } => Self { kind, name, layout, track, variant },
        }
    }
}

impl From<super::Target> for Target {
    fn from(super::Target { kind, name, layout, track, variant }: super::Target) -> Self {
        if kind == TargetKind::None {
            return Self::Word(Word::None);
        }
        Self::Named { kind, name, layout, track, variant }
    }
}

impl Serialize for super::Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Target::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for super::Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Target::deserialize(deserializer).map(Self::from)
    }
}

/// Whether a text is the word.
///
/// # Errors
/// It is another one.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let expected = "none, or a mapping with kind and name";
    if text == "none" { Ok(()) } else { Err(format!("{text:?} is not a target: {expected}")) }
}
