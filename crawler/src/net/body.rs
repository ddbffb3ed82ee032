//! A body, read to its end or to a limit: counted before and after its content coding is undone.
//!
//! The limit of decoded bytes is checked piece by piece while decoding, so a few compressed kilobytes never become
//! gigabytes here. Whatever stops the reading early is recorded beside what was read until then.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_compression::tokio::bufread::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::Bytes;
use futures_util::future::ready;
use futures_util::{Stream, StreamExt, stream};
use plumbline_rules::session::Cut;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::io::StreamReader;

use super::limits::{MAX_CODINGS, ZSTD_WINDOW_LOG};

/// What was read of a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Body {
    /// Decoded, at most the limit.
    pub(super) bytes: Vec<u8>,
    /// Before decoding.
    pub(super) wire_bytes: u64,
    /// Why it is not whole.
    pub(super) cut: Option<Cut>,
}

/// The bounds of one reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Most decoded bytes.
    pub(super) decoded: u64,
    /// Most bytes on the wire.
    pub(super) raw: u64,
    /// Longest wait between two pieces.
    pub(super) idle: Duration,
    /// When the whole answer is due.
    pub(super) deadline: Instant,
}

/// A content coding that we undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Brotli,
    Zstd,
    Deflate,
}

/// What a `Content-Encoding` names, in the order it was applied; `None` when we do not know all of it.
pub(super) fn codings(header: Option<&str>) -> Option<Vec<Coding>> {
    let names = header.unwrap_or_default().split(',').map(|name| name.trim().to_ascii_lowercase());
    let known: Option<Vec<Coding>> = names
        .filter(|name| !name.is_empty() && name != "identity")
        .map(|name| match name.as_str() {
            "gzip" | "x-gzip" => Some(Coding::Gzip),
            "br" => Some(Coding::Brotli),
            "zstd" => Some(Coding::Zstd),
            "deflate" => Some(Coding::Deflate),
            _ => None,
        })
        .collect();
    known.filter(|codings| codings.len() <= MAX_CODINGS)
}

/// Reads a body whose pieces come from the wire.
pub(super) async fn read<S, E>(pieces: S, encoding: Option<&str>, bounds: Bounds) -> Body
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let wire = Arc::new(Wire::default());
    let mut raw = BufReader::new(StreamReader::new(Box::pin(counted(pieces, wire.clone(), bounds.raw))));
    let Some(codings) = codings(encoding) else {
        return Body { cut: Some(Cut::BadEncoding), ..Body::default() };
    };
    let mut body = match first_byte(&mut raw, bounds).await {
        Ok(None) => Body::default(),
        Ok(Some(first)) => drain(decoder(Box::pin(raw), &codings, first), bounds, &wire).await,
        Err(stop) => Body { cut: Some(wire.cut(stop)), ..Body::default() },
    };
    body.wire_bytes = wire.bytes.load(Ordering::Relaxed);
    body
}

/// Opens a body whose pieces come from the wire, decoded as it comes; `None` for one that is empty, that does not begin in
/// time or whose coding is not known.
pub(super) async fn open<S, E>(
    pieces: S,
    encoding: Option<&str>,
    bounds: Bounds,
) -> Option<Pin<Box<dyn AsyncRead + Send>>>
where
    S: Stream<Item = Result<Bytes, E>> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let codings = codings(encoding)?;
    let wire = Arc::new(Wire::default());
    let mut raw = BufReader::new(StreamReader::new(Box::pin(counted(pieces, wire, bounds.raw))));
    if codings.is_empty() {
        // Nothing is peeked at: the stream may be silent at first.
        return Some(Box::pin(raw));
    }
    let first = first_byte(&mut raw, bounds).await.ok().flatten()?;
    Some(decoder(Box::pin(raw), &codings, first))
}

/// What happened on the wire below the decoders.
#[derive(Debug, Default)]
struct Wire {
    bytes: AtomicU64,
    over_limit: AtomicBool,
    broke: AtomicBool,
    ended: AtomicBool,
}

/// Why reading stopped before the end.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Late,
    Failed,
}

impl Wire {
    /// The word for a stop: what the wire itself suffered beats what the decoder made of it.
    fn cut(&self, stop: Stop) -> Cut {
        match stop {
            Stop::Late => Cut::Timeout,
            Stop::Failed if self.over_limit.load(Ordering::Relaxed) => Cut::Limit,
            Stop::Failed if self.broke.load(Ordering::Relaxed) => Cut::Truncated,
            // The decoder took everything there was and wanted more.
            Stop::Failed if self.ended.load(Ordering::Relaxed) => Cut::Truncated,
            Stop::Failed => Cut::BadEncoding,
        }
    }
}

/// The pieces with their bytes counted; an error once there are more than `most`.
fn counted<S, E>(pieces: S, wire: Arc<Wire>, most: u64) -> impl Stream<Item = io::Result<Bytes>> + Send
where
    S: Stream<Item = Result<Bytes, E>> + Send,
    E: std::error::Error + Send + Sync + 'static,
{
    let below = wire.clone();
    let end = stream::once(async move { below.ended.store(true, Ordering::Relaxed) }).filter_map(|()| ready(None));
    let pieces = pieces.map(move |piece| {
        let piece = piece.map_err(|error| {
            wire.broke.store(true, Ordering::Relaxed);
            io::Error::other(error)
        })?;
        let length = piece.len() as u64;
        if wire.bytes.fetch_add(length, Ordering::Relaxed) + length > most {
            wire.over_limit.store(true, Ordering::Relaxed);
            return Err(io::Error::other("more bytes on the wire than allowed"));
        }
        Ok(piece)
    });
    pieces.chain(end)
}

