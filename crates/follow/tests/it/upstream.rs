//! One upstream, asked for one thing.

use alloy_primitives::B256;
use deponent_follow::{Error, Upstream, UpstreamFigures, UpstreamOptions};

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
    let UpstreamFigures { headers, blocks, bytes, lies, errors } = upstream.figures();
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
