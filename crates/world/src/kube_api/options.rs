//! How a write is to be done: who writes, and whether it only looks. Pure.

use super::asked::{ApiVerb, Asked};
use super::fields::FieldRefusal;
use super::status::{Cause, invalid_options};
use serde_json::json;

/// The longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

/// How a write is to be done.
#[derive(Debug, Clone)]
pub(super) struct How {
    pub(super) manager: String,
    pub(super) dry_run: bool,
    /// Whether unknown fields are refused, not dropped.
    pub(super) strict: bool,
    pub(super) force: bool,
}

/// Reads the options of a write; `agent` is the User-Agent, which names the manager if nothing else does.
pub(super) fn read(asked: &Asked, agent: &str, applies: bool) -> Result<How, FieldRefusal> {
    let options = match asked.verb {
        ApiVerb::Create => "CreateOptions",
        ApiVerb::Update => "UpdateOptions",
        ApiVerb::Delete | ApiVerb::DeleteCollection => "DeleteOptions",
        ApiVerb::Patch | ApiVerb::Get | ApiVerb::List | ApiVerb::Watch => "PatchOptions",
    };
    let query = &asked.query;
    let manager = query.get("fieldManager");
    if manager.len() > LONGEST_MANAGER {
        return Err(invalid_options(options, Cause::too_long("fieldManager", LONGEST_MANAGER)));
    }
    if applies && manager.is_empty() {
        return Err(invalid_options(options, Cause::required("fieldManager", "is required for apply patch")));
    }
    if !applies && asked.verb == ApiVerb::Patch && !query.get("force").is_empty() {
        let why = "may not be specified for non-apply patch";
        return Err(invalid_options(options, Cause::forbidden("force", why)));
    }
    let dry_run = query.get("dryRun");
    if !matches!(dry_run, "" | "All") {
        return Err(invalid_options(options, Cause::unsupported("dryRun", &json!([dry_run]), &["All"])));
    }
    let validation = query.get("fieldValidation");
    if !matches!(validation, "" | "Ignore" | "Warn" | "Strict") {
        let known = ["", "Ignore", "Strict", "Warn"];
        return Err(invalid_options(options, Cause::unsupported("fieldValidation", &json!(validation), &known)));
    }
    let manager = if manager.is_empty() { by_agent(agent) } else { manager.to_owned() };
    Ok(How { manager, dry_run: dry_run == "All", strict: validation == "Strict", force: query.flag("force") })
}

/// The program's name in a User-Agent: what stands before its version.
fn by_agent(agent: &str) -> String {
    match agent.split('/').next().unwrap_or_default() {
        "" => "unknown".to_owned(),
        name => name.chars().take(LONGEST_MANAGER).collect(),
    }
}
