//! Inputs that other brokers were reported to have got wrong, by their ids in the project's list; what
//! is expected is what Apache Kafka 4.1.2 does. Which id is covered where is told in the README.

use protocol_tests::Broker;
use protocol_tests::tools::python;

#[test]
fn batches_that_no_library_makes_are_stored_or_refused_as_by_kafka() {
    python("batches.py", &Broker::start(), &[]);
}
