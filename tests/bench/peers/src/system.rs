//! A constraint system with its witness, recorded once and given to every prover: all of them prove the same.

use std::sync::Arc;

use bellpepper_core::{ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;

/// The terms of one linear combination: wire and coefficient.
pub type Terms = Vec<(u32, Scalar)>;

/// Constraints and a witness. Wire 0 is the constant one, then come the public signals, then the others.
pub struct System {
    /// Public signals, without the constant.
    pub public: usize,
    /// The value of each wire.
    pub values: Vec<Scalar>,
    /// `A`, `B` and `C` of each constraint.
    pub rows: Vec<[Terms; 3]>,
}

impl System {
    /// Records a circuit that has its values.
    pub fn of(circuit: impl bellpepper_core::Circuit<Scalar>) -> Arc<Self> {
        let mut recorder = <Recorder as ConstraintSystem<Scalar>>::new();
        circuit.synthesize(&mut recorder).unwrap();
        let Recorder {
            mut inputs,
            others,
            rows,
        } = recorder;
        let first = inputs.len() as u32;
        let wire = |variable: Variable| match variable.get_unchecked() {
            Index::Input(index) => index as u32,
            Index::Aux(index) => first + index as u32,
        };
        let terms = |combination: &LinearCombination<Scalar>| {
            combination
                .iter()
                .map(|(variable, coefficient)| (wire(variable), *coefficient))
                .collect()
        };
        let rows = rows.iter().map(|row| row.each_ref().map(terms)).collect();
        let public = inputs.len() - 1;
        inputs.extend(others);
        Arc::new(Self {
            public,
            values: inputs,
            rows,
        })
    }

    /// The exponent of the domain: the constraints, and a row for the constant and each public signal.
    pub fn log2(&self) -> u32 {
        (self.rows.len() + self.public + 1)
            .next_power_of_two()
            .trailing_zeros()
    }

    /// The same as a circuit.
    pub fn replay(self: &Arc<Self>) -> Replay {
        Replay(Arc::clone(self))
    }
}

#[derive(Default)]
struct Recorder {
    inputs: Vec<Scalar>,
    others: Vec<Scalar>,
    rows: Vec<[LinearCombination<Scalar>; 3]>,
}

impl ConstraintSystem<Scalar> for Recorder {
    type Root = Self;

    fn new() -> Self {
        Self {
            inputs: vec![Scalar::from(1)],
            ..Self::default()
        }
    }

    fn alloc<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.others.push(value()?);
        Ok(Variable::new_unchecked(Index::Aux(self.others.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _annotation: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
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
        let zero = LinearCombination::zero;
        self.rows.push([a(zero()), b(zero()), c(zero())]);
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

/// A recorded system as a circuit of bellperson and of bellman.
#[derive(Clone)]
pub struct Replay(Arc<System>);

macro_rules! replay {
    ($peer:ident) => {
        impl $peer::Circuit<Scalar> for Replay {
            fn synthesize<CS: $peer::ConstraintSystem<Scalar>>(
                self,
                cs: &mut CS,
            ) -> Result<(), $peer::SynthesisError> {
                let system = &*self.0;
                let mut wires = Vec::with_capacity(system.values.len());
                wires.push(CS::one());
                let (inputs, others) = system.values[1..].split_at(system.public);
                for value in inputs {
                    wires.push(cs.alloc_input(|| "", || Ok(*value))?);
                }
                for value in others {
                    wires.push(cs.alloc(|| "", || Ok(*value))?);
                }
                for [a, b, c] in &system.rows {
                    let sum = |zero, terms: &Terms| {
                        terms.iter().fold(
                            zero,
                            |sum: $peer::LinearCombination<Scalar>, (wire, coefficient)| {
                                sum + (*coefficient, wires[*wire as usize])
                            },
                        )
                    };
                    cs.enforce(|| "", |lc| sum(lc, a), |lc| sum(lc, b), |lc| sum(lc, c));
                }
                Ok(())
            }
        }
    };
}

replay!(bellpepper_core);
replay!(bellman);
