//! Adapters on a toy model.
