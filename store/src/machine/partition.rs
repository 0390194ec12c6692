//! One partition, from the first grant to the stored proof.

use super::circuit::DEATHS_BEFORE_ALONE;
use super::end::end_and_settle;
use super::{ProofStored, Refusal, Reply, StepError, SynthEnd, Transaction, limits, stop};
use crate::event::What;
use crate::ids::{Digest, JobNumber, ProcessId, Token, WorkerId};
use crate::keys;
use crate::records::{
    Checkpoint, CircuitState, Device, DeviceState, Failure, FailureClass, Job, JobState, Lease, Partition,
    PartitionState, Piece, Stage, StoredProof, Subject, Worker, WorkerState,
};
use crate::view::ReadError;

/// The bytes of one proof: A and C compressed, 48 bytes each, and B, 96.
const PROOF_BYTES: usize = 192;

pub(super) fn synth_start(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    index: u32,
    process: ProcessId,
) -> Result<Reply, StepError> {
    tx.open_boot()?;
    let queue = tx.queue()?;
    if queue.paused || queue.draining {
        return Err(Refusal::Paused.into());
    }
    let job = tx.job(number)?;
    if !job.state.grants() {
        return Err(Refusal::JobState(job.state).into());
    }
    let partition = tx.partition(number, index)?;
    if partition.state != PartitionState::Ready {
        return Err(Refusal::PartitionState(partition.state).into());
    }
    check_circuit(tx, &job)?;
    let device = device_of(tx, process)?;
    check_room(tx, &device, process, &partition)?;
    let token = tx.next_token(index);
    let attempt = partition.attempts + 1;
    tx.emit(
        Some(number),
        What::SynthStarted {
            partition: index,
            attempt,
            process,
            device: device.name,
            ticket_bytes: job.ticket_bytes,
        },
    )?;
    Ok(Reply::Granted { token, attempt })
}

fn check_circuit(tx: &Transaction<'_>, job: &Job) -> Result<(), StepError> {
    let Some(digest) = job.circuit else { return Ok(()) };
    match tx.circuit(digest)?.state {
        CircuitState::Ready => Ok(()),
        CircuitState::Importing(_) => Err(Refusal::CircuitNotReady.into()),
        CircuitState::Failed(failure) => Err(Refusal::CircuitFailed(failure.detail).into()),
    }
}

/// The device whose live process this is, if it takes work.
fn device_of(tx: &Transaction<'_>, process: ProcessId) -> Result<Device, StepError> {
    let devices: Vec<Device> = tx.records(&keys::family(keys::Family::Device))?;
    let device = devices
        .into_iter()
        .find(|device| device.process == Some(process))
        .ok_or_else(|| Refusal::UnknownDevice(format!("worker process {process}")))?;
    match device.state {
        DeviceState::Up => Ok(device),
        DeviceState::Suspended { .. } => Err(Refusal::SlotTaken.into()),
    }
}

/// At most two partitions a slot are ahead of a device, and who must run alone does.
fn check_room(
    tx: &Transaction<'_>,
    device: &Device,
    process: ProcessId,
    partition: &Partition,
) -> Result<(), StepError> {
    let open = check_neighbours(tx, process, partition.alone)?;
    // Whatever is open ends in one transaction when the process or the daemon dies.
    if open.len() >= 4 * device.slots as usize {
        return Err(Refusal::EnoughAhead.into());
    }
    let ahead = open
        .iter()
        .filter(|other| {
            matches!(
                other.state,
                PartitionState::Synthesizing | PartitionState::Synthesized
            )
        })
        .count();
    if ahead >= 2 * device.slots as usize {
        return Err(Refusal::EnoughAhead.into());
    }
    Ok(())
}

/// The open partitions of a process, refused if one of them, an import there or the newcomer must run alone.
pub(super) fn check_neighbours(
    tx: &Transaction<'_>,
    process: ProcessId,
    alone: bool,
) -> Result<Vec<Partition>, StepError> {
    let mut open = tx.open_partitions()?;
    open.retain(|other| other.process == Some(process));
    let mut crowded = open.iter().any(|other| other.alone) || (alone && !open.is_empty());
    for lease in tx.leases()? {
        if let Subject::Import { circuit } = lease.subject
            && lease.process == Some(process)
        {
            let state = tx.circuit(circuit)?.state;
            crowded |= alone
                || matches!(state, CircuitState::Importing(import) if import.deaths >= DEATHS_BEFORE_ALONE);
        }
    }
    if crowded {
        return Err(Refusal::MustRunAlone.into());
    }
    Ok(open)
}

/// The job and partition of a lease in force, if it is in `stage`; a lease that is in force in another stage is a
/// refusal, one that isn't in force is `None`.
fn current(
    tx: &Transaction<'_>,
    token: Token,
    stage: Option<Stage>,
) -> Result<Option<(Job, Partition, Lease)>, StepError> {
    let Some(lease) = tx.lease(token)? else {
        return Ok(None);
    };
    let Subject::Partition { stage: held, .. } = lease.subject else {
        return Ok(None);
    };
    let Some((job, partition)) = tx.leased_partition(&lease)? else {
        return Ok(None);
    };
    if partition.token != Some(token) {
        return Ok(None);
    }
    match stage {
        Some(stage) if stage != held => Err(Refusal::WrongStage(held).into()),
        _ => Ok(Some((job, partition, lease))),
    }
}

