//! Chromium without a window, driven by its own protocol over two pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: File,
    output: BufReader<File>,
    session: Value,
    calls: u64,
    /// The messages of the page on the console, and its errors.
    pub(crate) console: Vec<String>,
}

impl Browser {
    /// Starts Chromium or Chrome, if there is one on the path; its profile and pipes are in `dir`.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let program = testing::browser::binary()?;
        let pipes = ["in", "out"].map(|name| dir.join(name));
        let made = Command::new("mkfifo").args(&pipes).status().expect("mkfifo runs");
        assert!(made.success());
        // The browser reads from descriptor 3 and writes to 4.
        let child = Command::new("sh")
            .args(["-c", r#"in="$1"; out="$2"; shift 2; exec "$0" "$@" 3<"$in" 4>"$out""#])
            .arg(program)
            .args(&pipes)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-extensions", "--hide-scrollbars"])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", dir.join("profile").display()))
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        // In the order in which the shell opens them.
        let input = OpenOptions::new().write(true).open(&pipes[0]).expect("a pipe");
        let output = BufReader::new(File::open(&pipes[1]).expect("a pipe"));
        let (session, console) = (Value::Null, Vec::new());
        let mut browser = Self { child, input, output, session, calls: 0, console };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        for domain in ["Runtime", "Log", "Page"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the browser's protocol.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": params});
        if !self.session.is_null() {
            call["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{call}\0").as_bytes()).expect("the browser reads");
        loop {
            let mut message = Vec::new();
            self.output.read_until(0, &mut message).expect("the browser writes");
            assert_eq!(message.pop(), Some(0), "the browser ended");
            let mut message: Value = serde_json::from_slice(&message).expect("JSON");
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            let event = message["method"].as_str().unwrap_or_default();
            if ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"]
                .contains(&event)
            {
                self.console.push(message["params"].to_string());
            }
        }
    }

    /// Opens an address in a window of this size, light or dark.
    pub(crate) fn open(&mut self, url: &str, [width, height]: [u32; 2], scheme: &str) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", &json!({"features": [scheme]}));
        self.call("Page.navigate", &json!({"url": "about:blank"}));
        self.call("Page.navigate", &json!({"url": url}));
    }

    /// The value of an expression, or of the promise that it is.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// Waits until an expression is true in the page.
    pub(crate) fn wait(&mut self, expression: &str) {
        let waits = format!(
            "new Promise(done => {{ const look = (left) => {{ let is = false; \
             try {{ is = {expression}; }} catch (_) {{}} \
             is || !left ? done(!!is) : setTimeout(look, 50, left - 1); }}; look(1200); }})"
        );
        let is_true = self.value(&waits);
        let shown =
            if is_true == true { Value::Null } else { self.value("document.body.innerText") };
        assert_eq!(is_true, true, "never: {expression}; {shown}; {:?}", self.console);
    }

    /// The whole page as a PNG, smaller where it is wide.
    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let size = self.value("[document.body.scrollWidth, document.body.scrollHeight]");
        let scale = if size[0].as_u64() > Some(600) { 0.75 } else { 1.0 };
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": scale});
        let params = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", &params);
        STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
