//! Sums of many groups of points at once: the buckets of an MSM.
//!
//! A lane is a group. The groups are ordered by length and taken eight at a time, a *block*; row `r` of a block holds
//! the `r`-th point of each of its groups, so lanes are hardly ever idle. The rows of a block are added up as a tree,
//! level by level. A *chunk* is as many blocks as fit into the cache; several chunks are in work, each a level further
//! than the next, and one batch of additions, with its one inversion, takes a level of each. While a batch runs, the
//! points of the chunk that comes next are fetched.

use super::bounds::LEVELS;
use super::{Group, Job, Source, Sums};
use crate::Ifma;
use crate::group::batch::LEAF;

/// Longer groups are cut into pieces.
const LONGEST: usize = 1 << (LEVELS - 1);
/// Rows of points in a chunk. A batch takes about three KiB for each in G1, six in G2, which is to fit a second-level cache.
const CHUNK_ROWS: usize = 128;
/// Chunks in work at once: one for each level, one that is done, one that comes next.
const CHUNKS: usize = LEVELS + 2;
/// Additions in a batch at most.
const BATCH: usize = 2 * CHUNK_ROWS;

/// A row of points: a leaf or a row of sums, and the lanes that have a point.
#[derive(Clone, Copy)]
struct RowAt {
    at: u32,
    lanes: u8,
    /// The job that makes it, while its batch runs.
    job: u32,
}

const NO_JOB: u32 = u32::MAX;
const NO_GROUP: u32 = u32::MAX;

struct Block {
    groups: [u32; 8],
    height: usize,
}

/// Some blocks, and how far they are.
#[derive(Default)]
struct Chunk {
    blocks: Vec<Block>,
    rows: Vec<RowAt>,
    level: usize,
    place: usize,
}

/// One point for each group; where there is none it is the identity.
pub(crate) struct Points<G: Group> {
    pub points: Vec<G::Stored>,
    pub present: Vec<bool>,
}

impl<G: Group> Points<G> {
    pub fn new() -> Self {
        Points {
            points: Vec::new(),
            present: Vec::new(),
        }
    }

    /// That many groups, all without a point. The memory is used again.
    fn reset(&mut self, groups: usize) {
        self.points.resize(groups, G::Inner::NOWHERE);
        self.present.clear();
        self.present.resize(groups, false);
    }

    pub fn get(&self, group: usize) -> Option<&G::Stored> {
        self.present[group].then(|| &self.points[group])
    }
}

/// Adds up groups of points. Keeps its memory from one call to the next.
pub(crate) struct Summer<G: Group> {
    ifma: Ifma,
    rows: Vec<G::Row>,
    slots: Vec<G::Slot>,
    leaves: Vec<u32>,
    jobs: Vec<Job>,
    free: Vec<Chunk>,
}

/// Bytes that a summer holds.
pub(crate) fn bytes<G: Group>() -> u64 {
    let rows = CHUNKS * CHUNK_ROWS / 2 * size_of::<G::Row>();
    let slots = (BATCH + 1) * size_of::<G::Slot>();
    let lists = CHUNKS * CHUNK_ROWS * (8 * 4 + size_of::<RowAt>() + size_of::<Block>());
    (rows + slots + lists + BATCH * size_of::<Job>()) as u64
}

impl<G: Group> Summer<G> {
    pub fn new(ifma: Ifma) -> Self {
        Summer {
            ifma,
            rows: vec![G::Inner::BLANK; CHUNKS * CHUNK_ROWS / 2],
            slots: vec![G::Inner::EMPTY; BATCH + 1],
            leaves: vec![0; CHUNKS * CHUNK_ROWS * 8],
            jobs: Vec::with_capacity(BATCH),
            free: (0..CHUNKS)
                .map(|place| Chunk {
                    place,
                    ..Chunk::default()
                })
                .collect(),
        }
    }

    /// The memory in which entries are laid out in rows.
    pub fn leaves(&mut self) -> &mut [u32] {
        &mut self.leaves
    }

