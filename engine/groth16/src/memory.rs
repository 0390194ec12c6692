//! How much memory a proof takes, before it is started.

use crate::curve::{Curve, G1, G2};
use crate::msm::thread_bytes;
use crate::setup::{multiples_bytes, setup_batch, table_bytes};
use crate::sums::CHUNK as SUMS_CHUNK;

/// What a prover allocates whatever the circuit: stacks, lists, the allocator's own.
pub const SLACK: u64 = 32 << 20;

/// Bytes of a witness: 32 for each wire.
pub fn witness_bytes(wires: u64) -> u64 {
    32 * wires
}

/// Bytes that proving takes beside witness and key: three vectors over the domain for the quotient, later what the
/// largest MSM takes, with whichever backend takes more.
pub fn working_set(domain: u64, wires: u64, threads: usize) -> u64 {
    let quotient = 3 * 32 * domain;
    quotient
        .max(blst_msm(domain, wires, threads))
        .max(ifma_bytes(domain, wires, threads))
}

/// Lists of pointers, and buckets for each thread.
fn blst_msm(domain: u64, wires: u64, threads: usize) -> u64 {
    // Two pointers for each term, first in a list for each thread, then joined; the H MSM has its scalars beside them.
    let lists = (32 * domain.max(wires) + 32 * domain).max(32 * wires);
    let buckets = threads.max(1) as u64 * thread_bytes(domain.max(wires) as usize, threads);
    lists + buckets
}

/// The transforms; later magnitudes of scalars, and lists and buckets for each thread; the H MSM has its scalars beside them.
#[cfg(target_arch = "x86_64")]
fn ifma_bytes(domain: u64, wires: u64, threads: usize) -> u64 {
    if proofkeep_ifma::Ifma::detect().is_none() {
        return 0;
    }
    // Three lists of 40 bytes an element: what they are made of goes before, the result comes when one is gone.
    let quotient = 3 * 40 * domain;
    let h = 32 * domain + proofkeep_ifma::memory::<proofkeep_ifma::G1>(domain as usize, threads);
    quotient.max(h).max(proofkeep_ifma::memory::<proofkeep_ifma::G2>(
        wires as usize,
        threads,
    ))
}

#[cfg(not(target_arch = "x86_64"))]
fn ifma_bytes(_domain: u64, _wires: u64, _threads: usize) -> u64 {
    0
}

/// Witness, working set and slack: what a ticket for one proof asks for, when the key is resident. The caller adds the
/// input's bytes and the limit of the witness calculator.
pub fn ticket_bytes(domain: u64, wires: u64, threads: usize) -> u64 {
    let four_vectors = 4 * 32 * domain;
    witness_bytes(wires) + four_vectors.max(working_set(domain, wires, threads)) + SLACK
}

/// The counts that a key's size follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCounts {
    /// Wires, the constant one among them.
    pub wires: u64,
    /// Public signals.
    pub public: u64,
    /// Points of the domain.
    pub domain: u64,
    /// Terms of the matrices `A`, `B` and `C` together.
    pub terms: u64,
}

/// Bytes of a term of a matrix: its wire and its place, and its coefficient if no other is the same.
pub const TERM_BYTES: u64 = 8 + 32;

/// Bytes of a resident key at most: all points (mapped or not), index lists, matrices with every coefficient distinct,
/// and the domain's factors.
pub fn key_bytes(counts: KeyCounts) -> u64 {
    let (g1, g2) = (G1::AFFINE_BYTES as u64, G2::AFFINE_BYTES as u64);
    let KeyCounts {
        wires,
        public,
        domain,
        terms,
    } = counts;
    let points = g1 * (2 * wires + wires.saturating_sub(public) + public + 1 + domain) + g2 * wires;
    let lists = 4 * 4 * wires;
    points + lists + matrix_bytes(domain, terms) + 64 * domain
}

fn matrix_bytes(domain: u64, terms: u64) -> u64 {
    3 * 4 * (domain + 1) + TERM_BYTES * terms
}

/// Bytes that making a key takes at most, the mapped `.r1cs` and the written file not included: the columns of A, B and
/// C at τ and what they come to for IC and C, two sets of Lagrange polynomials, the matrices while they are compiled
/// and after, the tables of multiples, and a batch of points, with what four threads add up with. That of more threads,
/// about 3 MiB for each, is in the slack.
pub fn setup_bytes(counts: KeyCounts) -> u64 {
    let KeyCounts {
        wires, domain, terms, ..
    } = counts;
    let scalars = 32 * (5 * wires + 2 * domain);
    let tables = table_bytes::<G1>(3 * wires + domain) + table_bytes::<G2>(wires);
    scalars + 2 * matrix_bytes(domain, terms) + tables + multiples::<G2>(wires, 4) + SLACK
}

/// Bytes that [`crate::setup::generate_parameters`] takes at most beside the matrices: the columns of A and B at τ and
/// what they come to with C, the Lagrange polynomials, lists of wires, the larger table of multiples, and a batch of
/// points for each thread.
pub fn parameters_bytes(domain: u64, wires: u64, threads: usize) -> u64 {
    let scalars = 32 * (3 * wires + domain) + 2 * 4 * wires;
    let (in_g1, in_g2) = (3 * wires + domain, wires);
    let tables = table_bytes::<G1>(in_g1).max(table_bytes::<G2>(in_g2));
    scalars + tables + multiples::<G2>(in_g2.min(in_g1), threads) + SLACK
}

/// A batch of multiples: scalars, entries, the points and their encoding, and what each thread adds up with.
fn multiples<C: Curve>(of: u64, threads: usize) -> u64 {
    let batch = setup_batch(threads.max(1)) as u64;
    let threads = threads.max(1) as u64;
    batch * (32 + 2 * C::AFFINE_BYTES as u64) + multiples_bytes(batch, of) + threads * adder_bytes()
}

#[cfg(target_arch = "x86_64")]
fn adder_bytes() -> u64 {
    proofkeep_ifma::Adder::<proofkeep_ifma::G2>::bytes(SUMS_CHUNK)
}

#[cfg(not(target_arch = "x86_64"))]
fn adder_bytes() -> u64 {
    // Points before and after they are made affine.
    (512 * (G2::AFFINE_BYTES + 2 * size_of::<<G2 as Curve>::Point>())) as u64
}
