use super::*;

fn one(files: &[(&str, &str)]) -> Crate {
    let file = |(path, text): &(&str, &str)| {
        source::SourceFile::new(format!("crates/a/src/{path}"), (*text).into())
    };
    Crate {
        folder: "crates/a".into(),
        manifest: String::new(),
        files: files.iter().map(file).collect(),
    }
}

#[track_caller]
fn check(found: &[Problem], expected: &[&str]) {
    let found: Vec<_> = found.iter().map(|problem| problem.0.as_str()).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_planted_circle_is_found() {
    let lib = ("lib.rs", "mod x;\nmod y;\nmod z;\npub use z::Z;\n");
    let x = ("x.rs", "use crate::y::Y;\n");
    check(&modules::circles(&one(&[lib, x, ("y.rs", ""), ("z.rs", "")])), &[]);
    let circle = ["crates/a: a circle of files: x imports y; y imports x"];
    check(
        &modules::circles(&one(&[lib, x, ("y.rs", "use super::{x::X as W, z};"), ("z.rs", "")])),
        &circle,
    );
    check(
        &modules::circles(&one(&[lib, x, ("y.rs", "fn a() { crate::x::b() }"), ("z.rs", "")])),
        &circle,
    );
    // Through what the crate's root re-exports.
    let circle = ["crates/a: a circle of files: y imports z; z imports y"];
    check(
        &modules::circles(&one(&[
            lib,
            ("x.rs", ""),
            ("y.rs", "use crate::Z;"),
            ("z.rs", "use crate::y;"),
        ])),
        &circle,
    );
}

#[test]
fn comments_strings_and_tests_make_no_circle() {
    let lib = ("lib.rs", "mod x;\nmod y;\n");
    let x = ("x.rs", "use crate::y::Y;\n");
    for y in [
        "// use crate::x;",
        "const A: &str = \"use crate::x;\";",
        "#[cfg(test)]\nmod tests { use crate::x::X; }",
    ] {
        check(&modules::circles(&one(&[lib, x, ("y.rs", y)])), &[]);
    }
}

#[test]
fn a_folders_file_is_the_face_of_its_modules() {
    let lib = ("lib.rs", "mod x;\n");
    let x = ("x/mod.rs", "mod part;\npub(crate) use part::P;\nstruct X;");
    check(&modules::circles(&one(&[lib, x, ("x/part.rs", "use super::X;")])), &[]);
}

#[test]
fn a_circle_through_a_files_own_part_is_found() {
    let lib = ("lib.rs", "mod a;\nmod b;\n");
    let a = ("a.rs", "use crate::b::B;\n");
    let part = ("b/part.rs", "use crate::a::A;\n");
    let circle = ["crates/a: a circle of files: a imports b; b imports b::part; b::part imports a"];
    for b in [
        "mod part;\nuse part::P;\nstruct B(P);\n",
        "mod part;\nstruct B(part::P);\n",
        "mod part;\npub(crate) use part::P;\nstruct B(P);\n",
    ] {
        check(&modules::circles(&one(&[lib, a, ("b.rs", b), part])), &circle);
    }
    for b in ["mod part;\npub(crate) use part::P;\nstruct B;\n", "mod part;\nstruct B;\n"] {
        check(&modules::circles(&one(&[lib, a, ("b.rs", b), part])), &[]);
    }
}

#[test]
fn a_file_and_its_own_parts_may_use_each_other_but_the_parts_make_no_circle() {
    let lib = ("lib.rs", "mod x;\n");
    let x = ("x.rs", "mod part;\nmod other;\nuse part::P;\nstruct X(P);\n");
    let part = ("x/part.rs", "use super::X;\nuse super::other::O;\n");
    check(&modules::circles(&one(&[lib, x, part, ("x/other.rs", "use super::X;\n")])), &[]);
    let circle =
        ["crates/a: a circle of files: x::other imports x::part; x::part imports x::other"];
    let other = ("x/other.rs", "use super::part::P;\n");
    check(&modules::circles(&one(&[lib, x, part, other])), &circle);
}

#[test]
fn a_planted_upward_import_is_found() {
    let lib = ("lib.rs", "mod low;\nmod high;\n");
    let low = "//! Floor 0. Leaves.\n";
    let high = ("high.rs", "//! Floor 1. More.\nuse crate::low::L;\n");
    check(&modules::upward_imports(&one(&[lib, ("low.rs", low), high])), &[]);
    let planted = format!("{low}use crate::high::H;\n");
    let problem = ["crates/a/src/low.rs: on floor 0, imports high, which is on floor 1"];
    check(&modules::upward_imports(&one(&[lib, ("low.rs", &planted), high])), &problem);
    let problem = ["crates/a/src/high.rs: has no `//! Floor N.`"];
    let without = ("high.rs", "//! More.\nuse crate::low::L;\n");
    check(&modules::upward_imports(&one(&[lib, ("low.rs", low), without])), &problem);
}

#[test]
fn a_banned_name_and_a_doubled_one_are_found() {
    let found = words::banned_names(&one(&[("pool_helper.rs", "pub struct BlockManager;\n")]));
    let problems = [
        "crates/a/src/pool_helper.rs: helper is a banned name",
        "crates/a/src/pool_helper.rs:1: BlockManager: manager is a banned name",
    ];
    check(&found, &problems);
    let text = "pub(in crate::x) struct AllCore;\nmod y {\n    struct Utils(u8);\n}\n";
    let mut planted = one(&[("common/x.rs", text)]);
    planted.folder = "crates/node-core".into();
    let problems = [
        "crates/node-core: core is a banned name",
        "crates/a/src/common/x.rs: common is a banned name",
        "crates/a/src/common/x.rs:1: AllCore: core is a banned name",
        "crates/a/src/common/x.rs:3: Utils: util is a banned name",
    ];
    check(&words::banned_names(&planted), &problems);
    let found =
        words::doubled_types(&one(&[("x.rs", "struct Part;\n"), ("y.rs", "enum Part {}\n")]));
    let problem =
        ["crates/a: Part is the name of 2 types: crates/a/src/x.rs:1, crates/a/src/y.rs:1"];
    check(&found, &problem);
}

#[test]
fn unsafe_code_that_is_not_listed_is_found() {
    let crates = [one(&[
        ("x.rs", "fn a() { unsafe { b() } }"),
        ("y.rs", "#![deny(unsafe_code)] // unsafe"),
    ])];
    let table = "| File | Why |\n|---|---|\n| `crates/a/src/x.rs` | b |\n";
    check(&words::unsafe_files(&crates, table), &[]);
    check(
        &words::unsafe_files(&crates, ""),
        &["crates/a/src/x.rs: unsafe code that ARCHITECTURE.md does not list"],
    );
}

#[test]
fn unsafe_code_in_files_that_only_sound_like_tests_is_found() {
    let code = "fn a() { unsafe { b() } }";
    let lib = ("lib.rs", "mod oracle;\n#[cfg(test)]\nmod samples;\n");
    let files = [lib, ("oracle.rs", code), ("samples.rs", code), ("samples/x.rs", code)];
    let listed = "unsafe code that ARCHITECTURE.md does not list";
    let mut planted = one(&files);
    for path in ["build.rs", "tests/it/main.rs", "testing/x.rs"] {
        planted.files.push(source::SourceFile::new(format!("crates/a/{path}"), code.into()));
    }
    check(
        &words::unsafe_files(&[planted], ""),
        &["build.rs", "src/oracle.rs", "testing/x.rs"]
            .map(|path| format!("crates/a/{path}: {listed}"))
            .each_ref()
            .map(String::as_str),
    );
}

#[test]
fn a_long_function_with_an_array_in_its_head_is_found() {
    let lines = "\n".repeat(80);
    let found = |head| lengths::of_rust(&one(&[("x.rs", &format!("{head} {{{lines}}}"))]).files[0]);
    check(
        &found("fn a(b: [u8; 32]) -> [u8; 4]"),
        &["crates/a/src/x.rs:1: a function of 81 lines, at most 70"],
    );
    check(&found("fn a(b: [u8; 32]) -> [u8; 4];\nstruct A"), &[]);
}

#[test]
fn files_from_outside_of_a_crate_are_found() {
    for (text, found) in [
        ("#[path = \"../../b/x.rs\"]\nmod x;", 1),
        ("#[allow(unused)] #[path = \"../../b/x.rs\"]\nmod x;", 1),
        ("#[cfg_attr(unix, path = \"../../b/x.rs\")]\nmod x;", 1),
        ("#[path = \"/x.rs\"]\nmod x;", 1),
        ("include!(\"../../b/x.rs\");", 1),
        ("include!(concat!(env!(\"A\"), \"/../../x.rs\"));", 1),
        ("#[path = \"../tests/x.rs\"]\nmod x;", 0),
        ("include!(\"x.rs\");\n// include!(\"../../x.rs\")", 0),
        ("const A: &str = include_str!(\"../../../x.json\");", 0),
    ] {
        let one = one(&[("x.rs", text)]);
        assert_eq!(words::foreign_paths(&one, &one.files[0]).len(), found, "{text}");
    }
    let mut one = one(&[]);
    one.manifest = "[lib]\npath = \"../b/x.rs\"\n[dependencies]\n".into();
    check(&words::foreign_targets(&one), &["crates/a/Cargo.toml: ../b/x.rs is out of a crate"]);
}

#[test]
fn stale_rows_of_the_code_map_and_the_walk_are_found() {
    let crates = [one(&[("x/y.rs", "struct Found;\nfn run() {}"), ("z.rs", "")])];
    let map = |row| format!("\n## Code map\n\n**a**: b.\n\n| Module | Does |\n|---|---|\n{row}\n");
    check(&code_map::stale_rows(&crates, &map("| `x/`, `{z, x/y}.rs` | `y.rs` |")), &[]);
    check(
        &code_map::stale_rows(&crates, &map("| `x/`, `{z, w}.rs`, `v/` | `u.rs` |")),
        &["w.rs", "v/", "u.rs"]
            .map(|path| format!("ARCHITECTURE.md: the crate a has no src/{path}"))
            .each_ref()
            .map(String::as_str),
    );
    let walk =
        |row| format!("\n## A newcomer's walk\n\n| Where | In | Look |\n|---|---|---|\n{row}\n");
    let right = walk("| it | a, `x/y.rs` | `run` of `Found` |");
    check(&code_map::stale_walk(&crates, &right), &[]);
    check(
        &code_map::stale_walk(&crates, &walk("| it | a, `x.rs` | `Lost` |")),
        &[
            "CONTRIBUTING.md: the crate a has no src/x.rs",
            "CONTRIBUTING.md: nothing is named Lost there",
        ],
    );
}

#[test]
fn a_warning_that_the_page_does_not_explain_is_found() {
    let code = r#"fn a() {
    tracing::warn!(%b, reason = c("x y"), "known (it is): {d} \
        more");
    error!(
        "{name}: new one; {x}"
    );
    warn!("{}", line());
    tracing::info!("not of these");
}
#[cfg(test)]
mod tests { fn b() { warn!("of tests") } }
"#;
    let mut engine = one(&[("x.rs", code), ("tests.rs", "fn a() { warn!(\"in a test\") }")]);
    engine.folder = "crates/engine".into();
    let page = "# A\n\n## The log, line by line\n\n| `known (it is) ..` |\n\n## B\n\n| new one |\n";
    let expected =
        r#"crates/a/src/x.rs:4: the log's line "new one" is in no table of docs/operations.md"#;
    check(&log_lines::unexplained(&[engine], page), &[expected]);
}

