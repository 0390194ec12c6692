//! Circuits: their state, their names, what they need.

use std::collections::BTreeSet;

use super::checker::Checker;
use super::{Invariant, Mode};
use crate::ids::Digest;
use crate::keys::{self, Family};
use crate::records::{Circuit, CircuitState, Lease, Subject};
use crate::view::ReadError;

pub(super) fn check(checker: &mut Checker<'_>, mode: Mode) -> Result<(), ReadError> {
    let circuits: Vec<Circuit> = checker.records(&keys::family(Family::Circuit))?;
    for circuit in &circuits {
        let key = keys::circuit(circuit.digest);
        let importing = matches!(circuit.state, CircuitState::Importing(_));
        let entry = keys::importing(circuit.digest);
        let there = checker.has(&entry)?;
        checker.find_if(
            importing != there,
            Invariant::Index,
            &entry,
            if importing {
                "it is missing"
            } else {
                "the circuit isn't importing"
            },
        );
        if let CircuitState::Importing(import) = circuit.state {
            let over = import.done > import.total;
            let text = format!("{} of {} units are done", import.done, import.total);
            checker.find_if(over, Invariant::Record, &key, text);
            if let Some(token) = import.token {
                let lease = checker.get::<Lease>(&keys::lease(token))?;
                let subject = Subject::Import {
                    circuit: circuit.digest,
                };
                let held = lease.is_some_and(|lease| lease.subject == subject);
                let text = format!("it is imported under lease {token}, which isn't in force for it");
                checker.find_if(!held, Invariant::Workers, &key, text);
            }
        }
        let usable = circuit.vk.is_some() && circuit.matrices.is_some() && circuit.ready_at.is_some();
        checker.find_if(
            circuit.state == CircuitState::Ready && !usable,
            Invariant::Record,
            &key,
            "it is ready and has no verification key or no matrices",
        );
        let made = circuit.local_setup && circuit.files.zkey.is_some();
        let text = if made {
            "it has a key that its import should make, and that hasn't ended"
        } else {
            "it is ready, and its import made no key"
        };
        let wrong = circuit.local_setup && made != (circuit.state == CircuitState::Ready);
        checker.find_if(wrong, Invariant::Record, &key, text);
        if mode == Mode::Full {
            references(checker, circuit)?;
        }
    }
    checker.walk(&keys::family(Family::Importing), |checker, key, _| {
        let circuit = [&[Family::Circuit as u8], &key[1..]].concat();
        let there = checker.has(&circuit)?;
        checker.find_if(!there, Invariant::Index, key, "there is no such circuit");
        Ok(())
    })?;
    checker.walk(&keys::family(Family::CircuitName), |checker, key, value| {
        let Some(digest) = checker.decode_digest(key, value) else {
            return Ok(());
        };
        let there = checker.has(&keys::circuit(digest))?;
        checker.find_if(
            !there,
            Invariant::Index,
            key,
            format!("it points to {digest}, which is not there"),
        );
        Ok(())
    })
}

/// The objects that a circuit needs.
pub(super) fn objects(circuit: &Circuit) -> BTreeSet<Digest> {
    let files = circuit.files;
    [
        files.r1cs,
        files.zkey,
        files.wasm,
        files.sym,
        circuit.vk,
        circuit.matrices,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn references(checker: &mut Checker<'_>, circuit: &Circuit) -> Result<(), ReadError> {
    for object in objects(circuit) {
        let key = keys::circuit_reference(object, circuit.digest);
        let there = checker.has(&key)?;
        checker.find_if(
            !there,
            Invariant::Index,
            &key,
            "it is missing, so the object could be swept",
        );
    }
    Ok(())
}
