//! Writes keys section by section, so that a large key never has to be in memory.

use std::io::{self, Seek, SeekFrom, Write};

use super::{G1_BYTES, G2_BYTES, MAGIC, VERSION, ZkeyHeader};
use crate::container::file_header;
use crate::field::{Q_LE, R_LE};

/// The sections of a key that hold points, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointSection {
    /// Section 3.
    Ic,
    /// Section 5.
    A,
    /// Section 6.
    B1,
    /// Section 7, in G2.
    B2,
    /// Section 8.
    C,
    /// Section 9.
    H,
}

impl PointSection {
    /// The section's number in the file.
    pub fn id(self) -> u32 {
        match self {
            PointSection::Ic => 3,
            PointSection::A => 5,
            PointSection::B1 => 6,
            PointSection::B2 => 7,
            PointSection::C => 8,
            PointSection::H => 9,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            PointSection::Ic => "IC",
            PointSection::A => "the points A",
            PointSection::B1 => "the points B in G1",
            PointSection::B2 => "the points B in G2",
            PointSection::C => "the points C",
            PointSection::H => "the points H",
        }
    }

    pub(super) fn length_name(self) -> &'static str {
        match self {
            PointSection::Ic => "the length of section 3 (IC)",
            PointSection::A => "the length of section 5 (A)",
            PointSection::B1 => "the length of section 6 (B in G1)",
            PointSection::B2 => "the length of section 7 (B in G2)",
            PointSection::C => "the length of section 8 (C)",
            PointSection::H => "the length of section 9 (H)",
        }
    }
}

/// The six points of a key's header, in little-endian Montgomery form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPoints {
    /// α in G1.
    pub alpha1: [u8; G1_BYTES],
    /// β in G1.
    pub beta1: [u8; G1_BYTES],
    /// β in G2.
    pub beta2: [u8; G2_BYTES],
    /// γ in G2.
    pub gamma2: [u8; G2_BYTES],
    /// δ in G1.
    pub delta1: [u8; G1_BYTES],
    /// δ in G2.
    pub delta2: [u8; G2_BYTES],
}

/// snarkjs's order, so that a key from the same powers of tau is the same file.
const ORDER: [Step; 7] = [
    Step::Coefficients,
    Step::Points(PointSection::Ic),
    Step::Points(PointSection::H),
    Step::Points(PointSection::C),
    Step::Points(PointSection::A),
    Step::Points(PointSection::B1),
    Step::Points(PointSection::B2),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Points(PointSection),
    Coefficients,
}

/// Writes a `.zkey` that nobody has contributed to.
///
/// Sections go out in snarkjs's order: coefficients, IC, H, C, A, B1, B2; another order, a section of another length than the
/// header asks for, or a section left out, is an error of kind [`io::ErrorKind::InvalidInput`].
#[derive(Debug)]
pub struct ZkeyWriter<W> {
    out: W,
    header: ZkeyHeader,
    done: usize,
}

impl<W: Write + Seek> ZkeyWriter<W> {
    /// Writes the header and the sections 1 and 2. `header.log2` is not written.
    ///
    /// # Errors
    ///
    /// Those of `out`, and counts that no key can have.
    pub fn new(mut out: W, header: ZkeyHeader, points: &KeyPoints) -> io::Result<Self> {
        header
            .check()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut start = file_header(MAGIC, VERSION, 10);
        crate::container::push_section(&mut start, 1, &1_u32.to_le_bytes());

        let mut body = Vec::with_capacity(1024);
        for modulus in [&Q_LE[..], &R_LE[..]] {
            body.extend_from_slice(&(modulus.len() as u32).to_le_bytes());
            body.extend_from_slice(modulus);
        }
        for count in [header.wires, header.public, header.domain] {
            body.extend_from_slice(&count.to_le_bytes());
        }
        body.extend_from_slice(&points.alpha1);
        body.extend_from_slice(&points.beta1);
        body.extend_from_slice(&points.beta2);
        body.extend_from_slice(&points.gamma2);
        body.extend_from_slice(&points.delta1);
        body.extend_from_slice(&points.delta2);
        crate::container::push_section(&mut start, 2, &body);
        out.write_all(&start)?;
        Ok(ZkeyWriter { out, header, done: 0 })
    }

