use super::*;
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
    };
    let mut table = Table::new("newPayload")
        .column("client", Unit::Text)
        .column("p50", Unit::Ms)
        .column("root", Unit::Ms)
        .column("blocks", Unit::Count)
        .column("met", Unit::Text);
    table.row(cells!["geth", 0.22613, "not separable", 300_usize, None::<bool>]);
    table.row(cells!["deponent", Duration::from_micros(58_920), 0.0, 300_u64, true]);
    table.row(cells![HOSTILE, f64::NAN, None::<f64>, 0_u64, false]);
    let x = Axis::new("newPayload", Unit::Ms);
    let mut distribution = Lines::distribution("Latencies", x.clone());
    distribution.values("geth", [0.3, 0.1, 0.2, f64::INFINITY]).values(HOSTILE, []);
    let mut curve = Lines::new("Sizes", Axis::new("witness", Unit::Mb).logarithmic(), x);
    curve.series("geth", [[100e6, 0.7], [17e6, 0.2]]);
    let mut bars = Bars::new("Parts", Axis::new("time", Unit::Ms));
    bars.bar("17 MB", [("execution", 0.1), ("transport", 0.02), ("decode", f64::NAN)]);
    document.client("geth", "1.17.8", &["--cache".into(), "512".into()]);
    document.section("warm").text("Blocks.").table(table);
    document.chart(distribution).chart(curve).chart(bars);
    document.table(Table::new("empty").column("client", Unit::Text));
    document
}

#[test]
fn what_is_written_is_read_back() {
    let documents = [sample(), Document::new("another")];
    assert_eq!(read(&json(&documents)).expect("it was written so"), documents);
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
    assert_eq!(read(&json(&[document.clone()])).expect("it was written so"), [document]);
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
        {"processor":"","cores":1,"memoryBytes":1,"kernel":""},"clients":[],"content":[{"table":
        {"title":"T","columns":[{"name":"a","unit":"ms"}],"rows":[[1,2]]}}]}]}"#;
    check(narrow, "the table \"T\" has rows of not 1 cells");
}

#[test]
fn cells_are_kept_in_their_unit_and_never_zero_for_nothing() {
    let document = sample();
    let Content::Table(table) = &document.content[2] else { panic!("{document:?}") };
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
        | \\<script>alert('1')\\</script> \\| a\\\\\\*b\\* \"&amp;\" \\`x\\` ]]> \u{202e} =1+1 | – | – | 0 | **no** |\n\
        \n## How it was run\n\n```sh\ndeponent bench sample\n```\n\n\
        - geth: 1.17.8, `--cache 512`\n\
        - 2 cores (Processor), 24.0 GiB of memory, Linux 6.1\n- 2026-01-07T01:01:11Z\n";
    assert_eq!(markdown(&[sample()]), expected);
}

#[test]
fn a_folder_has_all_forms() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let results = folder.path().join("some/results");
    sample().write(&results).expect("written");
    let text = |name: &str| std::fs::read_to_string(results.join(name)).expect(name);
    assert_eq!(read(&text("report.json")).expect("it was written so"), [sample()]);
    assert_eq!(text("report.md"), markdown(&[sample()]));
}
