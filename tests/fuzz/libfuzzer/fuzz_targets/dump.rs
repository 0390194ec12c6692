#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| proofkeep_fuzz::hold("dump", input));
