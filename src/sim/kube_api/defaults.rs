//! What the API server fills in on write.

use super::fields::schema::Schema;
use serde_json::Value;

/// Fills in what the API server defaults in an object of that kind.
pub fn fill(_schema: &Schema, _object: &mut Value) {}
