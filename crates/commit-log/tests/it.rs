//! The conformance suite over the slot log, and the models of the agreement.

mod it {
    mod agreement;
    mod comparison;
    mod exchanged_stores;
    mod inspecting;
    mod one_connection;
    mod quiet_server;
    mod rumours;
    mod several_stores;
    mod slot_log;
    mod stores;
    mod watching;
    mod worlds;
}
