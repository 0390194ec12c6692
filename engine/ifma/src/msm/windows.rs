//! One task: some windows of a list of terms, from digits to sums.
//!
//! The digits of a window are signed, `−2^(c−1)..=2^(c−1)`, so there are `2^(c−1)` buckets; a counting sort puts each
//! term into its bucket. What is left after the buckets are summed up, `Σ b·sum_b`, is again sums of many groups: the
//! buckets are a square of rows and columns, `b = rows·i + j + 1`, and then
//! `Σ b·sum_b = rows·Σ i·row_i + Σ (j + 1)·column_j`; of either sum the multiples are taken apart into bits.

use std::ops::Range;

use super::scalars::Part;
use crate::Ifma;
use crate::group::sum::{Points, Summer};
use crate::group::{Group, NEGATIVE, Source, Sums};
use crate::word::vectorized;

/// A sum, and of which power of two it is a multiple.
pub(super) type Weighted<G> = (u32, <G as Group>::Affine);

/// Digits made at once.
const STRIP: usize = 512;

/// The window size and the number of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub window: u32,
    pub windows: u32,
}

impl Plan {
    /// The plan with the least additions.
    pub fn new(terms: usize, bits: u32) -> Self {
        let cost = |window: u32| {
            let windows = bits / window + 1;
            // Each bucket is in a row and in a column, and costs to be stored and read again.
            u64::from(windows) * (terms as u64 + (5 << window >> 2) + 24 * u64::from(window))
        };
        let window = (2..=MAX_WINDOW).min_by_key(|window| cost(*window)).unwrap_or(2);
        let windows = bits / window + 1;
        Plan { window, windows }
    }

    pub fn buckets(self) -> usize {
        1 << (self.window - 1)
    }
}

/// The widest window: 2^15 buckets are 4 MiB in G1, 8 in G2.
const MAX_WINDOW: u32 = 16;

vectorized! {
/// The digits of window `k` of the terms from `start` on.
fn digits(part: &Part, start: usize, plan: Plan, k: u32, out: &mut [i32]) {
    let bit = k * plan.window;
    let (word, shift) = (bit as usize / 64, bit % 64);
    let mask = (1u64 << plan.window) - 1;
    let half = if k + 1 < plan.windows { 1 << (plan.window - 1) } else { 0 };
    let end = start + out.len();
    let Some(low) = part.words.get(word) else { return out.fill(0) };
    let low = &low[start..end];
    match part.words.get(word + 1) {
        Some(high) if shift > 0 => {
            for ((digit, low), high) in out.iter_mut().zip(low).zip(&high[start..end]) {
                *digit = ((low >> shift | high << (64 - shift)) & mask) as i32 - half;
            }
        }
        _ => {
            for (digit, low) in out.iter_mut().zip(low) {
                *digit = (low >> shift & mask) as i32 - half;
            }
        }
    }
}
}

/// What a thread works with, from one task to the next.
pub(super) struct Worker<G: Group> {
    summer: Summer<G>,
    buckets: Groups,
    sums: Points<G>,
    lines: Points<G>,
}

/// Which points make which group: `entries`, and where each group's begin.
struct Groups {
    entries: Vec<u32>,
    offsets: Vec<u32>,
}

impl Groups {
    fn new() -> Self {
        Groups {
            entries: Vec::new(),
            offsets: vec![0],
        }
    }

    /// The terms of some windows by bucket.
    fn sort(&mut self, parts: &[Part], plan: Plan, windows: Range<u32>) {
        let buckets = plan.buckets();
        let count = windows.len() * buckets;
        self.offsets.clear();
        self.offsets.resize(count + 2, 0);
        // Counted two places further, so that after they are summed up a bucket's place can move to its end.
        each_digit(parts, plan, windows.clone(), |window, _, digit| {
            let bucket = window as usize * buckets + digit.unsigned_abs() as usize - 1;
            self.offsets[bucket + 2] += 1;
        });
        for place in 1..self.offsets.len() {
            self.offsets[place] += self.offsets[place - 1];
        }
        let total = self.offsets[count + 1] as usize;
        self.entries.clear();
        self.entries.resize(total, 0);
        each_digit(parts, plan, windows, |window, entry, digit| {
            let bucket = window as usize * buckets + digit.unsigned_abs() as usize - 1;
            let place = &mut self.offsets[bucket + 1];
            self.entries[*place as usize] = if digit < 0 { entry ^ NEGATIVE } else { entry };
            *place += 1;
        });
        self.offsets.pop();
    }
}

