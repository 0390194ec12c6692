//! Products in the fields, against blst's and ark's, in cycles, and against what the processor could do at most.

use std::hint::black_box;

use ark_bls12_381::{Fq, Fr};
use ark_ff::UniformRand;
use blst::{blst_fp, blst_fp_mul, blst_fr, blst_fr_mul};
use proofkeep_ifma::{Ifma, rate};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::cost::{Rounds, round};

/// Products in one round.
const TIMES: u64 = 20_000_000;

/// Work of one kind: answers how many products it did.
type Work = (String, u64, Box<dyn Fn() -> u64>);

/// Prints a table, medians of rounds in turn.
pub fn run(rounds: usize) {
    let ifma = Ifma::detect();
    let mut entrants: Vec<Work> = vec![("one cycle".to_owned(), 0, Box::new(|| cycles(50 * TIMES)))];
    if let Some(ifma) = ifma {
        entrants.push((
            "vpmadd52".to_owned(),
            rate::LANES,
            Box::new(move || rate::bound(ifma, TIMES)),
        ));
        entrants.push((
            "base field, proofkeep (ifma)".to_owned(),
            rate::IN_BASE_FIELD,
            Box::new(move || rate::base_field(ifma, TIMES / rate::LANES)),
        ));
        entrants.push((
            "scalar field, proofkeep (ifma)".to_owned(),
            rate::IN_SCALAR_FIELD,
            Box::new(move || rate::scalar_field(ifma, TIMES / rate::LANES)),
        ));
    }
    entrants.push(("base field, blst".to_owned(), 0, Box::new(blst_base)));
    entrants.push(("base field, ark-ff 0.5".to_owned(), 0, Box::new(in_ark::<Fq>)));
    entrants.push(("scalar field, blst".to_owned(), 0, Box::new(blst_scalar)));
    entrants.push(("scalar field, ark-ff 0.5".to_owned(), 0, Box::new(in_ark::<Fr>)));
    let mut costs = vec![(Rounds::default(), 0); entrants.len()];
    for _ in 0..rounds {
        for ((_, _, work), (costs, done)) in entrants.iter().zip(&mut costs) {
            let (cost, count) = round(work);
            costs.0.push(cost);
            *done = count;
        }
    }
    let seconds = |place: usize| costs[place].0.of(|cost| cost.processor)[1] / costs[place].1 as f64;
    let cycle = seconds(0);
    println!(
        "\n| product, one element | processor, ns | cycles | of the bound |\n| --- | ---: | ---: | ---: |"
    );
    for (place, (name, instructions, _)) in entrants.iter().enumerate().skip(1) {
        let each = seconds(place);
        let share = match (*instructions, ifma) {
            (0, _) | (_, None) => String::new(),
            // The bound itself, of an instruction.
            (rate::LANES, _) => "100 %".to_owned(),
            (count, _) => {
                let least = seconds(1) * count as f64 / rate::LANES as f64;
                format!("{:.0} %", 100.0 * least / each)
            }
        };
        println!("| {name} | {:.3} | {:.2} | {share} |", each * 1e9, each / cycle);
    }
}

/// Products of words, each of the result before: three cycles each on everything that has IFMA. (Additions won't do:
/// newer processors do several of a chain in one cycle.)
fn cycles(times: u64) -> u64 {
    let mut product = 3u64;
    for _ in 0..times / 12 {
        // SAFETY: multiplies a register, nothing else.
        unsafe {
            std::arch::asm!("imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", "imul {0}, {0}", inout(reg) product);
        }
    }
    black_box(product);
    times / 12 * 12
}

/// Four chains in turn, so that it is the rate that is measured, not how long one takes.
macro_rules! in_blst {
    ($name:ident, $element:ident, $product:ident, $words:literal) => {
        fn $name() -> u64 {
            let factor = $element { l: [3; $words] };
            let mut chains = [$element { l: [5; $words] }; 4];
            for _ in 0..TIMES / 4 {
                for value in &mut chains {
                    // SAFETY: all are elements below the prime, and the result may be one of the factors.
                    unsafe { $product(value, value, black_box(&factor)) };
                }
            }
            black_box(chains);
            TIMES / 4 * 4
        }
    };
}

in_blst!(blst_base, blst_fp, blst_fp_mul, 6);
in_blst!(blst_scalar, blst_fr, blst_fr_mul, 4);

fn in_ark<F: ark_ff::Field + UniformRand>() -> u64 {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let factor = F::rand(&mut random);
    let mut chains: [F; 4] = std::array::from_fn(|_| F::rand(&mut random));
    for _ in 0..TIMES / 4 {
        for value in &mut chains {
            *value *= black_box(&factor);
        }
    }
    black_box(chains);
    TIMES / 4 * 4
}
