//! Inputs for trials, made as a miner makes them: sectors of random data are sealed by the published code, and what it
//! proves of them without a circuit is written out. Seconds for the smallest sectors.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use filecoin_proofs::TreeRHasher;
use filecoin_proofs::{
    PieceInfo, PoRepConfig, PrivateReplicaInfo, SealPreCommitOutput, SectorUpdateConfig, UnpaddedBytesAmount,
    add_piece, clear_cache, encode_into, generate_fallback_sector_challenges, generate_partition_proofs,
    generate_piece_commitment, generate_single_vanilla_proof, seal_commit_phase1, seal_pre_commit_phase1,
    seal_pre_commit_phase2,
};
use rand::RngCore;
use rand::rngs::OsRng;
use serde::Serialize;
use serde_json::{Map, Value, json};
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::sector::SectorId;

use crate::circuit::KINDS;
use crate::invalid::Invalid;
use crate::sector::{self, Chosen, Seal};
use crate::shape::with_tree;

/// The number of the first sector.
const FIRST: u64 = 1000;
/// Larger sectors take hours and parents' caches of their size.
const LARGEST: u64 = 1 << 24;

/// A sample that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// There is none such.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The published code refuses.
    #[error("the published code can't make it: {0}")]
    Published(String),
    /// The directory can't be written.
    #[error("{path} can't be written: {error}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The kind.
    pub kind: String,
    /// Bytes of a sector.
    pub size: u64,
    /// Partitions of a PoRep, if not as many as the chain wants.
    pub partitions: Option<u8>,
    /// Sectors of a WindowPoSt.
    pub sectors: u64,
}

/// What was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The fields of a request, its vanilla proofs left out.
    pub fields: Map<String, Value>,
    /// The vanilla proofs in bincode.
    pub proofs: Vec<u8>,
}

/// A sealed sector.
struct Sealed {
    number: u64,
    config: PoRepConfig,
    replica: PathBuf,
    cache: PathBuf,
    pieces: Vec<PieceInfo>,
    commitments: SealPreCommitOutput,
    ticket: [u8; 32],
}

impl Sample {
    /// Makes it; `scratch` is a directory for sectors that the caller removes.
    ///
    /// # Errors
    /// When there is no such kind or size here, the disk refuses, or the published code does.
    pub fn make(&self, scratch: &Path) -> Result<Made, SampleError> {
        let rng = &mut OsRng;
        Chosen::registered(self.size)?;
        Seal::check_partitions(self.size, self.partitions)?;
        if self.size > LARGEST {
            let expected = format!(
                "at most {}, as larger ones take hours",
                sector::size_name(LARGEST)
            );
            let found = sector::size_name(self.size);
            return Err(Invalid::new("sector-size", "sector_size", expected, found).into());
        }
        let mut prover = [0; 32];
        rng.fill_bytes(&mut prover);
        // An element of the field.
        prover[31] &= 0x3f;
        let (mut fields, proofs) = with_tree!(self.size, Tree => match self.kind.as_str() {
            "porep-c2" => self.commit::<Tree>(prover, scratch, rng)?,
            "snap-update" => self.update::<Tree>(prover, scratch, rng)?,
            "winning-post" => self.post::<Tree>(true, prover, scratch, rng)?,
            "window-post" => self.post::<Tree>(false, prover, scratch, rng)?,
            other => {
                let expected = format!("one of {}", KINDS.join(", "));
                return Err(Invalid::new("unknown-kind", "kind", expected, other).into());
            }
        });
        fields.insert("sector_size".to_owned(), sector::size_name(self.size).into());
        if self.kind != "snap-update" {
            fields.insert("prover_id".to_owned(), hex::encode(prover).into());
        }
        Ok(Made { fields, proofs })
    }

