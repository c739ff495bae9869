use std::path::PathBuf;

/// The folder of published test data (`docs/conformance.md`) that `DEPONENT_FIXTURES` names.
///
/// `None` when the variable is not set; a line on the standard output then says so.
///
/// # Panics
/// If the variable is not set although `CI` is: no test may be left out there.
pub fn fixtures() -> Option<PathBuf> {
    let folder = std::env::var_os("DEPONENT_FIXTURES").map(PathBuf::from);
    if folder.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI needs DEPONENT_FIXTURES");
        println!("not run: set DEPONENT_FIXTURES to the folder of docs/conformance.md");
    }
    folder
}
