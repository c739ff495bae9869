//! Codes that a client holds or maps: its witnesses are whole, whatever becomes of the server's
//! numbers, its files and the connection.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_engine::{
    ExecutionPayload, ExecutionPayloadSidecar, ExecutionPayloadV1, PayloadStatusEnum,
};
use deponent_client::ssz::{ExecutionPayloadEnvelope, PayloadStatus, Status, with_witness_parts};
use deponent_client::{CodeCache, ConnectOptions, EngineClient, Fork, Wire};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rpc::rest::{self, HeaderMap, HeaderValue, StatusCode};
use rpc::{Handler, Json, Limits, RawValue, ServerOptions, bind_unix, serve};
use tempfile::TempDir;
use witness::Witness;

/// The numbers of the codes that were sent on a connection.
#[derive(Clone, Default)]
struct Sent(HashMap<Bytes, u32>);

/// The files of codes, on one connection: another has others, as after another start elsewhere.
#[derive(Clone, Default)]
struct Files {
    directory: PathBuf,
    /// The segment, the offset in its file, and the length.
    places: HashMap<Bytes, (u64, u64, u32)>,
    segment: u64,
    segment_bytes: u64,
}

impl Files {
    fn path(&self, segment: impl ToString) -> PathBuf {
        self.directory.join(segment.to_string())
    }

    fn append(&mut self, code: &Bytes) {
        if self.segment_bytes > 300 {
            self.begin_segment();
        }
        let place = (self.segment, self.segment_bytes, code.len() as u32);
        let file = std::fs::File::options().append(true).create(true).open(self.path(self.segment));
        file.expect("opened").write_all(code).expect("written");
        self.segment_bytes += code.len() as u64;
        self.places.insert(code.clone(), place);
    }

    fn begin_segment(&mut self) {
        self.segment += 1;
        self.segment_bytes = 0;
    }
}

/// A server that numbers codes, and goes wrong once at each block that `fault_of` says.
struct Server {
    seed: u64,
    went_wrong: Mutex<BTreeSet<u64>>,
    codes_sent: Arc<AtomicUsize>,
    directory: TempDir,
    directories: AtomicUsize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// What it counts as sent never comes.
    Lost,
    /// It counts more than it sent.
    Miscounted,
    /// It begins anew.
    Forgot,
}

fn fault_of(seed: u64, number: u64) -> Fault {
    match StdRng::seed_from_u64(!seed ^ number).random_range(0..50) {
        0 => Fault::Lost,
        1 => Fault::Miscounted,
        2 => Fault::Forgot,
        _ => Fault::None,
    }
}

fn witness_of(seed: u64, number: u64) -> Witness {
    let mut random = StdRng::seed_from_u64(seed ^ number);
    let codes: BTreeSet<Bytes> = (0..random.random_range(0..20))
        .map(|_| {
            let code: u8 = random.random_range(0..40);
            Bytes::from(vec![code; 1 + usize::from(code)])
        })
        .collect();
    let state = vec![Bytes::from(number.to_be_bytes())];
    Witness {
        state: state.into(),
        codes: codes.into_iter().collect(),
        headers: vec![Bytes::from_static(b"h")],
    }
}

impl Handler for Server {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, rpc::Error> {
        Err(rpc::Error::method_not_found(method))
    }

    fn resources(&self) -> Option<&dyn rest::Resources> {
        Some(self)
    }
}

impl rest::Resources for Server {
    fn prefix(&self) -> &str {
        "/engine/"
    }

