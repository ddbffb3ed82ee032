//! Names to addresses, through the guard: what is connected to is exactly what was checked.
//!
//! The HTTP client asks here once per connection and connects to the addresses of that one answer. A name server that
//! changes its mind between check and connection (rebinding) therefore changes nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::{DnsError, NetError as DnsFailure, runtime::TokioRuntimeProvider};
use hickory_resolver::proto::rr::{Name as DnsName, RecordType};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::guard::{self, Guard, Refusal};

/// Why a name gave no address to connect to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{0}` is no host name")]
    BadName(String),
    #[error("the name does not exist")]
    NoSuchName,
    #[error("the name servers of the name failed, or know no address")]
    Failed,
    #[error("the name servers did not answer in time")]
    Timeout,
    #[error("no name server can be asked")]
    Unavailable,
}

/// The resolver that the HTTP client is given.
#[derive(Clone)]
pub(super) struct GuardedResolver {
    guard: Arc<Guard>,
    /// `None`: this machine has no name server; only names of this machine resolve.
    first: Option<TokioResolver>,
    /// Asked to confirm that a name does not exist; `None` with a single name server.
    second: Option<TokioResolver>,
    timeout: Duration,
}

/// Failures of a name are believed for this long at most, so that a recovery is seen by the next verification probe.
const NEGATIVE_TTL: Duration = Duration::from_secs(30);

/// How long a name server that was silent about a name may take to answer for the root.
const ROOT_TIMEOUT: Duration = Duration::from_secs(1);

/// Answers are believed for this long at most, whatever their TTL says.
const POSITIVE_TTL: Duration = Duration::from_secs(3600);

impl GuardedResolver {
    /// Asks these name servers, or without any those of the system.
    pub(super) fn new(guard: Arc<Guard>, name_servers: &[SocketAddr], timeout: Duration) -> Self {
        let (servers, options) = if name_servers.is_empty() {
            system_name_servers()
        } else {
            (name_servers.iter().map(|at| name_server(*at)).collect(), ResolverOpts::default())
        };
        let second = servers.get(1..).filter(|rest| !rest.is_empty()).and_then(|rest| build(rest, &options, timeout));
        let first = build(&servers, &options, timeout);
        Self { guard, first, second, timeout }
    }

    /// The addresses to connect to, all of them checked.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        if guard::is_localhost(name) {
            return self.this_machine(name);
        }
        let addresses = match tokio::time::timeout(self.timeout, self.look_up(name)).await {
            Ok(Err(ResolveError::Timeout)) | Err(_) => return Err(self.silence().await),
            Ok(answer) => answer?,
        };
        if addresses.is_empty() {
            return Err(ResolveError::Failed);
        }
        self.guard.check_answer(name, &addresses)?;
        Ok(routable(addresses))
    }

    /// This machine's own addresses, as far as they are opened.
    fn this_machine(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let opened: Vec<IpAddr> = loopback.into_iter().filter(|ip| self.guard.check_address(*ip).is_ok()).collect();
        if opened.is_empty() {
            return Err(Refusal::Name(name.to_owned()).into());
        }
        Ok(opened)
    }

    /// Whose fault it is that nothing was answered: a name server of ours that lives answers for the root.
    async fn silence(&self) -> ResolveError {
        let Some(first) = &self.first else { return ResolveError::Unavailable };
        // An answer of the past says nothing about now.
        first.clear_lookup_cache(DnsName::root(), RecordType::NS);
        match tokio::time::timeout(ROOT_TIMEOUT, first.lookup(DnsName::root(), RecordType::NS)).await {
            Ok(Ok(_) | Err(DnsFailure::Dns(_))) => ResolveError::Timeout,
            Ok(Err(_)) | Err(_) => ResolveError::Unavailable,
        }
    }

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, ResolveError> {
        let Some(first) = &self.first else { return Err(ResolveError::Unavailable) };
        let query = absolute(name)?;
        match (ask(first, query.clone()).await, &self.second) {
            (Err(ResolveError::NoSuchName), Some(second)) => ask(second, query).await,
            (answer, _) => answer,
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = resolver.addresses(name.as_str()).await?;
            // Port 0 leaves the port to the URL.
            let addrs: Addrs = Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addrs)
        })
    }
}

