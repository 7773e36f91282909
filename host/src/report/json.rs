//! The report as JSON, for scripts: `report.json`. Numbers in full precision, shortest form that reads back the same.

use super::{RENDERERS, Renderer, Report};
use linkme::distributed_slice;

#[expect(unsafe_code, reason = "linkme places the element in a linker section")]
#[distributed_slice(RENDERERS)]
static JSON: Renderer = Renderer {
    id: "json",
    file: Some("report.json"),
    render,
};

fn render(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report)
        .expect("a report is JSON: its maps have text keys and no NaN");
    text.push('\n');
    text
}
