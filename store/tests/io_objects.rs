//! Objects: whole or not there, checked when read, swept only when nobody needs them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod io_support;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use io_support::{boot, open, submit, submitted};
use proofkeep_store::ObjectError;
use proofkeep_store::ids::Digest;
use proofkeep_store::machine::Command;

#[test]
fn an_upload_is_there_when_it_is_finished_and_not_before() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let objects = store.objects();
    let bytes = vec![7; 300_000];
    let digest = Digest::of(&bytes);
    let mut upload = objects.create().unwrap();
    for chunk in bytes.chunks(1000) {
        upload.write(chunk).unwrap();
    }
    assert_eq!(upload.length(), 300_000);
    assert_eq!(objects.stat(digest).unwrap(), None);
    assert_eq!(upload.finish().unwrap(), (digest, 300_000));
    assert_eq!(objects.stat(digest).unwrap().unwrap().length, 300_000);
    assert_eq!(objects.read_verified(digest).unwrap(), bytes);
    let mut opened = Vec::new();
    objects.open(digest).unwrap().read_to_end(&mut opened).unwrap();
    assert_eq!(opened, bytes);
    let path = objects.path(digest);
    assert!(path.ends_with(format!("objects/{}/{}", &digest.hex()[..2], digest.hex())));
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(data.path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn an_upload_that_is_given_up_or_is_another_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let objects = store.objects();
    let mut upload = objects.create().unwrap();
    upload.write(b"half").unwrap();
    drop(upload);
    let mut upload = objects.create().unwrap();
    upload.write(b"something else").unwrap();
    let expected = Digest::of(b"something");
    match upload.finish_as(expected) {
        Err(ObjectError::Mismatch {
            expected: said,
            found,
            length: 14,
        }) => {
            assert_eq!((said, found), (expected, Digest::of(b"something else")));
        }
        other => panic!("{other:?}"),
    }
    assert!(objects.list().unwrap().is_empty());
    assert_eq!(fs::read_dir(data.path().join("tmp")).unwrap().count(), 0);
    let mut upload = objects.create().unwrap();
    upload.write(b"something").unwrap();
    assert_eq!(upload.finish_as(expected).unwrap(), 9);
    assert!(matches!(
        objects.open(Digest::of(b"nothing")),
        Err(ObjectError::Missing(_))
    ));
}

#[test]
fn a_damaged_object_goes_to_quarantine_and_can_be_uploaded_again() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let objects = store.objects();
    let digest = objects.put(b"precious").unwrap();
    fs::write(objects.path(digest), b"precioux").unwrap();
    assert_ne!(
        objects.digest_of(digest).unwrap(),
        digest,
        "looking moves nothing"
    );
    match objects.read_verified(digest) {
        Err(ObjectError::Damaged {
            expected, moved_to, ..
        }) => {
            assert_eq!(expected, digest);
            assert_eq!(fs::read(moved_to).unwrap(), b"precioux");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(objects.verify(digest), Err(ObjectError::Missing(_))));
    objects.put(b"precious").unwrap();
    objects.verify(digest).unwrap();
    // One that is damaged and not yet found out is replaced by an upload.
    fs::write(objects.path(digest), b"precioux").unwrap();
    objects.put(b"precious").unwrap();
    objects.verify(digest).unwrap();
}

#[test]
fn the_sweeper_takes_what_is_old_and_not_needed() {
    let data = tempfile::tempdir().unwrap();
    let store = open(data.path());
    let handle = boot(&store);
    let objects = store.objects();
    let [needed, old, young, touched] =
        [b"needed".as_slice(), b"old", b"young", b"touched"].map(|bytes| objects.put(bytes).unwrap());
    let mut job = submit(1);
    job.objects = vec![needed];
    submitted(handle.commit_blocking(Command::Submit(job)));
    let yesterday = fs::FileTimes::new()
        .set_modified(objects.stat(young).unwrap().unwrap().touched - Duration::from_secs(90_000));
    for digest in [needed, old, touched] {
        fs::File::open(objects.path(digest))
            .unwrap()
            .set_times(yesterday)
            .unwrap();
    }
    assert!(objects.touch(touched).unwrap());
    assert!(!objects.touch(Digest::of(b"nothing")).unwrap());
    fs::write(data.path().join("objects/00/README"), "not an object").unwrap();
    let swept = handle.sweep_objects(Duration::from_secs(86_400)).unwrap();
    assert_eq!((swept.removed, swept.bytes), (1, 3));
    assert_eq!(objects.missing(&[needed, old, young, touched]).unwrap(), [old]);
    assert!(data.path().join("objects/00/README").exists());
}

#[test]
fn temporary_files_of_other_boots_are_removed() {
    let data = tempfile::tempdir().unwrap();
    {
        let store = open(data.path());
        let handle = boot(&store);
        let mut cut_off = store.objects().create().unwrap();
        cut_off.write(b"half").unwrap();
        handle.stop();
        // As if the process had been killed: nobody removes the file.
        std::mem::forget(cut_off);
    }
    let store = open(data.path());
    let mut ours = store.objects().create().unwrap();
    ours.write(b"whole").unwrap();
    assert_eq!(store.objects().remove_abandoned().unwrap(), 1);
    ours.finish_as(Digest::of(b"whole")).unwrap();
}
