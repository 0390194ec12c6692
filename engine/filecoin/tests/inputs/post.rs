use filecoin_proofs::FallbackPoStSectorProof;
use proofkeep_filecoin::invalid::Invalid;
use proofkeep_filecoin::post::Post;
use serde_json::{Map, Value, json};

use super::{Case, Tree, as_go, fixture, object, refused};

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

fn read(input: Input) -> Result<(), Invalid> {
    let mut fields = input.fields;
    let post = Post::take(&mut fields, input.winning)?;
    post.read::<Tree>(input.proofs.to_string().as_bytes()).map(drop)
}

/// The path of one inclusion proof.
fn path(input: &mut Input, sector: usize, proof: usize) -> &mut Value {
    &mut input.proofs[sector]["vanilla_proof"]["sectors"][0]["inclusion_proofs"][proof]["data"]["Single"]["path"]
        ["path"]
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

#[test]
fn malformed_window_posts_are_refused_with_their_field() {
    let cases: &[Case<Input>] = &[
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
            name: "a sector size whose shape isn't built",
            spoil: |input| input.fields["registered_proof"] = "StackedDrgWindow32GiBV1_1".into(),
            code: "sector-size",
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
    refused(window, read, cases);
}

#[test]
fn malformed_winning_posts_are_refused_with_their_field() {
    let cases: &[Case<Input>] = &[
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
            code: "bad-field",
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
    ];
    refused(winning, read, cases);
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
