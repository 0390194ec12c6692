//! A job's journal as it grows, told line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::story::say;
use crate::cli::server::text;
use crate::client::{Client, ClientError, pause};

/// Between two looks at the journal.
const BETWEEN: Duration = Duration::from_millis(10);

/// What was seen of a job so far, across restarts of its daemon.
#[derive(Debug)]
pub struct Watch {
    job: String,
    since: Instant,
    after: u64,
    ended: Option<String>,
    /// Partitions with a stored proof.
    pub proved: BTreeSet<u64>,
    /// Pieces that are durable, of partitions whose proof isn't there.
    pub pieces: BTreeMap<u64, Vec<String>>,
    /// Pieces that were taken over from an attempt that a kill ended.
    pub reused: u64,
    /// Partitions that hold the device.
    on_device: BTreeSet<u64>,
    /// The partition that the last kill was meant for, until it left the device again.
    cut: Option<u64>,
    missed: bool,
}

/// Why a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A partition is proved, and another one holds the device and has a durable piece.
    WorthAKill {
        /// That other one.
        partition: u64,
    },
    /// The job ended in this state.
    Ended(String),
}

impl Watch {
    pub fn new(job: &str) -> Self {
        Self {
            job: job.to_owned(),
            since: Instant::now(),
            after: 0,
            ended: None,
            proved: BTreeSet::new(),
            pieces: BTreeMap::new(),
            reused: 0,
            on_device: BTreeSet::new(),
            cut: None,
            missed: false,
        }
    }

    /// The daemon is killed in the middle of this partition.
    pub fn killed(&mut self, partition: u64) {
        self.pieces.clear();
        self.on_device.clear();
        self.cut = Some(partition);
        self.missed = false;
    }

    /// Follows the job until it ended, or until it is worth a kill: the first one, or another if that missed.
    pub fn follow(&mut self, client: &Client, killed: bool) -> Result<Seen, ClientError> {
        loop {
            self.read_events(client)?;
            if let Some(state) = &self.ended {
                return Ok(Seen::Ended(state.clone()));
            }
            if (!killed || self.missed)
                && let Some(partition) = self.worth_a_kill()
            {
                return Ok(Seen::WorthAKill { partition });
            }
            pause(BETWEEN);
        }
    }

    fn worth_a_kill(&self) -> Option<u64> {
        let unfinished = |partition: &&u64| {
            self.pieces
                .get(partition)
                .is_some_and(|pieces| !pieces.is_empty())
        };
        if self.proved.is_empty() {
            None
        } else {
            self.on_device.iter().find(unfinished).copied()
        }
    }

    fn read_events(&mut self, client: &Client) -> Result<(), ClientError> {
        loop {
            let page = client
                .get(
                    &format!("/v1/jobs/{}/events?after={}&limit=500", self.job, self.after),
                    &[],
                )?
                .body;
            for event in page["events"].as_array().into_iter().flatten() {
                self.after = event["number"].as_u64().unwrap_or(self.after);
                self.hear(event);
            }
            if page["next"].is_null() {
                return Ok(());
            }
        }
    }

    fn hear(&mut self, event: &Value) {
        if event["event"] == "ended" {
            self.ended = Some(text(&event["state"]));
        }
        let Some(partition) = event["partition"].as_u64() else {
            return;
        };
        let ms = |name: &str| text(&event[name]);
        let line = match event["event"].as_str().unwrap_or_default() {
            "synth_ended" => format!("witness made and checked ({} ms)", ms("synth_ms")),
            "gpu_started" => {
                self.on_device.insert(partition);
                "proving".to_owned()
            }
            "checkpointed" => {
                let pieces: Vec<String> = list(&event["pieces"])
                    .iter()
                    .map(|piece| text(&piece["piece"]))
                    .collect();
                let line = format!("checkpoint: {} is on disk", pieces.join(" "));
                self.pieces.entry(partition).or_default().extend(pieces);
                line
            }
            "gpu_ended" => {
                self.on_device.remove(&partition);
                let reused: Vec<String> = list(&event["reused"]).iter().map(text).collect();
                self.reused += reused.len() as u64;
                // A piece can be shown and its daemon killed just as the partition leaves the device.
                if self.cut == Some(partition) {
                    self.missed = reused.is_empty();
                    self.cut = None;
                }
                let saved = if reused.is_empty() {
                    String::new()
                } else {
                    format!(
                        ", REUSED {} of the killed attempt ({} ms saved)",
                        reused.join(" "),
                        ms("saved_ms")
                    )
                };
                format!("all pieces made ({} ms){saved}", ms("gpu_ms"))
            }
            "proof_stored" => {
                self.pieces.remove(&partition);
                self.proved.insert(partition);
                "PROVED, verified, and on disk".to_owned()
            }
            "attempt_ended" => {
                self.on_device.remove(&partition);
                format!(
                    "attempt {} ended: {}",
                    text(&event["attempt"]),
                    text(&event["error"]["detail"])
                )
            }
            _ => return,
        };
        let seconds = self.since.elapsed().as_secs_f64();
        say(&format!("  {seconds:5.1} s  partition {partition}  {line}"));
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
