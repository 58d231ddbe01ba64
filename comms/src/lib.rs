//! comms
