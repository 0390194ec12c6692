//! Powers of tau as snarkjs writes them (`.ptau`, version 1), prepared for phase 2.
//!
//! | section | holds | length in bytes, p the power |
//! | --- | --- | --- |
//! | 1 | q, power, power of the whole ceremony | 60 |
//! | 2 | τ^i in G1 | 96·(2^(p+1) − 1) |
//! | 3 | τ^i in G2 | 192·2^p |
//! | 4, 5 | α·τ^i and β·τ^i in G1 | 96·2^p each |
//! | 6 | β in G2 | 192 |
//! | 7 | who contributed | |
//! | 12 | Lagrange bases of τ in G1, domains 2^0 to 2^(p+1) one after another | 96·(2^(p+2) − 1) |
//! | 13 | the same of τ in G2, domains 2^0 to 2^p | 192·(2^(p+1) − 1) |
//! | 14, 15 | the same of α·τ and β·τ in G1, domains 2^0 to 2^p | 96·(2^(p+1) − 1) each |
//!
//! `snarkjs powersoftau prepare phase2` adds the sections from 12 on. Points are those of a [`.zkey`](crate::zkey).

mod contributions;

pub use contributions::PtauContribution;

pub use crate::ceremony::ContributionKind;
use crate::container::{Cursor, Sections, expect_length};
use crate::field::{self, Q_LE};
use crate::zkey::{G1_BYTES, G2_BYTES};
use crate::{FileKind, FormatError};

const FILE: FileKind = FileKind::Ptau;
const MAGIC: &str = "ptau";
const VERSION: u32 = 1;
/// The largest power read: its largest Lagrange basis has 2^32 points, as many as the field has roots of unity.
pub const MAX_POWER: u32 = 31;

/// Powers of tau that lie in memory as a file. Lengths are checked; no point is looked at.
#[derive(Clone, Debug)]
pub struct Ptau<'a> {
    /// Base-2 logarithm of the largest domain that the file serves.
    pub power: u32,
    /// The power of the ceremony that this file was cut from, if it was.
    pub ceremony_power: u32,
    /// τ^i in G1, i from 0 to 2^(power+1) − 2.
    pub tau_g1: &'a [u8],
    /// τ^i in G2, i below 2^power.
    pub tau_g2: &'a [u8],
    /// α·τ^i in G1, i below 2^power.
    pub alpha_tau_g1: &'a [u8],
    /// β·τ^i in G1, i below 2^power.
    pub beta_tau_g1: &'a [u8],
    /// β in G2.
    pub beta_g2: &'a [u8; G2_BYTES],
    /// Who contributed, in order.
    pub contributions: Vec<PtauContribution<'a>>,
    /// The size of one point more than [`Ptau::tau_g1`] has: what stands behind it in the file. snarkjs hashes it into
    /// some circuits' hashes. None if the file ends before.
    pub behind_tau_g1: Option<&'a [u8; G1_BYTES]>,
    lagrange: [&'a [u8]; 4],
}

/// A family of Lagrange bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// L_i(τ) in G1.
    TauG1,
    /// L_i(τ) in G2.
    TauG2,
    /// α·L_i(τ) in G1.
    AlphaTauG1,
    /// β·L_i(τ) in G1.
    BetaTauG1,
}

impl Basis {
    const ALL: [Basis; 4] = [Basis::TauG1, Basis::TauG2, Basis::AlphaTauG1, Basis::BetaTauG1];

    /// The number of the section that holds it.
    pub fn id(self) -> u32 {
        match self {
            Basis::TauG1 => 12,
            Basis::TauG2 => 13,
            Basis::AlphaTauG1 => 14,
            Basis::BetaTauG1 => 15,
        }
    }

    /// The section as errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Basis::TauG1 => "section 12 (Lagrange basis of tau in G1)",
            Basis::TauG2 => "section 13 (Lagrange basis of tau in G2)",
            Basis::AlphaTauG1 => "section 14 (Lagrange basis of alpha tau in G1)",
            Basis::BetaTauG1 => "section 15 (Lagrange basis of beta tau in G1)",
        }
    }

    fn length_name(self) -> &'static str {
        match self {
            Basis::TauG1 => "the length of section 12 (Lagrange basis of tau in G1)",
            Basis::TauG2 => "the length of section 13 (Lagrange basis of tau in G2)",
            Basis::AlphaTauG1 => "the length of section 14 (Lagrange basis of alpha tau in G1)",
            Basis::BetaTauG1 => "the length of section 15 (Lagrange basis of beta tau in G1)",
        }
    }

    fn point_bytes(self) -> u64 {
        match self {
            Basis::TauG2 => G2_BYTES as u64,
            _ => G1_BYTES as u64,
        }
    }

    /// Base-2 logarithm of the largest domain that a file of some power has in this family.
    fn largest(self, power: u32) -> u32 {
        power + u32::from(self == Basis::TauG1)
    }
}

