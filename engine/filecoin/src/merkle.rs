//! The shape of a Merkle path: its length and the arity of each step, which the published code takes for granted.

use generic_array::typenum::Unsigned;
use storage_proofs_core::merkle::{MerkleProofTrait, base_path_length};

use crate::invalid::Invalid;

/// Checks that a path goes from a leaf of a tree over `leaves` to its root and that each step has the hashes of its
/// arity.
///
/// # Errors
/// `path-shape`, with the step.
pub fn check_shape<P: MerkleProofTrait>(field: &str, proof: &P, leaves: usize) -> Result<(), Invalid> {
    let path = proof.path();
    let expected = proof.expected_len(leaves);
    if path.len() != expected {
        return Err(Invalid::new(
            "path-shape",
            format!("{field}.path"),
            format!("a path of {expected} steps for this sector size"),
            format!("one of {}", path.len()),
        ));
    }
    let base = base_path_length::<P::Arity, P::SubTreeArity, P::TopTreeArity>(leaves);
    for (step, (hashes, index)) in path.iter().enumerate() {
        let arity = match step.checked_sub(base) {
            None => P::Arity::to_usize(),
            Some(0) => P::SubTreeArity::to_usize(),
            Some(_) => P::TopTreeArity::to_usize(),
        };
        if hashes.len() + 1 != arity || *index >= arity {
            return Err(Invalid::new(
                "path-shape",
                format!("{field}.path[{step}]"),
                format!("{} hashes and an index below {arity}", arity.saturating_sub(1)),
                format!("{} and {index}", hashes.len()),
            ));
        }
    }
    Ok(())
}
