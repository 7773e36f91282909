//! Files below the data folder: finding what a descriptor asks for, and never leaving the folder.

mod find;
mod folder;
mod plan;

pub(crate) use find::{Kind, Root, valid_pattern};
pub(crate) use folder::{ImageFolder, Lookup, valid_name};
pub(crate) use plan::Plan;
