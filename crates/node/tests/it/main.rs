//! The node from outside: its ports, its program, and other clients and libraries beside it.
#![allow(clippy::too_many_lines)] // a test of the node is a story

mod bad_input;
mod benchmark;
mod bounds;
mod cli;
mod client;
mod commands;
mod dashboard;
mod dev;
mod engine_api;
mod examples;
mod extract;
mod files;
mod filled;
mod filters;
mod fork;
mod geth;
mod geth_estimates;
mod geth_methods;
mod geth_pool;
mod geth_simulations;
mod geth_traces;
mod inspect;
mod integrations;
mod load;
mod log;
mod metrics;
mod page;
mod parity;
mod persistence;
mod pool;
#[cfg(target_os = "linux")]
mod public_calls;
mod published;
mod quickstart;
mod quotes;
mod ranges;
mod replay;
mod rest;
mod small_methods;
mod status;
mod subscriptions;
mod support;
mod tools;
mod traces;
mod verify;
