//! Comparing brokers.
