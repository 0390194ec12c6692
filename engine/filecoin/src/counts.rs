//! How large the circuits are, for every sector size that the published crates register, in this build or not: what a job
//! needs is known before anything of it is read.
//!
//! Counting a circuit of 32 GiB takes minutes, so the counts are kept ([`crate::counted`]);
//! `cargo run --release -p proofkeep-filecoin --features published --example counts` makes them again.

use std::ops::{Add, Mul, Sub};

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use proofkeep_groth16::memory::ticket_bytes;

use crate::counted::COUNTED;
use crate::sector::Seal;

/// Bytes of a point in a parameter file.
const G1: u64 = 96;
const G2: u64 = 192;
/// Bytes of a term of a compiled matrix at most: its wire, and its coefficient if no other is the same; most coefficients
/// are shared.
const TERM: u64 = 8;

/// The counts of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Constraints.
    pub constraints: u64,
    /// Public signals, the constant one among them.
    pub inputs: u64,
    /// The other wires.
    pub others: u64,
    /// Other wires that are in `A` somewhere.
    pub in_a: u64,
    /// Wires that are in `B` somewhere.
    pub in_b: u64,
    /// Terms of the matrices together.
    pub terms: u64,
}

/// The circuits of a sector size. A PoRep's grows by `porep_more` with each challenge of a partition beyond the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of a sector.
    pub size: u64,
    /// A PoRep with one challenge in a partition.
    pub porep: Counts,
    /// One challenge more.
    pub porep_more: Counts,
    /// A partition of an update, where there are updates of this size.
    pub update: Option<Counts>,
    /// A partition of a WindowPoSt.
    pub window: Counts,
    /// A WinningPoSt.
    pub winning: Counts,
}

impl Counts {
    /// Those of a circuit without values.
    ///
    /// # Errors
    /// When it can't be synthesized without.
    pub fn of(circuit: impl Circuit<Scalar>) -> Result<Self, SynthesisError> {
        let mut counter = Counter::default();
        ConstraintSystem::<Scalar>::alloc_input(
            &mut counter,
            || "one",
            || Err(SynthesisError::AssignmentMissing),
        )?;
        circuit.synthesize(&mut counter)?;
        Ok(counter.counts())
    }

    /// Those of a kind and a sector size; `partitions` is for PoReps. `None` when there is no such circuit.
    #[must_use]
    pub fn known(kind: &str, size: u64, partitions: Option<u8>) -> Option<Self> {
        let sizes = COUNTED.iter().find(|sizes| sizes.size == size)?;
        match kind {
            "porep-c2" => {
                let challenges = Seal::challenges(size, partitions);
                Some(sizes.porep + sizes.porep_more * (challenges - 1))
            }
            "snap-update" => sizes.update,
            "window-post" => Some(sizes.window),
            "winning-post" => Some(sizes.winning),
            _ => None,
        }
    }

    /// Points of the domain: a row for each constraint and for each input.
    #[must_use]
    pub fn domain(&self) -> u64 {
        (self.constraints + self.inputs).next_power_of_two()
    }

    /// Wires, the constant one among them.
    #[must_use]
    pub fn wires(&self) -> u64 {
        self.inputs + self.others
    }

    /// Bytes of the parameter file.
    #[must_use]
    pub fn params_bytes(&self) -> u64 {
        let fixed = 3 * G1 + 3 * G2 + 6 * 4;
        let g1 = self.inputs + (self.domain() - 1) + self.others + self.inputs + self.in_a + self.in_b;
        fixed + g1 * G1 + self.in_b * G2
    }

    /// Bytes of the compiled matrices, about.
    #[must_use]
    pub fn matrices_bytes(&self) -> u64 {
        self.terms * TERM
    }

    /// Bytes that proving one partition takes, its key among them and its input left out: as a job's ticket is reckoned,
    /// which goes by the files themselves.
    #[must_use]
    pub fn ticket_bytes(&self, threads: usize) -> u64 {
        ticket_bytes(self.domain(), self.wires(), threads)
            .saturating_add(self.params_bytes())
            .saturating_add(self.matrices_bytes().saturating_mul(2))
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, |one, other| one - other)
    }
}

