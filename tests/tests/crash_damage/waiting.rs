//! The list of partitions that wait for their next try loses an entry: without it nobody would ever wake that one.

use proofkeep_store::keys::Family;
use proofkeep_tests::harness::until;
use serde_json::json;

use super::damage::Damage;
use super::live::damage_some;
use super::regressions_support::Scripted;
use super::scene::{alone, rng};

#[test]
fn a_partition_whose_wake_up_is_lost_is_woken_all_the_same() {
    let _alone = alone();
    let mut rng = rng("wake-ups");
    let mut server = Scripted::start(&["--cpu-devices", "1"]);
    // It waits 1 s and 4 s: in one of them the look and the kill are quick enough.
    let fails = json!({ "fail": { "stage": "prove", "class": "device_error", "times": 2 } });
    let job = server.submit(&server.body(&[fails]));
    until("it waits for its next try when the daemon dies", || {
        server.until_partition(&job, 0, "waiting");
        server.kill();
        let lost = damage_some(&server.data(), 1, Damage::Delete, &mut rng, |key| {
            Family::of(key) == Some(Family::Retry)
        });
        server.start_again();
        !lost.is_empty()
    });
    let told = server.get("/v1/status").expect(200).json()["store"]["damage"].clone();
    assert!(!told["put_back"].as_array().unwrap().is_empty(), "{told}");
    let ended = server.wait_for_end(&job);
    assert_eq!(ended["state"], "succeeded", "{ended}");
    assert_eq!(ended["partitions"][0]["attempts_total"], 3, "{ended}");
    server.check();
}
