//! Separated-values files as they are met: encodings, separators, line ends, quotes, ragged and blank rows, bounds.

use focus_datasets::{Cells, Column, CsvTable, DatasetError, Encoding, Limits};
use proptest::prelude::*;

use crate::support::Data;

fn columns(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|name| Column {
            name: (*name).into(),
            aliases: Vec::new(),
            required: true,
        })
        .collect()
}

type Rows = Vec<(u64, Vec<Option<String>>)>;

fn read_with(
    bytes: &[u8],
    names: &[&str],
    limits: &Limits,
) -> Result<(Rows, CsvTable), DatasetError> {
    let data = Data::new();
    data.file("t.csv", bytes);
    let mut table = CsvTable::open(
        &data.path().join("t.csv"),
        "t.csv",
        &columns(names),
        false,
        limits,
    )?;
    let mut rows = Vec::new();
    while let Some(Cells { line, cells }) = table.next_row()? {
        rows.push((line, cells));
    }
    Ok((rows, table))
}

fn read(bytes: &[u8], names: &[&str]) -> Rows {
    read_with(bytes, names, &Limits::default()).unwrap().0
}

fn fault(bytes: &[u8], names: &[&str]) -> String {
    read_with(bytes, names, &Limits::default())
        .err()
        .expect("expected an error")
        .to_string()
}

fn row(line: u64, cells: &[&str]) -> (u64, Vec<Option<String>>) {
    (
        line,
        cells
            .iter()
            .map(|cell| Some((*cell).to_owned()).filter(|cell| !cell.is_empty()))
            .collect(),
    )
}

#[test]
fn encodings() {
    let text = "id,name\n007,Müller\n";
    let utf16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
        std::iter::once(0xfeff)
            .chain(text.encode_utf16())
            .flat_map(unit)
            .collect()
    };
    for (bytes, encoding) in [
        (text.as_bytes().to_vec(), Encoding::Utf8),
        (
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            Encoding::Utf8Bom,
        ),
        (utf16(text, u16::to_le_bytes), Encoding::Utf16Le),
        (utf16(text, u16::to_be_bytes), Encoding::Utf16Be),
        (b"id,name\n007,M\xfcller\n".to_vec(), Encoding::Windows1252),
    ] {
        let (rows, table) = read_with(&bytes, &["id", "name"], &Limits::default()).unwrap();
        assert_eq!(rows, [row(2, &["007", "Müller"])], "{encoding:?}");
        assert_eq!(table.encoding(), encoding);
        assert_eq!(table.digest(), blake3::hash(&bytes).to_hex().to_string());
    }
    let rows = read(b"ID\xa0,\xa0WNL\n1\xa0, \xa02\xa0\n", &["ID", "WNL"]);
    assert_eq!(
        rows,
        [row(2, &["1", "2"])],
        "non-breaking spaces of cp1252 are blanks"
    );
}

#[test]
fn broken_encodings() {
    assert_eq!(
        fault(b"\xef\xbb\xbfid,b\n1,\xff\n", &["id", "b"]),
        "`t.csv` is not valid UTF-8 at byte 10, as its byte order mark claims"
    );
    assert!(fault(b"\xff\xfei\0d\0\n\0\x00\xd8x\0", &["id"]).contains("is not valid UTF-16LE"));
    assert!(
        fault(b"\xff\xfei\0d\0\n\0x", &["id"]).contains("is not valid UTF-16LE"),
        "half a unit at the end"
    );
    assert_eq!(
        fault(b"i\0d\0\n\0", &["id"]),
        "`t.csv` holds a zero byte at byte 1: UTF-16 without a byte order mark, or no text at all"
    );
}

#[test]
fn separators_line_ends_and_quotes() {
    for separator in [",", ";", "\t"] {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["a,b,c", "1,\"x ,;\t \"\"y\"\"\",", "\"two\nlines\",,3"]
                .join(end)
                .replace(',', separator);
            let (rows, table) =
                read_with(text.as_bytes(), &["c", "b", "a"], &Limits::default()).unwrap();
            assert_eq!(table.separator().to_string(), separator);
            let b = "x ,;\t \"y\"".replace(',', separator);
            assert_eq!(
                rows,
                [row(2, &["", &b, "1"]), row(3, &["3", "", "two\nlines"])],
                "{separator:?} {end:?}"
            );
        }
    }
    assert_eq!(
        read(b"\"a,b\";c\n1;2\n", &["a,b", "c"]),
        [row(2, &["1", "2"])],
        "a quoted comma separates nothing"
    );
    assert_eq!(read(b"a\n1\n", &["a"]), [row(2, &["1"])]);
    assert_eq!(
        read(b"a,b\n12\" lens,\"x\"\n", &["a", "b"]),
        [row(2, &["12\" lens", "x"])]
    );
}

