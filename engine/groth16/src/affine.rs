//! Sums of many groups of points at once by additions of affine points that share their inversions.
//!
//! With the inverse of `x₂ − x₁` at hand an affine addition is three multiplications, and a batch of inverses costs three
//! each and one inversion (Montgomery's trick): six, where an addition into a bucket of four coordinates is ten. So the
//! points of every group are added in pairs, the sums again, and so on, all groups side by side, until each group is one
//! point. Equal points, opposite ones and identities are found and added as they must be.
//!
//! It takes time by which points are added, as everything here does: see the crate's word on constant time.

use blst::*;
use zeroize::Zeroize;

use crate::curve::Curve;
use crate::sums::NEGATIVE;

/// Additions that share an inversion: it costs as much as about 90 multiplications.
const BATCH: usize = 1024;
/// Entries whose groups are worked side by side: at most as many points are held, twice.
const SLAB: usize = 8192;
/// Pairs that are worked step by step together.
const STEP: usize = 8;
/// How many pairs ahead the points are fetched.
const AHEAD: usize = 8;

/// An element of the field that a curve's coordinates are of.
///
/// Results are written to where they stay: blst stores words, and to copy them at once, in wider pieces, makes a processor
/// wait until they are in its cache, which costs a third of a multiplication.
pub trait Coordinate: Copy + Default + PartialEq + Send + Sync + 'static {
    /// One.
    const ONE: Self;
    /// `self = a·b`.
    fn set_product(&mut self, a: &Self, b: &Self);
    /// `self = a²`.
    fn set_square(&mut self, a: &Self);
    /// `self = a + b`.
    fn set_sum(&mut self, a: &Self, b: &Self);
    /// `self = a − b`.
    fn set_difference(&mut self, a: &Self, b: &Self);
    /// `self = 1/a`; of zero it is zero.
    fn set_inverse(&mut self, a: &Self);
    /// `self += a`.
    fn add(&mut self, a: &Self);
    /// `self −= a`.
    fn sub(&mut self, a: &Self);
    /// `self *= a`.
    fn mul(&mut self, a: &Self);
    /// Whether this is zero.
    fn is_zero(&self) -> bool;
    /// Whether the two are the same, which they hardly ever are.
    fn equals(&self, other: &Self) -> bool;
    /// Its words, to be wiped.
    fn words(&mut self) -> &mut [u64];
}

macro_rules! coordinate {
    ($field:ident, $mul:ident, $square:ident, $add:ident, $sub:ident, $inverse:ident, $one:expr, $is_zero:expr, $first:expr, $words:expr) => {
        // SAFETY for every call into blst below: pointers come from references that live through the call, and blst reads
        // what it needs of its operands before it writes, so that a result may lie where an operand does.
        impl Coordinate for $field {
            const ONE: Self = $one;

            #[inline]
            fn set_product(&mut self, a: &Self, b: &Self) {
                unsafe { $mul(self, a, b) };
            }
            #[inline]
            fn set_square(&mut self, a: &Self) {
                unsafe { $square(self, a) };
            }
            #[inline]
            fn set_sum(&mut self, a: &Self, b: &Self) {
                unsafe { $add(self, a, b) };
            }
            #[inline]
            fn set_difference(&mut self, a: &Self, b: &Self) {
                unsafe { $sub(self, a, b) };
            }
            fn set_inverse(&mut self, a: &Self) {
                unsafe { $inverse(self, a) };
            }
            #[inline]
            fn add(&mut self, a: &Self) {
                let this: *mut Self = self;
                unsafe { $add(this, this, a) };
            }
            #[inline]
            fn sub(&mut self, a: &Self) {
                let this: *mut Self = self;
                unsafe { $sub(this, this, a) };
            }
            #[inline]
            fn mul(&mut self, a: &Self) {
                let this: *mut Self = self;
                unsafe { $mul(this, this, a) };
            }
            #[inline]
            fn is_zero(&self) -> bool {
                let is_zero: fn(&Self) -> bool = $is_zero;
                is_zero(self)
            }
            #[inline]
            fn equals(&self, other: &Self) -> bool {
                let first: fn(&Self) -> u64 = $first;
                first(self) == first(other) && self == other
            }
            fn words(&mut self) -> &mut [u64] {
                let words: fn(&mut Self) -> &mut [u64] = $words;
                words(self)
            }
        }
    };
}

