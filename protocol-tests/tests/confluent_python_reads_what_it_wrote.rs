//! librdkafka 2.16 through its Python client: keys, values, headers, timestamps, offsets.

use protocol_tests::Broker;
use protocol_tests::tools::python;

#[test]
fn every_property_of_a_record_is_kept_in_each_codec_and_after_kill_9() {
    let mut broker = Broker::start();
    python("properties.py", &broker, &["write"]);
    python("properties.py", &broker, &["read"]);
    broker.kill();
    broker.restart();
    python("properties.py", &broker, &["read"]);
}
