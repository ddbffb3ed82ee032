//! Servers with certificates of an authority of our own, made when the test runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{Server, answer, head_of, say, serving_connections};

/// A certificate authority and the file that tells a client to trust it.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    /// An authority of this name with a key of its own.
    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder }
    }

    pub fn file(&self) -> PathBuf {
        Path::new(self.folder.path()).join("ca.pem")
    }

    /// A server that answers `{}` over TLS, with a certificate for `name` changed by `change`.
    pub async fn serving(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Server {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        tls_server(certificate.der().clone(), &key).await
    }
}

/// A server whose certificate nobody signed but itself.
pub async fn self_signed(name: &str, is_authority: bool) -> Server {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let certificate = params.self_signed(&key).unwrap();
    tls_server(certificate.der().clone(), &key).await
}

pub fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2020, 2, 1);
}

pub fn from_the_future(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(3020, 1, 1);
    params.not_after = date_time_ymd(3020, 2, 1);
}

async fn tls_server(certificate: CertificateDer<'static>, key: &KeyPair) -> Server {
    let acceptor = acceptor(certificate, key, &[]);
    serving_connections(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                head_of(&mut stream).await;
                say(stream, answer("200 OK", &[], b"{}")).await;
            }
        }
    })
    .await
}

/// What a server of HTTP/2 does with a request.
#[derive(Debug, Clone, Copy)]
pub enum Http2 {
    /// Answers `{}`.
    Answers,
    /// Ends the stream with this reason instead of answering.
    Resets(Reason),
}

impl Authority {
    /// A server on localhost that speaks nothing but HTTP/2.
    pub async fn serving_http2(&self, does: Http2) -> Server {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let acceptor = acceptor(certificate.der().clone(), &key, &[b"h2"]);
        serving_connections(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, respond))) = connection.accept().await {
                    respond_as(does, respond);
                }
            }
        })
        .await
    }
}

fn respond_as(does: Http2, mut respond: SendResponse<Bytes>) {
    match does {
        Http2::Resets(reason) => respond.send_reset(reason),
        Http2::Answers => {
            let mut body = respond.send_response(http::Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        }
    }
}

fn acceptor(certificate: CertificateDer<'static>, key: &KeyPair, protocols: &[&[u8]]) -> TlsAcceptor {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}
