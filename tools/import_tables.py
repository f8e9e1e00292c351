#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes data/tables/ from the published measurements that we may ship.

    tools/import_tables.py SOURCE_DIR [--out data/tables] [--check]

SOURCE_DIR holds a100_dvfs/, titanx_dvfs/ and zeus_power_limits/ as their authors published them.
The output depends on those files alone, byte for byte; --check writes nothing and fails if what is
there differs. Numbers are copied as text, and only units are changed, in decimal arithmetic.
"""

import argparse
import csv
import decimal
import io
import pathlib
import sys

HEADER = ["workload", "sm_clock_mhz", "mem_clock_mhz", "power_limit_w", "time_s", "power_w"]
COUNTERS = ["gr_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp64_active",
            "fp32_active", "fp16_active", "pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"]

# Ours -> DCGM's. DCGM's "bytes" fields are rates already (DCGM_FI_PROF_PCIE_*_BYTES).
DCGM = {
    "gr_active": "gr_engine_active", "sm_active": "sm_active", "sm_occupancy": "sm_occupancy",
    "tensor_active": "tensor_activity", "dram_active": "dram_active",
    "fp64_active": "fp64_active", "fp32_active": "fp32_active", "fp16_active": "fp16_active",
    "pcie_tx_bytes_per_s": "pcie_tx_bytes", "pcie_rx_bytes_per_s": "pcie_rx_bytes",
}

A100_FILES = ["LSTM", "LAMMPS", "NAMD", "GROMACS", "dgemm", "stream", "accel"]
ZEUS_CARDS = {"a40": "NVIDIA A40", "v100": "NVIDIA V100", "p100": "NVIDIA P100",
              "rtx6000": "NVIDIA Quadro RTX 6000"}

A100_SOURCE = """\
a100.csv
Author:     Ghazanfar Ali
Repository: https://github.com/ghazanfarttu/Optimal-GPU-frequency-using-DNN-based-models
Licence:    BSD-3-Clause (a100.LICENSE.txt)
Measured:   on a real NVIDIA A100 with DCGM, one run set a clock: 61 SM clocks (510 to 1410 MHz), the
            memory clock left alone.
Changed:    seven files joined; run_time -> time_s, power_usage -> power_w, sm_app_clock ->
            sm_clock_mhz, DCGM activity columns renamed (tensor_activity -> tensor_active,
            gr_engine_active -> gr_active, pcie_*_bytes -> pcie_*_bytes_per_s: DCGM reports these as
            rates). Numbers as published. Left out: total energy (TOTEC,
            total_energy_consumption; it includes idle time, so energy here is power_w * time_s),
            utilisation, temperatures and pstate. Files without a tensor column leave it empty. The
            source does not state the memory clock, so it is empty.
"""

TITANX_SOURCE = """\
titanx.csv titanx_micro.csv
Author:     INESC-ID, Instituto Superior Tecnico, Universidade de Lisboa
Repository: https://github.com/hpc-ulisboa/gpuPTXModel
Licence:    BSD-3-Clause (titanx.LICENSE.txt)
Measured:   on a real NVIDIA GTX Titan X (Maxwell): 16 core clocks x 2 memory clocks; titanx.csv the
            source's applications, titanx_micro.csv its micro-benchmarks.
Changed:    name lines turned into a workload column; time from ms to s; the energy column left out
            (it is time * power). stencil2d occurs twice with different figures (at the highest
            clocks 2.549 and 4.262 ms; up to 1.79 times apart), so these are two workloads and
            both are kept, the second as stencil2d_2. The source does not say how they differ.
"""

ZEUS_SOURCE = """\
zeus_a40.csv zeus_v100.csv zeus_p100.csv zeus_rtx6000.csv zeus_profiles_a40.csv zeus_profiles_v100.csv
Author:     the Zeus authors (Jie You, Jae-Won Chung, Mosharaf Chowdhury; NSDI 2023) and contributors
Repository: https://github.com/ml-energy/zeus
Licence:    Apache-2.0 (zeus.LICENSE.txt)
Measured:   on real cards, real training, clocks left to the driver, the power limit stepped.
Changed:    zeus_CARD.csv: from summary_power_CARD.csv; workload =
            dataset/network/bBATCH_SIZE/optimizer, time_per_epoch -> time_s, average_power ->
            power_w. zeus_profiles_CARD.csv: from the profiles of one GPU; time_s is the elapsed
            time of one 40-step window, power_w its energy over its time, rounded to 1 mW. Clock
            columns hold "default".
"""


class ImportFault(Exception):
    pass


def plain(number):
    """A Decimal without exponent or trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def render(comments, header, rows):
    out = io.StringIO()
    for comment in comments:
        out.write(f"# {comment}\n")
    out.write(",".join(header) + "\n")
    for row in rows:
        if any("," in field for field in row):
            raise ImportFault(f"a field with a comma: {row}")
        out.write(",".join(row) + "\n")
    return out.getvalue()


