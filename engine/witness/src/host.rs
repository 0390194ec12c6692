//! The four functions that circom's code may call, and what its messages tell.

use wasmi::{Error, Linker, StoreLimits};

use crate::error::{Frame, Scope, WitnessError};

/// The module name under which circom imports its host functions.
pub(crate) const MODULE: &str = "runtime";
/// circom's host functions.
pub(crate) const FUNCTIONS: [&str; 4] = [
    "exceptionHandler",
    "printErrorMessage",
    "writeBufferMessage",
    "showSharedRWMemory",
];

/// circom's exception for a failed `assert` or `===`.
const ASSERT_FAILED: i32 = 4;
/// Frames kept of one failure; deeper ones say little.
pub(crate) const MAX_FRAMES: usize = 32;
/// Characters read of one message; circom's buffer holds 240.
pub(crate) const MAX_MESSAGE: usize = 512;

/// The error by which `exceptionHandler` stops the circuit's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exception(i32);

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "circom exception {}", self.0)
    }
}

impl std::error::Error for Exception {}
impl wasmi::errors::HostError for Exception {}

impl Exception {
    pub(crate) fn into_error(self, frames: Vec<Frame>) -> WitnessError {
        let what = match self.0 {
            ASSERT_FAILED => return WitnessError::AssertFailed { frames },
            1 => "an input signal is not known to it",
            2 => "too many input signals are set",
            3 => "an input signal is set twice",
            5 => "not enough memory",
            6 => "an input array is accessed past its end",
            7 => "an array is accessed past its end",
            _ => "an exception that circom does not name",
        };
        WitnessError::Exception { what, frames }
    }
}

/// The error by which `printErrorMessage` interrupts the circuit's code, which goes on once its message is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Print;

impl std::fmt::Display for Print {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("circom prints a message")
    }
}

impl std::error::Error for Print {}
impl wasmi::errors::HostError for Print {}

/// Links the host functions. What the circuit logs (`log(…)`) is dropped: it holds signal values.
pub(crate) fn link(linker: &mut Linker<StoreLimits>) -> Result<(), Error> {
    let [exception, print_error, write_buffer, show_memory] = FUNCTIONS;
    linker.func_wrap(MODULE, exception, |code: i32| -> Result<(), Error> {
        Err(Error::host(Exception(code)))
    })?;
    linker.func_wrap(MODULE, print_error, || -> Result<(), Error> {
        Err(Error::host(Print))
    })?;
    linker.func_wrap(MODULE, write_buffer, || {})?;
    linker.func_wrap(MODULE, show_memory, || {})?;
    Ok(())
}

/// Reads `Error in template Name_12 line: 34` (or `function`). Any other text is dropped, so that
/// nothing the circuit's code writes of its own reaches an error.
pub(crate) fn frame(text: &str) -> Option<Frame> {
    let rest = text.strip_prefix("Error in ")?;
    let (scope, rest) = match rest.strip_prefix("template ") {
        Some(rest) => (Scope::Template, rest),
        None => (Scope::Function, rest.strip_prefix("function ")?),
    };
    let (instance, line) = rest.split_once(" line: ")?;
    // circom numbers the instances of a template.
    let (name, number) = instance.rsplit_once('_')?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if name.is_empty() || name.len() > 128 || !name.chars().all(word) || number.parse::<u32>().is_err() {
        return None;
    }
    Some(Frame {
        scope,
        name: name.to_owned(),
        line: line.trim_end().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_circoms_own_message_becomes_a_frame() {
        let square = |scope| Frame {
            scope,
            name: "Square_2".into(),
            line: 7,
        };
        assert_eq!(
            frame("Error in template Square_2_0 line: 7"),
            Some(square(Scope::Template))
        );
        assert_eq!(
            frame("Error in function Square_2_0 line: 7"),
            Some(square(Scope::Function))
        );
        for text in [
            "",
            "secret 42",
            "Error in template",
            "Error in template Square line: 7",
            "Error in template Square_x line: 7",
            "Error in template Sq uare_1 line: 7",
            "Error in template _1 line: 7",
            "Error in template Square_1 line: 99999999999",
            "Error in template Square_1 line: 7 secret",
        ] {
            assert_eq!(frame(text), None, "{text}");
        }
    }
}
