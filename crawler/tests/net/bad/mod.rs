//! Servers that misbehave on purpose, a few lines each, on loopback.

pub mod dns;
pub mod tls;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that lives as long as this.
pub struct Server {
    pub address: SocketAddr,
    /// The heads of the requests so far.
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// `path` at this server, by its literal address.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// `path` at this server, by a name.
    pub fn url_at(&self, name: &str, path: &str) -> String {
        format!("http://{name}:{}{path}", self.address.port())
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn request_lines(&self) -> Vec<String> {
        self.requests().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A server whose connections are handed to `answer` once a request's head was read.
pub async fn serving<F, A>(answer: F) -> Server
where
    F: Fn(String, TcpStream) -> A + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    let answer = Arc::new(answer);
    let mut server = serving_connections(move |mut stream| {
        let (answer, seen) = (answer.clone(), seen.clone());
        async move {
            let head = head_of(&mut stream).await;
            seen.lock().unwrap().push(head.clone());
            answer(head, stream).await;
        }
    })
    .await;
    server.requests = requests;
    server
}

/// A server that hands over every connection as it is.
pub async fn serving_connections<F, A>(handle: F) -> Server
where
    F: Fn(TcpStream) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    Server { address, requests: Arc::default(), task }
}

/// Reads a request up to the empty line.
pub async fn head_of(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Writes everything and closes; a client that hung up is no failure of the test.
pub async fn say(mut stream: impl AsyncWrite + Unpin, bytes: impl AsRef<[u8]>) {
    let _ = stream.write_all(bytes.as_ref()).await;
    let _ = stream.shutdown().await;
}

/// A whole answer.
pub fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Answers every request with these bytes.
pub async fn saying(bytes: impl Into<Vec<u8>>) -> Server {
    let bytes = Arc::new(bytes.into());
    serving(move |_, stream| say(stream, bytes.to_vec())).await
}

/// Answers every path with a redirect given by `location`.
pub async fn redirecting(location: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
    serving(move |head, stream| {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        say(stream, answer("302 Found", &[("location", &location(&path))], b""))
    })
    .await
}

/// Never stops sending.
pub async fn endless_body() -> Server {
    serving(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b' '; 16 * 1024]).await.is_ok() {}
    })
    .await
}

/// Sends a byte every few milliseconds, for ever.
pub async fn dripping() -> Server {
    serving(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

/// Reads the request and says nothing.
pub async fn hanging() -> Server {
    serving(|_, stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await
}

/// Sends the head and half of a body, then says nothing more.
pub async fn falling_asleep() -> Server {
    serving(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345").await;
        std::future::pending::<()>().await;
    })
    .await
}

/// Breaks the connection instead of answering.
pub async fn resetting() -> Server {
    serving(|_, stream| async move {
        // With data unread or no linger time, closing sends a reset.
        let _ = stream.set_zero_linger();
    })
    .await
}

/// Sends header fields for ever.
pub async fn endless_headers() -> Server {
    serving(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let field = format!("x-more: {}\r\n", "x".repeat(1000));
        while stream.write_all(field.as_bytes()).await.is_ok() {}
    })
    .await
}

/// `bytes` in a content coding.
pub async fn encoded(coding: &str, bytes: &[u8]) -> Vec<u8> {
    macro_rules! with {
        ($encoder:ident) => {{
            let mut encoder = $encoder::new(Vec::new());
            encoder.write_all(bytes).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }};
    }
    match coding {
        "gzip" => with!(GzipEncoder),
        "br" => with!(BrotliEncoder),
        "zstd" => with!(ZstdEncoder),
        "deflate" => with!(ZlibEncoder),
        "raw-deflate" => with!(DeflateEncoder),
        other => panic!("no coding {other}"),
    }
}
