//! A `.ptau` that only a key can be made of: of the right shape and size, with points that no ceremony made.

use proofkeep_groth16::curve::{Curve, G1, G2};

use proofkeep_tests::fixtures;

/// Powers of tau for domains up to `2^power`. Each section that a key of the largest domain is made of holds
/// multiples of the generator, one larger than the one before; the rest is zeros. β is 3.
pub fn made_up(power: u32) -> Vec<u8> {
    let size = 1_usize << power;
    let header = section(&fixtures::read("powers", "pot.ptau"), 1).to_vec();
    let header = [&header[..52], &power.to_le_bytes(), &power.to_le_bytes()].concat();
    let who = section(&fixtures::read("powers", "pot.ptau"), 7).to_vec();

    let tau = g1(2 * size + 7);
    let g1_at = |from: usize, count: usize| tau[96 * from..96 * (from + count)].to_vec();
    // The bases of the smaller domains, then the one that is used.
    let basis = |last: Vec<u8>| [vec![0; last.len() / size * (size - 1)], last].concat();
    let twice = [vec![0; 96 * (size - 1)], g1_at(5, size), g1_at(7, 2 * size)].concat();
    let sections = [
        (1, header),
        (2, g1_at(0, 2 * size - 1)),
        (3, g2(size)),
        (4, g1_at(1, size)),
        (5, g1_at(2, size)),
        (6, g2(3)[2 * 192..].to_vec()),
        (7, who),
        (12, twice),
        (13, basis(g2(size))),
        (14, basis(g1_at(3, size))),
        (15, basis(g1_at(4, size))),
    ];
    let mut file = b"ptau".to_vec();
    for number in [1, sections.len() as u32] {
        file.extend(number.to_le_bytes());
    }
    for (id, body) in sections {
        file.extend(u32::to_le_bytes(id));
        file.extend((body.len() as u64).to_le_bytes());
        file.extend(body);
    }
    file
}

/// The body of a section.
pub fn section(file: &[u8], id: u32) -> &[u8] {
    let mut rest = &file[12..];
    loop {
        let length = u64::from_le_bytes(rest[4..12].try_into().unwrap()) as usize;
        if rest[..4] == id.to_le_bytes() {
            return &rest[12..12 + length];
        }
        rest = &rest[12 + length..];
    }
}

/// The first multiples of the generator.
fn multiples<C: Curve>(count: usize) -> Vec<C::Affine> {
    let one = C::generator();
    let mut sum = C::Point::default();
    let points: Vec<C::Point> = (0..count)
        .map(|_| {
            sum = C::add_affine(&sum, &one);
            sum
        })
        .collect();
    C::batch_to_affine(&points)
}

fn g1(count: usize) -> Vec<u8> {
    let limbs = multiples::<G1>(count).into_iter().flat_map(|p| [p.x.l, p.y.l]);
    limbs.flatten().flat_map(u64::to_le_bytes).collect()
}

fn g2(count: usize) -> Vec<u8> {
    let coordinates = multiples::<G2>(count).into_iter().flat_map(|p| [p.x, p.y]);
    let limbs = coordinates.flat_map(|c| [c.fp[0].l, c.fp[1].l]);
    limbs.flatten().flat_map(u64::to_le_bytes).collect()
}
