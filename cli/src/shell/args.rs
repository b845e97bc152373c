//! The flags of `nodewise completion` and `nodewise man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

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
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nodewise man | man -l -
  nodewise man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder for one page for each subcommand; it is created. Without it the page of nodewise is printed
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}