    fn answer(&self, request: rest::Request) -> rest::Response {
        if let Some(segment) = request.path.strip_prefix("/engine/v1/code-files/") {
            let path = request.connection.with(|files: &mut Files| files.path(segment));
            return match std::fs::File::open(path) {
                Ok(file) => rest::Response { file: Some(Arc::new(file)), ..Default::default() },
                Err(_) => rest::Response::text(StatusCode::NOT_FOUND, "no such file"),
            };
        }
        let body = Bytes::from(request.body.clone());
        let envelope = ExecutionPayloadEnvelope::decode(Fork::Paris, &body).expect("an envelope");
        let number = envelope.payload.block_number();
        let status = PayloadStatus {
            status: if number.is_multiple_of(5) { Status::Syncing } else { Status::Valid },
            latest_valid_hash: None,
            validation_error: None,
        };
        let mut headers = HeaderMap::new();
        let respond = |witness: Option<&Witness>, headers, numbers: Option<Vec<u8>>| {
            let mut parts = with_witness_parts(&status.encode(), witness, &[]).expect("short");
            if let Some(numbers) = numbers {
                let end = 8 + parts.iter().map(|part| part.len()).sum::<usize>() as u32;
                parts.insert(0, [8_u32.to_le_bytes(), end.to_le_bytes()].concat().into());
                parts.push(numbers.into());
            }
            let parts: Vec<_> = parts.into_iter().map(|part| part.0).collect();
            rest::Response { status: StatusCode::OK, headers, body: parts.into(), file: None }
        };
        if number.is_multiple_of(5) {
            return respond(None, headers, None);
        }
        let mut witness = witness_of(self.seed, number);
        if !request.headers.contains_key("deponent-codes") {
            self.codes_sent.fetch_add(witness.codes.len(), Ordering::Relaxed);
            return respond(Some(&witness), headers, None);
        }
        let is_first = self.went_wrong.lock().expect("no panic").insert(number);
        let fault = if is_first { fault_of(self.seed, number) } else { Fault::None };
        if request.headers["deponent-codes"] == "mapped" {
            let places =
                request.connection.with(|files| self.leave_out(files, &mut witness, fault, number));
            headers.insert("deponent-codes", HeaderValue::from_static("mapped"));
            if fault == Fault::Lost {
                headers.insert("connection", HeaderValue::from_static("close"));
            }
            return respond(Some(&witness), headers, Some(places));
        }
        let (first, numbers) = request.connection.with(|Sent(sent): &mut Sent| {
            match fault {
                Fault::Forgot => sent.clear(),
                Fault::Miscounted => {
                    let count = sent.len() as u32;
                    sent.insert(format!("never sent {count}").into_bytes().into(), count);
                }
                Fault::Lost | Fault::None => {}
            }
            let (first, mut numbers) = (sent.len(), Vec::new());
            witness.codes.retain(|code| match sent.get(code) {
                Some(number) => {
                    numbers.extend(number.to_le_bytes());
                    false
                }
                None => {
                    sent.insert(code.clone(), sent.len() as u32);
                    true
                }
            });
            (first, numbers)
        });
        if fault == Fault::Lost {
            return rest::Response::text(StatusCode::SERVICE_UNAVAILABLE, "busy");
        }
        self.codes_sent.fetch_add(witness.codes.len(), Ordering::Relaxed);
        headers.insert("deponent-codes", HeaderValue::from(first));
        respond(Some(&witness), headers, Some(numbers))
    }
}

impl Server {
    /// Leaves out codes that lie in files, and says where.
    fn leave_out(
        &self,
        files: &mut Files,
        witness: &mut Witness,
        fault: Fault,
        number: u64,
    ) -> Vec<u8> {
        if files.directory == Path::new("") {
            let name = self.directories.fetch_add(1, Ordering::Relaxed).to_string();
            files.directory = self.directory.path().join(name);
            std::fs::create_dir(&files.directory).expect("created");
        }
        let mut random = StdRng::seed_from_u64(self.seed ^ !number);
        let mut places = Vec::new();
        witness.codes.retain(|code| {
            if !files.places.contains_key(code) && random.random_range(0..3) > 0 {
                files.append(code);
            }
            let Some((segment, offset, length)) = files.places.get(code) else { return true };
            places.extend([segment.to_le_bytes(), offset.to_le_bytes()].concat());
            places.extend(length.to_le_bytes());
            false
        });
        self.codes_sent.fetch_add(witness.codes.len(), Ordering::Relaxed);
        if fault == Fault::Forgot && files.segment_bytes > 0 {
            // The file is gone when it is asked for.
            std::fs::remove_file(files.path(files.segment)).expect("it was there");
            let gone = files.segment;
            files.places.retain(|_, (segment, ..)| *segment != gone);
            files.begin_segment();
        }
        places
    }
}

