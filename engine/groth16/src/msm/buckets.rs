//! One task: some windows of a list of terms, from digits to sums.
//!
//! The digits of a window are signed, `−2^(c−1)..=2^(c−1)`, so there are `2^(c−1)` buckets; a counting sort puts each
//! term into its bucket. What is left after the buckets are summed up, `Σ b·sum_b`, is again sums of many groups: the
//! buckets are a table of rows and columns, `b = columns·i + j + 1`, and then
//! `Σ b·sum_b = columns·Σ i·row_i + Σ (j + 1)·column_j`, where either sum has few terms.

use std::ops::Range;

use zeroize::Zeroize;

use super::Pointers;
use super::sort::Terms;
use crate::affine::{Source, Summer, make_room};
use crate::curve::Curve;
use crate::field::ScalarBytes;
use crate::sums::NEGATIVE;

/// Fewer terms than this are left to blst's own tiles.
pub(super) const LEAST_TERMS: usize = 128;

// SAFETY: the pointers of terms are to points that outlive the list of terms, as `Terms` says.
unsafe impl<C: Curve> Source<C> for &Pointers<C::Affine> {
    #[inline]
    fn point(self, index: usize) -> *const C::Affine {
        self.0[index]
    }
}

/// What a thread works with, from one task to the next. Wiped when dropped.
pub(super) struct Worker<C: Curve> {
    summer: Summer<C>,
    entries: Vec<u32>,
    offsets: Vec<u32>,
    sums: Vec<C::Affine>,
    lines: Vec<C::Affine>,
}

impl<C: Curve> Drop for Worker<C> {
    fn drop(&mut self) {
        self.entries.zeroize();
        self.sums.iter_mut().chain(&mut self.lines).for_each(C::wipe);
    }
}

/// The signed digit of a scalar at the window of `window` bits that starts at `bit`.
#[inline]
fn digit(scalar: &ScalarBytes, bit: usize, window: usize) -> i32 {
    // The bit before the window says whether the window below took one too many.
    let start = bit.saturating_sub(1);
    let byte = (start / 8).min(24);
    let mut word = [0; 8];
    word.copy_from_slice(&scalar[byte..byte + 8]);
    let mut bits = u64::from_le_bytes(word) >> (start - 8 * byte);
    if bit == 0 {
        bits <<= 1;
    }
    let bits = (bits & ((2 << window) - 1)) as i32;
    // Half of it, rounded up, less the window's size where its first bit is set.
    ((bits + 1) >> 1) - ((bits >> window) << window)
}

