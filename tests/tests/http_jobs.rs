//! Jobs over HTTP: submitted, waited for, shown, listed, cancelled, tried again.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod http_support;

use std::collections::BTreeSet;

use http_support::{JSON, Server, id, problem, products};
use proofkeep_formats::json::{ProofJson, VkJson, public_from_json};
use proofkeep_groth16::proof::Proof;
use proofkeep_groth16::verify::verify;
use proofkeep_groth16::vk::VerifyingKey;
use proofkeep_tests::fixtures;
use proofkeep_tests::harness::until;
use serde_json::{Value, json};

#[test]
fn a_job_is_submitted_proved_and_its_proof_verifies_in_every_form() {
    let server = Server::with_multiplier(&[]);
    let witness = server.upload(&fixtures::read("multiplier", "witness.wtns"));
    let body = json!({
        "kind": "groth16", "circuit": "multiplier", "inputs": [{ "witness": witness }],
        "priority": "high", "labels": { "order": "7" },
    });
    let headers = [JSON, ("prefer", "wait=100")];
    let answer = server
        .send("POST", "/v1/jobs", &headers, Some(body.to_string().as_bytes()))
        .expect(201);
    assert_eq!(answer.header("preference-applied"), Some("wait=100"));
    let job = answer.json();
    assert_eq!(
        answer.header("location"),
        Some(&format!("/v1/jobs/{}", id(&job))[..])
    );
    assert_eq!(job["state"], "succeeded", "{job}");
    assert_eq!(
        (&job["priority"], &job["labels"]["order"], &job["actor"]),
        (&json!("high"), &json!("7"), &json!("local"))
    );
    assert_eq!(
        job["summary"],
        json!({ "total": 1, "proved": 1, "failed": 0, "cancelled": 0, "running": 0 })
    );
    assert_eq!(
        (&job["circuit"], &job["verification"], &job["generation"]),
        (&json!("multiplier"), &json!("passed"), &json!(1))
    );
    let attempt = &job["partitions"][0]["attempts"][0];
    assert_eq!(
        (&attempt["outcome"], &attempt["number"], &attempt["device"]),
        (&json!("ok"), &json!(1), &json!("cpu:0"))
    );
    for moment in ["created_at", "started_at", "ended_at"] {
        assert!(
            job[moment]
                .as_str()
                .is_some_and(|text| text.ends_with('Z') && text.len() == 24),
            "{moment}: {job}"
        );
    }

    let path = format!("/v1/jobs/{}", id(&job));
    let get = |rest: &str| server.get(&format!("{path}{rest}")).expect(200);
    let vk = VkJson::from_json(&fixtures::read("multiplier", "vkey.json")).unwrap();
    let vk = VerifyingKey::from_json(&vk).unwrap();
    let public = public_from_json(&get("/public").body).unwrap();
    let proof = Proof::from_json(&ProofJson::from_json(&get("/proof").body).unwrap()).unwrap();
    verify(&vk, &public, &proof).unwrap();
    let bytes = get("/proof?format=bytes").body;
    assert_eq!(bytes.len(), 192);
    assert_eq!(Proof::from_bytes(&bytes).unwrap(), proof);
    assert_eq!(get("/proof?format=hex").text().trim(), hex::encode(&bytes));
    assert_eq!(
        Proof::from_bytes(&get("/proof?format=uncompressed").body).unwrap(),
        proof
    );
    assert_eq!(get("/public?format=bytes-le").body, public.concat());
    let mut backwards = public.clone();
    backwards.iter_mut().for_each(|signal| signal.reverse());
    assert_eq!(get("/public?format=bytes-be").body, backwards.concat());
    assert_eq!(get("/partitions/0/proof?format=bytes").body, bytes);
    assert_eq!(get("/partitions/0/public").json(), get("/public").json());
    problem(
        &server.get(&format!("{path}/proof?format=pdf")),
        400,
        "malformed-query",
    );
}