#[test]
fn blanks_are_skipped_and_lines_still_count() {
    let (rows, table) = read_with(
        b"\n\na,b,,\n\n1,2,,\n,,,\n \t, ,\xc2\xa0,\n\n3,4\n,,,\n",
        &["a", "b"],
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(rows, [row(5, &["1", "2"]), row(9, &["3", "4"])]);
    assert_eq!((table.rows(), table.blank_rows()), (2, 3));
    assert_eq!(
        read(b"a,b\n\"x\ny\",1\n2,3\n", &["a", "b"]),
        [row(2, &["x\ny", "1"]), row(4, &["2", "3"])]
    );
}

#[test]
fn ragged_rows() {
    assert_eq!(
        read(b"a,b\n1,2,, \n", &["a", "b"]),
        [row(2, &["1", "2"])],
        "what is over is blank"
    );
    assert_eq!(
        fault(b"a,b\n1,2\n1,2,3\n", &["a", "b"]),
        "`t.csv` line 3 has 3 cells, expected 2 as in the header"
    );
    assert_eq!(
        fault(b"a,b\n1\n", &["a", "b"]),
        "`t.csv` line 2 has 1 cells, expected 2 as in the header"
    );
}

#[test]
fn bounds() {
    let with = |bytes: &[u8], change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        read_with(bytes, &["a"], &limits)
            .err()
            .expect("expected an error")
            .to_string()
    };
    assert_eq!(
        with(b"a,b\n1,2\n", |l| l.file_bytes = 5),
        "`t.csv` is too large: 8 bytes, expected at most 5"
    );
    assert_eq!(
        with(b"a\n1\n2\n3\n", |l| l.rows = 2),
        "`t.csv` line 4 has over 2 rows"
    );
    assert_eq!(
        with(b"a,b,c\n1,2,3\n", |l| l.columns = 2),
        "`t.csv` line 1 has over 2 columns"
    );
    assert_eq!(
        with(b"a,b\n1,2\n1,333333\n", |l| l.cell_bytes = 5),
        "`t.csv` line 3 holds a cell of 6 bytes in column 2, expected at most 5"
    );
    let open = [b"a,b\n1,\"2\n".as_slice(), &b"3,4\n".repeat(100_000)].concat();
    assert_eq!(
        with(&open, |l| l.record_bytes = 1000),
        "`t.csv` line 2 holds a record of over 1000 bytes: a quote that is never closed looks so"
    );
    assert_eq!(
        fault(b"a,b\n1,\"2\n3,4\n", &["a"]),
        "`t.csv` line 2 opens a quote that is never closed"
    );
    let wide = vec![b','; 200_000];
    assert!(with(&wide, |_| {}).contains("has over 4096 columns"));
    assert!(with(&vec![b'"'; 3_000_000], |_| {}).contains("holds a record of over"));
    let blank_lines = [vec![b'\n'; 3_000_000], b"a,b\n1,2\n".to_vec()].concat();
    assert_eq!(read(&blank_lines, &["a"]), [row(3_000_002, &["1"])]);
}

#[test]
fn pieces_of_characters_and_line_ends_meet_at_the_edges_of_chunks() {
    for shift in 0..8 {
        let mut text = format!("a,b\r\n{}", "x".repeat(shift));
        while text.len() < 200_000 {
            text.push_str("é€,𝄞\r\n");
        }
        for bytes in [
            text.clone().into_bytes(),
            std::iter::once(0xfeff)
                .chain(text.encode_utf16())
                .flat_map(u16::to_le_bytes)
                .collect(),
        ] {
            let rows = read(&bytes, &["a", "b"]);
            assert!(
                rows[1..]
                    .iter()
                    .all(|(_, cells)| *cells == row(0, &["é€", "𝄞"]).1),
                "{shift}"
            );
            assert!(
                rows.iter()
                    .enumerate()
                    .all(|(index, (line, _))| *line == index as u64 + 2)
            );
        }
    }
}

/// As the reader sees a cell: one kind of line end, no blanks around.
fn seen(cell: &str) -> Option<String> {
    let cell = cell.replace("\r\n", "\n").replace('\r', "\n");
    let blank = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}');
    Some(cell.trim_matches(blank).to_owned()).filter(|cell| !cell.is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::vec(prop::collection::vec("[a\"',;\t\r\n \u{a0}é€𝄞]{0,8}", 3), 0..12),
        separator in prop::sample::select(vec![',', ';', '\t']),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        encoding in 0..4,
        last_end in any::<bool>(),
    ) {
        let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
        let mut lines = vec![["x", "y", "z"].join(&separator.to_string())];
        lines.extend(rows.iter().map(|r| r.iter().map(quote).collect::<Vec<_>>().join(&separator.to_string())));
        let mut text = lines.join(end);
        if last_end {
            text.push_str(end);
        }
        let units = || std::iter::once(0xfeff).chain(text.encode_utf16());
        let bytes: Vec<u8> = match encoding {
            0 => text.clone().into_bytes(),
            1 => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            2 => units().flat_map(u16::to_le_bytes).collect(),
            _ => units().flat_map(u16::to_be_bytes).collect(),
        };
        let expected: Vec<Vec<Option<String>>> = rows
            .iter()
            .map(|r| r.iter().map(|cell| seen(cell)).collect::<Vec<_>>())
            .filter(|r| r.iter().any(Option::is_some))
            .collect();
        let found: Vec<_> = read(&bytes, &["x", "y", "z"]).into_iter().map(|(_, cells)| cells).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_bytes_make_it_panic_and_what_it_accepts_has_the_shape_of_the_header(
        head in prop::sample::select(vec![b"".as_slice(), b"a,b\n", b"\xef\xbb\xbfa;b\r", b"\xff\xfea\0,\0b\0\n\0"]),
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b",;\t\"\r\n ab".to_vec())], 0..300),
    ) {
        if let Ok((rows, _)) = read_with(&[head, &bytes].concat(), &["a", "b"], &Limits::default()) {
            let mut last = 1;
            for (line, cells) in rows {
                prop_assert_eq!(cells.len(), 2);
                prop_assert!(line > last || last == 1);
                last = line;
            }
        }
    }
}
