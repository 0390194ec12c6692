//! Sector sizes and registered proofs, as requests name them.

use filecoin_proofs::{PoRepConfig, PoRepProofPartitions, PoStConfig, PoStType, SectorSize, constants};
use serde_json::{Map, Value};
use storage_proofs_core::api_version::{ApiFeature, ApiVersion};

use crate::invalid::Invalid;

/// The sizes that the chain knows, in the order in which registered proofs number them.
const REGISTERED: [(&str, u64); 5] = [
    ("2KiB", 1 << 11),
    ("8MiB", 1 << 23),
    ("512MiB", 1 << 29),
    ("32GiB", 1 << 35),
    ("64GiB", 1 << 36),
];

/// What a request says of its proof: a registered one, by name or number, or a sector size alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// `registered_proof`, by number.
    Number(u64),
    /// `registered_proof`, by name.
    Name(String),
    /// `sector_size`, in bytes.
    Size(u64),
}

impl Chosen {
    /// A sector size, if it is one.
    ///
    /// # Errors
    /// When there are no sectors of this size.
    pub fn registered(bytes: u64) -> Result<Self, Invalid> {
        if constants::SUPPORTED_SECTOR_SIZES.contains(&bytes) {
            return Ok(Self::Size(bytes));
        }
        let expected = format!(
            "a sector size, one of {}",
            names(&constants::SUPPORTED_SECTOR_SIZES)
        );
        Err(Invalid::new(
            "sector-size",
            "sector_size",
            expected,
            format!("{bytes} bytes"),
        ))
    }
}

fn names(sizes: &[u64]) -> String {
    let names: Vec<String> = sizes.iter().map(|size| size_name(*size)).collect();
    names.join(", ")
}

/// Takes `registered_proof` or `sector_size` out of a request; `None` when there is neither.
///
/// # Errors
/// When there are both, or something else.
pub fn chosen(fields: &mut Map<String, Value>) -> Result<Option<Chosen>, Invalid> {
    let (proof, size) = (fields.remove("registered_proof"), fields.remove("sector_size"));
    match (proof, size) {
        (None, None) => Ok(None),
        (Some(_), Some(size)) => {
            let expected = "either registered_proof or sector_size, here are both";
            Err(Invalid::field("sector_size", expected, Some(&size)))
        }
        (None, Some(size)) => {
            let bytes = match &size {
                Value::Number(number) => number.as_u64(),
                Value::String(text) => size_of(text),
                _ => None,
            };
            let known = bytes.filter(|bytes| constants::SUPPORTED_SECTOR_SIZES.contains(bytes));
            known.map(|bytes| Some(Chosen::Size(bytes))).ok_or_else(|| {
                let expected = "a sector size, as in 2048, \"2KiB\" or \"32GiB\"";
                Invalid::field("sector_size", expected, Some(&size))
            })
        }
        (Some(Value::String(name)), None) => Ok(Some(Chosen::Name(name))),
        (Some(proof), None) => match proof.as_u64() {
            Some(number) => Ok(Some(Chosen::Number(number))),
            None => {
                let expected = "the name or number of a registered proof";
                Err(Invalid::field("registered_proof", expected, Some(&proof)))
            }
        },
    }
}

/// Bytes of a sector, from `2KiB` and the like.
#[must_use]
pub fn size_of(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// How a sector size is written.
#[must_use]
pub fn size_name(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{}GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{}MiB", bytes >> 20),
        _ => format!("{}KiB", bytes >> 10),
    }
}

fn unknown(expected: &str, found: &str) -> Invalid {
    let found = format!("{:?}", crate::invalid::shown(found));
    Invalid::new("registered-proof", "registered_proof", expected, found)
}

/// A registered seal proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Its number, as the chain counts.
    pub number: u64,
    /// Bytes of a sector.
    pub size: u64,
}

/// What follows the size in the names of seal proofs, in the order of their numbers.
const SEALS: [&str; 4] = [
    "V1",
    "V1_1",
    "V1_1_Feat_SyntheticPoRep",
    "V1_2_Feat_NonInteractivePoRep",
];

