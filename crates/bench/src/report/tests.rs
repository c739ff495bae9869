use super::chart::DISTRIBUTION_STEPS;
use super::*;
use crate::cells;
use crate::random::Random;

/// Names that every form of report has to write as they are.
const HOSTILE: &str = "<script>alert('1')</script> | a\\*b* \"&amp;\" `x` ]]> \u{202e}\n=1+1";

/// A document with something of everything, at a fixed time on a fixed machine.
pub(super) fn sample() -> Document {
    let mut document = Document::new("Sample");
    document.command = "deponent bench sample".into();
    document.made = "2026-01-07T01:01:11Z".into();
    document.machine = Machine {
        processor: "Processor".into(),
        cores: 2,
        memory_bytes: 24 << 30,
        kernel: "Linux 6.1".into(),
        load: "0.5 0.4 0.3".into(),
        busy: None,
    };
    let mut table = Table::new("newPayload")
        .column("client", Unit::Text)
        .column("p50", Unit::Ms)
        .column("root", Unit::Ms)
        .column("blocks", Unit::Count)
        .column("met", Unit::Text);
    table.row(cells!["geth", 0.22613, "not separable", 300_usize, None::<bool>]);
    table.row(cells!["deponent", 0.05892, 0.0, 300_u64, true]);
    table.row(cells![HOSTILE, f64::NAN, None::<f64>, 0_u64, false]);
    let x = Axis::new("newPayload", Unit::Ms);
    let mut distribution = Lines::distribution("Latencies", x.clone());
    distribution.values("geth", [0.3, 0.1, 0.2, f64::INFINITY]).values(HOSTILE, []);
    let mut curve = Lines::new("Sizes", Axis::new("witness", Unit::Mb).logarithmic(), x);
    curve.series("geth", [[100e6, 0.7], [17e6, 0.2]]);
    let mut bars = Bars::new("Parts", Axis::new("time", Unit::Ms));
    bars.bar("17 MB", [("execution", 0.1), ("transport", 0.02), ("decode", f64::NAN)]);
    document.client("geth", "1.17.8", &["--cache".into(), "512".into()]);
    document.section("warm").method("Each block went to both.").text("Blocks.").table(table);
    document.chart(distribution).chart(curve).chart(bars);
    document.table(Table::new("empty").column("client", Unit::Text));
    document.chart(Bars::new("empty", Axis::new("time", Unit::Ms)));
    document
}

#[test]
fn a_report_ends_with_a_command_that_can_be_given_again() {
    let command = Document::new("a").command;
    assert!(command.starts_with("deponent bench"), "{command}");
}

#[test]
fn every_number_is_read_back() {
    let seed = Random::new(u64::from(std::process::id())).word();
    println!("seed {seed}");
    let (mut random, mut table) = (Random::new(seed), Table::new("").column("", Unit::Count));
    for _ in 0..10_000 {
        let number = f64::from_bits(random.word());
        table.row(cells![number]);
        table.row(cells![random.unit()]);
    }
    let mut document = Document::new("");
    document.table(table);
    let documents = [document, sample()];
    assert_eq!(read(&json(&documents)).expect("it was written so"), documents);
}

#[test]
fn other_versions_are_refused() {
    let check = |text: &str, words: &str| {
        let error = format!("{:#}", read(text).expect_err(text));
        assert!(error.contains(words), "{error}");
    };
    let known = json(&[sample()]);
    let other = known.replacen("\"version\": 1", "\"version\": 7", 1);
    check(&other, "the report has version 7, this program reads version 1");
    check("{\"version\": 7, \"else\": 1}", "version 7");
    check("{}", "no report");
    check("[1", "no report");
    check(&known[..known.len() / 2], "no report");
    let narrow = r#"{"version":1,"reports":[{"title":"","command":"","made":"","machine":
        {"processor":"","cores":1,"memoryBytes":1,"kernel":"","load":""},"clients":[],"content":
        [{"table":
        {"title":"T","columns":[{"name":"a","unit":"ms"}],"rows":[[1,2]]}}]}]}"#;
    check(narrow, "the table \"T\" has rows of not 1 cells");
}

#[test]
fn cells_are_kept_in_their_unit_and_never_zero_for_nothing() {
    let document = sample();
    let Content::Table(table) = &document.content[3] else { panic!("{document:?}") };
    assert_eq!(table.rows[0][1], Cell::Number(226.13));
    assert_eq!(table.rows[0][2], Cell::Text("not separable".into()));
    assert_eq!(table.rows[1][1], Cell::Number(58.92));
    assert_eq!(table.rows[1][2], Cell::Number(0.0));
    assert_eq!(table.rows[2][1..3], [Cell::Missing, Cell::Missing]);
    assert_eq!(table.rows[2][3], Cell::Number(0.0));
}

