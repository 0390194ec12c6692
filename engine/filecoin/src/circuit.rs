//! The four circuits, without values: their names among the published parameters, and their matrices.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use filecoin_proofs::{PoRepConfig, constants};
use proofkeep_groth16::matrices::{Matrices, MatrixError};

use crate::directory::Directory;
use crate::invalid::Invalid;
use crate::porep::Commit;
use crate::post::Post;
use crate::sector::{self, Chosen, Seal};
use crate::shape::with_tree;
use crate::snap::Update;

/// The names of the kinds.
pub const KINDS: [&str; 4] = ["porep-c2", "snap-update", "window-post", "winning-post"];

/// The most partitions of a PoRep that parameters are made for.
const MOST_PARTITIONS: u8 = 16;

/// What names a circuit: kind, bytes of a sector, partitions of a PoRep.
type Named = (&'static str, u64, Option<u8>);

/// The circuits of this build, by the names of their parameter files.
static BUILT: LazyLock<BTreeMap<String, Named>> = LazyLock::new(|| {
    let mut built = BTreeMap::new();
    for (kind, size) in KINDS
        .into_iter()
        .flat_map(|kind| constants::SUPPORTED_SECTOR_SIZES.map(|size| (kind, size)))
    {
        let most = if kind == "porep-c2" { MOST_PARTITIONS } else { 0 };
        for partitions in std::iter::once(None).chain((1..=most).map(Some)) {
            let circuit = Circuit::named(kind, size, partitions);
            if let Ok(identifier) = circuit.and_then(|circuit| circuit.identifier()) {
                built
                    .entry(Directory::id(&identifier))
                    .or_insert((kind, size, partitions));
            }
        }
    }
    built
});

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
    /// When there is no such kind, or no sectors of this size.
    pub fn named(kind: &str, size: u64, partitions: Option<u8>) -> Result<Self, Invalid> {
        let chosen = Chosen::registered(size)?;
        match kind {
            "winning-post" | "window-post" => Ok(Self::Post(Box::new(Post {
                config: sector::post_config(&chosen, kind == "winning-post")?,
                prover: [0; 32],
                randomness: [0; 32],
                partition_index: None,
            }))),
            "porep-c2" => {
                Seal::check_partitions(size, partitions)?;
                Ok(Self::Porep(Box::new(Seal::of(&chosen)?.config(partitions))))
            }
            "snap-update" => Ok(Self::Update(sector::update_size(&chosen)?)),
            other => {
                let expected = format!("one of {}", KINDS.join(", "));
                Err(Invalid::new("unknown-kind", "kind", expected, other))
            }
        }
    }

    /// The circuit of this build whose parameter file has this name, without `.params`, and the kind that it is of.
    #[must_use]
    pub fn of_id(id: &str) -> Option<(&'static str, Self)> {
        let (kind, size, partitions) = *BUILT.get(id)?;
        Some((kind, Self::named(kind, size, partitions).ok()?))
    }

    /// The names of the parameter files that circuits of published sector sizes want, PoReps with as many partitions as the
    /// chain wants.
    pub fn ids() -> impl Iterator<Item = &'static str> {
        let wanted = BUILT.iter().filter(|(_, (_, size, partitions))| {
            partitions.is_none() && constants::PUBLISHED_SECTOR_SIZES.contains(size)
        });
        wanted.map(|(id, _)| id.as_str())
    }

    /// Bytes of a sector.
    #[must_use]
    pub fn sector_size(&self) -> u64 {
        match self {
            Self::Post(post) => post.config.sector_size.into(),
            Self::Porep(config) => config.sector_size.into(),
            Self::Update(size) => *size,
        }
    }

    /// Its name among the published parameters.
    ///
    /// # Errors
    /// When the published code refuses its settings.
    pub fn identifier(&self) -> Result<String, Invalid> {
        with_tree!(self.sector_size(), Tree => match self {
            Self::Post(post) => post.cache_identifier::<Tree>(),
            Self::Porep(config) => config.get_cache_identifier::<Tree>().map_err(|error| {
                let expected = "a proof that has parameters";
                Invalid::new("registered-proof", "registered_proof", expected, error.to_string())
            }),
            Self::Update(size) => Ok(Update::cache_identifier::<Tree>(*size)),
        })
    }

    /// Compiles its constraints: seconds for the circuits of 2 KiB sectors.
    ///
    /// # Errors
    /// When it is too large, or refuses.
    pub fn matrices(&self) -> Result<Matrices, MatrixError> {
        let refused = |invalid: Invalid| MatrixError::Synthesis(invalid.to_string());
        with_tree!(self.sector_size(), Tree => match self {
            Self::Post(post) => Matrices::of_circuit(post.blank::<Tree>().map_err(refused)?),
            Self::Porep(config) => Matrices::of_circuit(Commit::blank::<Tree>(config).map_err(refused)?),
            Self::Update(size) => Matrices::of_circuit(Update::blank::<Tree>(*size)),
        })
    }
}
