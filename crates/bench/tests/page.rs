//! The page of a report in headless Chromium, as wide as a phone and as wide as a screen: what is
//! drawn is there, can be read, and nothing is said on the console.

use std::path::Path;
use std::process::Command;

use deponent_bench::cells;
use deponent_bench::report::{
    Answer, Axis, Bars, Document, Lines, Side, Table, Unit, Verdict, html,
};
use serde_json::Value;

const HOSTILE: &str = "<script>console.error('ran')</script>&amp;\"' <img src=x onerror=alert(1)>";

/// Looks at a page in a frame, and says what is wrong with it; sizes are pixels.
const LOOK: &str = r#"
const out = { problems: [], charts: 0, curves: 0, bars: 0, texts: 0, said: "" };
const page = document.getElementById("page").contentDocument;
const wrong = (what, element) => out.problems.push(what + ": " + element.outerHTML.slice(0, 200));
const width = page.documentElement.clientWidth;
if (page.documentElement.scrollWidth > width) wrong("wider than the window", page.body);
if (page.querySelector("script, link, img, iframe, object")) wrong("foreign", page.body);
for (const table of page.querySelectorAll("table")) {
  const cell = table.querySelector("td.number");
  if (cell && cell.getBoundingClientRect().right > width) wrong("no number to be seen", cell);
}
for (const figure of page.querySelectorAll("figure")) {
  const shown = [...figure.children].filter(svg => getComputedStyle(svg).display !== "none");
  if (shown.length !== 1) wrong("not one drawing", figure);
  const box = shown[0].getBoundingClientRect();
  if (box.width < 280 || box.height < 60) wrong("too small", figure);
  out.charts++;
  for (const line of shown[0].querySelectorAll("polyline")) {
    const drawn = line.getBoundingClientRect();
    if (drawn.width + drawn.height < 20) wrong("no curve", line);
    if (getComputedStyle(line).stroke === "none") wrong("no colour", line);
    out.curves++;
  }
  for (const bar of shown[0].querySelectorAll("rect")) {
    if (bar.getBoundingClientRect().width < 1) wrong("no bar", bar);
    out.bars++;
  }
  const texts = [...shown[0].querySelectorAll("text")];
  const boxes = texts.map(text => text.getBoundingClientRect());
  const inside = figure.getBoundingClientRect();
  boxes.forEach((a, i) => {
    out.texts++;
    if (a.left < inside.left - 1 || a.right > inside.right + 1) wrong("cut off", texts[i]);
    if (a.height < 9) wrong("too small to read", texts[i]);
    boxes.slice(i + 1).forEach((b, j) => {
      const aside = a.right <= b.left || b.right <= a.left;
      const apart = aside || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
      if (!apart) wrong("over another, " + texts[i + 1 + j].textContent, texts[i]);
    });
  });
}
out.said = page.querySelector("h1").textContent;
out.first = page.querySelector("h1 + p").textContent;
document.getElementById("out").textContent = JSON.stringify(out);
"#;

#[test]
fn the_page_can_be_read_in_a_browser() {
    let Some(browser) = testing::browser::binary() else { return };
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut document = document();
    for hostile in ["", HOSTILE] {
        document.title = format!("{} {hostile}", document.title);
        document.section(hostile).text(hostile).client("geth", hostile, &[hostile.to_owned()]);
    }
    let mut table = Table::new(HOSTILE).column(HOSTILE, Unit::Text);
    table.row(cells![HOSTILE]);
    let mut bars = Bars::new(HOSTILE, Axis::new("time", Unit::Ms));
    bars.bar(HOSTILE, [(HOSTILE, 1.0)]);
    document.table(table).chart(bars);
    let page = html(&[document.clone()]);
    for width in [360, 1280] {
        let (said, console) = look(&browser, folder.path(), &page, width);
        assert_eq!(console, "", "at {width} pixels");
        assert_eq!(said["problems"], Value::Array(Vec::new()), "at {width} pixels");
        assert_eq!(said["said"], document.title.as_str());
        let counts = ["charts", "curves", "bars"].map(|name| said[name].as_u64());
        // Samples in legends, and a bar for each side of the answer, are among them.
        assert_eq!(counts, [Some(6), Some(16), Some(33)], "{said}");
        let first = said["first"].as_str().expect("text");
        assert!(first.contains("2.00 times as fast as geth"), "{first}");
        assert!(said["texts"].as_u64() > Some(60), "{said}");
    }
    // The check can fail.
    let broken = page.replace("text-anchor=\"middle\"", "text-anchor=\"start\"");
    let broken = broken
        .replace("</style>", "table { min-width: 1300px } .scroll { overflow: visible }</style>");
    let (said, _) = look(&browser, folder.path(), &broken, 360);
    let problems = said["problems"].to_string();
    assert!(problems.contains("wider than") && problems.contains("cut off"), "{problems}");
    let (_, console) = look(&browser, folder.path(), &format!("{page}<img src=x.png>"), 360);
    assert!(console.contains("Content Security Policy"), "{console}");
}

