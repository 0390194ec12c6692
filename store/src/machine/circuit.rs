//! Circuits: registered, imported, removed.

use super::{CircuitAdd, Refusal, Reply, StepError, Transaction, limits, partition};
use crate::event::What;
use crate::ids::{Digest, ProcessId, Token};
use crate::keys::{self, Family};
use crate::records::{
    Circuit, CircuitFacts, CircuitState, Device, Failure, FailureClass, ImportState, SourceFiles, Subject,
};

/// Worker processes that may die by their own fault importing one circuit, in a row, before it is refused.
const IMPORT_DEATHS: u32 = 3;

/// Deaths after which an import shares its process with nobody, so that the last one was its own doing.
pub(super) const DEATHS_BEFORE_ALONE: u32 = 2;

pub(super) fn add(tx: &mut Transaction<'_>, add: &CircuitAdd) -> Result<Reply, StepError> {
    limits::actor(&add.actor)?;
    limits::facts(&add.facts)?;
    let visible = add
        .name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if add.name.is_empty() || add.name.len() > 64 || !visible {
        return Err(Refusal::OutOfLimits {
            field: "name",
            expected: "1 to 64 letters, digits, dots, dashes or underscores".to_owned(),
            found: format!("{:?}", add.name),
        }
        .into());
    }
    if add.local_setup && (add.files.zkey.is_some() || add.files.r1cs.is_none()) {
        return Err(Refusal::OutOfLimits {
            field: "files",
            expected: "a .r1cs and no .zkey, since the key is to be made".to_owned(),
            found: "other files".to_owned(),
        }
        .into());
    }
    let circuit = match add.local_setup {
        true => made_before(tx, add)?.unwrap_or(add.circuit),
        false => add.circuit,
    };
    let named = tx.digest_at(&keys::circuit_name(&add.name))?;
    let there = tx.record::<Circuit>(&keys::circuit(circuit))?;
    let usable = there
        .as_ref()
        .is_some_and(|there| !matches!(there.state, CircuitState::Failed(_)));
    match named {
        Some(other) if other != circuit && !add.replace => return Err(Refusal::NameTaken(other).into()),
        Some(other) if other == circuit && usable => return Ok(Reply::Unchanged),
        _ => {}
    }
    if usable {
        tx.emit(
            None,
            What::CircuitNamed {
                name: add.name.clone(),
                circuit,
            },
        )?;
        return Ok(Reply::Done);
    }
    tx.emit(
        None,
        What::CircuitAdded {
            circuit,
            name: add.name.clone(),
            files: add.files,
            allow_unfinished: add.allow_unfinished,
            local_setup: add.local_setup,
            facts: add.facts.clone(),
            total: add.total,
            actor: add.actor.clone(),
        },
    )?;
    Ok(Reply::Done)
}

/// The circuit with these very files whose key is, or was, made here: asked for again it is the same one, with the same
/// key. One that failed never got a key, so it may be tried again under its digest.
fn made_before(tx: &Transaction<'_>, add: &CircuitAdd) -> Result<Option<Digest>, StepError> {
    let circuits: Vec<Circuit> = tx.records(&keys::family(Family::Circuit))?;
    let same = |there: &&Circuit| {
        let files = SourceFiles {
            zkey: None,
            ..there.files
        };
        there.local_setup && files == add.files
    };
    Ok(circuits.iter().find(same).map(|there| there.digest))
}

pub(super) fn remove(tx: &mut Transaction<'_>, digest: Digest, actor: &str) -> Result<Reply, StepError> {
    limits::actor(actor)?;
    let circuit = tx.circuit(digest)?;
    let mut jobs = 0;
    for key in tx.pairs(&keys::family(Family::Active))?.keys() {
        if let Some(number) = keys::parse_job(key)
            && tx.job(number)?.circuit == Some(digest)
        {
            jobs += 1;
        }
    }
    if jobs > 0 {
        return Err(Refusal::CircuitInUse { jobs }.into());
    }
    if let CircuitState::Importing(import) = circuit.state
        && import.token.is_some()
    {
        let (done, total) = (import.done, import.total);
        return Err(Refusal::ImportUnderWay { done, total }.into());
    }
    tx.emit(
        None,
        What::CircuitRemoved {
            circuit: digest,
            actor: actor.to_owned(),
        },
    )?;
    Ok(Reply::Done)
}