pub(super) fn synth_end(tx: &mut Transaction<'_>, end: &SynthEnd) -> Result<Reply, StepError> {
    let Some((job, partition, _)) = current(tx, end.token, Some(Stage::Synth))? else {
        return tx.stale(end.token, "synth_end");
    };
    if let JobState::Stopping(_) = job.state {
        let failure = Failure::new(
            FailureClass::Cancelled,
            "the job was stopped before it was proved",
        );
        end_and_settle(tx, &partition, failure, false, None)?;
        return Ok(Reply::Done);
    }
    keep_object(tx, job.number, end.public);
    tx.emit(
        Some(job.number),
        What::SynthEnded {
            token: end.token,
            partition: partition.index,
            synth_ms: end.synth_ms,
            witness: end.witness,
            public: end.public,
        },
    )?;
    Ok(Reply::Done)
}

fn keep_object(tx: &mut Transaction<'_>, job: JobNumber, object: Digest) {
    tx.set(keys::reference(object, job), Vec::new());
    tx.set(keys::needs(job, object), Vec::new());
}

pub(super) fn give_back(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    index: u32,
    attempt: u32,
) -> Result<Reply, StepError> {
    let partition = tx.partition(number, index)?;
    if partition.state != PartitionState::Synthesized || partition.attempts != attempt {
        return Err(Refusal::PartitionState(partition.state).into());
    }
    let failure = Failure::new(
        FailureClass::Preempted,
        "a more urgent partition needed its memory",
    );
    end_and_settle(tx, &partition, failure, false, None)?;
    Ok(Reply::Done)
}

pub(super) fn gpu_start(
    tx: &mut Transaction<'_>,
    number: JobNumber,
    index: u32,
    attempt: u32,
    worker: WorkerId,
) -> Result<Reply, StepError> {
    tx.open_boot()?;
    let job = tx.job(number)?;
    if !job.state.grants() {
        return Err(Refusal::JobState(job.state).into());
    }
    let partition = tx.partition(number, index)?;
    if partition.state != PartitionState::Synthesized || partition.attempts != attempt {
        return Err(Refusal::PartitionState(partition.state).into());
    }
    let slot: Worker = tx
        .record(&keys::worker(worker))?
        .ok_or_else(|| Refusal::UnknownDevice(format!("worker {worker}")))?;
    let device = tx.device(&slot.device)?;
    let free = slot.state == WorkerState::Idle && device.state == DeviceState::Up;
    if !free || device.process.is_none() || device.process != partition.process {
        return Err(Refusal::SlotTaken.into());
    }
    let token = tx.next_token(index);
    tx.emit(
        Some(number),
        What::ProveStarted {
            partition: index,
            worker,
        },
    )?;
    Ok(Reply::Granted { token, attempt })
}

pub(super) fn checkpoint(
    tx: &mut Transaction<'_>,
    token: Token,
    witness: Digest,
    key: Digest,
    pieces: &[Piece],
) -> Result<Reply, StepError> {
    let Some((job, partition, _)) = current(tx, token, Some(Stage::Prove))? else {
        return tx.stale(token, "checkpoint");
    };
    if !job.state.grants() {
        return Ok(Reply::Unchanged);
    }
    let made = tx.last_attempt(&partition)?.and_then(|attempt| attempt.witness);
    if made != Some(witness) {
        return Err(Refusal::OutOfLimits {
            field: "witness",
            expected: made.map_or_else(|| "none".to_owned(), |made| made.to_string()),
            found: witness.to_string(),
        }
        .into());
    }
    let at = keys::checkpoint(job.number, partition.index);
    let kept = match tx.record::<Checkpoint>(&at) {
        // A damaged one is worth nothing, and is overwritten.
        Err(ReadError::Damaged { .. }) => None,
        kept => kept?,
    };
    let mut record = kept
        .filter(|record| record.witness == witness && record.key == key)
        .unwrap_or(Checkpoint {
            job: job.number,
            partition: partition.index,
            witness,
            key,
            pieces: Vec::new(),
        });
    let new: Vec<&Piece> = pieces
        .iter()
        .filter(|piece| {
            !record
                .pieces
                .iter()
                .any(|old| old.name == piece.name && old.bytes == piece.bytes)
        })
        .collect();
    if new.is_empty() {
        return Ok(Reply::Unchanged);
    }
    check_pieces(&record, &new)?;
    // Only what was never there counts as progress; a piece that was made again is none.
    let names = new
        .iter()
        .filter(|piece| !record.pieces.iter().any(|old| old.name == piece.name))
        .map(|piece| (piece.name.clone(), piece.millis))
        .collect();
    for piece in new {
        record.pieces.retain(|old| old.name != piece.name);
        record.pieces.push(Piece {
            attempt: partition.attempts,
            ..piece.clone()
        });
    }
    tx.put(at, &record);
    tx.emit(
        Some(job.number),
        What::Checkpointed {
            token,
            partition: partition.index,
            witness,
            key,
            pieces: names,
        },
    )?;
    Ok(Reply::Done)
}

