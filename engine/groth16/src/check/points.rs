//! The points of a key: what can be wrong with one, and the first that is wrong.

use std::ops::{ControlFlow, Range};

use proofkeep_formats::field::{is_canonical_q, is_canonical_q_big_endian};
use rand::rngs::OsRng;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::CheckError;
use crate::backend::Backend;
use crate::control::Stopped;
use crate::curve::{Curve, G1, G2, bytes_as_points, points_as_bytes, read_point};
use crate::quotient::on_threads;
use crate::subgroup::all_in_subgroup;
use crate::sums::SumsOn;

/// Points checked at once, between two calls of the progress callback: at most about two seconds of one thread. More would
/// cost little less for each point, and take more memory.
pub(crate) const SLICE: u64 = 1 << 17;

/// What is wrong with a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointFault {
    /// A coordinate is not below the base field's order.
    NonCanonical,
    /// The coordinates don't satisfy the curve equation.
    OffCurve,
    /// The point is not of order `r`.
    OutsideSubgroup,
    /// The point is the identity, where there is none.
    Identity,
    /// The encoding is not an uncompressed one.
    Encoding,
}

impl PointFault {
    pub(crate) fn code(self) -> &'static str {
        match self {
            PointFault::NonCanonical => "non-canonical",
            PointFault::OffCurve => "point-off-curve",
            PointFault::OutsideSubgroup => "point-outside-subgroup",
            PointFault::Identity => "point-at-infinity",
            PointFault::Encoding => "point-encoding",
        }
    }
}

impl std::fmt::Display for PointFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PointFault::NonCanonical => {
                "has a coordinate that is not below the order of BLS12-381's base field"
            }
            PointFault::OffCurve => "is not on the curve",
            PointFault::OutsideSubgroup => "is outside the prime-order subgroup",
            PointFault::Identity => "is the identity, which keys of this form leave out",
            PointFault::Encoding => "is not written uncompressed: one of the three topmost bits is set",
        })
    }
}

/// The first of the points that is not canonical, not on the curve or not in the subgroup, the identity passing; a point
/// outside the subgroup is missed with a chance below 2^-128. Takes a few bytes for each point beside them.
pub fn first_fault<C: SumsOn>(points: &[C::Affine], backend: &dyn Backend) -> Option<(usize, PointFault)> {
    let mut off = None;
    on_threads(backend, || {
        off = points
            .par_iter()
            .with_min_len(256)
            .position_first(|point| !is_canonical::<C>(point));
    });
    let mut off = off.map(|index| (index, PointFault::NonCanonical));
    // The equation is for canonical coordinates, and sums are of points on the curve only.
    let canonical = &points[..off.map_or(points.len(), |(index, _)| index)];
    if let Some(index) = C::first_off_curve(backend, canonical) {
        off = Some((index, PointFault::OffCurve));
    }
    let points = &points[..off.map_or(points.len(), |(index, _)| index)];
    if all_in_subgroup::<C>(points, backend, &mut fresh_random()) {
        return off;
    }
    let mut outside = None;
    on_threads(backend, || {
        outside = points
            .par_iter()
            .with_min_len(8)
            .position_first(|point| !C::in_subgroup(point));
    });
    outside.map(|index| (index, PointFault::OutsideSubgroup)).or(off)
}

/// Whether the coordinates are below the base field's order.
fn is_canonical<C: Curve>(point: &C::Affine) -> bool {
    let bytes = points_as_bytes::<C>(std::slice::from_ref(point));
    bytes.as_chunks::<48>().0.iter().all(is_canonical_q)
}

fn fresh_random() -> ChaCha20Rng {
    let mut seed = [0; 32];
    OsRng.fill_bytes(&mut seed);
    ChaCha20Rng::from_seed(seed)
}

/// How the points of a section lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As in memory: limbs in Montgomery form. The identity may occur.
    Limbs,
    /// In ZCash's uncompressed encoding, without identities.
    Uncompressed,
}

/// The group of a section's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    G1,
    G2,
}

