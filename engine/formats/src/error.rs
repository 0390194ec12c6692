//! What can be wrong with a file, in words for the person who made it.

use std::fmt;

use crate::count;

/// The file that was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A constraint system, `.r1cs`.
    R1cs,
    /// A witness, `.wtns`.
    Wtns,
    /// A proving key, `.zkey`.
    Zkey,
    /// Powers of tau, `.ptau`.
    Ptau,
    /// A proof as snarkjs writes it.
    ProofJson,
    /// Public signals as snarkjs writes them.
    PublicJson,
    /// A verification key as snarkjs writes it.
    VerificationKeyJson,
    /// circom's list of signal names, `.sym`.
    Sym,
    /// bellperson's parameters, `.params`.
    Params,
}

impl FileKind {
    /// How such a file is made over the right curve.
    fn over_bls12_381(self) -> &'static str {
        match self {
            FileKind::Ptau => "make it with `snarkjs powersoftau new bls12-381`",
            FileKind::Zkey => {
                "compile with `circom --prime bls12381`, and make the key with powers of tau from \
                 `snarkjs powersoftau new bls12-381`"
            }
            _ => "compile with `circom --prime bls12381`",
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::R1cs => ".r1cs",
            FileKind::Wtns => ".wtns",
            FileKind::Zkey => ".zkey",
            FileKind::Ptau => ".ptau",
            FileKind::ProofJson => "proof.json",
            FileKind::PublicJson => "public.json",
            FileKind::VerificationKeyJson => "verification_key.json",
            FileKind::Sym => ".sym",
            FileKind::Params => ".params",
        })
    }
}

/// A file that was refused, and why.
///
/// No variant holds a value of a witness: positions and counts only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first four bytes are those of another kind of file.
    #[error("this is not a {file} file: it must begin with \"{expected}\", and begins with \"{found}\"")]
    BadMagic {
        /// What the file was read as.
        file: FileKind,
        /// The four letters that such a file begins with.
        expected: &'static str,
        /// The bytes that are there, escaped.
        found: String,
    },
    /// A version that this reader doesn't know.
    #[error("{file}: format version {found} is not known; versions 1 to {max} are")]
    BadVersion {
        /// The file.
        file: FileKind,
        /// The newest version that can be read.
        max: u32,
        /// The version in the file.
        found: u32,
    },
    /// The file, or a part of it, ends before what its header promises.
    #[error(
        "{file}: {place} needs {}, and there {} only {have} left; the file is cut short or its lengths are wrong",
        count(*.needed, "byte"),
        if *.have == 1 { "is" } else { "are" }
    )]
    Truncated {
        /// The file.
        file: FileKind,
        /// What was being read.
        place: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// A section that must be there is not.
    #[error("{file}: section {section} ({name}) is missing")]
    SectionMissing {
        /// The file.
        file: FileKind,
        /// The section's number.
        section: u32,
        /// What it holds.
        name: &'static str,
    },
    /// A section is there twice, so that two readers could disagree about which one counts.
    #[error("{file}: section {section} occurs twice")]
    SectionTwice {
        /// The file.
        file: FileKind,
        /// The section's number.
        section: u32,
    },
    /// The file is about another field or curve.
    #[error("{file}: made for {found}, and only {expected} is supported; {}", file.over_bls12_381())]
    WrongPrime {
        /// The file.
        file: FileKind,
        /// The name of the field or curve that is supported.
        expected: &'static str,
        /// The name, or the number, that the file gives.
        found: String,
    },
    /// Powers of tau without the Lagrange bases that keys are made of.
    #[error(
        "{file}: {section} is missing, so these powers of tau are not prepared for the second phase: \
         run `snarkjs powersoftau prepare phase2 pot.ptau pot_final.ptau`, and use pot_final.ptau"
    )]
    NotPrepared {
        /// The file.
        file: FileKind,
        /// What is missing.
        section: &'static str,
    },
    /// Powers of tau that were prepared without the basis of twice the largest domain.
    #[error(
        "{file}: section 12 ends with the basis of the file's power, as old versions of snarkjs wrote it, and \
         must have that of twice the domain too: run `snarkjs powersoftau convert old.ptau new.ptau`"
    )]
    PreparedByOldSnarkjs {
        /// The file.
        file: FileKind,
    },
    /// Two counts contradict each other, or a count contradicts a length.
    #[error("{file}: {what} must be {expected}, and is {found}")]
    BadCount {
        /// The file.
        file: FileKind,
        /// What is counted.
        what: &'static str,
        /// What the rest of the file asks for.
        expected: String,
        /// What is there.
        found: u64,
    },
    /// An index points outside of what it indexes.
    #[error("{file}: {what} {index}: {field} is {found}, and must be below {limit}")]
    OutOfRange {
        /// The file.
        file: FileKind,
        /// The list that holds the entry.
        what: &'static str,
        /// The entry's position in it.
        index: u64,
        /// The entry's part that is out of range.
        field: &'static str,
        /// The value found.
        found: u64,
        /// The first value that is too large.
        limit: u64,
    },
    /// A field element that is not below its modulus.
    #[error("{file}: {what} {index} is not a reduced field element (it must be below the modulus)")]
    NonCanonical {
        /// The file.
        file: FileKind,
        /// What kind of value it is.
        what: &'static str,
        /// Its position.
        index: u64,
    },
    /// The first value of a witness stands for the constant and must be one.
    #[error(
        "{file}: the first value must be 1, since it stands for the constant; this is no witness of a circom circuit"
    )]
    BadWitness {
        /// The file.
        file: FileKind,
    },
    /// The file belongs to another proof system.
    #[error("{file}: made for the proof system {found}, and only groth16 is supported")]
    NotGroth16 {
        /// The file.
        file: FileKind,
        /// The proof system's name or number.
        found: String,
    },
    /// The file uses a part of the format that Groth16 proofs can't have.
    #[error("{file}: {what} can't be proved with groth16; compile the circuit without them")]
    Unsupported {
        /// The file.
        file: FileKind,
        /// The feature.
        what: &'static str,
    },
    /// Text that isn't what snarkjs writes.
    #[error("{file}: {message}")]
    MalformedJson {
        /// The file.
        file: FileKind,
        /// Where, and what was expected.
        message: String,
    },
    /// A line of a symbol file that can't be understood.
    #[error("{file}: line {line}: expected `label,wire,component,name`")]
    MalformedSym {
        /// The file.
        file: FileKind,
        /// The line, from 1.
        line: u64,
    },
}

