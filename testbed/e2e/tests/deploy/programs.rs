//! The manifests fit the programs.

use std::process::Command;

use anyhow::{Result, ensure};
use nodewise_conformance::binaries;

use crate::render;

/// A program would ignore an unknown variable without a warning.
#[test]
fn programs_know_all_configured_variables() -> Result<()> {
    let help = |program| -> Result<String> {
        Ok(String::from_utf8(
            Command::new(program).arg("--help").output()?.stdout,
        )?)
    };
    // The variables of the OpenTelemetry SDK are not in the programs' help.
    let of_telemetry = render::text("docs/operations.md")?;
    let (server, executor) = (help(&binaries()?.server)?, help(&binaries()?.executor)?);
    let mut count = 0;
    for values in render::values()? {
        for deployment in render::deployments(&render::chart(&values)?) {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let help = if container["name"] == "server" {
                &server
            } else {
                &executor
            };
            for variable in container["env"].as_array().into_iter().flatten() {
                let name = variable["name"].as_str().unwrap_or_default();
                let is_known = help.contains(&format!("[env: {name}="))
                    || name.starts_with("OTEL_") && of_telemetry.contains(&format!("`{name}`"));
                ensure!(
                    is_known,
                    "{values}: {} does not know {name}",
                    render::name(deployment)
                );
                count += 1;
            }
        }
    }
    ensure!(count > 50, "only {count} variables");
    Ok(())
}
