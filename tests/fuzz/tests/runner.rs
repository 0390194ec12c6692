//! The fuzzer itself: it finds what it looks for, and finds the same again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use proofkeep_fuzz::alloc::{Counting, peak_of};
use proofkeep_fuzz::{Limit, Outcome, Shape, Target, find, replay, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Believes the number of wires in a witness, as a careless parser would.
fn believes_counts(bytes: &[u8]) -> Outcome {
    let count = bytes
        .get(60..64)
        .map_or(0, |count| u32::from_le_bytes(count.try_into().unwrap()));
    let values: Vec<[u8; 32]> = Vec::with_capacity((count as usize).min(1 << 20));
    // Else the compiler may leave the allocation out.
    std::hint::black_box(values);
    Err(("refused", String::new()))
}

/// Reads past the end of a short file.
fn indexes_blindly(bytes: &[u8]) -> Outcome {
    Err(("refused", bytes[64].to_string()))
}

static BELIEVES_COUNTS: Target = Target {
    bytes_per_byte: 1,
    ..Target::new(
        "believes-counts",
        "witness.wtns",
        Shape::Container,
        believes_counts,
    )
};

static INDEXES_BLINDLY: Target = Target::new(
    "indexes-blindly",
    "witness.wtns",
    Shape::Container,
    indexes_blindly,
);

#[test]
fn a_parser_that_believes_a_count_is_caught_and_caught_again() {
    let failure = run(&BELIEVES_COUNTS, 7, Limit::Iterations(20_000)).unwrap_err();
    assert!(failure.what.contains("bytes"), "{failure}");
    let again = replay(&BELIEVES_COUNTS, 7, failure.iteration.unwrap()).unwrap_err();
    assert_eq!(again.input, failure.input);
}

#[test]
fn a_parser_that_panics_is_caught() {
    let failure = run(&INDEXES_BLINDLY, 7, Limit::Iterations(20_000)).unwrap_err();
    assert!(failure.what.contains("panicked"), "{failure}");
    assert!(
        failure
            .to_string()
            .contains("PROOFKEEP_FUZZ_REPLAY=indexes-blindly:7:"),
        "{failure}"
    );
}

static ACCEPTS_ALL: Target = Target {
    check: |bytes| assert!(bytes.contains(&b'}'), "not closed"),
    ..Target::new("accepts-all", "input.json", Shape::Text, |_| Ok(()))
};

#[test]
fn a_parser_that_accepts_too_much_is_caught() {
    let failure = run(&ACCEPTS_ALL, 7, Limit::Iterations(20_000)).unwrap_err();
    assert!(failure.what.contains("not closed"), "{failure}");
}

#[test]
fn a_run_follows_from_its_seed() {
    let target = find("zkey").unwrap();
    let once = run(target, 3, Limit::Iterations(500)).unwrap();
    let twice = run(target, 3, Limit::Iterations(500)).unwrap();
    assert_eq!(
        (once.accepted, once.refused, once.distinct),
        (twice.accepted, twice.refused, twice.distinct)
    );
}

#[test]
fn allocations_are_counted() {
    let (_, peak) = peak_of(|| std::hint::black_box(vec![1_u8; 10_000]).len());
    assert!((10_000..12_000).contains(&peak), "{peak}");
}
