//! Inputs in the canonical form of a request: `{"witness": "sha256:…"}` or `{"input_blob": "sha256:…"}`.

use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};
use serde_json::{Map, Value};

/// What one partition is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A `.wtns`.
    Witness(Digest),
    /// circom's `input.json`.
    Json(Digest),
}

impl Input {
    /// The object.
    pub fn object(self) -> Digest {
        match self {
            Self::Witness(digest) | Self::Json(digest) => digest,
        }
    }

    /// As it stands in the canonical request.
    pub fn to_json(self) -> Value {
        let (name, digest) = match self {
            Self::Witness(digest) => ("witness", digest),
            Self::Json(digest) => ("input_blob", digest),
        };
        let mut object = Map::new();
        object.insert(name.to_owned(), Value::String(digest.to_string()));
        Value::Object(object)
    }

    /// The input of one partition of a canonical request.
    pub fn of_request(request: &[u8], partition: u32) -> Result<Self, Failure> {
        let unreadable = || {
            Failure::coded(
                FailureClass::InputInvalid,
                "request-unreadable",
                format!(
                    "the stored request has no readable input for partition {partition}; submit the job again"
                ),
            )
        };
        let request: Value = serde_json::from_slice(request).map_err(|_| unreadable())?;
        let input = request
            .get("inputs")
            .and_then(|inputs| inputs.get(partition as usize));
        let digest = |name| {
            let text = input.and_then(|input| input.get(name)).and_then(Value::as_str);
            text.and_then(Digest::parse)
        };
        let witness = digest("witness").map(Self::Witness);
        witness
            .or_else(|| digest("input_blob").map(Self::Json))
            .ok_or_else(unreadable)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn inputs_come_out_of_a_request_as_they_went_in() {
        let inputs = [Input::Witness(Digest([1; 32])), Input::Json(Digest([2; 32]))];
        let request = serde_json::json!({"inputs": inputs.map(Input::to_json)}).to_string();
        for (partition, input) in (0..).zip(inputs) {
            assert_eq!(Input::of_request(request.as_bytes(), partition), Ok(input));
        }
        assert!(Input::of_request(request.as_bytes(), 2).is_err());
        assert!(Input::of_request(b"{", 0).is_err());
    }
}
