//! The client against servers that this process runs.
#![allow(clippy::too_many_lines)] // a test of the client is a story

mod held;
mod servers;
