//! Imports as people see them, and files that are read and written.

#[path = "../../../crates/import/src/tests/examples.rs"]
mod examples;

use super::*;
use examples::*;

fn bytes(files: &[(&str, &str)]) -> Vec<(RepoPath, Vec<u8>)> {
    files.iter().map(|(path, text)| (path.parse().unwrap(), text.as_bytes().to_vec())).collect()
}

fn imported(tool: Tool, files: &[(&str, &str)]) -> Imported {
    converted(tool, &bytes(files), "default", None).unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

/// What people see: the files, then what became of the fields.
fn seen(tool: Tool, files: &[(&str, &str)]) -> String {
    let imported = imported(tool, files);
    format!("{}\n{}", manifests(&imported.files), report(&imported, Ink::Plain))
}

#[test]
fn flagger_as_people_see_it() {
    insta::assert_snapshot!("flagger_canary", seen(Tool::Flagger, CANARY));
    insta::assert_snapshot!("flagger_blue_green", seen(Tool::Flagger, BLUE_GREEN));
    insta::assert_snapshot!("flagger_ab", seen(Tool::Flagger, AB));
    insta::assert_snapshot!("flagger_primary", seen(Tool::Flagger, COPIES));
    insta::assert_snapshot!("flagger_nginx", seen(Tool::Flagger, INGRESS));
    insta::assert_snapshot!("flagger_traefik", seen(Tool::Flagger, TRAEFIK));
    insta::assert_snapshot!("flagger_service", seen(Tool::Flagger, ALIAS));
    insta::assert_snapshot!("flagger_daemonset", seen(Tool::Flagger, DAEMONS));
    insta::assert_snapshot!("flagger_skipped", seen(Tool::Flagger, SKIPPED));
    insta::assert_snapshot!("flagger_live", seen(Tool::Flagger, MANAGED));
}

#[test]
fn argo_as_people_see_it() {
    insta::assert_snapshot!("argo_canary", seen(Tool::Argo, STEPS));
    insta::assert_snapshot!("argo_istio", seen(Tool::Argo, MESH));
    insta::assert_snapshot!("argo_traefik", seen(Tool::Argo, WEIGHTED));
    insta::assert_snapshot!("argo_by_pods", seen(Tool::Argo, BY_PODS));
    insta::assert_snapshot!("argo_blue_green", seen(Tool::Argo, PREVIEW));
    insta::assert_snapshot!("argo_live", seen(Tool::Argo, MANAGED_BY_ARGO));
}

#[test]
fn what_cannot_be_imported_at_all_is_told_with_its_line() {
    let wrong = |tool, text: &str| {
        let wrong = converted(tool, &bytes(&[("a.yaml", text)]), "default", None).unwrap_err();
        mistakes(&wrong, Ink::Plain)
    };
    let all = [
        wrong(Tool::Flagger, "kind: Canary\nspec: [\n"),
        wrong(Tool::Flagger, "apiVersion: flagger.app/v1beta1\nkind: Canary\nmetadata: {}\n"),
        wrong(Tool::Argo, "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let files = imported(Tool::Flagger, CANARY).files;
    write(dir.path(), &files).unwrap();
    let written = fs::read_to_string(dir.path().join("shop/podinfo/rollout.yaml")).unwrap();
    assert_eq!(written, files[0].text);
    fs::remove_file(dir.path().join("shop/podinfo/rollout.yaml")).unwrap();
    let failure = write(dir.path(), &files).unwrap_err().text();
    assert!(failure.ends_with("podinfo.yaml is there already; nothing was written"), "{failure}");
    assert!(!dir.path().join("shop/podinfo/rollout.yaml").exists());
}

#[test]
fn paths_are_shown_as_near_as_can_be() {
    for (path, expected) in
        [("a/b.yaml", "a/b.yaml"), ("./../a.yaml", "a.yaml"), ("/tmp/x:y.yaml", "tmp/x_y.yaml"), ("..", "input")]
    {
        assert_eq!(shown(path).as_str(), expected);
    }
}

#[test]
fn a_query_that_is_refused_is_shown() {
    let file = ALIAS[0].1.replacen("[{{ interval }}]", "", 1);
    let imported = imported(Tool::Flagger, &[("a.yaml", &file)]);
    let [RefusedCheck { file, check, why }] = imported.refused.as_slice() else { panic!("{imported:#?}") };
    let shown = format!("refuses these queries:\n  {file}: {check}: {why}\n");
    assert!(differences(&imported, Ink::Plain).contains(&shown), "{shown}");
}
