//! Packets, counted.

use std::collections::HashMap;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use memchr::memmem::Finder;

/// Bytes of the header that `tcpdump` puts in front of each packet of "any" interface.
const COOKED: usize = 16;

/// The first bytes of a TLS connection: a handshake record.
const TLS: &[u8] = &[0x16, 3];

/// The first bytes of what is said later in one: a record with data.
const TLS_LATER: &[u8] = &[0x17, 3, 3];

/// The first bytes of an SSH connection.
const SSH: &[u8] = b"SSH-";

/// Bytes that are looked for in what goes over the wire. They are to stand there many times: one that is cut by the end of a packet is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(pub Vec<u8>);

/// What went in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Way {
    /// As the machine hands them to the network, which cuts large ones into several on a real wire.
    pub packets: u64,
    /// In bytes, with the headers of IP.
    pub wire: u64,
    /// In bytes, without headers.
    pub payload: u64,
}

/// What went over the wire in some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// To the ports.
    pub up: Way,
    /// From the ports.
    pub down: Way,
    /// TCP connections that were begun.
    pub connections: u64,
    /// Connections that speak TLS.
    pub tls: u64,
    /// That began as SSH does.
    pub ssh: u64,
    /// That began as neither does. Older ones, of which nothing can be said, are nowhere.
    pub plain: u64,
    /// How often a client said something after the server had spoken, or first: the requests, where one waits for the answer to the one before.
    pub turns: u64,
    /// Of each mark, whether it went by in the clear.
    pub seen: Vec<bool>,
}

impl Counts {
    /// Bytes in the direction in which there were more.
    pub fn most(&self) -> u64 {
        self.up.wire.max(self.down.wire)
    }
}

type End = ([u8; 16], u16);

/// One connection.
#[derive(Debug)]
struct Connection {
    server: End,
    /// Whether its first packet was seen.
    is_whole: bool,
    /// Whether the last payload came from the client; nothing before the first.
    last_is_up: Option<bool>,
}

/// What a packet was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing was in it, or it is none of ours.
    Nothing,
    /// Something was in it.
    Payload,
    /// A datagram to the port of the echo, with this number.
    Echo(u64),
}

/// Counts packets of some ports.
#[derive(Debug)]
pub(super) struct Traffic {
    ports: Vec<u16>,
    /// To which this program itself says something, which is not counted.
    echo: u16,
    marks: Vec<Finder<'static>>,
    connections: HashMap<[End; 2], Connection>,
    counts: Counts,
}

impl Traffic {
    pub(super) fn new(ports: &[u16], echo: u16, marks: &[Mark]) -> Self {
        let marks: Vec<_> = marks.iter().map(|mark| Finder::new(&mark.0).into_owned()).collect();
        let counts = Counts { seen: vec![false; marks.len()], ..Counts::default() };
        Self { ports: ports.to_owned(), echo, marks, connections: HashMap::new(), counts }
    }

    pub(super) fn take(&mut self) -> Counts {
        let none = Counts { seen: vec![false; self.marks.len()], ..Counts::default() };
        std::mem::replace(&mut self.counts, none)
    }

    /// Counts a packet as it was captured.
    pub(super) fn add(&mut self, packet: &[u8]) -> Found {
        // The header in front says what kind of interface it was, too, and some parsers do not know that of the loopback.
        let Some(Ok(sliced)) = packet.get(COOKED..).map(SlicedPacket::from_ip) else {
            return Found::Nothing;
        };
        let (source, destination) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                (mapped(ip.header().source()), mapped(ip.header().destination()))
            }
            Some(NetSlice::Ipv6(ip)) => (ip.header().source(), ip.header().destination()),
            _ => return Found::Nothing,
        };
        let (ports, payload, begins) = match &sliced.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let ports = (tcp.source_port(), tcp.destination_port());
                (ports, tcp.payload(), Some(tcp.syn() && !tcp.ack()))
            }
            Some(TransportSlice::Udp(udp)) if udp.destination_port() == self.echo => {
                let number = udp.payload().try_into().map(u64::from_le_bytes);
                return number.map_or(Found::Nothing, Found::Echo);
            }
            Some(TransportSlice::Udp(udp)) => {
                ((udp.source_port(), udp.destination_port()), udp.payload(), None)
            }
            _ => return Found::Nothing,
        };
        let (from, to) = ((source, ports.0), (destination, ports.1));
        let is_up = self.follow(from, to, begins, payload);
        let way = if is_up { &mut self.counts.up } else { &mut self.counts.down };
        way.packets += 1;
        way.wire += packet.len().saturating_sub(COOKED) as u64;
        way.payload += payload.len() as u64;
        for (mark, seen) in self.marks.iter().zip(&mut self.counts.seen) {
            *seen = *seen || mark.find(payload).is_some();
        }
        if payload.is_empty() { Found::Nothing } else { Found::Payload }
    }

    /// Notes what a packet does to its connection, and returns whether it goes to the server. `begins` is nothing where there are no connections.
    fn follow(&mut self, from: End, to: End, begins: Option<bool>, payload: &[u8]) -> bool {
        let Some(begins) = begins else { return self.ports.contains(&to.1) };
        let name = if from < to { [from, to] } else { [to, from] };
        // A beginning that is said again because nobody has answered is the same one.
        let is_again = self.connections.get(&name).is_some_and(|it| it.last_is_up.is_none());
        if begins && !is_again {
            self.counts.connections += 1;
            self.connections
                .insert(name, Connection { server: to, is_whole: true, last_is_up: None });
        }
        let connection = self.connections.entry(name).or_insert_with(|| {
            // It was there before.
            let server = if self.ports.contains(&to.1) { to } else { from };
            Connection { server, is_whole: false, last_is_up: None }
        });
        let is_up = connection.server == to;
        if payload.is_empty() {
            return is_up;
        }
        if connection.last_is_up.is_none() {
            let begins_with = |bytes: &[u8]| payload.starts_with(bytes);
            match connection.is_whole {
                true if begins_with(TLS) => self.counts.tls += 1,
                true if begins_with(SSH) => self.counts.ssh += 1,
                true => self.counts.plain += 1,
                false if begins_with(TLS_LATER) => self.counts.tls += 1,
                false => {}
            }
        }
        if is_up && connection.last_is_up != Some(true) {
            self.counts.turns += 1;
        }
        connection.last_is_up = Some(is_up);
        is_up
    }
}

