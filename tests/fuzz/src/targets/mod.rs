//! The parsers, each with what must hold for whatever it accepts.

mod dumps;
mod engine;
mod files;
mod frames;
mod records;
mod words;

/// What a parser said: nothing if it accepted the input, else its code and its text.
pub type Outcome = Result<(), (&'static str, String)>;

/// How inputs are mutated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Sections in iden3's container.
    Container,
    /// JSON, or lines of text.
    Text,
    /// Bytes of no common structure.
    Bytes,
    /// Bytes whose length says where things stand: most changes leave it as it is.
    Fixed,
}

/// A parser under test.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name on the command line, and its folder under `corpus/`.
    pub name: &'static str,
    /// The file of each circom fixture that is a seed, or is made into one. Empty if seeds come from `made` alone.
    pub file: &'static str,
    /// Makes a seed of the file.
    pub prepare: fn(Vec<u8>) -> Vec<u8>,
    /// Makes seeds that no fixture holds.
    pub made: fn() -> Vec<Vec<u8>>,
    /// How to mutate.
    pub shape: Shape,
    /// Makes a mutant pass what guards the parser, such as a checksum. Done to every other mutant.
    pub finish: fn(&mut Vec<u8>),
    /// How much slower than the fastest the parser is: a test divides its number of mutants by it.
    pub cost: u64,
    /// Bytes that may be allocated for each byte of input.
    pub bytes_per_byte: usize,
    /// Bytes that may be allocated for any input.
    pub slack: usize,
    /// Parses the input and walks all of it.
    pub parse: fn(&[u8]) -> Outcome,
    /// Panics if an input that was accepted breaks a promise. What it allocates isn't counted.
    pub check: fn(&[u8]),
}

impl Target {
    /// A parser of a file that promises nothing more than not to break. The rest is set by the struct's update syntax.
    pub const fn new(
        name: &'static str,
        file: &'static str,
        shape: Shape,
        parse: fn(&[u8]) -> Outcome,
    ) -> Self {
        Target {
            name,
            file,
            prepare: |seed| seed,
            made: Vec::new,
            shape,
            finish: |_| (),
            cost: 1,
            bytes_per_byte: 0,
            slack: 16 << 10,
            parse,
            check: |_| (),
        }
    }
}

/// Every target.
pub fn all() -> impl Iterator<Item = &'static Target> {
    files::ALL
        .iter()
        .chain(&engine::ALL)
        .chain(&frames::ALL)
        .chain(&records::ALL)
        .chain(&dumps::ALL)
}

/// The target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    all().find(|target| target.name == name)
}

/// Parses one input, and checks it if it is accepted: for fuzzers that bring their own mutants.
///
/// # Panics
///
/// If a promise is broken, or there is no target of that name.
pub fn hold(name: &str, input: &[u8]) {
    let target = find(name).unwrap_or_else(|| panic!("no target {name}"));
    if (target.parse)(input).is_ok() {
        (target.check)(input);
    }
}

/// The outcome of a parser whose error has this code and text.
fn outcome<T, E: ToString>(result: Result<T, E>, code: impl FnOnce(&E) -> &'static str) -> Outcome {
    result.map(drop).map_err(|error| {
        let text = error.to_string();
        assert!(text.len() < 2000, "an error text of {} bytes", text.len());
        (code(&error), text)
    })
}

/// What was accepted before must be accepted again.
fn accepted<T, E: ToString>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("accepted before, and now: {}", error.to_string()))
}
