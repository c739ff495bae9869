//! The store by its public interface.

mod codes;
mod crash;
mod damage;
mod hints;
mod journal;
mod model;
mod reader;
mod record_log;
mod workload;
