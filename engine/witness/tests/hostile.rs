//! Modules that circom never wrote: each ends in a typed error, whatever they try.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::ops::ControlFlow;

use proofkeep_witness::{Calculator, Limits, WitnessError};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    fuel: 1_000_000,
    memory_bytes: 16 << 20,
};

const SHAPES: &[u8] = include_bytes!("fixtures/shapes.wasm");

/// A module of circom's shape, over r, with one input value `a`; parts of it can be replaced.
struct Fake {
    head: &'static str,
    memory: &'static str,
    set_input: &'static str,
    sizes: [&'static str; 3],
    witness: &'static str,
    tail: &'static str,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            head: "",
            memory: "1",
            set_input: "",
            sizes: ["i32.const 1", "i32.const 1", "i32.const 2"],
            witness: "",
            tail: "",
        }
    }
}

impl Fake {
    fn wasm(&self) -> Vec<u8> {
        let Self {
            head,
            memory,
            set_input,
            sizes: [signal, input, witness],
            ..
        } = self;
        let (get_witness, tail) = (self.witness, self.tail);
        let prime = "\\01\\00\\00\\00\\ff\\ff\\ff\\ff\\fe\\5b\\fe\\ff\\02\\a4\\bd\\53\\05\\d8\\a1\\09\\08\\d8\\39\\33\\48\\7d\\9d\\29\\53\\a7\\ed\\73";
        wat::parse_str(format!(
            r#"(module
                (import "runtime" "exceptionHandler" (func $throw (param i32)))
                (import "runtime" "printErrorMessage" (func $print))
                {head}
                (memory (export "memory") {memory})
                (global $at (mut i32) (i32.const 0))
                (data (i32.const 64) "{prime}")
                (func (export "getSharedRWMemoryStart") (result i32) i32.const 0)
                (func (export "getFieldNumLen32") (result i32) i32.const 8)
                (func (export "getRawPrime") (memory.copy (i32.const 0) (i32.const 64) (i32.const 32)))
                (func (export "init") (param i32))
                (func (export "setInputSignal") (param i32 i32 i32) {set_input})
                (func (export "getInputSignalSize") (param i32 i32) (result i32) {signal})
                (func (export "getInputSize") (result i32) {input})
                (func (export "getWitnessSize") (result i32) {witness})
                (func (export "getWitness") (param i32) {get_witness})
                {tail})"#
        ))
        .unwrap()
    }

    fn calculate(&self) -> Result<Vec<[u8; 32]>, WitnessError> {
        Calculator::new(&self.wasm(), LIMITS)?.calculate(b"{\"a\": 31337}")
    }

    fn code(&self) -> &'static str {
        self.calculate().map_or_else(|e| e.code(), |_| "none")
    }
}

#[test]
fn the_fake_itself_is_accepted() {
    assert_eq!(Fake::default().calculate().unwrap().len(), 2);
}

#[test]
fn an_endless_loop_ends_with_the_fuel() {
    let looping = "(loop br 0)";
    assert_eq!(
        Fake {
            set_input: looping,
            ..Fake::default()
        }
        .code(),
        "fuel-exhausted"
    );
    assert_eq!(
        Fake {
            witness: looping,
            ..Fake::default()
        }
        .code(),
        "fuel-exhausted"
    );
    let start = "(func $start (loop br 0)) (start $start)";
    assert_eq!(
        Fake {
            tail: start,
            ..Fake::default()
        }
        .code(),
        "fuel-exhausted"
    );
    let size = "(loop br 0) i32.const 1";
    assert_eq!(
        Fake {
            sizes: ["i32.const 1", size, "i32.const 2"],
            ..Fake::default()
        }
        .code(),
        "fuel-exhausted"
    );
    // A message that never ends, printed for ever, ends too.
    let endless = Fake {
        set_input: "(loop call $print br 0)",
        tail: "(func (export \"getMessageChar\") (result i32) i32.const 65)",
        ..Fake::default()
    };
    assert_eq!(endless.code(), "fuel-exhausted");
}

