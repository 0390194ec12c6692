//! Multi-scalar multiplication: `Σ scalarₖ·pointₖ`, by Pippenger's method with affine buckets.
//!
//! The scalars are sorted first. Zeros are left out; the points of ones and of minus ones are just summed up; short
//! scalars (and those whose negative is short) pay for the bits they have. All work is cut into tasks of one kind, some
//! windows of the scalars or a part of the ones, that the threads take one by one, with the caller asked in between.

mod scalars;
mod windows;

#[cfg(test)]
pub(crate) mod slow;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::ThreadPool;
use rayon::prelude::*;

use crate::Ifma;
use crate::group::Group;
use crate::group::sum;
use scalars::{Part, Sorted, sort};
use windows::{Plan, Weighted, Worker};

/// The terms of an MSM: which scalar goes with which point.
pub trait Terms: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` with the index of the point and the scalar, canonical and little-endian, of every term of a range.
    fn for_each(&self, range: Range<usize>, each: &mut dyn FnMut(u32, &[u8; 32]));
}

/// Every point takes the scalar of the same number.
impl Terms for &[[u8; 32]] {
    fn len(&self) -> usize {
        <[[u8; 32]]>::len(self)
    }

    fn for_each(&self, range: Range<usize>, each: &mut dyn FnMut(u32, &[u8; 32])) {
        for index in range {
            each(index as u32, &self[index]);
        }
    }
}

/// Fewer short scalars than this go with the long ones.
const SHORT_LEAST: usize = 64;
/// A task has at least about so many additions, if there is more than one for each thread.
const TASK_ADDITIONS: usize = 1 << 15;
/// Points of ones in one task at most.
const TASK_ONES: usize = 1 << 16;

/// One unit of work for one thread.
enum Task {
    Ones { part: usize, range: Range<usize> },
    Windows { group: usize, windows: Range<u32> },
}

/// Terms of about one length, and how they are cut into windows.
struct Batch {
    parts: Vec<Part>,
    plan: Plan,
}

/// `Σ scalar·point` over the terms, whose indices are below the number of points and below 2^31. Points are on the
/// curve and of order `r`, or the identity. `progress` hears after each task how many of how many are done; where it
/// breaks before the last, the result is `None`.
///
/// With a pool its threads do the work, without one the caller's does.
pub fn msm<G: Group>(
    ifma: Ifma,
    pool: Option<&ThreadPool>,
    points: &[G::Affine],
    terms: &dyn Terms,
    progress: &(dyn Fn(u64, u64) -> ControlFlow<()> + Sync),
) -> Option<G::Point> {
    let points = G::packed(points);
    let threads = pool.map_or(1, ThreadPool::current_num_threads);
    let (ones, batches) = prepare(terms, points, pool, threads);
    let tasks = schedule(&ones, &batches, threads);
    let (next, done, stopped) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut worker = None;
        let mut results = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let worker = worker.get_or_insert_with(|| Worker::<G>::new(ifma));
            match task {
                Task::Ones { part, range } => {
                    results.extend(worker.plain_sum(points, &ones[*part][range.clone()]));
                }
                Task::Windows { group, windows } => {
                    let Batch { parts, plan } = &batches[*group];
                    results.extend(worker.window_sums(points, parts, *plan, windows.clone()));
                }
            }
            let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
            if progress(finished as u64, tasks.len() as u64).is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        results
    };
    let results = match pool {
        Some(pool) if tasks.len() > 1 => pool.broadcast(|_| work()).into_iter().flatten().collect(),
        _ => work(),
    };
    // Stopped after the last task is not stopped: the result is there.
    (done.into_inner() == tasks.len()).then(|| combine::<G>(results))
}

/// Sorts the scalars, on all threads, and plans the windows.
fn prepare<W: AsRef<[u64]> + Sync>(
    terms: &dyn Terms,
    points: &[W],
    pool: Option<&ThreadPool>,
    threads: usize,
) -> (Vec<Vec<u32>>, Vec<Batch>) {
    let step = terms.len().div_ceil(threads).max(1024);
    let ranges = (0..terms.len().div_ceil(step)).map(|part| part * step..terms.len().min((part + 1) * step));
    let sorted: Vec<Sorted> = match pool {
        Some(pool) if threads > 1 => {
            let ranges: Vec<_> = ranges.collect();
            pool.install(|| {
                ranges
                    .into_par_iter()
                    .map(|range| sort(terms, points, range))
                    .collect()
            })
        }
        _ => ranges.map(|range| sort(terms, points, range)).collect(),
    };
    let mut ones = Vec::new();
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for part in sorted {
        ones.push(part.ones);
        short.push(part.short);
        long.push(part.long);
    }
    let count = |parts: &[Part]| parts.iter().map(|part| part.entries.len()).sum::<usize>();
    let mut batches = Vec::new();
    if count(&short) < SHORT_LEAST && count(&long) > 0 {
        for part in &mut short {
            part.widen();
        }
        long.append(&mut short);
    }
    for mut parts in [short, long] {
        let terms = count(&parts);
        if terms == 0 {
            continue;
        }
        let bits = parts.iter().map(|part| part.bits).max().unwrap_or(0);
        let plan = Plan::new(terms, bits);
        match pool {
            Some(pool) if threads > 1 => pool.install(|| {
                parts
                    .par_iter_mut()
                    .for_each(|part| part.bias(plan.window, plan.windows));
            }),
            _ => parts
                .iter_mut()
                .for_each(|part| part.bias(plan.window, plan.windows)),
        }
        batches.push(Batch { parts, plan });
    }
    (ones, batches)
}

/// The tasks, the longest first.
fn schedule(ones: &[Vec<u32>], batches: &[Batch], threads: usize) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (group, Batch { parts, plan }) in batches.iter().enumerate().rev() {
        let terms: usize = parts.iter().map(|part| part.entries.len()).sum();
        let windows = plan.windows as usize;
        let work = windows * (terms + 2 * plan.buckets());
        let count = work
            .div_ceil(TASK_ADDITIONS)
            .next_multiple_of(threads)
            .min(windows) as u32;
        tasks.extend((0..count).map(|task| Task::Windows {
            group,
            windows: plan.windows * task / count..plan.windows * (task + 1) / count,
        }));
    }
    for (part, entries) in ones.iter().enumerate() {
        let step = TASK_ONES.min(entries.len().div_ceil(threads)).max(1 << 12);
        tasks.extend((0..entries.len()).step_by(step).map(|start| Task::Ones {
            part,
            range: start..entries.len().min(start + step),
        }));
    }
    tasks
}

/// `Σ 2^weight·sum`, by doubling from the highest weight down.
fn combine<G: Group>(mut results: Vec<Weighted<G>>) -> G::Point {
    results.sort_unstable_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut total = G::Point::default();
    let mut at = results.first().map_or(0, |(weight, _)| *weight);
    for (weight, sum) in &results {
        for _ in *weight..at {
            total = G::double(&total);
        }
        at = *weight;
        total = G::add_affine(&total, sum);
    }
    for _ in 0..at {
        total = G::double(&total);
    }
    total
}

/// Bytes that an MSM over `terms` dense scalars takes at most beside its input: the scalars' magnitudes and signs, and
/// for each thread the list of one task and the buckets.
pub fn memory<G: Group>(terms: usize, threads: usize) -> u64 {
    let threads = threads.max(1) as u64;
    let mut worst = 0;
    for bits in [64, 254] {
        let plan = Plan::new(terms, bits);
        let windows = u64::from(plan.windows);
        let work = windows * (terms + 2 * plan.buckets()) as u64;
        let tasks = work
            .div_ceil(TASK_ADDITIONS as u64)
            .next_multiple_of(threads)
            .min(windows);
        let in_task = windows.div_ceil(tasks);
        let buckets = in_task * plan.buckets() as u64;
        // A bucket has a place in the list of offsets and in the order by length, a sum, and is in a row and a column.
        let a_bucket = 8 + 9 + size_of::<G::Stored>() as u64;
        worst = worst.max(threads * (4 * in_task * terms as u64 + a_bucket * buckets));
    }
    worst + 36 * terms as u64 + threads * sum::bytes::<G>()
}
