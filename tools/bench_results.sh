#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs what docs/results.md shows. Usage: tools/bench_results.sh BUILD OUT
# BUILD: a build folder of preset release; OUT: one file for each run (about ten minutes on 2 cores).
set -eu
gpoeo=$1/bin/gpoeo
out=$2
mkdir -p "$out"

bench() {
  name=$1
  shift
  echo "gpoeo bench $*"
  "$gpoeo" bench "$@" --jobs 2 > "$out/$name.txt"
}

a100="--suite a100-measured"
titanx="--suite titanx-measured"
ours="--policy gpoeo"
rivals=gpoeo,gpoeo-paper,gpoeo-paper:published,odpp
# shellcheck disable=SC2086
{
  bench all $a100 --policy $rivals,zeus,power-limit:300,default --seeds 5
  bench limits $a100 $ours --max-slowdown 1%,2%,5%,10% --seeds 3
  bench traces $a100 --policy $rivals --progress traces --seeds 2
  bench titanx $titanx --policy gpoeo,gpoeo-paper,odpp --seeds 5
  bench zeus --suite zeus-power-measured --policy gpoeo,zeus --seeds 1
  bench twin --suite twin-71 --policy gpoeo,gpoeo-paper --seeds 5
  bench twinnm --suite twin-71 $ours --no-model --seeds 5
  bench shift $a100 $ours --shift 7 --shift-back --seeds 3
  for seconds in 120 300 600; do
    bench la$seconds $a100 $ours --job-seconds $seconds --seeds 3 --json
    bench lt$seconds $titanx $ours --job-seconds $seconds --seeds 3 --json
  done
  bench la7200 $a100 $ours --job-seconds 7200 --seeds 1 --json
  bench lt7200 $titanx $ours --job-seconds 7200 --seeds 1 --json
  bench lw120 --suite twin-71 $ours --job-seconds 120 --seeds 1 --json
  bench noise2 $a100 $ours --noise-scale 2 --seeds 3
  bench nm $a100 $ours --no-model --seeds 5
  bench nc $a100 $ours --no-counters --seeds 5
  bench nmnc $a100 $ours --no-model --no-counters --seeds 5
  bench nmnct $a100 $ours --no-model --no-counters --progress traces --seeds 2
}
