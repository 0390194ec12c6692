//! Proving keys from snarkjs's `.zkey`.

use std::ops::Range;
use std::sync::Arc;

use proofkeep_formats::zkey::Zkey;

use super::{KeyError, ProvingKey};
use crate::bases::{BaseSet, KeyBytes};
use crate::curve::{G1, read_point};
use crate::domain::Domain;
use crate::field::Root;
use crate::matrices::{Matrices, MatrixError};
use crate::quotient::HBasis;
use crate::vk::{UnfinishedSetup, VerifyingKey, check_point};

impl ProvingKey {
    /// Makes a key from the bytes of a `.zkey`, mapped or in memory, and the matrices that were compiled when it was
    /// imported; without them they are compiled from the key, which knows no `C`.
    ///
    /// The verifying key is checked. The other points are not, since that takes minutes for a large key: check them once
    /// with [`crate::check::check_points`], and the matrices with [`crate::check::check_circuit`].
    ///
    /// # Errors
    /// A file that is broken, belongs to another circuit than the matrices, or comes from an unfinished setup.
    pub fn from_zkey(bytes: KeyBytes, matrices: Option<Arc<Matrices>>) -> Result<Self, KeyError> {
        Self::from_zkey_with(bytes, matrices, UnfinishedSetup::Refuse)
    }

    /// [`ProvingKey::from_zkey`], with a word on unfinished setups.
    ///
    /// # Errors
    /// As there.
    pub fn from_zkey_with(
        bytes: KeyBytes,
        matrices: Option<Arc<Matrices>>,
        unfinished: UnfinishedSetup,
    ) -> Result<Self, KeyError> {
        let file = (*bytes).as_ref();
        let zkey = Zkey::parse(file)?;
        let vk = VerifyingKey::from_zkey_with(&zkey, unfinished)?;
        let matrices = match matrices {
            Some(matrices) => matrices,
            None => Arc::new(Matrices::from_zkey(&zkey)?),
        };
        let header = zkey.header;
        for (what, expected, found) in [
            ("for its wires", matrices.wires(), header.wires),
            ("for public signals", matrices.public(), header.public),
            ("as the exponent of its domain", matrices.log2(), header.log2),
        ] {
            if expected != found {
                return Err(KeyError::Points {
                    what,
                    expected: expected as usize,
                    found: found as usize,
                });
            }
        }
        let place = |section: &[u8]| -> Range<usize> {
            let start = section.as_ptr() as usize - file.as_ptr() as usize;
            start..start + section.len()
        };
        let (h, l) = (place(zkey.h), place(zkey.c));
        let (a, b1, b2) = (place(zkey.a), place(zkey.b1), place(zkey.b2));
        let (beta1, delta1) = (read_point::<G1>(zkey.beta1), read_point::<G1>(zkey.delta1));
        check_point::<G1>(&beta1, || "β₁".to_owned())?;
        check_point::<G1>(&delta1, || "δ₁".to_owned())?;
        Ok(ProvingKey {
            domain: Arc::new(Domain::new(header.log2, Root::Snarkjs).ok_or(MatrixError::TooLarge)?),
            h_basis: HBasis::OddCoset,
            vk,
            beta1,
            delta1,
            h: BaseSet::full_from_section(&bytes, h),
            l: BaseSet::from_section(&bytes, l, header.public + 1),
            a: BaseSet::from_section(&bytes, a, 0),
            b1: BaseSet::from_section(&bytes, b1, 0),
            b2: BaseSet::from_section(&bytes, b2, 0),
            matrices,
        })
    }
}