    /// Writes one section of points: `fill` gets a writer that takes exactly as many bytes as the section has.
    ///
    /// # Errors
    ///
    /// Those of `out` and of `fill`, and a section out of order or of the wrong length.
    pub fn points(
        &mut self,
        section: PointSection,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin(Step::Points(section))?;
        let length = self.header.section_bytes(section);
        self.section_header(section.id(), length)?;
        let mut limited = Limited {
            out: &mut self.out,
            left: length,
        };
        fill(&mut limited)?;
        match limited.left {
            0 => Ok(()),
            left => Err(invalid(format!(
                "{} is {left} bytes short",
                section.length_name()
            ))),
        }
    }

    /// Writes section 4: `fill` pushes the nonzero entries of A and B.
    ///
    /// # Errors
    ///
    /// Those of `out` and of `fill`, a section out of order, 2^32 entries or more.
    pub fn coefficients(
        &mut self,
        fill: impl FnOnce(&mut CoefficientSink<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.begin(Step::Coefficients)?;
        let start = self.out.stream_position()?;
        // Length and count are known only afterwards.
        self.section_header(4, 0)?;
        self.out.write_all(&0_u32.to_le_bytes())?;
        let mut sink = CoefficientSink {
            out: &mut self.out,
            count: 0,
        };
        fill(&mut sink)?;

        let count = u32::try_from(sink.count)
            .map_err(|_| invalid("more than 2^32 entries in the matrices".to_owned()))?;
        let end = self.out.stream_position()?;
        self.out.seek(SeekFrom::Start(start))?;
        self.section_header(4, end - start - 12)?;
        self.out.write_all(&count.to_le_bytes())?;
        self.out.seek(SeekFrom::Start(end))?;
        Ok(())
    }

    /// Writes section 10, flushes, and gives the writer back. The circuit's hash is that of
    /// [`Contributions::circuit_hash`](super::Contributions::circuit_hash): zero if the key came from no ceremony.
    ///
    /// # Errors
    ///
    /// Those of `out`, and a section left out.
    pub fn finish(mut self, circuit_hash: &[u8; 64]) -> io::Result<W> {
        if let Some(missing) = ORDER.get(self.done) {
            return Err(invalid(format!("the key has no {missing:?} yet")));
        }
        self.section_header(10, 68)?;
        self.out.write_all(circuit_hash)?;
        // No contributions.
        self.out.write_all(&[0; 4])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, step: Step) -> io::Result<()> {
        if ORDER.get(self.done) != Some(&step) {
            return Err(invalid(format!("{step:?} is out of order")));
        }
        self.done += 1;
        Ok(())
    }

    fn section_header(&mut self, id: u32, length: u64) -> io::Result<()> {
        self.out.write_all(&id.to_le_bytes())?;
        self.out.write_all(&length.to_le_bytes())
    }
}

/// Takes the entries of A and B.
pub struct CoefficientSink<'a> {
    out: &'a mut dyn Write,
    count: u64,
}

impl CoefficientSink<'_> {
    /// Writes one entry: matrix 0 for A or 1 for B, row, wire, and the value times R², R = 2^256, little-endian.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn push(&mut self, matrix: u32, row: u32, wire: u32, value: &[u8; 32]) -> io::Result<()> {
        for number in [matrix, row, wire] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.count += 1;
        self.out.write_all(value)
    }
}

/// A writer that takes no more than `left` bytes.
struct Limited<'a> {
    out: &'a mut dyn Write,
    left: u64,
}

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.left {
            return Err(invalid("more points than the section has".to_owned()));
        }
        let written = self.out.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}
