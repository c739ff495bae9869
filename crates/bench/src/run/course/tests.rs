//! Rounds of servers that do one thing wrong, each on a thread of this process.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::*;
use crate::chain::format::Ground;
use crate::clients::client::Client;
use crate::clients::port::Port;
use crate::clients::process::Usage;
use crate::run::lane::Wire;
use crate::run::plan::{Pace, duration};
use crate::run::sample::unequal_work;
use crate::run::sweep::Sweep;
use crate::run::tables::{Pairing, pairs};

/// The way in which a server answers a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Right,
    /// `INVALID`.
    Wrong,
    /// `VALID`, of another block.
    OtherHash,
    /// `VALID` with a witness of no bytes.
    EmptyWitness,
    Syncing,
    Refuses,
    HangsUp,
    /// The connection ends within the body.
    Truncates,
    /// The body ends too early, as its head says.
    CutsOff,
    Gzip,
    Hangs,
    /// All connections end, and it listens again only later.
    Restarts,
    /// It waits a while, and answers.
    IsSlow,
}

const BLOCKS: u64 = 6;
/// The block with which something else than [`Does::Right`] is done.
const AT: u64 = 4;
/// For an answer, of a server that gives none, and of the others.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(120)];
const SLOWNESS: Duration = Duration::from_millis(50);

fn hash(number: u64, branch: u8) -> B256 {
    let mut hash = B256::repeat_byte(branch);
    hash[24..].copy_from_slice(&number.to_be_bytes());
    hash
}

/// Lines of payloads, of a chain that `branch` tells from others.
fn lines(branch: u8) -> String {
    let line = |number: u64| {
        let payload = json!({
            "blockNumber": format!("{number:#x}"),
            "blockHash": hash(number, branch),
            "parentHash": hash(number - 1, branch),
            "stateRoot": hash(number, branch ^ 0xff),
            "gasLimit": "0x1c9c380",
            "gasUsed": format!("{:#x}", number * 1_000_000),
            "transactions": ["0x00", "0x01"],
        });
        format!("{}\n", json!({"method": "engine_newPayloadV4", "params": [payload, [], null, []]}))
    };
    (1..=BLOCKS).map(line).collect()
}

/// A plan of the payloads in a folder.
fn plan(folder: &Path, stage: Stage, pace: Pace) -> Plan {
    let path = folder.join("payloads.jsonl");
    fs::write(&path, lines(1)).expect("written");
    Plan {
        ground: Ground::default(),
        stages: vec![Stage { files: vec![path], ..stage }],
        rounds: 1,
        together: true,
        shared: false,
        pace,
        until: None,
        ignores_load: true,
        dir: folder.join("dir"),
        results: folder.join("results"),
    }
}

/// A server that does `what` with block [`AT`]; where it listens.
fn server(what: Does) -> String {
    let mut listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut head, mut done) = (Value::Null, false);
        loop {
            let (stream, _) = listener.accept().expect("a client");
            if serve(&stream, what, &mut head, &mut done) {
                drop((stream, listener));
                std::thread::sleep(SLOWNESS);
                listener = TcpListener::bind(address).expect("the same port");
            }
        }
    });
    address.to_string()
}

/// One connection; whether the server is to restart. `done` is whether it did.
fn serve(mut stream: &TcpStream, what: Does, head: &mut Value, done: &mut bool) -> bool {
    let mut reader = BufReader::new(stream);
    while let Some(request) = request(&mut reader) {
        let payload = &request["params"][0];
        let valid = |hash: &Value, witness: &str| {
            let status = "VALID";
            json!({"status": status, "latestValidHash": hash, "witness": witness})
        };
        let is_at = payload["blockNumber"] == format!("{AT:#x}") && !*done;
        let does = if is_at { what } else { Does::Right };
        let result = match (request["method"].as_str().expect("a method"), does) {
            ("eth_getBlockByNumber", _) => json!({"number": "0x1", "hash": head}),
            ("engine_forkchoiceUpdatedV3", _) => {
                *head = payload["headBlockHash"].clone();
                json!({"payloadStatus": valid(head, "0x")})
            }
            (_, Does::Wrong) => json!({"status": "INVALID", "validationError": "bad root"}),
            (_, Does::OtherHash) => valid(&json!(hash(AT, 9)), "0xc0"),
            (_, Does::EmptyWitness) => valid(&payload["blockHash"], "0x"),
            (_, Does::Syncing) => json!({"status": "SYNCING", "latestValidHash": null}),
            _ => valid(&payload["blockHash"], "0xc0"),
        };
        let error = json!({"code": -32000, "message": "busy"});
        let (key, value) =
            if does == Does::Refuses { ("error", error) } else { ("result", result) };
        let mut body = json!({"jsonrpc": "2.0", "id": 1, key: value}).to_string().into_bytes();
        let (mut encoding, mut missing) = ("identity", 0);
        match does {
            Does::HangsUp => return false,
            Does::Restarts => {
                *done = true;
                return true;
            }
            Does::Hangs => {
                // Until the client has gone.
                reader.fill_buf().ok();
                return false;
            }
            Does::IsSlow => std::thread::sleep(SLOWNESS),
            Does::CutsOff => body.truncate(body.len() / 2),
            Does::Truncates => missing = 10,
            Does::Gzip => (encoding, body) = ("gzip", gzip(&body)),
            _ => {}
        }
        let length = body.len() + missing;
        let start = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        let written = stream.write_all(start.as_bytes()).and_then(|()| stream.write_all(&body));
        if written.is_err() || missing > 0 {
            return false;
        }
    }
    false
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("packed");
    packed.finish().expect("packed")
}

