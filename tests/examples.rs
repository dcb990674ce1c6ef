//! Every example prints what it says it prints.

use futures::executor::block_on;
use side_output::Shutdown;
use std::error::Error;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

macro_rules! examples {
    ($($name:ident = $path:literal),* $(,)?) => {$(
        #[path = $path]
        #[expect(dead_code, reason = "`main` and its constants are for the program")]
        mod $name;
    )*};
}

examples! {
    broadcast_routing = "../examples/broadcast_routing.rs",
    copy = "../examples/copy.rs",
    dead_letter = "../examples/dead_letter.rs",
    even_odd = "../examples/even_odd.rs",
    freezing = "../examples/freezing.rs",
    log_service = "../examples/log_service.rs",
    nested = "../examples/nested.rs",
    orders = "../examples/orders.rs",
    orders_expanded = "../examples/orders_expanded.rs",
    out_of_order = "../examples/out_of_order.rs",
    reconcile = "../examples/reconcile.rs",
    service = "../examples/service.rs",
    timer_alerts = "../examples/timer_alerts.rs",
    window_late = "../examples/window_late.rs",
}

type Example = fn(&mut Vec<u8>) -> Result<(), Box<dyn Error>>;

/// Runs an example twice: what it prints does not depend on chance.
#[track_caller]
fn assert_prints(run: Example, expected: &str) {
    for _ in 0..2 {
        let mut out = Vec::new();
        run(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}

#[test]
fn broadcast_routing_prints() {
    assert_prints(
        broadcast_routing::run,
        r"standard    order 1 (DE), by configuration 2
standard    order 4 (BR), by configuration 2
express     order 2 (US), by configuration 2
review      order 3 (FR), by configuration 2
bad_config  unknown output `expres`; expected one of `standard`, `express`, `review`, `bad_config` at line 1 column 15
",
    );
}

#[test]
fn copy_prints() {
    assert_prints(
        copy::run,
        r"archive: one, two, three
index:   one, two, three
3 records in, 6 copies out
",
    );
}

#[test]
fn dead_letter_prints() {
    assert_prints(
        dead_letter::run,
        r#"order 1: tea
order 6: sugar
dead letter, line 2, byte 22: EOF while parsing a string at line 1 column 19
  raw: {\"id\":2,\"name\":\"cof
dead letter, line 3, byte 42: invalid value: integer `-3`, expected u32 at line 1 column 8
  raw: {\"id\":-3,\"name\":\"milk\"}
dead letter, line 4, byte 66: invalid unicode code point at line 1 column 17
  raw: {\"id\":4,\"name\":\"\xff\"}
dead letter, line 5, byte 86: missing field `name` at line 1 column 8
  raw: {\"id\":5}
4 of 6 lines
"#,
    );
}

#[test]
fn even_odd_prints() {
    assert_prints(
        even_odd::run,
        r"even: [2, 4, 6, 8, 10]
sum of the odd ones: 25
",
    );
}

#[test]
fn nested_prints() {
    assert_prints(
        nested::run,
        r"1 to try again in the minute [60000, 120000)
2 to try again in the minute [0, 60000)
500 accepted
700 accepted
90 refused, code 402
",
    );
}

#[test]
fn orders_prints() {
    assert_prints(
        orders::run,
        r#"valid    o-1: 25.00
valid    o-3: 12.50
valid    o-4: 40.00
invalid  no id: RawOrder { id: None, cents: 900, event_seconds: 101 }
invalid  not a positive amount: RawOrder { id: Some("o-2"), cents: 0, event_seconds: 103 }
late     o-5: 92 s behind the watermark
6 orders, every one accounted for: true
"#,
    );
}

#[test]
fn orders_expanded_prints() {
    assert_prints(
        orders_expanded::run,
        r#"valid: [17, 4]
invalid: ["x"]
"#,
    );
}

#[test]
fn out_of_order_prints() {
    assert_prints(
        out_of_order::run,
        r"A of second  1, watermark none yet
C of second  4, watermark -4001 ms
B of second  2, watermark -1001 ms
E of second 11, watermark -1001 ms
D of second  8, watermark 5999 ms
G of second 16, watermark 5999 ms
F of second  9, watermark 10999 ms
I of second 24, watermark 10999 ms
H of second 20, watermark 18999 ms
window [0, 10000) in order: ABCD
window [10000, 20000) in order: EG
window [20000, 30000) in order: HI
late: F, at 9000 (1970-01-01T00:00:09Z), 1999 ms behind the watermark 10999 (1970-01-01T00:00:10.999Z); window [0, 10000) (1970-01-01T00:00:00Z to 1970-01-01T00:00:10Z) had been complete for 1000 ms
",
    );
}

#[test]
fn reconcile_prints() {
    assert_prints(
        reconcile::run,
        r"order o-1 is matched by the payment of o-1
order o-2 of 5000 ms was not paid within 10 minutes
payment of o-2: no order waits for it
payment of o-3: no order waits for it
",
    );
}

#[test]
fn service_prints() {
    assert_prints(
        service::run,
        r#"bad line: "boiler hot"
connect again: connection reset
refused: toaster 190
connect again: connection aborted
give up: the destination of output `reading` failed: the disk is full
5 rows, at most 82 degrees
"#,
    );
}

#[test]
fn timer_alerts_prints() {
    assert_prints(
        timer_alerts::run,
        r"attic, minute 0: 3 readings
cellar, minute 0: 2 readings
attic, minute 1: 1 readings
cellar, minute 1: 3 readings
ALERT cellar, minute 0: 1 missing
ALERT attic, minute 1: 2 missing
",
    );
}

#[test]
fn window_late_prints() {
    assert_prints(
        window_late::run,
        r"tea       0 s to 300 s:  15  (on time)
coffee    0 s to 300 s:  30  (on time)
tea       0 s to 300 s:  16  (late update 1)
tea     300 s to 600 s:  20  (on time)
coffee  300 s to 600 s:   7  (on time)
late: tea 100, at 280000 (1970-01-01T00:04:40Z), 114999 ms behind the watermark 394999 (1970-01-01T00:06:34.999Z); window [0, 300000) (1970-01-01T00:00:00Z to 1970-01-01T00:05:00Z) had been complete for 95000 ms
",
    );
}

const FROZEN: &str = r#"attic     54.5 F
ALERT    cellar is freezing
cellar    31.5 F
skipped  "garage,?"
ALERT    porch is freezing
porch     -4.0 F
4 lines, 2 alerts
"#;

#[test]
fn freezing_prints() {
    let mut out = Vec::new();
    block_on(freezing::run(freezing::SAMPLE.as_bytes(), &Shutdown::new(), &mut out)).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), FROZEN);
}

/// Ctrl-C ends it while the socket stays open.
#[tokio::test]
async fn freezing_ends_on_request() {
    let (mut device, socket) = tokio::io::duplex(64);
    device.write_all(freezing::SAMPLE.as_bytes()).await.unwrap();
    let shutdown = Shutdown::new();
    let mut out = Vec::new();
    let watch = async { freezing::run(BufReader::new(socket), &shutdown, &mut out).await.unwrap() };
    let stop = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        shutdown.stop();
    };
    tokio::join!(watch, stop);
    assert_eq!(String::from_utf8(out).unwrap(), FROZEN);
    drop(device);
}

/// Lines come over two connections, one after the other; the last one of them is malformed, so what
/// came before it was read when that is reported.
#[tokio::test]
async fn log_service_counts_what_two_connections_send() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let (sender, mut malformed) = tokio::sync::mpsc::unbounded_channel();
    let (mut late, mut out) = (Vec::new(), Vec::new());
    let clients = async {
        let entry = |second: i64, level| {
            format!("{{\"at\":{},\"level\":\"{level}\",\"text\":\"\"}}\n", second * 1000)
        };
        let first = entry(1, "info") + &entry(2, "warn") + &entry(59, "info") + "the first\n";
        // The watermark is at 60 s then; the late one is of the minute before.
        let second = entry(65, "info") + &entry(3, "warn") + "the second\n";
        let mut told = Vec::new();
        for lines in [first, second] {
            let mut socket = TcpStream::connect(address).await.unwrap();
            socket.write_all(lines.as_bytes()).await.unwrap();
            told.push(malformed.recv().await.unwrap());
        }
        shutdown.drain();
        told
    };
    let serving = log_service::serve(listener, &shutdown, &mut late, sender, &mut out);
    let (ledger, told) = tokio::join!(serving, clients);
    let ledger = ledger.unwrap();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.received, ledger["malformed"].routed), (7, 2));
    assert!(told[0].starts_with("\"the first\": expected"), "{told:?}");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "1970-01-01T00:00:00Z info  2\n1970-01-01T00:00:00Z warn  1\n\
         1970-01-01T00:01:00Z info  1\n"
    );
    let late = String::from_utf8(late).unwrap();
    assert!(late.contains("\"at\":3000") && late.contains("had been complete"), "{late}");
}

#[tokio::test]
async fn freezing_reads_a_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let device = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        for bytes in freezing::SAMPLE.as_bytes().chunks(7) {
            socket.write_all(bytes).await.unwrap();
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let mut out = Vec::new();
    let watch = async {
        let socket = TcpStream::connect(address).await.unwrap();
        freezing::run(BufReader::new(socket), &Shutdown::new(), &mut out).await.unwrap();
    };
    tokio::join!(device, watch);
    assert_eq!(String::from_utf8(out).unwrap(), FROZEN);
}
