//! Checks of a Dockerfile that need no build: that its sources exist, that its flags are those of
//! the program, and the few rules that hadolint would find broken first.

use std::path::Path;

/// The faults of a Dockerfile whose context is `context`; `known` are the flags of `deponent
/// node`, as `--help` prints them.
pub(super) fn faults(text: &str, context: &Path, known: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = joined(text);
    let mut stages = Vec::new();
    for line in &lines {
        let (instruction, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        match instruction {
            "FROM" => {
                let words: Vec<_> = rest.split_whitespace().collect();
                let image = words.first().copied().unwrap_or_default();
                let is_named = image.contains(':') || image.contains('$') || image == "scratch";
                if !is_named || image.ends_with(":latest") {
                    faults.push(format!("{line}: an image without a version"));
                }
                stages.extend(words.iter().skip_while(|word| **word != "AS").nth(1).copied());
            }
            "COPY" => faults.extend(copy_faults(rest, context, &stages)),
            "RUN" if rest.contains("apt-get install") => {
                for part in ["--no-install-recommends", "rm -rf /var/lib/apt/lists"] {
                    if !rest.contains(part) {
                        faults.push(format!("{line}: apt-get install without {part}"));
                    }
                }
            }
            "ENTRYPOINT" | "CMD" => faults.extend(command_faults(rest, known)),
            "ADD" => faults.push(format!("{line}: COPY says the same and downloads nothing")),
            "RUN" | "ARG" | "ENV" | "WORKDIR" | "VOLUME" | "EXPOSE" | "STOPSIGNAL" | "USER" => {}
            _ => faults.push(format!("{line}: no instruction that is known here")),
        }
    }
    if !lines.iter().any(|line| line.starts_with("ENTRYPOINT [")) {
        faults.push("no ENTRYPOINT as a list: signals would reach a shell".into());
    }
    faults
}

/// The instructions, without comments, each on one line.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_continued = false;
    let is_said = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    for line in text.lines().filter(is_said) {
        let part = line.trim_end_matches('\\').trim();
        match lines.last_mut().filter(|_| is_continued) {
            Some(last) => last.extend([" ", part]),
            None => lines.push(part.into()),
        }
        is_continued = line.trim_end().ends_with('\\');
    }
    lines
}

fn copy_faults(rest: &str, context: &Path, stages: &[&str]) -> Vec<String> {
    let (from, words): (Vec<_>, Vec<_>) =
        rest.split_whitespace().partition(|word| word.starts_with("--"));
    if let Some(stage) = from.iter().find_map(|word| word.strip_prefix("--from=")) {
        let is_there = stages.contains(&stage);
        return (!is_there)
            .then(|| format!("COPY --from={stage}: no such stage"))
            .into_iter()
            .collect();
    }
    let sources = words.iter().rev().skip(1);
    let missing = sources.filter(|source| !context.join(source).exists());
    missing.map(|source| format!("COPY {source}: there is no such file")).collect()
}

fn command_faults(rest: &str, known: &str) -> Vec<String> {
    let flags = rest.split('"').filter(|part| part.starts_with("--"));
    let names = flags.map(|flag| flag.split('=').next().expect("a part"));
    let is_known = |name: &&str| {
        known.split_whitespace().any(|word| word.split(['=', '[', ',']).next() == Some(*name))
    };
    let unknown = names.filter(|name| !is_known(name));
    unknown.map(|name| format!("{name} is no flag of deponent node")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let check =
            |text: &str| faults(text, Path::new(env!("CARGO_MANIFEST_DIR")), "--datadir <DIR>");
        let good = "FROM a:1 AS build\n\
                    RUN apt-get install --no-install-recommends x \\\n && rm -rf \
                    /var/lib/apt/lists/*\n# a comment\nFROM b:2\nCOPY Cargo.toml src/ /x\n\
                    COPY --from=build /y /y\nENTRYPOINT [\"x\"]\n\
                    CMD [\"node\", \"--datadir=/x\"]\n";
        assert_eq!(check(good), Vec::<String>::new());
        for (line, fault) in [
            ("FROM a", "without a version"),
            ("FROM a:latest", "without a version"),
            ("COPY absent /x", "absent: there is no such file"),
            ("COPY --from=other /x /x", "no such stage"),
            ("RUN apt-get install x", "--no-install-recommends"),
            ("ADD x /x", "COPY says the same"),
            ("COPPY x /x", "no instruction"),
            ("CMD [\"node\", \"--datadri=/x\"]", "--datadri is no flag"),
        ] {
            let found = check(&format!("{good}{line}\n")).join("\n");
            assert!(found.contains(fault), "{line}: {found}");
        }
        assert_eq!(check("FROM a:1\n").len(), 1, "signals");
    }
}
