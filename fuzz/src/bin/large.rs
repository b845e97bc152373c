//! Writes the large inputs of a target to a folder: `fuzz-large TARGET FOLDER`.

use std::{env, error::Error, fs, mem, path::PathBuf};

use nodewise_fuzz::large;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(target), Some(folder)) = (args.next(), args.next()) else {
        return Err("usage: fuzz-large TARGET FOLDER".into());
    };
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder)?;
    let mut written = Ok(());
    large::each(&target, large::BYTES, |name, input| {
        let result = fs::write(folder.join(format!("large-{name}")), input);
        written = mem::replace(&mut written, Ok(())).and(result);
    });
    Ok(written?)
}
