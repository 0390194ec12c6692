//! This prover beside its peers: same circuit, same key, same witness, in one process, round after round in turn, every
//! proof verified. Prints tables of medians, writes a plot. `run.sh` beside this crate runs it.
//!
//! | variable | what | default |
//! | --- | --- | --- |
//! | `RAYON_NUM_THREADS` | threads of everybody | 1, by `run.sh` |
//! | `PROOFKEEP_PEERS_DENSE` | exponents of the dense circuit's domain | `10,12,13` |
//! | `PROOFKEEP_PEERS_BLOCKS` | blocks of the SHA-256 circuit: 1 is 2^15, 4 are 2^17 | `1` |
//! | `PROOFKEEP_PEERS_ROUNDS` | rounds | 3 |
//! | `PROOFKEEP_PEERS_MICRO` | least and most exponent of the micro benchmarks, `0` for none | `8,12` |
//! | `PROOFKEEP_PEERS_PEAK` | exponents of the dense circuit whose peak of memory is measured | none |
//! | `PROOFKEEP_PEERS_SVG` | where the plot goes | nowhere |
//! | `PROOFKEEP_PEERS_SNARKJS` | snarkjs's `cli.cjs` | without it |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod ark;
mod circuits;
mod cost;
mod field;
mod micro;
mod peak;
mod plot;
mod provers;
mod snarkjs;
mod system;

use std::fs;
use std::sync::Arc;

use circuits::{Chain, Hash};
use cost::{Rounds, round};
use plot::Line;
use provers::{Bench, Who};
use snarkjs::Snarkjs;
use system::System;

fn numbers(name: &str, default: &str) -> Vec<usize> {
    let text = std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse()
                .unwrap_or_else(|_| panic!("{name}: expected numbers with commas between, found {text:?}"))
        })
        .collect()
}

fn main() {
    if let Ok(who) = std::env::var(peak::CHILD) {
        return peak::child(&who);
    }
    let threads = numbers("RAYON_NUM_THREADS", "1")[0].max(1);
    let rounds = numbers("PROOFKEEP_PEERS_ROUNDS", "3")[0].max(1);
    machine(threads, rounds);
    println!(
        "\n| circuit | domain | prover | processor, s (least–most) | clock, s | times as long | MiB |\n\
         | --- | --- | --- | ---: | ---: | ---: | ---: |"
    );
    let mut lines = Vec::new();
    for log2 in numbers("PROOFKEEP_PEERS_DENSE", "10,12,13") {
        let steps = (1usize << log2) - 2;
        compare("dense", &System::of(Chain { steps }), rounds, threads, &mut lines);
    }
    let mut bits = Vec::new();
    for blocks in numbers("PROOFKEEP_PEERS_BLOCKS", "1") {
        let name = format!("SHA-256, {blocks} blocks");
        compare(&name, &System::of(Hash { blocks }), rounds, threads, &mut bits);
    }
    if let [least, most] = numbers("PROOFKEEP_PEERS_MICRO", "8,12")[..] {
        field::run(rounds);
        micro::run(least as u32..=most as u32, rounds, threads);
    }
    let peaks = numbers("PROOFKEEP_PEERS_PEAK", "");
    if !peaks.is_empty() {
        peak::run(&peaks, threads);
    }
    if let Some(path) = std::env::var_os("PROOFKEEP_PEERS_SVG") {
        let title = format!(
            "One proof, every wire a full field element, {threads} threads: seconds of the processor"
        );
        fs::write(&path, plot::svg(&title, &lines)).unwrap();
    }
    println!("\nload at the end: {}", read("/proc/loadavg"));
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn machine(threads: usize, rounds: usize) {
    let processor = read("/proc/cpuinfo");
    let model = processor.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |model| model.trim_start_matches([' ', '\t', ':']));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "{model}, {cores} cores, Linux {}, load {}; {threads} threads, medians of {rounds} rounds in turn",
        read("/proc/sys/kernel/osrelease"),
        read("/proc/loadavg")
    );
}

/// Everybody on one circuit.
fn compare(circuit: &str, system: &Arc<System>, rounds: usize, threads: usize, lines: &mut Vec<Line>) {
    let log2 = system.log2();
    let bench = Bench::new(Arc::clone(system), threads);
    let mut provers: Vec<_> = Who::all()
        .into_iter()
        .map(|who| (who.name(), bench.prover(who, threads), Rounds::default()))
        .collect();
    let snarkjs = Snarkjs::new(system, threads);
    let mut in_node = Rounds::default();
    for _ in 0..rounds {
        for (_, prove, costs) in &mut provers {
            let (cost, proof) = round(prove);
            bench.verify(&proof);
            costs.0.push(cost);
        }
        if let Some(snarkjs) = &snarkjs {
            in_node.0.push(snarkjs.round());
        }
    }
    let mut table: Vec<_> = provers
        .into_iter()
        .map(|(name, _, costs)| (name, costs))
        .collect();
    if snarkjs.is_some() {
        table.push(("snarkjs".to_owned(), in_node));
    }
    let base = table[0].1.of(|cost| cost.processor)[1];
    for (name, costs) in table {
        let [least, median, most] = costs.of(|cost| cost.processor);
        println!(
            "| {circuit} | 2^{log2} | {name} | {median:.3} ({least:.3}–{most:.3}) | {:.3} | {:.2} | {:.0} |",
            costs.of(|cost| cost.wall)[1],
            median / base,
            costs.of(|cost| cost.memory)[1]
        );
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((log2, median)),
            None => lines.push(Line {
                name,
                points: vec![(log2, median)],
            }),
        }
    }
}
