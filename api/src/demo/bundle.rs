//! The circuit that the demo proves, built into the binary: SHA-256 of a message of 32 bytes.

use std::io::{self, Read as _};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// `circuit.r1cs`, compressed by gzip.
const R1CS: &[u8] = include_bytes!("../../../tests/fixtures/circom/sha256/circuit.r1cs.gz");

/// A witness for each message, compressed by gzip. circom's own calculator is not built in: its licence is another one.
const WITNESSES: [&[u8]; 4] = [
    include_bytes!("../../../tests/fixtures/circom/sha256/demo/1.wtns.gz"),
    include_bytes!("../../../tests/fixtures/circom/sha256/demo/2.wtns.gz"),
    include_bytes!("../../../tests/fixtures/circom/sha256/demo/3.wtns.gz"),
    include_bytes!("../../../tests/fixtures/circom/sha256/demo/4.wtns.gz"),
];

/// What is hashed, 32 bytes each.
pub const MESSAGES: [&str; 4] = [
    "proofkeep keeps every last proof",
    "what was acknowledged stays done",
    "a killed daemon resumes its work",
    "the same four proofs, every time",
];

/// The constraints, as circom wrote them.
pub fn r1cs() -> io::Result<Vec<u8>> {
    unpack(R1CS)
}

/// The `witness.wtns` of each message, in their order.
pub fn witnesses() -> io::Result<Vec<Vec<u8>>> {
    WITNESSES.into_iter().map(unpack).collect()
}

fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The public signals that a proof about a message must have: the two halves of its digest, as decimal numbers.
pub fn signals(message: &str) -> [String; 2] {
    let digest: [u8; 32] = Sha256::digest(message).into();
    let half = |part: &[u8]| {
        part.iter()
            .fold(0u128, |value, byte| value << 8 | u128::from(*byte))
            .to_string()
    };
    [half(&digest[..16]), half(&digest[16..])]
}

/// The digest, for people.
pub fn digest(message: &str) -> String {
    hex::encode(Sha256::digest(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_have_the_length_that_the_circuit_takes() {
        for message in MESSAGES {
            assert_eq!(message.len(), 32, "{message}");
        }
    }

    #[test]
    fn the_bundled_witnesses_are_of_the_bundled_circuit_and_of_the_messages() {
        let bytes = r1cs().unwrap();
        let header = proofkeep_formats::r1cs::header(&bytes).unwrap();
        assert_eq!(header.public(), 2);
        for (message, bytes) in MESSAGES.iter().zip(witnesses().unwrap()) {
            let witness = proofkeep_formats::wtns::Witness::parse(&bytes).unwrap();
            assert_eq!(witness.len(), header.wires as usize);
            for (index, expected) in signals(message).iter().enumerate() {
                assert_eq!(
                    proofkeep_formats::field::to_decimal(witness.get(1 + index)),
                    *expected,
                    "{message}"
                );
            }
        }
    }
}
