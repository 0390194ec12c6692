//! Many affine additions with one inversion, eight sums side by side.
//!
//! Montgomery's trick: a pass forward multiplies up what has to be inverted, one inversion, and a pass backward takes
//! the single inverses out again and finishes each addition: `λ = dy/dx`, `x₃ = λ² − x₁ − x₂`, `y₃ = λ(x₁ − x₃) − y₁`.
//! Where two points have the same `x` that fails, and shows: the product is zero. Only then the pairs are looked at one
//! by one, and doublings and opposites are put right.

use crate::fp::vector::{self, Element};
use crate::fp::{FOUR_TIMES, ONE};
use crate::lanes::{lane, rotate_by_four, rotate_by_one, rotate_by_two};
use crate::scalar;
use crate::word::*;

/// Marks an operand as a row of points that are still in memory: eight entries from 8·index on.
pub(crate) const LEAF: u32 = 1 << 31;

/// How many jobs ahead of their use points are brought to the first-level cache.
const AHEAD: usize = 3;

/// One addition in each lane: row `to` (which holds `a` already unless that is a leaf) takes `a + b`.
#[derive(Clone, Copy)]
pub struct Job {
    pub to: u32,
    pub a: u32,
    pub b: u32,
    /// Above how many additions in a row this one stands.
    pub level: u8,
    /// The lanes in which `a` is a point, and those in which `b` is.
    pub a_lanes: u8,
    pub b_lanes: u8,
    /// Comes back with the lanes whose sum is the identity.
    pub vanished: u8,
}

vectorized! {
/// The inverse in every lane; `None` if one is zero.
fn inverse(value: &Element) -> Option<Element> {
    // The product over all lanes, by rotations; then the same way back.
    let (mut four, mut two, mut all) = ([zero(); 8], [zero(); 8], [zero(); 8]);
    vector::mul(&mut four, value, &rotate_by_four(value));
    vector::mul(&mut two, &four, &rotate_by_two(&four));
    vector::mul(&mut all, &two, &rotate_by_one(&two));
    let inverse = vector::broadcast(&scalar::inverse(&lane(&all, 0))?);
    let mut out = [zero(); 8];
    vector::mul(&mut all, &inverse, &rotate_by_one(&two));
    vector::mul(&mut two, &all, &rotate_by_two(&four));
    vector::mul(&mut out, &two, &rotate_by_four(value));
    Some(out)
}
}