/// An address of IPv4, as IPv6 writes it.
fn mapped(address: [u8; 4]) -> [u8; 16] {
    std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets()
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    const SERVER: ([u8; 4], u16) = ([127, 0, 0, 1], 22000);
    const CLIENT: ([u8; 4], u16) = ([127, 0, 0, 1], 40000);
    const ECHO: u16 = 50000;

    /// What stands in front of a packet of the loopback: from another one, of loopback (772), with no address, with IPv4 in it.
    const IN_FRONT: [u8; COOKED] = [0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];

    fn tcp(from: ([u8; 4], u16), to: ([u8; 4], u16), begins: bool, payload: &[u8]) -> Vec<u8> {
        let builder = PacketBuilder::ipv4(from.0, to.0, 64).tcp(from.1, to.1, 1, 1000);
        let builder = if begins { builder.syn() } else { builder.ack(1) };
        let mut bytes = IN_FRONT.to_vec();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn bytes_requests_and_connections_are_counted_by_direction() {
        let mut traffic =
            Traffic::new(&[22000], ECHO, &[Mark(b"needle".into()), Mark(b"none".into())]);
        assert_eq!(traffic.add(&tcp(CLIENT, SERVER, true, b"")), Found::Nothing);
        assert_eq!(traffic.add(&tcp(CLIENT, SERVER, false, b"\x16\x03\x01 hello")), Found::Payload);
        for _ in 0..2 {
            traffic.add(&tcp(SERVER, CLIENT, false, b"with a needle in it"));
            // Two packets without an answer between them are one request.
            traffic.add(&tcp(CLIENT, SERVER, false, b"one"));
            traffic.add(&tcp(CLIENT, SERVER, false, b"and the same"));
        }
        let counts = traffic.take();
        let (up, down) = (8 + 1 + 2 * (3 + 12), 2 * 19);
        assert_eq!((counts.up.payload, counts.down.payload), (up, down));
        assert_eq!((counts.up.packets, counts.down.packets), (6, 2));
        assert_eq!((counts.up.wire, counts.down.wire), (up + 6 * 40, down + 2 * 40));
        assert_eq!(counts.most(), up + 6 * 40);
        assert_eq!((counts.connections, counts.turns), (1, 3));
        assert_eq!((counts.tls, counts.ssh, counts.plain), (1, 0, 0));
        assert_eq!(counts.seen, [true, false]);
        assert_eq!(traffic.take(), Counts { seen: vec![false; 2], ..Counts::default() });
    }

    #[test]
    fn who_begins_a_connection_is_its_client_even_from_a_port_that_is_looked_at() {
        let (one, other) = (([127, 0, 0, 1], 22000), ([127, 0, 0, 1], 22001));
        let mut traffic = Traffic::new(&[22000, 22001], ECHO, &[]);
        traffic.add(&tcp(one, other, true, b""));
        traffic.add(&tcp(one, other, false, b"SSH-2.0"));
        traffic.add(&tcp(other, one, false, b"SSH-2.0-other"));
        let counts = traffic.take();
        assert_eq!((counts.up.payload, counts.down.payload, counts.ssh), (7, 13, 1));

        // Of one that was there before, the port tells.
        let mut traffic = Traffic::new(&[22000], ECHO, &[]);
        traffic.add(&tcp(SERVER, CLIENT, false, b"answer"));
        traffic.add(&tcp(CLIENT, SERVER, false, b"question"));
        let counts = traffic.take();
        assert_eq!((counts.up.payload, counts.down.payload, counts.connections), (8, 6, 0));
        assert_eq!((counts.turns, counts.plain), (1, 0), "its beginning was not seen");
        let mut traffic = Traffic::new(&[22000], ECHO, &[]);
        traffic.add(&tcp(SERVER, CLIENT, false, b"\x17\x03\x03 data"));
        assert_eq!(traffic.take().tls, 1);
    }

    #[test]
    fn datagrams_are_counted_and_what_is_no_packet_is_not() {
        let mut traffic = Traffic::new(&[22000], ECHO, &[]);
        let datagram = |port: u16, payload: &[u8]| {
            let mut bytes = IN_FRONT.to_vec();
            let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).udp(40000, port);
            builder.write(&mut bytes, payload).unwrap();
            bytes
        };
        let bytes = datagram(22000, b"12345");
        assert_eq!(traffic.add(&bytes), Found::Payload);
        // What the capture says to itself is not counted.
        assert_eq!(traffic.add(&datagram(ECHO, &7_u64.to_le_bytes())), Found::Echo(7));
        assert_eq!(traffic.add(&datagram(ECHO, b"?")), Found::Nothing);
        for length in 0..bytes.len() - 5 {
            traffic.add(&bytes[..length]);
        }
        let counts = traffic.take();
        assert_eq!((counts.up.payload, counts.up.wire), (5, 40 + 8 + 5));
        assert_eq!((counts.connections, counts.turns), (0, 0));
    }
}
