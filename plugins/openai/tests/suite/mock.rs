//! A server on this machine whose every answer is a test's. Threads and sockets, no framework.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub fn prompt(&self) -> String {
        let body = self.json();
        let parts = body["messages"][0]["content"].as_array().expect("parts");
        let last = parts.last().expect("at least the text");
        last["text"].as_str().expect("a text").to_owned()
    }
}

/// What the server does with a request.
pub enum Act {
    /// A status, further headers, a body.
    Reply(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// These bytes, whatever they are, then the connection ends.
    Raw(Vec<u8>),
    /// A good answer; the connection ends after it although nothing says so.
    ReplyAndClose(Vec<u8>),
    /// In pieces.
    Chunked(Vec<u8>),
    /// Nothing for this long, then a good answer.
    Late(Duration, Vec<u8>),
    /// The connection ends without a word.
    Close,
}

pub fn ok(body: &Value) -> Act {
    Act::Reply(200, Vec::new(), body.to_string().into_bytes())
}

pub fn status(status: u16, body: &Value) -> Act {
    Act::Reply(status, Vec::new(), body.to_string().into_bytes())
}

/// A completion that says `text`.
pub fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": null}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 2, "total_tokens": 302},
    })
}

/// The same with a first token and its rivals.
pub fn scored(text: &str, position: &Value) -> Value {
    let mut value = completion(text);
    value["choices"][0]["logprobs"] = json!({"content": [position]});
    value
}

type Behaviour = dyn Fn(usize, &Asked) -> Act + Send + Sync;

pub struct Mock {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    most: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
}

impl Mock {
    /// Answer the n-th request (from 0) as told.
    pub fn start(behaviour: impl Fn(usize, &Asked) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let mock = Self {
            port,
            asked: Arc::default(),
            most: Arc::default(),
            stopped: Arc::default(),
        };
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let (asked, most) = (mock.asked.clone(), mock.most.clone());
        let (stopped, running) = (mock.stopped.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(SeqCst) {
                    break;
                }
                let (behaviour, asked) = (behaviour.clone(), asked.clone());
                let (running, most) = (running.clone(), most.clone());
                std::thread::spawn(move || serve(stream, &*behaviour, &asked, &running, &most));
            }
        });
        mock
    }

    /// Requests so far, in the order of their arrival.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Questions only, without those of opening.
    pub fn questions(&self) -> Vec<Asked> {
        let mut all = self.asked();
        all.retain(|asked| asked.path == "/v1/chat/completions");
        all
    }

    /// Most requests that were answered at the same time.
    pub fn most_at_once(&self) -> usize {
        self.most.load(SeqCst)
    }

    pub fn base(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stopped.store(true, SeqCst);
        // Wakes the listener, so that the port is free again.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(
    mut stream: TcpStream,
    behaviour: &Behaviour,
    log: &Mutex<Vec<Asked>>,
    running: &AtomicUsize,
    most: &AtomicUsize,
) {
    stream.set_nodelay(true).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    while let Some(asked) = read(&mut reader) {
        let number = {
            let mut all = log.lock().expect("no panic");
            all.push(asked.clone());
            all.len() - 1
        };
        most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
        let act = behaviour(number, &asked);
        running.fetch_sub(1, SeqCst);
        let (bytes, more) = match act {
            Act::Reply(status, headers, body) => (response(status, &headers, &body), true),
            Act::Raw(bytes) => (bytes, false),
            Act::ReplyAndClose(body) => (response(200, &[], &body), false),
            Act::Chunked(body) => (chunked(&body), true),
            Act::Late(wait, body) => {
                std::thread::sleep(wait);
                (response(200, &[], &body), true)
            }
            Act::Close => (Vec::new(), false),
        };
        // The client may have gone.
        if stream.write_all(&bytes).is_err() || !more {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn response(status: u16, headers: &[(&str, String)], body: &[u8]) -> Vec<u8> {
    let mut text = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (key, value) in headers {
        text.push_str(&format!("{key}: {value}\r\n"));
    }
    text.push_str("\r\n");
    [text.as_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in body.chunks(7) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        bytes.extend(piece);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
        let Some((key, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.push((key.to_owned(), value.to_owned()));
    }
    let mut asked = Asked {
        method,
        path,
        headers,
        body: Vec::new(),
        at: Instant::now(),
    };
    let length = asked.header("content-length").and_then(|n| n.parse().ok());
    asked.body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}
