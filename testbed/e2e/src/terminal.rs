//! A program in a pseudo-terminal, whose screen a test reads and whose keys it presses.

use std::{
    io::{Read as _, Write},
    num::NonZero,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context as _, Result, ensure};
use nodewise_testbed::eventually;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// The size of the screen.
const ROWS: NonZero<u16> = NonZero::new(40).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(120).unwrap();
/// The longest time that a screen may take to show what is expected.
const DEADLINE: std::time::Duration = std::time::Duration::from_mins(1);

/// A running program and its screen. The program is killed when this is dropped.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Kept open: the program ends when it is closed.
    _master: Box<dyn MasterPty + Send>,
}

impl Terminal {
    /// Starts a program.
    pub fn start(program: &Path, args: &[&str]) -> Result<Self> {
        let size = PtySize {
            rows: ROWS.get(),
            cols: COLUMNS.get(),
            ..PtySize::default()
        };
        let pty = native_pty_system()
            .openpty(size)
            .context("opening a pseudo-terminal")?;
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        let child = pty
            .slave
            .spawn_command(command)
            .context("starting a program in it")?;
        let mut output = pty.master.try_clone_reader()?;
        let screen = Arc::new(Mutex::new(vt100::Parser::new(ROWS, COLUMNS, 0)));
        let written = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let mut screen = written.lock().unwrap_or_else(PoisonError::into_inner);
                screen.process(&buffer[..length]);
            }
        });
        Ok(Self {
            child,
            keys: pty.master.take_writer()?,
            screen,
            _master: pty.master,
        })
    }

    /// The text on the screen.
    #[must_use]
    pub fn text(&self) -> String {
        let screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        screen.screen().contents()
    }

    /// Waits until the screen shows all of these texts.
    pub async fn shows(&self, wanted: &[&str]) -> Result<()> {
        eventually(DEADLINE, &format!("a screen with {wanted:?}"), async || {
            let text = self.text();
            let missing: Vec<_> = wanted.iter().filter(|wanted| !text.contains(*wanted)).collect();
            ensure!(
                missing.is_empty(),
                "{missing:?} is missing on the screen:\n{text}"
            );
            Ok(())
        })
        .await
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes())?;
        Ok(self.keys.flush()?)
    }

    /// Waits until the program ends. Returns its exit status.
    pub async fn exit_code(&mut self) -> Result<u32> {
        let child = &mut self.child;
        eventually(DEADLINE, "the program ends", async || {
            let status = child.try_wait()?.context("it still runs")?;
            Ok(status.exit_code())
        })
        .await
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