coordinate!(
    blst_fp,
    blst_fp_mul,
    blst_fp_sqr,
    blst_fp_add,
    blst_fp_sub,
    blst_fp_inverse,
    blst_fp { l: ONE },
    |value| value.l.iter().fold(0, |all, limb| all | limb) == 0,
    |value| value.l[0],
    |value| &mut value.l
);
coordinate!(
    blst_fp2,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_inverse,
    blst_fp2 {
        fp: [blst_fp { l: ONE }, blst_fp { l: [0; 6] }]
    },
    |value| value.fp.iter().all(Coordinate::is_zero),
    |value| value.fp[0].l[0],
    |value| {
        // SAFETY: two elements of six words each, without padding.
        unsafe { std::slice::from_raw_parts_mut((&raw mut value.fp).cast::<u64>(), 12) }
    }
);

/// `2^384` modulo the base field's order: one in Montgomery form.
const ONE: [u64; 6] = [
    0x7609_0000_0002_fffd,
    0xebf4_000b_c40c_0002,
    0x5f48_9857_53c7_58ba,
    0x77ce_5853_7052_5745,
    0x5c07_1a97_a256_ec6d,
    0x15f6_5ec3_fa80_e493,
];

/// Where the points that entries name are.
///
/// # Safety
/// The pointers are to points that live as long as the source does.
pub(crate) unsafe trait Source<C: Curve>: Copy {
    /// The point of that number.
    fn point(self, index: usize) -> *const C::Affine;
}

// SAFETY: elements of a slice live as long as it does.
unsafe impl<C: Curve> Source<C> for &[C::Affine] {
    #[inline]
    fn point(self, index: usize) -> *const C::Affine {
        &raw const self[index]
    }
}

/// A pair of neighbours in a list, and where their sum goes.
#[derive(Clone, Copy)]
struct Pair {
    first: u32,
    to: u32,
}

/// A pair whose sum is not by the chord: its place in the batch, and whether it is by the tangent.
#[derive(Clone, Copy)]
struct Special {
    place: usize,
    tangent: bool,
}

/// What a thread adds up with. Its memory is wiped when it is dropped, since which points are added tells about scalars.
pub(crate) struct Summer<C: Curve> {
    lists: [Vec<C::Affine>; 2],
    lengths: Vec<u32>,
    pairs: Vec<Pair>,
    differences: Vec<C::Coordinate>,
    products: Vec<C::Coordinate>,
    special: Vec<Special>,
}

impl<C: Curve> Drop for Summer<C> {
    fn drop(&mut self) {
        for point in self.lists.iter_mut().flatten() {
            C::wipe(point);
        }
        for value in self.differences.iter_mut().chain(&mut self.products) {
            value.words().zeroize();
        }
    }
}

impl<C: Curve> Summer<C> {
    pub fn new() -> Self {
        Summer {
            lists: [Vec::new(), Vec::new()],
            lengths: Vec::new(),
            pairs: Vec::with_capacity(BATCH),
            differences: vec![C::Coordinate::default(); BATCH],
            products: vec![C::Coordinate::default(); BATCH + 2],
            special: Vec::new(),
        }
    }

    /// Bytes that one holds at most.
    pub const fn bytes() -> usize {
        let coordinate = size_of::<C::Coordinate>();
        2 * SLAB * size_of::<C::Affine>() + BATCH * (2 * coordinate + 8) + 4 * SLAB
    }

