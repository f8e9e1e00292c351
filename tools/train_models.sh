#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the shipped models, data/models/*.gpoeo-model: the A100's and the Titan X's from measured
# tables, the other simulated cards' from generated jobs (each model's header says so), and one for
# any other GPU from all of it. The same bytes each time on one machine; under two minutes.
#
#   tools/train_models.sh [GPOEO] [FOLDER]      (build/release/bin/gpoeo and data/models by default)
set -euo pipefail
cd "$(dirname "$0")/.."
gpoeo=${1:-build/release/bin/gpoeo}
out=${2:-data/models}
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
mkdir -p "$out"

train() { "$gpoeo" train "$@" 2>&1 | grep -E 'held out: time|trained in|loaded in|error'; }

train data/tables/a100.csv --device a100 -o "$out/nvidia-a100-sxm4-80gb.gpoeo-model"
train data/tables/titanx.csv data/tables/titanx_micro.csv --device titanx \
  -o "$out/$(basename nvidia-geforce-gtx-titan-x).gpoeo-model"
for card in rtx3080ti:nvidia-geforce-rtx-3080-ti h200:nvidia-h200 v100:nvidia-v100; do
  key=${card%%:*}
  "$gpoeo" twin corpus --device "$key" --jobs 400 --seed 1 --points 14 -o "$corpus/$key.csv"
  train "$corpus/$key.csv" --device "$key" -o "$out/${card#*:}.gpoeo-model"
done
everything=(data/tables/a100.csv@a100 data/tables/titanx.csv@titanx)
for key in a100 rtx3080ti h200 v100 titanx; do
  "$gpoeo" twin corpus --device "$key" --jobs 60 --seed 2 --points 12 -o "$corpus/any-$key.csv"
  everything+=("$corpus/any-$key.csv@$key")
done
train "${everything[@]}" --for any -o "$out/any.gpoeo-model"
