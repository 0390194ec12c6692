//! What the disk may have done of the unsynced changes when the power went.

/// Which of the unsynced bytes are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// None.
    Synced,
    /// Any of the written sectors of 512 bytes (writes torn, newer before older), and any size that a file had on the
    /// way.
    Sectors,
    /// All.
    All,
}

/// Which of the unsynced changes of names are there: files and directories made, renamed, linked, removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None: what was made or renamed is not there yet, what was removed still is.
    Synced,
    /// The first so many, as a file system with one journal keeps them.
    InOrder,
    /// Of each directory the first so many.
    InOrderOfEach,
    /// Any.
    Any,
    /// All.
    All,
}

/// What a cut leaves: bytes and names, each in its own way. The seed and the cut give the same image each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Of what was written.
    pub bytes: Bytes,
    /// Of the names.
    pub names: Names,
    /// What is drawn where there is a choice.
    pub seed: u64,
}

impl Model {
    /// Nothing that isn't synced.
    pub const STRICT: Self = Self::of(Bytes::Synced, Names::Synced);
    /// All bytes, no name: files made or renamed are not there yet, removed ones still are.
    pub const NAMES_LOST: Self = Self::of(Bytes::All, Names::Synced);
    /// All names, no bytes: a file renamed into place without a sync is empty.
    pub const NAMES_FIRST: Self = Self::of(Bytes::Synced, Names::All);
    /// Everything, as after `kill -9`.
    pub const KEPT: Self = Self::of(Bytes::All, Names::All);

    /// The kinds that power cuts are made of, each with its name; those that find most come more than once.
    pub const KINDS: [(&'static str, Self); 12] = [
        ("strict", Self::STRICT),
        (
            "sectors, names in order",
            Self::of(Bytes::Sectors, Names::InOrder),
        ),
        ("renames not durable", Self::NAMES_LOST),
        ("sectors, any names", Self::of(Bytes::Sectors, Names::Any)),
        ("strict", Self::STRICT),
        (
            "sectors, names in order of each directory",
            Self::of(Bytes::Sectors, Names::InOrderOfEach),
        ),
        ("renames before bytes", Self::NAMES_FIRST),
        ("sectors, synced names", Self::of(Bytes::Sectors, Names::Synced)),
        ("synced bytes, any names", Self::of(Bytes::Synced, Names::Any)),
        ("sectors, all names", Self::of(Bytes::Sectors, Names::All)),
        ("all bytes, any names", Self::of(Bytes::All, Names::Any)),
        ("sectors, any names", Self::of(Bytes::Sectors, Names::Any)),
    ];

    const fn of(bytes: Bytes, names: Names) -> Self {
        Self {
            bytes,
            names,
            seed: 0,
        }
    }

    /// The same with another seed.
    #[must_use]
    pub const fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Any sectors and any names.
    #[must_use]
    pub const fn reordered(seed: u64) -> Self {
        Self::of(Bytes::Sectors, Names::Any).seeded(seed)
    }
}
