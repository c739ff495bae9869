"use strict";
// Everything from the node is put in as text, with textContent or as an attribute of no markup.
const POLL_MS = 2000, BLOCKS = 32, POINTS = 256, TILES = 60;
const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, ...children) {
  const made = ["svg", "g", "line", "text", "rect", "circle", "polyline"].includes(name)
    ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const short = hash => hash.length > 20 ? hash.slice(0, 10) + "…" + hash.slice(-6) : hash;
const ms = micros => micros == null ? "–" : (micros / 1000).toFixed(micros < 10000 ? 2 : 1);
function size(bytes) {
  if (bytes == null) return "–";
  if (bytes < 1000) return bytes + " B";
  return bytes < 1e6 ? (bytes / 1e3).toFixed(1) + " kB" : (bytes / 1e6).toFixed(2) + " MB";
}
function age(seconds) {
  const past = Math.max(0, Math.round(Date.now() / 1000 - seconds));
  if (past < 120) return past + " s";
  if (past < 7200) return Math.round(past / 60) + " min";
  return past < 172800 ? Math.round(past / 3600) + " h" : Math.round(past / 86400) + " d";
}
// Columns are [name, isNumber]; rows are lists of texts or elements.
function fill(table, columns, rows) {
  const cell = (kind, content, column) =>
    element(kind, columns[column][1] ? { class: "number" } : {}, content);
  const head = columns.map(([name], column) => cell("th", name, column));
  head.forEach(th => th.setAttribute("scope", "col"));
  const body = rows.map(row => element("tr", {}, ...row.map((c, column) => cell("td", c, column))));
  table.replaceChildren(
    element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

let calls = 0;
async function call(method, params) {
  const answer = await fetch("/", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++calls, method, params }),
  });
  const json = await answer.json();
  if (json.error) throw new Error(json.error.message);
  return json.result;
}

// The state of the page: times by hash, the newest blocks, and sizes of witnesses that were looked at.
const times = new Map(), sizes = new Map();
let overview = null, shown = null, shownHash = null;

async function poll() {
  let pause = POLL_MS;
  try {
    if (!document.hidden) {
      overview = await call("deponent_overview", [times.size ? BLOCKS : 64]);
      showOverview();
      await look();
    }
  } catch (fault) {
    $("state").textContent = "no answer: " + fault.message;
    pause = 3 * POLL_MS;
  }
  setTimeout(poll, pause);
}

function showOverview() {
  const { client, chainId, heads, syncing, blocks } = overview;
  $("client").textContent = `${client}, chain ${chainId}`;
  $("state").textContent = syncing === false ? "in step"
    : `behind: at ${grouped(syncing.current)} of ${grouped(syncing.highest)}`;
  const tiles = ["head", "safe", "finalized", "persisted"].map(name => {
    const at = heads[name];
    const value = at == null ? element("dd", {}, "–", element("small", {}, "none named yet"))
      : element("dd", {}, grouped(at.number), element("small", {}, short(at.hash)));
    return element("div", {}, element("dt", {}, name), value);
  });
  $("heads").replaceChildren(...tiles);
  for (const block of [...blocks].reverse()) {
    if (block.timings) times.set(block.hash, { number: block.number, ...block.timings });
  }
  while (times.size > POINTS) times.delete(times.keys().next().value);
  showTimes();
  showBlocks();
}

function showBlocks() {
  const rows = overview.blocks.slice(0, BLOCKS).map(block => {
    const timings = block.timings || {};
    const link = element("a", { href: "#" + block.hash, title: block.hash }, grouped(block.number));
    const share = block.gasLimit ? Math.round(100 * block.gasUsed / block.gasLimit) : 0;
    const gas = element("span", { title: share + " % of the limit" },
      (block.gasUsed / 1e6).toFixed(2) + " M");
    const bytes = sizes.has(block.hash) ? size(sizes.get(block.hash))
      : block.witnessItems == null ? "–" : `${grouped(block.witnessItems)} items`;
    return [link, grouped(block.transactions), gas, ms(timings.verdict), bytes,
      ms(timings.witness), age(block.timestamp)];
  });
  fill($("blocks"), [["number"], ["txs", 1], ["gas", 1], ["verdict, ms", 1], ["witness", 1],
    ["witness, ms", 1], ["age", 1]], rows);
  [...$("blocks").querySelectorAll("tbody tr")].forEach((row, index) =>
    row.classList.toggle("shown", overview.blocks[index].hash === shownHash));
}

