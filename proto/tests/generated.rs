//! Proves that the committed generated code is what the `.proto` files say, by generating it again.
//!
//! After a change to the contract run `NODEWISE_REGENERATE=1 cargo test -p nodewise-proto --test generated`.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use prost_types::FileDescriptorSet;
use protox::prost::Message as _;

fn compile(proto: &Path) -> FileDescriptorSet {
    let mut files: Vec<PathBuf> = fs::read_dir(proto.join("nodewise/v1"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    protox::compile(files, [proto]).expect("the contract compiles")
}

fn generate(proto: &Path, out: &Path) {
    let descriptors = compile(proto);
    let config = {
        let mut config = tonic_prost_build::Config::new();
        config
            .bytes(["."])
            .compile_well_known_types()
            .extern_path(".google.protobuf", "::pbjson_types");
        // A plan may have a hundred thousand actions on pods. They are not to take the room of these.
        for large in [
            "kind.create_object",
            "kind.patch_object",
            "kind.delete_object",
            "kind.measure",
            "failure_event",
        ] {
            config.boxed(format!(".nodewise.v1.Action.{large}"));
        }
        config
    };
    tonic_prost_build::configure()
        .out_dir(out)
        .emit_rerun_if_changed(false)
        .compile_fds_with_config(descriptors.clone(), config)
        .expect("stubs are generated");
    pbjson_build::Builder::new()
        .register_descriptors(&descriptors.encode_to_vec())
        .expect("descriptors are readable")
        .out_dir(out)
        .build(&[".nodewise"])
        .expect("the JSON form is generated");
    fs::write(out.join("descriptor.rs"), descriptor_source(descriptors)).unwrap();
}

/// The descriptors as Rust source, for the reflection service; without comments, which reflection does not need.
fn descriptor_source(mut descriptors: FileDescriptorSet) -> String {
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    let mut source = String::from(
        "/// The serialized `google.protobuf.FileDescriptorSet` of the contract and what it imports.\n\
         pub const FILE_DESCRIPTOR_SET: &[u8] = b\"",
    );
    for chunk in descriptors.encode_to_vec().chunks(100) {
        source.push_str("\\\n");
        for byte in chunk {
            // A blank at the start of a line would be swallowed by the line continuation.
            match byte {
                b'"' | b'\\' | b' ' => write!(source, "\\x{byte:02x}").unwrap(),
                0x21..=0x7e => source.push(char::from(*byte)),
                _ => write!(source, "\\x{byte:02x}").unwrap(),
            }
        }
    }
    source.push_str("\";\n");
    source
}

#[test]
fn generated_code_is_fresh() {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = proto.join("src/generated");
    let fresh = tempfile::tempdir().unwrap();
    generate(proto, fresh.path());
    for entry in fs::read_dir(fresh.path()).unwrap() {
        let path = entry.unwrap().path();
        let target = committed.join(path.file_name().unwrap());
        if std::env::var_os("NODEWISE_REGENERATE").is_some() {
            fs::copy(&path, &target).unwrap();
        }
        assert!(
            fs::read(&target).ok() == Some(fs::read(&path).unwrap()),
            "{} is stale: run NODEWISE_REGENERATE=1 cargo test -p nodewise-proto --test generated",
            target.display()
        );
    }
}