#[test]
fn a_distribution_has_its_ends_and_its_shares() {
    let check = |values: &[f64], expected: &[[f64; 2]]| {
        let mut lines = Lines::distribution("", Axis::new("", Unit::Seconds));
        lines.values("", values.iter().copied());
        assert_eq!(lines.series[0].points, expected);
    };
    check(&[], &[]);
    check(&[7.0], &[[7.0, 0.0], [7.0, 100.0]]);
    check(&[3.0, 1.0], &[[1.0, 0.0], [1.0, 50.0], [3.0, 100.0]]);
    let mut lines = Lines::distribution("", Axis::new("", Unit::Seconds));
    lines.values("", (1..=100_000).map(f64::from));
    let points = &lines.series[0].points;
    assert_eq!(points.len(), DISTRIBUTION_STEPS + 1);
    assert_eq!(points[DISTRIBUTION_STEPS / 2], [50_000.0, 50.0]);
    assert_eq!(points.last(), Some(&[100_000.0, 100.0]));
}

#[test]
fn markdown_has_tables_and_how_it_was_run() {
    let expected = "# Sample\n\n## warm\n\nBlocks.\n\n**newPayload**\n\n\
        | client | p50 ms | root ms | blocks | met |\n|---|--:|--:|--:|---|\n\
        | geth | 226 | not separable | 300 | – |\n\
        | deponent | 58.9 | 0 | 300 | yes |\n\
        | \\<script>alert('1')\\</script> \\| a\\\\\\*b\\* \"&amp;\" \\`x\\` ]]> \u{202e} \
        =1+1 | – | – | 0 | **no** |\n\
        \n## How it was measured\n\nEach block went to both.\n\n\
        ```sh\ndeponent bench sample\n```\n\n\
        - geth: 1.17.8, `--cache 512`\n\
        - 2 cores (Processor), 24.0 GiB of memory, Linux 6.1, load 0.5 0.4 0.3\n\
        - 2026-01-07T01:01:11Z\n";
    assert_eq!(markdown(&[sample()]), expected);
}

#[test]
fn a_terminal_has_aligned_columns() {
    let expected = "\
Sample
======

warm
----

Blocks.

newPayload
  client                                                          p50 ms         root ms  \
blocks  met
  geth                                                               226  not separable     300  –
  deponent                                                          58.9              0     300  yes
";
    let console = console(&[sample()]);
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&console).starts_with(&squeezed(expected)), "{console}");
    // Right of every number of a column begins the next one.
    let lines: Vec<&str> = console.lines().skip_while(|line| *line != "newPayload").collect();
    let ends = |words: &str, line: &str| {
        let start = line.find(words).expect(words);
        line[..start + words.len()].chars().count()
    };
    assert_eq!(ends("p50 ms", lines[1]), ends("226", lines[2]));
    assert_eq!(ends("p50 ms", lines[1]), ends("58.9", lines[3]));
    assert_eq!(ends("root ms", lines[1]), ends("not separable", lines[2]));
    assert!(console.chars().all(|c| c == '\n' || !c.is_control()), "{console:?}");
    assert!(console.ends_with("2026-01-07T01:01:11Z\n$ deponent bench sample\n"), "{console}");
}

#[test]
fn tables_are_comma_separated() {
    let mut table = Table::new("a").column("client", Unit::Text).column("p50", Unit::Ms);
    table.row(cells!["geth", 0.226_125]);
    table.row(cells!["a, \"b\"\nc", "not separable"]);
    table.row(cells![true, f64::NAN]);
    let expected = "client,p50 ms\r\ngeth,226.125\r\n\"a, \"\"b\"\"\nc\",not separable\r\nyes,\r\n";
    assert_eq!(csv(&table), expected);
    let names: Vec<String> = csv::files(&[sample()]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["01-warm-newpayload.csv"]);
    let mut hostile = Document::new("");
    let mut table = Table::new("../../etc/passwd\0 \u{e4}").column("", Unit::Count);
    table.row(cells![1_u64]);
    hostile.section(HOSTILE).table(table);
    let name = &csv::files(&[hostile])[0].0;
    assert_eq!(name, "01-script-alert-1-script-a-b-amp-x-1-1-etc-passwd.csv");
}

