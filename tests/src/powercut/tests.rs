//! The rebuilder against a small program, whose every change a test names.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Change, Disk, Model, Names, Recording};
use crate::shim::{self, Record, Shims};

mod libraries;

/// A directory to work in and the places around it.
struct Bench {
    home: tempfile::TempDir,
    dir: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        Self { home, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn recorder(&self) -> Shims {
        let record = Record {
            dir: self.dir.clone(),
            log: self.path("log"),
            role: None,
            ack_file: Some(self.path("ack")),
            lying: false,
        };
        Shims {
            record: Some(record),
            ..Shims::default()
        }
    }

    /// Runs lines of `script.c`; answers what it printed, one line each.
    fn run(&self, shims: &Shims, script: &str) -> Vec<String> {
        self.run_as(shims, script, &[])
    }

    fn run_as(&self, shims: &Shims, script: &str, arguments: &[&str]) -> Vec<String> {
        let mut command = Command::new(shim::build("script").unwrap());
        command
            .args(arguments)
            .current_dir(&self.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        shims.apply(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        let script: String = script.lines().map(|line| format!("{}\n", line.trim())).collect();
        // A killed child leaves the rest unread.
        let _ = child.stdin.take().unwrap().write_all(script.as_bytes());
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn record(&self, script: &str) -> Recording {
        let printed = self.run(&self.recorder(), script);
        assert!(printed.iter().all(|line| line.starts_with("ok")), "{printed:?}");
        let recording = Recording::read(&self.path("log")).unwrap();
        let mut disk = Disk::empty();
        disk.advance(&recording, recording.entries().len()).unwrap();
        disk.agrees_with(&recording, &self.dir).unwrap();
        recording
    }

    /// The image at a cut: relative paths and texts.
    fn image(&self, recording: &Recording, cut: usize, model: Model) -> BTreeMap<String, String> {
        let mut disk = Disk::empty();
        disk.advance(recording, cut).unwrap();
        let scratch = tempfile::tempdir_in(self.home.path()).unwrap();
        let out = scratch.path().join("image");
        disk.image(recording, model, &out).unwrap();
        files(&out)
    }
}

fn files(dir: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(
                files(&entry.path())
                    .into_iter()
                    .map(|(n, t)| (format!("{name}/{n}"), t)),
            );
            found.insert(format!("{name}/"), String::new());
        } else {
            found.insert(
                name,
                String::from_utf8(std::fs::read(entry.path()).unwrap()).unwrap(),
            );
        }
    }
    found
}

fn tree(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected
        .iter()
        .map(|&(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

/// The cut right after the n-th change that a test picks.
fn after(recording: &Recording, n: usize, picks: impl Fn(&Change) -> bool) -> usize {
    let mut matching = recording
        .entries()
        .iter()
        .enumerate()
        .filter(|(_, e)| picks(&e.change));
    matching.nth(n).unwrap().0 + 1
}

fn sync_end(change: &Change) -> bool {
    matches!(change, Change::SyncEnd { .. })
}

#[test]
fn only_synced_bytes_under_synced_names_are_promised() {
    let bench = Bench::new();
    let recording = bench.record(
        "create a
         write a 0 hello
         fdatasync a
         fsync .
         write a 5 , world
         create b
         ack told
         fdatasync a",
    );
    let end = recording.entries().len();
    let strict = |cut| bench.image(&recording, cut, Model::STRICT);
    assert_eq!(strict(0), tree(&[]));
    // The bytes are synced, the name is not.
    assert_eq!(strict(after(&recording, 0, sync_end)), tree(&[]));
    let named = after(&recording, 1, sync_end);
    assert_eq!(strict(named - 1), tree(&[]), "the sync has begun, not ended");
    assert_eq!(strict(named), tree(&[("a", "hello")]));
    assert_eq!(strict(end - 1), tree(&[("a", "hello")]));
    assert_eq!(strict(end), tree(&[("a", "hello, world")]));
    assert_eq!(
        bench.image(&recording, end, Model::KEPT),
        tree(&[("a", "hello, world"), ("b", "")])
    );
    // The acknowledgement stands before the sync that it should have waited for.
    assert_eq!(recording.acknowledged(end).collect::<Vec<_>>(), [b"told"]);
    assert_eq!(recording.acknowledged(named).count(), 0);
}

#[test]
fn a_rename_without_syncs_can_lose_either_side() {
    let bench = Bench::new();
    let recording = bench.record(
        "create current
         write current 0 old
         fsync current
         fsync .
         create new
         write new 0 new
         rename new current",
    );
    let end = recording.entries().len();
    let image = |model| bench.image(&recording, end, model);
    assert_eq!(image(Model::STRICT), tree(&[("current", "old")]));
    assert_eq!(image(Model::NAMES_LOST), tree(&[("current", "old")]));
    assert_eq!(image(Model::NAMES_FIRST), tree(&[("current", "")]));
    assert_eq!(image(Model::KEPT), tree(&[("current", "new")]));
}

#[test]
fn directories_links_and_removals_wait_for_their_own_directory() {
    let bench = Bench::new();
    let recording = bench.record(
        "mkdir sub
         create sub/a
         write sub/a 0 text
         fsync sub/a
         fsync sub
         fsync .
         link sub/a sub/b
         rename sub/a moved
         fsync .
         unlink sub/b
         fsync sub
         mkdir gone
         rmdir gone",
    );
    let strict = |n| bench.image(&recording, after(&recording, n, sync_end), Model::STRICT);
    assert_eq!(strict(1), tree(&[]), "the directory's own name is its parent's");
    assert_eq!(strict(2), tree(&[("sub/", ""), ("sub/a", "text")]));
    assert_eq!(
        strict(3),
        tree(&[("moved", "text"), ("sub/", "")]),
        "the link is its directory's"
    );
    assert_eq!(strict(4), tree(&[("moved", "text"), ("sub/", "")]));
    let before_sub = after(&recording, 4, sync_end) - 1;
    assert_eq!(
        bench.image(&recording, before_sub, Model::KEPT),
        tree(&[("moved", "text"), ("sub/", "")])
    );
}

#[test]
fn every_call_that_changes_a_file_is_seen() {
    let bench = Bench::new();
    let recording = bench.record(
        "create a
         append a one
         append a two
         writev a x y
         truncate a 6
         extend a 9
         range a
         create b
         write b 0 soon gone
         empty b
         renameat2 b c
         unnamed d text
         write d 4 ual
         unlink c
         create c
         append c again",
    );
    let end = recording.entries().len();
    let all = tree(&[("a", "onetwo\0\0\0"), ("c", "again"), ("d", "textual")]);
    assert_eq!(bench.image(&recording, end, Model::KEPT), all);
    assert_eq!(bench.image(&recording, end, Model::STRICT), tree(&[]));
}

#[test]
fn reordered_images_tear_writes_and_lose_sizes() {
    let bench = Bench::new();
    let recording = bench.record(
        "create a
         fill a 0 4096 0
         fsync a
         fsync .
         fill a 0 4096 1
         fill a 4096 4096 1
         fill a 256 1024 2",
    );
    let end = recording.entries().len();
    let (mut torn, mut old, mut short, mut long) = (0, 0, 0, 0);
    for seed in 0..100 {
        let image = bench.image(&recording, end, Model::reordered(seed));
        let text = &image["a"];
        assert!(
            text.len() >= 4096
                && text.len() <= 8192
                && (text.len() == 8192 || text.len().is_multiple_of(512))
        );
        for (i, sector) in text.as_bytes().chunks(512).enumerate() {
            // The third write covers sectors 1 whole, 0 and 2 in half.
            let whole = |b: u8| sector.iter().all(|&x| x == b);
            assert!(
                whole(b'0') || whole(b'1') || whole(0) || (i < 3 && sector.contains(&b'2')),
                "sector {i}"
            );
        }
        torn += usize::from(text[512..4096].contains('0') && text[512..4096].contains('1'));
        old += usize::from(text[..4096].bytes().all(|b| b == b'0'));
        short += usize::from(text.len() < 8192);
        long += usize::from(text.len() == 8192);
        assert_eq!(
            image,
            bench.image(&recording, end, Model::reordered(seed)),
            "a seed repeats"
        );
    }
    assert!(
        torn > 10 && old < 90 && short > 10 && long > 10,
        "{torn} {old} {short} {long}"
    );
    // What is synced never moves.
    let named = after(&recording, 1, sync_end);
    for seed in 0..20 {
        let image = bench.image(&recording, named, Model::reordered(seed));
        assert_eq!(image, tree(&[("a", &"0".repeat(4096))]));
    }
}

#[test]
fn a_lying_disk_keeps_nothing_of_what_fdatasync_promised() {
    let bench = Bench::new();
    let mut shims = bench.recorder();
    if let Some(record) = &mut shims.record {
        record.lying = true;
    }
    bench.run(
        &shims,
        "create a\nfsync .\nwrite a 0 one\nfsync a\nwrite a 0 two\nfdatasync a",
    );
    let recording = Recording::read(&bench.path("log")).unwrap();
    let image = bench.image(&recording, recording.entries().len(), Model::STRICT);
    assert_eq!(image, tree(&[("a", "one")]));
}

#[test]
fn a_mapping_that_can_be_written_to_is_told() {
    let bench = Bench::new();
    bench.run(&bench.recorder(), "create a\nwrite a 0 x\nmap a y");
    let recording = Recording::read(&bench.path("log")).unwrap();
    let played = Disk::empty().advance(&recording, recording.entries().len());
    assert!(played.unwrap_err().to_string().contains("a mapping"));
}

#[test]
fn names_arrive_in_the_order_that_the_model_keeps() {
    let bench = Bench::new();
    let script: String = (0..6).map(|i| format!("create d/{i}\ncreate e/{i}\n")).collect();
    let recording = bench.record(&format!("mkdir d\nmkdir e\nfsync .\n{script}"));
    let end = recording.entries().len();
    let (mut in_order, mut of_each, mut any) = (0, 0, 0);
    for seed in 0..100 {
        let names = |names| {
            let model = Model {
                names,
                ..Model::STRICT.seeded(seed)
            };
            let image = bench.image(&recording, end, model);
            let there = |dir: &str| -> Vec<bool> {
                (0..6)
                    .map(|i| image.contains_key(&format!("{dir}/{i}")))
                    .collect()
            };
            (there("d"), there("e"))
        };
        // The first so many are there: no name comes after one that is missing.
        let whole = |there: &[bool]| there.is_sorted_by(|a, b| a >= b);
        let count = |there: &[bool]| there.iter().filter(|there| **there).count();
        let (d, e) = names(Names::InOrder);
        assert!(whole(&d) && whole(&e) && (0..=1).contains(&(count(&d) - count(&e))));
        in_order += usize::from(count(&d) % 6 > 0);
        let (d, e) = names(Names::InOrderOfEach);
        assert!(whole(&d) && whole(&e));
        of_each += usize::from(count(&d).abs_diff(count(&e)) > 1);
        let (d, e) = names(Names::Any);
        any += usize::from(!whole(&d) && !whole(&e));
    }
    assert!(
        in_order > 20 && of_each > 20 && any > 20,
        "{in_order} {of_each} {any}"
    );
}

#[test]
fn bytes_between_syncs_are_counted() {
    let bench = Bench::new();
    let recording = bench.record(
        "create db
         fill db 0 1000 x
         fdatasync db
         fill db 0 700 y
         range db
         fill db 0 700 z
         fdatasync db
         fill db 0 10 z",
    );
    let mut disk = Disk::empty();
    disk.advance(&recording, recording.entries().len()).unwrap();
    assert_eq!((disk.unsynced_peak("db"), disk.unsynced_peak("other")), (1400, 0));
}

#[test]
fn what_was_there_before_is_captured() {
    let bench = Bench::new();
    std::fs::create_dir(bench.dir.join("sub")).unwrap();
    std::fs::write(bench.dir.join("sub/a"), "before").unwrap();
    let captured = Disk::capture(&bench.dir).unwrap();
    bench.run(&bench.recorder(), "write sub/a 0 BE\nrename sub/a b");
    let recording = Recording::read(&bench.path("log")).unwrap();
    let end = recording.entries().len();
    assert!(Disk::empty().advance(&recording, end).is_err());
    let mut disk = captured;
    disk.advance(&recording, end).unwrap();
    disk.agrees_with(&recording, &bench.dir).unwrap();
    assert!(
        disk.advance(&recording, 0).is_err(),
        "a disk does not run backwards"
    );
    let out = bench.path("image");
    disk.image(&recording, Model::STRICT, &out).unwrap();
    assert_eq!(files(&out), tree(&[("sub/", ""), ("sub/a", "before")]));
    // A change that the recorder did not see is told.
    std::fs::write(bench.dir.join("b"), "BEhind").unwrap();
    assert!(disk.agrees_with(&recording, &bench.dir).is_err());
}

#[test]
fn cuts_repeat_by_seed_and_include_the_end() {
    let bench = Bench::new();
    let script: String = (0..50)
        .map(|i| format!("create f{i}\nwrite f{i} 0 x\nfsync f{i}\n"))
        .collect();
    let recording = bench.record(&script);
    let cuts = recording.cuts(40, 7);
    assert_eq!(cuts, recording.cuts(40, 7));
    assert_eq!((cuts.len(), cuts.last()), (40, Some(&recording.entries().len())));
    assert!(recording.cuts(10_000, 7).len() <= recording.entries().len() + 1);
}
