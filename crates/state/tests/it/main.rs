//! The store by its public interface.

mod codes;
mod crash;
mod damage;
mod hints;
mod model;
mod reader;
mod workload;