    /// The sums of the groups `entries[offsets[g]..offsets[g + 1]]`.
    pub fn sums(
        &mut self,
        source: &Source<'_, G::Packed, G::Stored>,
        entries: &[u32],
        offsets: &[u32],
        out: &mut Points<G>,
    ) {
        out.reset(offsets.len() - 1);
        let longest = offsets
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .max()
            .unwrap_or(0);
        if longest as usize <= LONGEST {
            return self.short_sums(source, entries, offsets, out);
        }
        let mut cuts = vec![offsets[0]];
        let mut pieces_of = Vec::with_capacity(offsets.len());
        for pair in offsets.windows(2) {
            let length = pair[1] - pair[0];
            let mut pieces = length.div_ceil(LONGEST as u32);
            if pieces > 1 {
                // As many as there are lanes, so that none is idle.
                pieces = pieces.next_multiple_of(8);
            }
            cuts.extend(
                (1..=pieces)
                    .map(|piece| pair[0] + (u64::from(length) * u64::from(piece) / u64::from(pieces)) as u32),
            );
            pieces_of.push(pieces);
        }
        let mut pieces = Points::new();
        pieces.reset(cuts.len() - 1);
        self.short_sums(source, entries, &cuts, &mut pieces);
        let mut next = 0;
        let (mut entries, mut offsets) = (Vec::new(), vec![0]);
        for count in pieces_of {
            entries.extend((next..next + count).filter(|piece| pieces.present[*piece as usize]));
            offsets.push(entries.len() as u32);
            next += count;
        }
        self.sums(&Source::Stored(&pieces.points), &entries, &offsets, out);
    }

    fn short_sums(
        &mut self,
        source: &Source<'_, G::Packed, G::Stored>,
        entries: &[u32],
        offsets: &[u32],
        out: &mut Points<G>,
    ) {
        let order = by_length(offsets);
        let mut blocks = order.chunks(8).peekable();
        let mut running: Vec<Chunk> = Vec::with_capacity(CHUNKS);
        let mut coming = self.fill(entries, offsets, &mut blocks);
        while coming.is_some() || !running.is_empty() {
            running.extend(coming.take());
            self.finish(source, &mut running, out);
            self.jobs.clear();
            for chunk in &mut running {
                chunk.pair_up(&mut self.jobs);
            }
            coming = self.fill(entries, offsets, &mut blocks);
            let upcoming = coming.as_ref().map_or(&[][..], |chunk| {
                let start = 8 * CHUNK_ROWS * chunk.place;
                &self.leaves[start..start + 8 * chunk.rows.len()]
            });
            if !self.jobs.is_empty() {
                G::Inner::add(
                    self.ifma,
                    &mut self.jobs,
                    source,
                    &self.leaves,
                    &mut self.rows,
                    &mut self.slots,
                    upcoming,
                );
            }
            let vanished = self.jobs.iter().any(|job| job.vanished != 0);
            for chunk in &mut running {
                chunk.level += 1;
                if vanished {
                    chunk.strike_vanished(&self.jobs);
                }
            }
        }
    }