impl<C: Curve> Worker<C> {
    pub fn new() -> Self {
        Worker {
            summer: Summer::new(),
            entries: Vec::new(),
            offsets: Vec::new(),
            sums: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// For each of some windows, the sum of all terms of a range times their digits there.
    ///
    /// # Safety
    /// The pointers to the terms' scalars are valid.
    pub unsafe fn windows(
        &mut self,
        terms: &Terms<C>,
        range: Range<usize>,
        windows: Range<usize>,
        window: usize,
    ) -> Vec<C::Point> {
        let buckets = 1 << (window - 1);
        let count = windows.len() * buckets;
        let scalars = &terms.scalars.0[range.clone()];
        let bucket = |row: usize, digit: i32| row * buckets + digit.unsigned_abs() as usize - 1;
        // Counted two places further, so that after they are summed up a bucket's place can move to its end.
        self.offsets.clear();
        self.offsets.resize(count + 2, 0);
        for (row, at) in windows.clone().enumerate() {
            for scalar in scalars {
                // SAFETY: the caller's word.
                let digit = digit(unsafe { &*scalar.cast::<ScalarBytes>() }, at * window, window);
                if digit != 0 {
                    self.offsets[bucket(row, digit) + 2] += 1;
                }
            }
        }
        for place in 1..self.offsets.len() {
            self.offsets[place] += self.offsets[place - 1];
        }
        let total = self.offsets[count + 1] as usize;
        self.entries.zeroize();
        self.entries.resize(total, 0);
        for (row, at) in windows.clone().enumerate() {
            for (scalar, index) in scalars.iter().zip(range.start as u32..) {
                // SAFETY: the caller's word.
                let digit = digit(unsafe { &*scalar.cast::<ScalarBytes>() }, at * window, window);
                if digit != 0 {
                    let place = &mut self.offsets[bucket(row, digit) + 1];
                    self.entries[*place as usize] = if digit < 0 { index | NEGATIVE } else { index };
                    *place += 1;
                }
            }
        }
        self.offsets.pop();
        make_room::<C>(&mut self.sums, count);
        self.summer.sums(
            &terms.points,
            &self.entries,
            &self.offsets,
            &mut self.sums[..count],
        );
        self.weigh(windows.len(), window)
    }

    /// From the buckets' sums each window's.
    fn weigh(&mut self, windows: usize, window: usize) -> Vec<C::Point> {
        let columns = 1u32 << (window - 1).div_ceil(2);
        let rows = 1u32 << ((window - 1) / 2);
        // Rows, then columns, of each window.
        self.entries.zeroize();
        self.offsets.clear();
        self.offsets.push(0);
        for first in (0..windows as u32).map(|at| at * rows * columns) {
            for row in 0..rows {
                let start = first + row * columns;
                self.entries.extend(start..start + columns);
                self.offsets.push(self.entries.len() as u32);
            }
            for column in 0..columns {
                self.entries
                    .extend((0..rows).map(|row| first + row * columns + column));
                self.offsets.push(self.entries.len() as u32);
            }
        }
        let lines = (rows + columns) as usize;
        make_room::<C>(&mut self.lines, windows * lines);
        let found = &mut self.lines[..windows * lines];
        self.summer
            .sums(&self.sums[..], &self.entries, &self.offsets, found);
        found
            .chunks_exact(lines)
            .map(|lines| {
                let (rows, columns) = lines.split_at(rows as usize);
                // Row 0 counts nothing.
                let mut sum = multiples::<C>(&rows[1..]);
                for _ in 0..(window - 1).div_ceil(2) {
                    sum = C::double(&sum);
                }
                C::add(&sum, &multiples::<C>(columns))
            })
            .collect()
    }
}

/// `Σ (k + 1)·points[k]`.
fn multiples<C: Curve>(points: &[C::Affine]) -> C::Point {
    let (mut rest, mut sum) = (C::Point::default(), C::Point::default());
    for point in points.iter().rev() {
        rest = C::add_affine(&rest, point);
        sum = C::add(&sum, &rest);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    #[test]
    fn digits_add_up_to_the_scalar() {
        let seed = rand::thread_rng().next_u64();
        eprintln!("seed {seed}");
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut scalars = vec![[0; 32], [0xff; 32], [0x55; 32], [0xaa; 32], [0x80; 32]];
        for _ in 0..50 {
            let mut scalar = [0; 32];
            random.fill_bytes(&mut scalar);
            scalars.push(scalar);
        }
        for mut scalar in scalars {
            scalar[31] &= 0x7f;
            for window in 1..=16usize {
                // Summed from the last window down, as a number of 32-bit limbs with signs, carried at the end.
                let mut limbs = [0i64; 10];
                for at in 0..=255 / window {
                    let digit = i64::from(digit(&scalar, at * window, window));
                    assert!(digit.abs() <= 1 << (window - 1), "{digit} of {window} bits");
                    let bit = at * window;
                    limbs[bit / 32] += digit << (bit % 32);
                }
                let mut found = [0u8; 32];
                let mut carry = 0;
                for (limb, bytes) in limbs.iter().zip(found.as_chunks_mut::<4>().0) {
                    let value = limb + carry;
                    *bytes = (value as u32).to_le_bytes();
                    carry = value >> 32;
                }
                assert_eq!(found, scalar, "windows of {window} bits");
            }
        }
    }
}
