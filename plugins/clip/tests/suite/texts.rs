//! Ids, text vectors, logits and probabilities equal the reference's.

use crate::support::*;
use clip::rule::rule;
use clip::settings::Track;
use clip::similarity::{Scale, sigmoid, softmax};
use clip::text::Caption;
use clip::tokenizer::{Padding, Tokenizer};
use clip::tower::words::Eye;
use focus_nn::DType;

const BOTH: [Track; 2] = [Track::Corrected, Track::AsPublished];

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// The track on which the family's rule is the reference's.
fn track(family: &str) -> Track {
    if family == "flair" {
        Track::AsPublished
    } else {
        Track::Corrected
    }
}

#[test]
fn ids_equal_the_references() {
    for family in FAMILIES {
        let (tower, _) = text_tower(family, track(family));
        let calls = tower.tokens(&refs(&prompts(family))).unwrap();
        assert_eq!(calls.len(), 1, "{family}");
        let (ids, width) = Expected::of(family).ids("input_ids");
        assert_eq!(
            (calls[0].ids(), calls[0].width()),
            (ids.as_slice(), width),
            "{family}"
        );
        assert_eq!(
            calls[0].attended(),
            tokens(family, "input_ids").attended(),
            "{family}"
        );
    }
    for family in ["siglip2", "medsiglip"] {
        let (tower, _) = text_tower(family, Track::AsPublished);
        let calls = tower.tokens(&refs(&prompts(family))).unwrap();
        let (ids, width) = Expected::of(family).ids("input_ids_pad_longest");
        assert_eq!(
            (calls[0].ids(), calls[0].width()),
            (ids.as_slice(), width),
            "{family}"
        );
    }
}

#[test]
fn a_long_text_is_cut_as_the_reference_cuts_it() {
    let file = std::fs::read_to_string(folder("long.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&file).unwrap();
    let long = json["text"].as_str().unwrap();
    for family in FAMILIES {
        let wanted: Vec<u32> = serde_json::from_value(json["ids"][family].clone()).unwrap();
        for track in BOTH {
            let (tower, _) = text_tower(family, track);
            let calls = tower.tokens(&[long]).unwrap();
            assert!(tower.tokenizer().ids(long).unwrap().len() == tower.tokenizer().rule().longest);
            // FLAIR's caption is there already on one track, and comes before the beginning on the other.
            if family != "flair" || track == Track::Corrected {
                assert_eq!(calls[0].ids(), wanted, "{family}");
            }
            // The end token stays.
            assert_eq!(calls[0].ids().last(), wanted.last(), "{family}");
            assert!(
                tower
                    .embed(&[long])
                    .unwrap()
                    .values
                    .iter()
                    .all(|v| v.is_finite())
            );
        }
    }
}

#[test]
fn a_word_list_is_as_good_as_the_tokenizers_file() {
    for family in ["retclip", "flair"] {
        let (_, rule) = rule(&config(family), Track::Corrected);
        let alone = tempfile::tempdir().unwrap();
        std::fs::copy(
            folder(family).join("vocab.txt"),
            alone.path().join("vocab.txt"),
        )
        .unwrap();
        let list = Tokenizer::open(alone.path(), rule.clone()).unwrap();
        let file = Tokenizer::open(&folder(family), rule).unwrap();
        let mut texts = prompts(family);
        texts.extend([
            "Ünrecognised wörds, 糖尿病 and 123!?".to_owned(),
            String::new(),
            "[SEP] fundus\t\nphotograph".to_owned(),
        ]);
        for text in &texts {
            assert_eq!(
                list.ids(text).unwrap(),
                file.ids(text).unwrap(),
                "{family}: {text}"
            );
        }
    }
}

#[test]
fn siglips_canonical_form() {
    for family in ["siglip2", "medsiglip"] {
        let (tower, _) = text_tower(family, Track::Corrected);
        let json: serde_json::Value = serde_json::from_str(&text(family, "texts.json")).unwrap();
        let wanted: Vec<String> = serde_json::from_value(json["normalised"].clone()).unwrap();
        for (prompt, wanted) in prompts(family).iter().zip(wanted) {
            assert_eq!(
                tower.tokenizer().canonical(prompt),
                wanted.replace('▁', " "),
                "{family}"
            );
        }
    }
    let (tower, _) = text_tower("medsiglip", Track::Corrected);
    assert_eq!(
        tower
            .tokenizer()
            .canonical("  An \"EYE\",\n of_sorts - (left)!  "),
        "an eye ofsorts left"
    );
    assert_eq!(
        text_tower("clip", Track::Corrected)
            .0
            .tokenizer()
            .canonical(" A, b "),
        " A, b "
    );
}

#[test]
fn every_family_in_f32() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        let (tower, _) = text_tower(family, track(family));
        let found = tower.embed(&refs(&prompts(family))).unwrap();
        assert_close(
            family,
            &found.values,
            &expected.values(&feature(family, "text")),
        );
        assert_close(
            family,
            &unit(&found.values, found.dim),
            &expected.values("text_embeds"),
        );
    }
}

#[test]
fn half_types_are_near() {
    for family in FAMILIES {
        let wanted = Expected::of(family).rows("text_embeds");
        for (dtype, least) in [(DType::BF16, 0.9998), (DType::F16, 0.99999)] {
            let (tower, _) = word_tower(family, &config(family), dtype).unwrap();
            let found = tower.forward(&tokens(family, "input_ids")).unwrap();
            assert_eq!(found.dtype(), dtype);
            for (a, b) in values(&found).chunks(wanted.dim).zip(wanted.iter()) {
                assert!(
                    cosine(a, b) >= least,
                    "{family} {dtype:?}: {}",
                    cosine(a, b)
                );
            }
        }
    }
}

