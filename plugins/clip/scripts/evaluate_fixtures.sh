#!/bin/sh
# Runs the whole way for each tiny model: seal the plugin, evaluate its image side on drawn photographs; FLAIR is refused as its card stands
# and runs on the pixels that the host can prepare.
# Usage: evaluate_fixtures.sh FOCUS_HOST LIBCLIP_SO, from plugins/clip. Builds nothing.
set -eu
host=$1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cp "$2" "$out/libclip.so"
"$host" plugin seal "$out/libclip.so"
evaluate() {
    "$host" eval --plugin "$out/libclip.so" --model checkpoint --weights "$out/$1" --dataset synthetic --limit 40 --no-cache --out "$out/run-$1" $2
}
for family in clip eyeclip siglip2 medsiglip retclip; do
    mkdir "$out/$family"
    # One checkpoint in the folder, as published.
    cp "tests/data/$family/config.json" "tests/data/$family/preprocessor_config.json" "tests/data/$family/model.safetensors" "$out/$family"
    evaluate "$family" ""
done
mkdir "$out/flair"
cp tests/data/flair/config.json tests/data/flair/model.safetensors "$out/flair"
if evaluate flair ""; then
    echo "FLAIR ran on pixels that are not its own" >&2
    exit 1
fi
evaluate flair "--set pixels=resized"
echo "all families evaluated"
