//! Counts the circuits of every sector size that the published crates register, and prints `src/counted.rs`.
//!
//! A circuit of 32 GiB has 10^8 constraints, most of them once for each challenge or sector. It is counted with few of
//! them, the rest is reckoned: each more adds the same, and every 9th (or so) challenge of an update a hash. Where a
//! circuit is small, it is counted whole, and so checks the reckoning.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use filecoin_proofs::TreeRHasher;
use filecoin_proofs::constants::{
    SectorShapeBase, SectorShapeSub2, SectorShapeSub8, SectorShapeTop2, is_sector_shape_base,
    is_sector_shape_sub2, is_sector_shape_sub8,
};
use proofkeep_filecoin::counts::{Counts, Sizes};
use proofkeep_filecoin::porep::Commit;
use proofkeep_filecoin::post::Post;
use proofkeep_filecoin::sector::{self, Chosen, Seal, size_name};
use proofkeep_filecoin::snap::Update;
use storage_proofs_core::merkle::MerkleTreeTrait;

fn main() {
    let sizes = filecoin_proofs::constants::SUPPORTED_SECTOR_SIZES;
    let asked: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|text| sector::size_of(&text))
        .collect();
    for size in sizes {
        if !asked.is_empty() && !asked.contains(&size) {
            continue;
        }
        let counted = match size {
            _ if is_sector_shape_base(size) => count::<SectorShapeBase>(size),
            _ if is_sector_shape_sub2(size) => count::<SectorShapeSub2>(size),
            _ if is_sector_shape_sub8(size) => count::<SectorShapeSub8>(size),
            _ => count::<SectorShapeTop2>(size),
        };
        println!("    // {}", size_name(size));
        println!("    Sizes {{");
        println!("        size: {},", counted.size);
        println!("        porep: {:?},", counted.porep);
        println!("        porep_more: {:?},", counted.porep_more);
        println!("        update: {:?},", counted.update);
        println!("        window: {:?},", counted.window);
        println!("        winning: {:?},", counted.winning);
        println!("    }},");
    }
}

fn count<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(size: u64) -> Sizes {
    let minimum = Seal::minimum_challenges(size);
    let porep = |challenges: u64| {
        let partitions = u8::try_from(minimum.div_ceil(challenges)).unwrap();
        let config = Seal::of(&Chosen::Size(size)).unwrap().config(Some(partitions));
        Counts::of(Commit::blank::<Tree>(&config).unwrap()).unwrap()
    };
    let first = porep(1);
    let porep_more = porep(2) - first;
    let post = |winning: bool, sectors: Option<usize>| {
        let mut config = sector::post_config(&Chosen::Size(size), winning).unwrap();
        config.sector_count = sectors.unwrap_or(config.sector_count);
        let post = Post {
            config,
            prover: [0; 32],
            randomness: [0; 32],
            partition_index: None,
        };
        Counts::of(post.blank::<Tree>().unwrap()).unwrap()
    };
    let sectors = sector::post_config(&Chosen::Size(size), false)
        .unwrap()
        .sector_count as u64;
    let one = post(false, Some(1));
    let more = post(false, Some(2)) - one;
    let window = one + more * (sectors - 1);
    if sectors < 3 {
        assert_eq!(window, post(false, None), "{size}");
    }
    Sizes {
        size,
        porep: first,
        porep_more,
        update: sector::update_size(&Chosen::Size(size)).ok().map(update::<Tree>),
        window,
        winning: post(true, None),
    }
}

fn update<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(size: u64) -> Counts {
    let whole = Update::blank::<Tree>(size);
    let challenges = whole.pub_params.challenge_count as u64;
    let bits = whole.pub_params.challenge_bit_len - whole.pub_params.partition_bit_len;
    // A hash makes random bits for so many challenges.
    let together = 255 / bits as u64;
    let with = |count: u64| {
        let mut circuit = Update::blank::<Tree>(size);
        circuit.pub_params.challenge_count = usize::try_from(count).unwrap();
        circuit
            .priv_inputs
            .challenge_proofs
            .truncate(usize::try_from(count).unwrap());
        Counts::of(circuit).unwrap()
    };
    if challenges < 20 {
        return Counts::of(whole).unwrap();
    }
    let first = with(1);
    let more = with(2) - first;
    let hash = with(together + 1) - first - more * together;
    first + more * (challenges - 1) + hash * ((challenges - 1) / together)
}
