//! The same picture in the shape of cuzk's status JSON, so that pollers of that shape work unchanged. It is made from a
//! [`Status`], never from the store, so the two can't disagree.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{JobStatus, PartitionStatus, Status, cell};
use crate::records::PartitionState;

/// What the picture needs that no record holds: memory, and what is resident in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The budget.
    pub memory: CuzkMemory,
    /// Partitions that may be synthesized at once.
    pub max_concurrent: u32,
    /// Resident proving keys.
    pub srs: Vec<Allocation>,
    /// Resident compiled constraint systems.
    pub pce: Vec<Allocation>,
}

/// Memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CuzkMemory {
    /// The budget.
    pub total_bytes: u64,
    /// Granted.
    pub used_bytes: u64,
    /// What is left of it.
    pub available_bytes: u64,
}

/// Something resident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Allocation {
    /// What it belongs to.
    pub circuit_id: String,
    /// Its size.
    pub bytes: u64,
    /// Seconds since it was used.
    pub last_used_secs_ago: u64,
    /// Nobody uses it now.
    pub evictable: bool,
}

/// Everything that is resident.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Allocations {
    /// Proving keys.
    pub srs: Vec<Allocation>,
    /// Compiled constraint systems.
    pub pce: Vec<Allocation>,
}

/// Synthesis now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CuzkSynthesis {
    /// At most.
    pub max_concurrent: u32,
    /// Now.
    pub active: u32,
}

/// A partition; one of `pending`, `synthesizing`, `synth_done`, `gpu`, `done`, `failed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CuzkPartition {
    /// Which.
    pub index: u32,
    /// Where it is.
    pub state: &'static str,
    /// Duration of its synthesis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synth_ms: Option<u64>,
    /// Duration of its proving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_ms: Option<u64>,
}

/// A job: not ended, or ended within the last 30 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pipeline {
    /// The job's id.
    pub job_id: String,
    /// The proof kind.
    pub proof_kind: String,
    /// Seconds since its first partition was started, or since it was submitted.
    pub started_secs_ago: u64,
    /// Partitions.
    pub total_partitions: u32,
    /// Partitions with a proof.
    pub partitions_done: u32,
    /// Each partition, as far as the status draws them.
    pub partitions: Vec<CuzkPartition>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuWorker {
    /// One sequence over devices × slots.
    pub worker_id: u32,
    /// Which device, counted from 0 in the order of the workers.
    pub gpu_ordinal: u32,
    /// `idle` or `proving`.
    pub state: &'static str,
    /// The job's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_job: Option<String>,
    /// The partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_partition: Option<u32>,
    /// Seconds since it got the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_secs: Option<u64>,
}

/// Jobs that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CuzkCounters {
    /// With a proof.
    pub total_completed: u64,
    /// Without; cancelled and expired ones are not counted here.
    pub total_failed: u64,
    /// With a proof, by kind.
    pub completed_by_kind: BTreeMap<String, u64>,
    /// Failed, by kind.
    pub failed_by_kind: BTreeMap<String, u64>,
    /// Partitions that are ready.
    pub queue_depth: u64,
}

/// What is between the stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Buffers {
    /// Partitions in synthesis.
    pub synth_in_flight: u32,
    /// Witnesses that are there.
    pub provers_in_flight: u32,
    /// The same.
    pub aux_in_flight: u32,
    /// Always 0: nothing here corresponds.
    pub shells_in_flight: u32,
    /// Proofs being assembled and verified.
    pub pending_handles: u32,
}

/// cuzk's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CuzkStatus {
    /// Seconds since the boot.
    pub uptime_secs: u64,
    /// Memory.
    pub memory: CuzkMemory,
    /// Synthesis.
    pub synthesis: CuzkSynthesis,
    /// Jobs.
    pub pipelines: Vec<Pipeline>,
    /// Workers.
    pub gpu_workers: Vec<GpuWorker>,
    /// What is resident.
    pub allocations: Allocations,
    /// What ended.
    pub counters: CuzkCounters,
    /// What is between the stages.
    pub buffers: Buffers,
}

