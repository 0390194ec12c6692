//! Circuits and their imports.

use crate::codec;
use crate::event::{Event, What};
use crate::ids::Digest;
use crate::keys::{self, Family};
use crate::machine::{StepError, Transaction};
use crate::records::{Circuit, CircuitState, ImportState, Lease, SourceFiles, Subject};

pub(super) fn apply(tx: &mut Transaction<'_>, event: &Event) -> Result<(), StepError> {
    match &event.what {
        What::CircuitAdded {
            circuit,
            name,
            files,
            allow_unfinished,
            local_setup,
            facts,
            total,
            actor,
        } => {
            let record = Circuit {
                digest: *circuit,
                name: name.clone(),
                files: *files,
                allow_unfinished: *allow_unfinished,
                local_setup: *local_setup,
                facts: facts.clone(),
                state: CircuitState::Importing(ImportState {
                    done: 0,
                    total: *total,
                    token: None,
                    deaths: 0,
                }),
                vk: None,
                matrices: None,
                actor: actor.clone(),
                added_at: event.at,
                ready_at: None,
            };
            for object in objects(files) {
                tx.set(keys::circuit_reference(object, *circuit), Vec::new());
            }
            tx.set(keys::importing(*circuit), Vec::new());
            tx.set(keys::circuit_name(name), codec::digest(*circuit));
            tx.put(keys::circuit(*circuit), &record);
            Ok(())
        }
        What::CircuitNamed { name, circuit } => {
            tx.set(keys::circuit_name(name), codec::digest(*circuit));
            Ok(())
        }
        What::ImportStarted { circuit, process } => {
            let token = tx.token(event.boot, event.number, 0);
            tx.grant(&Lease {
                token,
                subject: Subject::Import { circuit: *circuit },
                process: Some(*process),
                worker: None,
                granted_at: event.at,
            });
            change(tx, *circuit, |import, local_setup| {
                import.token = Some(token);
                if local_setup {
                    // The key that an earlier try made, or half made, is not used: this one begins anew.
                    import.done = 0;
                }
            })
        }
        What::ImportProgressed { circuit, done, .. } => change(tx, *circuit, |import, local_setup| {
            import.done = *done;
            if !local_setup {
                // The next try goes on from here. One that begins anew could come as far and die each time.
                import.deaths = 0;
            }
        }),
        What::ImportInterrupted {
            token,
            circuit,
            crashed,
        } => {
            tx.end_lease(*token)?;
            change(tx, *circuit, |import, _| {
                import.token = None;
                import.deaths += u32::from(*crashed);
            })
        }
        What::ImportEnded {
            token,
            circuit,
            facts,
            zkey,
            vk,
            matrices,
        } => {
            tx.end_lease(*token)?;
            for object in zkey.iter().chain([vk, matrices]).copied() {
                tx.set(keys::circuit_reference(object, *circuit), Vec::new());
            }
            end(tx, *circuit, |record| {
                record.facts = facts.clone();
                record.files.zkey = zkey.or(record.files.zkey);
                record.vk = Some(*vk);
                record.matrices = Some(*matrices);
                record.ready_at = Some(event.at);
                record.state = CircuitState::Ready;
            })
        }
        What::ImportFailed {
            token,
            circuit,
            failure,
        } => {
            tx.end_lease(*token)?;
            end(tx, *circuit, |record| {
                record.state = CircuitState::Failed(failure.clone())
            })
        }
        What::CircuitRemoved { circuit, .. } => remove(tx, *circuit),
        _ => Ok(()),
    }
}

fn objects(files: &SourceFiles) -> impl Iterator<Item = Digest> {
    [files.r1cs, files.zkey, files.wasm, files.sym]
        .into_iter()
        .flatten()
}

/// Changes the state of an import; `change` also gets whether that makes its key.
fn change(
    tx: &mut Transaction<'_>,
    digest: Digest,
    change: impl FnOnce(&mut ImportState, bool),
) -> Result<(), StepError> {
    let mut circuit = tx.circuit(digest)?;
    if let CircuitState::Importing(import) = &mut circuit.state {
        change(import, circuit.local_setup);
        tx.put(keys::circuit(digest), &circuit);
    }
    Ok(())
}

fn end(tx: &mut Transaction<'_>, digest: Digest, change: impl FnOnce(&mut Circuit)) -> Result<(), StepError> {
    let mut circuit = tx.circuit(digest)?;
    change(&mut circuit);
    tx.delete(keys::importing(digest))?;
    tx.put(keys::circuit(digest), &circuit);
    Ok(())
}

fn remove(tx: &mut Transaction<'_>, digest: Digest) -> Result<(), StepError> {
    let circuit = tx.circuit(digest)?;
    if let CircuitState::Importing(ImportState {
        token: Some(token), ..
    }) = circuit.state
    {
        tx.end_lease(token)?;
    }
    for object in objects(&circuit.files).chain(circuit.vk).chain(circuit.matrices) {
        tx.delete(keys::circuit_reference(object, digest))?;
    }
    for (key, value) in tx.pairs(&keys::family(Family::CircuitName))? {
        if codec::read_digest(&value).is_ok_and(|named| named == digest) {
            tx.delete(key)?;
        }
    }
    tx.delete(keys::importing(digest))?;
    tx.delete(keys::circuit(digest))?;
    Ok(())
}
