use filecoin_proofs::PartitionProof;
use proofkeep_filecoin::snap::Update;
use serde_json::json;

use super::{Tree, as_go, fixture, object};

fn update() -> Update {
    let meta = super::json("snap-2k/snap-meta.json");
    let fields = json!({
        "sector_size": "2KiB",
        "comm_r_old": meta["comm_r_old"],
        "comm_r_new": meta["comm_r_new"],
        "comm_d_new": meta["comm_d_new"],
    });
    Update::take(&mut object(fields)).unwrap()
}

#[test]
fn updates_are_read_in_every_encoding() {
    let update = update();
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
fn damaged_update_files_are_answered() {
    let update = update();
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
