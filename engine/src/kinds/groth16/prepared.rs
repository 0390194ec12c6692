//! A checked witness that waits for its device, is proved there in pieces, and becomes a proof.

use std::fmt;
use std::ops::ControlFlow;
use std::time::Duration;

use proofkeep_groth16::field::ScalarBytes;
use proofkeep_groth16::matrices::Products;
use proofkeep_groth16::quotient::HBasis;
use proofkeep_groth16::stages::{Piece as Part, PieceResult, ProveError, Prover};
use proofkeep_groth16::vk::Encoding;
use proofkeep_groth16::witness::Witness;
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass, Piece};
use zeroize::Zeroizing;

use super::failure;
use super::key::ResidentKey;
use crate::device::Threads;
use crate::kinds::{Prepared, Proved, Watch};
use crate::lease::Lease;
use crate::params::Pinned;

/// What each piece takes of a dense proof, in permille, in the order of [`Part::ALL`]: the MSM over G2 is the long one.
const SHARES: [u16; 5] = [220, 130, 130, 110, 410];

/// What is known of a witness before it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// It satisfies every constraint.
    Done,
    /// Nothing: without the `.r1cs` nobody knows the constraints whole.
    Impossible,
    /// Nothing, and its last proof was invalid. So its pieces are made twice, to tell a bad witness from a device that
    /// makes mistakes.
    ByProvingTwice,
}

/// A witness, its key and the pieces there are. Nothing of it is shown.
pub struct Ready {
    values: Zeroizing<Vec<ScalarBytes>>,
    digest: Digest,
    public: Vec<u8>,
    key: Pinned<ResidentKey>,
    threads: Threads,
    check: Check,
    /// What the check computed; the first proof takes it.
    products: Option<Products>,
    pieces: Vec<PieceResult>,
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ready")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Ready {
    /// A witness whose wires were counted, and its public signals; `check` says what else is known of it.
    #[must_use]
    pub fn new(
        values: Zeroizing<Vec<ScalarBytes>>,
        digest: Digest,
        public: Vec<u8>,
        key: Pinned<ResidentKey>,
        threads: Threads,
        check: Check,
    ) -> Self {
        Self {
            values,
            digest,
            public,
            key,
            threads,
            check,
            products: None,
            pieces: Vec::new(),
        }
    }

    /// With what the check of this witness against this key computed, so that the prover doesn't check it again.
    #[must_use]
    pub fn with_products(self, products: Products) -> Self {
        Self {
            products: Some(products),
            ..self
        }
    }

    /// Makes every piece again, on the processor, and holds those of the device against them.
    fn make_again(&self, pieces: &[PieceResult], watch: &dyn Watch) -> Result<(), Failure> {
        let control = Slices::new(&[], watch);
        let mut on_piece = |result: PieceResult, _| {
            control.finished(result.piece());
            control.edge()
        };
        let slices = |done: u64, total: u64| control.slice(done, total);
        let again = Prover::new(&self.key.key, self.threads.backend().clone())
            .prove_pieces(&self.witness()?, &[], &mut on_piece, &slices)
            .map_err(|error: ProveError| failure::prove(&error, watch))?;
        let differs = |part: &Part| {
            let of = |results: &[PieceResult]| results.iter().find(|one| one.piece() == *part).copied();
            of(pieces) != of(&again)
        };
        let names: Vec<&str> = Part::ALL.into_iter().filter(differs).map(Part::name).collect();
        if names.is_empty() {
            return Ok(());
        }
        // As an invalid proof, so that the pieces that were saved go too.
        let detail = format!(
            "made twice, the proof's {} came out differently: the device or the memory makes mistakes",
            names.join(", ")
        );
        Err(Failure::coded(
            FailureClass::InvalidProof,
            "pieces-differ",
            detail,
        ))
    }

    /// The proof doesn't hold. Where the witness wasn't checked, that is the likely reason.
    fn invalid(&self, failure: Failure) -> Failure {
        match self.check {
            Check::Done if self.key.key.h_basis() == HBasis::Powers => Failure::coded(
                failure.class,
                failure.code,
                format!(
                    "{}; the witness satisfies the circuit, and parameters don't hold theirs: if other witnesses fail \
                     too, they are those of another circuit with the same counts, or have its public signals in another \
                     order",
                    failure.detail
                ),
            ),
            Check::Done => failure,
            Check::Impossible => Failure::coded(
                failure.class,
                failure.code,
                format!(
                    "{}; the circuit has no .r1cs, so the witness could not be checked",
                    failure.detail
                ),
            ),
            Check::ByProvingTwice => Failure::new(
                FailureClass::Unsatisfied,
                "no valid proof comes from this witness: it was proved more than once, on different paths, with the \
                 same result, so it doesn't satisfy the circuit; without the .r1cs nothing better is known, register \
                 the circuit with it to learn which constraint fails",
            ),
        }
    }

    fn witness(&self) -> Result<Witness<'_>, Failure> {
        Witness::new(&self.values)
            .map_err(|error| Failure::new(FailureClass::InputInvalid, error.to_string()))
    }
}

impl Prepared for Ready {
    fn witness(&self) -> Digest {
        self.digest
    }

    fn public(&self) -> &[u8] {
        &self.public
    }

