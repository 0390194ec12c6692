//! The names of things: small `Copy` types, so that a job number can't be passed where a boot number is meant.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The place of a job in the order of submission; the first job is 1. Order is by this, never by time.
    JobNumber(u64)
}
number! {
    /// One life of the daemon; the first boot is 1.
    BootNumber(u64)
}
number! {
    /// A place in the journal; the first event is 1 and numbers are never used again.
    JournalNumber(u64)
}
number! {
    /// A device slot: one sequence over devices × slots, from 0.
    WorkerId(u32)
}
number! {
    /// Milliseconds since the Unix epoch, by the daemon's clock (wall clock at boot plus monotonic time).
    Millis(u64)
}

impl JournalNumber {
    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl Millis {
    /// This moment plus `millis`, stopping at the end of time instead of wrapping.
    #[must_use]
    pub fn after(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Milliseconds from `earlier` to this moment; 0 if the clock went back between them.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The right to work on one thing in one stage. Named by the boot and the journal number that granted it, so that no
/// two leases ever share a token, not across restarts either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The boot that granted it.
    pub boot: BootNumber,
    /// The journal number of the grant.
    pub grant: JournalNumber,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.boot, self.grant)
    }
}

/// One worker process: the `spawn`-th that its boot started. A late word of spawn 3 touches nothing of spawn 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId {
    /// The boot that started it.
    pub boot: BootNumber,
    /// Its number within that boot, from 1.
    pub spawn: u64,
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.boot, self.spawn)
    }
}

/// A SHA-256 digest; names an object, a request or a proof by what is in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// Reads 64 lower- or upper-case hex digits, with or without `sha256:` in front.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// The 64 hex digits alone, as they stand in a file name.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
