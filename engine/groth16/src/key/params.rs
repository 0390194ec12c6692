//! Proving keys from bellperson's parameter files.
//!
//! A file is read once, from front to back, into the form that the prover works on: it holds points as big-endian numbers,
//! which no arithmetic works on. What is in memory at any time are the points read so far and a slice of the file.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;

use proofkeep_formats::params::{G1_BYTES, G2_BYTES, Params};

use super::{KeyError, ProvingKey, expect, in_matrix};
use crate::backend::Backend;
use crate::bases::BaseSet;
use crate::check::{CheckError, check_params_vk, decoded, first_fault};
use crate::curve::{Curve, G1, G2};
use crate::domain::Domain;
use crate::field::Root;
use crate::matrices::{Matrices, MatrixError};
use crate::quotient::HBasis;
use crate::sums::SumsOn;
use crate::vk::UnfinishedSetup;

/// α₁ β₁ β₂ γ₂ δ₁ δ₂ stand before the lists.
const POINTS: usize = 3 * G1_BYTES + 3 * G2_BYTES;
/// Points of a list that are read at once.
const SLICE: usize = 1 << 15;

/// Parameters that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadParamsError {
    /// They make no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// They can't be read.
    #[error("reading the parameters failed: {0}")]
    Io(#[from] io::Error),
    /// Stopped by the caller.
    #[error(transparent)]
    Stopped(#[from] crate::control::Stopped),
}

impl From<CheckError> for ReadParamsError {
    fn from(error: CheckError) -> Self {
        Self::Key(error.into())
    }
}

impl From<MatrixError> for ReadParamsError {
    fn from(error: MatrixError) -> Self {
        Self::Key(error.into())
    }
}

impl ProvingKey {
    /// Makes a key from the bytes of a parameter file, mapped or in memory, and the matrices of the circuit that it was
    /// made for. As [`Self::read_params`] without a check of the points.
    ///
    /// # Errors
    /// A file that is broken, belongs to another circuit than the matrices, or comes from an unfinished setup.
    pub fn from_params(
        bytes: &[u8],
        matrices: Arc<Matrices>,
        unfinished: UnfinishedSetup,
    ) -> Result<Self, KeyError> {
        Params::parse(bytes)?;
        let go_on = &mut |_| ControlFlow::Continue(());
        match Self::read_params(&mut &bytes[..], matrices, unfinished, None, go_on) {
            Ok(key) => Ok(key),
            Err(ReadParamsError::Key(error)) => Err(error),
            // Neither happens to bytes that were just found whole, with nobody to stop it.
            Err(ReadParamsError::Io(_) | ReadParamsError::Stopped(_)) => {
                Err(KeyError::Format(proofkeep_formats::FormatError::Truncated {
                    file: proofkeep_formats::FileKind::Params,
                    place: "the lists".to_owned(),
                    needed: 1,
                    have: 0,
                }))
            }
        }
    }

    /// Reads a parameter file, and makes the key of the circuit with these matrices. The verifying key is checked, and that
    /// coordinates are canonical; with a backend to `check` on, every point is, as by
    /// [`crate::check::check_params_points`]. `read` hears how many points were read after each slice, and answers whether
    /// to go on. Runs on the current rayon pool, the checks on the backend's.
    ///
    /// # Errors
    /// A file that is broken or can't be read, belongs to another circuit, or comes from an unfinished setup; or it was
    /// stopped.
    pub fn read_params(
        source: &mut (dyn Read + Send),
        matrices: Arc<Matrices>,
        unfinished: UnfinishedSetup,
        check: Option<&dyn Backend>,
        read: &mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    ) -> Result<Self, ReadParamsError> {
        let expected = Expected::of(&matrices);
        let mut vk = vec![0; POINTS + 4];
        source.read_exact(&mut vk)?;
        let mut count = [0; 4];
        count.copy_from_slice(&vk[POINTS..]);
        expect("in IC", expected.ic, u32::from_be_bytes(count) as usize)?;
        let ic = vk.len();
        vk.resize(ic + expected.ic * G1_BYTES, 0);
        source.read_exact(&mut vk[ic..])?;
        let none: &[u8] = &[];
        let head = Params {
            vk: &vk,
            beta1: point(&vk, G1_BYTES)?,
            delta1: point(&vk, 2 * G1_BYTES + 2 * G2_BYTES)?,
            ic: &vk[ic..],
            h: none,
            l: none,
            a: none,
            b1: none,
            b2: none,
        };
        let checked = check_params_vk(&head, unfinished)?;
        // Checked with the verifying key.
        let (beta1, delta1) = (
            G1::from_coordinates(head.beta1),
            G1::from_coordinates(head.delta1),
        );
        let mut lists = Lists {
            source,
            check,
            read,
            done: 0,
            buffer: Vec::new(),
        };
        let h = lists.list::<G1>("in H", "list H", expected.h)?;
        let l = lists.list::<G1>("in L", "list L", expected.l)?;
        let a = lists.list::<G1>("in A", "list A", expected.a.len())?;
        let b1 = lists.list::<G1>("in B", "list B in G1", expected.b.len())?;
        let b2 = lists.list::<G2>("in B in G2", "list B in G2", expected.b.len())?;
        lists.end()?;
        Ok(ProvingKey {
            domain: Arc::new(Domain::new(matrices.log2(), Root::Bellperson).ok_or(MatrixError::TooLarge)?),
            h_basis: HBasis::Powers,
            vk: checked,
            beta1,
            delta1,
            h: BaseSet::full(h),
            l: BaseSet::with_wires(l, (matrices.public() + 1..matrices.wires()).collect()),
            a: BaseSet::with_wires(a, expected.a),
            b1: BaseSet::with_wires(b1, expected.b.clone()),
            b2: BaseSet::with_wires(b2, expected.b),
            matrices,
        })
    }
}

/// Holds the counts of a parameter file against the circuit that it is said to be of. The file holds no matrices, so
/// more can't be: parameters of another circuit with the same counts make proofs that don't verify.
///
/// # Errors
/// [`KeyError::Points`].
pub fn check_params_circuit(params: &Params<'_>, matrices: &Matrices) -> Result<(), KeyError> {
    let (expected, found) = (Expected::of(matrices), params.counts());
    for (what, expected, found) in [
        ("in IC", expected.ic, found.ic),
        ("in H", expected.h, found.h),
        ("in L", expected.l, found.l),
        ("in A", expected.a.len(), found.a),
        ("in B", expected.b.len(), found.b1),
        ("in B in G2", expected.b.len(), found.b2),
    ] {
        expect(what, expected, found as usize)?;
    }
    Ok(())
}

/// What a circuit asks of its parameters: how many points, and in A and B of which wires.
struct Expected {
    ic: usize,
    h: usize,
    l: usize,
    a: Vec<u32>,
    b: Vec<u32>,
}

impl Expected {
    fn of(matrices: &Matrices) -> Self {
        let (all, public) = (matrices.wires() as usize, matrices.public() as usize);
        Self {
            ic: public + 1,
            h: (1 << matrices.log2()) - 1,
            l: all - public - 1,
            a: in_matrix(matrices.a(), all),
            b: in_matrix(matrices.b(), all),
        }
    }
}

/// The point of G1 that begins at a place of the verifying key.
fn point(vk: &[u8], start: usize) -> Result<&[u8; G1_BYTES], io::Error> {
    vk[start..]
        .first_chunk()
        .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// The lists of points, read one after the other.
struct Lists<'s> {
    source: &'s mut (dyn Read + Send),
    check: Option<&'s dyn Backend>,
    read: &'s mut (dyn FnMut(u64) -> ControlFlow<()> + Send),
    done: u64,
    buffer: Vec<u8>,
}

impl Lists<'_> {
    fn list<C: SumsOn>(
        &mut self,
        what: &'static str,
        section: &'static str,
        expected: usize,
    ) -> Result<Vec<C::Affine>, ReadParamsError> {
        let mut count = [0; 4];
        self.source.read_exact(&mut count)?;
        // Before anything is allocated for them.
        expect(what, expected, u32::from_be_bytes(count) as usize)?;
        let mut points = Vec::with_capacity(expected);
        while points.len() < expected {
            let first = points.len();
            let slice = SLICE.min(expected - first);
            self.buffer.resize(slice * C::AFFINE_BYTES, 0);
            self.source.read_exact(&mut self.buffer)?;
            let (decoded, bad) = decoded::<C>(&self.buffer);
            let bad = bad.map(|fault| (decoded.len(), fault));
            let earlier = self.check.and_then(|backend| first_fault::<C>(&decoded, backend));
            if let Some((index, fault)) = earlier.or(bad) {
                return Err(CheckError::Point {
                    section,
                    index: (first + index) as u64,
                    fault,
                }
                .into());
            }
            points.extend_from_slice(&decoded);
            self.done += slice as u64;
            if (self.read)(self.done).is_break() {
                return Err(crate::control::Stopped.into());
            }
        }
        Ok(points)
    }

    /// Nothing comes after the last list.
    fn end(self) -> Result<(), ReadParamsError> {
        let mut one = [0];
        match self.source.read(&mut one)? {
            0 => Ok(()),
            more => Err(KeyError::Format(proofkeep_formats::FormatError::BadCount {
                file: proofkeep_formats::FileKind::Params,
                what: "the number of bytes after the last list",
                expected: "0".to_owned(),
                found: more as u64,
            })
            .into()),
        }
    }
}