impl<'a> Ptau<'a> {
    /// Reads the header and the contributions, and finds the sections, whose lengths must be those that the power asks
    /// for.
    ///
    /// # Errors
    ///
    /// A broken container, another curve, a file that isn't prepared for phase 2, lengths that contradict the power.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let sections = Sections::parse(bytes, MAGIC, VERSION, FILE)?;
        let (power, ceremony_power) = read_header(sections.get(1, "the header")?)?;
        let size = 1_u64 << power;
        let powers = |id, name, length_name, length: u64| {
            let body = sections.get(id, name)?;
            expect_length(FILE, length_name, body, length)?;
            Ok::<&'a [u8], FormatError>(body)
        };
        let (g1, g2) = (G1_BYTES as u64, G2_BYTES as u64);
        let tau_g1 = powers(
            2,
            "powers of tau in G1",
            "the length of section 2 (powers of tau in G1)",
            g1 * (2 * size - 1),
        )?;
        let tau_g2 = powers(
            3,
            "powers of tau in G2",
            "the length of section 3 (powers of tau in G2)",
            g2 * size,
        )?;
        let alpha_tau_g1 = powers(
            4,
            "alpha times powers of tau",
            "the length of section 4 (alpha times powers of tau)",
            g1 * size,
        )?;
        let beta_tau_g1 = powers(
            5,
            "beta times powers of tau",
            "the length of section 5 (beta times powers of tau)",
            g1 * size,
        )?;
        let mut beta = Cursor::new(FILE, "section 6 (beta in G2)", sections.get(6, "beta in G2")?);
        let beta_g2 = beta.array()?;
        beta.finish("the number of bytes after beta in section 6")?;
        let contributions = contributions::parse(sections.get(7, "the contributions")?)?;
        let mut lagrange = [&[][..]; 4];
        for (slot, basis) in lagrange.iter_mut().zip(Basis::ALL) {
            *slot = prepared(&sections, basis, power)?;
        }
        Ok(Ptau {
            power,
            ceremony_power,
            tau_g1,
            tau_g2,
            alpha_tau_g1,
            beta_tau_g1,
            beta_g2,
            contributions,
            behind_tau_g1: behind(bytes, tau_g1),
            lagrange,
        })
    }

    /// The Lagrange basis of the domain of 2^`log2` points. None if the file has none so large: `log2` is at most
    /// [`Ptau::power`], and for [`Basis::TauG1`] one more.
    pub fn lagrange(&self, basis: Basis, log2: u32) -> Option<&'a [u8]> {
        if log2 > basis.largest(self.power) {
            return None;
        }
        let (size, point) = (1_u64 << log2, basis.point_bytes());
        let start = usize::try_from((size - 1) * point).ok()?;
        let end = usize::try_from((2 * size - 1) * point).ok()?;
        let index = Basis::ALL.iter().position(|other| *other == basis)?;
        self.lagrange[index].get(start..end)
    }
}

fn read_header(section: &[u8]) -> Result<(u32, u32), FormatError> {
    let mut cursor = Cursor::new(FILE, "the header section", section);
    let size = cursor.u32()? as usize;
    let prime = cursor.take(size)?;
    if prime != Q_LE {
        return Err(FormatError::WrongPrime {
            file: FILE,
            expected: field::BASE_FIELD,
            found: field::prime_name(prime),
        });
    }
    let (power, ceremony_power) = (cursor.u32()?, cursor.u32()?);
    cursor.finish("the number of bytes after the header")?;
    if !(1..=MAX_POWER).contains(&power) {
        return Err(FormatError::BadCount {
            file: FILE,
            what: "the power",
            expected: format!("from 1 to {MAX_POWER}"),
            found: power.into(),
        });
    }
    if ceremony_power < power {
        return Err(FormatError::BadCount {
            file: FILE,
            what: "the power of the ceremony",
            expected: format!("at least {power}, the power of the file"),
            found: ceremony_power.into(),
        });
    }
    Ok((power, ceremony_power))
}

fn prepared<'a>(sections: &Sections<'a>, basis: Basis, power: u32) -> Result<&'a [u8], FormatError> {
    let body = sections.find(basis.id()).ok_or(FormatError::NotPrepared {
        file: FILE,
        section: basis.name(),
    })?;
    let points = |largest: u32| ((2_u64 << largest) - 1) * basis.point_bytes();
    let largest = basis.largest(power);
    // What snarkjs wrote before it added the basis of twice the domain.
    if largest > power && body.len() as u64 == points(power) {
        return Err(FormatError::PreparedByOldSnarkjs { file: FILE });
    }
    expect_length(FILE, basis.length_name(), body, points(largest))?;
    Ok(body)
}

/// The bytes of a file that follow one of its sections.
fn behind<'a>(file: &'a [u8], section: &'a [u8]) -> Option<&'a [u8; G1_BYTES]> {
    let end = (section.as_ptr() as usize).checked_sub(file.as_ptr() as usize)? + section.len();
    file.get(end..)?.first_chunk()
}
