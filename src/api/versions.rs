//! ApiVersions: versions 0-4.
//!
//! - A version above ours is answered in version 0 with UNSUPPORTED_VERSION and our range, so that
//!   the client can ask again (KIP-511).
//! - v3 names the client's software and carries the features (KIP-511, KIP-584); v4 adds supported
//!   features whose lowest level is 0, which older clients cannot read (KAFKA-17492).

use std::sync::Arc;

use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use super::context::Context;
use super::serve::{Refuse, Reply};
use super::{API_VERSIONS_KEY, ROWS, Row};
use crate::controller;
use crate::protocol::error::{ErrorCode, Refusal};

/// First version that names the client's software and carries features.
const NAMES_SOFTWARE: i16 = 3;
/// First version whose clients read supported features that begin at level 0.
const READS_LEVEL_ZERO: i16 = 4;

impl Refuse for ApiVersionsRequest {
    type Response = ApiVersionsResponse;

    fn refuse(&self, _version: i16, refusal: &Refusal) -> ApiVersionsResponse {
        ApiVersionsResponse::default().with_error_code(refusal.code.code())
    }
}

/// Tells what this broker speaks.
pub(super) async fn api_versions(
    ctx: Context,
    request: Arc<ApiVersionsRequest>,
) -> Result<Reply<ApiVersionsResponse>, Refusal> {
    if ctx.version >= NAMES_SOFTWARE && !names_software(&request) {
        return Err(ErrorCode::InvalidRequest.into());
    }
    let served = ROWS
        .iter()
        .filter(|row| row.scope.includes(ctx.session.kind));
    let response = ApiVersionsResponse::default()
        .with_api_keys(served.map(advertise).collect())
        .with_supported_features(supported(ctx.version))
        .with_finalized_features(finalized(&ctx))
        .with_finalized_features_epoch(ctx.metadata.end_offset - 1);
    Ok(response.into())
}

/// The answer, in version 0, to a version that this broker does not speak.
pub(super) fn unsupported() -> ApiVersionsResponse {
    let own = ROWS
        .iter()
        .filter(|row| row.key == API_VERSIONS_KEY)
        .map(advertise);
    ApiVersionsResponse::default()
        .with_error_code(ErrorCode::UnsupportedVersion.code())
        .with_api_keys(own.collect())
}

fn advertise(row: &Row) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(row.key)
        .with_min_version(row.told_min)
        .with_max_version(row.max)
}

fn names_software(request: &ApiVersionsRequest) -> bool {
    is_software_word(&request.client_software_name)
        && is_software_word(&request.client_software_version)
}

/// `[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?` (ApiVersionsRequest.isValid).
fn is_software_word(word: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

fn supported(version: i16) -> Vec<SupportedFeatureKey> {
    let known = controller::features::SUPPORTED.iter();
    let readable = known.filter(|(_, levels)| version >= READS_LEVEL_ZERO || levels.min > 0);
    readable
        .map(|(name, levels)| {
            SupportedFeatureKey::default()
                .with_name(StrBytes::from_static_str(name))
                .with_min_version(levels.min)
                .with_max_version(levels.max)
        })
        .collect()
}

fn finalized(ctx: &Context) -> Vec<FinalizedFeatureKey> {
    let levels = ctx.image().features.iter().map(|(name, level)| {
        FinalizedFeatureKey::default()
            .with_name(StrBytes::from_string(name.to_owned()))
            .with_max_version_level(level)
            .with_min_version_level(level)
    });
    levels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_words_are_judged_as_kafka_does() {
        for good in ["a", "apache-kafka-java", "4.1.2", "x.-y"] {
            assert!(is_software_word(good), "{good}");
        }
        for bad in ["", "-a", "a-", ".1", "a b", "ä", "a_b"] {
            assert!(!is_software_word(bad), "{bad}");
        }
    }
}
