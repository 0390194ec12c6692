//! Sums of many groups of points, what a setup's multiples and the check of many points are made of.

use blst::{blst_p1_affine, blst_p2_affine};
use rayon::prelude::*;
use zeroize::Zeroize;

use crate::affine::Summer;
use crate::backend::Backend;
use crate::curve::{Curve, G1, G2};

/// Groups that a thread takes at once, at most.
pub(crate) const CHUNK: usize = 8192;

/// The sign of an entry; the rest is the index of a point.
pub(crate) const NEGATIVE: u32 = 1 << 31;

/// Which points, or negatives of points, make which group. Wiped when dropped, since in a setup it tells about scalars.
pub struct Groups {
    entries: Vec<u32>,
    offsets: Vec<u32>,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups")
            .field("groups", &self.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.entries.zeroize();
    }
}

impl Groups {
    /// No groups, with room for so many and their entries.
    pub fn with_capacity(groups: usize, entries: usize) -> Self {
        let mut offsets = Vec::with_capacity(groups + 1);
        offsets.push(0);
        Groups {
            entries: Vec::with_capacity(entries),
            offsets,
        }
    }

    /// Sorts the points whose number `group_of` gives a group, of so many groups, into these.
    pub(crate) fn sorted(groups: usize, group_of: &[Option<u32>]) -> Self {
        let mut offsets = vec![0u32; groups + 2];
        // Counted two places further, so that after they are summed up a group's place can move to its end.
        for group in group_of.iter().flatten() {
            offsets[*group as usize + 2] += 1;
        }
        for place in 1..offsets.len() {
            offsets[place] += offsets[place - 1];
        }
        let mut entries = vec![0; offsets[groups + 1] as usize];
        for (index, group) in (0..).zip(group_of) {
            if let Some(group) = group {
                let place = &mut offsets[*group as usize + 1];
                entries[*place as usize] = index;
                *place += 1;
            }
        }
        offsets.pop();
        Groups { entries, offsets }
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a point to the group in work, or its negative. The index is below 2^31.
    pub fn point(&mut self, index: u32, negative: bool) {
        self.entries.push(if negative { index | NEGATIVE } else { index });
    }

    /// Ends the group in work.
    pub fn end(&mut self) {
        self.offsets.push(self.entries.len() as u32);
    }

    /// Adds the groups of another list after these.
    pub fn append(&mut self, other: &Groups) {
        let first = self.entries.len() as u32;
        self.entries.extend_from_slice(&other.entries);
        self.offsets
            .extend(other.offsets[1..].iter().map(|offset| first + offset));
    }

    /// The entries of all groups.
    pub(crate) fn entries(&self) -> &[u32] {
        &self.entries
    }

    /// Where the groups lie in the entries.
    pub(crate) fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Groups for a thread to take at once.
    pub(crate) fn chunk(&self, threads: usize) -> usize {
        self.len().div_ceil(4 * threads).clamp(64, CHUNK)
    }
}

/// A group in which a backend computes with many points at once.
pub trait SumsOn: Curve {
    /// See [`Backend::sums_g1`].
    fn sums(backend: &dyn Backend, points: &[Self::Affine], groups: &Groups) -> Vec<Self::Affine>;

    /// See [`Backend::first_off_curve_g1`].
    fn first_off_curve(backend: &dyn Backend, points: &[Self::Affine]) -> Option<usize>;
}

impl SumsOn for G1 {
    fn sums(backend: &dyn Backend, points: &[blst_p1_affine], groups: &Groups) -> Vec<blst_p1_affine> {
        let mut out = vec![blst_p1_affine::default(); groups.len()];
        backend.sums_g1(points, groups, &mut out);
        out
    }

    fn first_off_curve(backend: &dyn Backend, points: &[blst_p1_affine]) -> Option<usize> {
        backend.first_off_curve_g1(points)
    }
}

impl SumsOn for G2 {
    fn sums(backend: &dyn Backend, points: &[blst_p2_affine], groups: &Groups) -> Vec<blst_p2_affine> {
        let mut out = vec![blst_p2_affine::default(); groups.len()];
        backend.sums_g2(points, groups, &mut out);
        out
    }

    fn first_off_curve(backend: &dyn Backend, points: &[blst_p2_affine]) -> Option<usize> {
        backend.first_off_curve_g2(points)
    }
}

/// The sums with blst's arithmetic. Runs on the current rayon pool.
pub(crate) fn sums<C: Curve>(points: &[C::Affine], groups: &Groups, out: &mut [C::Affine]) {
    assert_eq!(groups.len(), out.len(), "a sum for each group");
    let chunk = groups.chunk(rayon::current_num_threads());
    out.par_chunks_mut(chunk)
        .enumerate()
        .for_each_init(Summer::<C>::new, |summer, (at, out)| {
            let offsets = &groups.offsets[at * chunk..=at * chunk + out.len()];
            summer.sums(points, &groups.entries, offsets, out);
        });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::backend::CpuBackend;
    use rand::{Rng, RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    fn agrees<C: SumsOn>(seed: u64) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut points = vec![C::generator()];
        while points.len() < 30 {
            let next = C::add_affine(&C::to_point(&points[points.len() - 1]), &points[0]);
            points.push(C::to_affine(&next));
        }
        for (groups, longest) in [(1, 3), (1, 500), (40, 20), (700, 30), (9, 300)] {
            let mut list = Groups::with_capacity(groups, 0);
            let mut expected = Vec::new();
            for _ in 0..groups {
                let mut sum = C::Point::default();
                for _ in 0..rng.gen_range(0..=longest) {
                    let (index, negative) = (rng.gen_range(0..points.len()), rng.r#gen());
                    list.point(index as u32, negative);
                    let point = points[index];
                    sum = C::add_affine(&sum, &if negative { C::neg_affine(&point) } else { point });
                }
                list.end();
                expected.push(C::to_affine(&sum));
            }
            for name in CpuBackend::possible() {
                for threads in [1, 3] {
                    let backend = CpuBackend::named(name, threads).unwrap();
                    assert!(
                        C::sums(&backend, &points, &list) == expected,
                        "{name}, {groups} groups"
                    );
                }
            }
        }
    }

    #[test]
    fn sums_agree_with_adding_one_by_one_on_every_backend() {
        let seed = rand::thread_rng().next_u64();
        eprintln!("seed {seed}");
        agrees::<G1>(seed);
        agrees::<G2>(seed);
    }

    #[test]
    fn sorting_keeps_every_point_that_has_a_group() {
        let groups = Groups::sorted(4, &[Some(2), None, Some(0), Some(2), Some(3)]);
        assert_eq!(groups.offsets(), [0, 1, 1, 3, 4]);
        assert_eq!(groups.entries(), [2, 0, 3, 4]);
        let mut twice = Groups::with_capacity(0, 0);
        twice.append(&groups);
        twice.append(&groups);
        assert_eq!(twice.offsets(), [0, 1, 1, 3, 4, 5, 5, 7, 8]);
    }
}
