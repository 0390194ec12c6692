//! circom's list of signals (`.sym`): one line `label,wire,component,name` for each signal.

use crate::{FileKind, FormatError};

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal<'a> {
    /// Its number before circom left any signal out.
    pub label: u64,
    /// Its wire, unless it was left out.
    pub wire: Option<u32>,
    /// Its full name, such as `main.hash.in[3]`.
    pub name: &'a str,
}

/// The signals of a circuit in the order of the file.
#[derive(Clone, Debug)]
pub struct Sym<'a> {
    signals: Vec<Signal<'a>>,
    /// Positions in `signals` of those that have a wire, by wire and then in the order of the file.
    by_wire: Vec<u32>,
}

impl<'a> Sym<'a> {
    /// Reads a symbol file.
    ///
    /// # Errors
    ///
    /// The first line that isn't of the form above.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let malformed = |line: usize| FormatError::MalformedSym {
            file: FileKind::Sym,
            line: line as u64 + 1,
        };
        let text = str::from_utf8(bytes).map_err(|error| {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            malformed(valid.iter().filter(|byte| **byte == b'\n').count())
        })?;
        let lines = || text.lines().enumerate().filter(|(_, line)| !line.is_empty());
        let mut signals = Vec::with_capacity(lines().count());
        for (number, line) in lines() {
            signals.push(signal(line).ok_or_else(|| malformed(number))?);
        }

        let too_many = |_| malformed(u32::MAX as usize);
        let count = u32::try_from(signals.len()).map_err(too_many)?;
        let wire = |position: &u32| {
            signals
                .get(*position as usize)
                .and_then(|signal: &Signal<'_>| signal.wire)
        };
        let mut by_wire: Vec<u32> = (0..count).filter(|position| wire(position).is_some()).collect();
        by_wire.sort_by_key(wire);
        Ok(Sym { signals, by_wire })
    }

    /// All signals in the order of the file.
    pub fn signals(&self) -> &[Signal<'a>] {
        &self.signals
    }

    /// The names of a wire. There are several where circom found signals to be equal.
    pub fn names(&self, wire: u32) -> impl Iterator<Item = &'a str> + '_ {
        let at = |position: &u32| self.signals.get(*position as usize);
        let start = self
            .by_wire
            .partition_point(|p| at(p).is_some_and(|signal| signal.wire < Some(wire)));
        self.by_wire
            .iter()
            .skip(start)
            .filter_map(at)
            .take_while(move |signal| signal.wire == Some(wire))
            .map(|signal| signal.name)
    }
}

fn signal(line: &str) -> Option<Signal<'_>> {
    let mut parts = line.splitn(4, ',');
    let label = parts.next()?.parse().ok()?;
    let wire = match parts.next()? {
        "-1" => None,
        wire => Some(wire.parse().ok()?),
    };
    parts.next()?.parse::<u64>().ok()?;
    let name = parts.next().filter(|name| !name.is_empty())?;
    Some(Signal { label, wire, name })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn a_wire_has_all_its_names() {
        let sym =
            Sym::parse(b"1,1,2,main.out\n2,-1,2,main.gone\n3,2,2,main.in[0]\n4,1,1,main.sub.out\n").unwrap();
        assert_eq!(sym.names(1).collect::<Vec<_>>(), ["main.out", "main.sub.out"]);
        assert_eq!(sym.names(2).collect::<Vec<_>>(), ["main.in[0]"]);
        assert_eq!(sym.names(0).count() + sym.names(3).count(), 0);
        assert_eq!(
            sym.signals()[1],
            Signal {
                label: 2,
                wire: None,
                name: "main.gone"
            }
        );
    }

    #[test]
    fn a_broken_line_is_named() {
        for (text, line) in [
            (&b"1,1,2,a\n1,x,2,b\n"[..], 2),
            (b"1,1,2", 1),
            (b"1,1,2,\n", 1),
            (b"1,-2,2,a", 1),
            (b"1,1,2,a\n1,1,2,\xff\n", 2),
            (b"1,4294967296,2,a", 1),
        ] {
            let error = Sym::parse(text).unwrap_err();
            assert_eq!(
                error,
                FormatError::MalformedSym {
                    file: FileKind::Sym,
                    line
                }
            );
        }
    }
}
