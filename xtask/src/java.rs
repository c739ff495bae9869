//! The SDK for Java: its tests, which Maven runs, and the JDK that they need.

use crate::{Failure, answers, built_program, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest JDK that compiles and runs the SDK.
const OLDEST: u32 = 21;

/// Where Debian and Temurin put JDKs.
const FOLDER: &str = "/usr/lib/jvm";

/// A JDK that will do, and that Maven is there.
#[derive(Debug)]
pub(crate) struct Toolchain {
    java_home: PathBuf,
}

impl Toolchain {
    /// The JDK of `JAVA_HOME` if it is new enough, else the newest in [`FOLDER`].
    ///
    /// # Errors
    /// Without such a JDK, or without Maven, with what was found and what to install.
    pub(crate) fn find() -> Result<Self, Failure> {
        let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
        let java_home = choose(named.as_deref(), Path::new(FOLDER)).map_err(Failure::new)?;
        if !answers(Command::new("mvn").arg("--version").env("JAVA_HOME", &java_home)) {
            return Err(Failure::new(
                "no Maven: `mvn` runs the tests of sdk/java (Debian: apt-get install maven)",
            ));
        }
        Ok(Self { java_home })
    }

    /// Compiles the SDK and runs its tests.
    ///
    /// # Errors
    /// When Maven fails.
    pub(crate) fn verify(&self, ci: bool) -> Result<(), Failure> {
        let mut maven = Command::new("mvn");
        maven.args(["-B", "-ntp", "verify"]).current_dir(root().join("sdk/java"));
        maven.env("JAVA_HOME", &self.java_home);
        let program = built_program();
        if std::env::var_os("DEPONENT_BINARY").is_none() && program.is_file() {
            maven.env("DEPONENT_BINARY", program);
        }
        if ci {
            maven.env("CI", "true");
        }
        run(maven)
    }
}

/// The JDK at `named`, or the newest below `folder`.
fn choose(named: Option<&Path>, folder: &Path) -> Result<PathBuf, String> {
    let mut found = Vec::new();
    if let Some(home) = named {
        match version(home) {
            Some(version) if version >= OLDEST => return Ok(home.into()),
            Some(version) => found.push(format!("JAVA_HOME is {version}")),
            None => found.push(format!("JAVA_HOME={} is no JDK", home.display())),
        }
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let homes = entries.map(|entry| entry.path());
    let newest = homes.filter_map(|home| Some((version(&home)?, home))).max();
    match newest {
        Some((version, home)) if version >= OLDEST => return Ok(home),
        Some((version, _)) => found.push(format!("{} has {version}", folder.display())),
        None => found.push(format!("{} has none", folder.display())),
    }
    Err(format!(
        "no JDK of version {OLDEST} or newer, which sdk/java needs: {} (Debian: apt-get install \
         openjdk-{OLDEST}-jdk-headless, or Temurin's of https://adoptium.net; JAVA_HOME names it)",
        found.join(", ")
    ))
}

/// The version of the JDK at `home`, by its file `release`; none where there is no compiler.
fn version(home: &Path) -> Option<u32> {
    if !home.join("bin/javac").is_file() {
        return None;
    }
    let release = fs::read_to_string(home.join("release")).ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    let mut parts = line.trim_matches('"').split(['.', '-', '_', '+']);
    match parts.next()?.parse().ok()? {
        1 => parts.next()?.parse().ok(),
        version => Some(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jdk(folder: &Path, name: &str, version: &str) -> PathBuf {
        let home = folder.join(name);
        fs::create_dir_all(home.join("bin")).expect("a folder can be made");
        fs::write(home.join("bin/javac"), "").expect("a file can be written");
        let release = format!("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"{version}\"\n");
        fs::write(home.join("release"), release).expect("a file can be written");
        home
    }

    #[test]
    fn the_jdk_of_java_home_goes_first_and_else_the_newest() {
        let folder = std::env::temp_dir().join(format!("xtask-java-{}", std::process::id()));
        let old = jdk(&folder, "a-17", "17.0.15");
        let none = choose(None, &folder).expect_err("17 is too old");
        assert!(none.contains("has 17 (Debian: apt-get install openjdk-21"), "{none}");
        let ancient = jdk(&folder, "z-8", "1.8.0_392");
        assert_eq!(version(&ancient), Some(8));
        let newest = jdk(&folder, "b-25", "25.0.3");
        let other = jdk(&folder, "c-21", "21-ea");
        assert_eq!(choose(None, &folder), Ok(newest.clone()));
        assert_eq!(choose(Some(&other), &folder), Ok(other));
        assert_eq!(choose(Some(&old), &folder), Ok(newest));
        let empty = folder.join("empty");
        let reason = choose(Some(&empty), &empty).expect_err("there is none");
        assert!(reason.contains("empty is no JDK, "), "{reason}");
        assert!(reason.contains("empty has none (Debian"), "{reason}");
        fs::remove_dir_all(&folder).expect("it was made here");
    }
}