impl Seal {
    /// The seal proof that a request names; a size alone means the interactive one of version 1.1.
    ///
    /// # Errors
    /// When there is none such, or its proofs are aggregated, which no kind here does.
    pub fn of(chosen: &Chosen) -> Result<Self, Invalid> {
        const EXPECTED: &str = "a registered seal proof, as in \"StackedDrg32GiBV1_1\" or 8";
        let found = match chosen {
            Chosen::Size(size) => {
                let place = REGISTERED.iter().position(|(_, registered)| registered == size);
                // Other sizes have no registered proof; any id that isn't a legacy one will do.
                return Ok(Self {
                    number: 5 + place.unwrap_or(0) as u64,
                    size: *size,
                });
            }
            Chosen::Number(number) => (0..20).find(|known| known == number),
            Chosen::Name(name) => (0..20).find(|known| seal_name(*known) == *name),
        };
        let Some(number) = found else {
            return Err(match chosen {
                Chosen::Name(name) => unknown(EXPECTED, name),
                Chosen::Number(number) | Chosen::Size(number) => unknown(EXPECTED, &number.to_string()),
            });
        };
        if number >= 15 {
            return Err(unknown(
                "an interactive or a synthetic seal proof (proofs of the non-interactive one are aggregated)",
                &seal_name(number),
            ));
        }
        Ok(Self {
            number,
            size: REGISTERED[(number % 5) as usize].1,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        seal_name(self.number)
    }

    /// Partitions that the chain wants for a sector size.
    #[must_use]
    pub fn partitions(size: u64) -> u8 {
        if size >= 1 << 35 { 10 } else { 1 }
    }

    /// Challenges that a sector of this size needs in all, at least.
    #[must_use]
    pub fn minimum_challenges(size: u64) -> u64 {
        if size >= 1 << 35 { 176 } else { 2 }
    }

    /// Challenges of each partition, if there are so many; `None`: as many as the chain wants.
    #[must_use]
    pub fn challenges(size: u64, partitions: Option<u8>) -> u64 {
        let partitions = partitions.unwrap_or_else(|| Self::partitions(size));
        Self::minimum_challenges(size).div_ceil(u64::from(partitions).max(1))
    }

    /// Refuses partitions with more challenges than the published circuits take, for which they panic.
    ///
    /// # Errors
    /// When there are too few of them for the sector size.
    pub fn check_partitions(size: u64, partitions: Option<u8>) -> Result<(), Invalid> {
        /// Challenges of a partition at most.
        const MOST: u64 = 18;
        match partitions {
            Some(count) if Self::challenges(size, partitions) > MOST => {
                let least = Self::minimum_challenges(size).div_ceil(MOST);
                let expected = format!("at least {least} partitions for sectors of {}", size_name(size));
                Err(Invalid::new(
                    "partitions",
                    "partitions",
                    expected,
                    count.to_string(),
                ))
            }
            _ => Ok(()),
        }
    }

    /// As the published crates take it; `partitions` replaces their own count.
    #[must_use]
    pub fn config(self, partitions: Option<u8>) -> PoRepConfig {
        let mut porep_id = [0; 32];
        porep_id[..8].copy_from_slice(&self.number.to_le_bytes());
        let (api_version, features) = match self.number / 5 {
            0 => (ApiVersion::V1_0_0, vec![]),
            1 => (ApiVersion::V1_1_0, vec![]),
            _ => (ApiVersion::V1_2_0, vec![ApiFeature::SyntheticPoRep]),
        };
        PoRepConfig {
            sector_size: SectorSize(self.size),
            partitions: PoRepProofPartitions(partitions.unwrap_or_else(|| Self::partitions(self.size))),
            porep_id,
            api_version,
            api_features: features,
        }
    }
}

fn seal_name(number: u64) -> String {
    let (size, version) = (
        REGISTERED[(number % 5) as usize].0,
        SEALS[(number / 5) as usize % 4],
    );
    format!("StackedDrg{size}{version}")
}

/// The PoSt that a request names. A size alone means, for a WindowPoSt, the version that the chain uses today (1.2, which
/// Go calls `V1_1`).
///
/// # Errors
/// When there is none such, or it is the other PoSt.
pub fn post_config(chosen: &Chosen, winning: bool) -> Result<PoStConfig, Invalid> {
    let expected = match winning {
        true => "a registered WinningPoSt proof, as in \"StackedDrgWinning32GiBV1\" or 3",
        false => "a registered WindowPoSt proof, as in \"StackedDrgWindow32GiBV1_2\" or 13",
    };
    let (size, version) = match chosen {
        Chosen::Size(size) if winning => (*size, ApiVersion::V1_0_0),
        Chosen::Size(size) => (*size, ApiVersion::V1_2_0),
        named => {
            let number = match named {
                Chosen::Name(name) => (0..15).find(|known| is_post_name(*known, name)),
                Chosen::Number(number) | Chosen::Size(number) => Some(*number),
            };
            let of_kind = number.filter(|number| match winning {
                true => *number < 5,
                false => (5..15).contains(number),
            });
            let Some(number) = of_kind else {
                return Err(match named {
                    Chosen::Name(name) => unknown(expected, name),
                    Chosen::Number(number) | Chosen::Size(number) => unknown(expected, &number.to_string()),
                });
            };
            let version = match number / 5 {
                2 => ApiVersion::V1_2_0,
                _ => ApiVersion::V1_0_0,
            };
            (REGISTERED[(number % 5) as usize].1, version)
        }
    };
    Ok(post(size, version, winning))
}

/// The PoSt of a sector size and a version.
#[must_use]
pub fn post(size: u64, version: ApiVersion, winning: bool) -> PoStConfig {
    let window_sectors = match size {
        0x8_0000_0000 => 2349,
        0x10_0000_0000 => 2300,
        _ => 2,
    };
    PoStConfig {
        sector_size: SectorSize(size),
        challenge_count: match winning {
            true => constants::WINNING_POST_CHALLENGE_COUNT,
            false => constants::WINDOW_POST_CHALLENGE_COUNT,
        },
        sector_count: match winning {
            true => constants::WINNING_POST_SECTOR_COUNT,
            false => window_sectors,
        },
        typ: match winning {
            true => PoStType::Winning,
            false => PoStType::Window,
        },
        priority: false,
        api_version: version,
    }
}

fn is_post_name(number: u64, name: &str) -> bool {
    let size = REGISTERED[(number % 5) as usize].0;
    match number / 5 {
        0 => name == format!("StackedDrgWinning{size}V1"),
        1 => name == format!("StackedDrgWindow{size}V1"),
        // Rust's name and Go's.
        _ => name == format!("StackedDrgWindow{size}V1_2") || name == format!("StackedDrgWindow{size}V1_1"),
    }
}

/// The sector size of the update that a request names.
///
/// # Errors
/// When there is none such.
pub fn update_size(chosen: &Chosen) -> Result<u64, Invalid> {
    const EXPECTED: &str = "a registered update proof, as in \"StackedDrg32GiBV1\" or 3";
    let found = match chosen {
        Chosen::Size(size) => Some(*size),
        Chosen::Number(number) => REGISTERED
            .get(usize::try_from(*number).unwrap_or(usize::MAX))
            .map(|one| one.1),
        Chosen::Name(name) => REGISTERED
            .iter()
            .find(|(size, _)| *name == format!("StackedDrg{size}V1"))
            .map(|one| one.1),
    };
    let size = found.ok_or_else(|| match chosen {
        Chosen::Name(name) => unknown(EXPECTED, name),
        Chosen::Number(number) | Chosen::Size(number) => unknown(EXPECTED, &number.to_string()),
    })?;
    let nodes = usize::try_from(size / 32).unwrap_or(usize::MAX);
    if storage_proofs_update::constants::ALLOWED_SECTOR_SIZES.contains(&nodes) {
        return Ok(size);
    }
    // The published crates panic.
    let expected = "a sector size that can be updated: any but 1GiB";
    Err(Invalid::new(
        "sector-size",
        "sector_size",
        expected,
        size_name(size),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn chosen_of(value: Value) -> Result<Option<Chosen>, Invalid> {
        match value {
            Value::Object(mut fields) => chosen(&mut fields),
            _ => Ok(None),
        }
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes) in [
            ("2KiB", 2048),
            ("32GiB", 1 << 35),
            ("2048", 2048),
            ("8 MiB", 1 << 23),
        ] {
            assert_eq!(size_of(text), Some(bytes));
        }
        for text in ["", "KiB", "2TiB", "99999999999GiB", "-1"] {
            assert_eq!(size_of(text), None, "{text}");
        }
        assert_eq!(size_name(1 << 35), "32GiB");
        assert!(chosen_of(json!({"sector_size": 4095})).is_err());
        assert!(chosen_of(json!({"sector_size": 2048, "registered_proof": 5})).is_err());
        assert_eq!(chosen_of(json!({})).unwrap(), None);
    }

    #[test]
    fn the_numbers_and_names_of_seal_proofs_agree_with_the_published_ones() {
        for (number, name, size) in [
            (0, "StackedDrg2KiBV1", 2048),
            (8, "StackedDrg32GiBV1_1", 1 << 35),
            (14, "StackedDrg64GiBV1_1_Feat_SyntheticPoRep", 1u64 << 36),
        ] {
            let seal = Seal::of(&Chosen::Number(number)).unwrap();
            assert_eq!(Seal::of(&Chosen::Name(name.to_owned())).unwrap(), seal);
            assert_eq!((seal.size, seal.name().as_str()), (size, name));
        }
        let config = Seal::of(&Chosen::Size(2048)).unwrap().config(Some(2));
        assert_eq!((config.porep_id[0], usize::from(config.partitions)), (5, 2));
        for (size, partitions, fits) in [
            (35, Some(9), false),
            (35, Some(10), true),
            (36, None, true),
            (11, Some(1), true),
        ] {
            assert_eq!(
                Seal::check_partitions(1 << size, partitions).is_ok(),
                fits,
                "{size} {partitions:?}"
            );
        }
        for bad in [
            Chosen::Number(15),
            Chosen::Number(20),
            Chosen::Name("StackedDrg1KiBV1".to_owned()),
        ] {
            assert_eq!(Seal::of(&bad).unwrap_err().field, "registered_proof");
        }
    }

    #[test]
    fn a_winning_proof_is_no_window_proof() {
        let window = Chosen::Name("StackedDrgWindow2KiBV1_1".to_owned());
        assert_eq!(post_config(&window, false).unwrap().sector_count, 2);
        assert!(post_config(&window, true).is_err());
        assert_eq!(
            post_config(&Chosen::Number(13), false).unwrap().sector_count,
            2349
        );
        assert!(post_config(&Chosen::Number(15), false).is_err());
        assert!(post_config(&Chosen::Number(5), true).is_err());
        assert_eq!(update_size(&Chosen::Number(4)).unwrap(), 1 << 36);
        assert!(update_size(&Chosen::Number(5)).is_err());
    }
}
