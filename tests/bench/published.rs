//! The published API's own calls, twice in this process: what each took, and the most memory it had.

use filecoin_proofs::{
    PoStConfig, SealCommitPhase1Output, SectorShapeBase, generate_empty_sector_update_proof_with_vanilla,
    generate_window_post_with_vanilla, generate_winning_post_with_vanilla, seal_commit_phase2,
};
use proofkeep_filecoin::post::Post;
use proofkeep_filecoin::sector::{Chosen, Seal};
use serde_json::{Value, json};

use super::{Rounds, fixture, meta, peak_kib, request};

type Tree = SectorShapeBase;

/// Proves a kind twice, and prints both costs and the peak.
pub fn run(kind: &str) {
    let call = || match kind {
        "porep-c2" => commit(),
        "snap-update" => update(),
        kind => post(kind == "winning-post"),
    };
    let me = std::process::id();
    let mut told = json!({});
    for name in ["first", "second"] {
        let mut rounds = Rounds::default();
        rounds.round(&[me], call);
        let (clock, processor) = rounds.median();
        told[name] = json!([clock, processor]);
    }
    told["peak_kib"] = peak_kib(me).into();
    println!("{told}");
}

fn bytes(value: &Value) -> [u8; 32] {
    hex::decode(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

fn commit() {
    let meta = meta("porep-2k-p2/meta.json");
    let output: SealCommitPhase1Output<Tree> =
        bincode::deserialize(&fixture("porep-2k-p2/c1.bincode")).unwrap();
    let config = Seal::of(&Chosen::Size(2048)).unwrap().config(Some(2));
    let number = meta["sector_id"].as_u64().unwrap();
    let made = seal_commit_phase2(&config, output, bytes(&meta["prover_id"]), number.into()).unwrap();
    assert_eq!(made.proof.len(), 384);
}

fn update() {
    let meta = meta("snap-2k/snap-meta.json");
    let proofs = bincode::deserialize(&fixture("snap-2k/vanilla.bincode")).unwrap();
    let config = Seal::of(&Chosen::Size(2048)).unwrap().config(None);
    let of = |name: &str| bytes(&meta[name]);
    let (old, new, data) = (of("comm_r_old"), of("comm_r_new"), of("comm_d_new"));
    let made =
        generate_empty_sector_update_proof_with_vanilla::<Tree>(&config, proofs, old, new, data).unwrap();
    assert_eq!(made.0.len(), 192);
}

fn post(winning: bool) {
    let kind = if winning { "winning-post" } else { "window-post" };
    let (mut fields, _, proofs) = request(kind);
    let post = Post::take(&mut fields, winning).unwrap();
    let proofs = bincode::deserialize(&proofs).unwrap();
    let config: &PoStConfig = &post.config;
    let made = match winning {
        true => generate_winning_post_with_vanilla::<Tree>(config, &post.randomness, post.prover, proofs),
        false => generate_window_post_with_vanilla::<Tree>(config, &post.randomness, post.prover, proofs),
    };
    assert!(!made.unwrap().is_empty());
}
