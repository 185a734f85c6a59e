//! Flagger's names, or those of here: the layout `primary` where it goes together with the Canary, else `inPlace`.

use super::{Canary, Router};
use crate::draft::{Imported, Made};
use crate::fields::FieldOutcome;
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::{Layout, TargetKind};
use tidegate_controller::manifest::files::{Entry, Files};
use tidegate_controller::manifest::installation::Caps;
use tidegate_controller::manifest::{load, oid};

/// What is said of a provider whose router has no such layout.
const ROUTER: &str = "spec.traffic. With the router replicas the layout is inPlace: the pods of NAME-primary are not taken over \
                      (docs/layouts.md)";

impl Canary<'_> {
    /// The layout. `refused` is what was found to be in its way already.
    pub(super) fn layout(&mut self, refused: Option<&String>) -> Layout {
        if self.draft.kind != TargetKind::Deployment {
            return Layout::InPlace;
        }
        if self.router == Router::Replicas {
            self.of_provider(FieldOutcome::Differs, ROUTER);
            return Layout::InPlace;
        }
        if let Some(why) = refused {
            let text = format!("spec.target, with the layout inPlace: with primary {why} (docs/layouts.md)");
            self.notes.say(&self.spec("targetRef"), FieldOutcome::Differs, text);
            return Layout::InPlace;
        }
        Layout::Primary
    }
}

/// What is in the way of the layout `primary`, by the number of the Canary: what `tidegate validate` says of what was made, and would not
/// say of the other layout.
pub(super) fn refused(imported: &Imported) -> BTreeMap<usize, String> {
    let rollouts = imported.files.iter().filter_map(|made| made.path.strip_suffix("/rollout.yaml")).enumerate();
    rollouts.filter_map(|(n, directory)| Some((n, limit(imported, directory)?))).collect()
}

/// How a rollout's file says the layout.
const SAID: &str = "    layout: primary\n";

fn limit(imported: &Imported, directory: &str) -> Option<String> {
    let own = imported.files.iter().filter(|made| made.path.rsplit_once('/').is_some_and(|(at, _)| at == directory));
    let own: Vec<Made> = own.cloned().collect();
    let in_place = |made: &Made| Made { path: made.path.clone(), text: made.text.replacen(SAID, "", 1) };
    let other: Vec<Made> = own.iter().map(in_place).collect();
    let anyway = if own == other { return None } else { errors(&other, directory) };
    errors(&own, directory).into_iter().find(|error| !anyway.contains(error))
}

/// What is wrong with the files of one rollout.
fn errors(files: &[Made], directory: &str) -> Vec<String> {
    let namespace = directory.split('/').next().unwrap_or_default();
    let policy = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    import: {{path: \"{directory}\", namespaces: [\"{namespace}\"], \
         clusters: [home]}}\n"
    );
    let entry = |text: &str| Entry::File { blob: oid::blob(text.as_bytes()), bytes: text.as_bytes().into() };
    let files = files.iter().map(|made| (made.path.as_str(), made.text.as_str()));
    let files = files.chain([("tidegate.yaml", policy.as_str())]);
    let files: Files = files.filter_map(|(path, text)| Some((path.parse().ok()?, entry(text)))).collect();
    load::load(&files, &Caps::default()).errors().into_iter().map(|error| error.found.clone()).collect()
}
