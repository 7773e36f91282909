#!/bin/sh
# Runs the whole way for each tiny model: seal the plugin, evaluate it on drawn photographs, and check that a random-weights control differs.
# Usage: evaluate_fixtures.sh FOCUS_HOST LIBVIT_SO, from plugins/vit. Builds nothing.
set -eu
host=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cp "$2" "$out/libvit.so"
"$host" plugin seal "$out/libvit.so"
for family in vit dinov2 dinov3 retfound_green; do
    mkdir "$out/$family"
    # One checkpoint in the folder, as published.
    cp "tests/data/$family/config.json" "tests/data/$family/preprocessor_config.json" "tests/data/$family/model.safetensors" "$out/$family"
done
for family in retfound_mae retfound_dinov2 visionfm; do
    mkdir "$out/$family"
    cp "tests/data/$family/config.json" "tests/data/$family/preprocessor_config.json" "tests/data/$family/checkpoint.pth" "$out/$family"
done
for family in vit dinov2 dinov3 retfound_mae retfound_dinov2 retfound_green visionfm; do
    "$host" eval --plugin "$out/libvit.so" --model checkpoint --weights "$out/$family" --dataset synthetic --limit 40 --no-cache --out "$out/run-$family"
    grep -q '"notes"' "$out/run-$family/report.json" || echo "note: this host's report has no notes"
done
"$host" eval --plugin "$out/libvit.so" --model facebook/dinov3-vitl16-pretrain-lvd1689m --set weights=random:7 --set size=tiny \
    --dataset synthetic --limit 40 --no-cache --out "$out/run-random"
echo "all families evaluated"
