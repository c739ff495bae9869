use super::*;

#[track_caller]
fn check_links(markdown: &str, expected: &[(usize, &str)]) {
    let found = links(markdown);
    let found: Vec<_> = found.iter().map(|(line, target)| (*line, target.as_str())).collect();
    assert_eq!(found, expected, "{markdown}");
}

#[test]
fn links_are_found_with_their_lines() {
    check_links(
        "one [a](a.md)\ntwo [b](b/c.md#d), [e](e)",
        &[(1, "a.md"), (2, "b/c.md#d"), (2, "e")],
    );
    check_links("[a](<a.md> \"title\")", &[(1, "a.md")]);
    check_links("![image](a.png)", &[(1, "a.png")]);
    check_links("[a]: a.md", &[(1, "a.md")]);
    check_links("see [a], which is no link (really)", &[]);
}

#[test]
fn urls_are_not_ours_to_check() {
    check_links("[a](https://example.org/a.md) [b](mailto:b@example.org)", &[]);
    check_links("[a]: http://example.org", &[]);
}

#[test]
fn code_has_no_links() {
    check_links("`[a](a.md)` and [b](b.md)", &[(1, "b.md")]);
    check_links("```\n[a](a.md)\n```\n[b](b.md)", &[(4, "b.md")]);
    check_links("[`code`](a.md)", &[(1, "a.md")]);
}

#[test]
fn a_broken_link_is_one_to_no_file_beside_the_markdown_or_below_the_root() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("src/example.md");
    let check = |target: &str, broken: bool| {
        let found = broken_links(&file, root, &format!("[a]({target})"));
        assert_eq!(!found.is_empty(), broken, "{target}: {found:?}");
    };
    for good in ["main.rs", "tidy/links.rs", "../Cargo.toml", "/src/main.rs", "main.rs#a", "#a"] {
        check(good, false);
    }
    for bad in ["absent.md", "../absent", "src/main.rs", "/main.rs", "absent.md#a"] {
        check(bad, true);
    }
}