/// The body of a request; none when the client has gone.
fn request(reader: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}

/// A contender on a [`server`] that does `what`, which is the `index`-th of its team.
fn member(what: Does, index: usize) -> (Session, Server) {
    let address = server(what);
    let open = || Port::open(&address, Some(rpc::JwtSecret::random())).expect("it listens");
    let mut client = Client {
        name: address.clone(),
        builds_on: None,
        engine: open(),
        public: open(),
        websocket: String::new(),
        socket: None,
        process: None,
    };
    client.engine.set_patience(PATIENCE[usize::from(what != Does::Hangs)]);
    let wire = if what == Does::EmptyWitness { Wire::Plain } else { Wire::Verdict };
    let session = Session {
        lane: Lane::open(wire, &client).expect("no connection of its own"),
        server: index,
        place: 0,
        reconnect: Duration::from_secs(if what == Does::Restarts { 20 } else { 0 }),
        persisted: None,
        run: Run::of(&address, 0),
    };
    let (client, idle) = (Some(client), Usage::default());
    (session, Server { client, owner: None, idle, knows_timings: false })
}

/// The run of a client that does `what` with block [`AT`].
fn run_of(what: Does, stage: Stage, pace: Pace) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let (session, server) = member(what, 0);
    let plan = plan(folder.path(), stage, pace);
    let course = Course::new(&plan).expect("a folder to work in");
    course.run_on(session, server).expect("it runs").runs.remove(0)
}

fn usual(what: Does) -> Run {
    run_of(what, Stage::default(), Pace::default())
}

#[test]
fn what_a_client_does_wrong_is_called_what_it_is_and_blocks_before_are_kept() {
    let check = |what: Does, expected: Fault, words: &str| {
        let run = usual(what);
        let failure = run.failure.unwrap_or_else(|| panic!("{what:?} was not noticed"));
        assert_eq!((failure.fault, failure.block), (expected, Some(AT)), "{}", failure.said);
        assert!(failure.said.contains(words), "{what:?}: {}", failure.said);
        assert_eq!(run.blocks.len() as u64, AT - 1, "{what:?}");
    };
    check(Does::Wrong, Fault::Lying, "bad root");
    check(Does::OtherHash, Fault::Lying, "latestValidHash");
    check(Does::EmptyWitness, Fault::NoWitness, "WithWitness");
    check(Does::Syncing, Fault::Behind, "SYNCING");
    check(Does::Refuses, Fault::Refusing, "busy");
    check(Does::HangsUp, Fault::HungUp, "engine_newPayloadV4");
    check(Does::Truncates, Fault::Truncated, "engine_newPayloadV4");
    check(Does::CutsOff, Fault::Garbled, "engine_newPayloadV4");
    check(Does::Gzip, Fault::Compressed, "gzip");
    check(Does::Hangs, Fault::Hanging, "engine_newPayloadV4");
}

/// A client that runs already.
#[test]
fn payloads_are_replayed_on_an_endpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let url = server(Does::Right);
    let [payloads, secret, dir] = ["payloads.jsonl", "jwt", "dir"].map(place);
    fs::write(&payloads, lines(1)).expect("written");
    fs::write(&secret, "11".repeat(32)).expect("written");
    let (results, command) = (place("results"), "deponent-bench replay".split(' '));
    let flags = [&*payloads, "--engine-url", &url, "--jwt-secret", &secret, "--dir", &dir];
    let flags = flags.into_iter().chain(["--results", &results]);
    crate::run(command.chain(flags)).expect("it answers");
    let csv = fs::read_to_string(folder.path().join("results/combined_latency.csv"));
    assert_eq!(csv.expect("written").lines().count() as u64, 1 + BLOCKS);
}