    /// The sums of groups of points: group `k` is what the entries from `offsets[k]` to `offsets[k + 1]` name.
    pub fn sums(&mut self, source: impl Source<C>, entries: &[u32], offsets: &[u32], out: &mut [C::Affine]) {
        assert_eq!(offsets.len(), out.len() + 1, "a sum for each group");
        let length = |group: usize| (offsets[group + 1] - offsets[group]) as usize;
        let mut group = 0;
        while group < out.len() {
            let first = group;
            let start = offsets[first] as usize;
            if length(first) > SLAB {
                out[first] = self.long(source, &entries[start..offsets[first + 1] as usize]);
                group += 1;
                continue;
            }
            self.lengths.clear();
            while group < out.len() && offsets[group + 1] as usize - start <= SLAB {
                self.lengths.push(length(group) as u32);
                group += 1;
            }
            let named = Named {
                source,
                entries: &entries[start..],
            };
            self.slab(named, &mut out[first..group]);
        }
    }

    /// The sum of a group that is longer than a slab.
    fn long(&mut self, source: impl Source<C>, entries: &[u32]) -> C::Affine {
        let mut sum = C::Point::default();
        for start in (0..entries.len()).step_by(SLAB) {
            let mut part = [C::Affine::default()];
            let entries = &entries[start..];
            self.lengths.clear();
            self.lengths.push(entries.len().min(SLAB) as u32);
            self.slab(Named { source, entries }, &mut part);
            sum = C::add_affine(&sum, &part[0]);
        }
        C::to_affine(&sum)
    }

    /// The sums of neighbouring groups, whose lengths are set: of the first of what is named.
    fn slab(&mut self, named: Named<'_, impl Source<C>>, out: &mut [C::Affine]) {
        let [mut list, mut next] = std::mem::take(&mut self.lists);
        let mut most = self.halve(named, &mut list);
        while most > 1 {
            most = self.halve(Listed(&list), &mut next);
            std::mem::swap(&mut list, &mut next);
        }
        let mut sums = list.iter();
        for (out, length) in out.iter_mut().zip(&self.lengths) {
            *out = match length {
                0 => C::Affine::default(),
                _ => sums.next().copied().unwrap_or_default(),
            };
        }
        self.lists = [list, next];
    }

    /// Adds each group's points in pairs into another list, and gives the longest group's length there.
    fn halve(&mut self, from: impl List<C>, to: &mut Vec<C::Affine>) -> u32 {
        let mut lengths = std::mem::take(&mut self.lengths);
        let total: u32 = lengths.iter().map(|length| length.div_ceil(2)).sum();
        make_room::<C>(to, total as usize);
        let (mut first, mut place, mut most) = (0, 0, 0);
        for length in &mut lengths {
            for pair in 0..*length / 2 {
                self.pairs.push(Pair {
                    first: first + 2 * pair,
                    to: place + pair,
                });
                if self.pairs.len() == BATCH {
                    self.add_pairs(from, to);
                }
            }
            if *length % 2 == 1 {
                to[(place + *length / 2) as usize] = from.get((first + *length - 1) as usize).value();
            }
            first += *length;
            *length = length.div_ceil(2);
            place += *length;
            most = most.max(*length);
        }
        self.lengths = lengths;
        self.add_pairs(from, to);
        most
    }

