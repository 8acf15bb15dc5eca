//! Assembling, starting and stopping a node.
//!
//! - `node`: what runs in this process, in order; stopped in reverse.
//! - `controller`: the active controller, wherever it runs. - `rules`: what options it accepts.
//! - `lifecycle`: a broker registers, is heard of, leaves in order.
//! - `publish`: a new image of the cluster, told to each part in order.
//! - `places`: in which directory each replica is, told to the controller.
//! - `dirs`: the directories that the options name, taken into use.
//! - `metrics`: what the parts tell of themselves, for Prometheus.
//! - `settings`: what the log and the quorum take from the options.

pub(crate) mod controller;
mod dirs;
mod lifecycle;
mod metrics;
pub(crate) mod node;
mod places;
mod publish;
mod rules;
mod settings;
