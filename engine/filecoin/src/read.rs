//! A request's fields and files: what it proves, and each partition's vanilla proofs, all of it checked.

use std::io::Read as _;

use proofkeep_engine::kinds::Desk;
use proofkeep_engine::problem::Problem;
use proofkeep_store::ids::Digest;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::invalid::Invalid;
use crate::porep::Asked;
use crate::post::Post;
use crate::shape::with_tree;
use crate::snap::Update;
use crate::statement::Statement;
use crate::{encoding, porep, post, room, snap};

/// The most bytes of vanilla proofs that a request may name; a PoRep of 64 GiB has 60 MB.
const MOST_INPUT: u64 = 1 << 30;

/// Reads and checks a request of a kind; answers what it proves and each partition's vanilla proofs in bincode.
///
/// # Errors
/// With the first place that is wrong.
pub fn statement(
    kind: &str,
    fields: &mut Map<String, Value>,
    desk: &dyn Desk,
) -> Result<(Statement, Vec<Vec<u8>>), Problem> {
    match kind {
        "porep-c2" => commit(fields, desk),
        "snap-update" => update(fields, desk),
        kind => sectors(kind == "winning-post", fields, desk),
    }
}

fn commit(fields: &mut Map<String, Value>, desk: &dyn Desk) -> Result<(Statement, Vec<Vec<u8>>), Problem> {
    let asked = Asked::take(fields)?;
    let bytes = match blobs(fields, porep::PROOF, desk)? {
        Blobs::One(bytes) => bytes,
        Blobs::Each(_) => {
            let expected = "the digest of C1's output";
            return Err(Invalid::new("bad-field", porep::PROOF, expected, "an array").into());
        }
    };
    let size = asked.sector_size(&bytes)?;
    room::check("porep-c2", size, asked.partitions(), desk)?;
    with_tree!(size, Tree => {
        let (commit, partitions) = asked.read::<Tree>(&bytes)?;
        let inputs = each(porep::PROOF, &partitions)?;
        Ok((Statement::Porep(Box::new(commit)), inputs))
    })
}

fn update(fields: &mut Map<String, Value>, desk: &dyn Desk) -> Result<(Statement, Vec<Vec<u8>>), Problem> {
    let update = Update::take(fields)?;
    let blobs = blobs(fields, snap::PROOFS, desk)?;
    let inputs = with_tree!(update.size, Tree => {
        let partitions = match blobs {
            Blobs::One(bytes) => update.read::<Tree>(&bytes)?,
            Blobs::Each(each) => update.read_each::<Tree>(&each)?,
        };
        each(snap::PROOFS, &partitions)?
    });
    Ok((Statement::Update(Box::new(update)), inputs))
}

fn sectors(
    winning: bool,
    fields: &mut Map<String, Value>,
    desk: &dyn Desk,
) -> Result<(Statement, Vec<Vec<u8>>), Problem> {
    let post = Post::take(fields, winning)?;
    let blobs = blobs(fields, post::PROOFS, desk)?;
    let (mut sectors, mut inputs) = (Vec::new(), Vec::new());
    with_tree!(post.config.sector_size.into(), Tree => {
        let partitions = match blobs {
            Blobs::One(bytes) => post.read::<Tree>(&bytes)?,
            Blobs::Each(each) => post.read_each::<Tree>(&each)?,
        };
        for partition in &partitions {
            for sector in &partition.sectors {
                let comm_r: &[u8] = sector.comm_r.as_ref();
                let comm_r = comm_r.try_into().unwrap_or([0; 32]);
                sectors.push((sector.sector_id.into(), comm_r));
            }
            inputs.push(encoding::to_bincode(post::PROOFS, &partition.sectors)?);
        }
    });
    let post = Box::new(post);
    Ok((Statement::Post { post, sectors }, inputs))
}

/// Each partition's in bincode.
fn each<T: Serialize>(field: &str, partitions: &[T]) -> Result<Vec<Vec<u8>>, Invalid> {
    partitions
        .iter()
        .map(|one| encoding::to_bincode(field, one))
        .collect()
}

/// The files that a request names.
enum Blobs {
    /// All proofs in one.
    One(Vec<u8>),
    /// One proof each.
    Each(Vec<Vec<u8>>),
}

fn blobs(fields: &mut Map<String, Value>, field: &str, desk: &dyn Desk) -> Result<Blobs, Problem> {
    let expected = "the digest of an uploaded file, \"sha256:\" and 64 hex digits, or an array of them";
    let mut left = MOST_INPUT;
    match fields.remove(field) {
        Some(Value::Array(each)) => {
            let read = |(index, one): (usize, &Value)| {
                let place = format!("{field}[{index}]");
                blob(&place, one, desk, &mut left)
            };
            let all = each.iter().enumerate().map(read).collect::<Result<_, _>>()?;
            Ok(Blobs::Each(all))
        }
        Some(one @ Value::String(_)) => Ok(Blobs::One(blob(field, &one, desk, &mut left)?)),
        other => Err(Invalid::field(field, expected, other.as_ref()).into()),
    }
}

fn blob(field: &str, value: &Value, desk: &dyn Desk, left: &mut u64) -> Result<Vec<u8>, Problem> {
    let text = value.as_str().filter(|text| text.starts_with("sha256:"));
    let digest = text
        .and_then(Digest::parse)
        .ok_or_else(|| Invalid::field(field, "\"sha256:\" and 64 hex digits", Some(value)))?;
    let size = desk.size(digest).ok_or_else(|| {
        let detail =
            format!("{field}: there is no object {digest}; upload it with PUT /v1/blobs/{digest} first");
        Problem::input("blob-missing", detail).with("missing", serde_json::json!([digest.to_string()]))
    })?;
    if size > *left {
        let detail = format!("{field}: expected at most {MOST_INPUT} bytes of vanilla proofs, found more");
        return Err(Problem::new(413, "too-large", "the request is too large", detail));
    }
    *left -= size;
    let mut bytes = Vec::new();
    desk.open(digest)?
        .take(size)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            let detail = format!("{field}: reading failed: {error}");
            Problem::new(500, "io", "a file can't be read", detail).retryable()
        })?;
    Ok(bytes)
}
