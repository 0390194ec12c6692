//! What the service says to requests, and one real circuit.

use std::fs;
use std::path::Path;

use proofkeep_store::machine::Admission;
use proofkeep_store::query;
use proofkeep_store::records::CircuitState;
use serde_json::json;

use crate::Test;
use crate::world::World;

pub const TESTS: &[Test] = &[
    ("the_same_key_names_the_same_job", the_same_key_names_the_same_job),
    ("a_wrong_field_is_named", a_wrong_field_is_named),
    (
        "a_real_circuit_is_imported_proved_and_verified",
        a_real_circuit_is_imported_proved_and_verified,
    ),
];

fn the_same_key_names_the_same_job() {
    let world = World::new();
    let body = world.body(&json!([{"salt": 1}]));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| world.try_submit(&body, Some("one")).unwrap()))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.id == answers[0].id));
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.admission == Admission::Created)
            .count(),
        1
    );
    // Another order of the fields is the same request, another value isn't.
    let mut spelled = world.body(&json!([{"salt": 1}]));
    spelled["priority"] = json!("normal");
    spelled["max_attempts"] = json!(3);
    assert_eq!(world.try_submit(&spelled, Some("one")).unwrap().id, answers[0].id);
    let problem = world
        .try_submit(&world.body(&json!([{"salt": 2}])), Some("one"))
        .unwrap_err();
    assert_eq!(
        (problem.status, problem.code.as_str()),
        (422, "idempotency-mismatch")
    );
    world.succeeded(answers[0].job);
}

fn a_wrong_field_is_named() {
    let world = World::new();
    let refused = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut body = world.body(&json!([{}]));
        change(&mut body);
        let problem = world.try_submit(&body, None).unwrap_err();
        (problem.status, problem.code, problem.detail)
    };
    let (status, _, detail) = refused(&|body| body["colour"] = json!("red"));
    assert!(
        status == 422 && detail.contains("colour") && detail.contains("ticket_bytes"),
        "{detail}"
    );
    let (status, code, detail) = refused(&|body| body["kind"] = json!("groth17"));
    assert!(
        status == 422 && code == "unknown-kind" && detail.contains("groth16"),
        "{detail}"
    );
    let (status, _, detail) = refused(&|body| body["priority"] = json!("asap"));
    assert!(
        status == 422 && detail.contains("critical") && detail.contains("asap"),
        "{detail}"
    );
    let (status, _, detail) = refused(&|body| body["max_attempts"] = json!(0));
    assert!(status == 422 && detail.contains("1 to 100"), "{detail}");
    let (status, ..) = refused(&|body| body["labels"] = json!({"k": 1}));
    assert_eq!(status, 422);
    let (status, _, detail) = refused(&|body| body["inputs"] = json!([]));
    assert!(status == 422 && detail.contains("1 to 1024"), "{detail}");
    let (status, code, _) = refused(&|body| *body = json!([1]));
    assert_eq!((status, code.as_str()), (400, "malformed-json"));
    // A large request is an object, and proves like a small one.
    let job = world.submit(&json!(vec![json!({}); 200]));
    assert!(!world.job(job).request_inline);
    world.succeeded(job);
}

fn a_real_circuit_is_imported_proved_and_verified() {
    let world = World::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/circom/poseidon2");
    let keep = |name: &str| {
        let bytes = fs::read(fixtures.join(name)).unwrap();
        world.engine().store().objects().put(&bytes).unwrap().to_string()
    };
    let spec = json!({
        "r1cs": keep("circuit.r1cs"), "zkey": keep("circuit.zkey"), "wasm": keep("circuit.wasm"), "sym": keep("circuit.sym"),
    });
    let register = || {
        world.runtime.block_on(world.engine().register_circuit(
            "poseidon",
            spec.to_string().into_bytes(),
            false,
            "test",
        ))
    };
    let registered = register().unwrap();
    // Jobs may be submitted while it is imported.
    let input: serde_json::Value =
        serde_json::from_slice(&fs::read(fixtures.join("input.json")).unwrap()).unwrap();
    let body = json!({"kind": "groth16", "circuit": "poseidon", "inputs": [{"input": input}, {"witness": keep("witness.wtns")}]});
    let job = world.submit_body(&body);
    world.succeeded(job);
    let circuit = world
        .engine()
        .store()
        .read(|view| query::circuit(view, registered.circuit.digest))
        .unwrap()
        .unwrap();
    assert_eq!(circuit.state, CircuitState::Ready);
    assert!(register().unwrap().unchanged);
    let vk = world
        .engine()
        .store()
        .objects()
        .read_verified(circuit.vk.unwrap())
        .unwrap();
    let kind = world.engine().kinds().get("groth16").unwrap();
    for index in 0..2 {
        let proof = world.partition(job, index).proof.unwrap();
        let public = world
            .engine()
            .store()
            .objects()
            .read_verified(proof.public)
            .unwrap();
        kind.verify(Some(&vk), &public, &proof.bytes).unwrap();
        let mut other = public.clone();
        other[0] ^= 1;
        assert!(kind.verify(Some(&vk), &other, &proof.bytes).is_err());
    }
    world.until("the end of all tickets", || {
        let memory = world.engine().memory();
        memory.reserved == memory.keys.iter().map(|key| key.bytes).sum::<u64>()
    });
    let [key] = &world.engine().memory().keys[..] else {
        panic!("one key is resident")
    };
    assert!(key.resident && key.evictable && key.bytes > 0);
    world
        .runtime
        .block_on(world.engine().remove_circuit("poseidon", "test"))
        .unwrap();
}