/// One record must stay small: few pieces, short names, a point each.
fn check_pieces(record: &Checkpoint, new: &[&Piece]) -> Result<(), Refusal> {
    let kept = record
        .pieces
        .iter()
        .filter(|old| !new.iter().any(|piece| piece.name == old.name));
    let all: Vec<&str> = kept
        .map(|piece| piece.name.as_str())
        .chain(new.iter().map(|piece| piece.name.as_str()))
        .collect();
    limits::piece_names(all.iter().copied())?;
    match new.iter().find(|piece| piece.bytes.len() > PROOF_BYTES) {
        Some(piece) => Err(Refusal::OutOfLimits {
            field: "pieces",
            expected: format!("at most {PROOF_BYTES} bytes each"),
            found: format!("{} bytes", piece.bytes.len()),
        }),
        None => Ok(()),
    }
}

pub(super) fn gpu_end(
    tx: &mut Transaction<'_>,
    token: Token,
    gpu_ms: u64,
    reused: &[String],
    saved_ms: u64,
) -> Result<Reply, StepError> {
    let found = match current(tx, token, Some(Stage::Prove)) {
        // The same word twice: the first one was heard.
        Err(StepError::Refused(Refusal::WrongStage(Stage::Finish))) => return Ok(Reply::Unchanged),
        found => found?,
    };
    let found = if tx.rules.end_names_its_lease {
        found
    } else {
        found.or(any_on_its_worker(tx, token)?)
    };
    let Some((job, partition, lease)) = found else {
        return tx.stale(token, "gpu_end");
    };
    let holds = match lease.worker {
        Some(id) => tx.record::<Worker>(&keys::worker(id))?.is_some_and(
            |worker| matches!(worker.state, WorkerState::Busy { token: held, .. } if held == token),
        ),
        None => false,
    };
    if !holds && tx.rules.end_names_its_lease {
        return tx.stale(token, "gpu_end");
    }
    tx.emit(
        Some(job.number),
        What::ProveEnded {
            token,
            partition: partition.index,
            gpu_ms,
            reused: limits::cut_names(reused),
            saved_ms,
        },
    )?;
    Ok(Reply::Done)
}

/// Only for the machine that forgets R1: a late end taken for the end of whatever the first busy worker holds now.
fn any_on_its_worker(
    tx: &Transaction<'_>,
    late: Token,
) -> Result<Option<(Job, Partition, Lease)>, StepError> {
    for worker in tx.records::<Worker>(&keys::family(keys::Family::Worker))? {
        if let WorkerState::Busy { token, .. } = worker.state
            && token != late
            && let Some(found) = current(tx, token, None)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub(super) fn proof_stored(tx: &mut Transaction<'_>, stored: &ProofStored) -> Result<Reply, StepError> {
    let token = stored.token;
    let Some((job, partition, _)) = current(tx, token, Some(Stage::Finish))? else {
        return tx.stale(token, "proof_stored");
    };
    if stored.bytes.len() != PROOF_BYTES {
        return Err(Refusal::OutOfLimits {
            field: "proof",
            expected: format!("{PROOF_BYTES} bytes"),
            found: format!("{} bytes", stored.bytes.len()),
        }
        .into());
    }
    let attempt = tx.last_attempt(&partition)?;
    let Some(public) = attempt.and_then(|attempt| attempt.public) else {
        return Err(Refusal::PartitionState(partition.state).into());
    };
    let digest = Digest::of(&stored.bytes);
    let record = StoredProof {
        job: job.number,
        partition: partition.index,
        attempt: partition.attempts,
        digest,
        bytes: stored.bytes.clone(),
        public,
        stored_at: tx.context.now,
    };
    tx.put(keys::proof(job.number, partition.index), &record);
    tx.emit(
        Some(job.number),
        What::ProofStored {
            token,
            partition: partition.index,
            digest,
            process_peak_bytes: stored.process_peak_bytes,
        },
    )?;
    stop::settle(tx, job.number)?;
    Ok(Reply::Done)
}

pub(super) fn attempt_failed(
    tx: &mut Transaction<'_>,
    token: Token,
    failure: &Failure,
    process_peak_bytes: Option<u64>,
) -> Result<Reply, StepError> {
    let Some((job, partition, _)) = current(tx, token, None)? else {
        return tx.stale(token, "attempt_failed");
    };
    if !tx.rules.failure_is_not_success && partition.state == PartitionState::Finishing {
        let event = What::ProofStored {
            token,
            partition: partition.index,
            digest: Digest::of(&[]),
            process_peak_bytes,
        };
        tx.emit(Some(job.number), event)?;
        return Ok(Reply::Done);
    }
    end_and_settle(tx, &partition, failure.clone(), false, process_peak_bytes)?;
    Ok(Reply::Done)
}
