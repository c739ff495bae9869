//! One upstream, asked for one thing.

use alloy_primitives::B256;
use deponent_follow::{Error, Upstream, UpstreamFigures, UpstreamOptions};

use serde_json::{Value, json};

use crate::support::{Manner, Server, chain, quick};

#[tokio::test]
async fn headers_and_blocks_are_those_of_the_hashes() {
    let blocks = chain(5);
    let server = Server::with(&blocks);
    let upstream = server.upstream(quick());
    let last = &blocks[4];
    assert_eq!(upstream.header(last.hash()).await.expect("it has it"), last.header);
    let latest = upstream.header_at("latest").await.expect("an answer").expect("a block");
    assert_eq!(latest, last.header);
    let down = upstream.headers_down(4, 128).await.expect("it has them");
    let expected: Vec<_> =
        blocks[..4].iter().rev().map(|block| (block.hash(), block.header.clone())).collect();
    assert_eq!(down, expected);
    let hashes: Vec<_> = blocks.iter().map(|block| block.hash()).collect();
    assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks);
    let refused = upstream.call::<String>("eth_nothing", ()).await.expect_err("no such method");
    assert!(!refused.is_lie());
    let UpstreamFigures { headers, blocks, bytes, lies, errors, .. } = upstream.figures();
    assert_eq!((headers, blocks, lies, errors), (1, 5, 0, 1));
    assert!(bytes > 1_000);
}

#[tokio::test]
async fn what_is_not_the_block_is_a_lie_and_what_is_not_there_is_none() {
    let blocks = chain(3);
    let hash = blocks[2].hash();
    for manner in [Manner::WrongBlock, Manner::WrongBody] {
        let server = Server::with(&blocks).and(manner);
        let upstream = server.upstream(quick());
        let error = upstream.blocks(&[hash]).await.expect_err("a lie");
        assert!(error.is_lie(), "{error}");
        assert_eq!(upstream.figures().lies, 1);
        assert!(!upstream.pause().is_zero());
    }
    let server = Server::with(&blocks).and(Manner::WrongBlock);
    let error = server.upstream(quick()).header(hash).await.expect_err("a lie");
    assert!(error.is_lie(), "{error}");
    let server = Server::with(&blocks);
    let error = server.upstream(quick()).header(B256::ZERO).await.expect_err("none");
    assert!(matches!(error, Error::Absent(B256::ZERO)), "{error}");
    // The first ones are good, and the next request says what is wrong.
    let found = server.upstream(quick()).blocks(&[hash, B256::ZERO]).await.expect("one");
    assert_eq!(found, blocks[2..]);
}

#[tokio::test]
async fn blocks_come_as_json_where_there_is_no_rlp() {
    let blocks = chain(3);
    let server = Server::with(&blocks).and(Manner::NoRaw);
    let upstream = server.upstream(quick());
    let hashes: Vec<_> = blocks.iter().map(|block| block.hash()).collect();
    assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks);
    assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks);
    let figures = upstream.figures();
    assert_eq!((figures.errors, figures.lies), (0, 0));
}

/// geth answers a batch that is too long with a list of one error, others with one error or with a
/// status of HTTP.
#[tokio::test]
async fn a_batch_that_is_refused_comes_in_shorter_ones() {
    let blocks = chain(60);
    let error = || json!({"code": -32600, "message": "batch too large"});
    let one = || json!({"jsonrpc": "2.0", "id": null, "error": error()});
    let refusals = [
        (200, one()),
        (200, json!([one()])),
        (413, json!("too large")),
        (413, one()),
        (400, one()),
        (500, one()),
        (500, json!([one()])),
    ];
    let hashes: Vec<_> = blocks.iter().map(|block| block.hash()).collect();
    for (status, body) in refusals {
        let server = Server::with(&blocks).and(Manner::Refuses(20, "", status, body.clone()));
        let upstream = server.upstream(quick());
        let down = upstream.headers_down(60, 128).await.expect("it has them");
        // Of 61 it refuses 61 and 30.
        assert_eq!(down.len(), 15, "{status} {body}");
        assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks[..15]);
        assert_eq!((upstream.figures().errors, upstream.failures()), (0, 0), "{status} {body}");
        // It is asked for as many from then on.
        let messages = server.messages();
        upstream.headers_down(60, 128).await.expect("it has them");
        assert_eq!(server.messages(), messages + 1);
    }
}

#[tokio::test]
async fn blocks_come_as_json_where_rlp_is_refused_in_any_way() {
    let blocks = chain(20);
    let hashes: Vec<_> = blocks.iter().map(|block| block.hash()).collect();
    let raw = "debug_getRawBlock";
    let nothing = Manner::Says(Box::new(move |method, _| (method == raw).then_some(Value::Null)));
    let refused = |status| Manner::Refuses(usize::MAX, raw, status, json!("no"));
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}});
    let failed = Manner::Refuses(usize::MAX, raw, 500, error);
    for manner in [nothing, refused(403), refused(404), refused(405), refused(400), failed] {
        let server = Server::with(&blocks).and(manner);
        let upstream = server.upstream(quick());
        assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks);
        let messages = server.messages();
        assert_eq!(upstream.blocks(&hashes).await.expect("it has them"), blocks);
        assert_eq!(server.messages(), messages + 1, "it is not asked for RLP again");
        assert_eq!((upstream.figures().errors, upstream.failures()), (0, 0));
    }
}

#[test]
fn an_upstream_is_named_without_its_secrets() {
    let check = |address: &str, name: &str| {
        let upstream = Upstream::parse(address, UpstreamOptions::default()).expect(address);
        assert_eq!(upstream.name(), name);
    };
    check("https://me:word@node.example/v1/key?x=1", "https://node.example");
    check("ws://node:8546", "ws://node:8546");
    check("127.0.0.1:8545", "127.0.0.1:8545");
    check("/run/geth.ipc", "/run/geth.ipc");
    Upstream::parse("ftp://node", UpstreamOptions::default()).expect_err("no such scheme");
}
