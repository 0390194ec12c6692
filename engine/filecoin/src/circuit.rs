//! The four circuits, without values: their names among the published parameters, and their matrices.

use filecoin_proofs::{PoRepConfig, SectorShapeBase};
use proofkeep_groth16::matrices::{Matrices, MatrixError};

use crate::invalid::Invalid;
use crate::porep::Commit;
use crate::post::Post;
use crate::sector::{self, Chosen, Seal};
use crate::snap::Update;

/// The tree shape of the sector sizes in this build; see [`sector::SIZES`].
pub type Tree = SectorShapeBase;

/// The names of the kinds.
pub const KINDS: [&str; 4] = ["porep-c2", "snap-update", "window-post", "winning-post"];

/// One of the circuits.
#[derive(Clone, Debug)]
pub enum Circuit {
    /// A WinningPoSt or a WindowPoSt.
    Post(Box<Post>),
    /// A PoRep.
    Porep(Box<PoRepConfig>),
    /// An update, by sector size.
    Update(u64),
}

impl Circuit {
    /// The circuit of a kind and a sector size; `partitions` is for PoReps.
    ///
    /// # Errors
    /// When there is no such kind, or the size isn't in this build.
    pub fn named(kind: &str, size: u64, partitions: Option<u8>) -> Result<Self, Invalid> {
        sector::check_built("sector_size", size)?;
        let chosen = Chosen::Size(size);
        match kind {
            "winning-post" | "window-post" => Ok(Self::Post(Box::new(Post {
                config: sector::post_config(&chosen, kind == "winning-post")?,
                prover: [0; 32],
                randomness: [0; 32],
                partition_index: None,
            }))),
            "porep-c2" => Ok(Self::Porep(Box::new(Seal::of(&chosen)?.config(partitions)))),
            "snap-update" => Ok(Self::Update(size)),
            other => {
                let expected = format!("one of {}", KINDS.join(", "));
                Err(Invalid::new("unknown-kind", "kind", expected, other))
            }
        }
    }

    /// Its name among the published parameters.
    ///
    /// # Errors
    /// When the published code refuses its settings.
    pub fn identifier(&self) -> Result<String, Invalid> {
        match self {
            Self::Post(post) => post.cache_identifier::<Tree>(),
            Self::Porep(config) => config.get_cache_identifier::<Tree>().map_err(|error| {
                Invalid::new(
                    "registered-proof",
                    "registered_proof",
                    "one of this build",
                    error.to_string(),
                )
            }),
            Self::Update(size) => Ok(Update::cache_identifier::<Tree>(*size)),
        }
    }

    /// Compiles its constraints: seconds for the circuits of 2 KiB sectors.
    ///
    /// # Errors
    /// When it is too large, or refuses.
    pub fn matrices(&self) -> Result<Matrices, MatrixError> {
        let refused = |invalid: Invalid| MatrixError::Synthesis(invalid.to_string());
        match self {
            Self::Post(post) => Matrices::of_circuit(post.blank::<Tree>().map_err(refused)?),
            Self::Porep(config) => Matrices::of_circuit(Commit::blank::<Tree>(config).map_err(refused)?),
            Self::Update(size) => Matrices::of_circuit(Update::blank::<Tree>(*size)),
        }
    }
}
