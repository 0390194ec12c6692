//! Multi-scalar multiplication: `Σ scalarₖ·pointₖ`, by Pippenger's method over blst's field.
//!
//! The scalars are sorted first. Zeros are left out, the points of ones are summed by batched affine additions, short
//! scalars get their own tiles with few windows, and only the rest pays for 255 bits. Buckets are summed by batched affine
//! additions too; a tile of few terms is blst's own. All work is cut into tasks that the threads take one by one, with the
//! caller's [`Control`] asked in between.

mod buckets;
mod plan;
mod sort;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::ThreadPool;

use crate::bases::BaseSet;
use crate::control::{Control, Stopped, Unwatched};
use crate::curve::Curve;
use crate::field::ScalarBytes;
use buckets::{LEAST_TERMS, Worker};
pub use plan::thread_bytes;
use plan::{Plan, SUM_CHUNK};
use sort::{Sorted, Terms};

/// One unit of work for one thread.
#[derive(Clone, Copy)]
enum Task {
    /// Sum the points of ones from here to there.
    Sum { start: usize, end: usize },
    /// A tile of group `group`: points from here to there, digits of `rows` windows from `row` on.
    Tile {
        group: usize,
        start: usize,
        end: usize,
        row: usize,
        rows: usize,
    },
}

/// A finished task by its number: the sum, or those of its windows.
type Done<C> = (usize, Vec<<C as Curve>::Point>);

/// `Σ scalars[wire(k)]·point(k)`; the scalars are canonical.
///
/// # Panics
/// If `scalars` is shorter than [`BaseSet::scalars_needed`].
pub fn msm<C: Curve>(
    pool: &ThreadPool,
    bases: &BaseSet<C>,
    scalars: &[ScalarBytes],
    control: &dyn Control,
) -> Result<C::Point, Stopped> {
    let threads = pool.current_num_threads();
    let sorted = pool.install(|| sort::sort(bases, scalars, threads));
    let (tasks, plans) = schedule(&sorted, threads);
    let results = run(Some(pool), &sorted, &tasks, &plans, control)?;
    Ok(combine::<C>(&tasks, &plans, results))
}

/// The same on the calling thread alone, for the small sums of verification.
///
/// # Panics
/// As [`msm`].
pub fn msm_on_this_thread<C: Curve>(bases: &BaseSet<C>, scalars: &[ScalarBytes]) -> C::Point {
    let sorted = sort::sort(bases, scalars, 1);
    let (tasks, plans) = schedule(&sorted, 1);
    match run(None, &sorted, &tasks, &plans, &Unwatched) {
        Ok(results) => combine::<C>(&tasks, &plans, results),
        Err(Stopped) => unreachable!("no one stops it"),
    }
}

fn schedule<C: Curve>(sorted: &Sorted<C>, threads: usize) -> (Vec<Task>, Vec<Plan>) {
    let mut tasks = Vec::new();
    let mut plans = Vec::new();
    for (group, terms) in sorted.groups.iter().enumerate() {
        let plan = Plan::new(terms.len(), terms.bits, threads);
        for start in (0..terms.len()).step_by(plan.chunk.max(1)) {
            // A tile needs two points, so a last chunk of one is joined to the one before it.
            if terms.len() - start < 2 {
                continue;
            }
            let rest = terms.len() - start;
            let end = if rest <= plan.chunk + 1 {
                terms.len()
            } else {
                start + plan.chunk
            };
            let step = plan.rows_at_once(end - start, threads);
            tasks.extend((0..plan.rows).step_by(step).map(|row| Task::Tile {
                group,
                start,
                end,
                row,
                rows: step.min(plan.rows - row),
            }));
        }
        plans.push(plan);
    }
    let ones = sorted.ones.len();
    tasks.extend((0..ones).step_by(SUM_CHUNK).map(|start| Task::Sum {
        start,
        end: ones.min(start + SUM_CHUNK),
    }));
    (tasks, plans)
}

