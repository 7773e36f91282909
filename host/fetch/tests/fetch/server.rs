//! An HTTP server of few lines: a handler is given each request and writes what it likes to the socket.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

#[derive(Debug, Clone)]
pub struct Request {
    /// Number among all requests, from 0.
    pub number: usize,
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    /// First byte asked for, if a range was.
    pub fn from(&self) -> Option<usize> {
        self.header("range")?
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    }
}

pub struct Server {
    pub base: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Serve until the test's process ends.
    pub fn start(handler: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (list, handler) = (seen.clone(), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (list, handler) = (list.clone(), handler.clone());
                std::thread::spawn(move || serve(stream, &list, &*handler));
            }
        });
        Self { base, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("list").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    handler: &dyn Fn(&Request, &mut TcpStream),
) {
    let mut lines = BufReader::new(stream.try_clone().expect("socket")).lines();
    let Some(Ok(first)) = lines.next() else {
        return;
    };
    let mut headers = Vec::new();
    for line in lines.map_while(Result::ok) {
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let request = {
        let mut seen = seen.lock().expect("list");
        let request = Request {
            number: seen.len(),
            path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
            headers,
        };
        seen.push(request.clone());
        request
    };
    handler(&request, &mut stream);
    let _ = stream.flush();
    let _ = stream.shutdown(Shutdown::Write);
    // Reading to the end first, or the client may see a reset in place of the answer.
    let mut rest = [0; 64];
    while std::io::Read::read(&mut stream, &mut rest).is_ok_and(|n| n > 0) {}
}

/// An answer: status line, headers, and a body as it is.
pub fn answer(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

/// An answer with its length.
pub fn whole(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)], body: &[u8]) {
    let length = body.len().to_string();
    let mut headers = headers.to_vec();
    headers.push(("Content-Length", &length));
    answer(stream, status, &headers, body);
}

/// A well-behaved file server with an entity tag; sends at most `cut` bytes of a body before it hangs up.
pub fn file(request: &Request, stream: &mut TcpStream, body: &[u8], etag: &str, cut: usize) {
    let same = request.header("if-range").is_none_or(|v| v == etag);
    let total = body.len();
    match request.from().filter(|_| same) {
        Some(from) if from >= total => whole(
            stream,
            "416 Range Not Satisfiable",
            &[
                ("Content-Range", &format!("bytes */{total}")),
                ("ETag", etag),
            ],
            b"",
        ),
        Some(from) => {
            let rest = &body[from..];
            answer(
                stream,
                "206 Partial Content",
                &[
                    (
                        "Content-Range",
                        &format!("bytes {from}-{}/{total}", total - 1),
                    ),
                    ("Content-Length", &rest.len().to_string()),
                    ("ETag", etag),
                ],
                &rest[..rest.len().min(cut)],
            );
        }
        None => answer(
            stream,
            "200 OK",
            &[("Content-Length", &total.to_string()), ("ETag", etag)],
            &body[..total.min(cut)],
        ),
    }
}