    /// The next chunk of blocks, its entries laid out in rows.
    fn fill<'o>(
        &mut self,
        entries: &[u32],
        offsets: &[u32],
        blocks: &mut std::iter::Peekable<impl Iterator<Item = &'o [u32]>>,
    ) -> Option<Chunk> {
        blocks.peek()?;
        let mut chunk = self.free.pop()?;
        chunk.level = 0;
        let leaves = &mut self.leaves[8 * CHUNK_ROWS * chunk.place..][..8 * CHUNK_ROWS];
        let group =
            |group: u32| &entries[offsets[group as usize] as usize..offsets[group as usize + 1] as usize];
        while let Some(groups) =
            blocks.next_if(|groups| chunk.rows.len() + group(groups[0]).len() <= CHUNK_ROWS)
        {
            let first = chunk.rows.len();
            let longest = group(groups[0]);
            let rows = &mut leaves.as_chunks_mut::<8>().0[first..first + longest.len()];
            for row in chunk.rows.len()..first + longest.len() {
                chunk.rows.push(RowAt {
                    at: LEAF | (CHUNK_ROWS * chunk.place + row) as u32,
                    lanes: 0,
                    job: NO_JOB,
                });
            }
            let mut in_lanes = [NO_GROUP; 8];
            for (lane, index) in groups.iter().enumerate() {
                in_lanes[lane] = *index;
                let points = group(*index);
                for ((row, at), entry) in rows.iter_mut().zip(&mut chunk.rows[first..]).zip(points) {
                    row[lane] = *entry;
                    at.lanes |= 1 << lane;
                }
            }
            // Idle lanes read some point that is read anyway.
            let shortest = groups.last().map_or(0, |last| group(*last).len());
            let from = if groups.len() == 8 { shortest } else { 0 };
            for (row, at) in rows.iter_mut().zip(&chunk.rows[first..]).skip(from) {
                let some = row[0];
                for (lane, entry) in row.iter_mut().enumerate() {
                    if at.lanes & 1 << lane == 0 {
                        *entry = some;
                    }
                }
            }
            chunk.blocks.push(Block {
                groups: in_lanes,
                height: longest.len(),
            });
        }
        Some(chunk)
    }

    /// Stores the sums of chunks that have come to one row a block, and frees those.
    fn finish(
        &mut self,
        source: &Source<'_, G::Packed, G::Stored>,
        running: &mut Vec<Chunk>,
        out: &mut Points<G>,
    ) {
        let mut kept = 0;
        while kept < running.len() {
            if running[kept].rows.len() > running[kept].blocks.len() {
                kept += 1;
                continue;
            }
            let mut chunk = running.remove(kept);
            for (block, row) in chunk.blocks.iter().zip(&chunk.rows) {
                let (leaves, rows) = (&self.leaves, &self.rows);
                G::Inner::store(
                    self.ifma,
                    source,
                    leaves,
                    rows,
                    (row.at, chunk.level),
                    &mut |lane, point| {
                        if row.lanes & 1 << lane != 0 {
                            let group = block.groups[lane] as usize;
                            out.points[group] = point;
                            out.present[group] = true;
                        }
                    },
                );
            }
            chunk.blocks.clear();
            chunk.rows.clear();
            self.free.push(chunk);
        }
    }
}

impl Chunk {
    /// Makes jobs of pairs of rows of each block; a row that is left over waits for the next level.
    fn pair_up(&mut self, jobs: &mut Vec<Job>) {
        let (mut from, mut to) = (0, 0);
        let first_sum = (CHUNK_ROWS / 2 * self.place) as u32;
        let mut sums = 0;
        for block in &mut self.blocks {
            for _ in 0..block.height / 2 {
                let (a, b) = (self.rows[from], self.rows[from + 1]);
                let at = if a.at & LEAF != 0 {
                    sums += 1;
                    first_sum + sums - 1
                } else {
                    a.at
                };
                self.rows[to] = RowAt {
                    at,
                    lanes: a.lanes | b.lanes,
                    job: jobs.len() as u32,
                };
                jobs.push(Job {
                    to: at,
                    a: a.at,
                    b: b.at,
                    level: self.level as u8,
                    a_lanes: a.lanes,
                    b_lanes: b.lanes,
                    vanished: 0,
                });
                (from, to) = (from + 2, to + 1);
            }
            if block.height % 2 == 1 {
                self.rows[to] = RowAt {
                    job: NO_JOB,
                    ..self.rows[from]
                };
                (from, to) = (from + 1, to + 1);
            }
            block.height = block.height.div_ceil(2);
        }
        self.rows.truncate(to);
    }

    /// Takes the lanes away whose sums came out as the identity.
    fn strike_vanished(&mut self, jobs: &[Job]) {
        for row in &mut self.rows {
            if let Some(job) = jobs.get(row.job as usize) {
                row.lanes &= !job.vanished;
            }
        }
    }
}

/// The groups that aren't empty, the longest first.
fn by_length(offsets: &[u32]) -> Vec<u32> {
    let length = |group: usize| (offsets[group + 1] - offsets[group]) as usize;
    let mut first = [0u32; LONGEST + 2];
    for group in 0..offsets.len() - 1 {
        first[LONGEST - length(group) + 1] += 1;
    }
    for place in 1..first.len() {
        first[place] += first[place - 1];
    }
    let mut order = vec![0; first[LONGEST] as usize];
    for group in 0..offsets.len() - 1 {
        if length(group) > 0 {
            let place = &mut first[LONGEST - length(group)];
            order[*place as usize] = group as u32;
            *place += 1;
        }
    }
    order
}
