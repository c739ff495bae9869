//! The page at `GET /`, its methods, and the page in headless Chromium.

use crate::inspect::{chain, contract};
use crate::support::browser::Browser;
use crate::support::{OSAKA, TestNode, genesis_of_osaka};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The answer to a request for `/`, as it comes.
async fn get(node: &TestNode, method: &str, accept: &str) -> String {
    let mut stream = TcpStream::connect(node.node.http_addr).await.expect("a connection");
    let request = format!(
        "{method} / HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[tokio::test]
async fn browsers_get_a_page_and_others_an_empty_answer() {
    let node = TestNode::start(genesis_of_osaka()).await;
    let page = get(&node, "GET", BROWSER).await;
    let (head, body) = page.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let head = head.to_lowercase();
    for line in ["content-type: text/html", "default-src 'none'", "connect-src 'self'", "nosniff"] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(body.starts_with("<!doctype html>") && body.ends_with("</html>"), "{body}");
    // Nothing comes from elsewhere, and no text becomes markup.
    for word in ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacent", "eval("] {
        let body = body.replace("http://www.w3.org/2000/svg", "");
        assert!(!body.contains(word), "{word}");
    }
    let (_, body) = page.split_once("\r\n\r\n").expect("a head");
    let length = format!("content-length: {}", body.len());
    assert!(head.contains(&length), "{length}: {head}");
    let only_head = get(&node, "HEAD", BROWSER).await.to_lowercase();
    assert!(only_head.contains(&length) && only_head.ends_with("\r\n\r\n"), "{only_head}");
    for accept in ["*/*", "application/json", "text/html-x"] {
        let empty = get(&node, "GET", accept).await;
        assert!(empty.starts_with("HTTP/1.1 200") && empty.ends_with("\r\n\r\n"), "{empty}");
    }
    // Without its methods it would not work.
    let of_eth = TestNode::start_with(genesis_of_osaka(), |options| {
        let public = options.ports.http.as_mut().expect("a public port");
        public.offered.namespaces = Some(vec!["eth".into()]);
    });
    let of_eth = of_eth.await;
    let refused = get(&of_eth, "GET", BROWSER).await;
    assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
    assert!(refused.contains("namespace deponent") && refused.contains("--http.api"), "{refused}");
    assert!(get(&of_eth, "GET", "*/*").await.starts_with("HTTP/1.1 200"));
    let without = TestNode::start_with(genesis_of_osaka(), |options| options.http_page = false);
    let empty = get(&without.await, "GET", BROWSER).await;
    assert!(empty.starts_with("HTTP/1.1 200") && empty.ends_with("\r\n\r\n"), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overview_has_the_heads_and_the_newest_blocks() {
    let mut node = chain(3).await;
    let found = node.public("deponent_overview", json!([2])).await.expect("an overview");
    let head = node.public("eth_getBlockByNumber", json!(["latest", false])).await.expect("one");
    assert_eq!(found["heads"]["head"], json!({"number": 3, "hash": head["hash"]}));
    assert_eq!((&found["heads"]["safe"], &found["syncing"]), (&Value::Null, &json!(false)));
    let blocks = found["blocks"].as_array().expect("a list");
    let numbers: Vec<_> = blocks.iter().map(|block| &block["number"]).collect();
    assert_eq!(numbers, [3, 2]);
    assert_eq!((&blocks[0]["hash"], &blocks[0]["transactions"]), (&head["hash"], &json!(13)));
    let gas = head["gasUsed"].as_str().expect("a quantity");
    assert_eq!(format!("{:#x}", blocks[0]["gasUsed"].as_u64().expect("a number")), gas);
    let all = node.public("deponent_overview", json!([])).await.expect("an overview");
    assert_eq!(all["blocks"].as_array().expect("a list").len(), 4);
    let many = node.public("deponent_overview", json!([65])).await.expect_err("too many");
    assert!(many.to_string().contains("at most 64"), "{many}");
    let witness = node.public("deponent_inspectWitness", json!(["latest"])).await.expect("one");
    let items = blocks[0]["witnessItems"].as_u64().expect("a number");
    assert!(witness["items"].as_u64().expect("a number") <= items, "{witness}");
    assert_eq!((&witness["hash"], &witness["number"]), (&head["hash"], &json!(3)));
    for (params, words) in [
        (json!(["0x0"]), "no witness"),
        (json!(["0x9"]), "there is no block 9"),
        (json!([]), "block"),
    ] {
        let refused = node.public("deponent_inspectWitness", params).await.expect_err(words);
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

/// Looks at what is drawn, and says what is wrong with it.
const LOOK: &str = r##"(() => {
const problems = [];
const wrong = (what, element) => problems.push(what + ": " + element.outerHTML.slice(0, 160));
const page = document.documentElement;
if (page.scrollWidth > page.clientWidth) wrong("wider than the window", document.body);
if (document.querySelector("img, iframe, object, [onerror]")) wrong("foreign", document.body);
const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = rgb => {
  const [r, g, b] = rgb.map(channel);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const rgb = text => text.match(/[\d.]+/g).map(Number);
const back = element => {
  for (let at = element; at; at = at.parentElement) {
    const found = rgb(getComputedStyle(at).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found.slice(0, 3);
  }
  return [255, 255, 255];
};
const contrast = (front, back) => {
  const [a, b] = [light(front), light(back)].sort((a, b) => b - a);
  return (a + 0.05) / (b + 0.05);
};
let texts = 0;
const read = "h1, h2, h3, p, dt, dd, small, th, td, a, label, button, summary";
for (const element of document.querySelectorAll(read)) {
  if (!element.textContent.trim() || !element.checkVisibility()) continue;
  if (element.closest("#map")) continue;
  texts++;
  const ratio = contrast(rgb(getComputedStyle(element).color).slice(0, 3), back(element));
  if (ratio < 4.5) wrong("contrast " + ratio.toFixed(2), element);
}
for (const part of document.querySelectorAll("#map i")) {
  if (contrast([255, 255, 255], back(part)) < 4.5) wrong("contrast of a tile", part);
}
for (const svg of document.querySelectorAll("svg")) {
  const inside = svg.getBoundingClientRect();
  if (inside.width < 280 || inside.height < 100) wrong("too small", svg);
  const boxes = [...svg.querySelectorAll("text")].map(text => text.getBoundingClientRect());
  for (const box of boxes) {
    if (box.left < inside.left - 1 || box.right > inside.right + 1) wrong("cut off", svg);
  }
}
const map = document.querySelector("#map").getBoundingClientRect();
const buttons = [...document.querySelectorAll("#map button")];
const tiles = buttons.map(tile => tile.getBoundingClientRect());
const area = tiles.reduce((sum, tile) => sum + tile.width * tile.height, 0);
const part = area / (map.width * map.height);
if (Math.abs(part - 1) > 0.02) wrong("the map is not full", document.querySelector("#map"));
return {
  problems, texts, tiles: tiles.length,
  charts: document.querySelectorAll("svg").length,
  rows: document.querySelectorAll("#blocks tbody tr").length,
};
})()"##;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_a_running_node_in_a_browser() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(mut browser) = Browser::start(dir.path()) else { return };
    let mut node = chain(24).await;
    let head = node.head().await;
    let heads = json!({
        "headBlockHash": head, "safeBlockHash": head,
        "finalizedBlockHash": node.node.engine().canonical_hash(16).expect("readable"),
    });
    node.ok("engine_forkchoiceUpdatedV3", json!([heads, null])).await;
    let url = format!("http://{}/", node.node.http_addr);
    for (size, scheme) in [([1280, 900], "light"), ([390, 844], "dark"), ([390, 844], "light")] {
        browser.open(&url, size, scheme);
        browser.wait("document.querySelector('#witness-title').textContent.endsWith('block 24')");
        browser.wait("document.querySelectorAll('#blocks tbody tr').length === 25");
        browser.wait(
            "![...document.querySelectorAll('#blocks tr:nth-child(-n+12) td:nth-child(5)')]\
             .some(cell => /items|–/.test(cell.textContent))",
        );
        let found = browser.value(LOOK);
        assert_eq!(found["problems"], json!([]), "{size:?} {scheme}");
        assert!(found["texts"].as_u64() > Some(100), "{found}");
        assert!(found["tiles"].as_u64() > Some(20), "{found}");
        assert_eq!((&found["charts"], &found["rows"]), (&json!(2), &json!(25)), "{found}");
        let name = format!("page-{}-{scheme}.png", size[0]);
        keep_picture(&name, &browser.picture());
    }
    assert_eq!(browser.console, Vec::<String>::new());

    // The largest contract is named, and a tile tells of itself.
    let largest = contract(11).to_string();
    let tile = format!(
        "document.querySelector('#map button[aria-label^=\"{}\"]')",
        largest.to_lowercase()
    );
    browser.value(&format!("{tile}.focus()"));
    let told = browser.value("document.querySelector('#map-info').textContent");
    assert!(told.as_str().expect("text").starts_with(&largest.to_lowercase()), "{told}");

    // A block by its number, with the keyboard alone.
    browser.value("document.querySelector('#which').focus()");
    browser.call("Input.insertText", &json!({"text": "7"}));
    for kind in ["keyDown", "keyUp"] {
        let key = json!({"type": kind, "key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13});
        browser.call("Input.dispatchKeyEvent", &key);
    }
    browser.wait("document.querySelector('#witness-title').textContent.endsWith('block 7')");
    assert_eq!(browser.value("location.hash"), "#7");

    // The page goes on with the chain, and stays at the block that was asked for.
    let time = 1_767_747_671 + 12 * 30;
    node.extend(OSAKA, time, &[]).await;
    browser.wait("document.querySelector('#heads dd').firstChild.textContent === '25'");
    assert_eq!(
        browser.value("document.querySelector('#witness-title').textContent"),
        "Witness of block 7"
    );
    browser.value("document.querySelector('#follow').click()");
    browser.wait("document.querySelector('#witness-title').textContent.endsWith('block 25')");

    // A name that is no block is said to be none, as text.
    browser.open(&format!("{url}#%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"), [390, 844], "light");
    browser.wait("/give a number or a hash$/.test(document.querySelector('#fault').textContent)");
    assert_eq!(browser.value("document.querySelectorAll('img').length"), 0);
    assert_eq!(browser.console, Vec::<String>::new());

    // The check can fail.
    browser.value("document.body.style.cssText = 'width: 900px; color: #999'");
    let problems = browser.value(LOOK)["problems"].to_string();
    assert!(problems.contains("wider than") && problems.contains("contrast"), "{problems}");
}

/// Puts a picture where `DEPONENT_PICTURES` says, as docs/page.png was made.
fn keep_picture(name: &str, picture: &[u8]) {
    assert!(picture.len() < 300_000, "{name} has {} bytes", picture.len());
    if let Some(folder) = std::env::var_os("DEPONENT_PICTURES") {
        std::fs::write(std::path::Path::new(&folder).join(name), picture).expect("written");
    }
}
