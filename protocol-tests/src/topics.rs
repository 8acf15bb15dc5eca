//! Topics with options of their own, made and changed.

use kafka_protocol::messages::create_topics_request::CreatableTopicConfig;
use kafka_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::{CreateTopicsRequest, IncrementalAlterConfigsRequest};
use kafka_protocol::protocol::StrBytes;

use crate::wire::{Connection, create_topics};

/// The kind of resource that a topic is (ConfigResource.Type).
const TOPIC: i8 = 2;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What asks for a topic with these options.
pub fn request(topic: &str, partitions: i32, options: &[(&str, &str)]) -> CreateTopicsRequest {
    let mut request = create_topics(topic, partitions);
    let config = |(name, value): &(&str, &str)| {
        CreatableTopicConfig::default()
            .with_name(text(name))
            .with_value(Some(text(value)))
    };
    request.topics[0].configs = options.iter().map(config).collect();
    request
}

/// Makes a topic of one partition with these options, and waits until that has a leader.
#[track_caller]
pub fn create(client: &mut Connection, topic: &str, options: &[(&str, &str)]) {
    let answer = client.ask(7, &request(topic, 1, options));
    assert_eq!(answer.topics[0].error_code, 0, "{:?}", answer.topics[0]);
    client.end_offset(topic, 0);
}

/// Changes an option of a topic.
#[track_caller]
pub fn set(client: &mut Connection, topic: &str, name: &str, value: &str) {
    let config = AlterableConfig::default()
        .with_name(text(name))
        .with_config_operation(0)
        .with_value(Some(text(value)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = client.ask(1, &request);
    assert_eq!(answer.responses[0].error_code, 0, "{answer:?}");
}
