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
        let found = broken_links(&file, root, &format!("# A\n[a]({target})"));
        assert_eq!(!found.is_empty(), broken, "{target}: {found:?}");
    };
    for good in ["main.rs", "tidy/links.rs", "../Cargo.toml", "/src/main.rs", "main.rs#a", "#a"] {
        check(good, false);
    }
    for bad in ["absent.md", "../absent", "src/main.rs", "/main.rs", "absent.md#a"] {
        check(bad, true);
    }
}

#[test]
fn a_broken_anchor_is_one_of_no_heading() {
    let root = tempfile_root();
    let other = "# A page\n\n## Transports: `transports`, `crowd`\n```\n# no heading\n```\n";
    std::fs::write(root.join("other.md"), other).expect("written");
    let own = "# Own, and_more\n## Twice\n## Twice\n####### seven\n";
    for (target, broken) in [
        ("other.md#transports-transports-crowd", false),
        ("other.md#transports", true),
        ("other.md#no-heading", true),
        ("#own-and_more", false),
        ("#twice", false),
        ("#twice-1", false),
        ("#twice-2", true),
        ("#seven", true),
        ("other.rs#L7", true),
    ] {
        let found = broken_links(&root.join("own.md"), &root, &format!("{own}[a]({target})"));
        assert_eq!(!found.is_empty(), broken, "{target}: {found:?}");
    }
    std::fs::remove_dir_all(&root).expect("removed");
}

/// A folder of this test's own.
fn tempfile_root() -> std::path::PathBuf {
    let root = std::env::temp_dir().join(format!("tidy-links-{}", std::process::id()));
    std::fs::create_dir_all(&root).expect("made");
    root
}