    fn key(&self) -> Digest {
        self.key.digest
    }

    fn prove(
        &mut self,
        lease: &Lease,
        known: &[Piece],
        sink: &mut dyn FnMut(Piece),
        watch: &dyn Watch,
    ) -> Result<Proved, Failure> {
        let reused = reusable(known);
        let proved = Proved {
            reused: reused.iter().map(|(piece, _)| piece.name.clone()).collect(),
            saved_ms: reused.iter().map(|(piece, _)| piece.millis).sum(),
        };
        let known: Vec<PieceResult> = reused.into_iter().map(|(_, result)| result).collect();
        let control = Slices::new(&known, watch);
        let prover = Prover::new(&self.key.key, lease.backend());
        let mut on_piece = |result: PieceResult, elapsed: Duration| {
            control.finished(result.piece());
            sink(Piece {
                name: result.piece().name().to_owned(),
                bytes: result.to_bytes(),
                millis: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                attempt: 0,
            });
            control.edge()
        };
        let slices = |done: u64, total: u64| control.slice(done, total);
        let products = self.products.take();
        let witness = self.witness()?;
        let made = match products {
            Some(products) => prover.prove_checked(&witness, products, &known, &mut on_piece, &slices),
            None => prover.prove_pieces(&witness, &known, &mut on_piece, &slices),
        };
        let pieces = made.map_err(|error: ProveError| failure::prove(&error, watch))?;
        if self.check == Check::ByProvingTwice {
            self.make_again(&pieces, watch)?;
        }
        self.pieces = pieces;
        // Nothing needs the witness any more, and the next partition has the device while this one is assembled.
        self.values = Zeroizing::default();
        Ok(proved)
    }

    fn finish(self: Box<Self>, watch: &dyn Watch) -> Result<Vec<u8>, Failure> {
        watch.progress(0);
        let prover = Prover::new(&self.key.key, self.threads.backend().clone());
        let proof = prover
            .assemble_random(&self.pieces)
            .map_err(|error| failure::assemble(&error))?;
        let bytes = proof.to_bytes(Encoding::Compressed);
        super::verify_bytes(self.key.key.vk(), &self.public, &bytes)
            .map_err(|failure| self.invalid(failure))?;
        Ok(bytes)
    }
}

/// The stored pieces that are points of the right group; the others are made again.
fn reusable(known: &[Piece]) -> Vec<(&Piece, PieceResult)> {
    let mut found: Vec<(&Piece, PieceResult)> = Vec::new();
    for piece in known {
        let part = Part::from_name(&piece.name);
        let result = part.and_then(|part| PieceResult::from_bytes(part, &piece.bytes).ok());
        if let Some(result) = result
            && found.iter().all(|(_, other)| other.piece() != result.piece())
        {
            found.push((piece, result));
        }
    }
    found
}

/// Turns slices of pieces into progress of the whole, and asks whether to stop.
struct Slices<'w> {
    /// Permille of what is finished, and the share of what is in work.
    state: parking_lot::Mutex<(u16, Vec<Part>)>,
    watch: &'w dyn Watch,
}

impl<'w> Slices<'w> {
    fn new(known: &[PieceResult], watch: &'w dyn Watch) -> Self {
        let missing: Vec<Part> = Part::ALL
            .into_iter()
            .filter(|part| known.iter().all(|known| known.piece() != *part))
            .collect();
        let done = 1000 - missing.iter().map(|part| share(*part)).sum::<u16>();
        Self {
            state: parking_lot::Mutex::new((done, missing)),
            watch,
        }
    }

    fn finished(&self, part: Part) {
        let mut state = self.state.lock();
        state.1.retain(|missing| *missing != part);
        state.0 = 1000 - state.1.iter().map(|part| share(*part)).sum::<u16>();
        self.watch.progress(state.0);
    }

    fn slice(&self, done: u64, total: u64) -> ControlFlow<()> {
        let permille = {
            let state = self.state.lock();
            let share = state.1.first().map_or(0, |part| u64::from(share(*part)));
            let within = (share * done.min(total)).checked_div(total).unwrap_or(0);
            state
                .0
                .saturating_add(u16::try_from(within).unwrap_or(0))
                .min(1000)
        };
        self.watch.progress(permille);
        self.edge()
    }

    fn edge(&self) -> ControlFlow<()> {
        if self.watch.stopped().is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn share(part: Part) -> u16 {
    Part::ALL
        .iter()
        .position(|other| *other == part)
        .map_or(0, |place| SHARES[place])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        assert_eq!(SHARES.iter().sum::<u16>(), 1000);
    }

    #[test]
    fn pieces_that_are_no_points_or_come_twice_are_not_reused() {
        let generator = |name: &str, bytes: &[u8]| Piece {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
            millis: 7,
            attempt: 1,
        };
        let point = hex::decode(
            "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
        )
        .unwrap();
        let known = [
            generator("A", &point),
            generator("A", &point),
            generator("B2", &point),
            generator("H", &[0; 48]),
            generator("nothing", &point),
            generator("L", &point),
        ];
        let found: Vec<_> = reusable(&known)
            .iter()
            .map(|(piece, _)| piece.name.clone())
            .collect();
        assert_eq!(found, ["A", "L"]);
    }
}
