//! What the contributions to both phases of a ceremony have in common.

use crate::container::Cursor;
use crate::{FileKind, FormatError};

/// Where the randomness of a contribution came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContributionKind<'a> {
    /// A contributor, who must have forgotten it.
    Contribution,
    /// A public beacon, hashed 2^`iterations_log2` times.
    Beacon {
        /// The beacon's value.
        hash: &'a [u8],
        /// Logarithm of the number of hashes.
        iterations_log2: u8,
    },
}

#[derive(Default)]
pub(crate) struct Parameters<'a> {
    pub(crate) name: Option<String>,
    iterations_log2: u8,
    beacon: &'a [u8],
}

impl<'a> Parameters<'a> {
    /// A tag, then a length and that many bytes (1, name; 3, beacon) or one byte (2, iterations). Tags ascend.
    pub(crate) fn parse(file: FileKind, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new(file, "the parameters of a contribution", bytes);
        let mut parameters = Parameters::default();
        let mut last = 0;
        while cursor.left() > 0 {
            let tag = cursor.u8()?;
            if tag <= last {
                return Err(FormatError::BadCount {
                    file,
                    what: "the tag of a contribution's parameter",
                    expected: format!("above {last}"),
                    found: tag.into(),
                });
            }
            last = tag;
            match tag {
                1 => {
                    let length = cursor.u8()?;
                    let name = cursor.take(length.into())?;
                    parameters.name = Some(String::from_utf8_lossy(name).into_owned());
                }
                2 => parameters.iterations_log2 = cursor.u8()?,
                3 => {
                    let length = cursor.u8()?;
                    parameters.beacon = cursor.take(length.into())?;
                }
                other => {
                    return Err(FormatError::BadCount {
                        file,
                        what: "the tag of a contribution's parameter",
                        expected: "1, 2 or 3".to_owned(),
                        found: other.into(),
                    });
                }
            }
        }
        Ok(parameters)
    }

    /// What made a step whose type is `number`.
    pub(crate) fn kind(
        &self,
        file: FileKind,
        number: u32,
        step: u32,
    ) -> Result<ContributionKind<'a>, FormatError> {
        match number {
            0 => Ok(ContributionKind::Contribution),
            1 => Ok(ContributionKind::Beacon {
                hash: self.beacon,
                iterations_log2: self.iterations_log2,
            }),
            other => Err(FormatError::OutOfRange {
                file,
                what: "contribution",
                index: step.into(),
                field: "the type",
                found: other.into(),
                limit: 2,
            }),
        }
    }
}
