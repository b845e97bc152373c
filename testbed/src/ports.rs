//! Free ports of the loopback interface.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Finds `N` different ports that nothing listens on.
///
/// The system picks them, and they are let go again for the program that is about to start, so another
/// process may take one first. Who starts such a program retries with new ports.
pub(crate) fn free_ports<const N: usize>() -> io::Result<[u16; N]> {
    let mut ports = [0; N];
    // All are held until the last is known: else the system could hand out the same one twice.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}
