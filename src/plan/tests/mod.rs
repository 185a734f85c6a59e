//! The planner's tests: stories in a small world. Each ends settled, with an empty second plan.

mod failures;
mod journeys;
mod words;
mod world;