fn run<C: Curve>(
    pool: Option<&ThreadPool>,
    sorted: &Sorted<C>,
    tasks: &[Task],
    plans: &[Plan],
    control: &dyn Control,
) -> Result<Vec<Done<C>>, Stopped> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let stopped = AtomicBool::new(false);
    let window = plans.iter().map(|plan| plan.window).max().unwrap_or(1);
    let work = || {
        let mut buckets: Vec<u64> = Vec::new();
        let mut worker = None;
        let mut results = Vec::new();
        while !stopped.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { break };
            let points = match *task {
                // SAFETY: the range is not empty, and the pointers come from the bases, which outlive this call.
                Task::Sum { start, end } => vec![unsafe { C::sum(&sorted.ones.0[start..end]) }],
                Task::Tile {
                    group,
                    start,
                    end,
                    row,
                    rows,
                } if end - start >= LEAST_TERMS => {
                    let worker = worker.get_or_insert_with(Worker::new);
                    let (terms, windows) = (&sorted.groups[group], row..row + rows);
                    // SAFETY: the pointers come from the scalars, which outlive this call.
                    unsafe { worker.windows(terms, start..end, windows, plans[group].window) }
                }
                Task::Tile {
                    group,
                    start,
                    end,
                    row,
                    rows,
                } => {
                    let (terms, plan) = (&sorted.groups[group], &plans[group]);
                    if buckets.is_empty() {
                        buckets.resize(C::BUCKET_WORDS << (window - 1), 0);
                    }
                    // SAFETY: `schedule` makes ranges of at least two terms, the pointers come from the bases and
                    // the scalars, which outlive this call, and the buckets are made for the widest window.
                    let mut tile = |row| unsafe {
                        C::tile(
                            &terms.points.0[start..end],
                            &terms.scalars.0[start..end],
                            terms.bits,
                            &mut buckets,
                            row * plan.window,
                            plan.window,
                        )
                    };
                    (row..row + rows).map(&mut tile).collect()
                }
            };
            results.push((index, points));
            let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
            if control.progress(finished as u64, tasks.len() as u64).is_break() {
                stopped.store(true, Ordering::Relaxed);
            }
        }
        results
    };
    let parts = match pool {
        Some(pool) if tasks.len() > 1 => pool.broadcast(|_| work()),
        _ => vec![work()],
    };
    // Stopped after the last task is not stopped: the result is there.
    if done.load(Ordering::Relaxed) < tasks.len() {
        return Err(Stopped);
    }
    Ok(parts.into_iter().flatten().collect())
}

/// Adds up the tiles of each row, then the rows by Horner's rule, then the groups.
fn combine<C: Curve>(tasks: &[Task], plans: &[Plan], results: Vec<Done<C>>) -> C::Point {
    let mut rows: Vec<Vec<C::Point>> = plans
        .iter()
        .map(|plan| vec![C::Point::default(); plan.rows])
        .collect();
    let mut total = C::Point::default();
    for (index, points) in results {
        match tasks[index] {
            Task::Sum { .. } => total = points.iter().fold(total, |total, point| C::add(&total, point)),
            Task::Tile { group, row, .. } => {
                for (sum, point) in rows[group][row..].iter_mut().zip(&points) {
                    *sum = C::add(sum, point);
                }
            }
        }
    }
    for (rows, plan) in rows.iter().zip(plans) {
        let mut sum = C::Point::default();
        for row in rows.iter().rev() {
            for _ in 0..plan.window {
                sum = C::double(&sum);
            }
            sum = C::add(&sum, row);
        }
        total = C::add(&total, &sum);
    }
    total
}

/// A list of pointers that may go to other threads: what they point at is borrowed by the same structure.
struct Pointers<T>(Vec<*const T>);

// SAFETY: the pointers are only read through, and the data they point at is `Sync` and outlives them.
unsafe impl<T: Sync> Send for Pointers<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Pointers<T> {}

impl<T> Pointers<T> {
    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<C: Curve> Terms<C> {
    fn len(&self) -> usize {
        self.points.len()
    }
}

#[cfg(test)]
mod tests;
