//! circom's binary files, taken apart and put together again with one thing wrong.

use blstrs::{G1Affine, G2Affine};
use num_bigint::BigUint;
use proofkeep_tests::fixtures;

/// The order of BLS12-381's groups, little-endian.
pub fn prime_r() -> [u8; 32] {
    proofkeep_formats::field::R_LE
}

/// The prime of circom's usual curve, little-endian.
pub const BN254: [u8; 32] = [
    0x01, 0x00, 0x00, 0xf0, 0x93, 0xf5, 0xe1, 0x43, 0x91, 0x70, 0xb9, 0x79, 0x48, 0xe8, 0x33, 0x28, 0x5d,
    0x58, 0x81, 0x81, 0xb6, 0x45, 0x50, 0xb8, 0x29, 0xa0, 0x31, 0xe1, 0x72, 0x4e, 0x64, 0x30,
];

/// A file: eight bytes of magic and version, then sections.
#[derive(Clone)]
pub struct File {
    start: [u8; 8],
    pub sections: Vec<(u32, Vec<u8>)>,
}

impl File {
    /// A file of a fixture.
    pub fn fixture(name: &str, file: &str) -> Self {
        let bytes = fixtures::read(name, file);
        let mut sections = Vec::new();
        let mut rest = &bytes[12..];
        while !rest.is_empty() {
            let id = u32::from_le_bytes(rest[..4].try_into().unwrap());
            let length = u64::from_le_bytes(rest[4..12].try_into().unwrap()) as usize;
            sections.push((id, rest[12..12 + length].to_vec()));
            rest = &rest[12 + length..];
        }
        Self {
            start: bytes[..8].try_into().unwrap(),
            sections,
        }
    }

    /// A section's bytes.
    pub fn section(&mut self, id: u32) -> &mut Vec<u8> {
        let found = self.sections.iter_mut().find(|(found, _)| *found == id);
        found
            .map(|(_, bytes)| bytes)
            .unwrap_or_else(|| panic!("there is no section {id}"))
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = self.start.to_vec();
        out.extend_from_slice(&(self.sections.len() as u32).to_le_bytes());
        for (id, bytes) in &self.sections {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    }

    /// Its bytes, after a change.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Vec<u8> {
        change(&mut self);
        self.bytes()
    }

    /// The prime of the scalar field becomes BN254's.
    pub fn of_bn254(self) -> Vec<u8> {
        let mut bytes = self.bytes();
        let at = bytes.windows(32).position(|window| window == prime_r()).unwrap();
        bytes[at..at + 32].copy_from_slice(&BN254);
        bytes
    }

    /// Its last `count` bytes are gone.
    pub fn cut(self, count: usize) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes.truncate(bytes.len() - count);
        bytes
    }

    /// Without a section.
    pub fn without(mut self, id: u32) -> Vec<u8> {
        self.sections.retain(|(found, _)| *found != id);
        self.bytes()
    }

    /// With a section twice.
    pub fn twice(mut self, id: u32) -> Vec<u8> {
        let section = (id, self.section(id).clone());
        self.sections.push(section);
        self.bytes()
    }

    /// A section says that it has 5 GiB.
    pub fn of_five_gibibytes(self, id: u32) -> Vec<u8> {
        let mut bytes = self.bytes();
        let mut at = 12;
        for (found, section) in &self.sections {
            if *found == id {
                bytes[at + 4..at + 12].copy_from_slice(&(5_u64 << 30).to_le_bytes());
                return bytes;
            }
            at += 12 + section.len();
        }
        panic!("there is no section {id}")
    }

    /// The number of sections is far too large.
    pub fn of_many_sections(self) -> Vec<u8> {
        let mut bytes = self.bytes();
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes
    }

    /// A `.zkey` whose setup was never finished: δ₂ = γ₂, and δ₁ as it would be then.
    pub fn unfinished(self) -> Vec<u8> {
        self.with(|file| {
            let header = file.section(2);
            let delta2 = header.len() - 192;
            let gamma2 = delta2 - 96 - 192;
            header.copy_within(gamma2..gamma2 + 192, delta2);
        })
    }
}

/// A point of G1 that is on the curve and not of order r, as a `.zkey` stores it.
pub fn outside_g1() -> Vec<u8> {
    let point = (1..=255_u8).find_map(|x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        let point = Option::<G1Affine>::from(G1Affine::from_compressed_unchecked(&bytes))?;
        (!bool::from(point.is_torsion_free())).then(|| point.to_uncompressed())
    });
    montgomery(&point.unwrap())
}

/// The same of G2.
pub fn outside_g2() -> Vec<u8> {
    let point = (1..=255_u8).find_map(|x| {
        let mut bytes = [0; 96];
        (bytes[0], bytes[95]) = (0x80, x);
        let point = Option::<G2Affine>::from(G2Affine::from_compressed_unchecked(&bytes))?;
        (!bool::from(point.is_torsion_free())).then(|| point.to_uncompressed())
    });
    let bytes = point.unwrap();
    // ZCash writes c1 before c0, a .zkey c0 before c1.
    let swapped: Vec<u8> = bytes
        .chunks(96)
        .flat_map(|pair| [&pair[48..], &pair[..48]].concat())
        .collect();
    montgomery(&swapped)
}

/// Coordinates of 48 bytes, big-endian, as little-endian Montgomery limbs.
fn montgomery(coordinates: &[u8]) -> Vec<u8> {
    let q = BigUint::from_bytes_le(&proofkeep_formats::field::Q_LE);
    let shift = BigUint::from(1_u8) << 384;
    let convert = |bytes: &[u8]| {
        let shifted: BigUint = BigUint::from_bytes_be(bytes) * &shift % &q;
        let mut limbs = shifted.to_bytes_le();
        limbs.resize(48, 0);
        limbs
    };
    coordinates.chunks(48).flat_map(convert).collect()
}
