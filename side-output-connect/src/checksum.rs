//! CRC-32 (IEEE), which finds every change of a byte and every short run of changes.

/// A checksum that grows with what it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum(u32);

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut value = byte;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[byte as usize] = value;
        byte += 1;
    }
    table
}

impl Checksum {
    pub(crate) const fn new() -> Self {
        Self(!0)
    }

    /// The checksum that goes on where another one had this value.
    #[cfg(feature = "files")]
    pub(crate) const fn resume(value: u32) -> Self {
        Self(!value)
    }

    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            let at = (self.0 ^ u32::from(*byte)) & 0xFF;
            self.0 = (self.0 >> 8) ^ TABLE[at as usize];
        }
        self
    }

    pub(crate) const fn value(self) -> u32 {
        !self.0
    }

    /// Of all these parts and their lengths: no byte can move from one to the next unseen.
    #[cfg(feature = "sqlite")]
    pub(crate) fn of_parts(parts: &[&[u8]]) -> u32 {
        let add = |sum: Self, part: &&[u8]| sum.add(&(part.len() as u64).to_le_bytes()).add(part);
        parts.iter().fold(Self::new(), add).value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_known_checksum() {
        assert_eq!(Checksum::new().add(b"1234").add(b"56789").value(), 0xCBF4_3926);
    }
}
