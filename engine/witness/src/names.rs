//! Names of input signals, from the circuit's `.sym` file.
//!
//! circom's code knows its inputs only by a hash, so names for error texts come from the `.sym`
//! (one line a label: `label,wire,component,name`). Labels of the main component's outputs and
//! inputs come before all others; reading ends once every input is found.

use std::collections::HashSet;

/// An input signal of the circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSignal {
    /// Its name as a key of `input.json`.
    pub name: String,
    /// How many values it takes, all dimensions together.
    pub size: usize,
}

/// 64-bit FNV-1a, the hash by which circom's code knows a signal.
pub(crate) fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Finds the inputs among the labels. `size_of` asks the circuit how many values a name takes
/// (0: no input of that name); `total` is the number of values of all inputs together.
pub(crate) fn inputs<E>(
    sym: &[u8],
    total: usize,
    mut size_of: impl FnMut(&str) -> Result<usize, E>,
) -> Result<Vec<InputSignal>, E> {
    let mut found = Vec::new();
    let mut tried = HashSet::new();
    let mut missing = total;
    for line in sym.split(|&b| b == b'\n') {
        if missing == 0 {
            break;
        }
        let Some(name) = line
            .splitn(4, |&b| b == b',')
            .nth(3)
            .and_then(|name| std::str::from_utf8(name).ok())
            .and_then(|name| name.trim_end().split_once('.'))
            .map(|(_, name)| without_indices(name))
        else {
            continue;
        };
        if !tried.insert(name) {
            continue;
        }
        let size = size_of(name)?;
        if size > 0 {
            missing = missing.saturating_sub(size);
            found.push(InputSignal {
                name: name.to_owned(),
                size,
            });
        }
    }
    Ok(found)
}

/// `m[0][1]` is an element of `m`; `b[0].x[1]` one of `b[0].x`.
fn without_indices(mut name: &str) -> &str {
    while let Some(open) = name.strip_suffix(']').and_then(|rest| rest.rfind('[')) {
        name = &name[..open];
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fnv_of_published_vectors() {
        assert_eq!(hash(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn inputs_are_told_from_other_labels() {
        let sym = b"1,1,1,main.out\n2,2,1,main.b[0].x[1]\nrubbish\n3,3,1,main.m[0][1]\r\n4,4,1,main.m[1][1]\n5,5,1,main.never";
        let mut asked = Vec::new();
        let found = inputs(sym, 3, |name| {
            asked.push(name.to_owned());
            Ok::<_, ()>(match name {
                "b[0].x" => 1,
                "m" => 2,
                _ => 0,
            })
        })
        .unwrap();
        assert_eq!(asked, ["out", "b[0].x", "m"]);
        assert_eq!(
            found[1],
            InputSignal {
                name: "m".into(),
                size: 2
            }
        );
        assert_eq!(without_indices("]"), "]");
        assert_eq!(without_indices("a]["), "a][");
    }
}
