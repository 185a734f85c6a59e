//! Manifests of Flagger and Argo Rollouts.

use crate::fuzz::budget::{Fate, tried, within};
use crate::fuzz::change::Text;
use tidegate::import::{Imported, Tool, converted};
use tidegate::manifest::files::RepoPath;
use tidegate::manifest::yaml::{self, Dialect};
use tidegate::record::text::plain;

fn path(text: &str) -> RepoPath {
    text.parse().expect("a path")
}

/// What was made is YAML below one directory for each rollout, and what is told can be shown.
fn well_made(imported: &Imported, bytes: &[u8]) {
    let Imported { files, expected, refused, providers: _, fields } = imported;
    let mut paths = std::collections::BTreeSet::new();
    for made in files {
        assert!(made.path.parse::<RepoPath>().is_ok() && made.path.split('/').count() == 3, "{}", made.path);
        assert!(paths.insert(&made.path), "{} twice", made.path);
        // A rollout's file is written by us; what stands beside it may be too large for one, as no manifest is.
        if made.path.ends_with("/rollout.yaml") {
            let parsed = yaml::parse(&path(&made.path), made.text.as_bytes(), Dialect::Own);
            assert!(
                parsed.diagnostics.is_empty() && parsed.documents.len() == 1,
                "{:?}\n{}",
                parsed.diagnostics,
                made.text
            );
        }
    }
    let lines = String::from_utf8_lossy(bytes).split('\n').count();
    for told in fields {
        assert!((1..=lines).contains(&told.line) && told.column >= 1, "{told:?}: the file has {lines} lines");
        assert!(plain(&told.text) == told.text && plain(&told.object) == told.object, "{told:?}");
    }
    assert!(expected.iter().all(|expected| plain(&expected.object) == expected.object));
    assert!(refused.iter().all(|refused| plain(&refused.why) == refused.why));
}

fn is_imported(tool: Tool, name: &'static str, seeds: Vec<String>) {
    tried(name, 1_000, move |text: &Text| {
        let bytes = text.bytes(&seeds);
        let files = [(path("in.yaml"), bytes)];
        let result = within(files[0].1.len(), || converted(tool, &files, "shop", None));
        if let Ok(imported) = &result {
            well_made(imported, &files[0].1);
        }
        Fate::of(result.is_ok())
    });
}

#[test]
fn what_flagger_reads_is_imported_or_refused() {
    let seeds = [
        include_str!("../../crates/import/src/examples/flagger-canary.yaml"),
        include_str!("../../crates/import/src/examples/flagger-blue-green.yaml"),
        include_str!("../../crates/import/src/examples/flagger-ab.yaml"),
        include_str!("../../crates/import/src/examples/flagger-every-field.yaml"),
        include_str!("../../crates/import/src/examples/flagger-live.yaml"),
        include_str!("../../crates/import/src/examples/flagger-service.yaml"),
    ];
    is_imported(Tool::Flagger, "flagger", seeds.map(str::to_owned).to_vec());
}

#[test]
fn what_argo_rollouts_reads_is_imported_or_refused() {
    let seeds = [
        include_str!("../../crates/import/src/examples/argo-canary.yaml"),
        include_str!("../../crates/import/src/examples/argo-by-pods.yaml"),
        include_str!("../../crates/import/src/examples/argo-blue-green.yaml"),
        include_str!("../../crates/import/src/examples/argo-every-field.yaml"),
        include_str!("../../crates/import/src/examples/argo-live.yaml"),
    ];
    is_imported(Tool::Argo, "argo", seeds.map(str::to_owned).to_vec());
}
