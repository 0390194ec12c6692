//! Mutation of iden3's binary files: half the time the bytes, half the time the structure that they spell.

use crate::Rng;

/// Numbers at which parsers go wrong.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    31,
    32,
    33,
    48,
    255,
    256,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64 - 1,
    u32::MAX as u64,
    1 << 32,
    5 << 30,
    1 << 63,
    u64::MAX,
];

/// Keeps mutants small, so that time goes into many and not into large ones.
const MOST: usize = 1 << 20;

/// Changes a file in one place, or with falling odds in more. `other` is another file of the kind, to take parts from.
pub(crate) fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.few() {
        match File::split(bytes) {
            Some(mut file) if !rng.one_in(3) => {
                file.mutate(rng, other);
                *bytes = file.join();
            }
            _ => flat(rng, bytes, other),
        }
        bytes.truncate(MOST);
    }
}

/// Changes bytes in one place, or with falling odds in more.
pub(crate) fn mutate_flat(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.few() {
        flat(rng, bytes, other);
        bytes.truncate(MOST);
    }
}

/// Changes bytes in one place, or with falling odds in more, and leaves the length as it is.
pub(crate) fn patch(rng: &mut Rng, bytes: &mut [u8]) {
    for _ in 0..rng.few() {
        let at = rng.below(bytes.len());
        let Some(byte) = bytes.get_mut(at) else { return };
        match rng.below(3) {
            0 => *byte ^= 1 << rng.below(8),
            1 => *byte = rng.next_u64() as u8,
            _ => *byte = byte.wrapping_add(if rng.one_in(2) { 1 } else { 0xff }),
        }
    }
}

/// Changes bytes without a thought for what they mean.
pub(crate) fn flat(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        bytes.extend_from_slice(other);
        return;
    }
    let at = rng.below(bytes.len());
    match rng.below(9) {
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes[at] = rng.next_u64() as u8,
        3 => number(rng, &mut bytes[at..], 4),
        4 => number(rng, &mut bytes[at..], 8),
        5 => bytes.truncate(at),
        6 => {
            let end = at + rng.below(bytes.len() - at);
            bytes.drain(at..end);
        }
        7 => {
            let end = at + rng.below((bytes.len() - at).min(256));
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        _ => {
            let from = rng.below(other.len());
            let to = from + rng.below((other.len() - from).min(512));
            let end = (at + to - from).min(bytes.len());
            bytes.splice(at..end, other[from..to].iter().copied());
        }
    }
}

/// Writes a number of `size` bytes: one that is known for trouble, or one close to the one that is there.
fn number(rng: &mut Rng, bytes: &mut [u8], size: usize) {
    let Some(place) = bytes.get_mut(..size) else {
        return;
    };
    let mut old = [0; 8];
    old[..size].copy_from_slice(place);
    let old = u64::from_le_bytes(old);
    let new = match rng.below(5) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(2),
        _ => *rng.pick(&NUMBERS),
    };
    place.copy_from_slice(&new.to_le_bytes()[..size]);
}

/// A file taken apart into what its headers say and what is there, which may differ once it has been mutated.
struct File {
    start: Vec<u8>,
    count: u32,
    sections: Vec<Section>,
}

#[derive(Clone)]
struct Section {
    id: u32,
    length: u64,
    body: Vec<u8>,
}

impl File {
    /// None if the file isn't whole any more.
    fn split(bytes: &[u8]) -> Option<File> {
        let (start, mut rest) = bytes.split_at_checked(12)?;
        let count = u32::from_le_bytes(start[8..].try_into().ok()?);
        let mut sections = Vec::new();
        while !rest.is_empty() {
            let (id, after) = rest.split_first_chunk::<4>()?;
            let (length, after) = after.split_first_chunk::<8>()?;
            let length = u64::from_le_bytes(*length);
            let (body, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
            sections.push(Section {
                id: u32::from_le_bytes(*id),
                length,
                body: body.to_vec(),
            });
            rest = after;
        }
        Some(File {
            start: start[..8].to_vec(),
            count,
            sections,
        })
    }

    fn join(&self) -> Vec<u8> {
        let mut out = self.start.clone();
        out.extend_from_slice(&self.count.to_le_bytes());
        for section in &self.sections {
            out.extend_from_slice(&section.id.to_le_bytes());
            out.extend_from_slice(&section.length.to_le_bytes());
            out.extend_from_slice(&section.body);
        }
        out
    }

    fn mutate(&mut self, rng: &mut Rng, other: &[u8]) {
        if self.sections.is_empty() {
            return;
        }
        let at = rng.below(self.sections.len());
        match rng.below(12) {
            // Order is free, so this must change nothing.
            0 => {
                let with = rng.below(self.sections.len());
                self.sections.swap(at, with);
            }
            1 => {
                self.sections.remove(at);
                self.count = self.count.wrapping_sub(1);
            }
            2 => {
                let copy = self.sections[at].clone();
                self.sections.push(copy);
                self.count = self.count.wrapping_add(1);
            }
            3 => self.sections[at].id = rng.below(14) as u32,
            4 => self.sections[at].length = *rng.pick(&NUMBERS),
            5 => self.count = *rng.pick(&NUMBERS) as u32,
            6 => {
                if let Some(theirs) = File::split(other).filter(|file| !file.sections.is_empty()) {
                    self.sections[at]
                        .body
                        .clone_from(&rng.pick(&theirs.sections).body);
                    self.sections[at].length = self.sections[at].body.len() as u64;
                }
            }
            7 | 8 => {
                flat(rng, &mut self.sections[at].body, &[0; 64]);
                self.sections[at].length = self.sections[at].body.len() as u64;
            }
            9 => {
                // A field element that isn't below its modulus.
                let body = &mut self.sections[at].body;
                let start = rng.below(body.len() / 4 + 1) * 4;
                let modulus: &[u8] = if rng.one_in(2) {
                    &proofkeep_formats::field::R_LE
                } else {
                    &proofkeep_formats::field::Q_LE
                };
                if let Some(place) = body.get_mut(start..start + modulus.len()) {
                    place.copy_from_slice(modulus);
                }
            }
            // Counts stand at multiples of four, most of them within the first 150 bytes of a section.
            _ => {
                let body = &mut self.sections[at].body;
                let start = rng.below(body.len().min(152) / 4 + 1) * 4;
                let size = if rng.one_in(4) { 8 } else { 4 };
                number(rng, body.get_mut(start..).unwrap_or_default(), size);
            }
        }
    }
}