#[test]
fn what_may_only_fall_is_told_when_it_rises() {
    let ratchets = tables::Ratchets::parse("# what\nlines a 3\n").unwrap();
    let crates = |text| one(&[("x.rs", text)]);
    assert_eq!(ratchets.lines(&crates("\n\n\n")), None);
    let problem = ratchets.lines(&crates("\n\n\n\n")).unwrap();
    check(&[problem], &["xtask/tidy.txt: 4 lines in a, at most 3"]);
    assert!(tables::Ratchets::parse("lines a").is_err());
    let ratchets = tables::Ratchets::parse("doubled a 1\n").unwrap();
    let problems = |count| (0..count).map(|at| Problem::new(at, "doubled")).collect::<Vec<_>>();
    assert_eq!(ratchets.left_over("doubled", "a", problems(1)), []);
    assert_eq!(ratchets.left_over("doubled", "a", problems(2)).len(), 2);
    assert_eq!(ratchets.left_over("doubled", "b", problems(1)).len(), 1);
}

#[test]
fn the_repository_is_read_whole() {
    let repository = Repository::read(&root()).unwrap();
    assert!(repository.crates.iter().any(|one| one.name() == "engine"));
    let unsafe_code = words::unsafe_files(&repository.crates, "");
    assert!(unsafe_code.iter().any(|problem| problem.0.contains("keccak")), "{unsafe_code:?}");
}
