//! The contract's types as wit-bindgen writes them. Nothing is added here.

#![allow(missing_docs, unsafe_code, clippy::pedantic, clippy::all)]

wit_bindgen::generate!({
    path: "../wit/v1",
    world: "mapper",
    pub_export_macro: true,
    export_macro_name: "export_v1",
    default_bindings_module: "focus_mapper_sdk::bindings",
    additional_derives: [PartialEq],
});
