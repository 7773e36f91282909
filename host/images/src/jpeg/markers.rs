//! What a JPEG's segments say besides the picture: Adobe's marker, a multi-picture index, whether the file is cut. Decodes nothing.

/// The segments before the coded data: code and content of each.
fn segments(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut at = 2;
    std::iter::from_fn(move || {
        loop {
            let &[first, code, high, low] = bytes.get(at..)?.first_chunk()?;
            match (first, code) {
                (0xFF, 0xFF) => at += 1,
                (0xFF, 0x01 | 0xD0..=0xD8) => at += 2,
                // Coded data begins, or the file is odd.
                (0xFF, 0xD9 | 0xDA) | (0..0xFF, _) => return None,
                _ => {
                    let length = usize::from(u16::from_be_bytes([high, low]));
                    let content = bytes.get(at + 4..at + 2 + length)?;
                    at += 2 + length;
                    return Some((code, content));
                }
            }
        }
    })
}

/// Whether an Adobe program's segment is there.
pub(super) fn has_adobe_marker(bytes: &[u8]) -> bool {
    segments(bytes).any(|(code, content)| code == 0xEE && content.starts_with(b"Adobe"))
}

/// How many pictures a multi-picture file says that it holds (CIPA DC-007, tag 0xB001).
pub(super) fn pictures(bytes: &[u8]) -> Option<u32> {
    let (_, content) =
        segments(bytes).find(|(code, content)| *code == 0xE2 && content.starts_with(b"MPF\0"))?;
    let block = &content[4..];
    let big = block.starts_with(b"MM");
    let long = |at: usize| -> Option<u32> {
        let four = *block.get(at..)?.first_chunk()?;
        Some(if big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        })
    };
    let short = |at: usize| -> Option<u16> {
        let two = *block.get(at..)?.first_chunk()?;
        Some(if big {
            u16::from_be_bytes(two)
        } else {
            u16::from_le_bytes(two)
        })
    };
    let at = long(4)? as usize;
    let entries = usize::from(short(at)?);
    (0..entries)
        .map(|index| at + 2 + 12 * index)
        .find(|&entry| short(entry) == Some(0xB001))
        .and_then(|entry| long(entry + 8))
        .filter(|&count| count > 1)
}

/// Whether the segments run past the end of the file before the closing marker.
pub(super) fn is_cut(bytes: &[u8]) -> bool {
    const MARKER: u8 = 0xFF;
    let mut at = 2;
    while let Some(&[first, code]) = bytes.get(at..at + 2) {
        match (first, code) {
            (MARKER, 0xD9) => return false,
            // Coded data (where 0xFF stands as 0xFF 0), restart markers, and fill bytes have no length.
            (MARKER, 0 | 0x01 | 0xD0..=0xD8) => at += 2,
            (MARKER, MARKER) | (0..MARKER, _) => at += 1,
            (MARKER, _) => {
                let Some(&[high, low]) = bytes.get(at + 2..at + 4) else {
                    return true;
                };
                at += 2 + usize::from(u16::from_be_bytes([high, low]));
            }
        }
    }
    true
}
