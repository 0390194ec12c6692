#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::fs::File;
use std::sync::Mutex;

use proofkeep_store::records::{Circuit, Failure};

use super::*;
use crate::kinds::{Defaults, Prepared, SynthTask, Watch};

/// A kind whose requests have `inputs`, an array of numbers, and `circuit`, a name that is made a digest.
struct Numbers;

impl Kind for Numbers {
    fn name(&self) -> &'static str {
        "numbers"
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            priority: Priority::High,
            on_failure: OnFailure::Stop,
            max_attempts: 4,
        }
    }

    fn plan(&self, mut fields: Map<String, Value>, _: &dyn Desk) -> Result<Plan, Problem> {
        if let Some(unknown) = fields
            .keys()
            .find(|name| !["circuit", "inputs"].contains(&name.as_str()))
        {
            return Err(unknown_field(unknown, &["circuit", "inputs"]));
        }
        let inputs = fields
            .get("inputs")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if inputs.iter().any(|input| !input.is_u64()) {
            return Err(Problem::input("bad-input", "inputs: expected numbers"));
        }
        let circuit = fields.get("circuit").and_then(Value::as_str).unwrap_or("none");
        let digest = Digest::parse(circuit).unwrap_or_else(|| Digest::of(circuit.as_bytes()));
        fields.insert("circuit".to_owned(), digest.to_string().into());
        let partitions = inputs.len().try_into().unwrap();
        Ok(Plan {
            fields,
            circuit: Some(digest),
            partitions,
            ticket_bytes: 5,
            objects: Vec::new(),
        })
    }

    fn synthesize(&self, _: &SynthTask<'_>, _: &dyn Watch) -> Result<Box<dyn Prepared>, Failure> {
        unreachable!("no worker runs here")
    }

    fn verify(&self, _: Option<&[u8]>, _: &[u8], _: &[u8]) -> Result<(), Failure> {
        Ok(())
    }
}

#[derive(Default)]
struct Paper(Mutex<Vec<Vec<u8>>>);

impl Desk for Paper {
    fn circuit(&self, _: &str) -> Result<Circuit, Problem> {
        Err(Problem::new(404, "unknown-circuit", "", ""))
    }

    fn keep(&self, bytes: &[u8]) -> Result<Digest, Problem> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(Digest::of(bytes))
    }

    fn size(&self, _: Digest) -> Option<u64> {
        None
    }

    fn open(&self, object: Digest) -> Result<File, Problem> {
        Err(Problem::input("blob-missing", object.to_string()))
    }

    fn threads(&self) -> u32 {
        1
    }

    fn wasm_memory_bytes(&self) -> u64 {
        0
    }
}

fn read(body: &str) -> Result<Submit, Problem> {
    let asker = Asker {
        actor: "me".to_owned(),
        idempotency_key: None,
    };
    submit(
        body.as_bytes(),
        asker,
        &Kinds::none().with(Numbers),
        &Paper::default(),
    )
    .map(|(submit, _)| submit)
}

#[test]
fn the_same_request_has_one_canonical_form_however_it_is_written() {
    let short = read(r#"{"kind":"numbers","inputs":[1,2],"circuit":"c"}"#).unwrap();
    let long = read(
        r#" { "labels":{}, "circuit":"c", "max_attempts":4, "on_failure":"stop",
              "inputs" : [1, 2], "priority":"high", "kind":"numbers" } "#,
    )
    .unwrap();
    assert_eq!(short.request, long.request);
    let text = String::from_utf8(short.inline.unwrap()).unwrap();
    let circuit = Digest::of(b"c");
    assert_eq!(
        text,
        format!(
            r#"{{"circuit":"{circuit}","inputs":[1,2],"kind":"numbers","labels":{{}},"max_attempts":4,"on_failure":"stop","priority":"high"}}"#
        )
    );
    assert_eq!(
        (short.partitions, short.ticket_bytes, short.circuit),
        (2, 5, Some(circuit))
    );
    let other =
        read(r#"{"kind":"numbers","inputs":[1,2],"circuit":"c","labels":{"b":"2","a":"1"}}"#).unwrap();
    assert_ne!(other.request, short.request);
    assert_eq!(
        other.labels,
        [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]
    );
}

#[test]
fn a_large_request_is_an_object_that_the_job_needs() {
    let inputs: Vec<u32> = (100_000..100_500).collect();
    let body = json!({"kind": "numbers", "inputs": inputs}).to_string();
    let large = read(&body).unwrap();
    assert_eq!((large.inline, large.objects), (None, vec![large.request]));
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |body: &str| {
        let problem = read(body).unwrap_err();
        (problem.status, problem.code, problem.detail)
    };
    assert_eq!(refused("{").0, 400);
    assert_eq!(refused("[]").0, 400);
    assert!(refused(r#"{"inputs":[1]}"#).2.contains("numbers"));
    assert!(
        refused(r#"{"kind":"numbers","inputs":[1],"colour":1}"#)
            .2
            .contains("colour")
    );
    assert_eq!(refused(r#"{"kind":"numbers","inputs":[]}"#).1, "inputs");
    assert!(
        refused(r#"{"kind":"numbers","inputs":[1],"max_attempts":101}"#)
            .2
            .contains("101")
    );
    assert!(
        refused(r#"{"kind":"numbers","inputs":[1],"on_failure":"wait"}"#)
            .2
            .contains("continue, stop")
    );
    let labels = json!({"kind": "numbers", "inputs": [1], "labels": {"k": "v".repeat(129)}});
    assert_eq!(refused(&labels.to_string()).1, "labels");
}

#[test]
fn a_replacement_changes_the_named_inputs_and_nothing_else() {
    let kinds = Kinds::none().with(Numbers);
    let desk = Paper::default();
    let old = read(r#"{"kind":"numbers","inputs":[1,2,3],"circuit":"c","priority":"low"}"#)
        .unwrap()
        .inline
        .unwrap();
    let replace = |body: &str| replacement(body.as_bytes(), &old, &kinds, &desk);
    assert_eq!(replace("").unwrap(), None);
    assert_eq!(replace("{}").unwrap(), None);
    let new = replace(r#"{"replace":{"2":30,"0":10}}"#).unwrap().unwrap();
    assert_eq!(new.partitions, [0, 2]);
    let text = String::from_utf8(new.inline.unwrap()).unwrap();
    assert_eq!(
        text,
        String::from_utf8(old.clone())
            .unwrap()
            .replace("[1,2,3]", "[10,2,30]")
    );
    for wrong in [
        r#"{"replace":{"3":1}}"#,
        r#"{"replace":{"01":1}}"#,
        r#"{"replace":{"1":"x"}}"#,
        r#"{"repeat":1}"#,
    ] {
        assert_eq!(replace(wrong).unwrap_err().status, 422, "{wrong}");
    }
}