    /// Adds the pairs in work.
    fn add_pairs(&mut self, from: impl List<C>, to: &mut [C::Affine]) {
        let count = self.pairs.len();
        let Some(last) = self.pairs.last() else { return };
        let next = last.first as usize + 2;
        // Two chains of products, of the differences at even and at odd places before each: a multiplication that waits
        // for the one before it takes a quarter longer than one of many.
        let (products, differences) = (&mut self.products[..count + 2], &mut self.differences[..count]);
        products[0] = C::Coordinate::ONE;
        products[1] = C::Coordinate::ONE;
        for (place, pair) in self.pairs.iter().enumerate() {
            if let Some(later) = self.pairs.get(place + AHEAD) {
                from.fetch(later.first as usize);
                from.fetch(later.first as usize + 1);
            }
            let (a, b) = from.pair(pair);
            let difference = &mut differences[place];
            if a.x().equals(b.x()) || a.is_identity() || b.is_identity() {
                let tangent = tangent(a, b);
                self.special.push(Special {
                    place,
                    tangent: tangent.is_some(),
                });
                *difference = tangent.unwrap_or(C::Coordinate::ONE);
            } else {
                difference.set_difference(b.x(), a.x());
            }
            let (before, after) = products.split_at_mut(place + 2);
            after[0].set_product(&before[place], difference);
        }
        {
            let (even, odd) = (products[count], products[count + 1]);
            let (mut product, mut inverse) = (even, C::Coordinate::default());
            product.mul(&odd);
            inverse.set_inverse(&product);
            products[count].set_product(&inverse, &odd);
            products[count + 1].set_product(&inverse, &even);
        }
        let mut slopes = [C::Coordinate::default(); STEP];
        let mut runs = [C::Coordinate::default(); STEP];
        let mut end = count;
        // One step of several pairs, then the next step of them, so that multiplications don't wait for each other.
        while end > 0 {
            let start = end.saturating_sub(STEP);
            let pairs = &self.pairs[start..end];
            // The next batch's points are fetched while there is time.
            for place in 2 * (count - end)..2 * (count - start) {
                from.fetch(next + place);
            }
            for place in (start..end).rev() {
                // What was the product up to here is the inverse of it now.
                let (before, after) = products.split_at_mut(place + 2);
                let (before, inverse) = (&mut before[place], &after[0]);
                runs[place - start].set_product(inverse, before);
                before.set_product(inverse, &differences[place]);
            }
            for ((pair, slope), run) in pairs.iter().zip(&mut slopes).zip(&runs) {
                // (±by ∓ ay)/(bx − ax), but for its sign where only b is negative: that is made up for below.
                let (a, b) = from.pair(pair);
                match (a.negative, b.negative) {
                    (false, false) => slope.set_difference(b.y(), a.y()),
                    (true, true) => slope.set_difference(a.y(), b.y()),
                    _ => slope.set_sum(a.y(), b.y()),
                }
                slope.mul(run);
            }
            let mut specials = self.special.len();
            while specials > 0 && self.special[specials - 1].place >= start {
                specials -= 1;
                let special = self.special[specials];
                let pair = &self.pairs[special.place];
                let (a, b) = from.pair(pair);
                to[pair.to as usize] = special_sum(a, b, special, &runs[special.place - start]);
            }
            let specials = self.special.drain(specials..);
            let mut skip = [false; STEP];
            specials.for_each(|special| skip[special.place - start] = true);
            for (((pair, slope), run), _) in pairs
                .iter()
                .zip(&slopes)
                .zip(&mut runs)
                .zip(skip)
                .filter(|(_, skip)| !skip)
            {
                let (a, b) = from.pair(pair);
                let (x, _) = C::coordinates_mut(&mut to[pair.to as usize]);
                x.set_square(slope);
                x.sub(a.x());
                x.sub(b.x());
                if b.negative && !a.negative {
                    run.set_difference(x, a.x());
                } else {
                    run.set_difference(a.x(), x);
                }
            }
            for (((pair, slope), run), _) in pairs
                .iter()
                .zip(&slopes)
                .zip(&runs)
                .zip(skip)
                .filter(|(_, skip)| !skip)
            {
                let (a, _) = from.pair(pair);
                let (_, y) = C::coordinates_mut(&mut to[pair.to as usize]);
                y.set_product(slope, run);
                if a.negative {
                    y.add(a.y());
                } else {
                    y.sub(a.y());
                }
            }
            end = start;
        }
        self.pairs.clear();
    }
}

/// The denominator of the slope of the tangent, if two points are one that has a tangent to add by.
#[cold]
fn tangent<C: Curve>(a: Signed<'_, C>, b: Signed<'_, C>) -> Option<C::Coordinate> {
    let (a, b) = (a.value(), b.value());
    let (_, y) = C::coordinates(&a);
    let mut double = *y;
    double.add(y);
    (a == b && !y.is_zero()).then_some(double)
}

