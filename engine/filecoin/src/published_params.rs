//! Names and digests of the parameters that the chain takes proofs under.
//!
//! The crates publish them with their code; the table in `data/published.tsv` has the proving keys.

/// A published parameter file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedParams {
    /// Its name, without `.params`.
    pub id: &'static str,
    /// Bytes of a sector.
    pub sector_size: u64,
    /// The first 16 bytes of its BLAKE2b-512, in hex.
    pub blake2b: &'static str,
}

const TABLE: &str = include_str!("../data/published.tsv");

/// Every one.
pub fn all() -> impl Iterator<Item = PublishedParams> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut columns = line.split('\t');
        Some(PublishedParams {
            id: columns.next()?,
            sector_size: columns.next()?.parse().ok()?,
            blake2b: columns.next()?,
        })
    })
}

/// The one of that name.
#[must_use]
pub fn find(id: &str) -> Option<PublishedParams> {
    all().find(|one| one.id == id)
}

/// The kinds whose circuit has such a name.
#[must_use]
pub fn kinds(id: &str) -> &'static [&'static str] {
    const NAMES: [(&str, &[&str]); 3] = [
        ("empty-sector-update-", &["snap-update"]),
        ("stacked-proof-of-replication-", &["porep-c2"]),
        ("proof-of-spacetime-fallback-", &["window-post", "winning-post"]),
    ];
    let circuit = id.split_once('-').map_or("", |(_, circuit)| circuit);
    let known = NAMES.iter().find(|(name, _)| circuit.starts_with(name));
    known.map_or(&[], |(_, kinds)| kinds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::circuit::{Circuit, KINDS};
    use crate::directory::Directory;

    #[test]
    fn every_line_is_a_file_of_one_of_the_kinds() {
        assert_eq!(all().count(), TABLE.lines().count() - 1);
        for one in all() {
            assert!(!kinds(one.id).is_empty(), "{}", one.id);
            assert!(one.sector_size.is_power_of_two());
            assert_eq!(hex::decode(one.blake2b).unwrap().len(), 16);
        }
    }

    #[test]
    fn the_circuits_of_published_sector_sizes_have_published_names() {
        for kind in KINDS {
            for size in filecoin_proofs::constants::PUBLISHED_SECTOR_SIZES {
                let identifier = Circuit::named(kind, size, None).unwrap().identifier().unwrap();
                let id = Directory::id(&identifier);
                let found = find(&id).unwrap_or_else(|| panic!("{kind} of {size}: {id}"));
                assert_eq!(found.sector_size, size);
                assert!(kinds(&id).contains(&kind));
                assert_eq!(Circuit::of_id(&id).map(|(kind, _)| kind), Some(kind));
            }
        }
    }
}