pub(super) fn import_start(
    tx: &mut Transaction<'_>,
    digest: Digest,
    process: ProcessId,
) -> Result<Reply, StepError> {
    let circuit = tx.circuit(digest)?;
    let CircuitState::Importing(import) = circuit.state else {
        return Ok(Reply::Unchanged);
    };
    if import.token.is_some() {
        return Ok(Reply::Unchanged);
    }
    tx.open_boot()?;
    let devices: Vec<Device> = tx.records(&keys::family(Family::Device))?;
    if !devices.iter().any(|device| device.process == Some(process)) {
        return Err(Refusal::UnknownDevice(format!("worker process {process}")).into());
    }
    partition::check_neighbours(tx, process, import.deaths >= DEATHS_BEFORE_ALONE)?;
    tx.check_side_leases()?;
    let token = tx.next_token(0);
    tx.emit(
        None,
        What::ImportStarted {
            circuit: digest,
            process,
        },
    )?;
    if import.deaths >= IMPORT_DEATHS {
        let failure = Failure::coded(
            FailureClass::CircuitFailed,
            "crashes-its-worker",
            format!(
                "its import crashed {} worker processes in a row; check the files",
                import.deaths
            ),
        );
        tx.emit(
            None,
            What::ImportFailed {
                token,
                circuit: digest,
                failure,
            },
        )?;
        return Ok(Reply::Done);
    }
    Ok(Reply::Granted { token, attempt: 0 })
}

/// The circuit whose import holds the lease.
fn current(tx: &Transaction<'_>, token: Token) -> Result<Option<(Circuit, ImportState)>, StepError> {
    let Some(Subject::Import { circuit }) = tx.lease(token)?.map(|lease| lease.subject) else {
        return Ok(None);
    };
    let circuit = tx.circuit(circuit)?;
    match circuit.state {
        CircuitState::Importing(import) if import.token == Some(token) => Ok(Some((circuit, import))),
        _ => Ok(None),
    }
}

pub(super) fn import_progress(tx: &mut Transaction<'_>, token: Token, done: u64) -> Result<Reply, StepError> {
    let Some((circuit, import)) = current(tx, token)? else {
        return tx.stale(token, "import_progress");
    };
    // An import that makes its key begins anew when it is sent again, so it may fall back.
    let moves = match circuit.local_setup {
        true => done != import.done,
        false => done > import.done,
    };
    if !moves || done > import.total {
        return Ok(Reply::Unchanged);
    }
    let circuit = circuit.digest;
    tx.emit(None, What::ImportProgressed { token, circuit, done })?;
    Ok(Reply::Done)
}

pub(super) fn import_end(
    tx: &mut Transaction<'_>,
    token: Token,
    facts: &CircuitFacts,
    zkey: Option<Digest>,
    [vk, matrices]: [Digest; 2],
) -> Result<Reply, StepError> {
    let Some((circuit, _)) = current(tx, token)? else {
        return tx.stale(token, "import_end");
    };
    limits::facts(facts)?;
    if circuit.local_setup != zkey.is_some() {
        let (expected, found) = match zkey {
            Some(made) => ("none, since the circuit came with its key", made.to_string()),
            None => ("the key that the import made", "nothing".to_owned()),
        };
        return Err(Refusal::OutOfLimits {
            field: "zkey",
            expected: expected.to_owned(),
            found,
        }
        .into());
    }
    tx.emit(
        None,
        What::ImportEnded {
            token,
            circuit: circuit.digest,
            facts: facts.clone(),
            zkey,
            vk,
            matrices,
        },
    )?;
    Ok(Reply::Done)
}

pub(super) fn import_failed(
    tx: &mut Transaction<'_>,
    token: Token,
    failure: &Failure,
) -> Result<Reply, StepError> {
    let Some((circuit, _)) = current(tx, token)? else {
        return tx.stale(token, "import_failed");
    };
    tx.emit(
        None,
        What::ImportFailed {
            token,
            circuit: circuit.digest,
            failure: limits::cut(failure),
        },
    )?;
    Ok(Reply::Done)
}
