//! What jobs and circuits are like: what happens to whoever works on them, whatever else goes wrong.

use proofkeep_store::ids::Digest;
use proofkeep_store::records::Stage;

/// What a partition's input does to its worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Nothing.
    Good,
    /// It kills the process in this stage, always.
    Poison(Stage),
    /// It kills the process too, in whatever stage, now here and now there, and never comes to a proof.
    Restless,
    /// It takes all the memory there is, always.
    Hog,
    /// The same while there are neighbours.
    Glutton,
    /// The calculator refuses the input.
    Invalid,
    /// The witness breaks a constraint.
    Unsatisfied,
    /// The device fails it half of the time.
    Flaky,
}

impl Nature {
    /// As it stands in a request.
    #[must_use]
    pub fn letter(self) -> u8 {
        match self {
            Self::Good => b'g',
            Self::Poison(Stage::Synth) => b'p',
            Self::Poison(Stage::Prove) => b'q',
            Self::Poison(Stage::Finish) => b'r',
            Self::Restless => b'a',
            Self::Hog => b'h',
            Self::Glutton => b'o',
            Self::Invalid => b'i',
            Self::Unsatisfied => b'u',
            Self::Flaky => b'f',
        }
    }

    /// From a request.
    #[must_use]
    pub fn of_letter(letter: u8) -> Self {
        match letter {
            b'p' => Self::Poison(Stage::Synth),
            b'q' => Self::Poison(Stage::Prove),
            b'r' => Self::Poison(Stage::Finish),
            b'a' => Self::Restless,
            b'h' => Self::Hog,
            b'o' => Self::Glutton,
            b'i' => Self::Invalid,
            b'u' => Self::Unsatisfied,
            b'f' => Self::Flaky,
            _ => Self::Good,
        }
    }
}

/// A canonical request: a number that makes it unlike others, then a letter for each partition.
#[must_use]
pub fn request(number: u64, natures: &[Nature]) -> Vec<u8> {
    let mut bytes = format!("{number:016x}").into_bytes();
    bytes.extend(natures.iter().map(|nature| nature.letter()));
    bytes
}

/// The natures in a request.
#[must_use]
pub fn natures(request: &[u8]) -> Vec<Nature> {
    request
        .get(16..)
        .unwrap_or_default()
        .iter()
        .map(|letter| Nature::of_letter(*letter))
        .collect()
}

/// What a circuit does to the process that imports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nothing.
    Good,
    /// It is refused.
    Refused,
    /// It kills the process.
    Poison,
    /// It takes all the memory there is.
    Hog,
}

/// A circuit that users may register.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub key: Key,
    /// Bytes of its key when it is resident.
    pub bytes: u64,
    /// Units of work that its import has.
    pub total: u64,
}

/// All circuits there are.
pub const CIRCUITS: [Kind; 5] = [
    Kind {
        name: "small",
        key: Key::Good,
        bytes: 40 << 20,
        total: 40,
    },
    Kind {
        name: "large",
        key: Key::Good,
        bytes: 300 << 20,
        total: 120,
    },
    Kind {
        name: "refused",
        key: Key::Refused,
        bytes: 10 << 20,
        total: 30,
    },
    Kind {
        name: "poison",
        key: Key::Poison,
        bytes: 10 << 20,
        total: 60,
    },
    Kind {
        name: "hog",
        key: Key::Hog,
        bytes: 10 << 20,
        total: 60,
    },
];

impl Kind {
    /// The digest that names it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.name.as_bytes())
    }

    /// The circuit of that digest.
    #[must_use]
    pub fn of(digest: Digest) -> Option<&'static Self> {
        CIRCUITS.iter().find(|kind| kind.digest() == digest)
    }
}
