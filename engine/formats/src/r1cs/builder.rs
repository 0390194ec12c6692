//! Writes constraint systems, for circuits that no compiler made.

use crate::container::{file_header, push_section};
use crate::field::R_LE;

/// A term: a wire and a coefficient, little-endian.
pub type Term = (u32, [u8; 32]);

/// Collects constraints and writes them as a `.r1cs` file.
///
/// Nothing is checked here, so that a test can also write what must be refused.
#[derive(Clone, Debug)]
pub struct R1csBuilder {
    wires: u32,
    outputs: u32,
    public_inputs: u32,
    private_inputs: u32,
    constraints: u32,
    body: Vec<u8>,
}

impl R1csBuilder {
    /// A system with `wires` wires, the constant among them, and no constraint yet.
    pub fn new(wires: u32, outputs: u32, public_inputs: u32, private_inputs: u32) -> Self {
        R1csBuilder {
            wires,
            outputs,
            public_inputs,
            private_inputs,
            constraints: 0,
            body: Vec::new(),
        }
    }

    /// Adds ⟨a,w⟩·⟨b,w⟩ = ⟨c,w⟩.
    pub fn constraint(&mut self, a: &[Term], b: &[Term], c: &[Term]) -> &mut Self {
        for terms in [a, b, c] {
            self.body.extend_from_slice(&(terms.len() as u32).to_le_bytes());
            for (wire, coefficient) in terms {
                self.body.extend_from_slice(&wire.to_le_bytes());
                self.body.extend_from_slice(coefficient);
            }
        }
        self.constraints += 1;
        self
    }

    /// The file. Wire i gets label i.
    pub fn build(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend_from_slice(&32_u32.to_le_bytes());
        header.extend_from_slice(&R_LE);
        for count in [self.wires, self.outputs, self.public_inputs, self.private_inputs] {
            header.extend_from_slice(&count.to_le_bytes());
        }
        header.extend_from_slice(&u64::from(self.wires).to_le_bytes());
        header.extend_from_slice(&self.constraints.to_le_bytes());
        let labels: Vec<u8> = (0..u64::from(self.wires)).flat_map(u64::to_le_bytes).collect();

        let mut out = file_header("r1cs", 1, 3);
        push_section(&mut out, super::HEADER, &header);
        push_section(&mut out, super::CONSTRAINTS, &self.body);
        push_section(&mut out, super::WIRE_TO_LABEL, &labels);
        out
    }
}
