//! PoRep C2: the second half of a sector's commit, from what C1 made; see [`crate::c1`] for its forms.

use blstrs::Scalar;
use filecoin_hashers::Hasher;
use filecoin_proofs::constants::DefaultPieceHasher;
use filecoin_proofs::parameters::public_params;
use filecoin_proofs::{
    PoRepConfig, SealCommitPhase1Output, TreeRHasher, VanillaSealProof, as_safe_commitment,
};
use serde_json::{Map, Value};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::{MerkleProofTrait, MerkleTreeTrait};
use storage_proofs_core::util::NODE_SIZE;
use storage_proofs_porep::stacked::{
    self, StackedCircuit, StackedCompound, StackedDrg, Tau, generate_replica_id,
};

use crate::c1::{Head, head, output};
use crate::invalid::{Invalid, caught};
use crate::sector::{Chosen, Seal};
use crate::{canonical, encoding, merkle, sector, value};

/// The field with C1's output.
pub const PROOF: &str = "vanilla_proof";

type Domain = <TreeRHasher as Hasher>::Domain;
type PieceDomain = <DefaultPieceHasher as Hasher>::Domain;

/// What a request says, C1's output left out.
#[derive(Clone, Debug)]
pub struct Asked {
    chosen: Option<Chosen>,
    partitions: Option<u8>,
    prover: [u8; 32],
    sector_number: Option<u64>,
}

/// A sector's commit without its vanilla proofs.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The registered proof.
    pub seal: Seal,
    /// The same as the published crates take it.
    pub config: PoRepConfig,
    /// The prover's id.
    pub prover: [u8; 32],
    /// The sector's number.
    pub sector_number: u64,
    /// What commits to the replica.
    pub comm_r: [u8; 32],
    /// What commits to the data.
    pub comm_d: [u8; 32],
    /// The replica's id.
    pub replica_id: [u8; 32],
    /// The challenge seed.
    pub seed: [u8; 32],
    /// The sealing ticket.
    pub ticket: [u8; 32],
}

/// The vanilla proofs of one partition, one for each challenge.
pub type Partition<Tree> = Vec<VanillaSealProof<Tree>>;

impl Asked {
    /// Takes the fields of a request.
    ///
    /// # Errors
    /// The first one that is wrong.
    pub fn take(fields: &mut Map<String, Value>) -> Result<Self, Invalid> {
        let chosen = sector::chosen(fields)?;
        let partitions = match fields.remove("partitions") {
            None => None,
            Some(count) => {
                let number = count.as_u64().and_then(|count| u8::try_from(count).ok());
                let number = number.filter(|number| (1..=16).contains(number));
                Some(
                    number
                        .ok_or_else(|| Invalid::field("partitions", "a number from 1 to 16", Some(&count)))?,
                )
            }
        };
        let sector_number =
            match fields.remove("sector_number") {
                None => None,
                Some(number) => Some(number.as_u64().ok_or_else(|| {
                    Invalid::field("sector_number", "the number of a sector", Some(&number))
                })?),
            };
        Ok(Self {
            chosen,
            partitions,
            prover: value::prover(fields)?,
            sector_number,
        })
    }

    /// The sector size, by the request or by the head of C1's output.
    ///
    /// # Errors
    /// When neither says it, or they say different ones.
    pub fn sector_size(&self, bytes: &[u8]) -> Result<u64, Invalid> {
        let size = self.seal(&head(bytes)?)?.size;
        Seal::check_partitions(size, self.partitions)?;
        Ok(size)
    }

    /// The partitions that the request asks for, if it does.
    #[must_use]
    pub fn partitions(&self) -> Option<u8> {
        self.partitions
    }

