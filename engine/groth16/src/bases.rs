//! The base points of one multi-scalar multiplication, owned or read in place from a mapped key.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::curve::{Curve, bytes_as_points, read_point};

/// The bytes of a key file: a memory map, or a vector. Must return the same bytes every time.
pub type KeyBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

enum Points<C: Curve> {
    Owned(Vec<C::Affine>),
    InPlace { file: KeyBytes, range: Range<usize> },
}

impl<C: Curve> Points<C> {
    fn as_slice(&self) -> &[C::Affine] {
        match self {
            Points::Owned(points) => points,
            // Only made where the range is inside the file and aligned, so the fallback is never taken.
            Points::InPlace { file, range } => (**file)
                .as_ref()
                .get(range.clone())
                .and_then(bytes_as_points::<C>)
                .unwrap_or(&[]),
        }
    }
}

/// Base points without identities, each with the wire whose value is its scalar.
///
/// Entry `k` is the point of wire `wire(k)`. A set without a wire list takes scalar `k` for entry `k` (the H basis).
pub struct BaseSet<C: Curve> {
    points: Points<C>,
    wires: Option<Vec<u32>>,
    /// Set where `points` still holds the identities: entry `k` is point `wires[k] − first`.
    sparse_from: Option<u32>,
}

impl<C: Curve> fmt::Debug for BaseSet<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BaseSet")
            .field("points", &self.len())
            .field("in_place", &matches!(self.points, Points::InPlace { .. }))
            .finish()
    }
}

impl<C: Curve> BaseSet<C> {
    /// Every point takes the scalar of the same number.
    pub fn full(points: Vec<C::Affine>) -> Self {
        BaseSet {
            points: Points::Owned(points),
            wires: None,
            sparse_from: None,
        }
    }

    /// Point `k` takes the value of wire `wires[k]`; both are of one length and no point is the identity.
    pub fn with_wires(points: Vec<C::Affine>, wires: Vec<u32>) -> Self {
        debug_assert_eq!(points.len(), wires.len());
        BaseSet {
            points: Points::Owned(points),
            wires: Some(wires),
            sparse_from: None,
        }
    }

    /// A section of a key file that holds one point for each wire from `first` on; identities are left out.
    pub fn from_section(file: &KeyBytes, section: Range<usize>, first: u32) -> Self {
        let bytes = (**file).as_ref().get(section.clone()).unwrap_or(&[]);
        let present: Vec<u32> = bytes
            .chunks_exact(C::AFFINE_BYTES)
            .zip(first..)
            .filter(|(point, _)| point.iter().any(|byte| *byte != 0))
            .map(|(_, wire)| wire)
            .collect();
        if bytes_as_points::<C>(bytes).is_some() {
            let points = Points::InPlace {
                file: file.clone(),
                range: section,
            };
            return BaseSet {
                points,
                wires: Some(present),
                sparse_from: Some(first),
            };
        }
        let points = present
            .iter()
            .map(|wire| {
                let start = (wire - first) as usize * C::AFFINE_BYTES;
                read_point::<C>(&bytes[start..start + C::AFFINE_BYTES])
            })
            .collect();
        BaseSet::with_wires(points, present)
    }

    /// A section of a key file whose points take the scalars of the same number.
    pub fn full_from_section(file: &KeyBytes, section: Range<usize>) -> Self {
        let bytes = (**file).as_ref().get(section.clone()).unwrap_or(&[]);
        let points = if bytes_as_points::<C>(bytes).is_some() {
            Points::InPlace {
                file: file.clone(),
                range: section,
            }
        } else {
            Points::Owned(bytes.chunks_exact(C::AFFINE_BYTES).map(read_point::<C>).collect())
        };
        BaseSet {
            points,
            wires: None,
            sparse_from: None,
        }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.wires
            .as_ref()
            .map_or_else(|| self.points.as_slice().len(), Vec::len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the set holds beside the mapped file.
    pub fn owned_bytes(&self) -> u64 {
        let points = match &self.points {
            Points::Owned(points) => points.len() * C::AFFINE_BYTES,
            Points::InPlace { .. } => 0,
        };
        (points + self.wires.as_ref().map_or(0, |wires| 4 * wires.len())) as u64
    }

    /// The number of the scalar that entry `k` takes.
    pub fn wire(&self, k: usize) -> usize {
        self.wires.as_ref().map_or(k, |wires| wires[k] as usize)
    }

    /// One past the largest scalar number that any entry takes.
    pub fn scalars_needed(&self) -> usize {
        match &self.wires {
            Some(wires) => wires.iter().max().map_or(0, |wire| *wire as usize + 1),
            None => self.points.as_slice().len(),
        }
    }

    /// The points as they lie in memory, identities among them where the set leaves them out; entry `k` is at `place(k)`.
    pub(crate) fn points(&self) -> &[C::Affine] {
        self.points.as_slice()
    }

    /// Where in [`BaseSet::points`] entry `k` is.
    pub(crate) fn place(&self, k: usize) -> usize {
        match (&self.wires, self.sparse_from) {
            (Some(wires), Some(first)) => (wires[k] - first) as usize,
            _ => k,
        }
    }

    /// Calls `each` with every entry of a range: the point, and the number of its scalar.
    pub(crate) fn for_each<'s>(&'s self, range: Range<usize>, mut each: impl FnMut(&'s C::Affine, usize)) {
        let points = self.points.as_slice();
        match (&self.wires, self.sparse_from) {
            (None, _) => points[range.clone()]
                .iter()
                .zip(range)
                .for_each(|(point, k)| each(point, k)),
            (Some(wires), None) => {
                points[range.clone()]
                    .iter()
                    .zip(&wires[range])
                    .for_each(|(point, wire)| each(point, *wire as usize));
            }
            (Some(wires), Some(first)) => {
                for wire in &wires[range] {
                    each(&points[(wire - first) as usize], *wire as usize);
                }
            }
        }
    }
}
