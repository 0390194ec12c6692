//! WinningPoSt and WindowPoSt: both are the fallback PoSt, once over 66 challenges of one sector, once over 10 challenges
//! of each of many sectors, in partitions of a fixed number of them.
//!
//! A prover's id isn't part of what such a proof says, so a proof for another miner can't be told from the right one here;
//! the chain tells by the randomness and the sectors.

use std::collections::BTreeSet;

use blstrs::Scalar;
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::parameters::{window_post_public_params, winning_post_public_params};
use filecoin_proofs::{FallbackPoStSectorProof, PoStConfig, PoStType, TreeRHasher, as_safe_commitment};
use serde_json::{Map, Value};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_core::util::NODE_SIZE;
use storage_proofs_post::fallback::{
    self, FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound, PublicSector, SectorProof,
    generate_leaf_challenge, get_challenge_index,
};

use crate::invalid::{Invalid, caught};
use crate::{canonical, encoding, merkle, sector, value};

/// The field with the vanilla proofs.
pub const PROOFS: &str = "vanilla_proofs";
/// The most partitions of a job.
const MOST_PARTITIONS: usize = 1024;

type Domain = <TreeRHasher as Hasher>::Domain;

/// What a request asks for, its vanilla proofs left out.
#[derive(Clone, Debug)]
pub struct Post {
    /// Which PoSt, of which sector size and version.
    pub config: PoStConfig,
    /// The prover's id.
    pub prover: [u8; 32],
    /// The chain's randomness, an element of the field.
    pub randomness: [u8; 32],
    /// Exactly this partition of a WindowPoSt; otherwise all of them.
    pub partition_index: Option<u32>,
}

/// The vanilla proofs of one partition.
#[derive(Debug)]
pub struct Partition<Tree: MerkleTreeTrait> {
    /// Its number, as the chain counts.
    pub index: usize,
    /// Its sectors, at most as many as the circuit has.
    pub sectors: Vec<FallbackPoStSectorProof<Tree>>,
}

