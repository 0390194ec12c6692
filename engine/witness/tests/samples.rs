//! Witnesses equal circom's and snarkjs's own, and bad inputs are told by name.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use proofkeep_witness::{Calculator, Frame, InputSignal, Limits, Scope, WitnessError};

const LIMITS: Limits = Limits {
    fuel: 50_000_000,
    memory_bytes: 64 << 20,
};

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("fixtures/", $name)).as_slice()
    };
}

fn shapes() -> Calculator {
    Calculator::new(fixture!("shapes.wasm"), LIMITS).unwrap()
}

fn named_shapes() -> Calculator {
    shapes().with_sym(fixture!("shapes.sym")).unwrap()
}

fn refused(calculator: &Calculator, input: &str) -> WitnessError {
    calculator.calculate(input.as_bytes()).unwrap_err()
}

/// The values of a `.wtns` with its two sections in the usual order: a header of 76 bytes.
fn values(wtns: &[u8]) -> Vec<[u8; 32]> {
    wtns[76..]
        .chunks_exact(32)
        .map(|value| value.try_into().unwrap())
        .collect()
}

#[test]
fn witnesses_equal_the_reference_byte_for_byte() {
    for (wasm, sym, input, wtns) in [
        (
            fixture!("shapes.wasm"),
            fixture!("shapes.sym"),
            fixture!("shapes.json"),
            fixture!("shapes.wtns"),
        ),
        (
            fixture!("bus.wasm"),
            fixture!("bus.sym"),
            fixture!("bus.json"),
            fixture!("bus.wtns"),
        ),
        (
            fixture!("constant.wasm"),
            fixture!("constant.sym"),
            fixture!("constant.json"),
            fixture!("constant.wtns"),
        ),
    ] {
        let calculator = Calculator::new(wasm, LIMITS).unwrap().with_sym(sym).unwrap();
        let witness = calculator.calculate(input).unwrap();
        assert_eq!(witness.len(), calculator.witness_size());
        assert!(witness == values(wtns));
        // A second call starts afresh.
        assert!(calculator.calculate(input).unwrap() == witness);
    }
}

#[test]
fn every_way_to_write_an_integer_gives_the_same_witness() {
    let written = br#"{"m":["1",["0x2"]," 16"," 4"],"k":5}"#;
    assert_eq!(
        refused(&shapes(), std::str::from_utf8(written).unwrap()).code(),
        "signal-not-integer"
    );
    let other = br#"{"m":[[["1"]],"0x02",16,"4"],"k":[5],
        "in":["1",2,52435875175126190479447740508185965837690552500527637822603658699938581184510]}"#;
    assert!(shapes().calculate(other).unwrap() == values(fixture!("shapes.wtns")));
}

#[test]
fn one_calculator_serves_many_threads() {
    let calculator = shapes();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let witness = calculator.calculate(fixture!("shapes.json")).unwrap();
                assert!(witness == values(fixture!("shapes.wtns")));
            });
        }
    });
}

#[test]
fn inputs_are_named_by_the_sym() {
    let input = |name: &str, size| InputSignal {
        name: name.into(),
        size,
    };
    assert_eq!(shapes().inputs(), None);
    assert_eq!(shapes().input_size(), 8);
    assert_eq!(
        named_shapes().inputs().unwrap(),
        [input("k", 1), input("in", 3), input("m", 4)]
    );
    let bus = Calculator::new(fixture!("bus.wasm"), LIMITS)
        .unwrap()
        .with_sym(fixture!("bus.sym"))
        .unwrap();
    assert_eq!(
        bus.inputs().unwrap(),
        [
            input("p[0].x", 1),
            input("p[0].y", 2),
            input("p[1].x", 1),
            input("p[1].y", 2),
            input("q", 1)
        ]
    );
}

#[test]
fn an_unknown_signal_is_named_with_the_names_there_are() {
    let input = r#"{"in":[1,2,3],"k":1,"n":[1,2,3,4]}"#;
    let error = refused(&named_shapes(), input);
    assert_eq!(
        error.to_string(),
        "the circuit has no input signal n; its inputs are k, in, m"
    );
    let error = refused(&shapes(), input);
    assert_eq!(
        error,
        WitnessError::UnknownSignal {
            name: "n".into(),
            known: None
        }
    );
    // Outputs and inner signals are no inputs.
    for name in ["out", "cross", "square.x", "in[0]", ""] {
        let error = refused(&named_shapes(), &format!("{{\"{name}\": 1}}"));
        assert_eq!(error.code(), "signal-unknown", "{name}");
    }
    // An array of no elements is no signal to circom's code, and nothing is missing without it.
    assert!(
        Calculator::new(fixture!("constant.wasm"), LIMITS)
            .unwrap()
            .calculate(b"{\"none\":[]}")
            .is_ok()
    );
}