/// The findings of [`LOOK`] in a page, and the messages on the browser's console.
fn look(browser: &Path, folder: &Path, page: &str, width: u32) -> (Value, String) {
    let attribute = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<!doctype html><meta charset=\"utf-8\"><pre id=\"out\"></pre><iframe id=\"page\" \
         style=\"width:{width}px;height:3000px;border:0\" srcdoc=\"{attribute}\"></iframe>\
         <script>onload = () => {{ {LOOK} }}</script>"
    );
    let file = folder.join("frame.html");
    std::fs::write(&file, frame).expect("written");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-extensions", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let (dom, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let found = dom.split_once("<pre id=\"out\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (found, _) = found.unwrap_or_else(|| panic!("no page: {log}"));
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let said = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {log}"));
    let console = log.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>();
    (said, console.join("\n"))
}

/// A report: three clients, many numbers, each kind of chart.
fn document() -> Document {
    let mut document = Document::new("Witnesses, beside geth");
    let table = Table::new("newPayload with witness")
        .column("client", Unit::Text)
        .column("transport", Unit::Text);
    let times = ["p50", "p90", "p95", "p99", "max", "mean"];
    let mut table = times
        .into_iter()
        .fold(table, |table, name| table.column(name, Unit::Ms))
        .column("sent", Unit::Mb)
        .column("gas", Unit::MgasPerSecond)
        .column("memory", Unit::Mib)
        .column("geth / this", Unit::Ratio)
        .column("target met", Unit::Text);
    let latency = Axis::new("newPayload", Unit::Ms);
    let mut latencies = Lines::distribution("newPayload, 300 blocks", latency.clone());
    let mut sizes = Lines::new(
        "Time by size of the witness",
        Axis::new("witness", Unit::Mb).logarithmic(),
        latency.clone().logarithmic(),
    );
    let mut sweep = Lines::new("Chunk size", Axis::new("chunk", Unit::Count), latency);
    let mut stages = Bars::new("Where the time goes, 500 MB", Axis::new("p50", Unit::Ms));
    let clients = ["geth", "deponent", "deponent+witness"];
    for (index, client) in clients.into_iter().enumerate() {
        let scale = [0.226, 0.059, 0.067][index];
        let spread = |i: usize| (1.0 + ((i * 7919) % 300) as f64 / 150.0).powi(2) / 3.0;
        latencies.values(client, (0..300).map(|i| scale * spread(i)));
        sizes.series(client, [17.0, 100.0, 300.0, 500.0].map(|mb| [mb * 1e6, scale * (mb / 17.0)]));
        let parts =
            ["recovery", "execution", "root", "witness", "encoding", "transfer", "decoding"];
        let times = parts.iter().enumerate();
        let times = times.map(|(part, name)| (*name, scale * (1 + part * 3 % 5) as f64));
        stages.bar(format!("{client}, HTTP and JSON"), times);
        for (transport, ms) in [("json", scale), ("ssz-unix", scale * 0.6)] {
            let [p95] = if index == 0 { cells!["not separable"] } else { cells![ms * 1.8] };
            let times = cells![ms, ms * 1.6, p95, ms * 2.4, ms * 3.0, ms * 1.05];
            let others = cells![33e6, 20e6 / ms, 889e6, 0.226 / ms, index > 0];
            table.row(cells![client, transport].into_iter().chain(times).chain(others));
        }
    }
    for (quantile, factor) in [("p50", 0.05), ("p99", 0.13)] {
        let points = [15.0, 30.0, 60.0, 120.0, 240.0].map(|x: f64| [x, factor * (1.0 + 9.0 / x)]);
        sweep.series(quantile, points);
    }
    let mut answer = Answer::new("newPayload, p50", "geth");
    for (name, ratio, verdict) in
        [("deponent", 0.5, Verdict::Faster), ("deponent+witness", 1.3, Verdict::Slower)]
    {
        let (name, interval) = (name.to_owned(), [ratio * 0.9, ratio * 1.1]);
        answer.sides.push(Side { name, ratio, interval, verdict });
    }
    document.answer(answer);
    document.section("17 MB").text(
        "49807 items, 16.4 MB; 3 rounds of 100 blocks, all clients in turn on the same payloads. \
         All witnesses are equal.",
    );
    document.table(table).chart(latencies).chart(sizes).chart(stages).chart(sweep);
    document.client("geth", "1.17.8-stable", &["--cache".to_owned(), "4096".to_owned()]);
    document.client("deponent", "deponent-0.1.0", &[]);
    document
}