impl Post {
    /// Takes the fields of a request.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn take(fields: &mut Map<String, Value>, winning: bool) -> Result<Self, Invalid> {
        let chosen = sector::chosen(fields)?.ok_or_else(|| {
            let expected = "the registered proof or the sector_size";
            Invalid::field("registered_proof", expected, None)
        })?;
        let config = sector::post_config(&chosen, winning)?;
        let prover = value::prover(fields)?;
        let randomness = value::element(fields, "randomness")?;
        let partition_index = match fields.remove("partition_index") {
            None => None,
            Some(index) if !winning => {
                let number = index.as_u64().filter(|number| *number < MOST_PARTITIONS as u64);
                let number = number.and_then(|number| u32::try_from(number).ok());
                Some(number.ok_or_else(|| {
                    Invalid::field("partition_index", "a number from 0 to 1023", Some(&index))
                })?)
            }
            Some(index) => {
                let expected = "no such field: a WinningPoSt has one partition";
                return Err(Invalid::field("partition_index", expected, Some(&index)));
            }
        };
        Ok(Self {
            config,
            prover,
            randomness,
            partition_index,
        })
    }

    /// Whether it is a WinningPoSt.
    #[must_use]
    pub fn is_winning(&self) -> bool {
        self.config.typ == PoStType::Winning
    }

    /// Reads vanilla proofs, checks all of them, and cuts them into partitions.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn read<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        bytes: &[u8],
    ) -> Result<Vec<Partition<Tree>>, Invalid> {
        self.cut(encoding::list(PROOFS, bytes)?)
    }

    /// The same for proofs of a sector each, in the order of the sectors.
    ///
    /// # Errors
    /// As there.
    pub fn read_each<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<Partition<Tree>>, Invalid> {
        let one = |(index, bytes): (usize, &Vec<u8>)| encoding::one(&format!("{PROOFS}[{index}]"), bytes);
        self.cut(blobs.iter().enumerate().map(one).collect::<Result<_, _>>()?)
    }

    fn cut<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        sectors: Vec<FallbackPoStSectorProof<Tree>>,
    ) -> Result<Vec<Partition<Tree>>, Invalid> {
        self.check_count(sectors.len())?;
        let mut seen = BTreeSet::new();
        let mut last = None;
        for (index, sector) in sectors.iter().enumerate() {
            let (place, id) = (
                format!("{PROOFS}[{index}].sector_id"),
                u64::from(sector.sector_id),
            );
            if !seen.insert(id) {
                let expected = "each sector once";
                return Err(Invalid::new(
                    "sector-twice",
                    place,
                    expected,
                    format!("sector {id} again"),
                ));
            }
            // The chain verifies the sectors in this order.
            if let Some(last) = last.replace(id).filter(|last| *last > id) {
                let found = format!("sector {id} after sector {last}");
                return Err(Invalid::new(
                    "sector-order",
                    place,
                    "sectors by rising number",
                    found,
                ));
            }
        }
        let first = self.partition_index.unwrap_or(0) as usize;
        let mut sectors = sectors.into_iter().peekable();
        let mut partitions = Vec::new();
        while sectors.peek().is_some() {
            let sectors = sectors.by_ref().take(self.config.sector_count).collect();
            let partition = Partition {
                index: first + partitions.len(),
                sectors,
            };
            self.check(&partition, partitions.len() * self.config.sector_count)?;
            partitions.push(partition);
        }
        Ok(partitions)
    }

    fn check_count(&self, found: usize) -> Result<(), Invalid> {
        let most = self.config.sector_count;
        let (expected, fits) = match (self.is_winning(), self.partition_index) {
            (true, _) => (format!("the proofs of {most} sector"), found == most),
            (false, Some(_)) => (
                format!("the proofs of 1 to {most} sectors, which are one partition"),
                (1..=most).contains(&found),
            ),
            (false, None) => {
                let most = most * MOST_PARTITIONS;
                (
                    format!("the proofs of 1 to {most} sectors"),
                    (1..=most).contains(&found),
                )
            }
        };
        if fits {
            return Ok(());
        }
        Err(Invalid::new("proof-count", PROOFS, expected, format!("{found}")))
    }

    /// Checks the shape of a partition's proofs, then the proofs. `first` is the place of its first sector in the request.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn check<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
        first: usize,
    ) -> Result<(), Invalid> {
        for (index, sector) in partition.sectors.iter().enumerate() {
            self.check_sector_shape(&format!("{PROOFS}[{}]", first + index), sector)?;
        }
        let verified = caught(PROOFS, || {
            let (params, inputs, proof) = (
                self.params::<Tree>()?,
                self.inputs(partition)?,
                self.proof(partition),
            );
            FallbackPoSt::<Tree>::verify(&params, &inputs, &proof).map_err(|error| refused(PROOFS, &error))
        })?;
        if verified {
            return Ok(());
        }
        for index in 0..partition.sectors.len() {
            self.explain(partition, index, &format!("{PROOFS}[{}]", first + index))?;
        }
        Err(unverified(PROOFS, "proofs that verify", "some that don't"))
    }

    fn check_sector_shape<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        field: &str,
        sector: &FallbackPoStSectorProof<Tree>,
    ) -> Result<(), Invalid> {
        canonical::check(field, sector)?;
        let count = |what: &str, place: String, expected: usize, found: usize| {
            if expected == found {
                return Ok(());
            }
            let expected = format!("{expected} {what}");
            Err(Invalid::new("proof-count", place, expected, format!("{found}")))
        };
        let sectors = &sector.vanilla_proof.sectors;
        count(
            "sector",
            format!("{field}.vanilla_proof.sectors"),
            1,
            sectors.len(),
        )?;
        let Some(proof) = sectors.first() else {
            return Ok(());
        };
        let place = format!("{field}.vanilla_proof.sectors[0].inclusion_proofs");
        let expected = self.config.challenge_count;
        count(
            "of them, one for each challenge",
            place.clone(),
            expected,
            proof.inclusion_proofs.len(),
        )?;
        let leaves = u64::from(self.config.sector_size) as usize / NODE_SIZE;
        for (index, path) in proof.inclusion_proofs.iter().enumerate() {
            merkle::check_shape(&format!("{place}[{index}]"), path, leaves)?;
        }
        // The published check doesn't look at it, and the circuit takes it.
        if proof
            .inclusion_proofs
            .iter()
            .any(|path| path.root() != proof.comm_r_last)
        {
            let place = format!("{field}.vanilla_proof.sectors[0].comm_r_last");
            return Err(unverified(&place, "the root of every path", "another one"));
        }
        Ok(())
    }

    /// Says what is wrong with a sector's proof, if anything is.
    fn explain<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
        index: usize,
        field: &str,
    ) -> Result<(), Invalid> {
        let sector = &partition.sectors[index];
        let Some(proof) = sector.vanilla_proof.sectors.first() else {
            return Ok(());
        };
        let place = format!("{field}.vanilla_proof.sectors[0]");
        let root = proof.inclusion_proofs.first().map(MerkleProofTrait::root);
        let hash = root.map(|root| <TreeRHasher as Hasher>::Function::hash2(&proof.comm_c, &root));
        if hash != Some(sector.comm_r) {
            let expected = "the hash of comm_c and the root of the tree";
            return Err(unverified(
                &format!("{field}.comm_r"),
                expected,
                "another commitment",
            ));
        }
        let params = fallback::PublicParams {
            sector_size: self.config.sector_size.into(),
            challenge_count: self.config.challenge_count,
            sector_count: self.config.sector_count,
            api_version: self.config.api_version,
        };
        let randomness = self.domain("randomness", &self.randomness)?;
        for (number, path) in proof.inclusion_proofs.iter().enumerate() {
            let place = format!("{place}.inclusion_proofs[{number}]");
            let challenge = get_challenge_index(
                self.config.api_version,
                partition.index * self.config.sector_count + index,
                self.config.challenge_count,
                number,
            );
            let leaf = generate_leaf_challenge(&params, randomness, sector.sector_id.into(), challenge);
            if path.path_index() as u64 != leaf {
                let expected = format!("the path of leaf {leaf}, which this randomness challenges");
                let found = format!("that of leaf {}", path.path_index());
                return Err(unverified(&place, &expected, &found));
            }
            if !path.verify() {
                return Err(unverified(
                    &place,
                    "a path from its leaf to the root",
                    "one that leads elsewhere",
                ));
            }
        }
        Ok(())
    }

    fn domain(&self, field: &str, value: &[u8; 32]) -> Result<Domain, Invalid> {
        as_safe_commitment(value, field).map_err(|error| refused(field, &error))
    }

    fn params<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
    ) -> Result<fallback::PublicParams, Invalid> {
        let params = match self.is_winning() {
            true => winning_post_public_params::<Tree>(&self.config),
            false => window_post_public_params::<Tree>(&self.config),
        };
        params.map_err(|error| refused("registered_proof", &error))
    }

    /// The partition's own public inputs.
    fn inputs<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
    ) -> Result<fallback::PublicInputs<Domain>, Invalid> {
        let copies = match self.is_winning() {
            true => self.config.challenge_count,
            false => 1,
        };
        let sectors = partition.sectors.iter().flat_map(|sector| {
            let public = PublicSector {
                id: sector.sector_id,
                comm_r: sector.comm_r,
            };
            std::iter::repeat_n(public, copies)
        });
        Ok(fallback::PublicInputs {
            randomness: self.domain("randomness", &self.randomness)?,
            prover_id: self.domain("prover_id", &self.prover)?,
            sectors: sectors.collect(),
            k: Some(partition.index),
        })
    }

    /// The partition's vanilla proof as the circuit takes it: a WinningPoSt has a sector for each challenge, and the last
    /// sector of a WindowPoSt's last partition is repeated until the circuit is full.
    fn proof<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
    ) -> fallback::Proof<Tree::Proof> {
        let given = partition
            .sectors
            .iter()
            .flat_map(|sector| &sector.vanilla_proof.sectors);
        let mut sectors: Vec<SectorProof<Tree::Proof>> = Vec::new();
        for sector in given {
            if self.is_winning() {
                sectors.extend(sector.inclusion_proofs.iter().map(|path| SectorProof {
                    inclusion_proofs: vec![path.clone()],
                    comm_c: sector.comm_c,
                    comm_r_last: sector.comm_r_last,
                }));
            } else {
                sectors.push(sector.clone());
            }
        }
        if !self.is_winning()
            && let Some(last) = sectors.last().cloned()
        {
            sectors.resize(self.config.sector_count.max(sectors.len()), last);
        }
        fallback::Proof { sectors }
    }

    /// The partition's circuit, with its witness.
    ///
    /// # Errors
    /// When the proofs don't fit it, which [`check`](Self::check) has found before.
    pub fn circuit<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
    ) -> Result<FallbackPoStCircuit<Tree>, Invalid> {
        let (params, inputs, proof) = (
            self.params::<Tree>()?,
            self.inputs(partition)?,
            self.proof(partition),
        );
        // The partition's sectors are the first that it is given.
        <FallbackPoStCompound<Tree> as CompoundProof<FallbackPoSt<'_, Tree>, _>>::circuit(
            &inputs,
            fallback::ComponentPrivateInputs::default(),
            &proof,
            &params,
            Some(0),
        )
        .map_err(|error| refused(PROOFS, &error))
    }

    /// The circuit without values.
    ///
    /// # Errors
    /// When there is none of this sector size.
    pub fn blank<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
    ) -> Result<FallbackPoStCircuit<Tree>, Invalid> {
        let params = self.params::<Tree>()?;
        Ok(<FallbackPoStCompound<Tree> as CompoundProof<
            FallbackPoSt<'_, Tree>,
            _,
        >>::blank_circuit(&params))
    }

    /// The partition's public signals, as the verifier makes them.
    ///
    /// # Errors
    /// As [`circuit`](Self::circuit).
    pub fn public<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
    ) -> Result<Vec<Scalar>, Invalid> {
        let params = self.params::<Tree>()?;
        let mut inputs = self.inputs(partition)?;
        // The published code takes the partition's sectors from among all; those before it don't matter.
        let before = partition.index * params.sector_count;
        if let Some(first) = inputs.sectors.first().cloned() {
            inputs.sectors.splice(0..0, std::iter::repeat_n(first, before));
        }
        <FallbackPoStCompound<Tree> as CompoundProof<FallbackPoSt<'_, Tree>, _>>::generate_public_inputs(
            &inputs,
            &params,
            Some(partition.index),
        )
        .map_err(|error| refused(PROOFS, &error))
    }

    /// The name of the circuit's parameters among the published ones.
    ///
    /// # Errors
    /// When there is none of this sector size.
    pub fn cache_identifier<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
    ) -> Result<String, Invalid> {
        self.config
            .get_cache_identifier::<Tree>()
            .map_err(|error| refused("registered_proof", &error))
    }
}

/// The published code says no.
fn refused(field: &str, error: &impl std::fmt::Display) -> Invalid {
    let found = format!("some that it refuses ({error})");
    Invalid::new("vanilla-refused", field, "what the published code accepts", found)
}

fn unverified(field: &str, expected: &str, found: &str) -> Invalid {
    Invalid::new("vanilla-invalid", field, expected, found)
}
