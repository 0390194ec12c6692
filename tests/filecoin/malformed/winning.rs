//! WinningPoSts.

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
        spoil: |input| input.fields["randomness"] = "02".repeat(32).into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0]",
    },
    Case {
        name: "randomness that is missing",
        spoil: |input| drop(input.fields.remove("randomness")),
        code: "bad-field",
        field: "randomness",
    },
    Case {
        name: "two sectors",
        spoil: |input| {
            let mut again = input.proofs[0].clone();
            again["sector_id"] = 2000.into();
            list(&mut input.proofs).push(again);
        },
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "no proofs",
        spoil: |input| input.proofs = json!([]),
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "another sector's number",
        spoil: |input| input.proofs[0]["sector_id"] = 1001.into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0]",
    },
    Case {
        name: "another commitment",
        spoil: |input| input.proofs[0]["comm_r"][0] = 0.into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].comm_r",
    },
    Case {
        name: "swapped challenges",
        spoil: |input| {
            let proofs = &mut input.proofs[0]["vanilla_proof"]["sectors"][0]["inclusion_proofs"];
            list(proofs).swap(10, 11);
        },
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[10]",
    },
    Case {
        name: "a truncated path",
        spoil: |input| drop(list(path(input, 0, 65)).pop()),
        code: "path-shape",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[65].path",
    },
    Case {
        name: "another root beside the paths",
        spoil: |input| input.proofs[0]["vanilla_proof"]["sectors"][0]["comm_r_last"][0] = 0.into(),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].comm_r_last",
    },
    Case {
        name: "65 challenges",
        spoil: |input| {
            let proofs = &mut input.proofs[0]["vanilla_proof"]["sectors"][0]["inclusion_proofs"];
            drop(list(proofs).pop());
        },
        code: "proof-count",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs",
    },
    Case {
        name: "a partition",
        spoil: |input| drop(input.fields.insert("partition_index".to_owned(), 0.into())),
        code: "unknown-field",
        field: "partition_index",
    },
    Case {
        name: "the other PoSt",
        spoil: |input| input.fields["registered_proof"] = 5.into(),
        code: "registered-proof",
        field: "registered_proof",
    },
    Case {
        name: "a commitment that is no field element",
        spoil: |input| input.proofs[0]["vanilla_proof"]["sectors"][0]["comm_c"][31] = 255.into(),
        code: "non-canonical",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].comm_c",
    },
    Case {
        name: "a missing member",
        spoil: |input| drop(input.proofs[0].as_object_mut().unwrap().remove("comm_r")),
        code: "undecodable",
        field: "vanilla_proofs",
    },
    Case {
        name: "sectors of another tree shape",
        spoil: |input| input.fields["registered_proof"] = "StackedDrgWinning32GiBV1".into(),
        code: "path-shape",
        field: "vanilla_proofs[0].vanilla_proof.sectors[0].inclusion_proofs[0].path",
    },
];
