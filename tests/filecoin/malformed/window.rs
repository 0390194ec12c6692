//! WindowPoSts.

use serde_json::json;

use super::{Case, list, path};

/// What is done to a proof, and what must come out.
pub const CASES: &[Case] = &[
    Case {
        name: "randomness that is no field element",
        spoil: |input| input.fields["randomness"] = "ff".repeat(32).into(),
        code: "non-canonical",
        field: "randomness",
    },
    Case {
        name: "other randomness",
        spoil: |input| input.fields["randomness"] = "01".repeat(32).into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0]",
    },
    Case {
        name: "no miner",
        spoil: |input| drop(input.fields.remove("prover_id")),
        code: "bad-field",
        field: "miner_id",
    },
    Case {
        name: "a missing sector",
        spoil: |input| drop(list(&mut input.proofs).remove(0)),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0]",
    },
    Case {
        name: "swapped sectors",
        spoil: |input| list(&mut input.proofs).swap(0, 1),
        code: "sector-order",
        field: "vanilla_proofs[1].sector_id",
    },
    Case {
        name: "a sector twice",
        spoil: |input| {
            let again = input.proofs[0].clone();
            list(&mut input.proofs).push(again);
        },
        code: "sector-twice",
        field: "vanilla_proofs[3].sector_id",
    },
    Case {
        name: "another sector's commitment",
        spoil: |input| input.proofs[0]["comm_r"] = input.proofs[1]["comm_r"].clone(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].comm_r",
    },
    Case {
        name: "a truncated path",
        spoil: |input| drop(list(path(input, 1, 3)).pop()),
        code: "path-shape",
        field: "vanilla_proofs[1].vanilla_proof.sectors[0].inclusion_proofs[3].path",
    },
    Case {
        name: "a step without one of its hashes",
        spoil: |input| drop(list(&mut path(input, 0, 0)[0]["hashes"]).pop()),
        code: "path-shape",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0].path[0]",
    },
    Case {
        name: "an index beyond its step",
        spoil: |input| path(input, 2, 9)[1]["index"] = 8.into(),
        code: "path-shape",
        field: "vanilla_proofs[2].vanilla_proof.sectors[0].inclusion_proofs[9].path[1]",
    },
    Case {
        name: "a missing proof of a challenge",
        spoil: |input| {
            let proofs = &mut input.proofs[0]["vanilla_proof"]["sectors"][0]["inclusion_proofs"];
            drop(list(proofs).pop());
        },
        code: "proof-count",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs",
    },
    Case {
        name: "two proofs for one sector",
        spoil: |input| {
            let again = input.proofs[0]["vanilla_proof"]["sectors"][0].clone();
            list(&mut input.proofs[0]["vanilla_proof"]["sectors"]).push(again);
        },
        code: "proof-count",
        field: "vanilla_proofs[0].vanilla_proof.sectors",
    },
    Case {
        name: "another sector size",
        spoil: |input| input.fields["registered_proof"] = "StackedDrgWindow8MiBV1".into(),
        code: "path-shape",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0].path",
    },
    Case {
        name: "sectors of 32 GiB",
        spoil: |input| input.fields["registered_proof"] = "StackedDrgWindow32GiBV1_1".into(),
        code: "needs-memory",
        field: "registered_proof",
    },
    Case {
        name: "the other PoSt",
        spoil: |input| input.fields["registered_proof"] = "StackedDrgWinning2KiBV1".into(),
        code: "registered-proof",
        field: "registered_proof",
    },
    Case {
        name: "a hash that is no field element",
        spoil: |input| path(input, 0, 4)[1]["hashes"][6][31] = 255.into(),
        code: "non-canonical",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[4].data.path.path[1].hashes[6]",
    },
    Case {
        name: "another hash in a path",
        spoil: |input| path(input, 0, 4)[1]["hashes"][6][0] = 0.into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[4]",
    },
    Case {
        name: "no proofs",
        spoil: |input| input.proofs = json!([]),
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "more sectors than the partition has",
        spoil: |input| drop(input.fields.insert("partition_index".to_owned(), 0.into())),
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "a byte beyond 255",
        spoil: |input| input.proofs[0]["comm_r"][0] = 256.into(),
        code: "undecodable",
        field: "vanilla_proofs",
    },
];