#[test]
fn a_client_that_restarts_is_waited_for_and_its_block_does_not_count() {
    let run = usual(Does::Restarts);
    assert_eq!(run.failure, None);
    let numbers: Vec<u64> = run.counted().map(|block| block.number).collect();
    assert_eq!(numbers, [1, 2, 3, 5, 6]);
    assert!(run.remarks[0].contains("went away during block 4"), "{:?}", run.remarks);
}

#[test]
fn a_slow_block_is_the_queue_wait_of_the_next_one() {
    // A slot is a fifth of the slow answer: the next payloads wait for their turn.
    let slot = Some(Duration::from_millis(10));
    let run = run_of(Does::IsSlow, Stage::default(), Pace { wait_time: slot, ..Pace::default() });
    assert_eq!(run.failure, None);
    let slow = &run.blocks[AT as usize - 1];
    assert!(slow.new_payload >= SLOWNESS.as_secs_f64());
    let next = &run.blocks[AT as usize];
    let late = SLOWNESS.as_secs_f64() - 0.010;
    assert!(next.queue_wait >= late - 0.001, "{}", next.queue_wait);
    let mut document = crate::report::Document::new("slow");
    tables::fill(&mut document, &Measured { runs: vec![run], ..Measured::default() });
    let report = crate::report::markdown(&[document]);
    assert!(report.contains("queue wait"), "{report}");
}

#[test]
fn blocks_are_left_out_warm_up_and_counted() {
    let stage = Stage { skip: 1, warm_up: 2, count: Some(2), ..Stage::default() };
    let run = run_of(Does::Right, stage, Pace::default());
    let sent: Vec<(u64, bool)> =
        run.blocks.iter().map(|block| (block.number, block.counts())).collect();
    assert_eq!(sent, [(2, false), (3, false), (4, true), (5, true)]);
    assert_eq!(run.blocks[0].gas_used, 2_000_000);
    let run = run_of(Does::Right, Stage::default(), Pace { reorg: Some(2), ..Pace::default() });
    let reorgs: Vec<bool> = run.blocks.iter().map(|block| block.reorg.is_some()).collect();
    assert_eq!(reorgs, [false, true, false, true, false, true]);
}

#[test]
fn one_of_two_fails_and_the_other_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan(folder.path(), Stage::default(), Pace::default());
    let mut course = Course::new(&plan).expect("a folder to work in");
    course.open().expect("a folder");
    let mut team = Team::default();
    for (index, what) in [Does::Right, Does::Wrong].into_iter().enumerate() {
        let (session, server) = member(what, index);
        team.sessions.push(session);
        team.servers.push(server);
    }
    course.stages(team).expect("it runs");
    let runs = course.end().runs;
    assert_eq!(runs[0].failure, None);
    let blocks: Vec<u64> = runs.iter().map(|run| run.blocks.len() as u64).collect();
    assert_eq!(blocks, [BLOCKS, AT - 1]);
    let why = unequal_work(&runs).expect("it lied");
    assert!(why.contains("bad root"), "{why}");
}

#[test]
fn other_blocks_and_fewer_blocks_are_unequal_work() {
    let right = || usual(Does::Right);
    let [a, b] = [right(), right()];
    assert_eq!(unequal_work(&[a.clone(), b.clone()]), None);
    let mut other = b.clone();
    other.blocks[2].state_root = B256::ZERO;
    let why = unequal_work(&[a.clone(), other]).expect("unequal");
    assert!(why.contains("block 3") && why.contains("same files"), "{why}");
    let mut fewer = b;
    fewer.blocks.pop();
    let why = unequal_work(&[a, fewer]).expect("unequal");
    assert!(why.contains("6 blocks") && why.contains("5"), "{why}");
}

