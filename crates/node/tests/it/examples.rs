//! The examples, run as they are.

#![allow(clippy::duplicate_mod, reason = "each example has the chain that it runs against")]

#[path = "../../examples/coupled.rs"]
mod coupled;
#[path = "../../examples/descriptor.rs"]
mod descriptor;
#[path = "../../examples/held.rs"]
mod held;
#[path = "../../examples/verify.rs"]
mod verify;

#[test]
fn a_coupled_call() {
    coupled::main().expect("it runs");
}

#[test]
fn the_descriptor_path() {
    descriptor::main().expect("it runs");
}

#[test]
fn codes_that_are_held() {
    held::main().expect("it runs");
}

#[test]
fn what_is_received_is_verified() {
    verify::main().expect("it runs");
}
