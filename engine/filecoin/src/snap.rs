//! SnapDeals: the update of an empty sector with data.

use blstrs::Scalar;
use filecoin_hashers::sha256::Sha256Domain;
use filecoin_hashers::{HashFunction as _, Hasher};
use filecoin_proofs::{PartitionProof, TreeRHasher, as_safe_commitment};
use serde_json::{Map, Value};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_core::parameter_cache::CacheableParameters;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_update::constants::h_default;
use storage_proofs_update::{
    Challenges, EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound, PublicInputs,
    PublicParams,
};

use crate::invalid::{Invalid, caught};
use crate::{canonical, encoding, merkle, sector, value};

/// The field with the vanilla proofs.
pub const PROOFS: &str = "vanilla_proofs";

type Domain = <TreeRHasher as Hasher>::Domain;

/// What a request asks for, its vanilla proofs left out.
#[derive(Clone, Debug)]
pub struct Update {
    /// Bytes of a sector.
    pub size: u64,
    /// What commits to the old replica.
    pub comm_r_old: [u8; 32],
    /// What commits to the new one.
    pub comm_r_new: [u8; 32],
    /// What commits to the new data.
    pub comm_d_new: [u8; 32],
}

impl Update {
    /// Takes the fields of a request.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn take(fields: &mut Map<String, Value>) -> Result<Self, Invalid> {
        let chosen = sector::chosen(fields)?.ok_or_else(|| {
            let expected = "the registered proof or the sector_size";
            Invalid::field("registered_proof", expected, None)
        })?;
        let size = sector::update_size(&chosen)?;
        Ok(Self {
            size,
            comm_r_old: value::commitment(fields, "comm_r_old")?,
            comm_r_new: value::commitment(fields, "comm_r_new")?,
            comm_d_new: value::commitment(fields, "comm_d_new")?,
        })
    }

    /// How many partitions an update of this size has.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.params().partition_count
    }

    /// Reads vanilla proofs, one for each partition, and checks all of them.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn read<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        bytes: &[u8],
    ) -> Result<Vec<PartitionProof<Tree>>, Invalid> {
        let partitions = encoding::list(PROOFS, bytes)?;
        self.check(&partitions)?;
        Ok(partitions)
    }

    /// The same for proofs of a partition each.
    ///
    /// # Errors
    /// As there.
    pub fn read_each<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        blobs: &[Vec<u8>],
    ) -> Result<Vec<PartitionProof<Tree>>, Invalid> {
        let one = |(index, bytes): (usize, &Vec<u8>)| encoding::one(&format!("{PROOFS}[{index}]"), bytes);
        let partitions: Vec<_> = blobs.iter().enumerate().map(one).collect::<Result<_, _>>()?;
        self.check(&partitions)?;
        Ok(partitions)
    }

    fn check<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partitions: &[PartitionProof<Tree>],
    ) -> Result<(), Invalid> {
        let expected = self.partitions();
        if partitions.len() != expected {
            let found = partitions.len().to_string();
            let expected = format!("{expected}, one for each partition");
            return Err(Invalid::new("proof-count", PROOFS, expected, found));
        }
        for (k, partition) in partitions.iter().enumerate() {
            self.check_partition(partition, k)?;
        }
        Ok(())
    }

    /// Checks the vanilla proof of partition `k`.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn check_partition<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &PartitionProof<Tree>,
        k: usize,
    ) -> Result<(), Invalid> {
        let (field, params) = (format!("{PROOFS}[{k}]"), self.params());
        canonical::check(&field, partition)?;
        for (what, expected, found) in [
            ("apex_leafs", params.apex_leaf_count, partition.apex_leafs.len()),
            (
                "challenge_proofs",
                params.challenge_count,
                partition.challenge_proofs.len(),
            ),
        ] {
            if expected != found {
                let place = format!("{field}.{what}");
                return Err(Invalid::new(
                    "proof-count",
                    place,
                    expected.to_string(),
                    found.to_string(),
                ));
            }
        }
        for (index, proof) in partition.challenge_proofs.iter().enumerate() {
            let place = format!("{field}.challenge_proofs[{index}]");
            merkle::check_shape(
                &format!("{place}.proof_r_old"),
                &proof.proof_r_old,
                params.sector_nodes,
            )?;
            merkle::check_shape(
                &format!("{place}.proof_d_new"),
                &proof.proof_d_new,
                params.sector_nodes,
            )?;
            merkle::check_shape(
                &format!("{place}.proof_r_new"),
                &proof.proof_r_new,
                params.sector_nodes,
            )?;
        }
        caught(&field, || {
            let inputs = self.inputs(k)?;
            let verified = EmptySectorUpdate::<Tree>::verify(&params, &inputs, partition)
                .map_err(|error| refused(&field, &error))?;
            if verified {
                return Ok(());
            }
            self.explain(&field, partition, k, &params)?;
            Err(wrong(&field, "a vanilla proof that verifies", "one that doesn't"))
        })
    }

    /// Says what is wrong with a partition's proof, as far as that can be told.
    fn explain<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        field: &str,
        partition: &PartitionProof<Tree>,
        k: usize,
        params: &PublicParams,
    ) -> Result<(), Invalid> {
        let Some(first) = partition.challenge_proofs.first() else {
            return Ok(());
        };
        let inputs = self.inputs(k)?;
        for (name, root, expected) in [
            ("comm_r_old", first.proof_r_old.root(), inputs.comm_r_old),
            ("comm_r_new", first.proof_r_new.root(), inputs.comm_r_new),
        ] {
            if <TreeRHasher as Hasher>::Function::hash2(&partition.comm_c, &root) != expected {
                let expected = format!("the hash of {field}.comm_c and the root of its trees");
                return Err(wrong(name, &expected, "another commitment"));
            }
        }
        if first.proof_d_new.root() != inputs.comm_d_new {
            return Err(wrong(
                "comm_d_new",
                "the root of the proofs' data tree",
                "another commitment",
            ));
        }
        let challenges = Challenges::new(params.sector_nodes, inputs.comm_r_new, k);
        for (index, (proof, challenge)) in partition.challenge_proofs.iter().zip(challenges).enumerate() {
            let place = format!("{field}.challenge_proofs[{index}]");
            for (name, found, verifies) in [
                (
                    "proof_r_old",
                    proof.proof_r_old.path_index(),
                    proof.proof_r_old.verify(),
                ),
                (
                    "proof_d_new",
                    proof.proof_d_new.path_index(),
                    proof.proof_d_new.verify(),
                ),
                (
                    "proof_r_new",
                    proof.proof_r_new.path_index(),
                    proof.proof_r_new.verify(),
                ),
            ] {
                let place = format!("{place}.{name}");
                if found != challenge as usize {
                    let expected =
                        format!("the path of node {challenge}, which is challenged in this partition");
                    return Err(wrong(&place, &expected, &format!("that of node {found}")));
                }
                if !verifies {
                    return Err(wrong(
                        &place,
                        "a path from its leaf to its root",
                        "one that leads elsewhere",
                    ));
                }
            }
        }
        Ok(())
    }

    fn params(&self) -> PublicParams {
        PublicParams::from_sector_size(self.size)
    }

    pub(crate) fn inputs(&self, k: usize) -> Result<PublicInputs, Invalid> {
        let domain = |field: &str, value: &[u8; 32]| -> Result<Domain, Invalid> {
            as_safe_commitment(value, field).map_err(|error| refused(field, &error))
        };
        Ok(PublicInputs {
            k,
            comm_r_old: domain("comm_r_old", &self.comm_r_old)?,
            comm_d_new: Sha256Domain(self.comm_d_new),
            comm_r_new: domain("comm_r_new", &self.comm_r_new)?,
            h: h_default(self.params().sector_nodes),
        })
    }

    /// The circuit of partition `k`, with its witness.
    ///
    /// # Errors
    /// When the proofs don't fit it, which [`read`](Self::read) has found before.
    pub fn circuit<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &PartitionProof<Tree>,
        k: usize,
    ) -> Result<EmptySectorUpdateCircuit<Tree>, Invalid> {
        <EmptySectorUpdateCompound<Tree> as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::circuit(
            &self.inputs(k)?,
            (),
            partition,
            &self.params(),
            Some(k),
        )
        .map_err(|error| refused(PROOFS, &error))
    }

    /// The circuit without values.
    #[must_use]
    pub fn blank<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        size: u64,
    ) -> EmptySectorUpdateCircuit<Tree> {
        <EmptySectorUpdateCompound<Tree> as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::blank_circuit(
            &PublicParams::from_sector_size(size),
        )
    }

    /// The public signals of partition `k`, as the verifier makes them.
    ///
    /// # Errors
    /// When there is no such partition.
    pub fn public<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        k: usize,
    ) -> Result<Vec<Scalar>, Invalid> {
        <EmptySectorUpdateCompound<Tree> as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::generate_public_inputs(
            &self.inputs(k)?,
            &self.params(),
            Some(k),
        )
        .map_err(|error| refused(PROOFS, &error))
    }

    /// The name of the circuit's parameters among the published ones.
    #[must_use]
    pub fn cache_identifier<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(size: u64) -> String {
        <EmptySectorUpdateCompound<Tree> as CacheableParameters<EmptySectorUpdateCircuit<Tree>, _>>::cache_identifier(
            &PublicParams::from_sector_size(size),
        )
    }
}

/// The published code says no.
fn refused(field: &str, error: &impl std::fmt::Display) -> Invalid {
    let found = format!("something that it refuses ({error})");
    Invalid::new("vanilla-refused", field, "what the published code accepts", found)
}

fn wrong(field: &str, expected: &str, found: &str) -> Invalid {
    Invalid::new("vanilla-invalid", field, expected, found)
}
