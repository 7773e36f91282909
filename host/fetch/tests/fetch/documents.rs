//! The registry file shown in `docs/downloads.md` is a registry file.

use crate::support::Bench;
use focus_fetch::Registry;

#[test]
fn the_documented_registry_file_is_read() {
    let text = include_str!("../../../../docs/downloads.md");
    let start = text.find("```toml\n").expect("an example") + 8;
    let example = &text[start..][..text[start..].find("```").expect("its end")];
    let bench = Bench::new();
    let path = bench.path("mine.toml");
    std::fs::write(&path, example).expect("writes");
    let mut registry = Registry::built_in();
    registry.extend(&path).expect("is read");
    assert_eq!(registry.get("our_clinic").expect("added").sign.len(), 1);
    for dataset in Registry::built_in().datasets() {
        assert!(
            text.contains(&format!("`{}`", dataset.id)),
            "{}",
            dataset.id
        );
    }
}
