//! Sums of many groups of points: what multiples of a fixed point, and tests of many points at once, are made of.

use zeroize::Zeroize;

use crate::Ifma;
use crate::group::sum::{Points, Summer, bytes};
use crate::group::{Group, Source, Sums};

/// Adds up groups of points. Keeps its memory from one call to the next.
pub struct Adder<G: Group> {
    summer: Summer<G>,
    sums: Points<G>,
}

impl<G: Group> Adder<G> {
    /// One for the calling thread.
    pub fn new(ifma: Ifma) -> Self {
        Adder {
            summer: Summer::new(ifma),
            sums: Points::new(),
        }
    }

    /// Bytes that one holds that adds up so many groups at once.
    pub fn bytes(groups: usize) -> u64 {
        bytes::<G>() + (groups * (size_of::<G::Stored>() + 1 + 4)) as u64
    }

    /// `out[g]` takes the sum of the points that `entries[offsets[g]..offsets[g + 1]]` name, the identity for none. An
    /// entry is the index of a point, with [`crate::NEGATIVE`] for its negative. The points are on the curve and none is
    /// the identity; they may be outside the prime-order subgroup, equal to each other, or opposite.
    ///
    /// # Panics
    /// If there isn't one more offset than there are groups, or an entry names no point.
    pub fn sums(&mut self, points: &[G::Affine], entries: &[u32], offsets: &[u32], out: &mut [G::Affine]) {
        assert_eq!(offsets.len(), out.len() + 1, "a group lies between two offsets");
        let source = Source::Packed(G::packed(points));
        self.summer.sums(&source, entries, offsets, &mut self.sums);
        for (group, out) in out.iter_mut().enumerate() {
            *out = self
                .sums
                .get(group)
                .map_or_else(G::Affine::default, G::Inner::unpack);
        }
    }
}

impl<G: Group> Drop for Adder<G> {
    fn drop(&mut self) {
        // Which multiples were added up can tell about a secret scalar.
        self.summer.leaves().zeroize();
    }
}

/// The first point that is neither on the curve nor the identity. Coordinates are below the field's order.
pub fn first_off_curve<G: Group>(ifma: Ifma, points: &[G::Affine]) -> Option<usize> {
    let points = G::packed(points);
    for (block, eight) in points.chunks(8).enumerate() {
        // A lane that is left over looks at the last point again.
        let in_lanes = std::array::from_fn(|lane| eight[lane.min(eight.len() - 1)].as_ref());
        let satisfied = G::Inner::satisfied(ifma, &in_lanes);
        if satisfied == 0xff {
            continue;
        }
        let bad = (0..eight.len())
            .find(|lane| satisfied >> lane & 1 == 0 && in_lanes[*lane].iter().any(|word| *word != 0));
        if let Some(lane) = bad {
            return Some(8 * block + lane);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use rand::Rng;

    use super::*;
    use crate::check::fields::rng;
    use crate::check::vectors::not_here;
    use crate::group::{G1, G2, NEGATIVE};
    use crate::msm::slow::Slow;

    fn agrees<G: Slow>(test: &str) {
        if not_here(test) {
            return;
        }
        let mut rng = rng();
        let points: Vec<G::Affine> = (1..40u8)
            .map(|scalar| {
                let mut bytes = [0; 32];
                bytes[0] = scalar;
                G::multiple(&bytes)
            })
            .collect();
        let mut adder = Adder::<G>::new(Ifma::detect().unwrap());
        for round in 0..30 {
            let (mut entries, mut offsets) = (Vec::new(), vec![0]);
            for _ in 0..[1, 7, 8, 9, 50, 300][round % 6] {
                let length = [0, 1, 2, 20, 129, 1000][rng.gen_range(0..if round < 24 { 4 } else { 6 })];
                for _ in 0..length {
                    // Few points, so that equal and opposite ones meet often.
                    let sign = if rng.r#gen() { NEGATIVE } else { 0 };
                    entries.push(rng.gen_range(0..points.len() as u32) | sign);
                }
                offsets.push(entries.len() as u32);
            }
            let mut out = vec![points[0]; offsets.len() - 1];
            adder.sums(&points, &entries, &offsets, &mut out);
            for (pair, sum) in offsets.windows(2).zip(&out) {
                let mut expected = G::Point::default();
                for entry in &entries[pair[0] as usize..pair[1] as usize] {
                    let point = points[(entry & !NEGATIVE) as usize];
                    let point = if entry & NEGATIVE != 0 {
                        G::neg(&point)
                    } else {
                        point
                    };
                    expected = G::add_affine(&expected, &point);
                }
                assert_eq!(*sum, G::affine(&expected));
            }
        }
    }

    fn finds<G: Slow>(test: &str) {
        if not_here(test) {
            return;
        }
        let mut rng = rng();
        let ifma = Ifma::detect().unwrap();
        let good: Vec<G::Affine> = (0..99u8)
            .map(|scalar| {
                let mut bytes = [0; 32];
                bytes[..2].copy_from_slice(&[scalar, if scalar > 9 { rng.r#gen() } else { 0 }]);
                // Zero times the generator: the identity is let through.
                G::multiple(&bytes)
            })
            .collect();
        for count in [0, 1, 7, 8, 9, 99] {
            assert_eq!(first_off_curve::<G>(ifma, &good[..count]), None);
        }
        for round in 0..200 {
            let mut points = good.clone();
            let first = rng.gen_range(0..points.len() - 1);
            for index in [first, rng.gen_range(first + 1..points.len())] {
                points[index] = match round % 4 {
                    // One coordinate of another point; for the identity that leaves it off the curve too.
                    0 => G::mixed(&points[index], &good[(index + 7) % 90 + 9]),
                    1 => G::mixed(&points[(index + 5) % 90 + 9], &points[index]),
                    _ => G::spoilt(&points[index], rng.r#gen()),
                };
            }
            assert_eq!(first_off_curve::<G>(ifma, &points), Some(first), "round {round}");
        }
    }

    #[test]
    fn points_off_the_curve_are_found_in_every_lane() {
        finds::<G1>("points off the curve in G1");
        finds::<G2>("points off the curve in G2");
    }

    #[test]
    fn sums_of_groups_agree_with_adding_one_by_one() {
        agrees::<G1>("sums in G1");
        agrees::<G2>("sums in G2");
    }
}
