use filecoin_proofs::PartitionProof;
use proofkeep_filecoin::invalid::Invalid;
use proofkeep_filecoin::snap::Update;
use serde_json::{Map, Value, json};

use super::{Case, Tree, as_go, fixture, object, refused};

/// Fields of a request, and its vanilla proofs as JSON.
struct Input {
    fields: Map<String, Value>,
    proofs: Value,
}

fn input() -> Input {
    let meta = super::json("snap-2k/snap-meta.json");
    let fields = json!({
        "sector_size": "2KiB",
        "comm_r_old": meta["comm_r_old"],
        "comm_r_new": meta["comm_r_new"],
        "comm_d_new": meta["comm_d_new"],
    });
    Input {
        fields: object(fields),
        proofs: super::json("snap-2k/vanilla.json"),
    }
}

fn read(input: Input) -> Result<(), Invalid> {
    let mut fields = input.fields;
    let update = Update::take(&mut fields)?;
    update.read::<Tree>(input.proofs.to_string().as_bytes()).map(drop)
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().unwrap()
}

#[test]
fn updates_are_read_in_every_encoding() {
    let update = Update::take(&mut input().fields).unwrap();
    let bincode = fixture("snap-2k/vanilla.bincode");
    let all: Vec<PartitionProof<Tree>> = bincode::deserialize(&bincode).unwrap();
    let each: Vec<Vec<u8>> = all.iter().map(|one| bincode::serialize(one).unwrap()).collect();
    for partitions in [
        update.read::<Tree>(&bincode).unwrap(),
        update.read::<Tree>(&fixture("snap-2k/vanilla.json")).unwrap(),
        update.read::<Tree>(&as_go(&all)).unwrap(),
        update.read_each::<Tree>(&each).unwrap(),
    ] {
        assert_eq!(partitions.len(), 1);
    }
    assert!(!update.public::<Tree>(0).unwrap().is_empty());
}

#[test]
fn malformed_updates_are_refused_with_their_field() {
    let cases: &[Case<Input>] = &[
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
            name: "another sector size",
            spoil: |input| input.fields["sector_size"] = "8MiB".into(),
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
    refused(input, read, cases);
}

#[test]
fn damaged_update_files_are_answered() {
    let update = Update::take(&mut input().fields).unwrap();
    let whole = fixture("snap-2k/vanilla.bincode");
    for length in (0..whole.len()).step_by(401) {
        assert!(update.read::<Tree>(&whole[..length]).is_err(), "{length} bytes");
    }
    for place in (0..200).chain((200..whole.len()).step_by(307)) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        assert!(update.read::<Tree>(&bytes).is_err(), "byte {place}");
    }
}
