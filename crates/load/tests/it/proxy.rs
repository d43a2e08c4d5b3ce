//! The fault proxy before a real server on a real socket. Bounds on time are one-sided: what must take a while takes at
//! least that.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use load::proxy::{Conditions, Direction, Fault, Proxy, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough that bytes which were free to pass would have.
const A_WHILE: Duration = Duration::from_millis(150);

/// Starts a server that sends back what it gets, and ends when its client does.
async fn echo_server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it has an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut reads, mut writes) = stream.split();
                // Clients end as they like.
                let _ = tokio::io::copy(&mut reads, &mut writes).await;
                let _ = writes.shutdown().await;
            });
        }
    });
    address
}

async fn proxy(conditions: Conditions) -> Proxy {
    Proxy::start(echo_server().await, conditions).await.expect("a free port")
}

fn broken(fault: Fault) -> Conditions {
    Conditions { fault: Some(fault), ..Conditions::default() }
}

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.expect("the proxy listens")
}

/// Sends bytes and returns as many that come back.
async fn echo(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut answer = vec![0; bytes.len()];
    let (mut reads, mut writes) = stream.split();
    let exchange =
        async { tokio::try_join!(writes.write_all(bytes), reads.read_exact(&mut answer)) };
    timeout(PATIENCE, exchange).await.expect("an answer or an error in time")?;
    Ok(answer)
}

fn some_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 % 251) as u8).collect()
}

#[tokio::test]
async fn bytes_pass_unchanged_and_are_counted() {
    let proxy = proxy(Conditions::default()).await;
    let bytes = some_bytes(1 << 20);
    for _ in 0..2 {
        let mut stream = connect(&proxy).await;
        assert_eq!(echo(&mut stream, &bytes).await.expect("it passes"), bytes);
    }
    let counters = proxy.counters();
    assert_eq!((counters.connections, counters.up, counters.down), (2, 2 << 20, 2 << 20));
}

#[tokio::test]
async fn end_of_one_side_leaves_the_other_open() {
    let proxy = proxy(Conditions::default()).await;
    let mut stream = connect(&proxy).await;
    stream.write_all(b"the last words").await.expect("written");
    stream.shutdown().await.expect("ended");
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("in time").expect("read");
    assert_eq!(answer, b"the last words");
}

#[tokio::test]
async fn every_byte_is_late_by_the_latency_of_its_way() {
    let way = |milliseconds| Way { latency: Duration::from_millis(milliseconds), ..Way::default() };
    let proxy = proxy(Conditions { up: way(60), down: way(40), ..Conditions::default() }).await;
    let mut stream = connect(&proxy).await;
    let began = Instant::now();
    echo(&mut stream, b"there and back").await.expect("it passes");
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn all_connections_share_the_rate() {
    let up = Way { bytes_per_second: Some(2_000_000), ..Way::default() };
    let proxy = proxy(Conditions { up, ..Conditions::default() }).await;
    let bytes = some_bytes(100_000);
    let (mut one, mut other) = (connect(&proxy).await, connect(&proxy).await);
    let began = Instant::now();
    let (first, second) = tokio::join!(echo(&mut one, &bytes), echo(&mut other, &bytes));
    assert_eq!((first.expect("passes"), second.expect("passes")), (bytes.clone(), bytes));
    // 200,000 bytes at 2 MB/s.
    assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
}

/// What measurements of the browser go over.
#[tokio::test]
async fn a_line_of_30_ms_and_100_mb_a_second_takes_both_and_hardly_more() {
    let proxy = proxy(Conditions::line(Duration::from_millis(30), 12_500_000)).await;
    let mut stream = connect(&proxy).await;
    // What the machine adds is told, and fails nothing: others may be busy on it.
    for (bytes, at_least) in [(1, 30), (1_250_000, 130)] {
        let sent = some_bytes(bytes);
        let began = Instant::now();
        assert_eq!(echo(&mut stream, &sent).await.expect("it passes"), sent);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(at_least), "{bytes} bytes took {took:?}");
        println!("{bytes} bytes there and back: {took:?}, at least {at_least} ms");
    }
}

#[tokio::test]
async fn refused_connections_are_refused_until_healed() {
    let proxy = proxy(Conditions::default()).await;
    let mut before = connect(&proxy).await;
    echo(&mut before, b"before").await.expect("it passes");
    proxy.set_fault(Some(Fault::Refuse));
    let refused = timeout(PATIENCE, async {
        loop {
            // At the moment of the change a connection may still be accepted, or reset.
            let found = TcpStream::connect(proxy.address()).await;
            if found.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                break;
            }
            tokio::task::yield_now().await;
        }
    });
    refused.await.expect("it is refused in time");
    // Those that were there go on.
    echo(&mut before, b"still").await.expect("it passes");
    proxy.set_fault(None);
    let healed = timeout(PATIENCE, async {
        loop {
            if let Ok(stream) = TcpStream::connect(proxy.address()).await {
                break stream;
            }
            tokio::task::yield_now().await;
        }
    });
    let mut after = healed.await.expect("in time");
    assert_eq!(echo(&mut after, b"after").await.expect("it passes"), b"after");
}

#[tokio::test]
async fn connection_is_reset_after_so_many_bytes() {
    let proxy = proxy(broken(Fault::ResetAfter(1000))).await;
    let mut stream = connect(&proxy).await;
    echo(&mut stream, &some_bytes(400)).await.expect("800 bytes pass");
    let error = echo(&mut stream, &some_bytes(400)).await.expect_err("it breaks");
    assert!(
        matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
        "{error:?}"
    );
    let counters = proxy.counters();
    assert_eq!(counters.up + counters.down, 1000);
}

#[tokio::test]
async fn stalled_bytes_arrive_when_it_is_over() {
    let proxy = proxy(broken(Fault::Stall)).await;
    let mut stream = connect(&proxy).await;
    stream.write_all(b"patience").await.expect("written");
    let mut answer = [0; 8];
    timeout(A_WHILE, stream.read_exact(&mut answer)).await.expect_err("nothing comes");
    proxy.set_fault(None);
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("in time").expect("read");
    assert_eq!(&answer, b"patience");
}

#[tokio::test]
async fn closing_ends_what_is_open_and_what_comes() {
    let proxy = proxy(Conditions::default()).await;
    let mut stream = connect(&proxy).await;
    echo(&mut stream, b"open").await.expect("it passes");
    proxy.set_fault(Some(Fault::Close));
    let ended = timeout(PATIENCE, stream.read(&mut [0; 1])).await.expect("in time");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    let mut late = connect(&proxy).await;
    let ended = timeout(PATIENCE, late.read(&mut [0; 1])).await.expect("in time");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}

#[tokio::test]
async fn one_bit_of_one_byte_is_flipped() {
    let fault = Fault::Corrupt { direction: Direction::Up, offset: 70_001 };
    let proxy = proxy(broken(fault)).await;
    let bytes = some_bytes(100_000);
    let answer = echo(&mut connect(&proxy).await, &bytes).await.expect("it passes");
    let changed: Vec<_> = (0..bytes.len()).filter(|&index| answer[index] != bytes[index]).collect();
    assert_eq!(changed, [70_001]);
    assert_eq!(answer[70_001] ^ bytes[70_001], 1);
}

#[tokio::test]
async fn server_that_is_not_there_ends_the_connection() {
    let gone = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        listener.local_addr().expect("it has an address")
    };
    let proxy = Proxy::start(gone, Conditions::default()).await.expect("a free port");
    let mut stream = connect(&proxy).await;
    let ended = timeout(PATIENCE, stream.read(&mut [0; 1])).await.expect("in time");
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
}
