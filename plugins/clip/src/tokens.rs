//! Texts as ids, all of one length. Knows no tokenizer.

/// Ids of several texts, padded to one length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    width: usize,
    ids: Vec<u32>,
    attended: Option<Vec<bool>>,
}

impl Tokens {
    /// `ids` row by row, `width` to a text. `attended` says which places others may look at; `None`: all.
    pub fn new(width: usize, ids: Vec<u32>, attended: Option<Vec<bool>>) -> Self {
        assert!(
            width > 0 && ids.len().is_multiple_of(width),
            "rows are whole"
        );
        assert!(
            attended.as_ref().is_none_or(|a| a.len() == ids.len()),
            "one mark for each id"
        );
        Self {
            width,
            ids,
            attended,
        }
    }

    /// Texts.
    pub fn texts(&self) -> usize {
        self.ids.len() / self.width
    }

    /// Places of each text.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All ids, row by row.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// Ids of one text. Panics past the last.
    pub fn row(&self, text: usize) -> &[u32] {
        &self.ids[text * self.width..][..self.width]
    }

    /// Marks of places that may be looked at, row by row.
    pub fn attended(&self) -> Option<&[bool]> {
        self.attended.as_deref()
    }
}