/// The first byte, left in place; `None` for an empty body, which is whole whatever coding it claims.
async fn first_byte(raw: &mut (impl AsyncBufRead + Unpin), bounds: Bounds) -> Result<Option<u8>, Stop> {
    let piece = in_time(raw.fill_buf(), bounds).await?;
    Ok(piece.first().copied())
}

/// Reads to the end, the limit or the deadline.
async fn drain(mut decoded: Pin<Box<dyn AsyncRead + Send>>, bounds: Bounds, wire: &Wire) -> Body {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    loop {
        let cut = match in_time(decoded.read(&mut piece), bounds).await {
            Ok(0) => None,
            Ok(length) => {
                bytes.extend_from_slice(&piece[..length]);
                if bytes.len() as u64 <= bounds.decoded {
                    continue;
                }
                bytes.truncate(usize::try_from(bounds.decoded).unwrap_or(usize::MAX));
                Some(Cut::Limit)
            }
            Err(stop) => Some(wire.cut(stop)),
        };
        return Body { bytes, wire_bytes: 0, cut };
    }
}

async fn in_time<T>(step: impl Future<Output = io::Result<T>>, bounds: Bounds) -> Result<T, Stop> {
    match timeout_at(bounds.deadline, timeout(bounds.idle, step)).await {
        Ok(Ok(done)) => done.map_err(|_| Stop::Failed),
        Ok(Err(_)) | Err(_) => Err(Stop::Late),
    }
}

/// Undoes the codings, the last applied first.
fn decoder(raw: Pin<Box<dyn AsyncBufRead + Send>>, codings: &[Coding], first: u8) -> Pin<Box<dyn AsyncRead + Send>> {
    let mut layers = codings.iter().rev();
    let Some(outermost) = layers.next() else { return Box::pin(raw) };
    let mut decoded = match outermost {
        Coding::Deflate if !starts_zlib(first) => Box::pin(DeflateDecoder::new(raw)) as Pin<Box<dyn AsyncRead + Send>>,
        coding => undo(raw, *coding),
    };
    for coding in layers {
        decoded = undo(Box::pin(BufReader::new(decoded)), *coding);
    }
    decoded
}

fn undo(coded: Pin<Box<dyn AsyncBufRead + Send>>, coding: Coding) -> Pin<Box<dyn AsyncRead + Send>> {
    match coding {
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(coded);
            decoder.multiple_members(true);
            Box::pin(decoder)
        }
        Coding::Brotli => Box::pin(BrotliDecoder::new(coded)),
        Coding::Zstd => Box::pin(ZstdDecoder::with_params(coded, &[DParameter::window_log_max(ZSTD_WINDOW_LOG)])),
        Coding::Deflate => Box::pin(ZlibDecoder::new(coded)),
    }
}

/// `deflate` means the zlib format, but some servers send it without the zlib header. The header's low four bits are 8
/// and its high four at most 7.
fn starts_zlib(first: u8) -> bool {
    first & 0x0f == 8 && first >> 4 <= 7
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CODINGS: [&str; 6] = ["", "gzip", "br", "zstd", "deflate", "gzip, br"];

    /// Reads these pieces as they would come from the wire.
    fn read_all(pieces: Vec<Vec<u8>>, encoding: &str, decoded: u64) -> Body {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let idle = Duration::from_secs(60);
            let bounds = Bounds { decoded, raw: 2 * decoded + 64, idle, deadline: Instant::now() + idle };
            let pieces = stream::iter(pieces.into_iter().map(|piece| Ok::<_, io::Error>(Bytes::from(piece))));
            read(pieces, Some(encoding), bounds).await
        })
    }

    #[test]
    fn codings_are_read_as_servers_write_them() {
        assert_eq!(codings(None), Some(vec![]));
        assert_eq!(codings(Some("identity, ,")), Some(vec![]));
        assert_eq!(codings(Some("GZIP , br")), Some(vec![Coding::Gzip, Coding::Brotli]));
        for unknown in ["compress", "gzip, snappy", "gzip;q=1", "gzip, gzip, gzip, gzip", "none"] {
            assert_eq!(codings(Some(unknown)), None, "{unknown}");
        }
    }

    #[test]
    fn a_zlib_header_is_told_from_a_bare_stream() {
        for zlib in [0x78, 0x58, 0x08] {
            assert!(starts_zlib(zlib), "{zlib:x}");
        }
        for bare in [0xcb, 0x4b, 0x03, 0x01, 0x98] {
            assert!(!starts_zlib(bare), "{bare:x}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic_or_more_than_the_limits(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..6),
            coding in prop::sample::select(&CODINGS[..]),
            limit in 0..300_u64,
        ) {
            let length: usize = pieces.iter().map(Vec::len).sum();
            let body = read_all(pieces, coding, limit);
            prop_assert!(body.bytes.len() as u64 <= limit);
            prop_assert!(body.wire_bytes <= length as u64);
            prop_assert!(body.cut != Some(Cut::Timeout));
        }

        #[test]
        fn a_plain_body_comes_back_as_it_was_up_to_the_limit(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..6),
            limit in 0..600_u64,
        ) {
            let whole = pieces.concat();
            let kept = &whole[..whole.len().min(limit as usize)];
            let body = read_all(pieces, "", limit);
            prop_assert_eq!(body.cut, (whole.len() as u64 > limit).then_some(Cut::Limit));
            if body.wire_bytes <= 2 * limit + 64 {
                prop_assert_eq!(&body.bytes[..], kept);
            }
        }
    }
}
