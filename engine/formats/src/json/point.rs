//! Points between decimal coordinates and ZCash's uncompressed bytes.

use super::malformed;
use crate::field::{DecimalError, is_canonical_q, q_from_decimal, to_decimal};
use crate::{FileKind, FormatError};

/// `[x, y, z]`.
pub(super) type RawG1 = [String; 3];
/// `[[x0, x1], [y0, y1], [z0, z1]]`.
pub(super) type RawG2 = [[String; 2]; 3];

/// The bit that marks the identity in ZCash's encoding.
const INFINITY: u8 = 0x40;
const COORDINATE: usize = 48;

pub(super) fn g1_from_json(file: FileKind, name: &'static str, raw: &RawG1) -> Result<[u8; 96], FormatError> {
    let [x, y, z] = raw;
    let mut out = [0; 96];
    read_point(file, name, &mut out, [&[x], &[y], &[z]])?;
    Ok(out)
}

pub(super) fn g2_from_json(
    file: FileKind,
    name: &'static str,
    raw: &RawG2,
) -> Result<[u8; 192], FormatError> {
    let [[x0, x1], [y0, y1], [z0, z1]] = raw;
    let mut out = [0; 192];
    read_point(file, name, &mut out, [&[x1, x0], &[y1, y0], &[z1, z0]])?;
    Ok(out)
}

/// Reads x, y and z, each with its most significant part first, and writes x‖y to `out`.
fn read_point<const K: usize>(
    file: FileKind,
    name: &'static str,
    out: &mut [u8],
    parts: [&[&String; K]; 3],
) -> Result<(), FormatError> {
    // z is checked as text: in an affine point it is one, in the identity zero, and nothing else is written.
    let [xs, ys, zs] = parts;
    let is = |part: &[&String; K], low: &str| {
        part.iter()
            .rev()
            .enumerate()
            .all(|(i, text)| *text == if i == 0 { low } else { "0" })
    };
    if is(zs, "0") {
        if is(xs, "0") && is(ys, "1") {
            out[0] = INFINITY;
            return Ok(());
        }
        return Err(malformed(
            file,
            format!("{name} is neither a point nor the identity [0, 1, 0]"),
        ));
    }
    if !is(zs, "1") {
        return Err(malformed(
            file,
            format!("{name} is not affine: its third coordinate must be 1"),
        ));
    }
    for (index, (text, place)) in xs
        .iter()
        .chain(ys)
        .zip(out.chunks_exact_mut(COORDINATE))
        .enumerate()
    {
        let mut value = q_from_decimal(text).map_err(|error| match error {
            DecimalError::TooLarge => FormatError::NonCanonical {
                file,
                what: name,
                index: index as u64,
            },
            other => malformed(file, format!("a coordinate of {name}: {other}")),
        })?;
        value.reverse();
        place.copy_from_slice(&value);
    }
    Ok(())
}

pub(super) fn g1_to_json(file: FileKind, name: &'static str, point: &[u8; 96]) -> Result<RawG1, FormatError> {
    let [x, y] = coordinates::<2>(file, name, point)?;
    Ok(match point[0] {
        INFINITY => ["0", "1", "0"].map(str::to_owned),
        _ => [x, y, "1".to_owned()],
    })
}

pub(super) fn g2_to_json(
    file: FileKind,
    name: &'static str,
    point: &[u8; 192],
) -> Result<RawG2, FormatError> {
    let [x1, x0, y1, y0] = coordinates::<4>(file, name, point)?;
    Ok(match point[0] {
        INFINITY => [["0", "0"], ["1", "0"], ["0", "0"]].map(|pair| pair.map(str::to_owned)),
        _ => [[x0, x1], [y0, y1], ["1".to_owned(), "0".to_owned()]],
    })
}

/// The coordinates in decimal, in the order of the bytes. The identity must be encoded as `0x40` and zeros, and any
/// other flag makes a coordinate that isn't below q.
fn coordinates<const K: usize>(
    file: FileKind,
    name: &'static str,
    point: &[u8],
) -> Result<[String; K], FormatError> {
    let mut out = std::array::from_fn(|_| String::new());
    if let [INFINITY, rest @ ..] = point
        && rest.iter().all(|byte| *byte == 0)
    {
        return Ok(out);
    }
    let (chunks, _) = point.as_chunks::<COORDINATE>();
    for (index, (text, chunk)) in out.iter_mut().zip(chunks).enumerate() {
        let mut value = *chunk;
        value.reverse();
        if !is_canonical_q(&value) {
            return Err(FormatError::NonCanonical {
                file,
                what: name,
                index: index as u64,
            });
        }
        *text = to_decimal(&value);
    }
    Ok(out)
}