/// A list of points of a key.
pub(super) struct Section<'a> {
    pub name: &'static str,
    pub group: Group,
    pub form: Form,
    pub bytes: &'a [u8],
}

impl Section<'_> {
    /// How many points it has.
    pub fn len(&self) -> u64 {
        let size = match self.group {
            Group::G1 => G1::AFFINE_BYTES,
            Group::G2 => G2::AFFINE_BYTES,
        };
        (self.bytes.len() / size) as u64
    }

    /// The first bad point of a range.
    fn first_fault(&self, range: Range<u64>, backend: &dyn Backend) -> Option<(u64, PointFault)> {
        let found = match self.group {
            Group::G1 => self.first_fault_in::<G1>(&range, backend),
            Group::G2 => self.first_fault_in::<G2>(&range, backend),
        };
        found.map(|(index, fault)| (range.start + index as u64, fault))
    }

    fn first_fault_in<C: SumsOn>(
        &self,
        range: &Range<u64>,
        backend: &dyn Backend,
    ) -> Option<(usize, PointFault)> {
        let size = C::AFFINE_BYTES;
        let bytes = &self.bytes[range.start as usize * size..range.end as usize * size];
        if self.form == Form::Uncompressed {
            let mut result = (Vec::new(), None);
            on_threads(backend, || result = decoded::<C>(bytes));
            let (points, fault) = result;
            return first_fault::<C>(&points, backend).or(fault.map(|fault| (points.len(), fault)));
        }
        match bytes_as_points::<C>(bytes) {
            Some(points) => first_fault::<C>(points, backend),
            None => {
                let points: Vec<C::Affine> = bytes.chunks_exact(size).map(read_point::<C>).collect();
                first_fault::<C>(&points, backend)
            }
        }
    }
}

/// Checks the points of the sections from number `from` on, counted through all of them.
pub(super) fn check_sections(
    sections: &[Section<'_>],
    from: u64,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), CheckError> {
    let total = sections.iter().map(Section::len).sum();
    let mut first = 0;
    for section in sections {
        let count = section.len();
        let mut start = from.saturating_sub(first).min(count);
        while start < count {
            let end = count.min(start + SLICE);
            if let Some((index, fault)) = section.first_fault(start..end, backend) {
                return Err(CheckError::Point {
                    section: section.name,
                    index,
                    fault,
                });
            }
            start = end;
            if progress(first + end, total).is_break() && first + end < total {
                return Err(Stopped.into());
            }
        }
        first += count;
    }
    Ok(())
}

/// Points in ZCash's uncompressed encoding, up to the first whose encoding is bad, and what is wrong with that. Neither
/// the curve equation nor the subgroup is checked. Runs on the current rayon pool.
pub(crate) fn decoded<C: Curve>(bytes: &[u8]) -> (Vec<C::Affine>, Option<PointFault>) {
    let mut points = vec![C::Affine::default(); bytes.len() / C::AFFINE_BYTES];
    let bad = points
        .par_iter_mut()
        .zip(bytes.par_chunks_exact(C::AFFINE_BYTES))
        .with_min_len(256)
        .enumerate()
        .find_map_first(|(index, (point, bytes))| match decode::<C>(bytes) {
            Ok(decoded) => {
                *point = decoded;
                None
            }
            Err(fault) => Some((index, fault)),
        });
    if let Some((index, _)) = bad {
        points.truncate(index);
    }
    (points, bad.map(|(_, fault)| fault))
}

fn decode<C: Curve>(bytes: &[u8]) -> Result<C::Affine, PointFault> {
    // Flags, from the top: compressed, the identity, the larger y.
    if bytes[0] == 0x40 && bytes[1..].iter().all(|byte| *byte == 0) {
        return Err(PointFault::Identity);
    }
    if bytes[0] & 0xe0 != 0 {
        return Err(PointFault::Encoding);
    }
    if !bytes.as_chunks::<48>().0.iter().all(is_canonical_q_big_endian) {
        return Err(PointFault::NonCanonical);
    }
    Ok(C::from_coordinates(bytes))
}
