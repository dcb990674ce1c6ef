//! A file of a journal: frames, each of which was written and synced in one step.
//!
//! A frame is its length, the checksum of what it has, the checksum of these two, the records, each
//! after its length, and, written when all that was synced, a mark.

use crate::checksum::Checksum;
use std::num::TryFromIntError;

/// The mark of a frame that was synced.
pub(super) const SYNCED: u8 = 1;

const HEAD: usize = 12;

pub(super) fn frame(records: &[Vec<u8>]) -> Result<Vec<u8>, TryFromIntError> {
    let mut frame = vec![0; HEAD];
    for record in records {
        frame.extend_from_slice(&u32::try_from(record.len())?.to_le_bytes());
        frame.extend_from_slice(record);
    }
    let length = u32::try_from(frame.len() - HEAD)?;
    let checksum = checksum(&frame[HEAD..]);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..8].copy_from_slice(&checksum);
    let head = self::checksum(&frame[..8]);
    frame[8..HEAD].copy_from_slice(&head);
    Ok(frame)
}

pub(super) struct Segment {
    pub(super) records: Vec<Vec<u8>>,
    /// How many bytes are whole frames.
    pub(super) length: usize,
    /// Whether the last one has its mark.
    pub(super) is_synced: bool,
}

/// Reads the frames. Only the last one of the last file may have been cut short.
pub(super) fn read(bytes: &[u8], is_last: bool) -> Result<Segment, String> {
    let mut segment = Segment { records: Vec::new(), length: 0, is_synced: true };
    while segment.length < bytes.len() {
        let rest = &bytes[segment.length..];
        let Some((length, is_synced)) = read_frame(rest, &mut segment.records) else {
            if is_last && is_cut_short(rest) {
                break;
            }
            return Err(format!("it is damaged from byte {} on", segment.length));
        };
        segment.length += length;
        segment.is_synced = is_synced;
    }
    Ok(segment)
}

/// Reads a frame with its mark, if it has one; `None` if it is not whole.
fn read_frame(bytes: &[u8], records: &mut Vec<Vec<u8>>) -> Option<(usize, bool)> {
    let length = length(bytes)?;
    let mut body = bytes[HEAD..].get(..length)?;
    if bytes[4..8] != checksum(body) {
        return None;
    }
    let before = records.len();
    while let Some((length, rest)) = body.split_first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let Some((record, rest)) = rest.split_at_checked(length) else {
            records.truncate(before);
            return None;
        };
        records.push(record.to_owned());
        body = rest;
    }
    let end = HEAD + length;
    match bytes.get(end) {
        None => Some((end, false)),
        Some(&SYNCED) => Some((end + 1, true)),
        Some(_) => {
            records.truncate(before);
            None
        }
    }
}

/// The length of a frame, if its head is whole.
fn length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.get(..HEAD)?;
    let length = u32::from_le_bytes(*head.first_chunk()?);
    (head[8..] == checksum(&head[..8])).then(|| usize::try_from(length).ok())?
}

/// Whether this may be a frame whose write was cut short: it ends too early, or where it should,
/// without the mark that it was synced, or never came to be more than room on the disk.
fn is_cut_short(bytes: &[u8]) -> bool {
    match length(bytes) {
        Some(length) => bytes.len() <= HEAD + length,
        None => bytes.len() < HEAD || bytes.iter().all(|byte| *byte == 0),
    }
}

fn checksum(bytes: &[u8]) -> [u8; 4] {
    Checksum::new().add(bytes).value().to_le_bytes()
}
