//! Conversations to ids: against small tokenizers and templates in the manner of Qwen, Gemma and Llama.

use super::{Chat, ChatError, ChatTemplate, Message, Part, Tokenizer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const QWEN: &str = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}{% if c['type'] == 'image' %}<|image|>{% else %}{{ c['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const GEMMA: &str = "{{ bos_token }}{% for m in messages %}{% for c in m['content'] %}{% if c['type'] == 'image' %}<|image|>{% else %}{{ c['text'] | trim }}{% endif %}{% endfor %}{% endfor %}";
const TEXT_ONLY: &str =
    "{% for m in messages %}{% for c in m['content'] %}{{ c.text }}{% endfor %}{% endfor %}";

/// A byte-pair model of a few words that writes blanks as `▁`; `prefix`: puts one before every text; `bos`: its post-processor adds one.
fn tokenizer(prefix: bool, bos: bool) -> Value {
    let words = [
        "<unk>",
        "<bos>",
        "<eos>",
        "<|im_start|>",
        "<|im_end|>",
        "<|image|>",
        "y",
        "e",
        "s",
        "n",
        "o",
        "▁",
        "\n",
        "u",
        "r",
        "a",
        "i",
        "t",
        "es",
        "yes",
        "▁yes",
        "no",
        "<|pad|>",
    ];
    let vocab: BTreeMap<&str, usize> = words.iter().enumerate().map(|(id, w)| (*w, id)).collect();
    let special = |word: &str| json!({"id": vocab[word], "content": word, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let mut normalizers =
        vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})];
    if prefix {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": "▁"}));
    }
    let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
    let begin = json!({"SpecialToken": {"id": "<bos>", "type_id": 0}});
    let single = if bos {
        vec![begin, sequence.clone()]
    } else {
        vec![sequence.clone()]
    };
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "added_tokens": [special("<unk>"), special("<bos>"), special("<eos>"), special("<|im_start|>"), special("<|im_end|>"), special("<|image|>"), special("<|pad|>")],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [sequence.clone(), {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [1], "tokens": ["<bos>"]}}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab,
            "merges": [["e", "s"], ["y", "es"], ["▁", "yes"], ["n", "o"]]},
    })
}

fn open(json: &Value, config: &Value) -> Tokenizer {
    Tokenizer::parse(&json.to_string(), Some(&config.to_string())).unwrap()
}

fn config() -> Value {
    json!({"bos_token": "<bos>", "eos_token": {"content": "<eos>", "__type": "AddedToken"}, "pad_token": "<|pad|>"})
}

fn chat(template: &str, bos: bool) -> Chat {
    Chat::new(
        open(&tokenizer(false, bos), &config()),
        ChatTemplate::parse("chat_template.jinja", template).unwrap(),
    )
}

fn render(template: &str) -> Result<String, ChatError> {
    let message = Message {
        role: "user".into(),
        content: vec![Part::Image, Part::Text("yes".into())],
    };
    ChatTemplate::parse("t.jinja", template)?.render(&[message], &BTreeMap::new(), true)
}

#[test]
fn a_question_holds_one_slot_for_each_picture() {
    let chat = chat(QWEN, false);
    let ids = chat.question(2, "no", "<|image|>").unwrap();
    assert_eq!(ids.iter().filter(|&&id| id == 5).count(), 2);
    assert_eq!(
        chat.question(0, "no", "<|image|>")
            .unwrap()
            .iter()
            .filter(|&&id| id == 5)
            .count(),
        0
    );
    // A leftover truncation of the file cuts nothing.
    assert!(ids.len() > 10);
}

#[test]
fn a_template_without_a_place_for_pictures_is_an_error_only_where_there_are_some() {
    let chat = chat(TEXT_ONLY, false);
    assert!(chat.question(0, "yes", "<|image|>").is_ok());
    let error = chat.question(1, "yes", "<|image|>").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Chat template `chat_template.jinja` has no place for the pictures: expected 1 times `<|image|>`, found 0"
    );
    assert!(error.hint().unwrap().contains("text alone"));
}

