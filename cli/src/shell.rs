//! Completions for shells, and manual pages. Both are made from the flags in `args`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{args::Cli, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise completion bash > ~/.local/share/bash-completion/completions/nodewise
  nodewise completion zsh > \"${fpath[1]}/_nodewise\"
  nodewise completion fish > ~/.config/fish/completions/nodewise.fish
  nodewise completion powershell | Out-String | Invoke-Expression")]
pub(crate) struct CompletionArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise man | man -l -
  nodewise man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for one page for each subcommand; it is created. Without it the page of nodewise is printed
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints the completions of a shell.
pub(crate) fn completion(args: &CompletionArgs) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nodewise", &mut script);
    print::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes those of all subcommands.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.folder {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        clap_mangen::generate_to(Cli::command(), folder)
            .with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    let rendered = Man::new(Cli::command()).render(&mut page);
    rendered.context("cannot write the manual page")?;
    print::bytes(&page)?;
    Ok(ExitCode::SUCCESS)
}