macro_rules! batch {
    ($(#[$documentation:meta])* $name:ident, $coordinate:ident) => {
        $(#[$documentation])*
        pub(crate) mod $name {
            use super::*;
            pub(crate) use crate::group::coordinate::$coordinate::{DEGREE, EMPTY, Slot};
            use crate::group::coordinate::$coordinate::{self as field, Coordinate, ZEROS};
            use crate::group::bounds::{X, X_THRICE, X_TWICE, Y, Y_TWICE};
            use crate::lanes::{PACKED, STORED, signs};

            /// Words of a point as blst keeps it.
            pub(crate) const PACKED_WORDS: usize = 2 * DEGREE * PACKED;
            /// Words of a point that we stored.
            pub(crate) const STORED_WORDS: usize = 2 * DEGREE * STORED;
            pub type Packed = [u64; PACKED_WORDS];
            /// `x` and `y` below `p` and a little.
            #[derive(Clone, Copy)]
            #[repr(C, align(64))]
            pub struct Stored(pub [u64; STORED_WORDS]);

            /// A point in each lane.
            #[derive(Clone, Copy)]
            #[repr(C, align(64))]
            pub struct Row {
                pub x: Coordinate,
                pub y: Coordinate,
            }

            pub(crate) const BLANK: Row = Row { x: ZEROS, y: ZEROS };

            impl AsRef<[u64]> for Stored {
                fn as_ref(&self) -> &[u64] {
                    &self.0
                }
            }

            type Source<'a> = crate::group::Source<'a, Packed, Stored>;

            vectorized! {
            #[inline]
            fn load(source: &Source<'_>, leaves: &[u32], row: u32) -> Row {
                let entries: &[u32; 8] = &leaves.as_chunks::<8>().0[(row & !LEAF) as usize];
                let points: [&[u64]; 8] = std::array::from_fn(|lane| source.words(entries[lane]));
                let (x, y) = match source {
                    Source::Packed(_) => (field::packed_as_it_is(&points, 0), field::packed_shifted(&points, 1)),
                    Source::Stored(_) => (field::stored(&points, 0), field::stored(&points, 1)),
                };
                Row { x, y: field::negate(&y, signs(entries)) }
            }

            /// Brings a job's leaves, which are in the second-level cache already, to the first.
            #[inline]
            fn fetch(source: &Source<'_>, leaves: &[u32], job: &Job) {
                for row in [job.a, job.b] {
                    if row & LEAF != 0 {
                        for entry in &leaves.as_chunks::<8>().0[(row & !LEAF) as usize] {
                            source.fetch(*entry);
                        }
                    }
                }
            }

            /// Does all the jobs. `slots` has one more than there are jobs.
            fn add_vectors(
                jobs: &mut [Job],
                source: &Source<'_>,
                leaves: &[u32],
                rows: &mut [Row],
                slots: &mut [Slot],
                upcoming: &[u32],
            ) {
                slots[0].prefix = vector::broadcast(&ONE);
                for (k, job) in jobs.iter().enumerate() {
                    if let Some(later) = jobs.get(k + AHEAD) {
                        fetch(source, leaves, later);
                    }
                    let [slot, next] = &mut slots[k..k + 2] else { return };
                    if job.a & LEAF != 0 {
                        rows[job.to as usize] = load(source, leaves, job.a);
                    }
                    let loaded;
                    let b = if job.b & LEAF != 0 {
                        loaded = load(source, leaves, job.b);
                        &loaded
                    } else {
                        &rows[job.b as usize]
                    };
                    let (a, level) = (&rows[job.to as usize], job.level as usize);
                    slot.dx = field::difference(&b.x, &a.x, &X[level]);
                    slot.dy = field::difference(&b.y, &a.y, &Y_TWICE[level]);
                    let both = job.a_lanes & job.b_lanes;
                    if both != 0xff {
                        slot.dx = field::select(both, &field::one(), &slot.dx);
                    }
                    field::find_norm(slot);
                    vector::mul(&mut next.prefix, &slot.prefix, slot.norm());
                }
                let count = jobs.len();
                let (mut suffix, special) = match inverse(&slots[count].prefix) {
                    Some(inverse) => (inverse, false),
                    None => (inverse_with_equals(jobs, source, leaves, rows, slots), true),
                };
                let mut next = [zero(); 8];
                let mut one_inverse = [zero(); 8];
                let (mut slope, mut product) = (ZEROS, ZEROS);
                let mut upcoming = upcoming.chunks(upcoming.len().div_ceil(count.max(1)).max(1));
                for (job, slot) in jobs.iter().zip(&*slots).rev() {
                    for entry in upcoming.next().unwrap_or(&[]) {
                        source.prefetch(*entry);
                    }
                    vector::mul(&mut one_inverse, &suffix, &slot.prefix);
                    vector::mul(&mut next, &suffix, slot.norm());
                    suffix = next;
                    field::slope(&mut slope, slot, &one_inverse);
                    field::square(&mut product, &slope);
                    let (a, level) = (&rows[job.to as usize], job.level as usize);
                    let mut x = if special {
                        // dx is not the difference where a point was doubled.
                        let b = operand(source, leaves, rows, job.b);
                        field::less_both(&product, &a.x, &b.x, &X_TWICE[level])
                    } else {
                        // b = a + dx.
                        field::less_twice(&product, &a.x, &slot.dx, &X_THRICE[level])
                    };
                    let down = field::difference(&a.x, &x, &X[level + 1]);
                    field::mul(&mut product, &slope, &down);
                    let mut y = field::difference(&product, &a.y, &Y[level]);
                    if job.a_lanes & job.b_lanes != 0xff {
                        x = field::select(job.a_lanes & !job.b_lanes, &x, &a.x);
                        y = field::select(job.a_lanes & !job.b_lanes, &y, &a.y);
                        let only_b = job.b_lanes & !job.a_lanes;
                        if only_b != 0 {
                            let b = operand(source, leaves, rows, job.b);
                            x = field::select(only_b, &x, &b.x);
                            y = field::select(only_b, &y, &b.y);
                        }
                    }
                    rows[job.to as usize] = Row { x, y };
                }
            }

            #[cold]
            fn operand(source: &Source<'_>, leaves: &[u32], rows: &[Row], operand: u32) -> Row {
                if operand & LEAF != 0 { load(source, leaves, operand) } else { rows[operand as usize] }
            }

            /// Makes doublings of pairs of equal points, and marks pairs of opposite ones; then the inverse.
            #[cold]
            #[inline(never)]
            fn inverse_with_equals(
                jobs: &mut [Job],
                source: &Source<'_>,
                leaves: &[u32],
                rows: &[Row],
                slots: &mut [Slot],
            ) -> Element {
                for (k, job) in jobs.iter_mut().enumerate() {
                    let [slot, next] = &mut slots[k..k + 2] else { break };
                    let dx = field::shrink(&slot.dx);
                    for lane in (0..8).filter(|lane| job.a_lanes & job.b_lanes & 1 << lane != 0) {
                        if field::lane(&dx, lane) == [[0; 6]; DEGREE] {
                            let (a, level) = (&rows[job.to as usize], job.level as usize);
                            let b = operand(source, leaves, rows, job.b);
                            // 3x² and 2y, if the ys are equal and 2y isn't zero.
                            let same = field::shrink(&field::difference(&a.y, &b.y, &Y_TWICE[level]));
                            let y = field::shrink(&field::difference(&a.y, &ZEROS, &Y[level]));
                            let twice = field::shrink(&field::difference(&y, &field::negate(&y, 0xff), &[0; 8]));
                            let zero = [[0; 6]; DEGREE];
                            if field::lane(&same, lane) == zero && field::lane(&twice, lane) != zero {
                                let x = field::shrink(&a.x);
                                let mut square = ZEROS;
                                field::square(&mut square, &x);
                                let minus = field::negate(&square, 0xff);
                                let double = field::difference(&square, &minus, &[0; 8]);
                                let triple = field::difference(&double, &minus, &[0; 8]);
                                field::set_lane(&mut slot.dx, lane, &field::limbs(&twice, lane));
                                field::set_lane(&mut slot.dy, lane, &field::limbs(&triple, lane));
                            } else {
                                job.vanished |= 1 << lane;
                                field::set_lane(&mut slot.dx, lane, &field::limbs(&field::one(), lane));
                            }
                        }
                    }
                    field::find_norm(slot);
                    vector::mul(&mut next.prefix, &slot.prefix, slot.norm());
                }
                match inverse(&slots[jobs.len()].prefix) {
                    Some(inverse) => inverse,
                    None => unreachable!("every zero was replaced"),
                }
            }

            /// The lanes whose coordinates satisfy the curve's equation, `y² = x³ + b`: on the curve that packed
            /// coordinates are read as points of, `b` has the factor `u⁶ = 2^-96`.
            fn satisfied_vectors(points: &[&[u64]; 8]) -> u8 {
                let x = field::packed_as_it_is(points, 0);
                let y = field::difference(&field::packed_shifted(points, 1), &ZEROS, &[0; 8]);
                let (mut square, mut cube, mut y_square) = (ZEROS, ZEROS, ZEROS);
                field::square(&mut square, &x);
                field::mul(&mut cube, &square, &x);
                field::square(&mut y_square, &y);
                field::zeros(&field::shrink(&field::less_both(&y_square, &cube, &field::b(), &FOUR_TIMES)))
            }

            /// A row's points, reduced; a leaf's with their signs.
            fn finished_vectors(source: &Source<'_>, leaves: &[u32], rows: &[Row], row: u32, level: usize) -> Row {
                let row = operand(source, leaves, rows, row);
                Row {
                    x: field::shrink(&row.x),
                    y: field::shrink(&field::difference(&row.y, &ZEROS, &Y[level])),
                }
            }
            }

            /// The lanes whose points lie on the curve; coordinates are below `p`.
            pub(crate) fn satisfied(_: crate::Ifma, points: &[&[u64]; 8]) -> u8 {
                // SAFETY: an `Ifma` is only made on a processor that has the instructions.
                unsafe { satisfied_vectors(points) }
            }

            /// Does all the jobs, at most [`Slot`]s − 1 at once. The entries `upcoming` will be needed soon.
            pub(crate) fn add(
                _: crate::Ifma,
                jobs: &mut [Job],
                source: &Source<'_>,
                leaves: &[u32],
                rows: &mut [Row],
                slots: &mut [Slot],
                upcoming: &[u32],
            ) {
                let (most, count) = (slots.len() - 1, jobs.len().max(1));
                let mut done = 0;
                for jobs in jobs.chunks_mut(most) {
                    let start = upcoming.len() * done / count;
                    done += jobs.len();
                    let upcoming = &upcoming[start..upcoming.len() * done / count];
                    // SAFETY: an `Ifma` is only made on a processor that has the instructions.
                    unsafe { add_vectors(jobs, source, leaves, rows, slots, upcoming) };
                }
            }

            /// Stores a row's points where `to` names a place for their lane.
            pub(crate) fn store(
                _: crate::Ifma,
                source: &Source<'_>,
                leaves: &[u32],
                rows: &[Row],
                (row, level): (u32, usize),
                to: &mut dyn FnMut(usize, Stored),
            ) {
                // SAFETY: as above.
                let row = unsafe { finished_vectors(source, leaves, rows, row, level) };
                for lane in 0..8 {
                    let mut point = Stored([0; STORED_WORDS]);
                    let coordinates = [field::limbs(&row.x, lane), field::limbs(&row.y, lane)];
                    for (words, limbs) in point.0.chunks_exact_mut(STORED).zip(coordinates.as_flattened()) {
                        words.copy_from_slice(limbs);
                    }
                    to(lane, point);
                }
            }
        }
    };
}

batch!(
    /// Sums in G1.
    first, one
);
batch!(
    /// Sums in G2.
    second, two
);
