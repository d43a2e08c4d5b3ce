//! The conformance suite over the slot log.

mod it {
    mod slot_log;
}