#[test]
fn a_page_has_all_texts_and_nothing_that_runs() {
    let mut document = sample();
    document.title = HOSTILE.into();
    document.command = HOSTILE.into();
    document.section(HOSTILE).text(HOSTILE).client(HOSTILE, HOSTILE, &[HOSTILE.into()]);
    let mut bars = Bars::new(HOSTILE, Axis::new(HOSTILE, Unit::Ms));
    bars.bar(HOSTILE, [(HOSTILE, 1.0)]);
    let mut table = Table::new(HOSTILE).column(HOSTILE, Unit::Text);
    table.row(cells![HOSTILE]);
    document.chart(bars).table(table);
    let page = html(&[document.clone(), document]);
    assert!(!page.contains("<script") && !page.contains("alert('1')"), "{page}");
    assert!(!page.contains("http:") && !page.contains("https:"), "{page}");
    let escaped = "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; | a\\*b* &quot;&amp;amp;&quot;";
    let places = ["<a href=\"#report-1\">", "<h1>", "<h2>", "<h3>", "<p>", "<dt>", "<dd>"];
    let further = ["<code>", "aria-label=\"", "<title>", "<th>"];
    for place in places.into_iter().chain(further) {
        assert!(page.contains(&format!("{place}{escaped}")), "{place}: {page}");
    }
    let count = |words: &str| page.matches(words).count();
    // Each drawing is there for two kinds of screens.
    assert_eq!((count("<svg class"), count("<figure>"), count("<table>")), (16, 8, 4));
    for (open, close) in [("<svg", "</svg>"), ("<td", "</td>"), ("<tr", "</tr>")] {
        assert_eq!(count(open), count(close), "{open}");
    }
    assert!(page.contains("<td class=\"none\">not separable</td>"), "{page}");
    assert!(page.contains("<th class=\"number\">p50 <small>ms</small></th>"), "{page}");
}

#[test]
fn a_folder_has_all_forms() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let results = folder.path().join("some/results");
    sample().write(&results).expect("written");
    let text = |name: &str| std::fs::read_to_string(results.join(name)).expect(name);
    assert_eq!(read(&text("report.json")).expect("it was written so"), [sample()]);
    assert_eq!(text("report.md"), markdown(&[sample()]));
    assert_eq!(text("report.html"), html(&[sample()]));
    assert!(text("tables/01-warm-newpayload.csv").starts_with("client,p50 ms"));
    let chart = text("charts/02-warm-sizes.svg");
    assert!(chart.starts_with("<svg xmlns=") && chart.contains(">Sizes</text>"), "{chart}");
    // Its size is twice that of the drawing.
    let picture = std::fs::read(results.join("charts/02-warm-sizes.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n") && picture.len() > 2_000);
    assert_eq!(picture[16..20], 1520_u32.to_be_bytes());
}

#[test]
fn answers_come_first_and_a_busy_machine_gets_no_verdict() {
    let mut document = sample();
    let mut table = Table::new("newPayload").column("client", Unit::Text);
    table = table.column("ratio", Unit::Ratio).column("verdict", Unit::Text);
    table.row(cells!["deponent", 0.5, "faster"]);
    document.table(table);
    let (name, verdict) = ("deponent".to_owned(), Verdict::Faster);
    let mut answer = Answer::new("newPayload", "geth");
    answer.sides.push(Side { name, ratio: 0.5, interval: [0.4, 0.6], verdict });
    document.answer(answer).answer(Answer::new("nothing", "geth"));
    assert_eq!(read(&json(&[document.clone()])).expect("it was written so"), [document.clone()]);
    let forms = |document: &Document| {
        let documents = [document.clone()];
        [markdown(&documents), console(&documents), html(&documents)]
    };
    for text in forms(&document) {
        let said = text.find("was 2.00 times as fast as geth").expect("it is said");
        assert!(said < text.rfind("226").expect("a number"), "{text}");
        assert!(text.contains("faster") && !text.contains("The machine was busy"), "{text}");
    }
    document.machine.busy = Some("others used 80 %.".into());
    for text in forms(&document) {
        let said = text.find("The machine was busy: others used 80 %.").expect("it is said");
        assert!(said < text.rfind("226").expect("a number"), "{text}");
        assert!(!text.contains("as fast") && !text.contains("| faster"), "{text}");
        assert!(text.contains("withheld"), "{text}");
    }
}
