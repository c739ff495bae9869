#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(deponent_fuzz::rest_container(data)));
