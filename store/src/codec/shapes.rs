//! The live types and their frozen shapes of the latest schema, name by name.

use proofkeep_migrations::latest as frozen;

use super::mirror::{Mirror, mirror_enum, mirror_struct};
use crate::event::{AttemptEnd, Event, Next, Submitted, What};
use crate::ids::{ProcessId, Token};
use crate::records::{
    Attempt, AttemptRef, Boot, BootEnd, Checkpoint, Circuit, CircuitFacts, CircuitState, Device, DeviceState,
    Failure, FailureClass, Generation, ImportState, Job, JobState, LastWork, Lease, OnFailure, Outcome,
    Partition, PartitionState, Piece, Poison, Priority, Queue, SourceFiles, Stage, StopTarget, StoredProof,
    Subject, Tally, Worker, WorkerState,
};

mirror_struct!(Token { boot, grant });
mirror_struct!(ProcessId { boot, spawn });
mirror_enum!(FailureClass {
    InputInvalid,
    Unsatisfied,
    ParamsMismatch,
    InputMissing,
    CircuitFailed,
    JoinInvalid,
    OutOfMemory,
    DeviceError,
    InvalidProof,
    TimedOut,
    Stalled,
    Interrupted,
    Shutdown,
    DeviceUnavailable,
    Preempted,
    Poison,
    Cancelled,
});
mirror_struct!(Failure { class, code, detail });
mirror_enum!(Stage { Synth, Prove, Finish });
mirror_enum!(Subject {
    Partition { job, partition, stage },
    Verify { job },
    Import { circuit },
});
mirror_struct!(Lease {
    token,
    subject,
    process,
    worker,
    granted_at
});
mirror_enum!(BootEnd { Clean, Crashed });
mirror_struct!(Boot {
    number,
    version,
    started_at,
    ended,
    spawns,
    interrupted
});
mirror_struct!(Queue { paused, draining });
mirror_enum!(WorkerState {
    Idle,
    Busy { token, job, partition, since },
});
mirror_struct!(LastWork {
    job,
    partition,
    outcome,
    at
});
mirror_struct!(Worker {
    id,
    device,
    slot,
    state,
    last
});
mirror_enum!(DeviceState {
    Up,
    Suspended { until, reason },
});
mirror_struct!(Device {
    name,
    slots,
    state,
    process
});
mirror_struct!(SourceFiles {
    r1cs,
    zkey,
    wasm,
    sym
});
mirror_struct!(CircuitFacts {
    constraints,
    wires,
    public,
    domain_log2,
    key_bytes,
    insecure,
    setup
});
mirror_struct!(ImportState {
    done,
    total,
    token,
    deaths
});
mirror_enum!(CircuitState { Importing(inner), Ready, Failed(inner) });
mirror_struct!(Circuit {
    digest,
    name,
    files,
    allow_unfinished,
    local_setup,
    facts,
    state,
    vk,
    matrices,
    actor,
    added_at,
    ready_at
});
mirror_enum!(Priority {
    Low,
    Normal,
    High,
    Critical
});
mirror_enum!(OnFailure { Continue, Stop });
mirror_enum!(StopTarget {
    Cancelled,
    Failed,
    Expired
});
mirror_enum!(JobState {
    Queued,
    Running,
    Verifying,
    Stopping(inner),
    Succeeded,
    Failed,
    Cancelled,
    Expired,
});
mirror_struct!(Tally {
    proved,
    failed,
    cancelled,
    leases
});
mirror_struct!(Job {
    number,
    id,
    kind,
    circuit,
    request,
    request_inline,
    idempotency_key,
    actor,
    labels,
    priority,
    max_attempts,
    on_failure,
    partitions,
    ticket_bytes,
    deadline,
    created_at,
    generation,
    state,
    tally,
    verifying,
    journal
});
mirror_struct!(Generation {
    job,
    number,
    actor,
    opened_at,
    opened_in,
    started_at,
    ended_at,
    ended,
    failure
});
mirror_enum!(PartitionState {
    Ready,
    Waiting,
    Synthesizing,
    Synthesized,
    Proving,
    Finishing,
    Proved,
    Failed,
    Cancelled,
});
mirror_struct!(Poison {
    stage,
    deaths,
    deaths_alone
});
mirror_struct!(Partition {
    job,
    index,
    state,
    attempts,
    counted,
    token,
    process,
    worker,
    wake_at,
    alone,
    out_of_memory,
    poison,
    avoid_device,
    recheck,
    failure
});
mirror_struct!(Piece {
    name,
    bytes,
    millis,
    attempt
});
mirror_struct!(Checkpoint {
    job,
    partition,
    witness,
    key,
    pieces
});
mirror_struct!(StoredProof {
    job,
    partition,
    attempt,
    digest,
    bytes,
    public,
    stored_at
});
mirror_struct!(AttemptRef {
    job,
    partition,
    number
});
mirror_enum!(Outcome { Ok, Ended(inner) });
mirror_struct!(Attempt {
    of,
    generation,
    opened_in,
    closed_in,
    process,
    device,
    worker,
    stage,
    outcome,
    started_at,
    ended_at,
    synth_ms,
    gpu_started_at,
    gpu_ms,
    ticket_bytes,
    process_peak_bytes,
    witness,
    public,
    reused,
    saved_ms
});
mirror_struct!(Event {
    number,
    boot,
    at,
    job,
    what
});
mirror_enum!(Next { Ready, Waiting(inner), Failed, Cancelled });
mirror_struct!(AttemptEnd {
    partition,
    attempt,
    failure,
    next,
    counted,
    crashed,
    alone,
    drop_checkpoints,
    process_peak_bytes
});
mirror_struct!(Submitted {
    id,
    kind,
    circuit,
    request,
    request_inline,
    idempotency_key,
    actor,
    labels,
    priority,
    max_attempts,
    on_failure,
    partitions,
    ticket_bytes,
    deadline
});
mirror_enum!(What {
    Submitted(inner),
    Stopping { target, actor, failure },
    Ended { state },
    Retried { generation, actor, request, request_inline, replaced },
    VerifyStarted,
    VerifyPassed { token },
    VerifyRefused { token, partitions },
    JoinRefused { token, failure },
    VerifyDropped { token },
    SynthStarted { partition, attempt, process, device, ticket_bytes },
    SynthEnded { token, partition, synth_ms, witness, public },
    ProveStarted { partition, worker },
    Checkpointed { token, partition, witness, key, pieces },
    ProveEnded { token, partition, gpu_ms, reused, saved_ms },
    ProofStored { token, partition, digest, process_peak_bytes },
    AttemptEnded(inner),
    Woken { partition },
    StaleIgnored { token, word },
    BootOpened { version, devices },
    BootClosed,
    ProcessStarted { process, device },
    ProcessLost { process, device, cause, own_fault },
    DeviceSuspended { device, until, reason },
    DeviceResumed { device },
    Paused { actor },
    Resumed { actor },
    Draining { actor },
    ClockStepped { by_ms },
    Pruned { job, id },
    CircuitAdded { circuit, name, files, allow_unfinished, local_setup, facts, total, actor },
    CircuitNamed { name, circuit },
    ImportStarted { circuit, process },
    ImportProgressed { token, circuit, done },
    ImportEnded { token, circuit, facts, zkey, vk, matrices },
    ImportFailed { token, circuit, failure },
    ImportInterrupted { token, circuit, crashed },
    CircuitRemoved { circuit, actor },
});
