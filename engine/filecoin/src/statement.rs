//! What a job proves, in the canonical form that the daemon makes of a request and a worker process reads.
//!
//! The vanilla proofs were checked and cut into partitions at submit; each partition's are an object of their own, in
//! bincode, so that a worker process reads no more than it proves. The parameter file is pinned by its verifying key and
//! its digest.

use std::str::FromStr as _;

use blstrs::Scalar;
use filecoin_proofs::{FallbackPoStSectorProof, PartitionProof};
use proofkeep_groth16::field::{ScalarBytes, scalar_to_bytes};
use proofkeep_store::ids::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use storage_proofs_core::api_version::ApiVersion;
use zeroize::Zeroizing;

use crate::circuit::Circuit;
use crate::invalid::{Invalid, caught};
use crate::porep::{self, Commit};
use crate::post::{self, Post};
use crate::published::{self, PublicReplica};
use crate::sector::{self, Seal};
use crate::shape::with_tree;
use crate::snap::Update;
use crate::witness::witness_of;
use crate::{encoding, snap};

/// What is proved.
#[derive(Clone, Debug)]
pub enum Statement {
    /// That sectors are stored.
    Post {
        /// Which PoSt.
        post: Box<Post>,
        /// All its sectors, in the order of the proofs.
        sectors: Vec<PublicReplica>,
    },
    /// That a replica was made of data.
    Porep(Box<Commit>),
    /// That a sector was updated.
    Update(Box<Update>),
}