    fn seal(&self, head: &Head<'_>) -> Result<Seal, Invalid> {
        let in_file = head.registered.as_ref().map(Seal::of).transpose()?;
        let asked = self.chosen.as_ref().map(Seal::of).transpose()?;
        let seal = match (in_file, asked, head.size) {
            (Some(in_file), Some(asked), _) => {
                let same = match self.chosen {
                    Some(Chosen::Size(size)) => in_file.size == size,
                    _ => in_file == asked,
                };
                if !same {
                    let expected = format!("{}, as the file says", in_file.name());
                    return Err(Invalid::new(
                        "registered-proof",
                        "registered_proof",
                        expected,
                        asked.name(),
                    ));
                }
                in_file
            }
            (Some(seal), None, _) | (None, Some(seal), _) => seal,
            (None, None, Some(size)) => Seal::of(&Chosen::Size(size))?,
            (None, None, None) => {
                let expected = "the registered proof or the sector_size, since the file doesn't say it";
                return Err(Invalid::field("registered_proof", expected, None));
            }
        };
        match head.size {
            Some(size) if size != seal.size => Err(Invalid::new(
                "sector-size",
                format!("{PROOF}.SectorSize"),
                sector::size_name(seal.size),
                format!("{size} bytes"),
            )),
            _ => Ok(seal),
        }
    }

    /// Reads C1's output and checks all of it.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn read<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        bytes: &[u8],
    ) -> Result<(Commit, Vec<Partition<Tree>>), Invalid> {
        let head = head(bytes)?;
        let seal = self.seal(&head)?;
        let sector_number = match (self.sector_number, head.sector_number) {
            (Some(asked), Some(in_file)) if asked != in_file => {
                let expected = format!("{in_file}, as the file says");
                return Err(Invalid::new(
                    "sector-number",
                    "sector_number",
                    expected,
                    asked.to_string(),
                ));
            }
            (asked, in_file) => asked
                .or(in_file)
                .ok_or_else(|| Invalid::field("sector_number", "the number of the sector", None))?,
        };
        let output: SealCommitPhase1Output<Tree> = output(&head, seal.size)?;
        let commit = Commit {
            seal,
            config: seal.config(self.partitions),
            prover: self.prover,
            sector_number,
            comm_r: output.comm_r,
            comm_d: output.comm_d,
            replica_id: bytes_of(&output.replica_id),
            seed: output.seed,
            ticket: output.ticket,
        };
        commit.check(&output.vanilla_proofs)?;
        Ok((commit, output.vanilla_proofs))
    }
}

fn bytes_of(domain: &Domain) -> [u8; 32] {
    let bytes: &[u8] = domain.as_ref();
    bytes.try_into().unwrap_or([0xff; 32])
}

