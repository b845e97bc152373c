//! Free ports of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Finds `N` different ports that nothing listens on.
///
/// The system chooses the ports. They are released for the program that is about to start, so another process may take
/// one first. The caller then retries with new ports.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    // All listeners stay open until the last port is known, so that the system does not return the same port twice.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