impl Mul<u64> for Counts {
    type Output = Self;

    fn mul(self, by: u64) -> Self {
        self.with(self, |one, _| one * by)
    }
}

impl Counts {
    fn with(self, other: Self, join: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            constraints: join(self.constraints, other.constraints),
            inputs: join(self.inputs, other.inputs),
            others: join(self.others, other.others),
            in_a: join(self.in_a, other.in_a),
            in_b: join(self.in_b, other.in_b),
            terms: join(self.terms, other.terms),
        }
    }
}

/// Counts constraints and terms, and marks which wires are where.
#[derive(Default)]
struct Counter {
    constraints: u64,
    terms: u64,
    /// Inputs: whether they are in `B`; bellperson's rows for the inputs put them into `A`.
    inputs: Vec<u8>,
    others: Vec<u8>,
}

const IN_A: u8 = 1;
const IN_B: u8 = 2;

impl Counter {
    fn counts(&self) -> Counts {
        let marked = |wires: &[u8], mark: u8| wires.iter().filter(|wire| **wire & mark != 0).count() as u64;
        Counts {
            constraints: self.constraints,
            inputs: self.inputs.len() as u64,
            others: self.others.len() as u64,
            in_a: marked(&self.others, IN_A),
            in_b: marked(&self.inputs, IN_B) + marked(&self.others, IN_B),
            terms: self.terms,
        }
    }

    fn row(&mut self, row: &LinearCombination<Scalar>, mark: u8) {
        for (variable, _) in row.iter() {
            self.terms += 1;
            let wire = match variable.get_unchecked() {
                Index::Input(place) => self.inputs.get_mut(place),
                Index::Aux(place) => self.others.get_mut(place),
            };
            if let Some(wire) = wire {
                *wire |= mark;
            }
        }
    }
}

impl ConstraintSystem<Scalar> for Counter {
    type Root = Self;

    fn new() -> Self {
        Self::default()
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.others.push(0);
        Ok(Variable::new_unchecked(Index::Aux(self.others.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, _value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(0);
        Ok(Variable::new_unchecked(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        self.constraints += 1;
        self.row(&a(LinearCombination::zero()), IN_A);
        self.row(&b(LinearCombination::zero()), IN_B);
        self.row(&c(LinearCombination::zero()), 0);
    }

    fn push_namespace<NR, N>(&mut self, _name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use filecoin_proofs::constants::SUPPORTED_SECTOR_SIZES;

    use super::*;
    use crate::circuit::KINDS;

    #[test]
    fn every_registered_size_has_its_counts_and_the_published_ones_fill_their_domains() {
        for size in SUPPORTED_SECTOR_SIZES {
            for kind in KINDS {
                let Some(counts) = Counts::known(kind, size, None) else {
                    assert_eq!((kind, size), ("snap-update", 1 << 30));
                    continue;
                };
                assert!(counts.constraints > 20_000, "{kind} {size}: {counts:?}");
                assert!(counts.in_a <= counts.others && counts.in_b <= counts.wires());
                let more = counts.ticket_bytes(8);
                assert!(more > counts.params_bytes(), "{kind} {size}");
            }
        }
        assert!(Counts::known("porep-c2", 1 << 13, None).is_none());
        let known = |kind: &str, size: u64| Counts::known(kind, size, None).unwrap().constraints;
        // What the published crates say of themselves.
        assert_eq!(known("window-post", 1 << 35), 125_279_217);
        assert_eq!(known("window-post", 1 << 36), 129_887_900);
        assert_eq!(known("window-post", 1 << 11), 21_866);
        assert_eq!(known("winning-post", 1 << 11), 90_750);
        assert_eq!(known("snap-update", 1 << 11), 1_705_039);
        assert_eq!(known("porep-c2", 1 << 11), 2_687_921);
        for kind in ["porep-c2", "window-post", "snap-update"] {
            let counts = Counts::known(kind, 1 << 35, None).unwrap();
            assert_eq!(counts.domain(), 1 << 27, "{kind}");
        }
    }
}