impl Commit {
    /// Checks everything: commitments, whose sector it is, counts, shapes, and the vanilla proofs.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn check<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partitions: &[Partition<Tree>],
    ) -> Result<(), Invalid> {
        value::check_commitment(&format!("{PROOF}.comm_r"), &self.comm_r)?;
        value::check_commitment(&format!("{PROOF}.comm_d"), &self.comm_d)?;
        value::check_element(&format!("{PROOF}.replica_id"), &self.replica_id)?;
        if self.seed == [0; 32] {
            let field = format!("{PROOF}.seed");
            return Err(Invalid::new("zero-seed", field, "a challenge seed", "32 zeros"));
        }
        let expected: Domain = generate_replica_id::<TreeRHasher, _>(
            &self.prover,
            self.sector_number,
            &self.ticket,
            self.comm_d,
            &self.config.porep_id,
        );
        if bytes_of(&expected) != self.replica_id {
            return Err(Invalid::new(
                "wrong-miner",
                "miner_id",
                "the miner, sector number and registered proof that the sector was sealed for",
                "others: they give another replica id than the file's",
            ));
        }
        let count = usize::from(self.config.partitions);
        if partitions.len() != count {
            return Err(Invalid::new(
                "proof-count",
                format!("{PROOF}.vanilla_proofs"),
                format!("{count} partitions of this registered proof (see \"partitions\")"),
                partitions.len().to_string(),
            ));
        }
        for (k, partition) in partitions.iter().enumerate() {
            self.check_partition(partition, k)?;
        }
        Ok(())
    }

    /// Checks the vanilla proofs of partition `k`.
    ///
    /// # Errors
    /// With the first place that is wrong.
    pub fn check_partition<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
        k: usize,
    ) -> Result<(), Invalid> {
        let field = format!("{PROOF}.vanilla_proofs[{k}]");
        canonical::check(&field, partition)?;
        caught(&field, || {
            let params = self.params::<Tree>()?;
            let inputs = self.inputs()?;
            let nodes = u64::from(self.config.sector_size) as usize / NODE_SIZE;
            let challenges = inputs.challenges(&params.challenges, nodes, Some(k));
            if partition.len() != challenges.len() {
                let expected = format!("{} of them, one for each challenge", challenges.len());
                let found = partition.len().to_string();
                return Err(Invalid::new("proof-count", field.as_str(), expected, found));
            }
            for (index, (proof, challenge)) in partition.iter().zip(challenges).enumerate() {
                let field = format!("{field}[{index}]");
                merkle::check_shape(&format!("{field}.comm_d_proofs"), &proof.comm_d_proofs, nodes)?;
                merkle::check_shape(
                    &format!("{field}.comm_r_last_proof"),
                    &proof.comm_r_last_proof,
                    nodes,
                )?;
                self.check_challenge(&field, proof, challenge, &params, &inputs)?;
            }
            Ok(())
        })
    }

    fn check_challenge<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        field: &str,
        proof: &VanillaSealProof<Tree>,
        challenge: usize,
        params: &stacked::PublicParams<Tree>,
        inputs: &stacked::PublicInputs<Domain, PieceDomain>,
    ) -> Result<(), Invalid> {
        let wrong = |place: &str, expected: String, found: &str| {
            Err(Invalid::new(
                "vanilla-invalid",
                format!("{field}{place}"),
                expected,
                found,
            ))
        };
        let comm_r = {
            use filecoin_hashers::HashFunction as _;
            <TreeRHasher as Hasher>::Function::hash2(&proof.comm_c(), &proof.comm_r_last())
        };
        if inputs.tau.as_ref().map(|tau| tau.comm_r) != Some(comm_r) {
            return wrong(
                "",
                format!("roots that hash to {PROOF}.comm_r"),
                "roots of another replica",
            );
        }
        for (place, index, verifies) in [
            (
                ".comm_d_proofs",
                proof.comm_d_proofs.path_index(),
                proof.comm_d_proofs.verify(),
            ),
            (
                ".comm_r_last_proof",
                proof.comm_r_last_proof.path_index(),
                proof.comm_r_last_proof.verify(),
            ),
        ] {
            if index != challenge {
                let expected =
                    format!("the path of node {challenge}, which the seed challenges in this partition");
                return wrong(place, expected, &format!("that of node {index}"));
            }
            if !verifies {
                return wrong(
                    place,
                    "a path from its leaf to its root".to_owned(),
                    "one that leads elsewhere",
                );
            }
        }
        let layers = params.num_layers;
        if proof.labeling_proofs.len() != layers {
            let found = proof.labeling_proofs.len().to_string();
            return wrong(
                ".labeling_proofs",
                format!("{layers}, one for each layer"),
                &found,
            );
        }
        let nodes = u64::from(self.config.sector_size) as usize / NODE_SIZE;
        check_columns(field, &proof.replica_column_proofs, layers, nodes)?;
        if caught(field, || {
            Ok(proof.verify(params, inputs, challenge, &params.graph))
        })? {
            return Ok(());
        }
        wrong("", "a vanilla proof that verifies".to_owned(), "one that doesn't")
    }

    fn params<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
    ) -> Result<stacked::PublicParams<Tree>, Invalid> {
        public_params::<Tree>(&self.config).map_err(|error| refused("registered_proof", &error))
    }

    pub(crate) fn inputs(&self) -> Result<stacked::PublicInputs<Domain, PieceDomain>, Invalid> {
        let domain = |field: &str, value: &[u8; 32]| -> Result<Domain, Invalid> {
            as_safe_commitment(value, field).map_err(|error| refused(&format!("{PROOF}.{field}"), &error))
        };
        Ok(stacked::PublicInputs {
            replica_id: domain("replica_id", &self.replica_id)?,
            seed: Some(self.seed),
            tau: Some(Tau {
                comm_d: filecoin_hashers::sha256::Sha256Domain(self.comm_d),
                comm_r: domain("comm_r", &self.comm_r)?,
            }),
            k: None,
        })
    }

    /// The circuit of partition `k`, with its witness.
    ///
    /// # Errors
    /// When the proofs don't fit it, which [`check`](Self::check) has found before.
    pub fn circuit<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        partition: &Partition<Tree>,
        k: usize,
    ) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, Invalid> {
        let (params, inputs) = (self.params::<Tree>()?, self.inputs()?);
        <StackedCompound<Tree, DefaultPieceHasher> as CompoundProof<StackedDrg<'_, Tree, _>, _>>::circuit(
            &inputs,
            (),
            partition,
            &params,
            Some(k),
        )
        .map_err(|error| refused(PROOF, &error))
    }

    /// The circuit without values.
    ///
    /// # Errors
    /// When there is none of this sector size.
    pub fn blank<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        config: &PoRepConfig,
    ) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, Invalid> {
        let params = public_params::<Tree>(config).map_err(|error| refused("registered_proof", &error))?;
        Ok(<StackedCompound<Tree, DefaultPieceHasher> as CompoundProof<
            StackedDrg<'_, Tree, _>,
            _,
        >>::blank_circuit(&params))
    }

    /// The public signals of partition `k`, as the verifier makes them.
    ///
    /// # Errors
    /// When there is no such partition.
    pub fn public<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
        &self,
        k: usize,
    ) -> Result<Vec<Scalar>, Invalid> {
        let (params, inputs) = (self.params::<Tree>()?, self.inputs()?);
        <StackedCompound<Tree, DefaultPieceHasher> as CompoundProof<StackedDrg<'_, Tree, _>, _>>::generate_public_inputs(
            &inputs,
            &params,
            Some(k),
        )
        .map_err(|error| refused(PROOF, &error))
    }
}