#[test]
fn a_picture_token_in_the_question_is_refused() {
    let error = chat(QWEN, false)
        .question(1, "yes <|image|>", "<|image|>")
        .unwrap_err();
    assert!(
        matches!(
            error,
            ChatError::Slots {
                expected: 1,
                found: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("out of the prompt"));
}

#[test]
fn exactly_one_bos_whoever_adds_it() {
    let count = |template: &str, bos: bool| {
        let ids = chat(template, bos).question(1, "yes", "<|image|>").unwrap();
        (ids.iter().filter(|&&id| id == 1).count(), ids[0])
    };
    assert_eq!(count(GEMMA, true), (1, 1));
    assert_eq!(count(GEMMA, false), (1, 1));
    assert_eq!(count(&format!("<bos>{GEMMA}"), true), (1, 1));
    assert_eq!(count(QWEN, true), (1, 1));
    assert_eq!(count(QWEN, false).0, 0);
}

#[test]
fn what_the_configuration_says_of_bos_goes_before_the_post_processor() {
    let adds = |bos: bool, said: Value| {
        let mut config = config();
        config["add_bos_token"] = said;
        open(&tokenizer(false, bos), &config).adds_bos()
    };
    assert!(adds(false, true.into()));
    assert!(!adds(true, false.into()));
    assert!(adds(true, Value::Null));
    assert!(!adds(false, Value::Null));
}

#[test]
fn variants_are_single_tokens_in_the_models_own_way_of_writing() {
    for prefix in [false, true] {
        let tokenizer = open(&tokenizer(prefix, false), &config());
        assert_eq!(tokenizer.single_token("yes"), Some(19), "{prefix}");
        assert_eq!(tokenizer.single_token(" yes"), Some(20), "{prefix}");
        assert_eq!(tokenizer.single_token(" no"), None);
        assert_eq!(tokenizer.single_token("\nyes"), None);
        assert_eq!(tokenizer.single_token(""), None);
        // One token, but the one for everything unknown.
        assert_eq!(tokenizer.single_token("Ж"), None);
        // Whole texts keep the blank that the model puts before them.
        assert_eq!(
            tokenizer.encode("yes").unwrap(),
            if prefix { [20] } else { [19] }
        );
    }
}

#[test]
fn a_blank_put_by_the_pre_tokenizer_is_left_out_too() {
    let mut json = tokenizer(false, false);
    json["normalizer"] = Value::Null;
    json["pre_tokenizer"] = json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false});
    let tokenizer = open(&json, &config());
    assert_eq!(tokenizer.encode("yes").unwrap(), [20]);
    assert_eq!(tokenizer.single_token("yes"), Some(19));
    assert_eq!(tokenizer.single_token(" yes"), Some(20));
}

#[test]
fn named_tokens_in_both_spellings_and_added_ones() {
    let tokenizer = open(&tokenizer(false, false), &config());
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos(), tokenizer.pad()),
        (Some(1), Some(2), Some(22))
    );
    assert_eq!(tokenizer.decode(&[1, 20, 19, 2]).unwrap(), " yesyes");
    let mut config = config();
    config["added_tokens_decoder"] =
        json!({"23": {"content": "<new>", "special": true}, "2": {"content": "<eos>"}});
    let more = open(&self::tokenizer(false, false), &config);
    assert_eq!(more.encode("yes<new>").unwrap(), [19, 23]);
    assert_eq!(more.check(24).map_err(|e| e.to_string()), Ok(()));
    assert!(matches!(
        more.check(23),
        Err(ChatError::Beyond { id: 23, rows: 23 })
    ));
    config["added_tokens_decoder"] = json!({"40": {"content": "<new>", "special": true}});
    let error = Tokenizer::parse(
        &self::tokenizer(false, false).to_string(),
        Some(&config.to_string()),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`tokenizer_config.json` cannot be used: added token `<new>`: expected id 40, found 23"
    );
}

#[test]
fn templates_have_the_environment_of_transformers() {
    // Blocks take their line's indentation and their newline with them.
    assert_eq!(
        render("a\n  {% if true %}\nb\n  {% endif %}\nc").unwrap(),
        "a\nb\nc"
    );
    assert_eq!(
        render("{{ ' x '.strip() + 'Ab'.upper() }}{{ 'a,b'.split(',')[1] }}").unwrap(),
        "xABb"
    );
    assert_eq!(
        render("{% if messages[0].role.startswith('us') %}{{ '<b>' }}{% endif %}").unwrap(),
        "<b>"
    );
    assert_eq!(
        render("{% for x in [1,2,3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}")
            .unwrap(),
        "1"
    );
    assert_eq!(render("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}").unwrap(), "1");
    assert_eq!(
        render("{{ {'b': [1, 'é<'], 'a': none} | tojson }}").unwrap(),
        r#"{"b": [1, "é<"], "a": null}"#
    );
    assert_eq!(render("{{ [1] | tojson(indent=2) }}").unwrap(), "[\n  1\n]");
    assert_eq!(
        render("{{ strftime_now('%d %b %Y') }}").unwrap(),
        "26 Jul 2024"
    );
    assert_eq!(render("[{{ nothing }}]").unwrap(), "[]");
}

