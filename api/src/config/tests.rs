//! What can be set, and what is refused.

use super::*;

fn file(text: &str) -> Result<Config, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proofkeep.toml");
    std::fs::write(&path, text).unwrap();
    Config::defaults().with_file(&path)
}

#[test]
fn a_file_changes_what_it_names_and_nothing_else() {
    let config = file("listen = \"127.0.0.1:1\"\nmemory = \"2 GiB\"\ngrace = \"5s\"\n").unwrap();
    let expected = Config {
        listen: Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 1))),
        memory: 2 << 30,
        grace: Duration::from_secs(5),
        ..Config::defaults()
    };
    assert_eq!(config, expected);
}

#[test]
fn an_unknown_key_is_an_error_that_names_the_line() {
    let error = file("max_jobs = 3\nmemmory = \"2 GiB\"\n")
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2") && error.contains("memmory"), "{error}");
}

#[test]
fn a_bad_size_is_an_error_that_names_the_line_and_what_would_do() {
    let error = file("\nmax_jobs = 3\nmemory = \"2 gigs\"\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("line 3") && error.contains("2 gigs") && error.contains("GiB"),
        "{error}"
    );
}

#[test]
fn the_environment_wins_over_the_file_and_its_errors_name_the_variable() {
    let get = |name: &str| (name == "PROOFKEEP_THREADS").then(|| "many".to_owned());
    let error = Config::defaults().with_environment(get).unwrap_err().to_string();
    assert!(
        error.contains("PROOFKEEP_THREADS") && error.contains("many"),
        "{error}"
    );
}

#[test]
fn more_slots_than_a_boot_can_open_are_refused_before_it_tries() {
    let with = |cpu_devices: &[u32]| {
        Config {
            cpu_devices: cpu_devices.to_vec(),
            ..Config::defaults()
        }
        .checked()
        .map_err(|error| error.to_string())
    };
    assert!(with(&[16, 16]).is_ok());
    for bad in [&[][..], &[0], &[33], &[16, 17], &[u32::MAX, 2]] {
        assert!(with(bad).unwrap_err().contains("32 in all"), "{bad:?}");
    }
}

#[test]
fn what_is_kept_for_critical_jobs_is_a_part_of_the_memory() {
    let config = file("memory = \"2GiB\"\nreserve_critical = \"512MiB\"\n").unwrap();
    assert_eq!(config.reserve_critical, 512 << 20);
    assert!(config.checked().is_ok());
    let config = file("memory = \"2GiB\"\nreserve_critical = \"3GiB\"\n").unwrap();
    let error = config.checked().unwrap_err().to_string();
    assert!(error.contains("reserve_critical"), "{error}");
}

#[test]
fn a_socket_in_the_file_system_is_named_by_its_path() {
    let config = file("listen = \"unix:/run/pk/socket\"\n").unwrap();
    assert_eq!(config.listen, Listen::Unix("/run/pk/socket".into()));
    assert!(config.checked().is_ok());
    for bad in ["unix:", "unix", "localhost"] {
        let error = file(&format!("listen = \"{bad}\"\n")).unwrap_err().to_string();
        assert!(
            error.contains("line 1") && error.contains("unix:/path"),
            "{error}"
        );
    }
}

#[test]
fn any_address_but_loopback_is_refused() {
    let config = Config {
        listen: Listen::Tcp(SocketAddr::from(([0, 0, 0, 0], 8420))),
        ..Config::defaults()
    };
    assert!(config.checked().unwrap_err().to_string().contains("loopback"));
}

#[test]
fn parameters_that_are_not_the_published_ones_are_refused_unless_it_says_otherwise() {
    assert!(!Config::defaults().allow_unofficial_params);
    let config = file("param_dir = \"params\"\nallow_unofficial_params = true\n").unwrap();
    assert!(config.allow_unofficial_params);
    assert_eq!(config.param_dir, Some("params".into()));
    let get = |name: &str| (name == "PROOFKEEP_ALLOW_UNOFFICIAL_PARAMS").then(|| "accept".to_owned());
    let error = config.with_environment(get).unwrap_err().to_string();
    assert!(error.contains("expected true or false"), "{error}");
}
