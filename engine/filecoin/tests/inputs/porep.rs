use filecoin_proofs::SealCommitPhase1Output;
use proofkeep_filecoin::invalid::Invalid;
use proofkeep_filecoin::porep::Asked;
use serde_json::{Map, Value, json};

use super::{Tree, fixture, object};

fn fields() -> Map<String, Value> {
    let meta = super::json("porep-2k-p2/meta.json");
    object(json!({
        "registered_proof": "StackedDrg2KiBV1_1",
        "partitions": 2,
        "prover_id": meta["prover_id"],
        "sector_number": meta["sector_id"],
    }))
}

fn read_bytes(mut fields: Map<String, Value>, bytes: &[u8]) -> Result<(), Invalid> {
    let asked = Asked::take(&mut fields)?;
    asked.sector_size(bytes)?;
    let (commit, partitions) = asked.read::<Tree>(bytes)?;
    assert_eq!((commit.sector_number, partitions.len()), (1000, 2));
    assert_ne!(commit.public::<Tree>(0)?, commit.public::<Tree>(1)?);
    Ok(())
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
