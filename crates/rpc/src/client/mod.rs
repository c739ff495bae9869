//! The client's end of the wires.

mod address;
pub(crate) mod http;
pub(crate) mod ws;