def a100(source):
    rows = []
    for name in A100_FILES:
        path = source / "a100_dvfs" / f"GA100-dvfs-{name}-dcgm.csv"
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                counters = [row.get(DCGM[c], "") for c in COUNTERS]
                rows.append([row["application"], row["sm_app_clock"], "", "", row["run_time"],
                             row["power_usage"]] + counters)
    comments = [
        "Measured on real hardware: NVIDIA A100, by Ghazanfar Ali (BSD-3-Clause, a100.LICENSE.txt).",
        "Source and changes: a100.SOURCE.txt. Made by tools/import_tables.py; do not edit.",
    ]
    return render(comments, HEADER + COUNTERS, rows)


def titanx(source, folder):
    rows = []
    seen = {}
    workload = None
    path = source / "titanx_dvfs" / folder / "aggregated_dataset_gtxtitanx.csv"
    with open(path, newline="", encoding="utf-8") as file:
        for fields in csv.reader(file):
            if len(fields) == 1:
                seen[fields[0]] = seen.get(fields[0], 0) + 1
                again = seen[fields[0]]
                workload = fields[0] if again == 1 else f"{fields[0]}_{again}"
            elif len(fields) == 5:
                memory, core, time_ms, power, _energy = fields
                rows.append([workload, core, memory, "", plain(decimal.Decimal(time_ms) / 1000),
                             power])
            elif fields:
                raise ImportFault(f"{path}: unexpected row {fields}")
    comments = [
        "Measured on real hardware: NVIDIA GTX Titan X (Maxwell), by INESC-ID, Universidade de Lisboa"
        " (BSD-3-Clause, titanx.LICENSE.txt).",
        "Source and changes: titanx.SOURCE.txt. Made by tools/import_tables.py; do not edit.",
    ]
    return render(comments, HEADER, rows)


def zeus_comments(card):
    return [
        f"Measured on real hardware: {card}, by the Zeus authors (Apache-2.0, zeus.LICENSE.txt).",
        "Source and changes: zeus.SOURCE.txt. Made by tools/import_tables.py; do not edit.",
    ]


def zeus_summary(source, card):
    rows = []
    path = source / "zeus_power_limits" / f"summary_power_{card}.csv"
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            workload = "/".join([row["dataset"], row["network"], "b" + row["batch_size"],
                                 row["optimizer"]])
            rows.append([workload, "default", "default", row["power_limit"], row["time_per_epoch"],
                         row["average_power"]])
    return render(zeus_comments(ZEUS_CARDS[card]), HEADER, rows)


def zeus_profiles(source, card):
    rows = []
    folder = source / "zeus_power_limits" / "profiles"
    for path in sorted(folder.glob(f"{card.upper()}+*+gpu0.csv")):
        workload = path.name.split("+")[1]
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                elapsed = decimal.Decimal(row["elapsed_time"])
                power = decimal.Decimal(row["gpu0_energy"]) / elapsed
                limit = row["window_name"].rsplit("_", 1)[1]
                rows.append([workload, "default", "default", limit, row["elapsed_time"],
                             plain(power.quantize(decimal.Decimal("0.001")))])
    return render(zeus_comments(ZEUS_CARDS[card]), HEADER, rows)


def outputs(source):
    """Name -> content of every file under data/tables/ that this script owns."""
    files = {"a100.csv": a100(source), "titanx.csv": titanx(source, "realbenchmarks"),
             "titanx_micro.csv": titanx(source, "microbenchmarks")}
    for card in ZEUS_CARDS:
        files[f"zeus_{card}.csv"] = zeus_summary(source, card)
    for card in ("a40", "v100"):
        files[f"zeus_profiles_{card}.csv"] = zeus_profiles(source, card)
    for name, folder, note in (("a100", "a100_dvfs", A100_SOURCE),
                               ("titanx", "titanx_dvfs", TITANX_SOURCE),
                               ("zeus", "zeus_power_limits", ZEUS_SOURCE)):
        files[f"{name}.LICENSE.txt"] = (source / folder / "LICENSE").read_text(encoding="utf-8")
        files[f"{name}.SOURCE.txt"] = note
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path, metavar="SOURCE_DIR")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("data/tables"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        files = outputs(arguments.source)
    except (OSError, KeyError, ImportFault, decimal.InvalidOperation) as fault:
        print(f"import_tables: {fault!r}", file=sys.stderr)
        return 1
    stale = []
    for name, content in files.items():
        path = arguments.out / name
        data = content.encode("utf-8")
        if arguments.check:
            if not path.exists() or path.read_bytes() != data:
                stale.append(str(path))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    for path in stale:
        print(f"import_tables: {path} is not what the sources give; run without --check",
              file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
