//! Comparing brokers: contestants take turns at cells, and what they cost is written down raw.
//!
//! The figure is a ratio within a round: on a machine that others use, absolute figures move and
//! ratios hardly do. Rounds in which the machine was busy with something else are kept and not
//! counted.
//!
//! - `contestant`: who takes part, and how each is started, frozen and ended. - `cells`: what is
//!   measured. - `measure`: CPU time, memory, system calls, the machine's state. - `rounds`: the
//!   order, and one JSON line for each sample. - `statistics`: medians, ratios, intervals. -
//!   `report`: the table. - `chart`: pictures of it.

pub mod cells;
pub mod chart;
pub mod contestant;
pub mod measure;
pub mod report;
pub mod rounds;
pub mod statistics;
