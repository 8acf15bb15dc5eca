//! Who is asking.

pub(crate) mod session;
