//! The Debian package, made by `dpkg-deb` alone: the package is a tree of a dozen files, for which
//! cargo-deb or debhelper would be one more tool to install.

use super::{Dist, PAGES, bytes, copy, output, write};
use crate::{Failure, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the shells look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/deponent"),
    ("fish", "usr/share/fish/vendor_completions.d/deponent.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_deponent"),
];

/// Makes the package.
pub(super) fn package(dist: &Dist) -> Result<PathBuf, Failure> {
    let tree = dist.folder.join("debian");
    let packaging = root().join("packaging");
    copy(&dist.binary, &tree.join("usr/bin/deponent"), 0o755)?;
    let unit = tree.join("usr/lib/systemd/system/deponent.service");
    copy(&packaging.join("deponent.service"), &unit, 0o644)?;
    copy(&packaging.join("deponent.toml"), &tree.join("etc/deponent/deponent.toml"), 0o644)?;
    for (shell, path) in COMPLETIONS {
        write(&tree.join(path), dist.printed(&["completions", shell])?.as_bytes(), 0o644)?;
    }
    for (name, text) in dist.pages()? {
        let page = tree.join("usr/share/man/man1").join(name);
        write(&page, text.as_bytes(), 0o644)?;
        output(Command::new("gzip").arg("-9n").arg(&page))?;
    }
    let documents = tree.join("usr/share/doc/deponent");
    let mut licences = String::from("Licensed under either of these, at your option.\n");
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let path = root().join(name);
        let text = fs::read_to_string(&path).map_err(|fault| super::failed(&path, &fault))?;
        licences.push_str(&format!("\n==== {name} ====\n\n{text}"));
    }
    write(&documents.join("copyright"), licences.as_bytes(), 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        let (from, to) = (packaging.join("debian").join(script), tree.join("DEBIAN").join(script));
        copy(&from, &to, 0o755)?;
    }
    write(&tree.join("DEBIAN/conffiles"), b"/etc/deponent/deponent.toml\n", 0o644)?;
    let control = control(dist, &tree)?;
    write(&tree.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let package = dist.folder.join(format!("deponent_{}_{}.deb", dist.version, architecture()?));
    // Files are dated by the commit, so that the same commit makes the same bytes.
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", dist.time.to_string());
    build.args(["--root-owner-group", "-Zxz", "--build"]).arg(&tree).arg(&package);
    output(&mut build)?;
    Ok(package)
}

fn architecture() -> Result<String, Failure> {
    output(Command::new("dpkg").arg("--print-architecture")).map(|text| text.trim().into())
}

fn control(dist: &Dist, tree: &Path) -> Result<String, Failure> {
    let libc = libc_version(&fs::read(&dist.binary).unwrap_or_default());
    let libc = libc.ok_or_else(|| Failure::new("the program does not say which glibc it needs"))?;
    let kib = bytes(&tree.join("usr/bin/deponent"))?.div_ceil(1024) + PAGES.len() as u64 * 4;
    Ok(format!(
        "Package: deponent\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: The Deponent authors <deponent@localhost>\n\
         Depends: libc6 (>= {libc}), libgcc-s1, passwd\n\
         Installed-Size: {kib}\n\
         Section: net\n\
         Priority: optional\n\
         Homepage: https://github.com/deponent/deponent\n\
         Description: Ethereum execution engine with a witness for every block\n \
          A consensus client sends a payload over the Engine API and gets the verdict and the\n \
          execution witness in one answer.\n",
        version = dist.version,
        architecture = architecture()?,
    ))
}

/// The newest version of glibc whose symbols a program asks for, as `2.34`.
fn libc_version(program: &[u8]) -> Option<String> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let places = program.windows(PREFIX.len()).enumerate().filter(|(_, bytes)| *bytes == PREFIX);
    let minors = places.filter_map(|(at, _)| {
        let digits = program[at + PREFIX.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8(digits.copied().collect()).ok()?.parse::<u32>().ok()
    });
    minors.max().map(|minor| format!("2.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        let program = b"..GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.4\0GLIBC_PRIVATE\0GLIBC_2.x";
        assert_eq!(libc_version(program).as_deref(), Some("2.34"));
        assert_eq!(libc_version(b"GLIBC_3.1"), None);
    }
}
