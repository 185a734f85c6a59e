//! Rollouts that go below what the policy asks of their tenant: they stay as they are, and their next version would not start.

use crate::gate::floor;
use crate::manifest::desired::Rollout;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::{Entry, Files};
use crate::manifest::load::Loaded;
use crate::manifest::raw::Floors;
use crate::manifest::yaml::{self, Dialect};

/// All that is below the floors, each at its rollout's phases.
pub(super) fn below(files: &Files, loaded: &Loaded) -> Vec<Diagnostic> {
    let Ok(policy) = &loaded.policy else { return Vec::new() };
    let rollouts = loaded.rollouts.values().flatten();
    let asked = rollouts.filter_map(|rollout| Some((rollout, &policy.tenant_of(&rollout.path)?.1.floors)));
    asked.flat_map(|(rollout, floors)| of(files, rollout, floors)).collect()
}

fn of(files: &Files, rollout: &Rollout, floors: &Floors) -> Vec<Diagnostic> {
    let found = floor::below(&rollout.plan, Some(&rollout.set), floors);
    let Some(Entry::File { bytes, .. }) = files.get(&rollout.path).filter(|_| !found.is_empty()) else {
        return Vec::new();
    };
    let parsed = yaml::parse(&rollout.path, bytes, Dialect::Own);
    let mark = parsed.documents.first().map(|root| root.locate("/spec/phases")).unwrap_or_default();
    let told = |what| {
        parsed.source.at(mark, Code::PolicyFloor, what, "what the floors of its tenant ask for in tidegate.yaml")
    };
    found.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Colour, Output, validate};

    #[test]
    fn a_plan_below_a_floor_is_a_warning_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
        for path in ["tidegate.yaml", "teams/shop/podinfo/podinfo.yaml", "teams/shop/podinfo/rollout.yaml"] {
            let to = dir.path().join(path);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let text = std::fs::read_to_string(example.join(path)).unwrap();
            let text =
                text.replace("path: teams/shop\n", "path: teams/shop\n      floors: {firstExposure: 1, soak: 3h}\n");
            std::fs::write(to, text).unwrap();
        }
        let report = validate(dir.path(), Output::Text, Colour::Never);
        insta::assert_snapshot!(report.text);
        assert_eq!(report.code, 0, "it stops nothing that is there");
    }
}
