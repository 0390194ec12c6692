//! Outputs of C1.

use serde_json::json;

use super::{Case, list};

/// What is done to a proof, and what must come out.
pub const CASES: &[Case] = &[
    Case {
        name: "another miner",
        spoil: |input| {
            input.fields.remove("prover_id");
            input.fields.insert("miner_id".to_owned(), "f01000".into());
        },
        code: "wrong-miner",
        field: "miner_id",
    },
    Case {
        name: "another sector",
        spoil: |input| input.fields["sector_number"] = 1001.into(),
        code: "wrong-miner",
        field: "miner_id",
    },
    Case {
        name: "another ticket",
        spoil: |input| input.proofs["ticket"][0] = 0.into(),
        code: "wrong-miner",
        field: "miner_id",
    },
    Case {
        name: "another version of the proof",
        spoil: |input| input.fields["registered_proof"] = "StackedDrg2KiBV1".into(),
        code: "wrong-miner",
        field: "miner_id",
    },
    Case {
        name: "no registered proof",
        spoil: |input| drop(input.fields.remove("registered_proof")),
        code: "bad-field",
        field: "registered_proof",
    },
    Case {
        name: "swapped partitions",
        spoil: |input| list(&mut input.proofs["vanilla_proofs"]).swap(0, 1),
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0].comm_d_proofs",
    },
    Case {
        name: "a missing partition",
        spoil: |input| drop(list(&mut input.proofs["vanilla_proofs"]).pop()),
        code: "proof-count",
        field: "vanilla_proof.vanilla_proofs",
    },
    Case {
        name: "a missing challenge",
        spoil: |input| drop(list(&mut input.proofs["vanilla_proofs"][1]).pop()),
        code: "proof-count",
        field: "vanilla_proof.vanilla_proofs[1]",
    },
    Case {
        name: "the natural number of partitions",
        spoil: |input| drop(input.fields.remove("partitions")),
        code: "proof-count",
        field: "vanilla_proof.vanilla_proofs",
    },
    Case {
        name: "another comm_r",
        spoil: |input| input.proofs["comm_r"][0] = 0.into(),
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0]",
    },
    Case {
        name: "no comm_r",
        spoil: |input| input.proofs["comm_r"] = json!(vec![0; 32]),
        code: "zero-commitment",
        field: "vanilla_proof.comm_r",
    },
    Case {
        name: "a comm_d that is no field element",
        spoil: |input| input.proofs["comm_d"][31] = 255.into(),
        code: "non-canonical",
        field: "vanilla_proof.comm_d",
    },
    Case {
        name: "another seed",
        spoil: |input| {
            input.proofs["seed"] = json!(vec![3; 32]);
        },
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0].comm_d_proofs",
    },
    Case {
        name: "no seed",
        spoil: |input| input.proofs["seed"] = json!(vec![0; 32]),
        code: "zero-seed",
        field: "vanilla_proof.seed",
    },
    Case {
        name: "a truncated path",
        spoil: |input| {
            let proof = &mut input.proofs["vanilla_proofs"][0][0]["comm_r_last_proof"];
            drop(list(&mut proof["data"]["Single"]["path"]["path"]).pop());
        },
        code: "path-shape",
        field: "vanilla_proof.vanilla_proofs[0][0].comm_r_last_proof.path",
    },
    Case {
        name: "another hash in a path",
        spoil: |input| {
            let proof = &mut input.proofs["vanilla_proofs"][1][0]["comm_d_proofs"];
            proof["data"]["Single"]["path"]["path"][0]["hashes"][0][0] = 0.into();
        },
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[1][0].comm_d_proofs",
    },
    Case {
        name: "a column without its last row",
        spoil: |input| {
            let columns = &mut input.proofs["vanilla_proofs"][0][0]["replica_column_proofs"];
            drop(list(&mut columns["c_x"]["column"]["rows"]).pop());
        },
        code: "proof-count",
        field: "vanilla_proof.vanilla_proofs[0][0].replica_column_proofs.c_x.column.rows",
    },
    Case {
        name: "a parent's column without its last row",
        spoil: |input| {
            let columns = &mut input.proofs["vanilla_proofs"][1][0]["replica_column_proofs"];
            drop(list(&mut columns["exp_parents"][3]["column"]["rows"]).pop());
        },
        code: "proof-count",
        field: "vanilla_proof.vanilla_proofs[1][0].replica_column_proofs.exp_parents[3].column.rows",
    },
    Case {
        name: "a column's path that leaves its step",
        spoil: |input| {
            let columns = &mut input.proofs["vanilla_proofs"][0][0]["replica_column_proofs"];
            let path = &mut columns["drg_parents"][1]["inclusion_proof"]["data"]["Single"]["path"]["path"];
            path[0]["index"] = 9.into();
        },
        code: "path-shape",
        field: "vanilla_proof.vanilla_proofs[0][0].replica_column_proofs.drg_parents[1].inclusion_proof.path[0]",
    },
    Case {
        name: "sectors of 32 GiB",
        spoil: |input| input.fields["registered_proof"] = "StackedDrg32GiBV1_1".into(),
        code: "needs-memory",
        field: "registered_proof",
    },
    Case {
        name: "sectors of another size",
        spoil: |input| input.fields["registered_proof"] = "StackedDrg8MiBV1_1".into(),
        code: "wrong-miner",
        field: "miner_id",
    },
    Case {
        name: "no partitions",
        spoil: |input| input.fields["partitions"] = 0.into(),
        code: "bad-field",
        field: "partitions",
    },
    Case {
        name: "a missing layer",
        spoil: |input| drop(list(&mut input.proofs["vanilla_proofs"][0][0]["labeling_proofs"]).pop()),
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0].labeling_proofs",
    },
    Case {
        name: "a label's missing parent",
        spoil: |input| {
            drop(list(&mut input.proofs["vanilla_proofs"][0][0]["labeling_proofs"][1]["parents"]).pop());
        },
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0]",
    },
    Case {
        name: "a missing parent's column",
        spoil: |input| {
            let columns = &mut input.proofs["vanilla_proofs"][0][0]["replica_column_proofs"];
            drop(list(&mut columns["drg_parents"]).pop());
        },
        code: "vanilla-invalid",
        field: "vanilla_proof.vanilla_proofs[0][0]",
    },
];