impl FormatError {
    /// The code that the HTTP interface and the command line give for this error. Codes are never renamed.
    pub fn code(&self) -> &'static str {
        match self {
            FormatError::BadMagic { .. } => "bad-magic",
            FormatError::BadVersion { .. } => "bad-version",
            FormatError::Truncated { .. } => "truncated",
            FormatError::SectionMissing { .. } => "section-missing",
            FormatError::SectionTwice { .. } => "section-twice",
            FormatError::WrongPrime { .. } => "wrong-prime",
            FormatError::NotPrepared { .. } | FormatError::PreparedByOldSnarkjs { .. } => "ptau-not-prepared",
            FormatError::BadCount { .. } => "bad-count",
            FormatError::OutOfRange { .. } => "out-of-range",
            FormatError::NonCanonical { .. } => "non-canonical",
            FormatError::BadWitness { .. } => "bad-witness",
            FormatError::NotGroth16 { .. } => "not-groth16",
            FormatError::Unsupported { .. } => "custom-gates",
            FormatError::MalformedJson { .. } => "malformed-json",
            FormatError::MalformedSym { .. } => "malformed-sym",
        }
    }

    /// The file that was refused.
    pub fn file(&self) -> FileKind {
        match self {
            FormatError::BadMagic { file, .. }
            | FormatError::BadVersion { file, .. }
            | FormatError::Truncated { file, .. }
            | FormatError::SectionMissing { file, .. }
            | FormatError::SectionTwice { file, .. }
            | FormatError::WrongPrime { file, .. }
            | FormatError::NotPrepared { file, .. }
            | FormatError::PreparedByOldSnarkjs { file }
            | FormatError::BadCount { file, .. }
            | FormatError::OutOfRange { file, .. }
            | FormatError::NonCanonical { file, .. }
            | FormatError::BadWitness { file }
            | FormatError::NotGroth16 { file, .. }
            | FormatError::Unsupported { file, .. }
            | FormatError::MalformedJson { file, .. }
            | FormatError::MalformedSym { file, .. } => *file,
        }
    }
}
