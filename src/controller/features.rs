//! Finalizing features at other levels (FeatureControlManager, KIP-584).

use std::collections::BTreeMap;

use crate::metadata::bootstrap::METADATA_VERSION_4_1;
use crate::metadata::image::brokers::Levels;
use crate::metadata::image::features::{
    ELIGIBLE_LEADER_REPLICAS_VERSION, GROUP_VERSION, KRAFT_VERSION, METADATA_VERSION,
    SHARE_VERSION, TRANSACTION_VERSION,
};
use crate::metadata::record::{ClearElrRecord, FeatureLevelRecord, FeatureRange, Record};
use crate::protocol::error::{ErrorCode, Refusal};

use super::ask::{FeatureUpdate, UpdateFeatures, UpgradeType};
use super::state::State;
use super::{Decided, Decision};

/// What 4.1 supports of each feature.
pub(crate) const SUPPORTED: [(&str, Levels); 6] = [
    (GROUP_VERSION, Levels { min: 0, max: 1 }),
    (TRANSACTION_VERSION, Levels { min: 0, max: 2 }),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, Levels { min: 0, max: 1 }),
    (KRAFT_VERSION, Levels { min: 0, max: 1 }),
    (
        METADATA_VERSION,
        Levels {
            min: 7,
            max: METADATA_VERSION_4_1,
        },
    ),
    (SHARE_VERSION, Levels { min: 0, max: 1 }),
];

/// The last metadata.version that changed what records say (4.0-IV1 brought eligible leader
/// replicas): going below would lose something.
const LAST_CHANGE: i16 = 23;

const DISABLED: Levels = Levels { min: 0, max: 0 };

/// What 4.1 supports of each feature, as nodes register it.
pub(crate) fn supported() -> Vec<FeatureRange> {
    SUPPORTED
        .iter()
        .map(|(name, levels)| FeatureRange {
            name: (*name).to_owned(),
            min_supported_version: levels.min,
            max_supported_version: levels.max,
        })
        .collect()
}

impl State {
    /// Finalizes features at other levels, all of them or none.
    pub(super) fn update_features(&self, asked: &UpdateFeatures) -> Decided<()> {
        // The last of a name counts, as in Kafka's map.
        let updates: BTreeMap<_, _> = asked.updates.iter().map(|u| (&u.name, u)).collect();
        let mut records = Vec::new();
        for update in updates.into_values() {
            let updated = self.update_feature(update, asked.validate_only);
            records.extend(updated.map_err(|why| {
                Refusal::new(
                    ErrorCode::InvalidUpdateVersion,
                    format!(
                        "The update failed for all features since the following feature had an \
                         error: {why}"
                    ),
                )
            })?);
        }
        if asked.validate_only {
            records.clear();
        }
        Ok(Decision { records, reply: () })
    }

    fn update_feature(
        &self,
        update: &FeatureUpdate,
        validate_only: bool,
    ) -> Result<Vec<Record>, String> {
        let (name, level) = (update.name.as_str(), update.level);
        let invalid = |why: &str| {
            Err(format!(
                "Invalid update version {level} for feature {name}. {why}"
            ))
        };
        if update.kind == UpgradeType::Unknown {
            return invalid("The controller does not support the given upgrade type.");
        }
        if level < 0 {
            return invalid("A feature version cannot be less than 0.");
        }
        if let Some(why) = self.why_not_supported(name, level) {
            return invalid(&why);
        }
        if name == KRAFT_VERSION {
            if validate_only {
                return Ok(Vec::new());
            }
            return invalid("The quorum's voters do not change their version yet.");
        }
        let current = self.image.features.level(name);
        if level < current && update.kind == UpgradeType::Upgrade {
            return invalid(
                "Can't downgrade the version of this feature without setting the upgrade type to \
                 either safe or unsafe downgrade.",
            );
        }
        if level > current && update.kind != UpgradeType::Upgrade {
            return invalid("Can't downgrade to a newer version.");
        }
        if name == METADATA_VERSION {
            check_metadata_version(current, update)?;
        } else if !SUPPORTED.iter().any(|(known, _)| *known == name) {
            return invalid(&format!("Feature {name} not found."));
        }
        if level == current {
            return Ok(Vec::new());
        }
        Ok(self.level_records(name, level))
    }

    fn level_records(&self, name: &str, feature_level: i16) -> Vec<Record> {
        let mut records = Vec::new();
        if name == ELIGIBLE_LEADER_REPLICAS_VERSION {
            if feature_level > 0 {
                records.extend(self.elr_safety_records());
            } else {
                records.push(ClearElrRecord::default().into());
            }
        }
        records.push(Record::FeatureLevel(FeatureLevelRecord {
            name: name.to_owned(),
            feature_level,
        }));
        records
    }

    /// Every broker and controller must support a level before it is finalized.
    fn why_not_supported(&self, name: &str, level: i16) -> Option<String> {
        let own = SUPPORTED.iter().find(|(known, _)| *known == name);
        let own = own.map_or(DISABLED, |(_, levels)| *levels);
        let id = self.settings.node_id;
        if let Some(why) = why_not(&format!("Local controller {id}"), own, level) {
            return Some(why);
        }
        let levels =
            |features: &BTreeMap<String, Levels>| features.get(name).copied().unwrap_or(DISABLED);
        let brokers = self.image.brokers.sorted().into_iter();
        let brokers = brokers.map(|b| (format!("Broker {}", b.id), levels(&b.features)));
        let controllers = self.image.controllers.sorted().into_iter();
        let controllers = controllers
            .filter(|controller| controller.id != id)
            .map(|c| (format!("Controller {}", c.id), levels(&c.features)));
        let mut others = brokers.chain(controllers);
        if let Some(why) = others.find_map(|(who, levels)| why_not(&who, levels, level)) {
            return Some(why);
        }
        let known = |voter| voter == id || self.image.controllers.registration(voter).is_some();
        let missing = self.settings.voters.iter().find(|voter| !known(**voter))?;
        Some(format!(
            "controller {missing} has not registered, and may not support this feature"
        ))
    }
}

fn why_not(who: &str, levels: Levels, level: i16) -> Option<String> {
    let Levels { min, max } = levels;
    if (min..=max).contains(&level) {
        None
    } else if max == 0 {
        Some(format!("{who} does not support this feature."))
    } else {
        Some(format!("{who} only supports versions {min}-{max}"))
    }
}

fn check_metadata_version(current: i16, update: &FeatureUpdate) -> Result<(), String> {
    let level = update.level;
    let loses_something = level < current && level < LAST_CHANGE;
    let why = match update.kind {
        _ if !loses_something => return Ok(()),
        UpgradeType::UnsafeDowngrade => {
            "Unsafe metadata downgrade is not supported in this version."
        }
        UpgradeType::Upgrade | UpgradeType::SafeDowngrade | UpgradeType::Unknown => {
            "Refusing to perform the requested downgrade because it might delete metadata \
             information."
        }
    };
    Err(format!("Invalid metadata.version {level}. {why}"))
}