#[test]
fn several_inputs_give_arrays_and_one_bad_one_fails_alone() {
    let server = Server::with_multiplier(&[]);
    let job = server.finish(&products(&[(3, 11), (5, 7), (2, 2)]));
    assert_eq!(job["state"], "succeeded", "{job}");
    let path = format!("/v1/jobs/{}", id(&job));
    assert_eq!(
        server.get(&format!("{path}/public")).json(),
        json!([["33", "3"], ["35", "5"], ["4", "2"]])
    );
    assert_eq!(
        server
            .get(&format!("{path}/proof"))
            .json()
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(
        server.get(&format!("{path}/proof?format=bytes")).body.len(),
        3 * 192
    );

    let mut body = products(&[(3, 11), (5, 7)]);
    body["inputs"][1] = json!({ "input": { "a": "5" } });
    let job = server.finish(&body);
    assert_eq!(
        (
            &job["state"],
            &job["summary"]["proved"],
            &job["summary"]["failed"]
        ),
        (&json!("failed"), &json!(1), &json!(1))
    );
    assert_eq!(job["error"]["class"], "input_invalid", "{job}");
    assert!(job["error"]["detail"].as_str().unwrap().contains('b'), "{job}");
    let path = format!("/v1/jobs/{}", id(&job));
    let answer = server.get(&format!("{path}/proof"));
    problem(&answer, 409, "not-ready");
    assert_eq!(answer.json()["retryable"], false);
    problem(
        &server.get(&format!("{path}/partitions/1/proof")),
        409,
        "not-ready",
    );
    let results = server.get(&format!("{path}/results")).expect(200);
    assert_eq!(results.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = results
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (lines.len(), &lines[0]["index"], &lines[0]["publicSignals"]),
        (1, &json!(0), &json!(["33", "3"]))
    );
    problem(
        &server.get(&format!("{path}/partitions/2")),
        404,
        "unknown-partition",
    );
    problem(
        &server.get(&format!("{path}/partitions/x")),
        404,
        "unknown-partition",
    );

    // Tried again with the input that it lacks, it proves that one and keeps the other's proof.
    let first = server.get(&format!("{path}/partitions/0")).json()["proof"].clone();
    let replace = json!({ "replace": { "1": { "input": { "a": "5", "b": "7" } } } });
    assert_eq!(server.post(&format!("{path}/retry"), &replace).status, 202);
    let job = server.wait_for_end(id(&job));
    assert_eq!(
        (&job["state"], &job["generation"]),
        (&json!("succeeded"), &json!(2)),
        "{job}"
    );
    assert_eq!(job["partitions"][0]["proof"], first);
    assert_eq!(job["partitions"][0]["attempts_total"], 1);
    problem(
        &server.send("POST", &format!("{path}/retry"), &[], None),
        409,
        "job-state",
    );
}

#[test]
fn fields_that_are_wrong_are_422_and_named() {
    let server = Server::with_multiplier(&[]);
    let refused = |change: fn(&mut Value), code: &str, parts: &[&str]| {
        let mut body = products(&[(3, 11)]);
        change(&mut body);
        let answer = server.post("/v1/jobs", &body);
        let detail = problem(&answer, 422, code);
        assert!(parts.iter().all(|part| detail.contains(part)), "{detail}");
    };
    refused(
        |body| body["circiut"] = json!("x"),
        "unknown-field",
        &["circiut", "circuit", "inputs", "labels", "priority"],
    );
    refused(
        |body| body["kind"] = json!("groth17"),
        "unknown-kind",
        &["groth17", "groth16"],
    );
    refused(
        |body| body["priority"] = json!("urgent"),
        "bad-field",
        &["priority", "critical", "urgent"],
    );
    refused(|body| body["inputs"] = json!([]), "inputs-count", &["1 to 1024"]);
    refused(
        |body| body["inputs"][0] = json!({ "witness": format!("sha256:{}", "0".repeat(64)) }),
        "blob-missing",
        &["PUT"],
    );
    let mut body = products(&[(3, 11)]);
    body["circuit"] = json!("nobody");
    problem(&server.post("/v1/jobs", &body), 404, "unknown-circuit");
    let other = server.upload(&fixtures::read("arrays", "witness.wtns"));
    body["circuit"] = json!("multiplier");
    body["inputs"] = json!([{ "witness": other }]);
    problem(&server.post("/v1/jobs", &body), 422, "witness-length");
}

#[test]
fn what_is_not_there_is_404_and_what_was_removed_410() {
    let server = Server::with_multiplier(&["--max-jobs", "1"]);
    let nobody = "019ad000-0000-7000-8000-000000000000";
    for path in [
        "",
        "/proof",
        "/public",
        "/results",
        "/events",
        "/partitions",
        "/partitions/0",
    ] {
        problem(
            &server.get(&format!("/v1/jobs/{nobody}{path}")),
            404,
            "unknown-job",
        );
    }
    problem(&server.get("/v1/jobs/17"), 404, "unknown-job");
    problem(
        &server.send("POST", &format!("/v1/jobs/{nobody}/cancel"), &[], None),
        404,
        "unknown-job",
    );
    let first = server.finish(&products(&[(3, 11)]));
    let second = server.finish(&products(&[(5, 7)]));
    let path = format!("/v1/jobs/{}", id(&first));
    until("the older job is removed", || server.get(&path).status == 410);
    problem(&server.get(&path), 410, "pruned");
    assert_eq!(server.get(&format!("/v1/jobs/{}", id(&second))).status, 200);
}

#[test]
fn an_etag_tells_whether_a_job_changed_and_a_wait_ends_at_the_change() {
    let server = Server::with_multiplier(&[]);
    let job = server.finish(&products(&[(3, 11)]));
    let path = format!("/v1/jobs/{}", id(&job));
    let answer = server.get(&path).expect(200);
    let tag = answer.header("etag").unwrap().to_owned();
    assert!(tag.ends_with(&format!("-{}\"", job["journal"])), "{tag}");
    let same = server.send("GET", &path, &[("if-none-match", &tag)], None);
    assert_eq!((same.status, same.body.len()), (304, 0));
    let changed = server.send("GET", &path, &[("if-none-match", "\"other\"")], None);
    assert_eq!(changed.status, 200);
    // A job that goes on answers each change once.
    let many: Vec<(u32, u32)> = (0..20).map(|number| (number + 2, 3)).collect();
    let job = server.post("/v1/jobs", &products(&many)).expect(202).json();
    let path = format!("/v1/jobs/{}", id(&job));
    let (mut tag, mut seen) = (String::new(), BTreeSet::new());
    loop {
        let headers = [("if-none-match", &tag[..]), ("prefer", "wait=100")];
        let answer = server.send("GET", &path, &headers, None).expect(200);
        tag = answer.header("etag").unwrap().to_owned();
        assert!(seen.insert(tag.clone()), "{tag} came twice");
        if answer.json()["state"] == "succeeded" {
            break;
        }
    }
    assert!(seen.len() > 2, "{seen:?}");
}

#[test]
fn jobs_are_listed_by_page_and_filter() {
    let server = Server::with_multiplier(&[]);
    let mut made = Vec::new();
    for number in 0..5 {
        let mut body = products(&[(number + 2, 3)]);
        body["labels"] = json!({ "number": number.to_string(), "all": "yes" });
        made.push(id(&server.finish(&body)).to_owned());
    }
    let mut bad = products(&[(3, 11)]);
    bad["inputs"][0] = json!({ "input": {} });
    let failed = server.finish(&bad);
    let ids = |path: &str| -> Vec<String> {
        let list = server.get(path).expect(200).json();
        list["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|job| id(job).to_owned())
            .collect()
    };
    assert_eq!(ids("/v1/jobs").len(), 6);
    assert_eq!(ids("/v1/jobs")[0], id(&failed));
    assert_eq!(ids("/v1/jobs?state=failed"), [id(&failed)]);
    assert_eq!(ids("/v1/jobs?label=number=3"), [made[3].clone()]);
    assert_eq!(ids("/v1/jobs?label=all&order=oldest"), made);
    assert_eq!(ids("/v1/jobs?state=active"), [""; 0]);
    assert_eq!(
        ids("/v1/jobs?circuit=multiplier&kind=groth16&actor=local").len(),
        6
    );
    assert_eq!(ids("/v1/jobs?circuit=nobody"), [""; 0]);
    assert_eq!(ids("/v1/jobs?since=2100-01-01T00:00:00Z"), [""; 0]);
    assert_eq!(ids("/v1/jobs?until=2100-01-01T00:00:00Z").len(), 6);
    let mut found = Vec::new();
    let mut next = Some("/v1/jobs?label=all&limit=2&order=oldest".to_owned());
    while let Some(path) = next {
        found.extend(ids(&path));
        let link = server.get(&path).header("link").map(str::to_owned);
        next = link.map(|link| link.trim_start_matches('<').split('>').next().unwrap().to_owned());
    }
    assert_eq!(found, made);
    let cursor = server.get("/v1/jobs?limit=1").json()["next"]
        .as_str()
        .unwrap()
        .to_owned();
    problem(
        &server.get(&format!("/v1/jobs?order=oldest&cursor={cursor}")),
        400,
        "malformed-cursor",
    );
}

#[test]
fn the_journal_of_a_job_tells_its_story_by_page() {
    let server = Server::with_multiplier(&[]);
    let job = server.finish(&products(&[(3, 11)]));
    let path = format!("/v1/jobs/{}/events", id(&job));
    let all = server.get(&path).expect(200).json();
    let names = |events: &Value| -> Vec<String> {
        events["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| event["event"].as_str().unwrap().to_owned())
            .collect()
    };
    let story = names(&all);
    for name in [
        "submitted",
        "synth_started",
        "synth_ended",
        "gpu_started",
        "gpu_ended",
        "proof_stored",
        "verify_passed",
        "ended",
    ] {
        assert!(story.iter().any(|found| found == name), "{name}: {story:?}");
    }
    assert_eq!(all["next"], Value::Null);
    let mut paged = Vec::new();
    let mut after = json!(0);
    while !after.is_null() {
        let page = server
            .get(&format!("{path}?limit=2&after={after}"))
            .expect(200)
            .json();
        paged.extend(names(&page));
        after = page["next"].clone();
    }
    assert_eq!(paged, story);
    // Neither inputs nor witnesses stand in it.
    assert!(!all.to_string().contains("\"11\""), "{all}");
}

#[test]
fn a_cancelled_job_ends_and_can_be_tried_again() {
    let server = Server::with_multiplier(&[]);
    let many: Vec<(u32, u32)> = (0..300).map(|number| (number + 2, 3)).collect();
    let job = server.post("/v1/jobs", &products(&many)).expect(202).json();
    let path = format!("/v1/jobs/{}", id(&job));
    assert_eq!(job["partitions"].as_array().unwrap().len(), 64);
    assert_eq!(job["next_partition"], 64);
    let page = server
        .get(&format!("{path}/partitions?from=64&limit=200"))
        .expect(200)
        .json();
    assert_eq!(
        (page["partitions"].as_array().unwrap().len(), &page["next"]),
        (200, &json!(264))
    );
    let answer = server
        .send("POST", &format!("{path}/cancel"), &[], None)
        .expect(202);
    assert!(
        matches!(answer.json()["state"].as_str(), Some("stopping" | "cancelled")),
        "{}",
        answer.text()
    );
    assert_eq!(
        server.send("POST", &format!("{path}/cancel"), &[], None).status,
        202
    );
    let job = server.wait_for_end(id(&job));
    assert_eq!(job["state"], "cancelled");
    let proved = job["summary"]["proved"].as_u64().unwrap();
    assert_eq!(
        server.send("POST", &format!("{path}/retry"), &[], None).status,
        202
    );
    let job = server.wait_for_end(id(&job));
    assert_eq!(
        (&job["state"], &job["summary"]["proved"]),
        (&json!("succeeded"), &json!(300))
    );
    assert!(proved < 300);
    problem(
        &server.send("POST", &format!("{path}/cancel"), &[], None),
        409,
        "job-state",
    );
    let unknown = server.post(&format!("{path}/cancel"), &json!({ "reason": "x" }));
    problem(&unknown, 422, "unknown-field");
}