#[test]
fn pairs_are_blocks_of_one_round_or_rounds_of_several() {
    let block = |number: u64, seconds: f64| Block {
        number,
        hash: hash(number, 1),
        warm_up: number == 0,
        new_payload: seconds,
        forkchoice: 1.0,
        ..Block::default()
    };
    let run = |client: &str, round, times: [f64; 3]| {
        let blocks = (0u64..).zip(times).map(|(number, seconds)| block(number, seconds));
        Run { blocks: blocks.collect(), ..Run::of(client, round) }
    };
    let (a, b) = (run("a", 0, [9.0, 1.0, 2.0]), run("b", 0, [9.0, 3.0, 4.0]));
    let of = |runs: &[Run], pairing| pairs(runs, pairing, ["a", "b"]);
    let one = [a.clone(), b.clone()];
    assert_eq!(of(&one, Pairing::Blocks), [vec![[2.0, 4.0]], vec![[3.0, 5.0]]]);
    assert_eq!(of(&one, Pairing::Rounds), [vec![[2.0, 4.0], [3.0, 5.0]]]);
    let (c, mut d) = (run("a", 1, [9.0, 5.0, 6.0]), run("b", 1, [9.0, 7.0, 8.0]));
    let rounds = [a.clone(), b.clone(), c.clone(), d.clone()];
    let expected = [vec![[2.0, 4.0], [3.0, 5.0]], vec![[6.0, 8.0], [7.0, 9.0]]];
    assert_eq!(of(&rounds, Pairing::Rounds), expected);
    let blocks = [vec![[2.0, 4.0], [6.0, 8.0]], vec![[3.0, 5.0], [7.0, 9.0]]];
    assert_eq!(of(&rounds, Pairing::Blocks), blocks);
    d.fail(Fault::Died, None, &anyhow::anyhow!("gone"));
    assert_eq!(of(&[a, b, c, d], Pairing::Rounds), expected[..1]);
}

#[test]
fn files_may_be_packed_and_mistakes_in_them_have_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    // Two frames, as files that were put together have them.
    let zstd =
        [lines(1), lines(2)].map(|text| zstd::encode_all(text.as_bytes(), 1).expect("a frame"));
    let paths = [
        write("plain", lines(1).as_bytes()),
        write("gzip", &gzip(lines(1).as_bytes())),
        write("zstd", &zstd.concat()),
    ];
    let payloads = payloads_of(&paths).expect("files").collect::<Result<Vec<_>, _>>();
    let hashes: Vec<B256> =
        payloads.expect("payloads").iter().map(|payload| payload.hash).collect();
    let expected =
        [1, 1, 1, 2].into_iter().flat_map(|branch| (1..=BLOCKS).map(move |n| hash(n, branch)));
    assert!(expected.eq(hashes));
    let head = r#"{"deponent":"payloads","version":1,"chain_id":1,"parent":"#;
    let head = format!("{head}\"{}\",\"from\":1,\"to\":4,\"made_by\":\"us\"}}", B256::ZERO);
    let told = write("told", format!("{head}\n{}", lines(1)).as_bytes());
    assert_eq!(count_of(&[told.clone(), told.clone()]).expect("files"), 2 * BLOCKS as usize);
    assert_eq!(payloads_of(&[told]).expect("a file").filter(Result::is_ok).count() as u64, BLOCKS);
    // Empty lines are nothing.
    let spaced = write("spaced", format!("\n{head}\n\n{}\n \n", lines(1)).as_bytes());
    assert_eq!(count_of(std::slice::from_ref(&spaced)).expect("a file"), BLOCKS as usize);
    assert!(payloads_of(&[spaced]).expect("a file").all(|payload| payload.is_ok()));
    let later = write("later", head.replace("\"version\":1", "\"version\":2").as_bytes());
    let error = payloads_of(&[later]).expect("a file").last().expect("a line").expect_err("newer");
    assert!(format!("{error:#}").contains("version 2"), "{error:#}");
    let bad = write("bad", format!("{}{{}}\n", lines(1)).as_bytes());
    let error = payloads_of(&[bad]).expect("a file").last().expect("a line").expect_err("no call");
    assert!(format!("{error:#}").contains("bad, line 7"), "{error:#}");
    assert!(payloads_of(&[folder.path().join("none")]).is_err());
}

#[test]
fn arguments_with_a_form_of_their_own_are_read() {
    assert_eq!("always".parse(), Ok(Persistence::Every(1)));
    assert_eq!("3".parse(), Ok(Persistence::Every(3)));
    assert!("0".parse::<Persistence>().is_err());
    assert_eq!(duration("400ms"), Ok(Duration::from_millis(400)));
    assert_eq!(duration("12s"), Ok(Duration::from_secs(12)));
    assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
    assert_eq!(duration("250"), Ok(Duration::from_millis(250)));
    assert!(duration("fast").is_err() && duration("-1s").is_err());
    assert!("key=1,2".parse::<Sweep>().is_ok());
    for text in ["key", "=1", "key=1,,2", "key=1,1"] {
        assert!(text.parse::<Sweep>().is_err(), "{text}");
    }
}