/// A job: what is proved, from which objects, under which key.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// What is proved.
    pub statement: Statement,
    /// The vanilla proofs of each partition.
    pub inputs: Vec<Digest>,
    /// The parameter file, by the digest of its verifying key.
    pub key: Digest,
    /// The whole of it, by its BLAKE2b digest; older jobs don't say.
    pub file: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Common {
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<String>,
    partition_inputs: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct PostFields {
    api_version: String,
    partition_index: Option<u32>,
    prover_id: String,
    randomness: String,
    sector_size: u64,
    sectors: Vec<(u64, String)>,
}

#[derive(Serialize, Deserialize)]
struct PorepFields {
    comm_d: String,
    comm_r: String,
    partitions: u8,
    prover_id: String,
    registered_proof: u64,
    replica_id: String,
    sector_number: u64,
    sector_size: u64,
    seed: String,
    ticket: String,
}

#[derive(Serialize, Deserialize)]
struct UpdateFields {
    comm_d_new: String,
    comm_r_new: String,
    comm_r_old: String,
    sector_size: u64,
}

impl Pinned {
    /// The canonical fields of the job.
    #[must_use]
    pub fn to_fields(&self) -> Map<String, Value> {
        let common = Common {
            key: self.key.to_string(),
            params: self.file.clone(),
            partition_inputs: self.inputs.iter().map(ToString::to_string).collect(),
        };
        let own = match &self.statement {
            Statement::Post { post, sectors } => to_object(&PostFields {
                api_version: post.config.api_version.to_string(),
                partition_index: post.partition_index,
                prover_id: hex::encode(post.prover),
                randomness: hex::encode(post.randomness),
                sector_size: post.config.sector_size.into(),
                sectors: sectors
                    .iter()
                    .map(|(number, comm_r)| (*number, hex::encode(comm_r)))
                    .collect(),
            }),
            Statement::Porep(commit) => to_object(&PorepFields {
                comm_d: hex::encode(commit.comm_d),
                comm_r: hex::encode(commit.comm_r),
                partitions: u8::try_from(usize::from(commit.config.partitions)).unwrap_or(u8::MAX),
                prover_id: hex::encode(commit.prover),
                registered_proof: commit.seal.number,
                replica_id: hex::encode(commit.replica_id),
                sector_number: commit.sector_number,
                sector_size: commit.seal.size,
                seed: hex::encode(commit.seed),
                ticket: hex::encode(commit.ticket),
            }),
            Statement::Update(update) => to_object(&UpdateFields {
                comm_d_new: hex::encode(update.comm_d_new),
                comm_r_new: hex::encode(update.comm_r_new),
                comm_r_old: hex::encode(update.comm_r_old),
                sector_size: update.size,
            }),
        };
        let mut fields = to_object(&common);
        fields.extend(own);
        fields
    }

    /// Reads a canonical request of a kind.
    ///
    /// # Errors
    /// When it is none.
    pub fn of_request(kind: &str, request: &[u8]) -> Result<Self, Invalid> {
        let common: Common = read(request)?;
        let digest = |text: &String| Digest::parse(text).ok_or_else(|| broken("a digest that is none"));
        Ok(Self {
            statement: Statement::of_request(kind, request)?,
            inputs: common
                .partition_inputs
                .iter()
                .map(digest)
                .collect::<Result<_, _>>()?,
            key: digest(&common.key)?,
            file: common.params,
        })
    }
}

impl Statement {
    fn of_request(kind: &str, request: &[u8]) -> Result<Self, Invalid> {
        match kind {
            "winning-post" | "window-post" => {
                let fields: PostFields = read(request)?;
                let version =
                    ApiVersion::from_str(&fields.api_version).map_err(|_| broken("an unknown version"))?;
                let sectors = fields
                    .sectors
                    .iter()
                    .map(|(number, comm_r)| Ok((*number, bytes(comm_r)?)));
                Ok(Self::Post {
                    post: Box::new(Post {
                        config: sector::post(fields.sector_size, version, kind == "winning-post"),
                        prover: bytes(&fields.prover_id)?,
                        randomness: bytes(&fields.randomness)?,
                        partition_index: fields.partition_index,
                    }),
                    sectors: sectors.collect::<Result<_, Invalid>>()?,
                })
            }
            "porep-c2" => {
                let fields: PorepFields = read(request)?;
                let seal = Seal {
                    number: fields.registered_proof,
                    size: fields.sector_size,
                };
                Ok(Self::Porep(Box::new(Commit {
                    seal,
                    config: seal.config(Some(fields.partitions)),
                    prover: bytes(&fields.prover_id)?,
                    sector_number: fields.sector_number,
                    comm_r: bytes(&fields.comm_r)?,
                    comm_d: bytes(&fields.comm_d)?,
                    replica_id: bytes(&fields.replica_id)?,
                    seed: bytes(&fields.seed)?,
                    ticket: bytes(&fields.ticket)?,
                })))
            }
            "snap-update" => {
                let fields: UpdateFields = read(request)?;
                Ok(Self::Update(Box::new(Update {
                    size: fields.sector_size,
                    comm_r_old: bytes(&fields.comm_r_old)?,
                    comm_r_new: bytes(&fields.comm_r_new)?,
                    comm_d_new: bytes(&fields.comm_d_new)?,
                })))
            }
            _ => Err(broken("an unknown kind")),
        }
    }

    /// Its circuit.
    #[must_use]
    pub fn circuit(&self) -> Circuit {
        match self {
            Self::Post { post, .. } => Circuit::Post(post.clone()),
            Self::Porep(commit) => Circuit::Porep(Box::new(commit.config.clone())),
            Self::Update(update) => Circuit::Update(update.size),
        }
    }

    /// The witness of partition `k` of the job, from its vanilla proofs in bincode, which are verified first; and its public
    /// signals as the verifier makes them. Runs on the current rayon pool.
    ///
    /// # Errors
    /// When the proofs don't verify any more, or the circuit refuses them.
    pub fn witness(&self, k: usize, input: &[u8]) -> Result<Witness, Invalid> {
        with_tree!(self.circuit().sector_size(), Tree => match self {
            Self::Post { post, .. } => {
                let sectors: Vec<FallbackPoStSectorProof<Tree>> =
                    encoding::from_bincode(post::PROOFS, input)?;
                let partition = post::Partition {
                    index: k + post.partition_index.unwrap_or(0) as usize,
                    sectors,
                };
                post.check(&partition, k * post.config.sector_count)?;
                synthesize(post::PROOFS, post.circuit(&partition)?, post.public(&partition)?)
            }
            Self::Porep(commit) => {
                let partition: porep::Partition<Tree> = encoding::from_bincode(porep::PROOF, input)?;
                commit.check_partition(&partition, k)?;
                synthesize(
                    porep::PROOF,
                    commit.circuit(&partition, k)?,
                    commit.public::<Tree>(k)?,
                )
            }
            Self::Update(update) => {
                let partition: PartitionProof<Tree> = encoding::from_bincode(snap::PROOFS, input)?;
                update.check_partition(&partition, k)?;
                synthesize(
                    snap::PROOFS,
                    update.circuit(&partition, k)?,
                    update.public::<Tree>(k)?,
                )
            }
        })
    }

    /// Verifies all proofs together, as the chain does. One partition alone of a WindowPoSt isn't what the chain takes, so
    /// there is nothing to add to its own verification.
    ///
    /// # Errors
    /// When they can't be read; proofs that don't hold are `Ok(false)`.
    pub fn verify_joined(&self, vk: &[u8], proofs: &[u8]) -> Result<bool, Invalid> {
        match self {
            Self::Post { post, .. } if post.partition_index.is_some() => Ok(true),
            Self::Post { post, sectors } => published::verify_post(post, sectors, vk, proofs),
            Self::Porep(commit) => published::verify_porep(commit, vk, proofs),
            Self::Update(update) => published::verify_update(update, vk, proofs),
        }
    }
}

/// The values of all wires, and what the public ones must be.
pub struct Witness {
    /// The constant one, the public signals, the rest.
    pub values: Zeroizing<Vec<ScalarBytes>>,
    /// The public signals by the verifier's own account.
    pub public: Vec<ScalarBytes>,
}

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}

fn synthesize(
    field: &str,
    circuit: impl bellpepper_core::Circuit<Scalar>,
    public: Vec<Scalar>,
) -> Result<Witness, Invalid> {
    let refused = |error: bellpepper_core::SynthesisError| {
        let found = format!("some that it refuses ({error})");
        Invalid::new("synthesis", field, "vanilla proofs that the circuit takes", found)
    };
    let values = caught(field, || witness_of(circuit).map_err(refused))?;
    Ok(Witness {
        values,
        public: public.iter().map(scalar_to_bytes).collect(),
    })
}

fn to_object(fields: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        // Plain fields always make an object.
        _ => Map::new(),
    }
}

fn read<'a, T: Deserialize<'a>>(request: &'a [u8]) -> Result<T, Invalid> {
    serde_json::from_slice(request).map_err(|error| broken(&error.to_string()))
}

fn bytes(text: &str) -> Result<[u8; 32], Invalid> {
    let read = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    read.ok_or_else(|| broken("a value that isn't 32 bytes in hex"))
}

fn broken(found: &str) -> Invalid {
    Invalid::new(
        "request",
        "the stored request",
        "a canonical request of this kind",
        found,
    )
}
