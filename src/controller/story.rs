//! Stories of a controller, told through the testkit.

#[test]
fn placeholder() {}
