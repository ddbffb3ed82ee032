//! From the errors of the HTTP stack to the words of a session, and apart from them the few that are our own fault.

use std::error::Error as StdError;
use std::io;

use plumbline_rules::session::WireError;
use rustls::CertificateError;

use super::NetError;
use super::resolver::ResolveError;

/// What a failed request says about the target.
///
/// # Errors
/// The failure says nothing about the target: this machine ran out of sockets, files or memory, or may not call out.
pub(super) fn wire_error(error: &reqwest::Error) -> Result<WireError, NetError> {
    let causes = causes(error);
    if let Some(local) = causes.iter().find_map(|cause| cause.downcast_ref::<io::Error>().and_then(local_fault)) {
        return Err(NetError::Machine(local));
    }
    Ok(causes.iter().find_map(|cause| known(*cause, error.is_connect())).unwrap_or_else(|| unknown(error)))
}

/// The chain of causes, those included that an I/O error wraps.
fn causes(error: &reqwest::Error) -> Vec<&(dyn StdError + 'static)> {
    let mut chain = Vec::new();
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = next {
        chain.push(cause);
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            // `source` of a wrapping I/O error skips the error that it wraps.
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    chain
}

fn known(cause: &(dyn StdError + 'static), connecting: bool) -> Option<WireError> {
    if let Some(error) = cause.downcast_ref::<ResolveError>() {
        return Some(resolving(error));
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls(error));
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return socket(error, connecting);
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        return Some(http2(error));
    }
    cause.downcast_ref::<hyper::Error>().and_then(http)
}

fn resolving(error: &ResolveError) -> WireError {
    match error {
        ResolveError::Refused(refusal) if refusal.is_about_place() => WireError::AddressGuard,
        ResolveError::Refused(_) | ResolveError::BadName(_) => WireError::BadUrl,
        ResolveError::NoSuchName => WireError::DnsNxdomain,
        ResolveError::Failed => WireError::Dns,
        ResolveError::Timeout => WireError::DnsTimeout,
        ResolveError::Unavailable => WireError::DnsUnavailable,
    }
}

fn tls(error: &rustls::Error) -> WireError {
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => WireError::TlsCertificateExpired,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                WireError::TlsCertificateName
            }
            // A bad signature is that of an authority with the name of a known one and another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => WireError::TlsCertificateUnknownIssuer,
            // A self-signed certificate that calls itself an authority has no variant of its own.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                WireError::TlsCertificateUnknownIssuer
            }
            _ => WireError::Tls,
        },
        _ => WireError::Tls,
    }
}

fn socket(error: &io::Error, connecting: bool) -> Option<WireError> {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused => Some(WireError::Refused),
        Kind::NetworkUnreachable => Some(WireError::NoRoute),
        // The last router found nobody at the address: no connection, and there will be none.
        Kind::HostUnreachable => Some(WireError::ConnectTimeout),
        Kind::TimedOut if connecting => Some(WireError::ConnectTimeout),
        Kind::TimedOut => Some(WireError::Timeout),
        // While connecting only TLS reads: the server hung up in the handshake.
        Kind::UnexpectedEof if connecting => Some(WireError::Tls),
        Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::UnexpectedEof
        | Kind::NotConnected => Some(WireError::Reset),
        _ => None,
    }
}

fn http(error: &hyper::Error) -> Option<WireError> {
    if error.is_parse() {
        return Some(WireError::Protocol);
    }
    if error.is_timeout() {
        return Some(WireError::Timeout);
    }
    (error.is_incomplete_message() || error.is_closed() || error.is_canceled()).then_some(WireError::Reset)
}

fn http2(error: &h2::Error) -> WireError {
    // Reset or sent away by the other side, or the connection below broke; otherwise its frames made no sense.
    if error.is_remote() || error.is_io() { WireError::Reset } else { WireError::Protocol }
}

fn unknown(error: &reqwest::Error) -> WireError {
    if error.is_builder() {
        return WireError::BadUrl;
    }
    match (error.is_timeout(), error.is_connect()) {
        (true, true) => WireError::ConnectTimeout,
        (true, false) => WireError::Timeout,
        (false, true) => WireError::Refused,
        (false, false) => WireError::Protocol,
    }
}

/// What this machine, and not the target, ran out of or forbids.
fn local_fault(error: &io::Error) -> Option<String> {
    use io::ErrorKind as Kind;
    /// `EMFILE` and `ENFILE` have no stable kind.
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    let ran_out = error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code));
    let ours =
        matches!(error.kind(), Kind::AddrNotAvailable | Kind::AddrInUse | Kind::PermissionDenied | Kind::OutOfMemory);
    (ran_out || ours).then(|| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_fail_in_words_of_their_own() {
        let word = |error| tls(&rustls::Error::InvalidCertificate(error));
        assert_eq!(word(CertificateError::Expired), WireError::TlsCertificateExpired);
        assert_eq!(word(CertificateError::NotValidYet), WireError::TlsCertificateExpired);
        assert_eq!(word(CertificateError::NotValidForName), WireError::TlsCertificateName);
        assert_eq!(word(CertificateError::UnknownIssuer), WireError::TlsCertificateUnknownIssuer);
        assert_eq!(word(CertificateError::BadSignature), WireError::TlsCertificateUnknownIssuer);
        assert_eq!(word(CertificateError::Revoked), WireError::Tls);
        assert_eq!(tls(&rustls::Error::DecryptError), WireError::Tls);
    }

    #[test]
    fn an_end_in_the_handshake_is_a_failure_of_tls_and_later_a_broken_connection() {
        let end = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(socket(&end, true), Some(WireError::Tls));
        assert_eq!(socket(&end, false), Some(WireError::Reset));
    }

    #[test]
    fn running_out_of_files_is_our_fault() {
        assert!(local_fault(&io::Error::from_raw_os_error(24)).is_some());
        assert!(local_fault(&io::Error::from(io::ErrorKind::ConnectionRefused)).is_none());
    }
}
