//! The active controller: it runs here while this node leads the quorum.

use std::sync::Arc;

use tokio::sync::watch;
use tracing::info;

use crate::api::controller::ActiveController;
use crate::base::NodeId;
use crate::controller::Controller;
use crate::controller::ask::{Event, WriteRecords};
use crate::controller::state::Settings;
use crate::machine::driver::{self, Limits};
use crate::machine::handle::Handle;
use crate::machine::journal::Journal;
use crate::machine::{Machine, Now};
use crate::metadata::bootstrap;
use crate::metadata::image::Image;
use crate::metadata::record::Record;
use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::quorum::Quorum;

/// Runs a controller here whenever this node leads the quorum. `formatted` are the records that a
/// new cluster begins with.
pub(super) fn run(
    quorum: &Arc<Quorum>,
    me: NodeId,
    settings: Arc<Settings>,
    formatted: Vec<Record>,
    tasks: &Tasks,
) -> ActiveController {
    let (sender, handle) = watch::channel(None);
    let mut leadership = quorum.leadership();
    let quorum = quorum.clone();
    let group = tasks.clone();
    tasks.spawn("controller", async move {
        loop {
            let now = *leadership.borrow_and_update();
            let handle = if now.leader == Some(me) {
                quorum.lead(now.epoch).map(|(journal, image)| {
                    info!(epoch = now.epoch.0, "this node is the active controller");
                    take_over(&image, journal, &settings, &group)
                })
            } else {
                None
            };
            if let Some(handle) = &handle {
                begin_cluster(handle, &quorum, &settings, &formatted).await;
            }
            sender.send_replace(handle);
            tokio::select! {
                biased;
                () = group.stopped() => return,
                changed = leadership.changed() => if changed.is_err() { return },
            }
        }
    });
    ActiveController::new(handle)
}

fn take_over<J>(
    image: &Arc<Image>,
    journal: J,
    settings: &Arc<Settings>,
    tasks: &Tasks,
) -> Handle<Controller>
where
    J: Journal<Record = <Controller as Machine>::Record> + 'static,
{
    let now = Now {
        instant: clock::now(),
        wall_ms: clock::wall_ms(),
        end_offset: journal.end_offset(),
    };
    let machine = Controller::new(Image::clone(image), settings.clone(), now);
    let no_effects = |effect: <Controller as Machine>::Effect| match effect {};
    driver::spawn(
        tasks,
        "controller",
        Limits::default(),
        machine,
        journal,
        no_effects,
    )
}

/// Writes a new cluster's first records (ActivationRecordsGenerator).
async fn begin_cluster(
    handle: &Handle<Controller>,
    quorum: &Quorum,
    settings: &Settings,
    formatted: &[Record],
) {
    let is_new = quorum
        .image()
        .borrow()
        .image
        .features
        .iter()
        .next()
        .is_none();
    if !is_new {
        return;
    }
    let min_in_sync = u32::try_from(settings.min_insync_replicas).unwrap_or(1);
    let records = bootstrap::records(formatted.to_vec(), min_in_sync);
    // A controller that loses its leadership meanwhile leaves this to the next one.
    let _ = handle
        .ask(Event::WriteRecords(WriteRecords { records }))
        .await;
}
