//! A name server of a few lines that may lie.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// What it says about a name.
pub enum Say {
    /// These addresses, to be forgotten at once.
    Addresses(Vec<IpAddr>),
    /// This address, and nothing at all when asked for IPv6.
    OnlyIpv4(IpAddr),
    /// There is no such name.
    NoSuchName,
    /// It failed.
    Failed,
    /// Nothing.
    Nothing,
}

/// A name server that lives as long as this.
pub struct NameServer {
    pub address: SocketAddr,
    questions: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// How often it was asked for IPv4 addresses.
    pub fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers with what `answer` says about a name when it is asked the n-th time, from 0.
pub async fn name_server(answer: impl Fn(&str, usize) -> Say + Send + 'static) -> NameServer {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let questions = Arc::new(AtomicUsize::new(0));
    let asked = questions.clone();
    let task = tokio::spawn(async move {
        let mut packet = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut packet).await {
            let question = Question::read(&packet[..length]);
            let nth = match question.kind {
                A => asked.fetch_add(1, Ordering::SeqCst),
                _ => asked.load(Ordering::SeqCst).saturating_sub(1),
            };
            if let Some(reply) = question.reply(&answer(&question.name, nth)) {
                let _ = socket.send_to(&reply, from).await;
            }
        }
    });
    NameServer { address, questions, task }
}

const A: u16 = 1;
const AAAA: u16 = 28;

struct Question {
    id: [u8; 2],
    name: String,
    kind: u16,
    /// Name, type and class as they came.
    raw: Vec<u8>,
}

impl Question {
    fn read(packet: &[u8]) -> Self {
        let mut labels = Vec::new();
        let mut at = 12;
        while packet[at] != 0 {
            let length = usize::from(packet[at]);
            labels.push(String::from_utf8_lossy(&packet[at + 1..at + 1 + length]).into_owned());
            at += 1 + length;
        }
        let kind = u16::from_be_bytes([packet[at + 1], packet[at + 2]]);
        Self { id: [packet[0], packet[1]], name: labels.join("."), kind, raw: packet[12..at + 5].to_vec() }
    }

    fn reply(&self, say: &Say) -> Option<Vec<u8>> {
        let (code, addresses) = match say {
            Say::Addresses(addresses) => (0, addresses.as_slice()),
            Say::OnlyIpv4(_) if self.kind != A => return None,
            Say::OnlyIpv4(address) => (0, std::slice::from_ref(address)),
            Say::NoSuchName => (3, &[][..]),
            Say::Failed => (2, &[][..]),
            Say::Nothing => return None,
        };
        let records: Vec<Vec<u8>> = addresses.iter().filter_map(|ip| self.record(*ip)).collect();
        let count = u8::try_from(records.len()).unwrap();
        let mut reply = vec![self.id[0], self.id[1], 0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0];
        reply.extend_from_slice(&self.raw);
        reply.extend(records.concat());
        Some(reply)
    }

    /// An address record for the name of the question, to live for no time.
    fn record(&self, ip: IpAddr) -> Option<Vec<u8>> {
        let bytes = match (self.kind, ip) {
            (A, IpAddr::V4(ip)) => ip.octets().to_vec(),
            (AAAA, IpAddr::V6(ip)) => ip.octets().to_vec(),
            _ => return None,
        };
        let mut record = vec![0xc0, 12];
        record.extend_from_slice(&self.kind.to_be_bytes());
        record.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::try_from(bytes.len()).unwrap()]);
        record.extend(bytes);
        Some(record)
    }
}
