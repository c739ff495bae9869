#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    deponent_fuzz::ere_file(data);
});