/// Asks for the watch's n-th answer to be the last.
fn stopped_at(n: u32, fake: &Fake, fuel: u64) -> (Result<Vec<[u8; 32]>, WitnessError>, u32) {
    let limits = Limits { fuel, ..LIMITS };
    let calculator = Calculator::new(&fake.wasm(), limits).unwrap();
    let mut asked = 0;
    let result = calculator.calculate_watched(b"{\"a\": 31337}", &mut || {
        asked += 1;
        if asked < n {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    (result, asked)
}

#[test]
fn whatever_the_code_does_it_can_be_stopped() {
    let looping = "(loop br 0)";
    let message = "(func (export \"getMessageChar\") (result i32) i32.const 65)";
    let endless = "(func (export \"getMessageChar\") (result i32) (loop br 0) i32.const 65)";
    let nested = "(func (export \"getMessageChar\") (result i32) call $print i32.const 65)";
    for (set_input, witness, tail) in [
        (looping, "", ""),
        ("", looping, ""),
        ("(loop call $print br 0)", "", message),
        ("(loop call $print br 0)", "", endless),
        ("(loop call $print br 0)", "", nested),
        (
            "(loop (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) br 0)",
            "",
            "",
        ),
    ] {
        let fake = Fake {
            set_input,
            witness,
            tail,
            ..Fake::default()
        };
        assert_eq!(
            stopped_at(3, &fake, u64::MAX),
            (Err(WitnessError::Stopped), 3),
            "{set_input}"
        );
        let limit = stopped_at(u32::MAX, &fake, 25_000_000);
        assert_eq!(limit.0.unwrap_err().code(), "fuel-exhausted");
        assert!(limit.1 <= 3);
    }
}

#[test]
fn a_calculation_in_slices_comes_to_the_same() {
    // Counts to 40 million with a call in each step, copies its memory now and then, and keeps the sum.
    let fake = Fake {
        tail: r#"(func $step (param $n i32) (result i32) (i32.add (local.get $n) (i32.const 3)))"#,
        set_input: r#"(local $n i32) (local $sum i32)
            (loop
                (local.set $sum (i32.add (local.get $sum) (call $step (local.get $n))))
                (if (i32.eqz (i32.and (local.get $n) (i32.const 0xfff)))
                    (then (memory.copy (i32.const 4096) (i32.const 1024) (i32.const 60000))))
                (br_if 0 (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 4000000))))
            (i32.store (i32.const 512) (local.get $sum))"#,
        witness: r#"(memory.fill (i32.const 0) (i32.const 0) (i32.const 32))
            (i32.store (i32.const 0) (i32.load (i32.const 512)))"#,
        ..Fake::default()
    };
    let (result, asked) = stopped_at(u32::MAX, &fake, u64::MAX);
    let sum = (0..4_000_000u32).fold(0u32, |sum, n| sum.wrapping_add(n + 3));
    assert_eq!(result.unwrap()[0][..4], sum.to_le_bytes());
    assert!(asked >= 3, "{asked}");
}

#[test]
fn host_functions_at_the_edge_of_the_code_do_no_harm() {
    let code = |set_input| {
        Fake {
            set_input,
            tail: "(func (export \"getMessageChar\") (result i32) i32.const 0)",
            ..Fake::default()
        }
        .code()
    };
    // As the very last call nothing is left that could go on.
    assert_eq!(code("return_call $print"), "wasm-trap");
    assert_eq!(code("(return_call $throw (i32.const 4))"), "assert-failed");
    assert_eq!(code("call $print call $print"), "none");
    let wasm = Fake::default().wasm();
    let export = b"getRawPrime\x00";
    let place = wasm
        .windows(export.len())
        .position(|window| window == export)
        .unwrap()
        + export.len();
    // The function that answers getRawPrime becomes printErrorMessage itself.
    let mut wasm = wasm;
    wasm[place] = 1;
    assert_eq!(Calculator::new(&wasm, LIMITS).unwrap_err().code(), "wasm-trap");
}

#[test]
fn memory_stays_within_its_limit() {
    let code = |fake: Fake| fake.code();
    assert_eq!(
        code(Fake {
            memory: "30000",
            ..Fake::default()
        }),
        "memory-limit"
    );
    let grow = "(drop (memory.grow (i32.const 1000)))";
    assert_eq!(
        code(Fake {
            set_input: grow,
            ..Fake::default()
        }),
        "memory-limit"
    );
    // A witness of two billion wires is refused before any of it is asked for.
    let huge = ["i32.const 1", "i32.const 1", "i32.const 0x7fffffff"];
    assert_eq!(
        code(Fake {
            sizes: huge,
            ..Fake::default()
        }),
        "memory-limit"
    );
    let table = "(table $t 1 funcref) (func $g (drop (table.grow $t (ref.null func) (i32.const 0x7ffffff)))) (start $g)";
    assert_eq!(
        code(Fake {
            tail: table,
            ..Fake::default()
        }),
        "memory-limit"
    );
}

#[test]
fn traps_are_told() {
    let code = |set_input| {
        Fake {
            set_input,
            ..Fake::default()
        }
        .code()
    };
    assert_eq!(code("unreachable"), "wasm-trap");
    assert_eq!(code("(drop (i32.load (i32.const 0x7fffffff)))"), "wasm-trap");
    assert_eq!(
        code("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        "wasm-trap"
    );
    let recursion = Fake {
        set_input: "call $deep",
        tail: "(func $deep (param) call $deep)",
        ..Fake::default()
    };
    assert_eq!(recursion.code(), "wasm-trap");
    for (code, expected) in [
        ("4", "assert-failed"),
        ("7", "circuit-exception"),
        ("-1", "circuit-exception"),
    ] {
        let wasm = format!("(call $throw (i32.const {code}))").leak();
        assert_eq!(
            Fake {
                set_input: wasm,
                ..Fake::default()
            }
            .code(),
            expected
        );
    }
}

#[test]
fn sizes_that_lie_are_told() {
    let code = |sizes| {
        Fake {
            sizes,
            ..Fake::default()
        }
        .code()
    };
    assert_eq!(
        code(["i32.const -1", "i32.const 1", "i32.const 2"]),
        "signal-unknown"
    );
    assert_eq!(
        code(["i32.const 1", "i32.const -1", "i32.const 2"]),
        "not-circom-wasm"
    );
    assert_eq!(
        code(["i32.const 1", "i32.const 1", "i32.const -2"]),
        "not-circom-wasm"
    );
    assert_eq!(
        code(["i32.const 1", "i32.const 2", "i32.const 2"]),
        "signal-missing"
    );
    // Fewer inputs in all than the one signal takes: it can't be set whole.
    assert_eq!(
        code(["i32.const 1", "i32.const 0", "i32.const 2"]),
        "not-circom-wasm"
    );
}

#[test]
fn a_value_of_r_or_more_is_no_witness() {
    let witness = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 32))";
    assert_eq!(
        Fake {
            witness,
            ..Fake::default()
        }
        .calculate()
        .unwrap_err(),
        WitnessError::NonCanonical { wire: 0 }
    );
}

#[test]
fn the_circuits_own_words_never_reach_an_error() {
    // The module answers every message with the input's low byte as text.
    let fake = Fake {
        set_input: "call $print (call $throw (i32.const 4))",
        tail: "(func (export \"getMessageChar\") (result i32) (i32.load8_u (i32.const 0)))",
        ..Fake::default()
    };
    assert_eq!(
        fake.calculate().unwrap_err(),
        WitnessError::AssertFailed { frames: vec![] }
    );
}

#[test]
fn what_is_not_circom_is_told_apart() {
    let reason = |wasm: &[u8]| match Calculator::new(wasm, LIMITS) {
        Err(WitnessError::NotCircom { reason }) => reason,
        other => panic!("{other:?}"),
    };
    assert!(!reason(b"").is_empty());
    assert!(!reason(b"(module)").is_empty());
    assert_eq!(
        reason(&wat::parse_str("(module)").unwrap()),
        "it exports no memory"
    );
    let wasi = r#"(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#;
    assert_eq!(
        reason(
            &Fake {
                head: wasi,
                ..Fake::default()
            }
            .wasm()
        ),
        "it imports wasi_snapshot_preview1.fd_write, which circom 2 does not"
    );
    let shape = r#"(import "runtime" "showSharedRWMemory" (func (param f64)))"#;
    assert!(
        !reason(
            &Fake {
                head: shape,
                ..Fake::default()
            }
            .wasm()
        )
        .is_empty()
    );
    let bare = wat::parse_str("(module (memory (export \"memory\") 1))").unwrap();
    assert!(reason(&bare).starts_with("it exports no getRawPrime"));
}

/// Runs whatever the bytes are; only a panic or running past the limits would fail.
fn attempt(wasm: &[u8]) {
    let limits = Limits {
        fuel: 200_000,
        ..LIMITS
    };
    if let Ok(calculator) = Calculator::new(wasm, limits) {
        let _ = calculator.calculate(include_bytes!("fixtures/shapes.json"));
        let _ = calculator.with_sym(include_bytes!("fixtures/shapes.sym"));
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        attempt(&body);
        attempt(&[b"\0asm\x01\0\0\0", body.as_slice()].concat());
    }

    #[test]
    fn a_damaged_circuit_never_panics(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut wasm = SHAPES.to_vec();
        for (index, byte) in flips {
            let at = index.index(wasm.len());
            wasm[at] = byte;
        }
        if let Some(cut) = cut {
            wasm.truncate(cut.index(SHAPES.len()));
        }
        attempt(&wasm);
    }

    #[test]
    fn any_sym_is_harmless(sym in "([0-9a-z.,\\[\\]\n]{0,40})|((1,1,1,main.(in|k|m)[\\[\\]0-9.]{0,5}\n){0,9})") {
        let calculator = Calculator::new(SHAPES, LIMITS).unwrap();
        prop_assert!(calculator.with_sym(sym.as_bytes()).is_ok());
    }
}