#[test]
fn a_missing_signal_is_named() {
    let error = refused(&named_shapes(), r#"{"in":[1,2,3]}"#);
    assert_eq!(error.to_string(), "3 of 8 input values are given; missing: k, m");
    let error = refused(&shapes(), "{}");
    assert_eq!(
        error,
        WitnessError::MissingSignal {
            names: None,
            given: 0,
            expected: 8
        }
    );
}

#[test]
fn a_wrong_length_tells_both() {
    for (input, name, expected, found) in [
        (r#"{"k":1,"in":[1,2]}"#, "in", 3, 2),
        (r#"{"k":1,"in":[1,2,3,4]}"#, "in", 3, 4),
        (r#"{"k":[],"in":[1,2,3]}"#, "k", 1, 0),
        (r#"{"k":[1,2,3,4,5,6,7,8,9,10,11]}"#, "k", 1, 11),
    ] {
        let error = refused(&shapes(), input);
        assert_eq!(
            error,
            WitnessError::WrongLength {
                name: name.into(),
                expected,
                found
            }
        );
    }
}

#[test]
fn no_value_is_told_by_an_error() {
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    for (value, code) in [
        (r, "signal-out-of-range"),
        (
            "\"-52435875175126190479447740508185965837690552500527637822603658699938581184513\"",
            "signal-out-of-range",
        ),
        ("31337.5", "signal-not-integer"),
        ("\"31337x\"", "signal-not-integer"),
        ("null", "signal-not-integer"),
        ("31337,31337", "signal-length"),
        ("31337 31337", "malformed-json"),
    ] {
        let error = refused(&named_shapes(), &format!("{{\"in\":[1,2,{value}]}}"));
        assert_eq!(error.code(), code, "{error}");
        for text in [error.to_string(), format!("{error:?}")] {
            assert!(!text.contains("31337") && !text.contains("52435875"), "{text}");
        }
    }
    assert_eq!(
        refused(&shapes(), r#"{"in":[1,2,1.5]}"#).to_string(),
        "value 2 of the signal in is a number with a fraction or an exponent: expected an integer, as a JSON \
         integer, a decimal string or a \"0x…\" string"
    );
}

#[test]
fn a_failed_assert_gives_its_template_and_line() {
    let input = r#"{"in":[1,2,3],"k":7,"m":[1,2,3,4]}"#;
    let frame = |scope, name: &str, line| Frame {
        scope,
        name: name.into(),
        line,
    };
    let frames = vec![
        frame(Scope::Template, "Square", 7),
        frame(Scope::Template, "Shapes", 18),
    ];
    assert_eq!(refused(&shapes(), input), WitnessError::AssertFailed { frames });
    let bus = Calculator::new(fixture!("bus.wasm"), LIMITS).unwrap();
    let error = refused(&bus, r#"{"p":[{"x":2,"y":[3,4]},{"x":5,"y":[6,7]}],"q":5}"#);
    assert_eq!(
        error.to_string(),
        "the circuit refuses this input: an assertion fails in function third line 10, used from template Buses line 19"
    );
}

#[test]
fn another_field_is_named() {
    for (wasm, found) in [
        (fixture!("shapes-bn128.wasm"), "BN254"),
        (fixture!("shapes-goldilocks.wasm"), "Goldilocks"),
    ] {
        let error = Calculator::new(wasm, LIMITS).unwrap_err();
        assert_eq!(
            error,
            WitnessError::WrongPrime {
                expected: "BLS12-381".into(),
                found: found.into()
            }
        );
    }
}

#[test]
fn the_limits_hold_for_circoms_own_code() {
    let wasm = fixture!("shapes.wasm");
    let error = Calculator::new(
        wasm,
        Limits {
            memory_bytes: 65_536,
            ..LIMITS
        },
    )
    .unwrap_err();
    assert_eq!(error.code(), "memory-limit");
    let error = Calculator::new(wasm, Limits { fuel: 1, ..LIMITS }).unwrap_err();
    assert_eq!(error.code(), "fuel-exhausted");
    let starved = Calculator::new(
        wasm,
        Limits {
            fuel: 2_000,
            ..LIMITS
        },
    )
    .unwrap();
    let error = starved.calculate(fixture!("shapes.json")).unwrap_err();
    assert_eq!(error, WitnessError::FuelExhausted { fuel: 2_000 });
}