#[test]
fn texts_by_themselves_are_as_together_where_padding_does_not_count() {
    for family in FAMILIES {
        let (tower, _) = text_tower(family, Track::Corrected);
        let texts = prompts(family);
        let together = tower.embed(&refs(&texts)).unwrap();
        for (text, row) in texts.iter().zip(together.iter()) {
            assert_close(family, &tower.embed(&[text]).unwrap().values, row);
        }
    }
}

#[test]
fn published_padding_is_a_track_of_its_own() {
    for family in ["siglip2", "medsiglip"] {
        let (tower, _) = text_tower(family, Track::AsPublished);
        let found = tower.embed(&refs(&prompts(family))).unwrap();
        let expected = Expected::of(family);
        assert_close(
            family,
            &found.values,
            &expected.values("text_features_pad_longest"),
        );
        assert!(
            difference(&found.values, &expected.values("text_features")) > 0.5,
            "{family}"
        );
        let p = softmax(&Scale::PUBLISHED.logits(&expected.rows("image_features"), &found));
        let second: Vec<f32> = p.iter().map(|row| row[1]).collect();
        assert!(difference(&second, &expected.values("zero_shot_p1_pad_longest")) < 1e-3);
    }
}

#[test]
fn flairs_caption_and_padding_on_both_tracks() {
    let expected = Expected::of("flair");
    let texts = prompts("flair");
    let (published, _) = text_tower("flair", Track::AsPublished);
    let (corrected, _) = text_tower("flair", Track::Corrected);
    // The captioned twice, each alone: the corrected track given what the published one makes of the prompts.
    let words = clip::rule::FLAIR_CAPTION;
    let twice: Vec<String> = texts.iter().map(|text| format!("{words}{text}")).collect();
    let alone: Vec<f32> = twice
        .iter()
        .flat_map(|text| corrected.embed(&[text]).unwrap().values)
        .collect();
    assert_close("alone", &alone, &expected.values("text_embeds_unbatched"));
    assert_eq!(corrected.embed(&refs(&twice)).unwrap().values, alone);
    // Together, padding moves the shorter one.
    let together = published.embed(&refs(&texts)).unwrap().values;
    assert!(difference(&together, &alone) > 5e-3);
    // A caption is not put before itself, and is before a bare finding.
    assert_eq!(Caption::Once(words).apply(&texts[0]), texts[0]);
    assert_eq!(
        Caption::Once(words).apply("glaucoma"),
        "A fundus photograph of glaucoma"
    );
    assert!(difference(&corrected.embed(&refs(&texts)).unwrap().values, &alone) > 1e-3);
}

#[test]
fn ret_clips_other_heads() {
    let (tower, _) = word_tower("retclip", &config("retclip"), DType::F32).unwrap();
    let tokens = tokens("retclip", "input_ids");
    let run = |eye| values(&tower.forward_for(&tokens, eye).unwrap());
    let expected = Expected::of("retclip");
    assert_close(
        "left",
        &run(Eye::Left),
        &expected.values("text_features_left"),
    );
    assert_close("both", &run(Eye::Both), &expected.values("text_features"));
    assert!(difference(&run(Eye::Right), &run(Eye::Left)) > 1e-2);
}

#[test]
fn logits_and_probabilities() {
    for family in FAMILIES {
        let expected = Expected::of(family);
        let (tower, scale) = text_tower(family, track(family));
        let texts = tower.embed(&refs(&prompts(family))).unwrap();
        let images = expected.rows(&feature(family, "image"));
        let hundred = Scale::PUBLISHED.logits(&images, &texts);
        // A hundred times vectors that are right to 2e-5.
        let apart = difference(&hundred.values, &expected.values("zero_shot_logits_100"));
        assert!(apart < 2e-3, "{family}: {apart}");
        let own = scale.logits(&images, &texts);
        match family {
            "clip" | "eyeclip" | "siglip2" | "medsiglip" => {
                let p: Vec<f32> = softmax(&hundred).iter().map(|row| row[1]).collect();
                assert!(
                    difference(&p, &expected.values("zero_shot_p1")) < 1e-3,
                    "{family}"
                );
                assert_close(family, &own.values, &expected.values("logits_per_image"));
            }
            "flair" => assert_close(family, &own.values, &expected.values("logits")),
            _ => assert!((scale.factor - 90.0).abs() < 1e-3),
        }
        if family.contains("siglip") {
            assert_close(family, &sigmoid(&own).values, &expected.values("sigmoid"));
        }
    }
}

#[test]
fn rules_of_padding() {
    let padding = |family: &str, track| rule(&config(family), track).1.padding;
    for family in ["clip", "eyeclip", "retclip"] {
        assert_eq!(
            padding(family, BOTH[0]),
            padding(family, BOTH[1]),
            "{family}"
        );
    }
    assert_eq!(padding("medsiglip", Track::Corrected), Padding::To(64));
    assert_eq!(padding("medsiglip", Track::AsPublished), Padding::Longest);
    assert_eq!(padding("flair", Track::Corrected), Padding::Alone);
    assert_eq!(padding("retclip", Track::Corrected), Padding::To(52));
}