/// Checks that each column has a row for each layer and a path of its tree's shape, which the published check takes for
/// granted.
fn check_columns<P: MerkleProofTrait>(
    field: &str,
    columns: &stacked::ReplicaColumnProof<P>,
    layers: usize,
    nodes: usize,
) -> Result<(), Invalid> {
    let check = |name: &str, column: &stacked::ColumnProof<P>| {
        let field = format!("{field}.replica_column_proofs.{name}");
        // Its members are private to the published crate, but not when it is written.
        let bytes = encoding::to_bincode(&field, column)?;
        let (_, rows, path): (u32, Vec<<P::Hasher as Hasher>::Domain>, P) =
            encoding::from_bincode(&field, &bytes)?;
        if rows.len() != layers {
            let (expected, found) = (format!("{layers}, one for each layer"), rows.len().to_string());
            return Err(Invalid::new(
                "proof-count",
                format!("{field}.column.rows"),
                expected,
                found,
            ));
        }
        merkle::check_shape(&format!("{field}.inclusion_proof"), &path, nodes)
    };
    check("c_x", &columns.c_x)?;
    for (name, parents) in [
        ("drg_parents", &columns.drg_parents),
        ("exp_parents", &columns.exp_parents),
    ] {
        for (index, column) in parents.iter().enumerate() {
            check(&format!("{name}[{index}]"), column)?;
        }
    }
    Ok(())
}

/// The published code says no.
fn refused(field: &str, error: &impl std::fmt::Display) -> Invalid {
    let found = format!("something that it refuses ({error})");
    Invalid::new("vanilla-refused", field, "what the published code accepts", found)
}