#[test]
fn what_published_templates_are_written_with() {
    let each = "{% for m in messages %}{% for c in m.content %}";
    let end = "{% endfor %}{% endfor %}";
    for (template, wanted) in [
        (
            "{{ messages[::-1][0]['role'] }}{{ messages[1:] | length }}",
            "user0",
        ),
        (
            "{%- if messages[0].role == 'system' %}s{%- elif not tools %}n{%- endif %}",
            "n",
        ),
        ("{{ 'a</t>\\nb'.split('</t>')[-1].lstrip('\\n') }}", "b"),
        (
            "{% if x is defined and x is not none %}d{% else %}u{% endif %}",
            "u",
        ),
        (
            "{{ 'model' if messages[0]['role'] == 'assistant' else messages[0]['role'] }}",
            "user",
        ),
        (
            "{% set n = namespace(i=0) %}{% for m in messages %}{% if loop.last %}{% set n.i = loop.index0 + 5 %}{% endif %}{% endfor %}{{ n.i % 2 }}",
            "1",
        ),
        (
            "{% macro m(x) -%}[{{ x }}]{%- endmacro %}{{ m('a') ~ 'b' }}",
            "[a]b",
        ),
    ] {
        assert_eq!(render(template).unwrap(), wanted, "{template}");
    }
    let parts = format!(
        "{each}{{% if 'image' in c or c.type == 'image' %}}I{{% elif 'text' in c %}}{{{{ c.text }}}}{{% endif %}}{end}"
    );
    assert_eq!(render(&parts).unwrap(), "Iyes");
}

#[test]
fn errors_name_file_and_line() {
    let message = |template: &str| render(template).unwrap_err().to_string();
    let raised = message("a\nb{{ raise_exception('Roles must alternate') }}");
    assert!(
        raised.starts_with("Chat template `t.jinja` failed at line 2: "),
        "{raised}"
    );
    assert!(raised.ends_with("Roles must alternate"), "{raised}");
    assert!(message("a\n\n{% if %}").starts_with("Chat template `t.jinja` failed at line 3: "));
    assert!(message("{{ strftime_now('%Q') }}").contains("%Q"));
    assert!(
        message(
            "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}"
        )
        .contains("fuel")
    );
}

#[test]
fn the_template_is_found_wherever_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    let text =
        || ChatTemplate::open(folder.path()).and_then(|t| t.render(&[], &BTreeMap::new(), true));
    assert!(
        text()
            .unwrap_err()
            .to_string()
            .contains("lacks a chat template")
    );
    write(
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "tool_use", "template": "T"}]}"#,
    );
    assert!(text().unwrap_err().to_string().contains("named `default`"));
    write(
        "tokenizer_config.json",
        r#"{"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}"#,
    );
    assert_eq!(text().unwrap(), "D");
    write("tokenizer_config.json", r#"{"chat_template": "C"}"#);
    assert_eq!(text().unwrap(), "C");
    write("chat_template.json", r#"{"chat_template": "J"}"#);
    assert_eq!(text().unwrap(), "J");
    write("chat_template.jinja", "K");
    assert_eq!(text().unwrap(), "K");
    write("chat_template.jinja", "{% endif %}");
    assert!(
        text()
            .unwrap_err()
            .to_string()
            .contains("`chat_template.jinja` failed at line 1")
    );
}

#[test]
fn facts_tell_files_apart() {
    let one = chat(QWEN, false).facts();
    let other = chat(GEMMA, false).facts();
    assert_eq!(one["tokenizer"], other["tokenizer"]);
    assert_ne!(one["chat_template"], other["chat_template"]);
    assert!(one["chat_template"].starts_with("blake3:"));
    assert_ne!(one["tokenizer"], chat(QWEN, true).facts()["tokenizer"]);
}

#[test]
fn absent_and_damaged_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = Chat::open(folder.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The weights folder lacks `tokenizer.json`"
    );
    std::fs::write(folder.path().join("tokenizer.json"), "{").unwrap();
    let error = Chat::open(folder.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("`tokenizer.json` cannot be used: it is not JSON"),
        "{error}"
    );
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    assert!(Chat::open(folder.path()).is_err());
}

#[test]
fn marks_of_training_say_nothing_in_a_prompt() {
    let message = [Message {
        role: "user".into(),
        content: vec![Part::Text("yes".into())],
    }];
    let render = |template: &str| {
        let template = ChatTemplate::parse("chat_template.jinja", template).unwrap();
        let text = template.render(&message, &BTreeMap::new(), true).unwrap();
        (text, template.digest().to_owned())
    };
    let marked = "{% for m in messages %}<a> {%- generation %}\n {{ m.role }} {% endgeneration -%}\n  <b>{% endfor %}{%generation%}x{%+ endgeneration +%}";
    let (text, digest) = render(marked);
    assert_eq!(text, "<a> user <b>x");
    // The digest is of what was published.
    assert_eq!(digest, super::files::digest(&[marked]));
    let plain = marked
        .replace("endgeneration", "endif")
        .replace("generation", "if true");
    assert_eq!(render(&plain).0, text);
    // The word itself is no mark.
    assert_eq!(
        render("{{ 'generation' }} {% set generation = 1 %}").0,
        "generation "
    );
    let open = ChatTemplate::parse("chat_template.jinja", "{% generation %}");
    assert!(
        open.unwrap_err()
            .to_string()
            .contains("`chat_template.jinja`")
    );
}
