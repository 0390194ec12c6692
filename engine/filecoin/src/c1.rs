//! C1's output in its forms: as `filecoin-proofs` writes it and as `filecoin-proofs-api` does, both as JSON or bincode,
//! and as lotus wraps the latter's JSON (`{"SectorNum", "Phase1Out": base64, "SectorSize"}`).

use std::borrow::Cow;

use filecoin_hashers::Hasher;
use filecoin_proofs::{SealCommitPhase1Output, TreeRHasher, VanillaSealProof};
use serde::Deserialize;
use storage_proofs_core::merkle::MerkleTreeTrait;

use crate::encoding;
use crate::invalid::Invalid;
use crate::porep::PROOF;
use crate::sector::{self, Chosen};

/// What a file says before its proofs are read.
pub(crate) struct Head<'a> {
    pub bytes: Cow<'a, [u8]>,
    /// As the proofs API writes it.
    pub api: bool,
    pub registered: Option<Chosen>,
    pub size: Option<u64>,
    pub sector_number: Option<u64>,
}

#[derive(Deserialize)]
struct JsonHead {
    registered_proof: Option<String>,
    #[serde(rename = "SectorNum")]
    sector_number: Option<u64>,
    #[serde(rename = "SectorSize")]
    sector_size: Option<u64>,
    #[serde(rename = "Phase1Out")]
    phase1_out: Option<String>,
}

#[derive(Deserialize)]
struct ApiOutput<Tree: MerkleTreeTrait> {
    #[serde(rename = "registered_proof")]
    _registered_proof: ApiSeal,
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    vanilla_proofs: ApiProofs<Tree>,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: <Tree::Hasher as Hasher>::Domain,
    seed: [u8; 32],
    ticket: [u8; 32],
}

/// A registered proof in an API file: a name in JSON, a number in bincode. Which one was read from the head.
struct ApiSeal;

impl<'de> Deserialize<'de> for ApiSeal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return String::deserialize(deserializer).map(|_| ApiSeal);
        }
        u32::deserialize(deserializer).map(|_| ApiSeal)
    }
}

/// Proofs under the name of a sector size.
#[derive(Deserialize)]
enum ApiProofs<Tree: MerkleTreeTrait> {
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    StackedDrg2KiBV1(Vec<Vec<VanillaSealProof<Tree>>>),
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    StackedDrg8MiBV1(Vec<Vec<VanillaSealProof<Tree>>>),
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    StackedDrg512MiBV1(Vec<Vec<VanillaSealProof<Tree>>>),
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    StackedDrg32GiBV1(Vec<Vec<VanillaSealProof<Tree>>>),
    #[serde(bound(deserialize = "VanillaSealProof<Tree>: Deserialize<'de>"))]
    StackedDrg64GiBV1(Vec<Vec<VanillaSealProof<Tree>>>),
}

impl<Tree: MerkleTreeTrait> ApiProofs<Tree> {
    fn into_parts(self) -> (u64, Vec<Vec<VanillaSealProof<Tree>>>) {
        match self {
            Self::StackedDrg2KiBV1(proofs) => (1 << 11, proofs),
            Self::StackedDrg8MiBV1(proofs) => (1 << 23, proofs),
            Self::StackedDrg512MiBV1(proofs) => (1 << 29, proofs),
            Self::StackedDrg32GiBV1(proofs) => (1 << 35, proofs),
            Self::StackedDrg64GiBV1(proofs) => (1 << 36, proofs),
        }
    }
}

/// Reads what a file says of itself, and unwraps what lotus wrapped.
pub(crate) fn head(bytes: &[u8]) -> Result<Head<'_>, Invalid> {
    if !encoding::is_json(bytes) {
        return Ok(bincode_head(bytes));
    }
    let json: JsonHead = encoding::from_json(PROOF, bytes)?;
    let mut head = Head {
        bytes: Cow::Borrowed(bytes),
        api: json.registered_proof.is_some(),
        registered: json.registered_proof.map(Chosen::Name),
        size: json.sector_size,
        sector_number: json.sector_number,
    };
    if let Some(text) = json.phase1_out {
        let place = format!("{PROOF}.Phase1Out");
        let inner = encoding::from_base64(&place, &text)?;
        let json: JsonHead = encoding::from_json(&place, &inner)?;
        head.api = json.registered_proof.is_some();
        head.registered = json.registered_proof.map(Chosen::Name);
        head.bytes = Cow::Owned(inner);
    }
    Ok(head)
}

/// The proofs API writes the numbers of the registered proof and of the sector size before the counts of partitions and
/// challenges; without them the third word holds the first bytes of a hash.
fn bincode_head(bytes: &[u8]) -> Head<'_> {
    let word = |place: usize| {
        let bytes = bytes
            .get(place..place + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(u64::MAX, u64::from_le_bytes)
    };
    let (first, challenges) = (word(0), word(16));
    let (registered, size) = (first & 0xffff_ffff, first >> 32);
    let api = registered < 20 && size < 5 && (1..256).contains(&challenges);
    Head {
        bytes: Cow::Borrowed(bytes),
        api,
        registered: api.then_some(Chosen::Number(registered)),
        size: None,
        sector_number: None,
    }
}

/// Reads the whole of it.
pub(crate) fn output<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
    head: &Head<'_>,
    size: u64,
) -> Result<SealCommitPhase1Output<Tree>, Invalid> {
    if !head.api {
        return encoding::one(PROOF, &head.bytes);
    }
    let output: ApiOutput<Tree> = encoding::one(PROOF, &head.bytes)?;
    let (found, vanilla_proofs) = output.vanilla_proofs.into_parts();
    if found != size {
        return Err(Invalid::new(
            "sector-size",
            format!("{PROOF}.vanilla_proofs"),
            format!("proofs of {} sectors", sector::size_name(size)),
            format!("those of {} sectors", sector::size_name(found)),
        ));
    }
    Ok(SealCommitPhase1Output {
        vanilla_proofs,
        comm_r: output.comm_r,
        comm_d: output.comm_d,
        replica_id: output.replica_id,
        seed: output.seed,
        ticket: output.ticket,
    })
}
