//! What the policy asks of every plan of a tenant: floors that no rollout goes below.

use super::approval;
use crate::manifest::desired::{OnStableDown, PhasePlan, Plan, Set, TargetKind};
use crate::manifest::ids::{CheckName, Percent};
use crate::manifest::raw::{Floors, ImageName};
use crate::manifest::reference::images;
use crate::record::text::plain;
use std::collections::BTreeSet;

/// What of a plan, and of the version that it is for, is below the floors, each in words; empty if nothing is.
#[must_use]
pub fn below(plan: &Plan, set: Option<&Set>, floors: &Floors) -> Vec<String> {
    let Floors { approved_steps, first_exposure, checks, soak, images } = floors;
    let mut found = Vec::new();
    let gated = approval::steps(plan);
    if gated < *approved_steps as usize {
        found.push(format!(
            "{gated} of its steps wait for an approval, and the policy asks for {approved_steps}: add \
             before: {{approval: pullRequest}} to phases or to promotion"
        ));
    }
    // Where there is no target nothing is exposed, and nothing could be measured.
    if plan.target.kind == TargetKind::None {
        found.extend(tagged(plan, set, *images));
        return found;
    }
    if let Some(most) = first_exposure {
        let first = plan.phases.iter().find_map(|phase| Some((phase.name.as_str(), phase.expose.weight?)));
        let (name, weight) = first.unwrap_or(("promotion", Percent::ALL));
        let several = |phase: &&PhasePlan| phase.expose.units.is_some_and(|units| units > 1);
        if let Some(phase) = plan.phases.iter().take_while(|phase| phase.name.as_str() != name).find(several) {
            found.push(format!(
                "{} is the first to be of the new version in several units, of which nobody can tell what share they are, and the policy allows \
                 {most} % at first: one unit is the least there is",
                phase.name
            ));
        }
        if weight > *most {
            found.push(format!("{name} is the first to get a share of all requests, {weight} %, and the policy allows {most} % at first"));
        }
    }
    let reached: Vec<&PhasePlan> = plan.phases.iter().filter(|phase| reaches_users(phase)).collect();
    if reached.is_empty() && !(checks.is_empty() && soak.is_none()) {
        found.push("it has no phase that users reach, in which the policy's checks and soak could be kept".to_owned());
    }
    for phase in reached {
        let missing: Vec<&str> =
            checks.iter().filter(|name| !phase.checks.contains(name)).map(CheckName::as_str).collect();
        if !missing.is_empty() {
            found.push(format!(
                "phase {} lacks the checks {}, for which the policy asks",
                phase.name,
                missing.join(", ")
            ));
        }
        if let Some(least) = soak.filter(|least| phase.soak < *least) {
            found.push(format!("phase {} soaks {}, and the policy asks for {least}", phase.name, phase.soak));
        }
    }
    if let Some(least) = soak.filter(|_| plan.on_stable_down == OnStableDown::Promote) {
        found.push(format!("onStableDown: promote ends soaks early, and the policy asks for {least}: say wait"));
    }
    found.extend(tagged(plan, set, *images));
    found
}

/// Which images of a version, and of its Jobs, are not named as they have to be.
#[must_use]
pub fn tagged(plan: &Plan, set: Option<&Set>, asked: Option<ImageName>) -> Option<String> {
    asked.filter(|asked| *asked == ImageName::Digest)?;
    let objects = set.into_iter().flat_map(|set| set.objects.values()).map(|object| object.value());
    let tagged: BTreeSet<&str> = objects
        .chain(plan.jobs.values())
        .flat_map(images)
        .map(|(_, image)| image)
        .filter(|image| !is_by_digest(image))
        .collect();
    let shown: Vec<String> = tagged.iter().take(3).map(|image| plain(image)).collect();
    (!tagged.is_empty()).then(|| {
        let (count, shown) = (tagged.len(), shown.join(", "));
        format!(
            "{count} of its images are named by what can be pointed elsewhere ({shown}), and the policy asks for digests: \
             NAME@sha256:…"
        )
    })
}

/// Whether an image is named by its digest, be there a tag beside it.
fn is_by_digest(image: &str) -> bool {
    let digest = image.split_once("@sha256:").map_or("", |(_, digest)| digest);
    digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_digit() || matches!(digit, b'a'..=b'f'))
}

/// Whether the answers of the new version reach anybody.
fn reaches_users(phase: &PhasePlan) -> bool {
    !phase.expose.headers.is_empty() || phase.expose.weight.is_some() || phase.expose.units.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::fixture::plan;

    fn floors() -> Floors {
        let asked = serde_json::json!({"approvedSteps": 3, "firstExposure": 5, "checks": ["error-rate"], "soak": "1h"});
        serde_json::from_value(asked).unwrap()
    }

    #[test]
    fn nothing_is_below_no_floors() {
        assert_eq!(below(&plan(), None, &Floors::default()), Vec::<String>::new());
        assert_eq!(below(&Plan { phases: Vec::new(), ..plan() }, None, &Floors::default()), Vec::<String>::new());
    }

    #[test]
    fn all_that_is_below_is_told_at_once_with_what_was_found_and_expected() {
        insta::assert_snapshot!(below(&plan(), None, &floors()).join("\n"));
        let without = Plan { phases: Vec::new(), ..plan() };
        insta::assert_snapshot!("without_phases", below(&without, None, &floors()).join("\n"));
    }

    #[test]
    fn attack_91_only_a_digest_names_one_content() {
        let of_one = "a".repeat(64);
        for (image, fixed) in [
            (format!("example.test/web@sha256:{of_one}"), true),
            (format!("example.test/web:2@sha256:{of_one}"), true),
            ("example.test/web:2".to_owned(), false),
            ("web".to_owned(), false),
            ("web@sha256:aaaa".to_owned(), false),
            (format!("web@sha256:{}", "g".repeat(64)), false),
            (format!("web@sha512:{of_one}"), false),
            (format!("sha256:{of_one}"), false),
        ] {
            assert_eq!(is_by_digest(&image), fixed, "{image}");
        }
        // Of all containers, and of Jobs before steps too.
        let pods = |list: &str| serde_json::json!({"spec": {"template": {"spec": {list: [{"image": "a:1"}, {}]}}}});
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            let at = format!("/spec/template/spec/{list}/0/image");
            assert_eq!(images(&pods(list)).collect::<Vec<_>>(), [(at, "a:1")]);
        }
        let volumes = serde_json::json!([{"name": "a", "emptyDir": {}}, {"name": "b", "image": {"reference": "b:1"}}]);
        let volumes = serde_json::json!({"spec": {"template": {"spec": {"volumes": volumes}}}});
        let at = "/spec/template/spec/volumes/1/image/reference".to_owned();
        assert_eq!(images(&volumes).collect::<Vec<_>>(), [(at, "b:1")]);
        let jobs = [("migrate.yaml".parse().unwrap(), pods("containers"))].into();
        let floors = Floors { images: Some(ImageName::Digest), ..Floors::default() };
        let found = below(&Plan { jobs, ..plan() }, None, &floors).join("; ");
        assert!(found.starts_with("1 of its images") && found.contains("(a:1)"), "{found}");
    }
}
