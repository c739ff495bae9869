//! The client against servers that this process runs.

mod held;
mod servers;
