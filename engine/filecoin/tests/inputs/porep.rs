use filecoin_proofs::SealCommitPhase1Output;
use proofkeep_filecoin::invalid::Invalid;
use proofkeep_filecoin::porep::Asked;
use serde_json::{Map, Value, json};

use super::{Case, Tree, fixture, object, refused};

/// Fields of a request, and C1's output as JSON.
struct Input {
    fields: Map<String, Value>,
    c1: Value,
}

fn fields() -> Map<String, Value> {
    let meta = super::json("porep-2k-p2/meta.json");
    object(json!({
        "registered_proof": "StackedDrg2KiBV1_1",
        "partitions": 2,
        "prover_id": meta["prover_id"],
        "sector_number": meta["sector_id"],
    }))
}

fn input() -> Input {
    Input {
        fields: fields(),
        c1: super::json("porep-2k-p2/c1.json"),
    }
}

fn read_bytes(mut fields: Map<String, Value>, bytes: &[u8]) -> Result<(), Invalid> {
    let asked = Asked::take(&mut fields)?;
    asked.sector_size(bytes)?;
    let (commit, partitions) = asked.read::<Tree>(bytes)?;
    assert_eq!((commit.sector_number, partitions.len()), (1000, 2));
    assert_ne!(commit.public::<Tree>(0)?, commit.public::<Tree>(1)?);
    Ok(())
}

fn read(input: Input) -> Result<(), Invalid> {
    read_bytes(input.fields, input.c1.to_string().as_bytes())
}

#[test]
fn c1_is_read_in_every_encoding() {
    for name in [
        "c1.json",
        "c1.bincode",
        "c1-api.json",
        "c1-api.bincode",
        "c1-lotus.json",
    ] {
        let bytes = fixture(&format!("porep-2k-p2/{name}"));
        read_bytes(fields(), &bytes).unwrap_or_else(|refused| panic!("{name}: {refused}"));
        // What the file says itself needn't be said.
        let mut less = fields();
        if name != "c1.json" && name != "c1.bincode" {
            less.remove("registered_proof");
        }
        if name == "c1-lotus.json" {
            less.remove("sector_number");
        }
        read_bytes(less, &bytes).unwrap_or_else(|refused| panic!("{name}: {refused}"));
    }
}

#[test]
fn what_the_file_says_otherwise_is_refused() {
    for (name, field, value) in [
        ("c1-api.json", "registered_proof", json!("StackedDrg2KiBV1")),
        ("c1-api.bincode", "registered_proof", json!(0)),
        ("c1-api.json", "registered_proof", json!("StackedDrg8MiBV1_1")),
        ("c1-lotus.json", "sector_number", json!(1001)),
    ] {
        let mut fields = fields();
        fields.insert(field.to_owned(), value);
        let refused = read_bytes(fields, &fixture(&format!("porep-2k-p2/{name}"))).unwrap_err();
        assert_eq!(refused.field, field, "{name}: {refused}");
    }
    let mut lotus = super::json("porep-2k-p2/c1-lotus.json");
    lotus["SectorSize"] = 4096.into();
    let refused = read_bytes(fields(), lotus.to_string().as_bytes()).unwrap_err();
    assert_eq!(refused.field, "vanilla_proof.SectorSize");
    lotus["Phase1Out"] = "*".into();
    let refused = read_bytes(fields(), lotus.to_string().as_bytes()).unwrap_err();
    assert_eq!(refused.field, "vanilla_proof.Phase1Out");
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().unwrap()
}

#[test]
fn malformed_c1_outputs_are_refused_with_their_field() {
    let cases: &[Case<Input>] = &[
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
            spoil: |input| input.c1["ticket"][0] = 0.into(),
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
            spoil: |input| list(&mut input.c1["vanilla_proofs"]).swap(0, 1),
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0].comm_d_proofs",
        },
        Case {
            name: "a missing partition",
            spoil: |input| drop(list(&mut input.c1["vanilla_proofs"]).pop()),
            code: "proof-count",
            field: "vanilla_proof.vanilla_proofs",
        },
        Case {
            name: "a missing challenge",
            spoil: |input| drop(list(&mut input.c1["vanilla_proofs"][1]).pop()),
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
            spoil: |input| input.c1["comm_r"][0] = 0.into(),
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0]",
        },
        Case {
            name: "no comm_r",
            spoil: |input| input.c1["comm_r"] = json!(vec![0; 32]),
            code: "zero-commitment",
            field: "vanilla_proof.comm_r",
        },
        Case {
            name: "a comm_d that is no field element",
            spoil: |input| input.c1["comm_d"][31] = 255.into(),
            code: "non-canonical",
            field: "vanilla_proof.comm_d",
        },
        Case {
            name: "another seed",
            spoil: |input| {
                input.c1["seed"] = json!(vec![3; 32]);
            },
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0].comm_d_proofs",
        },
        Case {
            name: "no seed",
            spoil: |input| input.c1["seed"] = json!(vec![0; 32]),
            code: "zero-seed",
            field: "vanilla_proof.seed",
        },
        Case {
            name: "a truncated path",
            spoil: |input| {
                let proof = &mut input.c1["vanilla_proofs"][0][0]["comm_r_last_proof"];
                drop(list(&mut proof["data"]["Single"]["path"]["path"]).pop());
            },
            code: "path-shape",
            field: "vanilla_proof.vanilla_proofs[0][0].comm_r_last_proof.path",
        },
        Case {
            name: "another hash in a path",
            spoil: |input| {
                let proof = &mut input.c1["vanilla_proofs"][1][0]["comm_d_proofs"];
                proof["data"]["Single"]["path"]["path"][0]["hashes"][0][0] = 0.into();
            },
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[1][0].comm_d_proofs",
        },
        Case {
            name: "a column without its last row",
            spoil: |input| {
                let columns = &mut input.c1["vanilla_proofs"][0][0]["replica_column_proofs"];
                drop(list(&mut columns["c_x"]["column"]["rows"]).pop());
            },
            code: "vanilla-malformed",
            field: "vanilla_proof.vanilla_proofs[0][0]",
        },
        Case {
            name: "a missing layer",
            spoil: |input| drop(list(&mut input.c1["vanilla_proofs"][0][0]["labeling_proofs"]).pop()),
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0].labeling_proofs",
        },
        Case {
            name: "a label's missing parent",
            spoil: |input| {
                drop(list(&mut input.c1["vanilla_proofs"][0][0]["labeling_proofs"][1]["parents"]).pop());
            },
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0]",
        },
        Case {
            name: "a missing parent's column",
            spoil: |input| {
                let columns = &mut input.c1["vanilla_proofs"][0][0]["replica_column_proofs"];
                drop(list(&mut columns["drg_parents"]).pop());
            },
            code: "vanilla-invalid",
            field: "vanilla_proof.vanilla_proofs[0][0]",
        },
    ];
    refused(input, read, cases);
}

#[test]
fn damaged_c1_files_are_answered() {
    let whole = fixture("porep-2k-p2/c1.bincode");
    for length in (0..whole.len()).step_by(401) {
        assert!(read_bytes(fields(), &whole[..length]).is_err(), "{length} bytes");
    }
    let output: SealCommitPhase1Output<Tree> = bincode::deserialize(&whole).unwrap();
    assert_eq!(output.vanilla_proofs.len(), 2);
    let mut huge = whole.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(read_bytes(fields(), &huge).unwrap_err().code, "undecodable");
    for place in (0..300).chain((300..whole.len()).step_by(509)) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        assert!(read_bytes(fields(), &bytes).is_err(), "byte {place}");
    }
}