// A top for an axis, and the distance of its lines.
function axis(most) {
  const unit = 10 ** Math.floor(Math.log10(most || 1));
  const step = [0.2, 0.5, 1, 2].map(f => f * unit).find(step => most / step <= 5);
  return [step * Math.max(1, Math.ceil(most / step)), step];
}
// A chart's frame: its SVG, and where values of y are.
function frame(width, height, most, unit) {
  const [top, step] = axis(most), left = 52, bottom = 22;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  const y = value => height - bottom - (height - bottom - 10) * value / top;
  for (let value = 0; value <= top * 1.001; value += step) {
    svg.append(element("line", { class: "rule", x1: left, x2: width, y1: y(value), y2: y(value) }),
      element("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" },
        grouped(+value.toPrecision(3)) + unit));
  }
  return { svg, y, left, bottom };
}

function showTimes() {
  const points = [...times.values()].sort((a, b) => a.number - b.number);
  if (!points.length) {
    $("times").replaceChildren("no block has run since the node began");
    return;
  }
  const width = Math.max(280, $("times").clientWidth), height = innerWidth < 1000 ? 200 : 320;
  const most = Math.max(...points.map(p => Math.max(p.verdict, p.witness))) / 1000;
  const { svg, y, left, bottom } = frame(width, height, most, " ms");
  const x = index => left + 8 + (width - left - 16) * (points.length < 2 ? 0.5 : index / (points.length - 1));
  for (const name of ["verdict", "witness"]) {
    if (name === "witness" && !points.some(point => point.witness)) continue;
    const path = points.map((p, i) => `${x(i).toFixed(1)},${y(p[name] / 1000).toFixed(1)}`);
    svg.append(element("polyline", { class: name, points: path.join(" ") }));
    if (points.length <= 64) points.forEach((p, i) =>
      svg.append(element("circle", { class: name, cx: x(i), cy: y(p[name] / 1000), r: 2 })));
  }
  const ends = [[0, "start"], [points.length - 1, "end"]];
  ends.slice(0, points.length).forEach(([i, anchor]) => svg.append(element("text",
    { x: x(i), y: height - bottom + 16, "text-anchor": points.length < 2 ? "middle" : anchor },
    "block " + grouped(points[i].number))));
  const tell = p => `block ${grouped(p.number)}: verdict ${ms(p.verdict)} ms (execution ${ms(p.execution)}, `
    + `root ${ms(p.root)}), witness ${ms(p.witness)} ms`;
  svg.setAttribute("aria-label", "Times of the newest blocks; the table of blocks has the numbers");
  const point = event => {
    const at = (event.clientX - svg.getBoundingClientRect().left) * width / svg.clientWidth;
    const part = (at - left - 8) / (width - left - 16);
    const index = Math.round(part * (points.length - 1));
    $("times-info").textContent = tell(points[Math.min(points.length - 1, Math.max(0, index))]);
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  $("times").replaceChildren(svg);
  if (!$("times-info").textContent) $("times-info").textContent = tell(points[points.length - 1]);
}

// The block that the fragment names: a number, a hash, or none for the head.
function wanted() {
  const text = location.hash.slice(1);
  // A percent sign may begin no code.
  try { return decodeURIComponent(text).trim(); } catch { return text; }
}

// Looks at the witness that is to be shown, or at some of those whose sizes are not known.
async function look() {
  const name = wanted();
  $("follow").setAttribute("aria-pressed", String(name === ""));
  if (name === "" && overview.blocks.length && overview.blocks[0].hash !== shownHash) {
    await show(overview.blocks[0].hash);
    return;
  }
  const unknown = overview.blocks.filter(block => block.number > 0 && !sizes.has(block.hash));
  for (const { hash } of unknown.slice(0, 4)) {
    sizes.set(hash, null);
    try { sizes.set(hash, (await call("deponent_inspectWitness", [hash])).bytes); } catch (_) {}
  }
  if (unknown.length) showBlocks();
}

async function show(name) {
  const digits = name.replaceAll(",", "");
  const block = /^\d+$/.test(digits) ? "0x" + BigInt(digits).toString(16) : name;
  if (!/^(0x[0-9a-f]{1,64}|latest|safe|finalized|earliest)$/i.test(block)) {
    $("fault").textContent = `${short(name)} is no block: give a number or a hash`;
    return;
  }
  try {
    const found = await call("deponent_inspectWitness", [block]);
    if (wanted() !== name && wanted() !== "") return;
    $("fault").textContent = "";
    sizes.set(found.hash, found.bytes);
    [shown, shownHash] = [found, found.hash];
    showWitness();
    if (overview) showBlocks();
  } catch (fault) {
    $("fault").textContent = fault.message;
    if (wanted() === "" && overview && overview.blocks.length) shownHash = overview.blocks[0].hash;
  }
}

const KINDS = [["accountNodes", "nodes of the account trie", "account"],
  ["storageNodes", "nodes of storages", "storage"], ["codes", "codes", "code-part"],
  ["headers", "headers", "headers"],
  ["unreached", "unreached, or given twice", "unreached"]];

function showWitness() {
  $("witness").hidden = false;
  $("witness-title").textContent = `Witness of block ${grouped(shown.number)}`;
  const { total, withStorage, withCode, named } = shown.accounts;
  $("sum").textContent = `${size(shown.bytes)} in ${grouped(shown.items)} items, for `
    + `${grouped(shown.transactions)} transactions and ${grouped(shown.gasUsed)} gas. `
    + `${grouped(total)} accounts, ${grouped(withStorage)} with storage, ${grouped(withCode)} with code; `
    + `the addresses of ${grouped(named)} are known.`;
  const share = bytes => (100 * bytes / (shown.bytes || 1)).toFixed(1) + " %";
  $("kinds").replaceChildren(...KINDS.filter(([key]) => shown.kinds[key].bytes).map(([key, , style]) => {
    const part = element("div", { class: style });
    part.style.flexGrow = shown.kinds[key].bytes;
    return part;
  }));
  fill($("kinds-table"), [["kind"], ["items", 1], ["bytes", 1], ["share", 1]],
    KINDS.map(([key, name, style]) => {
      const { items, bytes } = shown.kinds[key];
      const label = element("span", {}, element("span", { class: "dot " + style }), name);
      return [label, grouped(items), grouped(bytes), share(bytes)];
    }));
  fill($("accounts"), [["bytes", 1], ["storage", 1], ["nodes", 1], ["depth", 1], ["code", 1], ["account"]],
    shown.accounts.list.map(a => [grouped(a.bytes), grouped(a.storageBytes), grouped(a.storageNodes),
      a.storageNodes ? a.storageDepth : "–", grouped(a.codeBytes), who(a)]));
  const whose = item => [item.address || (item.account && "hashed " + item.account),
    item.path != null && "at " + (item.path || "root"), item.number != null && "block " + item.number,
    item.accounts > 1 && `and of ${item.accounts - 1} more`, item.leftOver].filter(Boolean).join(", ");
  const columns = [["bytes", 1], ["kind"], ["whose"], ["hash"]];
  const row = item => [grouped(item.bytes), item.kind, whose(item), short(item.hash)];
  fill($("largest"), columns, shown.largest.slice(0, 25).map(row));
  $("left").hidden = !shown.leftOver.length;
  fill($("left-over"), columns, shown.leftOver.slice(0, 100).map(row));
  showMap();
  showDepths();
}
const who = account => account.address || "hashed " + account.hashedAddress;

// The tiles of the map: accounts, and what belongs to none alone. A part is [style, bytes].
function tiles() {
  const { list, others, upperNodes } = shown.accounts;
  const made = list.slice(0, TILES).map(a => ({
    bytes: a.bytes, label: short(who(a)),
    parts: [["storage", a.storageBytes], ["code-part", a.codeBytes], ["account", a.leafBytes]],
    text: `${who(a)}: ${grouped(a.bytes)} bytes; storage ${grouped(a.storageBytes)} in `
      + `${grouped(a.storageNodes)} nodes, code ${grouped(a.codeBytes)}, leaf ${grouped(a.leafBytes)}`,
  }));
  const rest = list.slice(TILES);
  const sum = part => rest.reduce((all, a) => all + a[part], 0);
  const add = (label, bytes, parts, what) => bytes && made.push({
    bytes, label, parts, text: `${what}: ${grouped(bytes)} bytes` });
  const count = rest.length + others.items;
  add("others", sum("bytes") + others.bytes, [["storage", sum("storageBytes")],
    ["code-part", sum("codeBytes")], ["account", sum("leafBytes") + others.bytes]],
    `${grouped(count)} other accounts`);
  add("account trie", upperNodes.bytes, [["account", 1]],
    `${grouped(upperNodes.items)} nodes of the account trie above all leaves`);
  const { headers, unreached } = shown.kinds;
  add("headers", headers.bytes, [["headers", 1]], `${grouped(headers.items)} headers`);
  add("unreached", unreached.bytes, [["unreached", 1]],
    `${grouped(unreached.items)} items that are unreached, malformed or given twice`);
  return made.sort((a, b) => b.bytes - a.bytes);
}

// Rectangles as near to squares as rows of them can be (Bruls, Huizing and van Wijk).
function squarified(items, x, y, width, height) {
  const placed = [];
  let total = items.reduce((all, item) => all + item.bytes, 0), at = 0;
  while (at < items.length && total > 0 && width > 0 && height > 0) {
    const side = Math.min(width, height), scale = width * height / total;
    const worst = (from, to) => {
      const areas = items.slice(from, to).map(item => item.bytes * scale);
      const sum = areas.reduce((a, b) => a + b, 0);
      return Math.max(...areas.map(area => Math.max(side * side * area / sum ** 2, sum ** 2 / (side * side * area))));
    };
    let end = at + 1;
    while (end < items.length && worst(at, end + 1) <= worst(at, end)) end++;
    const row = items.slice(at, end), sum = row.reduce((all, item) => all + item.bytes, 0);
    const thick = sum * scale / side;
    let along = 0;
    for (const item of row) {
      const long = item.bytes / sum * side;
      placed.push(width >= height
        ? { item, x, y: y + along, width: thick, height: long }
        : { item, x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (width >= height) { x += thick; width -= thick; } else { y += thick; height -= thick; }
    total -= sum;
    at = end;
  }
  return placed;
}

function showMap() {
  const map = $("map"), { clientWidth: width, clientHeight: height } = map;
  const tell = (item, button) => {
    $("map-info").textContent = item.text;
    map.querySelectorAll("[aria-pressed]").forEach(other => other.removeAttribute("aria-pressed"));
    button.setAttribute("aria-pressed", "true");
  };
  const buttons = squarified(tiles(), 0, 0, width, height).map(({ item, ...box }) => {
    const button = element("button", { type: "button", "aria-label": item.text });
    if (box.width > box.height) button.classList.add("wide");
    for (const [key, name] of [["x", "left"], ["y", "top"], ["width", "width"], ["height", "height"]]) {
      button.style[name] = box[key] + "px";
    }
    for (const [style, bytes] of item.parts.filter(([, bytes]) => bytes)) {
      const part = element("i", { class: style });
      part.style.flex = `${bytes} 0 0px`;
      button.append(part);
    }
    if (box.width > 56 && box.height > 18) button.append(element("span", {}, item.label));
    for (const event of ["click", "focus", "pointerenter"]) {
      button.addEventListener(event, () => tell(item, button));
    }
    return button;
  });
  map.replaceChildren(...buttons);
  $("map-info").textContent = "Each rectangle is an account, as large as its bytes. Point at one or tap it.";
}

function showDepths() {
  const { account, storage } = shown.depths, count = Math.max(account.length, storage.length);
  const of = (depths, depth) => depths[depth] || { items: 0, bytes: 0 };
  fill($("depths-table"), [["depth", 1], ["account nodes", 1], ["bytes", 1], ["storage nodes", 1], ["bytes", 1]],
    Array.from({ length: count }, (_, d) => [String(d), ...[account, storage].flatMap(depths =>
      [grouped(of(depths, d).items), grouped(of(depths, d).bytes)])]));
  if (!count) { $("depths").replaceChildren("no node is reached"); return; }
  const width = Math.max(280, $("depths").clientWidth), height = 190;
  const most = Math.max(...account.concat(storage).map(depth => depth.items));
  const { svg, y, left, bottom } = frame(width, height, most, "");
  const band = (width - left) / count, bar = Math.min(34, band * 0.38);
  for (let depth = 0; depth < count; depth++) {
    const middle = left + band * (depth + 0.5);
    [[account, "account", middle - bar], [storage, "storage", middle]].forEach(([depths, style, x]) => {
      const { items } = of(depths, depth);
      if (items) svg.append(element("rect",
        { class: style, x, width: bar - 1, y: y(items), height: Math.max(1, y(0) - y(items)) }));
    });
    svg.append(element("text", { x: middle, y: height - bottom + 16, "text-anchor": "middle" }, String(depth)));
  }
  svg.setAttribute("aria-label", "Nodes by how many are above them; the table below has the numbers");
  $("depths").replaceChildren(svg);
}

$("find").addEventListener("submit", event => {
  event.preventDefault();
  location.hash = $("which").value.trim() === "latest" ? "" : $("which").value.trim();
});
$("follow").addEventListener("click", () => { location.hash = ""; });
addEventListener("hashchange", async () => {
  $("follow").setAttribute("aria-pressed", String(wanted() === ""));
  if (wanted() !== "") await show(wanted());
  else if (overview && overview.blocks.length) await show(overview.blocks[0].hash);
});
let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    if (overview) showTimes();
    if (shown) { showMap(); showDepths(); }
  }, 150);
});
if (wanted() !== "") show(wanted());
poll();
