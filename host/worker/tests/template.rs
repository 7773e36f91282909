//! The template that authors copy: builds on its own and runs as any plugin.
