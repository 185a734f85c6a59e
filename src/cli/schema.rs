//! `tidegate schema [KIND]`.

use super::Exit;
use super::failure::Failure;
use super::screen::Screen;
use crate::manifest::schema::schemas;
use crate::record::schema as record;
use crate::report::projection::DEFINITION;
use anyhow::Context;
use clap::Args;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Print the JSON Schema of a kind
#[derive(Debug, Args)]
#[command(
    long_about = "Prints the JSON Schema (draft 2020-12) of a kind, for editors and CI. Without a kind: lists all.",
    after_help = "Examples:
  tidegate schema
  tidegate schema Rollout > Rollout.schema.json
  tidegate schema --write schemas/
  tidegate schema crd | kubectl apply --filename -

In an editor with yaml-language-server, as a file's first line:
  # yaml-language-server: $schema=Rollout.schema.json"
)]
pub(super) struct SchemaArgs {
    /// The kind, as files spell it; `crd` prints the definition of the objects that show rollouts in the cluster
    kind: Option<String>,
    /// Writes all schemas to this directory, as KIND.schema.json
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    write: Option<PathBuf>,
}

/// What stands below the list of kinds.
const CRD: &str = "crd           The definition of rollouts.tidegate.io, for kubectl apply.\n";

/// Prints a schema, lists all, or writes them.
pub(super) fn command(args: &SchemaArgs, screen: &Screen) -> Result<Exit, Failure> {
    let all = all();
    match (&args.write, &args.kind) {
        (Some(dir), _) => screen.print(&write_all(dir, &all)?)?,
        (None, Some(kind)) if kind.eq_ignore_ascii_case("crd") => screen.print(DEFINITION)?,
        (None, Some(kind)) => screen.print(&text(find(&all, kind)?)?)?,
        (None, None) => screen.print(&format!("{}{CRD}", list(&all)))?,
    }
    Ok(Exit::Done)
}

/// Every schema, by kind: of what people write, and of the record.
fn all() -> BTreeMap<&'static str, Value> {
    let mut all = schemas();
    all.insert(record::KIND, record::schema());
    all
}

fn find<'a>(all: &'a BTreeMap<&str, Value>, kind: &str) -> Result<&'a Value, Failure> {
    let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(kind));
    found.map(|(_, schema)| schema).ok_or_else(|| {
        let names: Vec<&str> = all.keys().copied().collect();
        Failure::usage(format!("there is no schema of {kind:?}; expected one of {}", names.join(", ")))
    })
}

fn list(all: &BTreeMap<&str, Value>) -> String {
    let mut out = String::new();
    for (kind, schema) in all {
        let about = schema["description"].as_str().and_then(|text| text.lines().next()).unwrap_or_default();
        let _ = writeln!(out, "{kind:<14}{about}");
    }
    out
}

fn text(schema: &Value) -> Result<String, Failure> {
    Ok(format!("{}\n", serde_json::to_string_pretty(schema)?))
}

/// The name of a kind's file.
#[must_use]
pub(super) fn file_name(kind: &str) -> String {
    format!("{kind}.schema.json")
}

fn write_all(dir: &Path, all: &BTreeMap<&str, Value>) -> Result<String, Failure> {
    let mut out = String::new();
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
    for (kind, schema) in all {
        let path = dir.join(file_name(kind));
        std::fs::write(&path, text(schema)?).with_context(|| format!("cannot write {}", path.display()))?;
        let _ = writeln!(out, "wrote {}", path.display());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_found_and_written() {
        let all = all();
        insta::assert_snapshot!(list(&all));
        assert!(find(&all, "rollout").is_ok());
        insta::assert_snapshot!("schema_unknown", find(&all, "Deployment").unwrap_err().text());
        let dir = tempfile::tempdir().unwrap();
        write_all(&dir.path().join("new"), &all).unwrap();
        let written = std::fs::read_to_string(dir.path().join("new/Rollout.schema.json")).unwrap();
        assert_eq!(written, text(find(&all, "Rollout").unwrap()).unwrap());
    }
}
