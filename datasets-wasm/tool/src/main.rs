//! Turns a core module built against the mapper contract into a component: `focus-componentize IN.wasm OUT.wasm`.
//!
//! Runs on the machine that builds; knows nothing of datasets. The contract's types travel in the module, in a custom
//! section that the guest's bindings wrote.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = arguments.as_slice() else {
        eprintln!("usage: focus-componentize IN.wasm OUT.wasm");
        return ExitCode::from(2);
    };
    match componentize(input, output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn componentize(input: &str, output: &str) -> Result<(), String> {
    let module = std::fs::read(input).map_err(|e| format!("Cannot read `{input}`: {e}"))?;
    let component = wit_component::ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.encode())
        .map_err(|e| format!("Cannot make a component of `{input}`: {e:#}"))?;
    std::fs::write(output, component).map_err(|e| format!("Cannot write `{output}`: {e}"))
}
