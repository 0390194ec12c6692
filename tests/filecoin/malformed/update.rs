//! Updates.

use serde_json::json;

use super::{Case, list};

/// What is done to a proof, and what must come out.
pub const CASES: &[Case] = &[
    Case {
        name: "another old replica",
        spoil: |input| input.fields["comm_r_old"] = "01".repeat(32).into(),
        code: "vanilla-invalid",
        field: "comm_r_old",
    },
    Case {
        name: "another new replica",
        spoil: |input| input.fields["comm_r_new"] = "01".repeat(32).into(),
        code: "vanilla-invalid",
        field: "comm_r_new",
    },
    Case {
        name: "other data",
        spoil: |input| input.fields["comm_d_new"] = "01".repeat(32).into(),
        code: "vanilla-invalid",
        field: "comm_d_new",
    },
    Case {
        name: "swapped replicas",
        spoil: |input| {
            let old = input.fields["comm_r_old"].take();
            input.fields["comm_r_old"] = input.fields["comm_r_new"].take();
            input.fields["comm_r_new"] = old;
        },
        code: "vanilla-invalid",
        field: "comm_r_old",
    },
    Case {
        name: "zero data",
        spoil: |input| input.fields["comm_d_new"] = "00".repeat(32).into(),
        code: "zero-commitment",
        field: "comm_d_new",
    },
    Case {
        name: "a replica that is no field element",
        spoil: |input| input.fields["comm_r_new"] = "ff".repeat(32).into(),
        code: "non-canonical",
        field: "comm_r_new",
    },
    Case {
        name: "a missing commitment",
        spoil: |input| drop(input.fields.remove("comm_r_old")),
        code: "bad-field",
        field: "comm_r_old",
    },
    Case {
        name: "no sector size",
        spoil: |input| drop(input.fields.remove("sector_size")),
        code: "bad-field",
        field: "registered_proof",
    },
    Case {
        name: "sectors of another size, which have two partitions",
        spoil: |input| input.fields["sector_size"] = "16KiB".into(),
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "sectors of 512 MiB",
        spoil: |input| input.fields["sector_size"] = "512MiB".into(),
        code: "needs-memory",
        field: "registered_proof",
    },
    Case {
        name: "sectors of another tree shape",
        spoil: |input| input.fields["sector_size"] = "4KiB".into(),
        code: "path-shape",
        field: "vanilla_proofs[0].challenge_proofs[0].proof_r_old.path",
    },
    Case {
        name: "sectors that can't be updated",
        spoil: |input| input.fields["sector_size"] = "1GiB".into(),
        code: "sector-size",
        field: "sector_size",
    },
    Case {
        name: "no proofs",
        spoil: |input| input.proofs = json!([]),
        code: "proof-count",
        field: "vanilla_proofs",
    },
    Case {
        name: "a missing challenge",
        spoil: |input| drop(list(&mut input.proofs[0]["challenge_proofs"]).pop()),
        code: "proof-count",
        field: "vanilla_proofs[0].challenge_proofs",
    },
    Case {
        name: "a missing leaf of the apex tree",
        spoil: |input| drop(list(&mut input.proofs[0]["apex_leafs"]).pop()),
        code: "proof-count",
        field: "vanilla_proofs[0].apex_leafs",
    },
    Case {
        name: "swapped challenges",
        spoil: |input| list(&mut input.proofs[0]["challenge_proofs"]).swap(0, 1),
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].challenge_proofs[0].proof_r_old",
    },
    Case {
        name: "a truncated path",
        spoil: |input| {
            let proof = &mut input.proofs[0]["challenge_proofs"][2]["proof_d_new"];
            drop(list(&mut proof["data"]["Single"]["path"]["path"]).pop());
        },
        code: "path-shape",
        field: "vanilla_proofs[0].challenge_proofs[2].proof_d_new.path",
    },
    Case {
        name: "another hash in a path",
        spoil: |input| {
            let proof = &mut input.proofs[0]["challenge_proofs"][1]["proof_r_new"];
            proof["data"]["Single"]["path"]["path"][1]["hashes"][0][0] = 0.into();
        },
        code: "vanilla-invalid",
        field: "vanilla_proofs[0].challenge_proofs[1].proof_r_new",
    },
    Case {
        name: "a leaf that is no field element",
        spoil: |input| input.proofs[0]["apex_leafs"][3][31] = 255.into(),
        code: "non-canonical",
        field: "vanilla_proofs[0].apex_leafs[3]",
    },
];
