//! What leaves this machine: pixels, prompt, model name, the way of asking. Nothing else.

use crate::mock::{Mock, completion, ok};
use crate::support::{KEY, ask, open, request};
use base64::Engine as _;
use focus_plugin_sdk::Model as _;
use serde_json::json;

#[test]
fn a_request_holds_pixels_prompt_and_model_and_nothing_else() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    let mut model = open(&mock, &[("concurrency", "1")]);
    ask(&mut model, &request(&[&["First?", "Second?"], &["Third?"]])).expect("answers");
    let asked = mock.questions();
    assert_eq!(asked.len(), 3);
    for (asked, (prompt, picture)) in
        asked
            .iter()
            .zip([("First?", 0), ("Second?", 0), ("Third?", 1)])
    {
        let body = asked.json();
        let uri = body["messages"][0]["content"][0]["image_url"]["url"]
            .as_str()
            .expect("a picture")
            .to_owned();
        assert_eq!(
            body,
            json!({"model": "m", "temperature": 0, "max_tokens": 16, "messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": uri}}, {"type": "text", "text": prompt}]}]})
        );
        let data = uri.strip_prefix("data:image/png;base64,").expect("PNG");
        let png = base64::engine::general_purpose::STANDARD
            .decode(data)
            .expect("base64");
        // No text, time or other chunk that could carry a name.
        assert_eq!(chunks(&png), ["IHDR", "IDAT", "IEND"]);
        assert_eq!(pixels(png), [picture, 1, 2, 3, 4, 5]);
        let mut names: Vec<_> = asked
            .headers
            .iter()
            .map(|(name, _)| name.to_lowercase())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "accept",
                "accept-encoding",
                "authorization",
                "content-length",
                "content-type",
                "host",
                "user-agent"
            ]
            .into_iter()
            .filter(|name| *name != "accept-encoding" || asked.header(name).is_some())
            .collect::<Vec<_>>()
        );
        assert_eq!(asked.method, "POST");
    }
}

#[test]
fn the_key_goes_to_the_server_and_nowhere_else() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    let mut model = open(&mock, &[]);
    let opened = format!("{:?}", model.opened());
    assert!(!opened.contains(KEY), "{opened}");
    assert!(!format!("{model:?}").contains(KEY));
    let reply = ask(&mut model, &request(&[&["Q?"]])).expect("answers");
    assert!(!format!("{reply:?}").contains(KEY));
    let asked = &mock.questions()[0];
    assert_eq!(
        asked.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert!(!String::from_utf8_lossy(&asked.body).contains(KEY));
}

#[test]
fn jpeg_carries_no_words_either() {
    let mock = Mock::start(|_, _| ok(&completion("yes")));
    let mut model = open(&mock, &[("image_format", "jpeg:90")]);
    ask(&mut model, &request(&[&["Q?"]])).expect("answers");
    let body = mock.questions()[0].json();
    let uri = body["messages"][0]["content"][0]["image_url"]["url"]
        .as_str()
        .expect("a picture")
        .to_owned();
    let data = uri.strip_prefix("data:image/jpeg;base64,").expect("JPEG");
    let jpeg = base64::engine::general_purpose::STANDARD
        .decode(data)
        .expect("base64");
    // Segments before the scan: JFIF header and tables; no comment, no EXIF.
    let mut at = 2;
    while jpeg[at + 1] != 0xda {
        assert!(
            [0xe0, 0xdb, 0xc0, 0xc4].contains(&jpeg[at + 1]),
            "{:x}",
            jpeg[at + 1]
        );
        at += 2 + usize::from(jpeg[at + 2]) * 256 + usize::from(jpeg[at + 3]);
    }
}

fn chunks(png: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut at = 8;
    while at < png.len() {
        let length = u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes")) as usize;
        let name = String::from_utf8_lossy(&png[at + 4..at + 8]).into_owned();
        if names.last() != Some(&name) {
            names.push(name);
        }
        at += 12 + length;
    }
    names
}

fn pixels(png: Vec<u8>) -> Vec<u8> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png))
        .read_info()
        .expect("PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("small")];
    reader.next_frame(&mut pixels).expect("pixels");
    pixels
}