/// The sum of two points that no chord goes through.
#[cold]
fn special_sum<C: Curve>(
    a: Signed<'_, C>,
    b: Signed<'_, C>,
    special: Special,
    reciprocal: &C::Coordinate,
) -> C::Affine {
    let (a, b) = (a.value(), b.value());
    if !special.tangent {
        return match (C::is_identity(&a), C::is_identity(&b)) {
            (true, _) => b,
            (_, true) => a,
            _ => C::Affine::default(),
        };
    }
    let (ax, ay) = C::coordinates(&a);
    let mut square = C::Coordinate::default();
    square.set_square(ax);
    let mut slope = square;
    slope.add(&square);
    slope.add(&square);
    slope.mul(reciprocal);
    let mut sum = C::Affine::default();
    let (x, y) = C::coordinates_mut(&mut sum);
    x.set_square(&slope);
    x.sub(ax);
    x.sub(ax);
    let mut run = *ax;
    run.sub(x);
    y.set_product(&slope, &run);
    y.sub(ay);
    sum
}

/// A point in place, or its negative.
struct Signed<'a, C: Curve> {
    point: &'a C::Affine,
    negative: bool,
}

impl<C: Curve> Clone for Signed<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Curve> Copy for Signed<'_, C> {}

impl<'a, C: Curve> Signed<'a, C> {
    #[inline]
    fn x(self) -> &'a C::Coordinate {
        C::coordinates(self.point).0
    }

    #[inline]
    fn y(self) -> &'a C::Coordinate {
        C::coordinates(self.point).1
    }

    #[inline]
    fn is_identity(self) -> bool {
        self.x().is_zero() && self.y().is_zero()
    }

    fn value(self) -> C::Affine {
        if self.negative {
            C::neg_affine(self.point)
        } else {
            *self.point
        }
    }
}

/// Points that are added in pairs.
trait List<C: Curve>: Copy {
    /// The point at a place.
    fn get(&self, place: usize) -> Signed<'_, C>;
    /// Asks for one that is read soon.
    fn fetch(&self, place: usize);
    /// Both points of a pair.
    #[inline]
    fn pair(&self, pair: &Pair) -> (Signed<'_, C>, Signed<'_, C>) {
        (self.get(pair.first as usize), self.get(pair.first as usize + 1))
    }
}

/// What entries name.
#[derive(Clone, Copy)]
struct Named<'a, S> {
    source: S,
    entries: &'a [u32],
}

impl<C: Curve, S: Source<C>> List<C> for Named<'_, S> {
    #[inline]
    fn get(&self, place: usize) -> Signed<'_, C> {
        let entry = self.entries[place];
        Signed {
            // SAFETY: the point lives as long as the source does, of which this is a copy.
            point: unsafe { &*self.source.point((entry & !NEGATIVE) as usize) },
            negative: entry & NEGATIVE != 0,
        }
    }

    #[inline]
    fn fetch(&self, place: usize) {
        if let Some(entry) = self.entries.get(place) {
            prefetch(self.source.point((entry & !NEGATIVE) as usize));
        }
    }
}

/// Sums of pairs.
struct Listed<'a, C: Curve>(&'a [C::Affine]);

impl<C: Curve> Clone for Listed<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Curve> Copy for Listed<'_, C> {}

impl<C: Curve> List<C> for Listed<'_, C> {
    #[inline]
    fn get(&self, place: usize) -> Signed<'_, C> {
        Signed {
            point: &self.0[place],
            negative: false,
        }
    }

    #[inline]
    fn fetch(&self, _place: usize) {}
}

/// Makes a list as long, at least, whose points are written anew. What was there is wiped first, not left behind.
pub(crate) fn make_room<C: Curve>(list: &mut Vec<C::Affine>, length: usize) {
    if list.len() < length {
        list.iter_mut().for_each(C::wipe);
        *list = vec![C::Affine::default(); length.next_power_of_two()];
    }
}

