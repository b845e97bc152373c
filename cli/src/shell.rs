//! Completions for shells, and manual pages. Both are made from the flags in `args`.

pub(crate) mod args;

use std::{fs, process::ExitCode};

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::{args::Cli, print};
use args::{CompletionArgs, ManArgs};

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