fn payload(block_number: u64) -> ExecutionPayload {
    ExecutionPayload::V1(ExecutionPayloadV1 {
        parent_hash: B256::ZERO,
        fee_recipient: Default::default(),
        state_root: B256::ZERO,
        receipts_root: B256::ZERO,
        logs_bloom: Default::default(),
        prev_randao: B256::ZERO,
        block_number,
        gas_limit: 1,
        gas_used: 0,
        timestamp: 1,
        extra_data: Default::default(),
        base_fee_per_gas: Default::default(),
        block_hash: B256::ZERO,
        transactions: Vec::new(),
    })
}

/// Sends blocks with a client that has this cache of codes. Returns how many codes came, and how
/// many the witnesses have.
async fn send(codes: CodeCache) -> (usize, usize) {
    let seed = testing::seed();
    let codes_sent = Arc::new(AtomicUsize::new(0));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("test.ipc");
    let server = Server {
        seed,
        went_wrong: Mutex::default(),
        codes_sent: codes_sent.clone(),
        directory,
        directories: AtomicUsize::default(),
    };
    let listener = bind_unix(&path).expect("a socket");
    let address = format!("unix:{}", path.display());
    let options = ServerOptions::new(None, Limits::engine());
    tokio::spawn(serve(listener, options, Arc::new(server), std::future::pending()));
    let options = ConnectOptions { wire: Some(Wire::Ssz), codes, ..ConnectOptions::default() };
    let mut client = EngineClient::connect_with(&address, options).await.expect("connects");
    let mut codes = 0;
    for number in 0..300 {
        let (payload, sidecar) = (payload(number), ExecutionPayloadSidecar::none());
        let answer = match client.new_payload_with_witness(&payload, &sidecar).await {
            Err(error) => {
                assert!(fault_of(seed, number) == Fault::Lost, "{number}: {error}");
                client.new_payload_with_witness(&payload, &sidecar).await
            }
            answer => answer,
        };
        let (status, answer) = answer.unwrap_or_else(|error| panic!("{number}: {error}"));
        if number.is_multiple_of(5) {
            assert_eq!((status.status, answer), (PayloadStatusEnum::Syncing, None));
            continue;
        }
        let expected = witness_of(seed, number);
        codes += expected.codes.len();
        assert_eq!(answer.expect("VALID").witness, expected, "block {number}");
    }
    (codes_sent.load(Ordering::Relaxed), codes)
}

#[tokio::test]
async fn witnesses_are_whole_and_few_codes_come() {
    let (sent, of) = send(CodeCache::Held { most_bytes: 1 << 20 }).await;
    assert!(2 * sent < of, "{sent} codes came, of {of}");
}

#[tokio::test]
async fn codes_beyond_the_bound_are_dropped() {
    let (sent, of) = send(CodeCache::Held { most_bytes: 300 }).await;
    assert!(2 * sent > of && sent <= 2 * of, "{sent} codes came, of {of}");
}

#[tokio::test]
async fn all_codes_come_to_a_client_without_a_cache() {
    for codes in [CodeCache::Off, CodeCache::Held { most_bytes: 0 }] {
        let (sent, of) = send(codes).await;
        assert_eq!(sent, of);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn codes_are_mapped_whatever_becomes_of_their_files() {
    let (sent, of) = send(CodeCache::Mapped).await;
    assert!(2 * sent < of, "{sent} codes came, of {of}");
}