/// Asks for a point that will be read soon.
#[inline]
fn prefetch<T>(point: *const T) {
    #[cfg(target_arch = "x86_64")]
    for byte in (0..size_of::<T>()).step_by(64).chain([size_of::<T>() - 1]) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address has no effect but on the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(point.cast::<i8>().wrapping_add(byte)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = point;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;
    use crate::curve::{G1, G2};
    use rand::{Rng, RngCore, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    #[test]
    fn one_is_one() {
        fn check<F: Coordinate + std::fmt::Debug>(value: F) {
            let mut product = F::default();
            product.set_product(&value, &F::ONE);
            assert_eq!(product, value);
            let mut inverse = F::default();
            inverse.set_inverse(&value);
            product.mul(&inverse);
            assert_eq!(product, F::ONE);
        }
        check(G1::generator().x);
        check(G2::generator().x);
    }

    /// Points by number: the identity, multiples of the generator, and their negatives.
    fn points<C: Curve>(count: usize) -> Vec<C::Affine> {
        let mut all = vec![C::Point::default()];
        let mut point = C::to_point(&C::generator());
        while all.len() < count {
            all.push(point);
            all.push(C::neg(&point));
            point = C::add_affine(&C::double(&point), &C::generator());
        }
        all.truncate(count);
        C::batch_to_affine(&all)
    }

    fn naive<C: Curve>(points: &[C::Affine], entries: &[u32]) -> C::Affine {
        let sum = entries.iter().fold(C::Point::default(), |sum, entry| {
            let point = points[(entry & !NEGATIVE) as usize];
            let point = if entry & NEGATIVE == 0 {
                point
            } else {
                C::neg_affine(&point)
            };
            C::add_affine(&sum, &point)
        });
        C::to_affine(&sum)
    }

    fn check<C: Curve>(summer: &mut Summer<C>, points: &[C::Affine], groups: &[Vec<u32>]) {
        let mut offsets = vec![0];
        let mut entries = Vec::new();
        for group in groups {
            entries.extend_from_slice(group);
            offsets.push(entries.len() as u32);
        }
        let mut found = vec![C::generator(); groups.len()];
        summer.sums(points, &entries, &offsets, &mut found);
        for (index, (group, found)) in groups.iter().zip(&found).enumerate() {
            assert!(
                *found == naive::<C>(points, group),
                "group {index} of {}, of {} points",
                groups.len(),
                group.len()
            );
        }
    }

    /// Few points, so that equal and opposite ones meet in every round, and many, so that they don't.
    fn agrees<C: Curve>(seed: u64) {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut summer = Summer::<C>::new();
        for of in [1, 2, 3, 7, 400] {
            let points = points::<C>(of);
            for (groups, longest) in [(0, 1), (1, 1), (3, 2), (700, 9), (40, 300), (2, 3 * BATCH)] {
                let groups: Vec<Vec<u32>> = (0..groups)
                    .map(|_| {
                        (0..random.gen_range(0..=longest))
                            .map(|_| {
                                let sign = if random.r#gen() { NEGATIVE } else { 0 };
                                random.gen_range(0..of) as u32 | sign
                            })
                            .collect()
                    })
                    .collect();
                check(&mut summer, &points, &groups);
            }
        }
        // One point and its double, over and over: each round is made of tangents, then of identities.
        let points = points::<C>(4);
        for length in [2, 64, 1000, 1024, 2 * BATCH, 2 * BATCH + 1] {
            check(&mut summer, &points, &[vec![1; length]]);
            let opposite: Vec<u32> = (0..length as u32).map(|at| 1 | (at % 2) << 31).collect();
            check(&mut summer, &points, &[opposite, vec![0; length], vec![2; 3]]);
        }
    }

    #[test]
    fn sums_agree_with_adding_one_by_one() {
        let seed = rand::thread_rng().next_u64();
        eprintln!("seed {seed}");
        agrees::<G1>(seed);
        agrees::<G2>(seed);
    }

    #[test]
    fn groups_at_the_size_of_a_slab_are_summed_whole() {
        let points = points::<G1>(300);
        let mut summer = Summer::<G1>::new();
        let group = |length: usize| -> Vec<u32> { (0..length as u32).map(|at| at % 299 + 1).collect() };
        for length in [SLAB - 1, SLAB, SLAB + 1, 2 * SLAB, 2 * SLAB + 3] {
            check(
                &mut summer,
                &points,
                &[group(5), group(length), group(0), group(length), group(1)],
            );
        }
    }
}
