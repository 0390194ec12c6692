//! What a request says.

use serde::{Deserialize, Serialize};

/// A request of the scripted kind, the common fields left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Where marks and counts are kept; none are without it, and every failure happens each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<String>,
    /// Memory that each partition asks for.
    #[serde(default = "ticket_bytes")]
    pub ticket_bytes: u64,
    /// An object that the job needs; for tests of files that go missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// A script for each partition.
    pub inputs: Vec<Script>,
}

fn ticket_bytes() -> u64 {
    1 << 20
}

/// What one partition does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// How long its witness takes.
    pub synth_ms: u64,
    /// How long each of its five pieces takes.
    pub piece_ms: u64,
    /// How long it takes to finish.
    pub finish_ms: u64,
    /// Makes the witness another one.
    pub salt: u64,
    /// It fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail: Option<Fail>,
    /// It breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
    /// It waits for a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// An orderly failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    /// Where.
    pub stage: String,
    /// The failure class.
    pub class: String,
    /// How often, then it goes well; `None`: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
}

/// A failure that is nothing but orderly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Where.
    pub stage: String,
    /// How.
    pub how: String,
    /// How often, then it goes well; `None`: always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// With `stage` `turns`: where each attempt breaks, in turn and from the beginning again. It needs marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
}

/// A wait, with progress, until a file is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Where.
    pub stage: String,
    /// The file.
    pub file: String,
}
