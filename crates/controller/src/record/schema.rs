//! The JSON Schema of the record (draft 2020-12), made from the types of [`super::state`], so that documenting and reading cannot
//! drift apart. It is for people and their tools: records are read by [`super::store`].

use super::state::RolloutState;
use crate::manifest::schema::generated;
use serde_json::Value;

/// The kind of a record, as `kind` spells it.
pub const KIND: &str = "RolloutState";

/// The schema of a record. `schemas/RolloutState.schema.json` of the source tree holds the same.
#[must_use]
pub fn schema() -> Value {
    generated::<RolloutState>()
}

#[cfg(test)]
mod tests {
    use super::schema;
    use crate::manifest::schema::compiled;
    use serde_json::json;

    #[test]
    fn the_schema_compiles() {
        assert!(!compiled(&schema()).is_valid(&json!(null)));
    }
}