async fn ask(resolver: &TokioResolver, name: DnsName) -> Result<Vec<IpAddr>, ResolveError> {
    match resolver.lookup_ip(name).await {
        Ok(found) => Ok(found.iter().collect()),
        Err(failure) => Err(reason(&failure)),
    }
}

/// What a failed lookup says about the name, and what about us.
fn reason(failure: &DnsFailure) -> ResolveError {
    match failure {
        _ if failure.is_nx_domain() => ResolveError::NoSuchName,
        DnsFailure::Timeout => ResolveError::Timeout,
        DnsFailure::Io(_) | DnsFailure::NoConnections | DnsFailure::Busy => ResolveError::Unavailable,
        DnsFailure::Dns(DnsError::ResponseCode(_) | DnsError::NoRecordsFound(_)) => ResolveError::Failed,
        _ => ResolveError::Failed,
    }
}

/// The name with its final dot, so that no search domain of this machine is tried.
fn absolute(name: &str) -> Result<DnsName, ResolveError> {
    let mut name = DnsName::from_str_relaxed(name).map_err(|_| ResolveError::BadName(name.to_owned()))?;
    name.set_fqdn(true);
    Ok(name)
}

/// Those addresses that this machine has a way to; all of them when it has none, so that connecting says why.
///
/// A machine without IPv6 would otherwise report "no route" for a host whose IPv4 address refused.
fn routable(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let reachable: Vec<IpAddr> = addresses.iter().copied().filter(|ip| has_route(*ip)).collect();
    if reachable.is_empty() { addresses } else { reachable }
}

/// Asks the kernel for a route; connecting a datagram socket sends nothing.
fn has_route(ip: IpAddr) -> bool {
    let any = match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((ip, 9))).is_ok()
}

fn system_name_servers() -> (Vec<NameServerConfig>, ResolverOpts) {
    match hickory_resolver::system_conf::read_system_conf() {
        Ok((config, options)) => (config.name_servers().to_vec(), options),
        Err(error) => {
            tracing::warn!("no name server is configured on this machine: {error}");
            (Vec::new(), ResolverOpts::default())
        }
    }
}

fn name_server(at: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(at.ip());
    for connection in &mut server.connections {
        connection.port = at.port();
    }
    server
}

fn build(servers: &[NameServerConfig], options: &ResolverOpts, timeout: Duration) -> Option<TokioResolver> {
    if servers.is_empty() {
        return None;
    }
    let config = ResolverConfig::from_parts(None, Vec::new(), servers.to_vec());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let set = builder.options_mut();
    *set = options.clone();
    // Both families are asked, because each address of either must pass the guard.
    set.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // Two tries and their ends fit into the whole time: servers exist that answer for IPv4 and are silent about IPv6, and
    // the one answer counts only when the other question has been given up.
    set.attempts = 1;
    set.timeout = (timeout * 2 / 5).max(Duration::from_millis(1));
    set.positive_max_ttl = Some(POSITIVE_TTL);
    set.negative_max_ttl = Some(NEGATIVE_TTL);
    builder.build().inspect_err(|error| tracing::warn!("the resolver could not be built: {error}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_absolute_and_odd_ones_refused() {
        assert_eq!(absolute("example.com").map(|name| name.to_ascii()), Ok("example.com.".to_owned()));
        assert_eq!(absolute("under_score.example").map(|name| name.is_fqdn()), Ok(true));
        let long = "a".repeat(64) + ".example";
        assert_eq!(absolute(&long), Err(ResolveError::BadName(long)));
    }

    #[test]
    fn loopback_has_a_route() {
        assert!(has_route(Ipv4Addr::LOCALHOST.into()));
        let both = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        assert_eq!(routable(both.clone()), both);
    }
}