/// Says the same as `status` in cuzk's words.
#[must_use]
pub fn cuzk(status: &Status, surroundings: &Surroundings) -> CuzkStatus {
    let stages = status.stages;
    let witnesses = stages.synthesized + stages.proving;
    CuzkStatus {
        uptime_secs: status
            .boot
            .as_ref()
            .map_or(0, |boot| status.at.since(boot.boot.started_at) / 1000),
        memory: surroundings.memory,
        synthesis: CuzkSynthesis {
            max_concurrent: surroundings.max_concurrent,
            active: stages.synthesizing,
        },
        pipelines: status
            .jobs
            .iter()
            .chain(&status.recent)
            .map(|job| pipeline(status, job))
            .collect(),
        gpu_workers: gpu_workers(status),
        allocations: Allocations {
            srs: surroundings.srs.clone(),
            pce: surroundings.pce.clone(),
        },
        counters: counters(status),
        buffers: Buffers {
            synth_in_flight: stages.synthesizing,
            provers_in_flight: witnesses,
            aux_in_flight: witnesses,
            shells_in_flight: 0,
            pending_handles: stages.finishing,
        },
    }
}

/// cuzk's word for a partition's state.
#[must_use]
pub(super) fn word(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Ready | PartitionState::Waiting => "pending",
        PartitionState::Synthesizing => "synthesizing",
        PartitionState::Synthesized | PartitionState::Finishing => "synth_done",
        PartitionState::Proving => "gpu",
        PartitionState::Proved => "done",
        PartitionState::Failed | PartitionState::Cancelled => "failed",
    }
}

fn pipeline(status: &Status, job: &JobStatus) -> Pipeline {
    let generation = job.generation.as_ref();
    let started = generation.map_or(job.job.created_at, |generation| {
        generation.started_at.unwrap_or(generation.opened_at)
    });
    Pipeline {
        job_id: job.job.id.to_string(),
        proof_kind: job.job.kind.clone(),
        started_secs_ago: status.at.since(started) / 1000,
        total_partitions: job.job.partitions,
        partitions_done: job.summary.proved,
        partitions: partitions(job),
    }
}

/// The partitions in full, filled up from the cells where there are any.
fn partitions(job: &JobStatus) -> Vec<CuzkPartition> {
    let full = |status: &PartitionStatus| CuzkPartition {
        index: status.index,
        state: word(status.state),
        synth_ms: status.synth_ms,
        gpu_ms: status.gpu_ms,
    };
    let Some(cells) = &job.cells else {
        return job.partitions.iter().map(full).collect();
    };
    let in_full: BTreeMap<u32, &PartitionStatus> = job
        .partitions
        .iter()
        .map(|status| (status.index, status))
        .collect();
    let state_of = |character| {
        PartitionState::ALL
            .into_iter()
            .find(|state| cell(*state) == character)
    };
    (0..)
        .zip(cells.chars())
        .map(|(index, character)| match in_full.get(&index) {
            Some(status) => full(status),
            None => CuzkPartition {
                index,
                state: state_of(character).map_or("pending", word),
                synth_ms: None,
                gpu_ms: None,
            },
        })
        .collect()
}

fn gpu_workers(status: &Status) -> Vec<GpuWorker> {
    let mut devices: Vec<&str> = Vec::new();
    status
        .workers
        .iter()
        .map(|worker| {
            let known = devices.iter().position(|device| *device == worker.device);
            let ordinal = known.unwrap_or_else(|| {
                devices.push(&worker.device);
                devices.len() - 1
            });
            GpuWorker {
                worker_id: worker.id.0,
                gpu_ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
                state: if worker.busy.is_some() { "proving" } else { "idle" },
                current_job: worker.job.map(|id| id.to_string()),
                current_partition: worker.busy.map(|(_, partition, _)| partition),
                busy_secs: worker.busy_ms.map(|millis| millis / 1000),
            }
        })
        .collect()
}

fn counters(status: &Status) -> CuzkCounters {
    let mut counters = CuzkCounters {
        queue_depth: status.queue.depth.count,
        ..CuzkCounters::default()
    };
    for count in &status.counters.jobs {
        match count.outcome.as_str() {
            "succeeded" => {
                counters.total_completed += count.value;
                *counters.completed_by_kind.entry(count.kind.clone()).or_default() += count.value;
            }
            "failed" => {
                counters.total_failed += count.value;
                *counters.failed_by_kind.entry(count.kind.clone()).or_default() += count.value;
            }
            _ => {}
        }
    }
    counters
}
