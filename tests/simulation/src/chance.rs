//! The one source of randomness of a run.

use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::world::Next;

/// What was drawn in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// It was a step of a time of calm.
    pub calm: bool,
    /// What was chosen to happen, and how many numbers were drawn until then.
    chosen: Option<(Next, usize)>,
    drawn: Vec<u64>,
}

/// Where draws come from.
#[derive(Clone, Debug)]
enum Source {
    /// From the seed.
    Seed,
    /// From the seed, and written down.
    Written(Vec<Draws>),
    /// From what was written down, some steps of it left out perhaps: in what order they come now, each says the same, as
    /// far as it fits. What is missing comes from the seed.
    Given {
        steps: Vec<Draws>,
        next: usize,
        at: usize,
    },
}

/// Draws from a seed; the same seed draws the same.
#[derive(Clone, Debug)]
pub struct Chance {
    rng: ChaCha8Rng,
    source: Source,
}

impl Chance {
    /// Begins with a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: ChaCha8Rng::seed_from_u64(seed),
            source: Source::Seed,
        }
    }

    /// Writes down what it draws from here on.
    pub fn write_down(&mut self) {
        self.source = Source::Written(Vec::new());
    }

    /// What was written down.
    #[must_use]
    pub fn written(self) -> Vec<Draws> {
        match self.source {
            Source::Written(steps) => steps,
            _ => Vec::new(),
        }
    }

    /// Draws what was written down.
    pub fn give(&mut self, steps: Vec<Draws>) {
        self.source = Source::Given {
            steps,
            next: 0,
            at: 0,
        };
    }

    /// A step begins.
    pub fn step(&mut self, calm: bool) {
        match &mut self.source {
            Source::Seed => {}
            Source::Written(steps) => steps.push(Draws {
                calm,
                chosen: None,
                drawn: Vec::new(),
            }),
            Source::Given { next, at, .. } => (*next, *at) = (*next + 1, 0),
        }
    }

    /// What happened in this step when it was written down; the draws that come now are those that came after that.
    pub fn remembered(&mut self) -> Option<Next> {
        let Source::Given { steps, next, at } = &mut self.source else {
            return None;
        };
        let (chosen, draws) = steps.get(next.checked_sub(1)?)?.chosen?;
        *at = draws;
        Some(chosen)
    }

    /// What happens in this step.
    pub fn chose(&mut self, next: Next) {
        if let Source::Written(steps) = &mut self.source
            && let Some(step) = steps.last_mut()
        {
            step.chosen = Some((next, step.drawn.len()));
        }
    }

    fn given(&mut self) -> Option<u64> {
        let Source::Given { steps, next, at } = &mut self.source else {
            return None;
        };
        let drawn = steps.get(next.checked_sub(1)?)?.drawn.get(*at).copied();
        *at += 1;
        drawn
    }

    fn note(&mut self, drawn: u64) -> u64 {
        if let Source::Written(steps) = &mut self.source
            && let Some(step) = steps.last_mut()
        {
            step.drawn.push(drawn);
        }
        drawn
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        match self.given() {
            Some(drawn) => drawn % bound,
            None => {
                let drawn = self.rng.gen_range(0..bound);
                self.note(drawn)
            }
        }
    }

    /// An index of something with `len` elements.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them; `None` if there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.index(from.len()))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        match self.given() {
            Some(drawn) => drawn,
            None => {
                let drawn = self.rng.next_u64();
                self.note(drawn)
            }
        }
    }
}
