//! Modules that look like circom's witness calculator of `multiplier` and do something else.

/// A module that runs `start` when it is loaded, and `set` when an input signal is set.
pub fn calculator(start: &str, set: &str) -> Vec<u8> {
    let prime: String = super::file::prime_r()
        .iter()
        .map(|byte| format!("\\{byte:02x}"))
        .collect();
    wat::parse_str(format!(
        r#"(module
            (import "runtime" "exceptionHandler" (func $throw (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "{prime}")
            (func (export "getSharedRWMemoryStart") (result i32) i32.const 0)
            (func (export "getFieldNumLen32") (result i32) i32.const 8)
            (func (export "getRawPrime") (memory.copy (i32.const 0) (i32.const 64) (i32.const 32)))
            (func (export "init") (param i32))
            (func (export "setInputSignal") (param i32 i32 i32) {set})
            (func (export "getInputSignalSize") (param i32 i32) (result i32) i32.const 1)
            (func (export "getInputSize") (result i32) i32.const 2)
            (func (export "getWitnessSize") (result i32) i32.const 4)
            (func (export "getWitness") (param i32))
            (func $start {start})
            (start $start))"#
    ))
    .unwrap()
}
