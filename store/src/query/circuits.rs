//! Circuits, by digest and by name.

use crate::codec;
use crate::ids::Digest;
use crate::keys::{self, Family};
use crate::records::Circuit;
use crate::view::{self, ReadError, View};

/// A page of circuits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitPage {
    /// In the order of their names, each with the circuit that the name points to.
    pub circuits: Vec<(String, Circuit)>,
    /// The name to go on after, when there may be more.
    pub next: Option<String>,
}

/// Up to `limit` names after `after`, each with the circuit it points to.
///
/// # Errors
/// When the store can't be read.
pub fn circuits(view: &dyn View, after: Option<&str>, limit: usize) -> Result<CircuitPage, ReadError> {
    let after = after.map(keys::circuit_name);
    let page = view.scan(&keys::family(Family::CircuitName), after.as_deref(), limit)?;
    let mut circuits = Vec::with_capacity(page.len());
    let mut last = None;
    for (key, _) in &page {
        let name = String::from_utf8_lossy(&key[1..]).into_owned();
        if let Some(circuit) = circuit_by_name(view, &name)? {
            circuits.push((name.clone(), circuit));
        }
        last = Some(name);
    }
    Ok(CircuitPage {
        circuits,
        next: last.filter(|_| page.len() == limit),
    })
}

/// The circuit with this digest.
///
/// # Errors
/// When the store can't be read.
pub fn circuit(view: &dyn View, digest: Digest) -> Result<Option<Circuit>, ReadError> {
    view::record(view, &keys::circuit(digest))
}

/// The circuit that `name` points to.
///
/// # Errors
/// When the store can't be read.
pub fn circuit_by_name(view: &dyn View, name: &str) -> Result<Option<Circuit>, ReadError> {
    let key = keys::circuit_name(name);
    let Some(value) = view.get(&key)? else {
        return Ok(None);
    };
    let digest = codec::read_digest(&value).map_err(|damage| ReadError::damaged(&key, damage))?;
    circuit(view, digest)
}

/// The circuits that a filter by `name` means: the one that the name points to, and those that it pointed to before,
/// as far as they were first registered under it.
///
/// # Errors
/// When the store can't be read.
pub fn circuits_named(view: &dyn View, name: &str) -> Result<Vec<Digest>, ReadError> {
    let mut digests = Vec::new();
    digests.extend(circuit_by_name(view, name)?.map(|circuit| circuit.digest));
    for circuit in view::records::<Circuit>(view, &keys::family(Family::Circuit))? {
        if circuit.name == name && !digests.contains(&circuit.digest) {
            digests.push(circuit.digest);
        }
    }
    Ok(digests)
}