/// Calls `each` with the window (counted from the first of the range), the entry and the digit, where that isn't zero.
fn each_digit(parts: &[Part], plan: Plan, windows: Range<u32>, mut each: impl FnMut(u32, u32, i32)) {
    let mut strip = [0; STRIP];
    for window in windows.clone() {
        for part in parts {
            for start in (0..part.entries.len()).step_by(STRIP) {
                let entries = &part.entries[start..part.entries.len().min(start + STRIP)];
                let strip = &mut strip[..entries.len()];
                // SAFETY: a summer only exists on a processor that has the instructions, and callers have one.
                unsafe { digits(part, start, plan, window, strip) };
                for (entry, digit) in entries.iter().zip(strip) {
                    if *digit != 0 {
                        each(window - windows.start, *entry, *digit);
                    }
                }
            }
        }
    }
}

impl Groups {
    /// One more group: those of the indices where there is a point.
    fn push<G: Group>(&mut self, points: &Points<G>, indices: impl Iterator<Item = usize>) {
        self.entries.extend(
            indices
                .filter(|index| points.present[*index])
                .map(|index| index as u32),
        );
        self.offsets.push(self.entries.len() as u32);
    }
}

impl<G: Group> Worker<G> {
    pub fn new(ifma: Ifma) -> Self {
        Worker {
            summer: Summer::new(ifma),
            buckets: Groups::new(),
            sums: Points::new(),
            lines: Points::new(),
        }
    }

    /// `Σ digit·point` of the windows, as sums to be multiplied with powers of two.
    pub fn window_sums(
        &mut self,
        points: &[G::Packed],
        parts: &[Part],
        plan: Plan,
        windows: Range<u32>,
    ) -> Vec<Weighted<G>> {
        let Worker {
            summer,
            buckets,
            sums,
            lines,
        } = self;
        buckets.sort(parts, plan, windows.clone());
        let (count, all) = (plan.buckets(), windows.len() * plan.buckets());
        summer.sums(&Source::Packed(points), &buckets.entries, &buckets.offsets, sums);

        let column_bits = (plan.window - 1) / 2;
        let (columns, rows) = (1usize << column_bits, count >> column_bits);
        let mut groups = Groups::new();
        for first in (0..all).step_by(count) {
            for row in 1..rows {
                groups.push(sums, first + row * columns..first + (row + 1) * columns);
            }
            for column in 0..columns {
                groups.push(sums, (first + column..first + count).step_by(columns));
            }
        }
        summer.sums(
            &Source::Stored(&sums.points),
            &groups.entries,
            &groups.offsets,
            lines,
        );

        let mut groups = Groups::new();
        let mut weights = Vec::new();
        for window in windows.clone() {
            let first_row = (window - windows.start) as usize * (rows - 1 + columns);
            let first_column = first_row + rows - 1;
            for bit in 0..rows.ilog2() {
                let rows = (1..rows).filter(|row| row >> bit & 1 == 1);
                groups.push(lines, rows.map(|row| first_row + row - 1));
                weights.push(window * plan.window + column_bits + bit);
            }
            for bit in 0..=column_bits {
                let columns = (0..columns).filter(|column| (column + 1) >> bit & 1 == 1);
                groups.push(lines, columns.map(|column| first_column + column));
                weights.push(window * plan.window + bit);
            }
        }
        summer.sums(
            &Source::Stored(&lines.points),
            &groups.entries,
            &groups.offsets,
            sums,
        );
        let bits = (0..weights.len()).map(|group| sums.get(group));
        weights
            .iter()
            .zip(bits)
            .filter_map(|(weight, point)| Some((*weight, G::Inner::unpack(point?))))
            .collect()
    }

    /// The sum of the points.
    pub fn plain_sum(&mut self, points: &[G::Packed], entries: &[u32]) -> Option<Weighted<G>> {
        let offsets = [0, entries.len() as u32];
        self.summer
            .sums(&Source::Packed(points), entries, &offsets, &mut self.sums);
        Some((0, G::Inner::unpack(self.sums.get(0)?)))
    }
}
