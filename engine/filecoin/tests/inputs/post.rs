use filecoin_proofs::FallbackPoStSectorProof;
use proofkeep_filecoin::post::Post;
use serde_json::{Map, Value, json};

use super::{Tree, as_go, fixture, object};

/// Fields of a request, and its vanilla proofs as JSON.
struct Input {
    winning: bool,
    fields: Map<String, Value>,
    proofs: Value,
}

fn input(directory: &str, winning: bool) -> Input {
    let meta = super::json(&format!("{directory}/post-meta.json"));
    let registered = match winning {
        true => "StackedDrgWinning2KiBV1",
        false => "StackedDrgWindow2KiBV1",
    };
    let fields = json!({
        "registered_proof": registered,
        "prover_id": meta["prover_id"],
        "randomness": meta["randomness"],
    });
    Input {
        winning,
        fields: object(fields),
        proofs: super::json(&format!("{directory}/vanilla.json")),
    }
}

fn winning() -> Input {
    input("winning-2k", true)
}

fn window() -> Input {
    input("window-2k-3sectors", false)
}

fn list(value: &mut Value) -> &mut Vec<Value> {
    value.as_array_mut().unwrap()
}

#[test]
fn post_proofs_are_read_in_every_encoding() {
    for (input, directory, sectors) in [
        (winning(), "winning-2k", vec![1]),
        (window(), "window-2k-3sectors", vec![2, 1]),
    ] {
        let post = Post::take(&mut input.fields.clone(), input.winning).unwrap();
        let bincode = fixture(&format!("{directory}/vanilla.bincode"));
        let all: Vec<FallbackPoStSectorProof<Tree>> = bincode::deserialize(&bincode).unwrap();
        let each: Vec<Vec<u8>> = all.iter().map(|one| bincode::serialize(one).unwrap()).collect();
        let cut = [
            post.read::<Tree>(&bincode).unwrap(),
            post.read::<Tree>(&fixture(&format!("{directory}/vanilla.json")))
                .unwrap(),
            post.read::<Tree>(&as_go(&all)).unwrap(),
            post.read_each::<Tree>(&each).unwrap(),
        ];
        for partitions in cut {
            let found: Vec<usize> = partitions.iter().map(|one| one.sectors.len()).collect();
            assert_eq!(found, sectors);
            for (partition, index) in partitions.iter().zip(0..) {
                assert_eq!(partition.index, index);
                assert!(!post.public(partition).unwrap().is_empty());
            }
        }
    }
}

/// The published code makes the signals of a partition from all sectors; here from the partition's own.
#[test]
fn one_partition_has_the_signals_that_it_has_among_all() {
    let all = window();
    let post = Post::take(&mut all.fields.clone(), false).unwrap();
    let partitions = post.read::<Tree>(all.proofs.to_string().as_bytes()).unwrap();
    let mut second = window();
    list(&mut second.proofs).drain(..2);
    second.fields.insert("partition_index".to_owned(), 1.into());
    let alone = Post::take(&mut second.fields, false).unwrap();
    let one = alone.read::<Tree>(second.proofs.to_string().as_bytes()).unwrap();
    assert_eq!((one.len(), one[0].index), (1, 1));
    assert_eq!(
        alone.public(&one[0]).unwrap(),
        post.public(&partitions[1]).unwrap()
    );
    assert_ne!(
        post.public(&partitions[0]).unwrap(),
        post.public(&partitions[1]).unwrap()
    );
}

/// Each length of a cut-off file and each flipped byte is answered, never with a panic.
#[test]
fn damaged_post_files_are_answered() {
    let input = window();
    let post = Post::take(&mut input.fields.clone(), false).unwrap();
    let whole = fixture("window-2k-3sectors/vanilla.bincode");
    for length in (0..whole.len()).step_by(97) {
        assert!(post.read::<Tree>(&whole[..length]).is_err(), "{length} bytes");
    }
    // Sector numbers, counts and variants stand at these places; a hash that another byte makes invalid is refused too.
    for place in (0..400).chain((400..whole.len()).step_by(211)) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x41;
        assert!(post.read::<Tree>(&bytes).is_err(), "byte {place}");
    }
}
