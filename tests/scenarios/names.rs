//! Short names for what is long and means nothing to a reader: revisions, sets, run ids.

use std::collections::BTreeMap;
use tidegate::manifest::desired::{Layout, Target, TargetKind, Track};
use tidegate::manifest::files::{Entry, Files, RepoPath};
use tidegate::manifest::ids::SetId;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::load::load;
use tidegate::manifest::object::Kind;
use tidegate::manifest::{set, tracked};

/// As many digits as the shortest digest that is shown has.
const SHORTEST: usize = 8;

/// The target of the rollout that a path of the state branch is about.
fn target(path: &str) -> Target {
    let name = path.split('/').nth(2).unwrap().parse().unwrap();
    Target { kind: TargetKind::Deployment, name, layout: Layout::Primary, track: Track::default(), variant: None }
}

/// What is called how.
#[derive(Default)]
pub(crate) struct Names {
    /// The first digits of revisions.
    digests: BTreeMap<String, String>,
    sets: BTreeMap<SetId, String>,
    /// The letters of what versions take along.
    tracked: BTreeMap<String, char>,
    /// Texts that no reader shall see.
    hidden: Vec<(String, &'static str)>,
}

impl Names {
    /// Text that stands for something else.
    pub(crate) fn hide(&mut self, text: String, shown: &'static str) {
        self.hidden.push((text, shown));
    }

    /// Names what main shows now: `v2` by the tag of the image, `v2'` if another revision has that tag too.
    pub(crate) fn learn(&mut self, main: &Files) {
        for rollout in load(main, &Caps::unknown()).rollouts.into_values().filter_map(Result::ok) {
            let workloads = [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet];
            let target = rollout.set.objects.values().find(|o| workloads.contains(&o.reference().kind));
            let image =
                target.and_then(|o| o.at("/spec/template/spec/containers/0/image")?.as_str().map(str::to_owned));
            let layer = rollout.set.objects.values().find_map(|o| o.text("/spec/files/version"));
            let image = image.or_else(|| layer.map(str::to_owned)).unwrap_or_default();
            let id = &rollout.id.name;
            let of = if id.as_str() == "web" { String::new() } else { format!("{id} ") };
            let mut name = format!("{of}v{}", image.rsplit(':').next().unwrap_or_default());
            let digest = rollout.set.revision.short().to_owned();
            if self.digests.contains_key(&digest) {
                name.clone_from(&self.digests[&digest]);
            } else {
                while self.digests.values().any(|known| *known == name) {
                    name.push('\'');
                }
                self.digests.insert(digest, name.clone());
            }
            self.sets.entry(rollout.set.id.clone()).or_insert(name);
        }
    }

    /// Names the pinned sets that take live objects along: `v1+a`, and with other content `v1+b`.
    pub(crate) fn learn_tracked(&mut self, state: &Files) {
        let sets = state.keys().filter_map(|path| path.as_str().strip_suffix("/tidegate.tracked"));
        for dir in sets.collect::<Vec<_>>() {
            let dir: RepoPath = dir.parse().unwrap();
            let files = state.iter().filter_map(|(path, entry)| {
                let Entry::File { blob, bytes } = entry else { return None };
                Some((path.below(Some(&dir))?, (blob.clone(), bytes.clone())))
            });
            let (namespace, target) = ("shop".parse().unwrap(), target(dir.as_str()));
            let set = set::of_files(files.collect(), &namespace, &target).unwrap();
            if self.sets.contains_key(&set.id) {
                continue;
            }
            let number = self.tracked.len();
            let letter = *self.tracked.entry(tracked::print(&set.tracked)).or_insert(char::from(b'a' + number as u8));
            let name = format!("{}+{letter}", self.set(&set::of_main(&set)));
            self.digests.insert(set.revision.short().to_owned(), name.clone());
            self.sets.insert(set.id.clone(), name);
        }
    }

    /// The name of a set.
    pub(crate) fn set(&self, id: &SetId) -> String {
        self.sets.get(id).cloned().unwrap_or_else(|| "what was live".to_owned())
    }

    /// A path of the state branch: sets by their names, runs by their numbers.
    pub(crate) fn path(&self, path: &str) -> String {
        let named = |part: &str| {
            let set = self.sets.iter().find(|(id, _)| id.short() == part);
            set.map_or_else(|| part.to_owned(), |(_, name)| name.clone())
        };
        self.plain(&path.split('/').map(named).collect::<Vec<_>>().join("/"))
    }

    /// The text with names for digests, runs by number alone, and no namespace.
    pub(crate) fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (hidden, shown) in &self.hidden {
            text = text.replace(hidden, shown);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let digits = rest.find(|c: char| !matches!(c, '0'..='9' | 'a'..='f')).unwrap_or(rest.len());
            let inside = out.ends_with(|c: char| c.is_ascii_alphanumeric());
            if digits < SHORTEST || inside {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let digest = &rest[..digits];
            match self.digests.get(&digest[..SHORTEST]) {
                // The id of a run: its number says it all.
                _ if out.ends_with('-') && out[..out.len() - 1].ends_with(|c: char| c.is_ascii_digit()) => {
                    out.truncate(out.len() - 1);
                }
                Some(name) => out.push_str(name),
                None => out.push('…'),
            }
            rest = &rest[digits..];
        }
        out.replace("shop/", "")
    }
}