    fn commit<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        prover: [u8; 32],
        scratch: &Path,
        rng: &mut impl RngCore,
    ) -> Result<(Map<String, Value>, Vec<u8>), SampleError> {
        let sealed = self.seal::<Tree>(FIRST, prover, scratch, rng)?;
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let output = seal_commit_phase1::<_, Tree>(
            &sealed.config,
            &sealed.cache,
            &sealed.replica,
            prover,
            SectorId::from(sealed.number),
            sealed.ticket,
            seed,
            sealed.commitments,
            &sealed.pieces,
        )
        .map_err(published)?;
        let mut fields = object(json!({ "sector_number": sealed.number }));
        if let Some(partitions) = self.partitions {
            fields.insert("partitions".to_owned(), partitions.into());
        }
        Ok((fields, bincode(&output)?))
    }

    fn update<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        prover: [u8; 32],
        scratch: &Path,
        rng: &mut impl RngCore,
    ) -> Result<(Map<String, Value>, Vec<u8>), SampleError> {
        let old = self.seal::<Tree>(FIRST, prover, scratch, rng)?;
        let config = SectorUpdateConfig::from_porep_config(&old.config);
        let folder = scratch.join("updated");
        let (replica, cache, staged) = (
            folder.join("replica"),
            folder.join("cache"),
            folder.join("staged"),
        );
        let io = |error| failed(&folder, error);
        fs::create_dir_all(&cache).map_err(io)?;
        let pieces = vec![piece(&old.config, &staged, rng)?];
        let empty = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&replica)
            .map_err(io)?;
        empty.set_len(self.size).map_err(io)?;
        let new = encode_into::<Tree>(
            &config,
            &replica,
            &cache,
            &old.replica,
            &old.cache,
            &staged,
            &pieces,
        )
        .map_err(published)?;
        let comm_r_old = old.commitments.comm_r;
        let proofs = generate_partition_proofs::<Tree>(
            config,
            comm_r_old,
            new.comm_r_new,
            new.comm_d_new,
            &old.replica,
            &old.cache,
            &replica,
            &cache,
        )
        .map_err(published)?;
        let fields = object(json!({
            "comm_r_old": hex::encode(comm_r_old),
            "comm_r_new": hex::encode(new.comm_r_new),
            "comm_d_new": hex::encode(new.comm_d_new),
        }));
        Ok((fields, bincode(&proofs)?))
    }

    fn post<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        winning: bool,
        prover: [u8; 32],
        scratch: &Path,
        rng: &mut impl RngCore,
    ) -> Result<(Map<String, Value>, Vec<u8>), SampleError> {
        let config = sector::post_config(&Chosen::Size(self.size), winning)?;
        let mut randomness = [0; 32];
        rng.fill_bytes(&mut randomness);
        randomness[31] &= 0x3f;
        let sectors = if winning { 1 } else { self.sectors };
        let mut proofs = Vec::new();
        let numbers: Vec<SectorId> = (FIRST..FIRST + sectors).map(SectorId::from).collect();
        let challenges = generate_fallback_sector_challenges::<Tree>(&config, &randomness, &numbers, prover)
            .map_err(published)?;
        for number in numbers {
            let sealed = self.seal::<Tree>(number.into(), prover, scratch, rng)?;
            clear_cache(&sealed.cache).map_err(published)?;
            let replica =
                PrivateReplicaInfo::<Tree>::new(sealed.replica, sealed.commitments.comm_r, sealed.cache)
                    .map_err(published)?;
            let of_sector = challenges.get(&number).map_or(&[][..], Vec::as_slice);
            let proof = generate_single_vanilla_proof::<Tree>(&config, number, &replica, of_sector);
            proofs.push(proof.map_err(published)?);
        }
        let fields = object(json!({ "randomness": hex::encode(randomness) }));
        Ok((fields, bincode(&proofs)?))
    }

    /// Seals a sector of random data.
    fn seal<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        number: u64,
        prover: [u8; 32],
        scratch: &Path,
        rng: &mut impl RngCore,
    ) -> Result<Sealed, SampleError> {
        let config = Seal::of(&Chosen::Size(self.size))?.config(self.partitions);
        let folder = scratch.join(format!("sector-{number}"));
        let (cache, staged, replica) = (
            folder.join("cache"),
            folder.join("staged"),
            folder.join("replica"),
        );
        fs::create_dir_all(&cache).map_err(|error| failed(&cache, error))?;
        let pieces = vec![piece(&config, &staged, rng)?];
        // The published code writes into a file that is there.
        File::create(&replica).map_err(|error| failed(&replica, error))?;
        let mut ticket = [0; 32];
        rng.fill_bytes(&mut ticket);
        let first = seal_pre_commit_phase1::<_, _, _, Tree>(
            &config,
            &cache,
            &staged,
            &replica,
            prover,
            SectorId::from(number),
            ticket,
            &pieces,
        )
        .map_err(published)?;
        let commitments = seal_pre_commit_phase2(&config, first, &cache, &replica).map_err(published)?;
        Ok(Sealed {
            number,
            config,
            replica,
            cache,
            pieces,
            commitments,
            ticket,
        })
    }
}

/// A piece of random data that fills a sector, written to a file as the published code wants it.
fn piece(config: &PoRepConfig, staged: &Path, rng: &mut impl RngCore) -> Result<PieceInfo, SampleError> {
    let length: UnpaddedBytesAmount = config.unpadded_bytes_amount();
    let mut data = vec![0; usize::try_from(u64::from(length)).unwrap_or(usize::MAX)];
    rng.fill_bytes(&mut data);
    let info = generate_piece_commitment(Cursor::new(&data), length).map_err(published)?;
    let mut file = File::create(staged).map_err(|error| failed(staged, error))?;
    add_piece(Cursor::new(&data), &mut file, length, &[]).map_err(published)?;
    Ok(info)
}

fn bincode(value: &impl Serialize) -> Result<Vec<u8>, SampleError> {
    Ok(crate::encoding::to_bincode("sample", value)?)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn published(error: impl std::fmt::Display) -> SampleError {
    SampleError::Published(format!("{error:#}"))
}

fn failed(path: &Path, error: io::Error) -> SampleError {
    SampleError::Io {
        path: path.to_owned(),
        error,
    }
}
